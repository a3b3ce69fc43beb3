//! Do the units and examples in `dist/systemd` say what this command line understands?

use evenkeel_cli::args::{Cli, HealthVerb, Verb};
use evenkeel_cli::settings;
use evenkeel_op::Cancel;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

fn dist(name: &str) -> PathBuf {
    evenkeel_testkit::checkout().join("dist/systemd").join(name)
}

fn read(name: &str) -> String {
    fs::read_to_string(dist(name)).unwrap()
}

/// The values of a key of a unit or of an environment file.
fn values(text: &str, key: &str) -> Vec<String> {
    let begin = format!("{key}=");
    let lines = text.lines().filter_map(|line| line.strip_prefix(&begin));
    lines
        .map(|value| value.trim_matches('"').to_owned())
        .collect()
}

fn value(text: &str, key: &str) -> String {
    let [value] = values(text, key).try_into().expect(key);
    value
}

/// Parses the command of a unit with these variables, as systemd puts them in: `${NAME}` is one word,
/// `$NAME` as many as it has.
fn parsed(unit: &str, variables: &[(&str, &str)]) -> Cli {
    let mut line = value(&read(unit), "ExecStart");
    for (name, value) in variables {
        line = line.replace(&format!("${{{name}}}"), value);
        line = line.replace(&format!("${name}"), value);
    }
    let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
    assert_eq!(words[0], "/usr/bin/evenkeel");
    evenkeel_cli::parse(words).unwrap_or_else(|error| panic!("{unit}: {error}"))
}

#[test]
fn a_server_is_backed_up_as_its_file_says() {
    let conf = read("example.conf");
    let (repository, options) = (value(&conf, "REPOSITORY"), value(&conf, "OPTIONS"));
    let variables = [("REPOSITORY", &*repository), ("OPTIONS", &*options)];
    let Verb::Backup(args) = parsed("evenkeel-backup@.service", &variables).verb else {
        panic!("no backup");
    };
    assert_eq!(args.repository.to_str(), Some(&*repository));
    assert!(args.keep.is_any() && args.prune && args.metrics.is_some());
}

#[test]
fn a_fleet_is_backed_up_as_its_list_says() {
    let unit = read("evenkeel-fleet.service");
    assert_eq!(values(&unit, "Environment"), ["JOBS=4 OPTIONS="]);
    let variables = [("JOBS", "4"), ("OPTIONS", "")];
    let Verb::Fleet(mut args) = parsed("evenkeel-fleet.service", &variables).verb else {
        panic!("no fleet");
    };
    args.file = dist("example.toml");
    let members = settings::fleet(&args, &Cancel::new()).unwrap();
    assert_eq!(members.len(), 3);
    for member in members {
        let words = [vec![OsString::from("evenkeel")], member.words].concat();
        let Verb::Backup(args) = evenkeel_cli::parse(words).unwrap().verb else {
            panic!("no backup");
        };
        assert!(args.repository.ends_with(&member.name));
        assert_eq!(args.remote.ssh.is_some(), member.name != "wiki");
    }
}

#[test]
fn a_server_is_checked_as_its_unit_says() {
    let unit = read("evenkeel-health.service");
    let options = value(&unit, "Environment");
    let options = options.strip_prefix("OPTIONS=").unwrap();
    let Verb::Health(args) = parsed("evenkeel-health.service", &[("OPTIONS", options)]).verb else {
        panic!("no health");
    };
    let HealthVerb::Run(args) = args.verb else {
        panic!("no health run");
    };
    assert!(args.http.is_some() && args.control.is_some());
    assert_eq!(value(&unit, "Type"), "notify");
}

/// What `--block` needs is in the page, for those who want it.
#[test]
fn the_checker_may_not_change_rules_unless_the_page_is_followed() {
    let unit = read("evenkeel-health.service");
    let page = dist("../../docs/src/tasks/health.md");
    let page = fs::read_to_string(page).unwrap();
    let (_, block) = page.split_once("```text\n[Service]\n").unwrap();
    let (drop_in, _) = block.split_once("```").unwrap();
    for (key, word) in [
        ("CapabilityBoundingSet", "CAP_NET_ADMIN"),
        ("RestrictAddressFamilies", "AF_NETLINK"),
    ] {
        assert!(!value(&unit, key).contains(word), "{key}");
        assert_eq!(value(drop_in, key), word);
    }
}

/// The watchdogs are in the same control group, and are needed most when evenkeel was killed.
#[test]
fn whoever_kills_evenkeel_spares_its_watchdogs() {
    for unit in ["evenkeel-backup@.service", "evenkeel-fleet.service"] {
        assert_eq!(value(&read(unit), "KillMode"), "process", "{unit}");
    }
}

/// What `systemd-analyze security` thinks of a unit, in tenths: 100 is a process that may do all that root may.
#[test]
fn units_may_do_no_more_than_they_must() {
    let scratch = tempfile::tempdir().unwrap();
    for (unit, most) in [
        ("evenkeel-backup@.service", "55"),
        ("evenkeel-fleet.service", "55"),
        ("evenkeel-prewarm.service", "25"),
        ("evenkeel-health.service", "40"),
    ] {
        let path = scratch.path().join(unit.replace('@', "@shop"));
        fs::copy(dist(unit), &path).unwrap();
        let judged = Command::new("systemd-analyze")
            .args(["security", "--offline=true", "--no-pager"])
            .arg(format!("--threshold={most}"))
            .arg(&path)
            .output()
            .expect("systemd-analyze");
        let said = String::from_utf8_lossy(&judged.stdout);
        assert!(judged.status.success(), "{unit}:\n{said}");
    }
}

/// LVM needs the module of its snapshots, block devices, and its nodes; a hook may be any program.
#[test]
fn units_keep_what_a_snapshot_needs() {
    for unit in ["evenkeel-backup@.service", "evenkeel-fleet.service"] {
        let text = read(unit);
        for wrong in [
            "ProtectKernelModules=",
            "ProtectClock=",
            "PrivateDevices=",
            "@module",
            "@mount",
        ] {
            assert!(!text.contains(wrong), "{unit} has {wrong}");
        }
        let given_up = values(&text, "CapabilityBoundingSet").join(" ");
        for needed in [
            "SYS_ADMIN",
            "SYS_MODULE",
            "SYS_PTRACE",
            "MKNOD",
            "KILL",
            "CHOWN",
        ] {
            assert!(!given_up.contains(needed), "{unit} gives up {needed}");
        }
        assert!(given_up.starts_with('~'));
    }
}
