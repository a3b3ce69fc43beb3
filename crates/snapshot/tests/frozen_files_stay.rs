//! Do frozen files keep their bytes while the live ones change, and does the next run find what
//! changed, with every provider that keeps a base?

mod ground;

use evenkeel_op::ErrorKind;
use evenkeel_op::own_directory::shown;
use evenkeel_snapshot::{
    Changed, Layout, Method, Opened, Sealed, Settings, SourceFile, choose, open,
};
use evenkeel_testkit::LoopFs;
use ground::{FILES, content, datadir, files, layout, settings, write_version};
use std::fs;
use std::path::Path;

const PAGE: u64 = 16384;

fn freeze(mut run: Opened, files: &[SourceFile]) -> Sealed {
    run.prepare(files);
    run.take(files).unwrap();
    let made = run.instant().unwrap();
    run.seal(made).unwrap()
}

fn assert_frozen(run: &Sealed, files: &[SourceFile], version: u8) {
    for (file, name) in files.iter().zip(FILES) {
        let frozen = fs::read(run.frozen_path(file)).unwrap();
        assert!(
            frozen == content(name, version),
            "{name} is not of version {version}"
        );
    }
}

/// One run after another, with changes between and during them.
fn runs(fs: &LoopFs, method: Method) {
    let datadir = datadir(fs);
    let (layout, files) = (layout(&datadir), files(&datadir));
    let open = |token| open(method, &layout, &settings(), token).unwrap();

    let first = freeze(open(Some("nobody's")), &files);
    write_version(&datadir, 2);
    assert_frozen(&first, &files, 1);
    assert!(
        files
            .iter()
            .all(|file| first.changed(file).unwrap() == Changed::Unknown)
    );
    first.check().unwrap().commit("one").unwrap();

    let second = freeze(open(Some("one")), &files);
    write_version(&datadir, 3);
    assert_frozen(&second, &files, 2);
    let pages = Changed::Ranges([0, 17, 39].map(|p| p * PAGE..(p + 1) * PAGE).into());
    for (file, name) in files.iter().zip(FILES) {
        let changed = second.changed(file).unwrap();
        let expected = if name == "empty" {
            Changed::Ranges(vec![])
        } else {
            pages.clone()
        };
        assert_eq!(changed, expected, "{name} by {}", second.name());
    }
    second.abandon().unwrap();

    // What was abandoned left the base as it was; another token means another base.
    let third = freeze(open(Some("one")), &files);
    assert_eq!(third.changed(&files[0]).unwrap(), pages);
    third.check().unwrap().commit("three").unwrap();
    let fourth = freeze(open(Some("one")), &files);
    assert_eq!(fourth.changed(&files[0]).unwrap(), Changed::Unknown);
    drop(fourth);
    let fifth = freeze(open(Some("three")), &files);
    assert_eq!(fifth.changed(&files[0]).unwrap(), Changed::Ranges(vec![]));
    drop(fifth);
    assert_eq!(
        ground::names(&ground::holding(fs)),
        ["EVENKEEL-HOLDING", "base", "lock"]
    );
}

#[test]
fn reflink_on_xfs() {
    runs(&ground::xfs(), Method::Reflink);
}

#[test]
fn reflink_on_btrfs() {
    runs(&ground::btrfs(), Method::Reflink);
}

#[test]
fn btrfs_on_btrfs() {
    runs(&ground::btrfs(), Method::Btrfs);
}

#[test]
fn the_best_method_is_chosen() {
    let (xfs, btrfs, ext4) = (ground::xfs(), ground::btrfs(), LoopFs::ext4(64 << 20));
    let choice = |fs: &LoopFs| choose(&layout(&datadir(fs)), &settings());
    assert_eq!(choice(&xfs).unwrap(), Method::Reflink);
    assert_eq!(choice(&btrfs).unwrap(), Method::Btrfs);
    let error = choice(&ext4).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    let hints = error.hints().join("\n");
    assert!(
        hints.contains("ext4, which cannot clone") && hints.contains("copy"),
        "{hints}"
    );
    // Looking leaves nothing behind.
    for fs in [&xfs, &btrfs, &ext4] {
        assert!(
            !ground::names(fs.path())
                .iter()
                .any(|name| name.starts_with('.'))
        );
    }
}

#[test]
fn patched_bytes_are_in_the_clone_only_and_count_as_changed() {
    let fs = ground::xfs();
    let datadir = datadir(&fs);
    let (layout, files) = (layout(&datadir), files(&datadir));
    let mut run = open(Method::Reflink, &layout, &settings(), None).unwrap();
    run.take(&files).unwrap();
    let made = run.instant().unwrap();
    run.patch(&made, &files[1], 4096, b"saved checkpoint")
        .unwrap();
    let run = run.seal(made).unwrap();
    let mut expected = content(FILES[1], 1);
    expected[4096..4112].copy_from_slice(b"saved checkpoint");
    assert!(fs::read(run.frozen_path(&files[1])).unwrap() == expected);
    assert!(fs::read(&files[1].path).unwrap() == content(FILES[1], 1));
    run.check().unwrap().commit("one").unwrap();

    // Behind the end: all that the file became longer by is told.
    let mut run = open(Method::Reflink, &layout, &settings(), Some("one")).unwrap();
    run.take(&files).unwrap();
    let end = content(FILES[2], 1).len() as u64;
    let made = run.instant().unwrap();
    run.patch(&made, &files[2], end + 3 * PAGE - 1, &[0])
        .unwrap();
    let run = run.seal(made).unwrap();
    let longer = end..end + 3 * PAGE;
    assert_eq!(
        run.changed(&files[2]).unwrap(),
        Changed::Ranges(vec![longer])
    );
    drop(run);

    let run = open(Method::Reflink, &layout, &settings(), Some("one")).unwrap();
    let run = freeze(run, &files);
    let Changed::Ranges(ranges) = run.changed(&files[1]).unwrap() else {
        panic!("no base")
    };
    assert!(
        ranges.iter().any(|range| range.contains(&4096)),
        "{ranges:?}"
    );
}

#[test]
fn files_on_two_filesystems_have_a_holding_directory_each() {
    let (one, other) = (ground::xfs(), ground::xfs());
    let datadir = datadir(&one);
    let redo = other.join("server/redo");
    fs::create_dir_all(&redo).unwrap();
    fs::write(redo.join("ib_logfile0"), b"redo").unwrap();
    // A table whose file is on the other filesystem: what a symbolic link leads to.
    fs::write(redo.join("far.MYD"), b"far").unwrap();
    let mut layout = layout(&datadir);
    layout.dirs.push(redo.clone());
    let mut files = files(&datadir);
    let file = |name: &str, path| SourceFile {
        name: name.to_owned(),
        path,
    };
    files.push(file("redo/ib_logfile0", redo.join("ib_logfile0")));
    files.push(file("data/bank/far.MYD", redo.join("far.MYD")));
    let run = open(Method::Reflink, &layout, &settings(), None).unwrap();
    let run = freeze(run, &files);
    fs::write(redo.join("ib_logfile0"), b"else").unwrap();
    assert_eq!(fs::read(run.frozen_path(&files[5])).unwrap(), b"redo");
    assert_eq!(fs::read(run.frozen_path(&files[6])).unwrap(), b"far");
    let place = |file: &SourceFile| shown(&run.frozen_path(file));
    assert!(place(&files[5]).starts_with(other.join("server")));
    assert!(place(&files[0]).starts_with(one.path()));
    run.check().unwrap().commit("one").unwrap();
    let run = open(Method::Reflink, &layout, &settings(), Some("one")).unwrap();
    let run = freeze(run, &files);
    assert_eq!(run.changed(&files[0]).unwrap(), Changed::Ranges(vec![]));
    let whole = 0..4;
    assert_eq!(
        run.changed(&files[5]).unwrap(),
        Changed::Ranges(vec![whole])
    );
}

#[test]
fn files_that_btrfs_overwrites_in_place_are_frozen_too() {
    use rustix::fs::{IFlags, ioctl_getflags, ioctl_setflags};
    let fs = ground::btrfs();
    let datadir = datadir(&fs);
    // chattr +C takes effect on empty files only.
    let path = datadir.join(FILES[2]);
    fs::remove_file(&path).unwrap();
    let file = fs::File::create(&path).unwrap();
    ioctl_setflags(&file, ioctl_getflags(&file).unwrap() | IFlags::NOCOW).unwrap();
    write_version(&datadir, 1);
    for method in [Method::Reflink, Method::Btrfs] {
        write_version(&datadir, 1);
        let run = open(method, &layout(&datadir), &settings(), None).unwrap();
        let run = freeze(run, &files(&datadir));
        write_version(&datadir, 2);
        assert_frozen(&run, &files(&datadir), 1);
    }
}

/// Returns why a method is refused for a layout.
fn refusal(method: Method, layout: &Layout, settings: &Settings) -> String {
    let error = open(method, layout, settings, None)
        .map(|_| ())
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{}", error.chain());
    format!("{}\n{}", error.chain(), error.hints().join("\n"))
}

#[test]
fn a_mount_point_needs_a_named_place() {
    let fs = ground::xfs();
    let make = |path: &Path| fs::create_dir_all(path).unwrap();
    make(&fs.join("bank"));
    write_version(fs.path(), 1);
    let layout = layout(fs.path());
    let reported = refusal(Method::Reflink, &layout, &settings());
    assert!(reported.contains("--snapshot-dir"), "{reported}");
    // Inside the data directory only if the user says so.
    let mut named = settings();
    named.snapshot_dirs = vec![fs.join("kept")];
    make(&named.snapshot_dirs[0]);
    let run = open(Method::Reflink, &layout, &named, None).unwrap();
    let files = files(fs.path());
    let run = freeze(run, &files);
    write_version(fs.path(), 2);
    assert_frozen(&run, &files, 1);
    // No name in there may look like a table to a server that scans for them.
    assert!(
        run.frozen_path(&files[2])
            .to_string_lossy()
            .ends_with(".ibd~")
    );
}

#[test]
fn btrfs_refuses_what_one_snapshot_does_not_hold() {
    let fs = ground::btrfs();
    let datadir = datadir(&fs);
    ground::subvolume(&datadir.join("nested"));
    let mut nested = layout(&datadir);
    nested.dirs.push(datadir.join("nested"));
    let reported = refusal(Method::Btrfs, &nested, &settings());
    assert!(
        reported.contains("nested is not in subvolume"),
        "{reported}"
    );
    // Not listed as a directory, but a file in it is taken all the same.
    let mut run = open(Method::Btrfs, &layout(&datadir), &settings(), None).unwrap();
    fs::write(datadir.join("nested/t.ibd"), "t").unwrap();
    let stray = SourceFile {
        name: "data/nested/t.ibd".into(),
        path: datadir.join("nested/t.ibd"),
    };
    assert_eq!(run.take(&[stray]).unwrap_err().kind(), ErrorKind::Refused);
    drop(run);
    // Clones cross subvolumes.
    assert!(open(Method::Reflink, &nested, &settings(), None).is_ok());
    let xfs = ground::xfs();
    let reported = refusal(Method::Btrfs, &layout(&ground::datadir(&xfs)), &settings());
    assert!(reported.contains("on XFS, not on btrfs"), "{reported}");
}

/// Whose a file is was looked at before, and the server's user can put links there meanwhile.
#[test]
fn links_that_were_put_there_meanwhile_are_not_cloned() {
    let fs = ground::xfs();
    let datadir = datadir(&fs);
    let all = files(&datadir);
    let precious = fs.join("precious");
    fs::create_dir(&precious).unwrap();
    for file in &all {
        fs::write(precious.join(file.path.file_name().unwrap()), "x").unwrap();
    }
    let refused = || {
        let mut run = open(Method::Reflink, &layout(&datadir), &settings(), None).unwrap();
        let error = run.take(&all).unwrap_err();
        assert!(error.chain().contains("symbolic link"), "{}", error.chain());
    };
    let of_schema = |file: &&SourceFile| file.path.parent() != Some(&datadir);
    let table = all.iter().find(of_schema).unwrap().path.clone();
    let moved = datadir.join("moved");
    fs::rename(&table, &moved).unwrap();
    std::os::unix::fs::symlink(precious.join(table.file_name().unwrap()), &table).unwrap();
    refused();
    fs::rename(&moved, &table).unwrap();
    let schema = table.parent().unwrap();
    fs::rename(schema, &moved).unwrap();
    std::os::unix::fs::symlink(&precious, schema).unwrap();
    refused();
}

#[test]
fn two_runs_at_once_are_refused_as_busy() {
    let fs = ground::btrfs();
    let layout = layout(&datadir(&fs));
    let first = open(Method::Btrfs, &layout, &settings(), None).unwrap();
    for method in [Method::Btrfs, Method::Reflink] {
        let error = open(method, &layout, &settings(), None)
            .map(|_| ())
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy);
    }
    first.abandon().unwrap();
    assert!(open(Method::Reflink, &layout, &settings(), None).is_ok());
}
