//! Archived binary logs of a test.

use super::content;
use evenkeel_op::Result;
use evenkeel_repository::Repository;
use evenkeel_repository::logs::{LogPosition, SegmentHeader};
use std::sync::Arc;

pub const SOURCE: &str = "mariadb-7";

pub fn place(file: u32, position: u64) -> LogPosition {
    LogPosition {
        file: format!("binlog.{file:06}"),
        position,
    }
}

/// What a byte of a file is made of.
pub fn bytes(file: u32, start: u64, end: u64) -> Vec<u8> {
    content(u64::from(file) * 1000 + start + 1, (end - start) as usize)
}

/// Adds a segment of `timeline`, from a run of its own.
pub fn add(
    repo: &Repository,
    timeline: &str,
    file: u32,
    (start, end): (u64, u64),
    previous: Option<LogPosition>,
) -> Result<()> {
    let logs = repo.logs();
    let _lock = logs.claim(SOURCE)?;
    let writer = logs.writer()?;
    writer.make_timeline(SOURCE, timeline)?;
    let mut header = header(file, (start, end), previous);
    let home = (SOURCE, timeline);
    writer
        .write(home, &mut header, &bytes(file, start, end))?
        .finish()
}

pub fn header(file: u32, (start, end): (u64, u64), previous: Option<LogPosition>) -> SegmentHeader {
    SegmentHeader {
        file: place(file, 0).file,
        start,
        end,
        previous,
        gap: None,
        last_event: end - 1,
        last_event_hash: None,
        transactions: 1,
        first_time: Some(1000 * file),
        last_time: Some(1000 * file + 1),
        first_gtid: Some("0-7-1".to_owned()),
        last_gtid: Some("0-7-2".to_owned()),
        gtids: None,
        last_statement: None,
        unfinished: None,
        server_version: "10.11.6-MariaDB".to_owned(),
        crc: 0,
        stored: 0,
        stored_crc: None,
        of: None,
    }
}

/// Three files of two segments each.
pub fn three_files(repo: &Repository, timeline: &str) {
    let mut previous = None;
    for file in 1..=3 {
        for range in [(0, 300), (300, 700)] {
            add(repo, timeline, file, range, previous).unwrap();
            previous = Some(place(file, range.1));
        }
    }
}

/// Reads every segment there is and returns how many.
pub fn check_all(repo: &Repository) -> usize {
    let logs = repo.logs();
    let mut count = 0;
    for timeline in logs.timelines(None).unwrap() {
        for segment in &timeline.segments {
            let number = evenkeel_binlog::number_of(&segment.file).unwrap();
            let wanted = bytes(number as u32, segment.start, segment.end);
            assert_eq!(logs.read(segment).unwrap(), wanted, "{}", segment.object);
            count += 1;
        }
    }
    count
}

/// Makes what somebody without a key can make of a sealed document: other words, and the digest that
/// they have.
pub fn forged(document: &[u8], from: &str, to: &str) -> Arc<Vec<u8>> {
    let text = String::from_utf8(document.to_vec()).unwrap();
    assert!(text.contains(from), "{text}");
    let text = text.replace(from, to);
    let end = text.rfind("blake3 ").unwrap();
    let digest = evenkeel_repository::Digest::of(&text.as_bytes()[..end]);
    Arc::new(format!("{}blake3 {digest}\n", &text[..end]).into_bytes())
}
