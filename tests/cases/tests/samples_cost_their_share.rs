//! Does a sampled verify ask a store for a part of the content only, and say which and how much?

use evenkeel_cases::bucket::Bucket;
use evenkeel_cases::image::{BACKUP, Image};
use evenkeel_cases::program::{Ended, run};

const MIB: usize = 1 << 20;

#[test]
fn in_a_store() {
    let bucket = Bucket::start(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let (image, url) = (Image::default(), bucket.repository());
    let _ = image.write(40 * MIB, 1);
    let mut backup = bucket.command(&BACKUP);
    backup.arg(image.path()).arg(&url);
    assert_eq!(run(backup).generation(), 1);
    // Returns the answer and how many requests it took.
    let verify = |flags: &[&str]| -> (Ended, u64) {
        let before = bucket.way.requests();
        let mut command = bucket.command(&["verify", "--all", &url]);
        command.args(flags);
        let ended = run(bucket.by_the_way(command));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        (ended, bucket.way.requests() - before)
    };
    let said = |ended: &Ended, field: &str| ended.answer["sample"][field].as_u64();
    let (whole, requests) = verify(&[]);
    assert!(whole.answer.get("sample").is_none(), "{whole:?}");
    let (none, few) = verify(&["--sample=0%"]);
    assert!(few + 5 < requests, "{few} and {requests} requests");
    assert_eq!(none.answer["blocks"], 0);
    let total = said(&none, "bytes_total").expect("a total");
    assert_eq!(total, 40 * MIB as u64);
    let parts = ["1/3", "2/3", "3/3"].map(|part| verify(&["--part", part]).0);
    let checked = parts.iter().map(|part| said(part, "bytes_checked"));
    assert_eq!(checked.sum::<Option<u64>>(), Some(total), "{parts:?}");
    let (drawn, _) = verify(&["--sample=20M"]);
    let seed = said(&drawn, "seed").expect("a seed").to_string();
    let (again, _) = verify(&["--sample=20M", "--seed", &seed]);
    assert_eq!(drawn.answer["sample"], again.answer["sample"]);
    for wrong in [
        ["--seed=1", "--all"],
        ["--part=4/3", "--all"],
        ["--sample=101%", "--all"],
    ] {
        let mut command = bucket.command(&["verify", &url]);
        command.args(wrong);
        assert_eq!(run(command).code, Some(2), "{wrong:?}");
    }
}
