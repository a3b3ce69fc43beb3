use super::*;
use evenkeel_op::ErrorKind;

fn scratch(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("evenkeel-staging-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    dir
}

fn plan(target: &Path) -> Staging {
    Staging::plan(target, target).unwrap()
}

#[test]
fn a_directory_appears_whole() {
    let top = scratch("whole");
    let staging = plan(&top.join("data"));
    staging.create().unwrap();
    fs::write(staging.path(Path::new("ibdata1")), "x").unwrap();
    assert_eq!(
        fs::read_to_string(staging.dir().join("ibdata1")).unwrap(),
        STOPPER
    );
    assert!(!top.join("data").exists());
    publish(&staging, &[]).unwrap();
    assert_eq!(names(&top).unwrap(), ["data"]);
    assert_eq!(names(&top.join("data")).unwrap(), ["ibdata1"]);
    assert_eq!(fs::read_to_string(top.join("data/ibdata1")).unwrap(), "x");
    fs::remove_dir_all(top).unwrap();
}

#[test]
fn held_files_are_held_again_after_a_tool_had_them() {
    let top = scratch("again");
    let staging = plan(&top.join("data"));
    staging.create().unwrap();
    fs::write(staging.path(Path::new("ibdata1")), "x").unwrap();
    let in_place = || fs::read_to_string(staging.dir().join("ibdata1")).unwrap();
    staging.unhold_all().unwrap();
    assert_eq!(in_place(), "x");
    fs::write(staging.dir().join("ib_logfile0"), "made").unwrap();
    staging.hold_all().unwrap();
    assert_eq!(in_place(), STOPPER);
    assert!(!staging.dir().join("ib_logfile0").exists());
    publish(&staging, &[]).unwrap();
    assert_eq!(fs::read_to_string(top.join("data/ibdata1")).unwrap(), "x");
    assert_eq!(
        fs::read_to_string(top.join("data/ib_logfile0")).unwrap(),
        "made"
    );
    fs::remove_dir_all(top).unwrap();
}

#[test]
fn a_used_target_is_refused_and_kept() {
    let top = scratch("used");
    let staging = plan(&top.join("data"));
    staging.create().unwrap();
    fs::create_dir(top.join("data")).unwrap();
    fs::write(top.join("data/precious"), "x").unwrap();
    let error = Staging::plan(&top.join("data"), &top.join("data")).unwrap_err();
    assert_eq!(error.kind().exit_code(), 2);
    assert!(top.join("data/precious").exists());
    fs::remove_dir_all(top).unwrap();
}

#[test]
fn leftovers_are_cleared_but_strangers_are_not() {
    let top = scratch("left");
    let staging = plan(&top.join("data"));
    staging.create().unwrap();
    fs::write(staging.dir().join("half"), "x").unwrap();
    // One that still runs is let be.
    let error = plan(&top.join("data")).create().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
    assert!(staging.dir().join("half").exists());
    drop(staging);
    let staging = plan(&top.join("data"));
    staging.create().unwrap();
    assert!(!staging.dir().join("half").exists());
    fs::remove_file(staging.marker.path()).unwrap();
    fs::write(staging.dir().join("stranger"), "x").unwrap();
    let place = staging.place().to_path_buf();
    drop(staging);
    assert!(plan(&top.join("data")).create().is_err());
    assert!(place.join("stranger").exists());
    fs::remove_dir_all(top).unwrap();
}

#[test]
fn other_roots_are_replaced_until_the_data_directory_is_there() {
    let top = scratch("roots");
    let (data, redo) = (top.join("data"), top.join("redo"));
    let plan_both = || (plan(&data), Staging::plan(&redo, &data));
    let (_, first) = plan_both();
    let first = first.unwrap();
    first.create().unwrap();
    fs::write(first.path(Path::new("ib_logfile0")), "old").unwrap();
    first.publish().unwrap();
    // One for another data directory must not touch it, nor one for the same while this one lives.
    assert!(Staging::plan(&redo, &top.join("other")).is_err());
    let (_, second) = plan_both();
    let second = second.unwrap();
    assert_eq!(second.create().unwrap_err().kind(), ErrorKind::Busy);
    assert!(second.abandon().is_err());
    assert!(redo.join("ib_logfile0").exists());
    // The run dies here.
    drop(first);
    let (whole, again) = plan_both();
    let again = again.unwrap();
    whole.create().unwrap();
    again.create().unwrap();
    fs::write(again.path(Path::new("ib_logfile0")), "new").unwrap();
    publish(&whole, &[again]).unwrap();
    assert_eq!(fs::read_to_string(redo.join("ib_logfile0")).unwrap(), "new");
    assert!(Staging::plan(&redo, &data).is_err(), "it is settled");
    fs::remove_dir_all(top).unwrap();
}

/// The directory above is often the server's account's.
#[test]
fn a_marker_that_leads_elsewhere_is_not_written_through() {
    let top = scratch("marker");
    let precious = top.join("precious");
    fs::write(&precious, "x").unwrap();
    let staging = plan(&top.join("data"));
    std::os::unix::fs::symlink(&precious, staging.marker.path()).unwrap();
    assert!(staging.marker.write(None).is_err());
    assert_eq!(fs::read_to_string(&precious).unwrap(), "x");
    fs::remove_file(staging.marker.path()).unwrap();
    drop(staging.marker.write(None).unwrap());
    std::os::unix::fs::chown(staging.marker.path(), Some(4242), None).unwrap();
    assert_eq!(staging.mark(), None, "another user's marker counts");
    fs::remove_dir_all(top).unwrap();
}

#[test]
fn what_is_put_in_the_place_of_a_staging_directory_stays() {
    let top = scratch("place");
    let staging = plan(&top.join("data"));
    staging.create().unwrap();
    fs::rename(staging.place(), top.join("moved")).unwrap();
    fs::create_dir(staging.place()).unwrap();
    fs::write(staging.place().join("precious"), "x").unwrap();
    // What is written goes where it belongs.
    fs::write(staging.path(Path::new("a")), "x").unwrap();
    assert!(top.join("moved/a").exists());
    assert_eq!(staging.abandon().unwrap_err().kind().exit_code(), 14);
    let error = plan(&top.join("data")).create().unwrap_err();
    assert_eq!(error.kind().exit_code(), 14);
    assert!(staging.place().join("precious").exists());
    fs::remove_dir_all(top).unwrap();
}

#[test]
fn what_lies_where_a_file_is_made_is_not_written_through() {
    let top = scratch("stopper");
    let precious = top.join("precious");
    fs::write(&precious, "x").unwrap();
    let staging = plan(&top.join("data"));
    staging.create().unwrap();
    let link = staging.dir().join("ib_logfile0.evenkeel-held");
    fs::remove_file(staging.dir().join(SYSTEM_SPACE)).unwrap();
    std::os::unix::fs::symlink(&precious, staging.dir().join(SYSTEM_SPACE)).unwrap();
    assert!(write_new(&staging.dir().join(SYSTEM_SPACE), STOPPER).is_err());
    // A link is held as what it is.
    staging.hold_all().unwrap();
    assert!(!link.exists());
    assert_eq!(fs::read_to_string(&precious).unwrap(), "x");
    fs::remove_dir_all(top).unwrap();
}
