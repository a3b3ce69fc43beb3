use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::process::{Command, Stdio};

/// Keeps whole files in memory.
#[derive(Default)]
struct Kept {
    open: BTreeMap<String, Vec<u8>>,
    whole: BTreeMap<String, Vec<u8>>,
}

impl Sink for Kept {
    fn data(&mut self, path: &str, bytes: &[u8]) -> Result<()> {
        let file = self.open.entry(path.to_owned()).or_default();
        file.extend_from_slice(bytes);
        Ok(())
    }

    fn hole(&mut self, path: &str, bytes: u64) -> Result<()> {
        self.data(path, &vec![0; bytes as usize])
    }

    fn end(&mut self, path: &str, size: u64) -> Result<()> {
        let file = self.open.remove(path).unwrap_or_default();
        assert_eq!(file.len() as u64, size);
        self.whole.insert(path.to_owned(), file);
        Ok(())
    }

    fn change(&mut self, path: &str, offset: u64, bytes: &[u8]) -> Result<()> {
        let file = self.open.get_mut(path).expect("what was given before");
        file[offset as usize..][..bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn turn(&mut self) -> Result<()> {
        Ok(())
    }
}

fn files_of(stream: &[u8]) -> Result<BTreeMap<String, Vec<u8>>> {
    files_by(HotCopyTool::XtraBackup, stream)
}

fn files_by(maker: HotCopyTool, stream: &[u8]) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut kept = Kept::default();
    read(stream, maker, &mut kept)?;
    Ok(kept.whole)
}

fn head(kind: u8, path: &str) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend([0, kind]);
    out.extend((path.len() as u32).to_le_bytes());
    out.extend(path.as_bytes());
    out
}

fn payload(path: &str, offset: u64, bytes: &[u8]) -> Vec<u8> {
    let mut out = head(b'P', path);
    out.extend((bytes.len() as u64).to_le_bytes());
    out.extend(offset.to_le_bytes());
    out.extend(crc32fast::hash(bytes).to_le_bytes());
    out.extend(bytes);
    out
}

fn sparse(path: &str, offset: u64, map: &[(u32, u32)], bytes: &[u8]) -> Vec<u8> {
    let mut out = head(b'S', path);
    out.extend((map.len() as u32).to_le_bytes());
    out.extend((bytes.len() as u64).to_le_bytes());
    out.extend(offset.to_le_bytes());
    let map = map.iter().flat_map(|(hole, data)| [*hole, *data]);
    let map: Vec<u8> = map.flat_map(u32::to_le_bytes).collect();
    let checked = [map.as_slice(), bytes].concat();
    out.extend(crc32fast::hash(&checked).to_le_bytes());
    out.extend(checked);
    out
}

/// As mariadb-backup goes back.
fn step(path: &str, to: u64) -> Vec<u8> {
    [head(b'S', path), to.to_le_bytes().to_vec()].concat()
}

fn end(path: &str) -> Vec<u8> {
    head(b'E', path)
}

/// Two files that take turns, an empty one, one with holes.
fn sample() -> Vec<u8> {
    [
        payload("./a/one.ibd", 0, b"first half, "),
        payload("two", 0, b"two"),
        payload("a/one.ibd", 12, b"second half"),
        end("empty"),
        end("two"),
        sparse("holes", 0, &[(3, 2), (4, 1), (5, 0)], b"xyz"),
        payload("holes", 15, b"end"),
        end("holes"),
        end("a/one.ibd"),
    ]
    .concat()
}

#[test]
fn files_that_take_turns_come_out_whole() {
    let files = files_of(&sample()).unwrap();
    let found: Vec<(&str, &[u8])> = files.iter().map(|(k, v)| (k.as_str(), &v[..])).collect();
    let expected: [(&str, &[u8]); 4] = [
        ("a/one.ibd", b"first half, second half"),
        ("empty", b""),
        ("holes", b"\0\0\0xy\0\0\0\0z\0\0\0\0\0end"),
        ("two", b"two"),
    ];
    assert_eq!(found, expected);
    assert!(files_of(b"").unwrap().is_empty());
}

#[test]
fn headers_that_are_written_late_take_the_place_of_those_sent() {
    let log = payload("log", 0, b"header of seven, and more");
    let stream = [
        log.clone(),
        step("log", 7),
        payload("log", 7, b"OF"),
        end("log"),
    ]
    .concat();
    let files = files_by(HotCopyTool::MariaDbBackup, &stream).unwrap();
    assert_eq!(files["log"], b"header OF seven, and more");
    for length in 1..stream.len() {
        assert!(files_by(HotCopyTool::MariaDbBackup, &stream[..length]).is_err());
    }
    let continues = [
        log.clone(),
        step("log", 7),
        payload("log", 7, b"OF"),
        step("log", 25),
        payload("log", 25, b"!"),
        end("log"),
    ];
    let files = files_by(HotCopyTool::MariaDbBackup, &continues.concat()).unwrap();
    assert_eq!(files["log"], b"header OF seven, and more!");
    for (stream, says) in [
        (
            [log.clone(), step("log", 26), end("log")],
            "its last byte was 25",
        ),
        (
            [log.clone(), step("log", 7), payload("log", 8, b"f")],
            "ended at byte 7",
        ),
        (
            [log, step("log", 24), payload("log", 24, b"ee")],
            "are repeated",
        ),
    ] {
        let error = files_by(HotCopyTool::MariaDbBackup, &stream.concat()).unwrap_err();
        assert!(error.chain().contains(says), "{}", error.chain());
    }
}

#[test]
fn a_cut_is_an_error_wherever_it_is() {
    let whole = sample();
    for length in 1..whole.len() {
        let cut = files_of(&whole[..length]);
        assert!(cut.is_err(), "cut to {length} of {}", whole.len());
    }
}

#[test]
fn a_flipped_bit_is_an_error_wherever_it_is() {
    let whole = sample();
    let right = files_of(&whole).unwrap();
    let mut renamed = 0;
    for bit in 0..whole.len() * 8 {
        let at = bit / 8;
        // The flags mean nothing where the type is known.
        if at >= 8 && whole[at - 8..at] == *MAGIC {
            continue;
        }
        let mut wrong = whole.clone();
        wrong[at] ^= 1 << (bit % 8);
        if let Ok(mut files) = files_of(&wrong) {
            // No checksum covers a name. It shows that two chunks do not name the same file, so only
            // an empty one, which has a single chunk, can get another name.
            files.retain(|name, _| !right.contains_key(name));
            assert_eq!(files.into_values().collect::<Vec<_>>(), [b""], "bit {bit}");
            renamed += 1;
        }
    }
    assert!(renamed < 8 * "empty".len(), "{renamed}");
}

#[test]
fn what_contradicts_itself_is_an_error() {
    let mut wrong_crc = payload("a", 0, b"bytes");
    let last = wrong_crc.len() - 1;
    wrong_crc[last] ^= 1;
    let mut short_map = sparse("a", 0, &[(1, 3)], b"abc");
    short_map[head(b'S', "a").len() + 4] = 2;
    let mut unknown = end("a");
    unknown[8] = 1;
    unknown[9] = b'R';
    let cases: [(&str, Vec<u8>, &str); 14] = [
        ("no magic", b"XBSTCK02".repeat(3), "there is no chunk"),
        (
            "wrong crc32",
            [wrong_crc, end("a")].concat(),
            "checksum of 'a'",
        ),
        ("no E", payload("a", 0, b"x"), "ends before 'a'"),
        (
            "a gap",
            [payload("a", 0, b"x"), payload("a", 2, b"y"), end("a")].concat(),
            "at byte 2",
        ),
        (
            "an overlap",
            [payload("a", 0, b"xy"), payload("a", 1, b"y")].concat(),
            "at byte 1",
        ),
        (
            "a late begin",
            [payload("a", 1, b"x"), end("a")].concat(),
            "at byte 1",
        ),
        (
            "twice",
            [payload("a", 0, b"x"), end("a"), payload("a", 0, b"x")].concat(),
            "after its end",
        ),
        ("two ends", [end("a"), end("a")].concat(), "after its end"),
        ("unknown type", unknown, "type 'R'"),
        (
            "a map that is too short",
            [short_map, end("a")].concat(),
            "the map of 'a'",
        ),
        ("no path", end(""), "0 bytes long"),
        ("an absolute path", end("/etc/passwd"), "not a path below"),
        ("a way out", end("a/../../b"), "not a path below"),
        (
            "a path that is too long",
            end(&"a".repeat(5000)),
            "5000 bytes long",
        ),
    ];
    for (what, stream, says) in cases {
        let error = files_of(&stream).expect_err(what).chain();
        assert!(error.contains(says), "{what}: {error}");
    }
}

proptest! {
    #[test]
    fn any_files_in_any_turns_come_out_whole(
        files in prop::collection::vec(prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..6), 1..6),
        turns in prop::collection::vec(any::<prop::sample::Index>(), 40),
    ) {
        let mut expected = BTreeMap::new();
        let mut queues: Vec<(String, Vec<Vec<u8>>)> = Vec::new();
        for (number, pieces) in files.iter().enumerate() {
            let path = format!("db/t{number}.ibd");
            expected.insert(path.clone(), pieces.concat());
            let mut chunks = Vec::new();
            let mut at = 0;
            for piece in pieces {
                chunks.push(payload(&path, at, piece));
                at += piece.len() as u64;
            }
            chunks.push(end(&path));
            chunks.reverse();
            queues.push((path, chunks));
        }
        let mut stream = Vec::new();
        for turn in turns {
            let left: Vec<usize> = (0..queues.len()).filter(|i| !queues[*i].1.is_empty()).collect();
            if left.is_empty() {
                break;
            }
            stream.extend(queues[*turn.get(&left)].1.pop().unwrap_or_default());
        }
        for (_, mut chunks) in queues {
            while let Some(chunk) = chunks.pop() {
                stream.extend(chunk);
            }
        }
        prop_assert_eq!(files_of(&stream).unwrap(), expected);
    }

    #[test]
    fn nonsense_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200), kind in any::<u8>()) {
        for maker in [HotCopyTool::MariaDbBackup, HotCopyTool::XtraBackup] {
            let _ = files_by(maker, &bytes);
            let _ = files_by(maker, &[head(kind, "a"), bytes.clone()].concat());
        }
    }
}

/// The vendor's own program packs, we unpack.
#[test]
fn what_mbstream_packs_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let mut expected = BTreeMap::new();
    std::fs::create_dir(dir.path().join("db")).unwrap();
    for (name, length) in [
        ("db/a.ibd", 3_000_000),
        ("db/b", 1),
        ("c", 70_000),
        ("none", 0),
    ] {
        let bytes: Vec<u8> = (0..length).map(|i: u32| (i % 251) as u8).collect();
        std::fs::write(dir.path().join(name), &bytes).unwrap();
        expected.insert(name.to_owned(), bytes);
    }
    let mut packer = Command::new("mbstream")
        .args(["-c", "db/a.ibd", "none", "db/b", "c"])
        .current_dir(dir.path())
        .stdout(Stdio::piped())
        .spawn()
        .expect("mbstream: run testkit/setup");
    let mut kept = Kept::default();
    let totals = read(
        packer.stdout.take().unwrap(),
        HotCopyTool::MariaDbBackup,
        &mut kept,
    )
    .unwrap();
    assert!(packer.wait().unwrap().success());
    assert_eq!(kept.whole, expected);
    assert_eq!((totals.files, totals.payload_bytes), (4, 3_070_001));
}
