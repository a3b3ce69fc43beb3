//! Does a tap listen where it was told to, and nowhere else, and leave alone what is not its own?

use evenkeel_cases::house::House;

const PROGRAM: &str = env!("CARGO_BIN_EXE_evenkeel-under-test");

/// Begins a tap in the background as an ordinary user, and waits until it listens.
fn begin(house: &House, options: &str) {
    house.run("chmod 777 . && touch seen ended && chmod 666 seen ended");
    house.start(
        "tap",
        &format!(
            "setpriv --reuid nobody --regid nogroup --clear-groups sh -c \
             'umask 077; evenkeel capture {options} >seen; echo code $? >ended'"
        ),
    );
    house.until("grep -q 'tapping' /var/log/tap.log");
}

fn end(house: &House) -> String {
    house.run("kill -TERM $(pidof evenkeel)");
    house.until("grep -q code ended");
    house.run("cat ended /var/log/tap.log")
}

#[test]
fn a_socket_file_leads_to_a_socket_file() {
    let house = House::new("db1", PROGRAM);
    house.start_mariadb();
    // A relative path, without root.
    begin(&house, "--tap ./tap.sock --to /run/mysqld/mysqld.sock");
    assert_eq!(house.run("stat -c %a tap.sock").trim(), "660");
    house.run("mariadb -S $PWD/tap.sock -u root -e 'SELECT 1' || true");
    house.run("mariadb -e \"CREATE USER app; GRANT ALL ON *.* TO app\"");
    house.run("mariadb -S $PWD/tap.sock -u app -e 'SELECT 41 + 1'");
    let said = end(&house);
    assert!(said.contains("code 143"), "{said}");
    let seen = house.run("cat seen");
    assert!(seen.contains("app@localhost"), "{seen}");
    assert!(seen.contains("SELECT 41 + 1"), "{seen}");
    // It is taken away at the end.
    house.run("[ ! -e tap.sock ]");
}

#[test]
fn a_port_alone_is_this_host_only() {
    let house = House::new("db1", PROGRAM);
    house.start_mariadb();
    begin(&house, "--tap :3307 --to /run/mysqld/mysqld.sock");
    let listening = house.run("cat /proc/net/tcp");
    // 127.0.0.1, in the kernel's order.
    assert!(listening.contains("0100007F:0CEB"), "{listening}");
    assert!(!listening.contains("00000000:0CEB"), "{listening}");
    end(&house);
}

#[test]
fn what_is_not_its_own_stays() {
    let house = House::new("db1", PROGRAM);
    house.start_mariadb();
    let tap =
        |at: &str| format!("evenkeel capture --for 100ms --tap {at} --to /run/mysqld/mysqld.sock");
    house.run("echo mine >file");
    for (at, what) in [
        ("./file", "exists, and is no socket"),
        ("/run/mysqld/mysqld.sock", "that is the server"),
        ("/run/mysqld/../mysqld/mysqld.sock", "socket"),
        ("./nowhere/tap.sock", "failed to listen"),
        ("tap.sock", "no place to listen on"),
    ] {
        let output = house.output(&tap(at));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{at}: {said}");
        assert!(said.contains(what), "{at}: {said}");
    }
    assert_eq!(house.run("cat file").trim(), "mine");
    assert_eq!(house.run("mariadb -N -e 'SELECT 7'").trim(), "7");
    // A socket that is left of a killed run is replaced, one that is in use is not.
    begin(&house, "--tap ./tap.sock --to /run/mysqld/mysqld.sock");
    let output = house.output(&tap("./tap.sock"));
    assert_eq!(output.status.code(), Some(2));
    house.run("kill -KILL $(pidof evenkeel)");
    house.until("grep -q code ended");
    let output = house.output(&format!(
        "setpriv --reuid nobody --clear-groups {}",
        tap("./tap.sock")
    ));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("replaced ./tap.sock"), "{said}");
    assert_eq!(output.status.code(), Some(0), "{said}");
}
