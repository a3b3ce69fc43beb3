//! Is every page that a server wrote and left at a clean shutdown judged good, empty or, with a
//! reason, unchecked, and is a flipped bit in any of them noticed?

#![allow(clippy::single_range_in_vec_init)] // lists of ranges, some of one

use evenkeel_innodb::{
    ChecksumKind, PageHeader, Probe, SpaceFormat, Verdict, has_stray_bits, verify,
};
use evenkeel_server::connect::Session;
use evenkeel_testkit::effort::{Part, draw, rounds, share};
use evenkeel_testkit::servers::{SERVER_DEADLINE, mariadb_10_11, mysql_5_7_22, mysql_8_0_15};
use evenkeel_testkit::traffic::Random;
use evenkeel_testkit::{Scratch, TestServer};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PAGE_SIZES: [&str; 5] = ["4k", "8k", "16k", "32k", "64k"];
/// How many bits are flipped in each good page.
const FLIPS: u32 = 24;
/// Among how many files a sample divides the bits of their flags.
const SHARES: usize = 4;
/// How many damaged files are shown to innochecksum.
const JUDGED: u32 = 6;

/// What was found in a data directory.
#[derive(Default)]
struct Found {
    good: u32,
    empty: u32,
    unchecked: BTreeMap<&'static str, u32>,
}

impl Found {
    /// How many pages were left unchecked for a reason that begins so.
    fn unchecked(&self, reason: &str) -> u32 {
        let matching = self
            .unchecked
            .iter()
            .filter(|(why, _)| why.starts_with(reason));
        matching.map(|(_, count)| count).sum()
    }
}

/// What is damaged of a file.
struct Damage {
    /// Bits of its flags.
    flags: Vec<u32>,
    /// How many bits of each good page.
    flips: u32,
}

impl Damage {
    /// Of files, in turn.
    fn turns() -> Vec<Self> {
        let bits: Vec<u32> = (0..32).collect();
        let flips = rounds("bits flipped in each page", FLIPS / 4, FLIPS);
        let flags = |nth| share("bits of flags", &bits, Part::new(nth, SHARES));
        let turns = (0..SHARES).map(flags);
        turns.map(|flags| Self { flags, flips }).collect()
    }
}

/// A table to fill, and the options it is created with.
type TableToFill<'a> = (&'a str, &'a str);

/// Makes a server with `args`, fills it, stops it, and checks every page of what it leaves.
fn check(server: &TestServer, args: &[&str], tables: &[TableToFill<'_>]) -> Found {
    let scratch = Scratch::new();
    let datadir = scratch.join("data");
    // Nothing here survives a crash, and nothing has to.
    let quick = ["--innodb-flush-log-at-trx-commit=0", "--sync-binlog=0"];
    let running = server.start(&datadir, &[args, &quick].concat());
    let mut session = running.session().unwrap();
    fill(&mut session, tables);
    drop(session);
    running.stop(SERVER_DEADLINE).unwrap();
    let seed = u64::from(std::process::id());
    let what = format!("{} {args:?}, seed {seed}", server.name);
    println!("{what}");
    let mut random = Random::new(seed);
    let mut found = Found::default();
    let mut files = tablespaces(&datadir);
    files.sort();
    assert!(files.len() >= tables.len(), "{what}: {files:?}");
    let turns = Damage::turns();
    for (file, damage) in files.iter().zip(turns.iter().cycle()) {
        check_file(&what, file, damage, &mut random, &mut found);
    }
    let unsummed = what.contains("algorithm=none") || what.contains("algorithm=strict_none");
    assert_eq!(found.good > 100, !unsummed, "{what}: {} good", found.good);
    assert!(found.empty > 0, "{what}");
    judge(&what, &datadir.join("t/base.ibd"), &mut random);
    found
}

/// Fills tables with rows that split pages, go off page, and are partly deleted again.
fn fill(session: &mut Session, tables: &[TableToFill<'_>]) {
    let columns = "(id INT PRIMARY KEY AUTO_INCREMENT, a INT, v VARCHAR(150), t TEXT, KEY (a))";
    session.run("CREATE DATABASE t").unwrap();
    session
        .run(&format!("CREATE TABLE t.base {columns} ENGINE=InnoDB"))
        .unwrap();
    session
        .run("INSERT INTO t.base (a, v, t) VALUES (1, 'one', REPEAT('some text ', 40)), (2, 'two', REPEAT('abc', 900))")
        .unwrap();
    for _ in 0..8 {
        session
            .run("INSERT INTO t.base (a, v, t) SELECT a + id, LEFT(CONCAT(v, id), 150), t FROM t.base")
            .unwrap();
    }
    for (name, options) in tables {
        session
            .run(&format!(
                "CREATE TABLE t.{name} {columns} ENGINE=InnoDB {options}"
            ))
            .unwrap_or_else(|error| panic!("{name} {options}: {}", error.chain()));
        session
            .run(&format!("INSERT INTO t.{name} SELECT * FROM t.base"))
            .unwrap();
    }
    for sql in [
        "DELETE FROM t.base WHERE id % 3 = 0",
        "CREATE TABLE t.spatial (id INT PRIMARY KEY, p POINT NOT NULL, SPATIAL KEY (p)) ENGINE=InnoDB",
        "INSERT INTO t.spatial SELECT id, POINT(a, id) FROM t.base",
        "CREATE TABLE t.words (id INT PRIMARY KEY, t TEXT, FULLTEXT KEY (t)) ENGINE=InnoDB",
        "INSERT INTO t.words SELECT id, t FROM t.base LIMIT 20",
    ] {
        session.run(sql).unwrap();
    }
}

fn check_file(what: &str, path: &Path, damage: &Damage, random: &mut Random, found: &mut Found) {
    let name = path.display();
    let file = File::open(path).unwrap();
    let format = match SpaceFormat::of_file(&file).unwrap() {
        Probe::Checkable(format) => format,
        Probe::NotCheckable(why) => panic!("{what}: {name}: {why}"),
    };
    let mut bytes = fs::read(path).unwrap();
    let size = format.physical_size();
    assert_eq!(bytes.len() % size, 0, "{what}: {name}");
    guess(&format!("{what}: {name}"), &mut bytes, &format, damage);
    for (page, no) in bytes.chunks_exact_mut(size).zip(0..) {
        match verify(page, no, &format) {
            Verdict::Good => {
                assert!(
                    !has_stray_bits(page, no, &format),
                    "{what}: {name} page {no}"
                );
                found.good += 1;
                for _ in 0..damage.flips {
                    flip(&format!("{what}: {name}"), page, no, &format, random);
                }
            }
            Verdict::Empty => found.empty += 1,
            Verdict::Unchecked(why) => *found.unchecked.entry(why).or_default() += 1,
            bad @ Verdict::Corrupt { .. } => panic!("{what}: {name} page {no}: {bad:?}"),
        }
    }
}

/// Whatever bit of its flags is damaged, the format is told from the other pages.
fn guess(what: &str, bytes: &mut [u8], format: &SpaceFormat, damage: &Damage) {
    let start = bytes.len().min(1 << 20);
    if SpaceFormat::guess(&bytes[..start]).is_none() {
        // Too few pages in use.
        return;
    }
    for &bit in &damage.flags {
        let at = 38 + 16 + 3 - bit as usize / 8;
        bytes[at] ^= 1 << (bit % 8);
        let guessed = SpaceFormat::guess(&bytes[..start]);
        bytes[at] ^= 1 << (bit % 8);
        let Some(guessed) = guessed else {
            panic!("{what}: bit {bit} of the flags");
        };
        // What compressed pages are unpacked to does not show; and where nothing is checksummed, not
        // even whether they are compressed.
        let shape =
            |format: &SpaceFormat| (format.space_id, format.checksum, format.physical_size());
        assert_eq!(
            shape(&guessed),
            shape(format),
            "{what}: bit {bit} of the flags"
        );
    }
}

/// Flips a protected bit of a good page, for a look.
fn flip(what: &str, page: &mut [u8], no: u32, format: &SpaceFormat, random: &mut Random) {
    let (at, bit) = protected_bit(page, format, random);
    page[at] ^= bit;
    let verdict = verify(page, no, format);
    page[at] ^= bit;
    // In the doublewrite area anything is legal.
    assert!(
        verdict.is_corrupt() || format.doublewrite.is_some_and(|area| area.contains(no)),
        "{what} page {no}: bit {bit:#x} of byte {at} flipped is {verdict:?}"
    );
}

/// Returns a random bit that the page's format protects.
fn protected_bit(page: &[u8], format: &SpaceFormat, random: &mut Random) -> (usize, u8) {
    let unprotected = unprotected(page, format);
    loop {
        let at = random.below(page.len() as u32) as usize;
        if !unprotected.iter().any(|range| range.contains(&at)) {
            return (at, 1 << random.below(8));
        }
    }
}

/// The list in the documentation of `checksum`.
fn unprotected(page: &[u8], format: &SpaceFormat) -> Vec<Range<usize>> {
    let size = page.len();
    let page_type = u16::from_be_bytes([page[24], page[25]]);
    match format.checksum {
        ChecksumKind::FullCrc32 if page_type >> 15 == 1 => {
            let used = usize::from(page_type & 0x7fff) << 8;
            vec![used..size]
        }
        ChecksumKind::FullCrc32 => vec![],
        ChecksumKind::Classic => {
            let encrypted = format.encrypted && page[26..30] != [0; 4];
            let mut ranges = vec![26..if encrypted { 30 } else { 34 }];
            if format.zip_size.is_some() {
                ranges.push(16..24);
            }
            if encrypted {
                ranges.extend([0..4, size - 8..size]);
            }
            ranges
        }
    }
}

/// Compares verdicts on sound and damaged versions of a file with those of innochecksum.
fn judge(what: &str, path: &Path, random: &mut Random) {
    let sound = fs::read(path).unwrap();
    let Probe::Checkable(format) = SpaceFormat::parse(&sound) else {
        panic!("{what}: not checkable");
    };
    // It reads MySQL's `innodb` checksums and unsummed pages only on request, and not at all here.
    if format.checksum == ChecksumKind::Classic && what.contains("innodb-checksum-algorithm=") {
        return;
    }
    assert!(innochecksum(path), "{what}: innochecksum finds damage");
    let size = format.physical_size();
    let damaged = path.with_extension("damaged");
    for _ in 0..JUDGED {
        // Not page 0: innochecksum reads its flags first and trusts them.
        let no = 1 + random.below(3);
        let mut bytes = sound.clone();
        let page = &mut bytes[no as usize * size..][..size];
        let (at, bit) = protected_bit(page, &format, random);
        // Placement, and the two copies of the LSN, are compared by us alone.
        if (4..8).contains(&at) || (34..38).contains(&at) || at >= size - 8 {
            continue;
        }
        page[at] ^= bit;
        let verdict = verify(page, no, &format);
        fs::write(&damaged, &bytes).unwrap();
        let ours = verdict.is_corrupt();
        assert_eq!(
            ours,
            !innochecksum(&damaged),
            "{what}: bit {bit:#x} of byte {at} of page {no}: we say {verdict:?}"
        );
    }
}

/// Returns whether MariaDB's own tool finds nothing wrong.
fn innochecksum(path: &Path) -> bool {
    Command::new("innochecksum")
        .arg(path)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("innochecksum is missing: run testkit/setup")
        .success()
}

fn tablespaces(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            found.extend(tablespaces(&path));
        } else if name.ends_with(".ibd") || name.starts_with("ibdata") || name.starts_with("undo") {
            found.push(path);
        }
    }
    found
}

const FORMATS: &[TableToFill<'_>] = &[
    ("dynamic", "ROW_FORMAT=DYNAMIC"),
    ("compact", "ROW_FORMAT=COMPACT"),
    ("redundant", "ROW_FORMAT=REDUNDANT"),
];

/// Adds the compressed formats that a page size allows.
fn formats<'a>(page_size: &str, more: &[TableToFill<'a>]) -> Vec<TableToFill<'a>> {
    let mut tables: Vec<TableToFill<'a>> = FORMATS.iter().chain(more).copied().collect();
    let largest = match page_size {
        "4k" => 4,
        "8k" => 8,
        "16k" => 16,
        _ => 0,
    };
    let zips = [
        (1, "zip_1", "ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=1"),
        (2, "zip_2", "ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=2"),
        (4, "zip_4", "ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=4"),
        (8, "zip_8", "ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=8"),
        (16, "zip_16", "ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=16"),
    ];
    let fitting = zips.iter().filter(|(size, _, _)| *size <= largest);
    tables.extend(fitting.map(|(_, name, options)| (*name, *options)));
    tables
}

const MYSQL_COMPRESSION: &[TableToFill<'_>] =
    &[("zlib", "COMPRESSION='zlib'"), ("lz4", "COMPRESSION='lz4'")];

#[test]
fn mariadb_page_sizes_and_row_formats() {
    let compressed: &[TableToFill<'_>] = &[("page_compressed", "PAGE_COMPRESSED=1")];
    for page_size in share("page sizes", &PAGE_SIZES, Part::new(0, 3)) {
        let args = [
            &*format!("--innodb-page-size={page_size}"),
            "--innodb-undo-tablespaces=2",
        ];
        // Only the doublewrite area is left alone.
        let found = check(&mariadb_10_11(), &args, &formats(page_size, compressed));
        assert_eq!(found.unchecked.len(), 1, "{:?}", found.unchecked);
        assert!(found.unchecked("a copy in the doublewrite area") > 0);
    }
}

#[test]
fn mysql_8_0_page_sizes_and_row_formats() {
    mysql_page_sizes(&mysql_8_0_15(), Part::new(1, 3));
}

#[test]
fn mysql_5_7_page_sizes_and_row_formats() {
    mysql_page_sizes(&mysql_5_7_22(), Part::new(2, 3));
}

fn mysql_page_sizes(server: &TestServer, part: Part) {
    for page_size in share("page sizes", &PAGE_SIZES, part) {
        let arg = format!("--innodb-page-size={page_size}");
        let found = check(server, &[&arg], &formats(page_size, MYSQL_COMPRESSION));
        assert_eq!(found.unchecked("written with"), 0);
        // A page of one filesystem block cannot become smaller.
        let compressed = found.unchecked("compressed by MySQL") > 0;
        assert_eq!(compressed, page_size != "4k", "{page_size}");
    }
}

#[test]
fn mariadb_checksum_algorithms() {
    let compressed: &[TableToFill<'_>] = &[("page_compressed", "PAGE_COMPRESSED=1")];
    let algorithms = ["strict_full_crc32", "crc32", "strict_crc32"];
    for algorithm in draw("checksum algorithms", &algorithms, 2) {
        let arg = format!("--innodb-checksum-algorithm={algorithm}");
        let found = check(&mariadb_10_11(), &[&arg], &formats("16k", compressed));
        let skipped = found.unchecked("page-compressed");
        assert_eq!(
            skipped > 0,
            !algorithm.contains("full"),
            "{algorithm}: {skipped}"
        );
    }
}

#[test]
fn mysql_checksum_algorithms() {
    // The strict ones write the same as the others.
    for (server, algorithms, part) in [
        (mysql_8_0_15(), &["strict_innodb", "none"][..], 0),
        (
            mysql_5_7_22(),
            &["innodb", "strict_none", "strict_crc32"],
            1,
        ),
    ] {
        for algorithm in share("checksum algorithms", algorithms, Part::new(part, 2)) {
            let arg = format!("--innodb-checksum-algorithm={algorithm}");
            let found = check(&server, &[&arg], &formats("16k", &[]));
            let skipped = found.unchecked("written with innodb_checksum_algorithm=none");
            assert_eq!(
                skipped > 0,
                algorithm.contains("none"),
                "{algorithm}: {skipped}"
            );
        }
    }
}

#[test]
fn mariadb_encrypted_pages() {
    let scratch = Scratch::new();
    let keys = scratch.join("keys");
    let key = |digit: &str| digit.repeat(32);
    fs::write(&keys, format!("1;{}\n2;{}\n", key("a7"), key("3c"))).unwrap();
    let keys = format!("--file-key-management-filename={}", keys.display());
    let tables: &[TableToFill<'_>] = &[
        ("sealed", "ENCRYPTED=YES"),
        ("sealed_2", "ENCRYPTED=YES ENCRYPTION_KEY_ID=2"),
        (
            "sealed_zip",
            "ENCRYPTED=YES ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=4",
        ),
        ("sealed_compressed", "ENCRYPTED=YES PAGE_COMPRESSED=1"),
    ];
    for algorithm in ["full_crc32", "crc32"] {
        let args = [
            "--plugin-load-add=file_key_management",
            &*keys,
            &*format!("--innodb-checksum-algorithm={algorithm}"),
        ];
        let found = check(&mariadb_10_11(), &args, tables);
        assert_eq!(found.unchecked("page-compressed"), 0, "{algorithm}");
    }
}

#[test]
fn a_stopped_server_has_the_newest_pages_in_its_doublewrite_area_or_in_place() {
    let servers = [mariadb_10_11(), mysql_8_0_15(), mysql_5_7_22()];
    for server in draw("servers that stopped", &servers, 1) {
        let scratch = Scratch::new();
        let datadir = scratch.join("data");
        let running = server.start(&datadir, &[]);
        fill(&mut running.session().unwrap(), FORMATS);
        running.stop(SERVER_DEADLINE).unwrap();
        copies_are_older_or_equal(&server, &datadir);
    }
}

/// Checks that good copies exist, and that none is of a version the server never finished.
fn copies_are_older_or_equal(server: &TestServer, datadir: &Path) {
    let size = evenkeel_innodb::PageSize::DEFAULT;
    let ibdata1 = File::open(datadir.join("ibdata1")).unwrap();
    let copies = evenkeel_innodb::doublewrite::DoublewriteCopies::read(&ibdata1, size).unwrap();
    let mut matched = 0;
    for path in tablespaces(datadir) {
        let bytes = fs::read(&path).unwrap();
        let Probe::Checkable(format) = SpaceFormat::parse(&bytes) else {
            panic!("{}", path.display());
        };
        for (page, no) in bytes.chunks_exact(format.physical_size()).zip(0..) {
            let Some(copy) = copies.good_copy(&format, no) else {
                continue;
            };
            let here = PageHeader::read(page, &format).unwrap().lsn;
            let there = PageHeader::read(copy, &format).unwrap().lsn;
            assert!(
                there <= here,
                "{}: {} page {no}",
                server.name,
                path.display()
            );
            matched += 1;
        }
    }
    assert!(matched > 10, "{}: {matched} copies", server.name);
}
