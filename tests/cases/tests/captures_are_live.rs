//! Does a live capture show statements at once, end as it was asked to, and say what is in its way?

use evenkeel_cases::house::House;

const PROGRAM: &str = env!("CARGO_BIN_EXE_evenkeel-under-test");

/// Begins a capture in the background, and waits until it receives.
fn begin(house: &House, options: &str) {
    house.start(
        "capture",
        &format!("sh -c 'evenkeel capture {options} >seen; echo code $? >ended'"),
    );
    house.until("grep -q 'capturing port' /var/log/capture.log");
}

fn end(house: &House) -> String {
    house.run("kill -TERM $(pidof evenkeel)");
    house.until("grep -q code ended");
    house.run("cat ended /var/log/capture.log")
}

#[test]
fn statements_are_shown_while_they_run() {
    let house = House::new("db1", PROGRAM);
    house.start_another("db2", 8, "");
    house.sql_of("db2", "CREATE USER root@db1");
    begin(&house, "--interface any");
    house.run("mariadb -h db2 --skip-ssl -e 'SELECT 41 + 1'");
    // Nothing more comes that would push it out.
    house.until("grep -q 'SELECT 41 + 1' seen && grep -q Quit seen");
    let said = end(&house);
    assert!(said.contains("code 143"), "{said}");
    assert!(said.contains("nothing is missing"), "{said}");
    // Over lo each packet leaves and comes in; it is taken once.
    let seen = house.run("cat seen");
    assert_eq!(seen.matches("SELECT 41 + 1").count(), 1, "{seen}");
    let packets: u64 = said
        .split(" packets")
        .next()
        .and_then(|before| before.rsplit(' ').next())
        .and_then(|number| number.parse().ok())
        .unwrap();
    assert!((10..20).contains(&packets), "{said}");
}

/// Puts frames onto the wire: a question and its answer with each number of tags in IPv4 and IPv6, and a packet that is
/// cut into two fragments.
const FRAMES: &str = r#"
import socket, struct
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("there", 0))
TAGS = {0: b"", 1: b"\x81\x00\x20\x05", 2: b"\x88\xa8\x20\x07\x81\x00\x40\x05"}
def tcp(port, to_server, seq, ack, data):
    ends = (port, 3306) if to_server else (3306, port)
    return struct.pack(">HHIIBBHHH", *ends, seq, ack, 0x50, 0x18, 500, 0, 0) + data
def v4(segment, to_server=True, flags=0x4000, kind=6):
    head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(segment), 9, flags, 64, kind, 0)
    ends = [bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])]
    return b"\x08\x00", head + b"".join(ends if to_server else ends[::-1]) + segment
def v6(segment, to_server=True):
    ends = [bytes([0xfd] * 15 + [1]), bytes([0xfd] * 15 + [2])]
    head = struct.pack(">IHBB", 6 << 28, len(segment), 6, 64)
    return b"\x86\xdd", head + b"".join(ends if to_server else ends[::-1]) + segment
def send(tags, packet):
    s.send(b"\xff" * 6 + b"\x02" * 6 + TAGS[tags] + packet[0] + packet[1])
port = 50000
for tags in TAGS:
    for name, packet in [("v4", v4), ("v6", v6)]:
        port += 1
        asked = f"\x03SELECT 'by {name} with {tags}'".encode()
        asked = struct.pack("<I", len(asked)) + asked
        send(tags, packet(tcp(port, True, 100, 900, asked)))
        send(tags, packet(tcp(port, False, 900, 100 + len(asked), b"\x07\0\0\1\0\0\0\2\0\0\0"), False))
        send(tags, packet(tcp(port + 1000, True, 1, 1, b"x").replace(struct.pack(">H", 3306), b"\x00\x50")))
whole = tcp(port + 1, True, 1, 1, b"x" * 44)
send(0, v4(whole[:32], flags=0x2000))
send(0, v4(whole[32:], flags=0x0004))
send(0, v4(whole, kind=17))
"#;

#[test]
fn tags_are_passed_over_and_fragments_counted() {
    let house = House::new("db1", PROGRAM);
    house.run(
        "ip link add near type veth peer name there && ip link set near up && ip link set there up",
    );
    house.write("frames.py", FRAMES, "644");
    begin(&house, "--interface near");
    house.run("python3 frames.py");
    house.until("[ $(grep -c SELECT seen) -ge 6 ]");
    let said = end(&house);
    let seen = house.run("cat seen");
    for protocol in ["v4", "v6"] {
        for tags in 0..3 {
            let one = format!("SELECT 'by {protocol} with {tags}'");
            assert_eq!(seen.matches(&one).count(), 1, "{seen}");
        }
    }
    // Twelve, and the first of the fragments; nothing of others.
    assert!(said.contains("in 13 packets"), "{said}");
    assert!(said.contains("1 packet not decoded"), "{said}");
}

#[test]
fn it_ends_by_itself_when_its_time_is_up() {
    let house = House::new("db1", PROGRAM);
    let output = house.output("evenkeel capture --interface lo --for 200ms");
    assert_eq!(output.status.code(), Some(0));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("0 statements in 0 packets"), "{said}");
    assert!(
        said.contains("no client spoke to port 3306 on lo"),
        "{said}"
    );
}

#[test]
fn an_interface_that_goes_down_ends_it() {
    let house = House::new("db1", PROGRAM);
    house.run("ip link add near type veth peer name there && ip link set near up");
    begin(&house, "--interface near");
    house.run("ip link set near down");
    house.until("grep -q code ended");
    let said = house.run("cat ended /var/log/capture.log");
    assert!(
        said.contains("code 3") && said.contains("the interface went down"),
        "{said}"
    );
}

#[test]
fn what_is_in_the_way_is_said() {
    let house = House::new("db1", PROGRAM);
    house.run("ip link add near type veth peer name there");
    for (line, code, what) in [
        ("evenkeel capture --interface nope", 2, "there are: lo, "),
        (
            "setpriv --reuid nobody --clear-groups evenkeel capture --interface lo",
            14,
            "CAP_NET_RAW",
        ),
        (
            "evenkeel capture --interface lo --ring 1k",
            2,
            "--ring is out of range",
        ),
        ("evenkeel capture", 2, "--interface"),
        (
            "evenkeel capture --interface lo --pcap x",
            2,
            "cannot be used with",
        ),
        (
            "evenkeel capture --pcap x --for 1s",
            2,
            "cannot be used with",
        ),
        (
            "evenkeel capture --interface near --for 1s",
            3,
            "the interface went down",
        ),
    ] {
        let output = house.output(line);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{line}: {said}");
        assert!(said.contains(what), "{line}: {said}");
    }
}

#[test]
fn what_the_kernel_dropped_is_counted() {
    let house = House::new("db1", PROGRAM);
    house.start_another("db2", 8, "");
    house.sql_of("db2", "CREATE USER root@db1");
    begin(&house, "--interface lo --ring 1M --match nothing");
    // It is stopped while more goes by than its ring holds.
    house.run("kill -STOP $(pidof evenkeel)");
    house.run("mariadb -h db2 --skip-ssl -e 'SELECT REPEAT(1, 8000000)' >/dev/null");
    house.run("kill -CONT $(pidof evenkeel)");
    let said = end(&house);
    assert!(said.contains("dropped by the kernel"), "{said}");
}

#[test]
fn the_last_packets_are_decoded() {
    let house = House::new("db1", PROGRAM);
    house.start_another("db2", 8, "");
    house.sql_of("db2", "CREATE USER root@db1");
    begin(&house, "--interface lo");
    // The kernel has not handed them over when the end is asked for.
    house.run(
        "pid=$(pidof evenkeel); mariadb -h db2 --skip-ssl -e 'SELECT 42 + 1'; kill -TERM $pid",
    );
    house.until("grep -q code ended");
    let seen = house.run("cat seen");
    assert!(seen.contains("SELECT 42 + 1"), "{seen}");
}
