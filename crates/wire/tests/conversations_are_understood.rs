//! Is what clients ask and servers answer understood from outside?

mod talk;

use evenkeel_wire::watch::{Side, Watch, command};
use talk::{COLUMN, DEPRECATE_EOF, EOF, OK, OK_EOF, Talk, USUAL, decoded, packet, run};

const QUERY_ATTRIBUTES: u32 = 1 << 27;
const TLS: u32 = 1 << 11;
/// Runs statement 1 with -5 and `i's`.
const EXECUTE_ONE: &[u8] = &[
    0x17, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 8, 0, 253, 0, 0xFB, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
    0xFF, 3, b'i', b'\'', b's',
];

#[test]
fn logins_and_results() {
    let mut talk = Talk::default();
    talk.login(USUAL)
        .query("SELECT 1")
        .server(1, &[&[1], COLUMN, EOF, b"\x011", b"\x012", EOF])
        .query("UPDATE t SET a = 1")
        .server(1, &[&[0, 7, 0, 2, 0, 3, 0]])
        .query("nonsense")
        .server(1, &[b"\xff\x28\x04#42000You have an error"])
        .client(0, &[1]);
    assert_eq!(
        decoded(&talk),
        [
            "Connect: ",
            "Query: SELECT 1 rows=2",
            "Query: UPDATE t SET a = 1 affected=7 warnings=3",
            "Query: nonsense error=1064",
            "Quit: ",
        ]
    );
}

#[test]
fn ends_without_a_packet_of_their_own() {
    let mut talk = Talk::default();
    talk.login(USUAL | DEPRECATE_EOF)
        .query("SELECT 1")
        .server(1, &[&[1], COLUMN, b"\x011", OK_EOF])
        .query("SELECT 1 WHERE 0")
        .server(1, &[&[1], COLUMN, OK_EOF])
        .prepare("SELECT ?, ?")
        .server(
            1,
            &[
                &[0, 1, 0, 0, 0, 2, 0, 2, 0, 0, 0, 0],
                COLUMN,
                COLUMN,
                COLUMN,
                COLUMN,
            ],
        )
        .client(0, EXECUTE_ONE)
        .server(1, &[&[2], COLUMN, COLUMN, &[0, 0, 1], OK_EOF]);
    assert_eq!(
        decoded(&talk)[1..],
        [
            "Query: SELECT 1 rows=1",
            "Query: SELECT 1 WHERE 0",
            "Prepare: SELECT ?, ?",
            "Execute: SELECT -5, 'i\\'s' rows=1",
        ]
    );
}

#[test]
fn prepared_statements_with_what_ends_their_definitions() {
    let mut talk = Talk::default();
    talk.login(USUAL)
        .prepare("SELECT ?, ?")
        .server(
            1,
            &[
                &[0, 1, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0],
                COLUMN,
                COLUMN,
                EOF,
                COLUMN,
                EOF,
            ],
        )
        .client(0, EXECUTE_ONE)
        .server(1, &[&[1], COLUMN, EOF, &[0, 0, 1], EOF])
        .client(0, &[0x18, 1, 0, 0, 0, 1, 0, b'l', b'o', b'n', b'g'])
        .client(0, &[0x17, 1, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0])
        .server(1, &[&[1], COLUMN, EOF, EOF])
        .client(0, &[0x19, 1, 0, 0, 0])
        .client(0, EXECUTE_ONE)
        .server(1, &[b"\xff\xdb\x04#HY000Unknown prepared statement"]);
    assert_eq!(
        decoded(&talk)[1..],
        [
            "Prepare: SELECT ?, ?",
            "Execute: SELECT -5, 'i\\'s' rows=1",
            "Long Data: ",
            "Execute: SELECT NULL, 'long'",
            "Close stmt: ",
            "Execute: stmt#1 error=1243 unseen",
        ]
    );
}

#[test]
fn results_of_many_kinds() {
    let mut talk = Talk::default();
    let more = &[0xFE, 0, 0, 0x0A, 0][..];
    talk.login(USUAL)
        .query("CALL p()")
        .server(
            1,
            &[
                &[1],
                COLUMN,
                EOF,
                b"\x011",
                more,
                &[1],
                COLUMN,
                EOF,
                b"\x011",
                more,
                OK,
            ],
        )
        .query("LOAD DATA LOCAL INFILE 'f' INTO TABLE t")
        .server(1, &[b"\xfbf"])
        .client(2, b"\x03SELECT 'no statement'")
        .client(3, b"")
        .server(4, &[&[0, 2, 0, 2, 0, 0, 0]])
        .query("ALTER TABLE t FORCE")
        .server(1, &[b"\xff\xff\xff\x01\x01\x02\x00\x00\x00\x04copy"])
        .server(2, &[OK])
        .client(0, &[0x09])
        .server(1, &[b"Uptime: 12"])
        .client(0, b"\x04t\0")
        .server(1, &[COLUMN, COLUMN, EOF])
        .client(0, &[0x0e])
        .server(1, &[OK])
        // MariaDB leaves definitions out that the client has.
        .query("SELECT cached")
        .server(1, &[&[1, 0], EOF, b"\x011", EOF]);
    assert_eq!(
        decoded(&talk)[1..],
        [
            "Query: CALL p() rows=2",
            "Query: LOAD DATA LOCAL INFILE 'f' INTO TABLE t affected=2",
            "Query: ALTER TABLE t FORCE",
            "Statistics: ",
            "Field List: ",
            "Ping: ",
            "Query: SELECT cached rows=1",
        ]
    );
}

#[test]
fn several_commands_before_the_first_answer() {
    let mut talk = Talk::default();
    talk.login(USUAL)
        .prepare("SELECT ?, ?")
        .client(
            0,
            &[&[0x17, 0xFF, 0xFF, 0xFF, 0xFF], &EXECUTE_ONE[5..]].concat(),
        )
        .query("SELECT 2")
        .server(
            1,
            &[
                &[0, 1, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0],
                COLUMN,
                COLUMN,
                EOF,
                COLUMN,
                EOF,
            ],
        )
        .server(1, &[&[1], COLUMN, EOF, &[0, 0, 1], EOF])
        .server(1, &[b"\xff\x28\x04#42000No"]);
    assert_eq!(
        decoded(&talk)[1..],
        [
            "Prepare: SELECT ?, ?",
            "Execute: SELECT -5, 'i\\'s' rows=1",
            "Query: SELECT 2 error=1064",
        ]
    );
}

#[test]
fn attributes_before_the_text() {
    let mut talk = Talk::default();
    talk.login(USUAL | QUERY_ATTRIBUTES)
        .client(0, b"\x03\x00\x01SELECT 1")
        .server(1, &[OK])
        .client(0, b"\x03\x01\x01\x00\x01\xfd\x00\x04name\x05valueSELECT 2")
        .server(1, &[OK]);
    assert_eq!(decoded(&talk)[1..], ["Query: SELECT 1", "Query: SELECT 2"]);
}

#[test]
fn who_and_where_follow_the_session() {
    let mut talk = Talk::default();
    talk.login(USUAL)
        .client(0, b"\x02other")
        .server(1, &[OK])
        .query("USE `third one`")
        .server(1, &[OK])
        .client(
            0,
            b"\x11root\0\x14SecretSecretSecret12fourth\0\x2d\0plugin\0",
        )
        .server(1, &[b"\xfeplugin\0scramble\0"])
        .client(2, b"SecretSecretSecret12")
        .server(3, &[OK])
        // The server says so itself: the schema is now `sys`.
        .query("CALL moves()")
        .server(1, &[b"\x00\x00\x00\x02\x40\x00\x00\x00\x06\x01\x04\x03sys"]);
    let mut found = Vec::new();
    let mut watch = Watch::new(1000);
    for (side, bytes) in &talk.said {
        watch.bytes(*side, 0, bytes, &mut |seen| {
            found.push((
                seen.user.unwrap_or("").to_owned(),
                seen.schema.unwrap_or("").to_owned(),
            ));
            let all = format!("{seen:?}");
            assert!(!all.contains("Secret"), "{all}");
            assert_eq!(seen.session, Some(42));
        });
    }
    let expected = [
        ("app", "shop"),
        ("app", "other"),
        ("app", "third one"),
        ("root", "fourth"),
        ("root", "sys"),
    ];
    assert_eq!(found, expected.map(|(u, s)| (u.to_owned(), s.to_owned())));
}

#[test]
fn what_tls_hides_is_said() {
    let mut talk = Talk::default();
    talk.greeting(USUAL | TLS);
    let mut request = (USUAL | TLS).to_le_bytes().to_vec();
    request.resize(32, 0);
    talk.client(1, &request)
        .client(0, b"\x03SELECT 'not really'");
    let mut watch = Watch::new(1000);
    assert!(run(&mut watch, &talk).is_empty());
    assert!(watch.is_encrypted());
    let mut joined = Watch::joined(1000);
    joined.bytes(
        Side::Client,
        0,
        &[0x17, 3, 3, 0, 5, 1, 2, 3, 4, 5],
        &mut |_| {},
    );
    assert!(joined.is_encrypted());
}

#[test]
fn long_statements_are_cut_and_measured() {
    let mut talk = Talk::default();
    let long = format!("SELECT '{}'", "x".repeat(5000));
    talk.login(USUAL).query(&long).server(1, &[OK]);
    let lines = decoded(&talk);
    assert_eq!(lines[1], format!("Query: {}… of 5009", &long[..1000]));
}

#[test]
fn passwords_are_replaced_wherever_they_come() {
    let mut talk = Talk::default();
    talk.login(USUAL)
        .query("ALTER USER a IDENTIFIED BY 'Hush'")
        .server(1, &[OK])
        .prepare("SET PASSWORD = PASSWORD(?)")
        .server(1, &[&[0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0], COLUMN, EOF])
        .client(0, b"\x17\x01\0\0\0\0\x01\0\0\0\0\x01\xfd\0\x04Hush")
        .server(1, &[OK]);
    assert_eq!(
        decoded(&talk)[1..],
        [
            "Query: ALTER USER a IDENTIFIED BY '***'",
            "Prepare: SET PASSWORD = PASSWORD(?)",
            "Execute: SET PASSWORD = PASSWORD('***')",
        ]
    );
}

#[test]
fn a_connection_is_joined_in_its_middle() {
    let mut talk = Talk::default();
    talk.said.push((Side::Server, packet(9, b"\x05a row")));
    talk.client(0, EXECUTE_ONE)
        .server(1, &[&[1], COLUMN, EOF, &[0, 0, 1], EOF])
        .query("SELECT 1")
        .server(1, &[&[1], COLUMN, EOF, b"\x011", EOF])
        .client(0, b"\x03\x00\x01SELECT 2")
        .server(1, &[OK]);
    let mut watch = Watch::joined(1000);
    assert_eq!(
        run(&mut watch, &talk),
        [
            "Execute: stmt#1 rows=1 unseen",
            "Query: SELECT 1 rows=1",
            "Query: SELECT 2",
        ]
    );
    assert_eq!((watch.counts().commands, watch.counts().unseen), (3, 1));
}

#[test]
fn what_is_missing_costs_one_command() {
    let mut talk = Talk::default();
    talk.login(USUAL);
    for number in 0..9 {
        talk.query(&format!("SELECT {number}"))
            .server(1, &[&[1], COLUMN, EOF, b"\x011", EOF]);
    }
    // Past the login, each packet by itself is left out once.
    for missing in 5..talk.said.len() {
        let (mut watch, mut lines) = (Watch::new(1000), Vec::new());
        for (at, (side, bytes)) in talk.said.iter().enumerate() {
            let mut each = |seen: &evenkeel_wire::watch::Seen<'_>| lines.push(talk::line(seen));
            match at == missing {
                true => watch.gap(*side, &mut each),
                false => watch.bytes(*side, 0, bytes, &mut each),
            }
        }
        watch.end(&mut |seen| lines.push(talk::line(seen)));
        let whole = lines.iter().filter(|line| line.ends_with("rows=1")).count();
        assert_eq!((lines.len(), whole), (10, 8), "{missing}: {lines:#?}");
        let about = (missing - 5) / 2;
        let fate = match talk.said[missing].0 {
            Side::Client => "Unseen:  rows=1 unseen".to_owned(),
            Side::Server => format!("Query: SELECT {about} unanswered"),
        };
        assert_eq!(lines[1 + about], fate, "{missing}");
        assert_eq!(watch.counts().undecodable, 0, "{missing}");
    }
}

#[test]
fn replicas_are_left_alone() {
    let mut talk = Talk::default();
    talk.login(USUAL)
        .client(0, &[command::BINLOG_DUMP, 4, 0, 0, 0, 0, 0, 1, 0, 0, 0])
        .server(1, &[b"\x00an event"])
        .server(2, &[b"\x00another"]);
    let mut watch = Watch::new(1000);
    assert_eq!(run(&mut watch, &talk)[1..], ["Binlog Dump:  unanswered"]);
    assert_eq!(watch.counts().undecodable, 0);
}

#[test]
fn who_is_refused_the_binary_log_is_still_seen() {
    let mut talk = Talk::default();
    talk.login(USUAL)
        .client(0, &[command::BINLOG_DUMP, 4, 0, 0, 0, 0, 0, 1, 0, 0, 0])
        .server(1, &[b"\xff\xcb\x04#42000No"])
        .query("DROP DATABASE d")
        .server(1, &[OK]);
    let mut watch = Watch::new(1000);
    let lines = run(&mut watch, &talk);
    assert!(lines[2].contains("DROP DATABASE d"), "{lines:?}");
}
