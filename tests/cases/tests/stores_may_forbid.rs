//! Does reading need no more than the right to read, and does a store that refuses to remove things
//! keep nobody from going on?

use evenkeel_cases::bucket::Bucket;
use evenkeel_cases::image::{BACKUP, Image};
use evenkeel_cases::program::{Ended, run};

const MIB: usize = 1 << 20;

/// A store with two generations, and what they hold.
fn fixture() -> (Bucket, Image, Vec<Vec<u8>>) {
    let bucket = Bucket::start(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let image = Image::default();
    let mut kept = Vec::new();
    for number in 1..=2 {
        kept.push(match number {
            1 => image.write(12 * MIB, 1),
            _ => image.change(2 * MIB, MIB),
        });
        assert_eq!(backup(&bucket, &image).generation(), number);
    }
    (bucket, image, kept)
}

fn backup(bucket: &Bucket, image: &Image) -> Ended {
    let mut backup = bucket.command(&BACKUP);
    backup.arg(image.path()).arg(bucket.repository());
    run(bucket.by_the_way(backup))
}

#[test]
fn readers_need_not_write() {
    let (bucket, image, kept) = fixture();
    let url = bucket.repository();
    let reading = |words: &[&str]| bucket.only_reading(bucket.command(words));
    image.assert_held(&reading, &url, &kept);
    let there = image.beside("copy").display().to_string();
    let copied = run(reading(&["repository", "copy", &url, &there]));
    assert_eq!(copied.code, Some(0), "{copied:?}");
    image.assert_held(&|words| bucket.command(words), &there, &kept);
    for plan in [
        ["forget", &url, "--keep-last=1"],
        ["prune", &url, "--min-live=90"],
    ] {
        let ended = run(reading(&plan));
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }
    // And cannot: what they must not do they do not half do.
    let ended = run(reading(&["forget", &url, "--keep-last=1", "--execute"]));
    assert_eq!(ended.code, Some(14), "{ended:?}");
    let mut command = reading(&BACKUP);
    command.arg(image.path()).arg(&url);
    assert_eq!(run(command).code, Some(14));
    image.assert_held(&reading, &url, &kept);
}

#[test]
fn what_may_not_be_removed_is_in_nobodys_way() {
    let (bucket, image, mut kept) = fixture();
    let url = bucket.repository();
    let go = |words: &[&str]| run(bucket.by_the_way(bucket.command(words)));
    bucket.way.forbid(Some("DELETE"));
    let forget = ["forget", &url, "--generation=1", "--execute"];
    let prune = ["prune", &url, "--min-live=100", "--execute"];
    let refused = |words: &[&str]| {
        let ended = go(words);
        assert_eq!(ended.code, Some(14), "{ended:?}");
        assert!(ended.message().contains("refuses to remove"), "{ended:?}");
    };
    refused(&forget);
    // What may not be forgotten stays as it was.
    image.assert_held(&|words| bucket.command(words), &url, &kept);
    bucket.way.forbid(None);
    assert_eq!(go(&forget).code, Some(0));
    kept.remove(0);
    bucket.way.forbid(Some("DELETE"));
    refused(&prune);
    kept.push(image.change(5 * MIB, MIB));
    assert_eq!(backup(&bucket, &image).generation(), 3);
    image.assert_held(&|words| bucket.command(words), &url, &kept);
    // Nothing but what was kept back is left to do, and that is tried again.
    let again = go(&["prune", &url, "--execute"]);
    assert_eq!(again.code, Some(14), "{again:?}");
    bucket.way.forbid(None);
    let done = go(&["prune", &url, "--execute"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let verified = go(&["verify", "--all", &url]);
    assert_eq!(
        verified.answer["notes"],
        serde_json::json!([]),
        "{verified:?}"
    );
    image.assert_held(&|words| bucket.command(words), &url, &kept);
}

#[test]
fn rewritten_packs_go_where_they_are_reported() {
    let (bucket, _image, _) = fixture();
    let url = bucket.repository();
    let go = |words: &[&str]| {
        let ended = run(bucket.by_the_way(bucket.command(words)));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let heads = bucket.way.heads();
        let in_class = |head: &&String| head.contains("x-amz-storage-class: standard_ia");
        heads.iter().filter(in_class).count()
    };
    assert_eq!(go(&["forget", &url, "--generation=1", "--execute"]), 0);
    let prune = [
        "prune",
        &url,
        "--min-live=100",
        "--storage-class=STANDARD_IA",
        "--execute",
    ];
    assert!(go(&prune) > 0);
}
