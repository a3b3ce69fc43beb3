//! Does a directory of captures give back every statement as it was, say what is missing, and survive damage?

use evenkeel_op::{Cancel, ErrorKind};
use evenkeel_repository::store::LocalStore;
use evenkeel_repository::{Credentials, NewIdentity};
use evenkeel_testkit::effort::rounds;
use evenkeel_traffic::digest::fingerprint::{Mode, Rules};
use evenkeel_traffic::digest::{Counted, is_counted};
use evenkeel_traffic::kept::{
    Append, CaptureDirectory, CaptureEnd, KeptCapture, Missing, Settings,
};
use evenkeel_traffic::{Command, Coverage, Source, SourceKind, Statement};
use evenkeel_wire::Checksum;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

fn settings() -> Settings {
    Settings {
        source: SourceKind::Tap,
        is_redacted: false,
        file_bytes: 64 << 20,
        file_span: Duration::from_secs(3600),
        recipients: Vec::new(),
        append: Append::Refuse,
    }
}

fn begin(room: &Path, settings: Settings) -> evenkeel_op::Result<CaptureDirectory> {
    CaptureDirectory::begin(Arc::new(LocalStore::new(room)), settings)
}

fn keep(room: &Path, settings: Settings, all: &[Statement<'_>]) {
    let mut kept = begin(room, settings).unwrap();
    for one in all {
        kept.add(one).unwrap();
    }
    kept.end(CaptureEnd::default()).unwrap();
}

fn open(room: &Path, credentials: Credentials) -> evenkeel_op::Result<KeptCapture> {
    KeptCapture::directory(Arc::new(LocalStore::new(room)), credentials)
}

/// Reads a directory back, each statement as one text with all that it has.
fn back(room: &Path) -> (Vec<String>, Coverage, Vec<Missing>) {
    let mut capture = open(room, Credentials::default()).unwrap();
    let mut all = Vec::new();
    let mut each = |one: &Statement<'_>| {
        all.push(format!("{one:?}"));
        Ok(())
    };
    let coverage = capture.read(&mut each, &Cancel::new()).unwrap();
    (all, coverage, capture.missing().to_vec())
}

fn one(connection: u64, sql: &[u8]) -> Statement<'_> {
    Statement {
        at_ns: 1_700_000_000_123_456_789,
        connection,
        session: Some(7),
        user: Some("app"),
        host: Some("10.0.0.1"),
        schema: Some("shop"),
        command: Command::Query,
        sql,
        sql_bytes: sql.len() as u64,
        is_unseen: false,
        first_ns: Some(5),
        total_ns: Some(10),
        lock_ns: None,
        rows_sent: Some(1),
        rows_examined: None,
        rows_affected: None,
        bytes_in: Some(20),
        bytes_out: Some(30),
        warnings: Some(0),
        error: None,
        checksum: None,
        statement: None,
        values: None,
    }
}

/// A statement that owns what it has.
#[derive(Debug, Clone)]
struct Owned {
    numbers: [Option<u64>; 9],
    texts: [Option<String>; 3],
    at_ns: i64,
    connection: u64,
    command: Command,
    sql: Vec<u8>,
    cut: u64,
    is_unseen: bool,
    error: Option<u16>,
    small: [Option<u32>; 2],
    sum: Option<(u64, u64)>,
    values: Option<Vec<u8>>,
}

impl Owned {
    fn statement(&self) -> Statement<'_> {
        let [
            first_ns,
            total_ns,
            lock_ns,
            rows_sent,
            rows_examined,
            rows_affected,
            bytes_in,
            bytes_out,
            warnings,
        ] = self.numbers;
        let [user, host, schema] = &self.texts;
        Statement {
            at_ns: self.at_ns,
            connection: self.connection & ((1 << 48) - 1),
            session: self.small[0],
            user: user.as_deref(),
            host: host.as_deref(),
            schema: schema.as_deref(),
            command: self.command,
            sql: &self.sql,
            sql_bytes: self.sql.len() as u64 + self.cut,
            is_unseen: self.is_unseen,
            first_ns,
            total_ns,
            lock_ns,
            rows_sent,
            rows_examined,
            rows_affected,
            bytes_in,
            bytes_out,
            warnings,
            error: self.error,
            checksum: self.sum.map(|(in_order, any_order)| Checksum {
                in_order,
                any_order,
            }),
            statement: self.small[1],
            values: self.values.as_deref(),
        }
    }
}

fn command() -> impl Strategy<Value = Command> {
    prop_oneof![
        Just(Command::Query),
        Just(Command::Prepare),
        Just(Command::Execute),
        Just(Command::Connect),
        Just(Command::Quit),
        any::<u8>().prop_map(Command::Other),
    ]
}

fn sql() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(Vec::new()),
        proptest::collection::vec(any::<u8>(), 0..40),
        "(SELECT|UPDATE t SET a =|INSERT INTO t VALUES) ('[a-z\\\\']{0,6}'|[0-9]{1,5}|\"x\"|\\(1, 'hush'\\), \\(2, NULL\\))( FROM t WHERE a IN \\(1, 2\\))?( -- hush|/\\* hush \\*/)?"
            .prop_map(String::into_bytes),
        "PREPARE p FROM 'SELECT [0-9]{1,3} FROM `a` WHERE b = ''hush'''".prop_map(String::into_bytes),
    ]
}

fn owned() -> impl Strategy<Value = Owned> {
    let numbers = proptest::array::uniform9(any::<Option<u64>>());
    let texts = proptest::array::uniform3(any::<Option<String>>());
    let first = (numbers, texts, any::<i64>(), any::<u64>(), command(), sql());
    let rest = (
        prop_oneof![Just(0_u64), 1..1000_u64],
        any::<bool>(),
        any::<Option<u16>>(),
        any::<[Option<u32>; 2]>(),
        any::<Option<(u64, u64)>>(),
        any::<Option<Vec<u8>>>(),
    );
    (first, rest).prop_map(
        |(
            (numbers, texts, at_ns, connection, command, sql),
            (cut, is_unseen, error, small, sum, values),
        )| Owned {
            numbers,
            texts,
            at_ns,
            connection,
            command,
            sql,
            cut,
            is_unseen,
            error,
            small,
            sum,
            values,
        },
    )
}

fn runner(cases: u32) -> TestRunner {
    TestRunner::new(Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    })
}

#[test]
fn every_field_comes_back() {
    let all = proptest::collection::vec(owned(), 0..60);
    let test = |all: Vec<Owned>| {
        let room = tempfile::tempdir().unwrap();
        let directory = room.path().join("d");
        let statements: Vec<Statement<'_>> = all.iter().map(Owned::statement).collect();
        // Several row groups, and several files.
        let small = Settings {
            file_bytes: 4096,
            ..settings()
        };
        keep(&directory, small, &statements);
        let expected: Vec<String> = statements.iter().map(|one| format!("{one:?}")).collect();
        let (found, coverage, missing) = back(&directory);
        prop_assert_eq!(found, expected);
        prop_assert_eq!(coverage.statements, statements.len() as u64);
        prop_assert_eq!(missing, Vec::new());
        Ok(())
    };
    runner(rounds("kept statements", 24, 500))
        .run(&all, test)
        .unwrap();
}

#[test]
fn without_values_classes_are_the_same() {
    let all = proptest::collection::vec(owned(), 1..30);
    let counted = |one: &Statement<'_>| {
        is_counted(one).then(|| Counted::of(one, Rules::Evenkeel, Mode::default()))
    };
    let test = |all: Vec<Owned>| {
        let room = tempfile::tempdir().unwrap();
        let directory = room.path().join("d");
        let statements: Vec<Statement<'_>> = all.iter().map(Owned::statement).collect();
        let redacted = Settings {
            is_redacted: true,
            ..settings()
        };
        keep(&directory, redacted, &statements);
        let mut capture = open(&directory, Credentials::default()).unwrap();
        prop_assert!(capture.is_redacted());
        let mut found = Vec::new();
        let mut texts = Vec::new();
        let mut each = |one: &Statement<'_>| {
            found.push(counted(one));
            texts.push(String::from_utf8_lossy(one.sql).into_owned());
            assert_eq!(one.values, None);
            Ok(())
        };
        capture.read(&mut each, &Cancel::new()).unwrap();
        prop_assert_eq!(found.len(), statements.len());
        for (found, one) in found.into_iter().zip(&statements) {
            // What these mean depends on the server: only the beginning of such a text is kept.
            let has = |wanted: fn(&u8) -> bool| one.sql.iter().any(wanted);
            let is_doubtful = has(|byte| b"'\"`".contains(byte))
                && has(|byte| *byte == b'\\' || !byte.is_ascii());
            if !is_doubtful && !has(|byte| *byte == b'$') {
                prop_assert_eq!(found, counted(one));
            }
        }
        prop_assert!(
            !texts.iter().any(|text| text.contains("hush")),
            "{:?}",
            texts
        );
        Ok(())
    };
    runner(rounds("redacted statements", 64, 2000))
        .run(&all, test)
        .unwrap();
}

#[test]
fn damage_is_an_error_and_nothing_worse() {
    let room = tempfile::tempdir().unwrap();
    let directory = room.path().join("d");
    let statements: Vec<Statement<'_>> = (0..50).map(|id| one(id, b"SELECT 1 FROM t")).collect();
    keep(&directory, settings(), &statements);
    let file = parquet_files(&directory).remove(0);
    let whole = std::fs::read(&file).unwrap();
    let damage = (any::<prop::sample::Index>(), any::<u8>(), any::<bool>());
    let test = |(at, byte, is_cut): (prop::sample::Index, u8, bool)| {
        let mut bytes = whole.clone();
        let at = at.index(bytes.len());
        match is_cut {
            true => bytes.truncate(at),
            false => bytes[at] = byte,
        }
        std::fs::write(&file, bytes).unwrap();
        if let Ok(mut capture) = open(&directory, Credentials::default()) {
            let _ = capture.read(&mut |_| Ok(()), &Cancel::new());
        }
        Ok(())
    };
    runner(rounds("damaged files", 300, 20_000))
        .run(&damage, test)
        .unwrap();
}

#[test]
fn no_damage_of_rows_is_read_over() {
    let room = tempfile::tempdir().unwrap();
    let directory = room.path().join("d");
    let texts: Vec<String> = (0..200)
        .map(|number| format!("SELECT {}", number * 7919))
        .collect();
    let all: Vec<Statement<'_>> = texts.iter().map(|text| one(1, text.as_bytes())).collect();
    keep(&directory, settings(), &all);
    let file = &parquet_files(&directory)[0];
    let bytes = std::fs::read(file).unwrap();
    let footer = u32::from_le_bytes(bytes[bytes.len() - 8..][..4].try_into().unwrap());
    let footer = bytes.len() - 8 - footer as usize;
    for at in (4..footer).step_by((footer / 150).max(1)) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        std::fs::write(file, damaged).unwrap();
        let mut kept = open(&directory, Credentials::default()).unwrap();
        let read = kept.read(&mut |_| Ok(()), &Cancel::new());
        assert!(read.is_err(), "byte {at} of {footer}");
    }
    std::fs::write(file, bytes).unwrap();
    assert_eq!(back(&directory).0.len(), 200);
}

fn parquet_files(directory: &Path) -> Vec<std::path::PathBuf> {
    let all = std::fs::read_dir(directory).unwrap();
    let mut files: Vec<_> = all.map(|one| one.unwrap().path()).collect();
    files.retain(|path| path.to_string_lossy().contains(".parquet"));
    files.sort();
    files
}

#[test]
fn what_is_missing_is_said() {
    let room = tempfile::tempdir().unwrap();
    let directory = room.path().join("d");
    let text = vec![b'x'; 3000];
    let statements: Vec<Statement<'_>> = (0..9).map(|id| one(id, &text)).collect();
    let small = || Settings {
        file_bytes: 4096,
        file_span: Duration::ZERO,
        append: Append::Allow,
        ..settings()
    };
    drop(begin(&directory, small()).unwrap());
    let (_, _, missing) = back(&directory);
    assert!(matches!(&missing[..], [Missing::All]), "{missing:?}");
    // Killed: nothing is finished when it is dropped.
    let mut killed = begin(&directory, small()).unwrap();
    for one in &statements {
        killed.add(one).unwrap();
    }
    drop(killed);
    assert_eq!(parquet_files(&directory).len(), 8);
    let (found, _, missing) = back(&directory);
    assert_eq!(found.len(), 8);
    assert!(matches!(&missing[..], [Missing::End(_)]), "{missing:?}");
    std::fs::remove_file(&parquet_files(&directory)[2]).unwrap();
    let (found, _, missing) = back(&directory);
    assert_eq!(found.len(), 7);
    assert!(
        matches!(&missing[..], [Missing::Files(_, 1), Missing::End(_)]),
        "{missing:?}"
    );
}

#[test]
fn directories_are_taken_once_unless_asked_and_foreign_ones_never() {
    let room = tempfile::tempdir().unwrap();
    let directory = room.path().join("d");
    keep(&directory, settings(), &[one(1, b"SELECT 1")]);
    let refused = begin(&directory, settings()).err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::Usage);
    assert!(refused.chain().contains("already holds a capture"));
    let append = || Settings {
        append: Append::Allow,
        ..settings()
    };
    std::fs::write(directory.join("left.parquet.tmp"), "half").unwrap();
    keep(&directory, append(), &[one(1, b"SELECT 2")]);
    assert!(!directory.join("left.parquet.tmp").exists());
    let (found, coverage, missing) = back(&directory);
    assert_eq!((coverage.statements, missing.len()), (2, 0));
    // The same number in two captures is two connections.
    let first = format!("{:?}", one(1, b"SELECT 1"));
    let second = format!("{:?}", one((1 << 48) + 1, b"SELECT 2"));
    assert_eq!(found, [first, second]);
    let _busy = begin(&directory, append()).unwrap();
    assert_eq!(
        begin(&directory, append()).err().unwrap().kind(),
        ErrorKind::Busy
    );

    let foreign = room.path().join("foreign");
    std::fs::create_dir(&foreign).unwrap();
    std::fs::write(foreign.join("letter"), "Dear").unwrap();
    let refused = begin(&foreign, append()).err().unwrap();
    assert!(
        refused.chain().contains("holds no capture"),
        "{}",
        refused.chain()
    );
    assert_eq!(std::fs::read_dir(&foreign).unwrap().count(), 1);
}

#[test]
fn encrypted_files_open_with_an_identity_only() {
    let room = tempfile::tempdir().unwrap();
    let directory = room.path().join("d");
    let new = NewIdentity::generate(jiff::Timestamp::UNIX_EPOCH);
    let sealed = Settings {
        recipients: vec![new.recipient],
        ..settings()
    };
    let statements: Vec<Statement<'_>> = (0..2000).map(|id| one(id, b"SELECT 'hush'")).collect();
    keep(&directory, sealed, &statements);
    let files = parquet_files(&directory);
    assert!(
        files[0].to_string_lossy().ends_with(".parquet.age"),
        "{files:?}"
    );
    let bytes = std::fs::read(&files[0]).unwrap();
    assert!(!bytes.windows(4).any(|four| four == b"hush"));
    let refused = open(&directory, Credentials::default()).err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::WrongKey);
    let other = NewIdentity::generate(jiff::Timestamp::UNIX_EPOCH);
    let mut credentials = Credentials::default();
    credentials.add_identities("other", &other.file).unwrap();
    let refused = open(&directory, credentials.clone()).err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::WrongKey);
    credentials.add_identities("own", &new.file).unwrap();
    let mut capture = open(&directory, credentials).unwrap();
    let coverage = capture.read(&mut |_| Ok(()), &Cancel::new()).unwrap();
    assert_eq!(coverage.statements, 2000);
}
