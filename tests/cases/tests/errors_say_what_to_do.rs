//! Does what goes wrong on a command line, in files and in repositories say what it is and what to do next?

use evenkeel_cases::provoked::WrittenDown;
use evenkeel_testkit::Scratch;
use std::fs;
use std::os::unix::fs::FileExt;

const PROGRAM: &str = env!("CARGO_BIN_EXE_evenkeel-under-test");

const COMMAND_LINES: &[(&str, &str)] = &[
    ("unknown-command", "bakcup /backup/shop"),
    ("unknown-option", "backup --keep-lst=3 /backup/shop"),
    ("missing-value", "restore /backup/shop --target"),
    ("missing-target", "restore /backup/shop"),
    ("not-a-number", "forget /backup/shop --keep-last=seven"),
    ("number-out-of-range", "backup /backup/shop --threads=999"),
    ("number-too-large", "backup /backup/shop --threads=99999999"),
    (
        "number-below-zero",
        "restore /backup/shop --target=/restored --generation=-1",
    ),
    ("no-port", "doctor --port=mysql"),
    ("password-apart", "bench tpcc run -p hunter2 -w 10"),
    ("file-of-tpcc-mysql", "bench tpcc run -w 10 -f run.txt"),
    (
        "other-file-of-tpcc-mysql",
        "bench tpcc run -w 10 -t run.txt",
    ),
    ("not-a-size", "check /var/lib/mysql --rate=fast"),
    (
        "not-a-time",
        "cron --lock=/run/shop.lock --wait=soon -- true",
    ),
    (
        "not-a-point",
        "restore /backup/shop --target=/restored --to=yesterday",
    ),
    (
        "not-a-root",
        "restore /backup/shop --target=/restored --map-root=redo",
    ),
    (
        "not-a-recipient",
        "backup /backup/shop --encrypt-to=age1xyz",
    ),
    (
        "password-in-url",
        "generations s3://key:secret@backups/shop",
    ),
    ("unknown-store", "generations ftp://backup.example.com/shop"),
    (
        "two-that-exclude-each-other",
        "restore /backup/vm --onto=/dev/vg/vm --target=/restored",
    ),
];

const FILES: &[(&str, &str)] = &[
    ("nothing-to-keep", "forget /backup/vm"),
    (
        "backup-into-a-full-directory",
        "backup --no-defaults --snapshot=copy --volume=/srv/vm.img /srv/etc",
    ),
    (
        "metrics-nowhere",
        "backup --no-defaults --snapshot=copy --volume=/srv/vm.img /backup/vm --metrics=/nowhere/vm.prom",
    ),
    ("no-repository", "generations /nowhere"),
    ("no-such-generation", "generations /backup/vm 7"),
    ("not-a-repository", "generations /srv/etc"),
    (
        "restore-into-a-full-directory",
        "restore /backup/vm --target=/srv/etc",
    ),
    ("check-of-no-tablespace", "check /srv/etc/passwd"),
    (
        "check-of-no-data-directory",
        "check --no-defaults --datadir=/srv/etc",
    ),
    (
        "not-a-server-program",
        "verify /backup/vm --boot --server-binary=/usr/bin/true",
    ),
    ("not-a-dump", "load --no-defaults /srv/etc"),
    ("not-a-list-of-servers", "fleet /srv/etc/passwd -- doctor"),
    (
        "not-an-identity",
        "generations /backup/vm --identity=/srv/etc/passwd",
    ),
    ("no-check", "check /nowhere.ibd"),
    ("no-datadir", "check --no-defaults --datadir=/nowhere"),
    (
        "no-baselines",
        "baseline list --no-defaults --datadir=/nowhere",
    ),
    ("no-fleet", "fleet /nowhere.toml -- doctor"),
    ("no-compare", "bench compare /nowhere.json /nowhere-2.json"),
    (
        "no-volume",
        "backup --no-defaults --volume=/nowhere.img /backup/vm",
    ),
    ("no-onto", "restore /backup/vm --onto=/nowhere.img"),
    (
        "no-datadir-of-a-backup",
        "backup --no-defaults --datadir=/nowhere /backup/none",
    ),
    (
        "file-as-datadir",
        "backup --no-defaults --datadir=/etc/passwd /backup/none",
    ),
    ("file-as-repository", "generations /etc/passwd"),
    ("file-as-dump", "load --no-defaults /etc/passwd"),
    ("no-import", "import --no-defaults /nowhere.sql"),
    ("no-load", "load --no-defaults /nowhere"),
    ("no-option-file", "doctor --defaults-file=/nowhere.cnf"),
    (
        "no-identity",
        "generations /backup/vm --identity=/nowhere.key",
    ),
    (
        "no-passphrase",
        "generations /backup/vm --passphrase-file=/nowhere.txt",
    ),
    (
        "no-server-program",
        "verify /backup/vm --boot --server-binary=/nowhere",
    ),
    ("no-prewarm", "prewarm --no-defaults --datadir=/nowhere"),
    (
        "no-authority",
        "doctor --no-defaults --host=127.0.0.1 --ssl-ca=/nowhere.pem",
    ),
    (
        "no-ssh-program",
        "doctor --ssh=root@db1 --ssh-program=/nowhere",
    ),
    ("no-server-of-a-bench", "bench recovery --server=/nowhere"),
    (
        "no-new-passphrase",
        "keys add /backup/vm --new-passphrase-file=/nowhere.txt",
    ),
    (
        "no-library",
        "plugin install url --no-defaults --library=/nowhere.so",
    ),
    (
        "not-a-library",
        "plugin install url --no-defaults --library=/srv/etc/passwd",
    ),
    (
        "no-table-of-a-plugin",
        "plugin install url --no-defaults --library=/usr/bin/true --table=/nowhere.table",
    ),
    ("mount-on-a-full-directory", "mount /backup/vm /srv/etc"),
    (
        "dump-into-a-full-directory",
        "dump --no-defaults --output=/srv/etc",
    ),
    (
        "another-source",
        "backup --no-defaults --snapshot=copy --volume=/srv/other.img /backup/vm",
    ),
    (
        "encrypted-without-a-key",
        "restore /backup/secret --target=/restored",
    ),
    (
        "encrypted-with-another-key",
        "restore /backup/secret --target=/restored --identity=/srv/other.key",
    ),
    ("no-queue", "queue check /nowhere.QUE"),
    ("no-urls", "url compress /nowhere.txt"),
    (
        "no-table-of-urls",
        "url compress --table=/nowhere.table /srv/etc/passwd",
    ),
];

#[test]
fn of_the_command_line() {
    let mut said = WrittenDown::of("command-line", PROGRAM);
    for (name, line) in COMMAND_LINES {
        said.say(name, line);
    }
    said.assert_all();
}

#[test]
fn of_files_and_repositories() {
    let mut said = WrittenDown::of("files", PROGRAM);
    let scratch = Scratch::new();
    let (repository, full) = (scratch.join("repository"), scratch.join("etc"));
    fs::create_dir(&full).unwrap();
    let line = "root:x:0:0:root:/root:/bin/bash\n";
    fs::write(full.join("passwd"), line.repeat(40)).unwrap();
    let image = scratch.join("vm.img");
    fs::write(&image, vec![7; 1 << 20]).unwrap();
    said.call(repository.display(), "/backup/vm");
    said.call(scratch.join("secret").display(), "/backup/secret");
    said.call(image.display(), "/srv/vm.img");
    said.call(full.display(), "/srv/etc");
    said.call(scratch.path().display(), "/srv");
    let other = scratch.join("other.img");
    fs::write(&other, vec![8; 1 << 20]).unwrap();
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    said.call(format!(" {}:", host.trim()), " kvm7.example:");
    // It is this test that is in the way.
    said.call(format!("process {}", std::process::id()), "process 4711");
    let backup = "backup --no-defaults --snapshot=copy --volume=/srv/vm.img /backup/vm";
    said.prepare(backup);
    encrypted(&mut said, &scratch);

    for (name, line) in FILES {
        said.say(name, line);
    }
    for (name, lock, line) in [
        ("busy-backup", "writer.lock", backup),
        (
            "busy-backup-that-waited",
            "writer.lock",
            &format!("{backup} --wait=1s"),
        ),
        ("busy-prune", "reader.lock", "prune /backup/vm --execute"),
        (
            "busy-restore",
            "reader.lock",
            "restore /backup/vm --target=/restored",
        ),
    ] {
        let held = fs::File::options().write(true).open(repository.join(lock));
        let held = held.unwrap();
        match name {
            // As a restore holds it.
            "busy-prune" => held.lock_shared().unwrap(),
            _ => held.lock().unwrap(),
        }
        said.say(name, line);
    }
    damaged(&mut said, &scratch);
    said.assert_all();
}

/// Makes a repository that one key opens, and the key of somebody else.
fn encrypted(said: &mut WrittenDown, scratch: &Scratch) {
    said.prepare("keys generate --output=/srv/own.key");
    said.prepare("keys generate --output=/srv/other.key");
    let public = |name: &str| {
        let text = fs::read_to_string(scratch.join(name)).unwrap();
        let mut words = text.split_whitespace();
        words
            .find(|word| word.starts_with("age1"))
            .unwrap()
            .to_owned()
    };
    said.call(public("other.key"), "age1other");
    let backup = "backup --no-defaults --snapshot=copy --volume=/srv/vm.img /backup/secret";
    said.prepare(&format!("{backup} --encrypt-to={}", public("own.key")));
}

/// Damages what is read first, and does what the hints say: it is enough.
fn damaged(said: &mut WrittenDown, scratch: &Scratch) {
    let spoil = |name: &str| {
        let file = fs::File::options().write(true).open(scratch.join(name));
        file.unwrap().write_at(b"????", 40).unwrap();
    };
    said.prepare("repository copy /backup/vm /srv/copy");
    spoil("repository/repository");
    said.say("damaged-repository", "generations /backup/vm");
    let (copy, own) = ("copy/repository", "repository/repository");
    fs::copy(scratch.join(copy), scratch.join(own)).unwrap();
    said.prepare("verify /backup/vm");
    spoil("repository/head");
    said.say("damaged-head", "generations /backup/vm");
    said.prepare("repository rebuild /backup/vm --execute");
    said.prepare("verify /backup/vm");
}
