//! Do the commands of the pages about backups work as they stand there, and print what is shown?

use evenkeel_cases::house::House;
use evenkeel_cases::pages::Page;
use evenkeel_testkit::Seaweed;
use evenkeel_testkit::servers::mysql_8_0_15;

const PROGRAM: &str = env!("CARGO_BIN_EXE_evenkeel-under-test");

/// A host with a server.
fn host() -> House {
    let house = House::new("db1", PROGRAM);
    house.start_mariadb();
    house
}

/// Writes a file of random bytes with a hole behind them.
fn make_image(house: &House, path: &str, size: &str) {
    house.run(&format!(
        "mkdir -p $(dirname {path}) && head -c 8M /dev/urandom >{path} && truncate -s {size} {path}"
    ));
}

#[test]
fn nightly() {
    let house = host();
    let mut page = Page::open(&house, "tasks/nightly.md");
    page.say("'…'", "'correct horse'");
    page.say("password = …", "password = correct horse");
    page.run("CREATE USER");
    for_mysql(&house, &page.take("CREATE USER"));
    page.write("[evenkeel]", "~/.my.cnf", "600");
    page.run("0 3 * * *");
    page.run("0 5 * * 0");
    let log = house.run("cat /var/log/shop-backup.log");
    assert!(log.contains("generation 1"), "{log}");
    page.does("hostname db2; evenkeel backup /backup/shop", 2);
    page.shows("evenkeel: /backup/shop holds");
    page.end();
}

/// Runs the statements in a MySQL, and takes a backup of it by the account that they make.
fn for_mysql(house: &House, statements: &str) {
    let server = mysql_8_0_15();
    let _ = server.prepare(&house.path("/var/lib/other"), &[]);
    house.run("chown -R mysql:mysql /var/lib/other");
    let program = server.binary.path.display();
    let socket = "-S /run/mysqld/other.sock";
    house.start(
        "other",
        &format!(
            "{program} --no-defaults --datadir=/var/lib/other --socket=/run/mysqld/other.sock --user=mysql \
             --port=3308 --mysqlx=OFF --pid-file=/run/mysqld/other.pid"
        ),
    );
    house.until(&format!("mariadb {socket} -e 'SELECT 1'"));
    house.run(&format!("mariadb {socket} <<'END'\n{statements}\nEND"));
    house.write(
        "~/other.cnf",
        "[evenkeel]\nuser = backup\npassword = correct horse\n",
        "600",
    );
    house.run(&format!(
        "evenkeel backup --defaults-file=other.cnf {socket} /backup/other"
    ));
    house.run("kill $(cat /run/mysqld/other.pid)");
}

#[test]
fn ssh() {
    let house = host();
    house.start_sshd();
    let mut page = Page::open(&house, "tasks/ssh.md");
    page.run("evenkeel doctor");
    make_image(&house, "/srv/vm1.img", "64M");
    house.run("hostname kvm1; evenkeel backup /backup/vm1 --volume /srv/vm1.img --ssh root@kvm1");
    page.run("# evenkeel backup");
    house.run("hostname db1");
    page.run("0 3 * * *");
    page.end();
}

#[test]
fn timers() {
    let house = host();
    house.run("mkdir -p /var/lib/prometheus/node-exporter");
    for unit in ["evenkeel-backup@.service", "evenkeel-backup@.timer"] {
        house.bring_unit(unit);
    }
    house.write("/etc/evenkeel/shop.cnf", "[evenkeel]\nuser = root\n", "600");
    let mut page = Page::open(&house, "tasks/timers.md");
    page.run("evenkeel backup");
    page.write(
        "# /etc/evenkeel/shop.conf",
        "/etc/evenkeel/shop.conf",
        "644",
    );
    page.run("systemctl enable");
    let wanted = "/etc/systemd/system/timers.target.wants/evenkeel-backup@shop.timer";
    house.run(&format!("test -L {wanted}"));
    assert!(
        page.printed().contains("generation 2"),
        "{}",
        page.printed()
    );
    assert_reported(&house, &page.take("- alert"), "evenkeel-shop");
    let caught_up = "grep -q '_caught_up_timestamp_seconds{' \
                     /var/lib/prometheus/node-exporter/evenkeel-shop-binlog.prom";
    page.briefly("binlog archive", caught_up);
    page.run("evenkeel verify");
    assert_reported(&house, &page.take("- alert"), "evenkeel-shop-*");
    page.run("evenkeel backup /backup/shop --run-before");
    house.run("test -e /run/shop-is-backed-up");
    page.end();
}

/// Fails unless each alert is about a metric that one of these files has.
#[track_caller]
fn assert_reported(house: &House, rules: &str, files: &str) {
    let metrics = house.run(&format!(
        "cat /var/lib/prometheus/node-exporter/{files}.prom"
    ));
    for line in rules.lines().filter(|line| line.contains("expr:")) {
        let words = line.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
        let name = words.into_iter().find(|word| word.starts_with("evenkeel_"));
        let name = name.expect("a metric");
        assert!(
            metrics.contains(&format!("\n{name}{{")),
            "{name} is not in {metrics}"
        );
    }
}

#[test]
fn fleet() {
    let house = host();
    house.start_sshd();
    house.run("mkdir -p /var/lib/prometheus/node-exporter");
    house.write("/etc/evenkeel/wiki.cnf", "[evenkeel]\nuser = root\n", "600");
    let mut page = Page::open(&house, "tasks/fleet.md");
    // All are one server here, which two backups at once would refuse.
    page.say("fleet.toml -- backup", "fleet.toml --jobs 1 -- backup");
    page.say("--quiet -- backup", "--quiet --jobs 1 -- backup");
    page.write(
        "# /etc/evenkeel/fleet.toml",
        "/etc/evenkeel/fleet.toml",
        "644",
    );
    page.run("evenkeel fleet");
    let mut list = "[every]\nrepository = \"/backup/{name}\"\n".to_owned();
    for name in ["vm1", "vm2"] {
        make_image(&house, &format!("/srv/{name}.img"), "64M");
        list += &format!("[[server]]\nname = \"{name}\"\nvolume = \"/srv/{name}.img\"\n");
    }
    house.write("~/fleet.toml", &list, "644");
    house.run("evenkeel fleet fleet.toml -- backup");
    page.run("# evenkeel fleet");
    page.run("evenkeel fleet");
    assert_eq!(page.printed(), "");
    page.end();
}

#[test]
fn encryption() {
    let house = host();
    house.start_sshd();
    house.run("mkdir /etc/evenkeel");
    let mut page = Page::open(&house, "tasks/encryption.md");
    page.run("evenkeel keys generate");
    let public = |file: &str| {
        let line = house.run(&format!("grep -o 'age1[a-z0-9]*' {file}"));
        line.trim().to_owned()
    };
    page.say("age1admin…", &public("admin.key"));
    page.run("evenkeel backup");
    house.work();
    page.run("evenkeel backup");
    page.write("[evenkeel]", "~/.my.cnf", "600");
    page.run("evenkeel restore");
    let refused = house.output("evenkeel restore /backup/shop --target /srv/other");
    assert_eq!(refused.status.code(), Some(12));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("can write backups, not read them"));
    house.run("rm .my.cnf; mv /backup/shop /backup/kept");
    house.write(
        "/etc/evenkeel/backup.pass",
        "a long sentence of no meaning\n",
        "600",
    );
    page.run("evenkeel backup");
    house.run("rm -r /backup/shop; mv /backup/kept /backup/shop");
    for name in ["new", "old"] {
        house.run(&format!("evenkeel keys generate --output {name}.key"));
        page.say(&format!("age1{name}…"), &public(&format!("{name}.key")));
    }
    let old = public("old.key");
    house.run(&format!(
        "evenkeel keys add /backup/shop --identity admin.key --recipient {old}"
    ));
    page.run("evenkeel keys list");
    let admin = public("admin.key");
    house.run(&format!(
        "evenkeel backup /backup/db1 --encrypt-to {admin} --identity /etc/evenkeel/host.key"
    ));
    page.run("evenkeel backup");
    page.end();
}

#[test]
fn s3() {
    let house = host();
    house.start_store(&["backups", "vault"]);
    house.back_up(1);
    let mut page = Page::open(&house, "tasks/s3.md");
    page.say(
        "AWS_ACCESS_KEY_ID=…",
        &format!("AWS_ACCESS_KEY_ID={}", Seaweed::KEY),
    );
    page.say(
        "AWS_SECRET_ACCESS_KEY=…",
        &format!("AWS_SECRET_ACCESS_KEY={}", Seaweed::SECRET),
    );
    page.export(&format!(
        "AWS_ENDPOINT_URL={} AWS_ALLOW_HTTP=true",
        House::STORE
    ));
    page.run("export");
    page.run("evenkeel repository copy");
    page.end();
}

#[test]
fn volume() {
    let house = House::new("vm", PROGRAM);
    let mut page = Page::open(&house, "tasks/volume.md");
    let machine = "tests/vm/tests/lvm_backups_restore.rs";
    page.elsewhere("/dev/vg/vm1", machine, "fn a_thin_volume_costs");
    make_image(&house, "/srv/images/vm2.img", "1G");
    page.run("evenkeel backup /backup/vm1");
    house.run("rm -r /backup/vm2");
    let change = "printf x | dd of=/srv/images/vm2.img bs=1 seek=4M conv=notrunc status=none";
    let backup = "evenkeel backup /backup/vm2 --volume /srv/images/vm2.img";
    page.does(&format!("{backup}; {change}; {backup}"), 0);
    page.shows("generation 1");
    house.run("evenkeel backup /backup/vm1 --volume /srv/images/vm2.img");
    page.run("evenkeel restore");
    make_image(&house, "/srv/images/other.img", "1G");
    page.run("# evenkeel restore");
    page.end();
}

/// Stand-ins for LVM: a snapshot is a clone, a mount of it is one of the clone.
const LVM: &str = r#"
put() { cat >/usr/local/bin/$1 && chmod 755 /usr/local/bin/$1; }
put lvcreate <<'END'
#!/bin/sh
[ "$*" = "-s -L 10G -n shop-evenkeel /dev/vg/mysql" ] && mkdir /srv/shop && cp -a --reflink=always /var/lib/mysql /srv/shop
END
put mount <<'END'
#!/bin/sh
case $* in
    "-o ro,nouuid /dev/vg/shop-evenkeel /run/shop-evenkeel") exec /usr/bin/mount -o bind,ro /srv/shop /run/shop-evenkeel ;;
    *) exec /usr/bin/mount "$@" ;;
esac
END
put lvremove <<'END'
#!/bin/sh
[ "$*" = "-f vg/shop-evenkeel" ] && rm -r /srv/shop
END
"#;

#[test]
fn hook() {
    let house = host();
    house.run(LVM);
    // The page says first how they are called, then what is in them.
    let mut ahead = Page::open(&house, "tasks/hook.md");
    let _ = ahead.take("evenkeel backup");
    ahead.write("#!/bin/sh", "/usr/local/bin/shop-snapshot", "755");
    ahead.write("#!/bin/sh", "/usr/local/bin/shop-release", "755");
    ahead.end();
    let mut page = Page::open(&house, "tasks/hook.md");
    page.run("evenkeel backup");
    for script in ["shop-snapshot", "shop-release"] {
        let there = house.run(&format!("cat /usr/local/bin/{script}"));
        assert_eq!(page.take("#!/bin/sh"), there);
    }
    house.run("! test -e /srv/shop");
    page.end();
}

#[test]
fn lock() {
    let house = host();
    house.write("~/take-snapshot", "#!/bin/sh\necho \"$1 $2\"\n", "755");
    let mut page = Page::open(&house, "tasks/lock.md");
    page.run("evenkeel lock");
    assert!(page.printed().starts_with("binlog.0"), "{}", page.printed());
    page.end();
}
