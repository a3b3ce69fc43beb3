//! Does a backup need the same memory for a tablespace of 1 TiB and for 20 000 tables as for little?

use evenkeel_cases::program::{Evenkeel, peak};
use evenkeel_testkit::LoopFs;
use evenkeel_testkit::effort::is_full;
use evenkeel_testkit::servers::mariadb_10_11;
use std::fs::{self, File};
use std::path::Path;

const GIB: u64 = 1 << 30;
const CAP: u64 = 256 << 20;

fn backup(evenkeel: &Evenkeel, fs: &LoopFs, name: &str) {
    let mut command = evenkeel.command(&["backup", "--no-defaults", "--snapshot=copy"]);
    command
        .arg("--datadir")
        .arg(fs.join("data"))
        .arg(fs.join("repository"));
    let (ended, most) = peak(command);
    assert_eq!(ended.code, Some(0), "{name}: {ended:?}");
    assert!(most > 0 && most < CAP, "{name}: {most} bytes");
    println!(
        "{name}: peak {} MiB, {} s",
        most >> 20,
        ended.answer["seconds"]
    );
}

fn datadir(fs: &LoopFs) -> std::path::PathBuf {
    let data = fs.join("data");
    let _ = mariadb_10_11().prepare(&data, &[]);
    fs::create_dir(data.join("many")).unwrap();
    data
}

fn restore(evenkeel: &Evenkeel, fs: &LoopFs) {
    let command = evenkeel.restore(&fs.join("repository"), &fs.join("restored"), &[]);
    let (ended, most) = peak(command);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(most > 0 && most < CAP, "restore: {most} bytes");
}

/// A file as large as `bytes`, of which a few pages are there.
fn huge(path: &Path, bytes: u64) {
    let file = File::create(path).unwrap();
    let source = File::open("/dev/urandom").unwrap();
    let mut noise = vec![0; 64 << 10];
    std::io::Read::read_exact(&mut &source, &mut noise).unwrap();
    for at in (0..16).map(|part| part * (bytes / 16)) {
        std::os::unix::fs::FileExt::write_all_at(&file, &noise, at).unwrap();
    }
    file.set_len(bytes).unwrap();
}

/// A sample makes do with a quarter of it: the map of that, if it were held, would be beyond the cap as well.
#[test]
fn with_a_tablespace_of_one_tebibyte() {
    let space_bytes = if is_full() { 1024 } else { 256 } * GIB;
    // Another file, in whose holes something lies, is a sixteenth of it.
    let file_bytes = space_bytes / 16;
    let fs = LoopFs::xfs(4 * GIB);
    let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let data = datadir(&fs);
    let space = data.join("many/huge.ibd");
    fs::copy(data.join("mysql/innodb_index_stats.ibd"), &space).unwrap();
    File::options()
        .write(true)
        .open(&space)
        .unwrap()
        .set_len(space_bytes)
        .unwrap();
    let path = data.join("many/huge.MYD");
    huge(&path, file_bytes);
    backup(&evenkeel, &fs, "a huge one");
    restore(&evenkeel, &fs);
    let restored = fs.join("restored/many/huge.ibd");
    assert_eq!(restored.metadata().unwrap().len(), space_bytes);
    let restored = fs.join("restored/many/huge.MYD");
    assert_eq!(restored.metadata().unwrap().len(), file_bytes);
    let mut one = vec![0; 64 << 10];
    let mut other = one.clone();
    for at in (0..16).map(|part| part * (file_bytes / 16)) {
        use std::os::unix::fs::FileExt;
        File::open(&path)
            .unwrap()
            .read_exact_at(&mut one, at)
            .unwrap();
        File::open(&restored)
            .unwrap()
            .read_exact_at(&mut other, at)
            .unwrap();
        assert!(one == other, "at {at}");
    }
}

#[test]
fn with_twenty_thousand_tables() {
    let fs = LoopFs::xfs(8 * GIB);
    let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let data = datadir(&fs);
    for number in 0..20_000 {
        fs::write(
            data.join(format!("many/table_{number:05}.MYD")),
            vec![number as u8; 9000],
        )
        .unwrap();
    }
    backup(&evenkeel, &fs, "20 000 files");
    backup(&evenkeel, &fs, "20 000 files again");
    restore(&evenkeel, &fs);
    assert_eq!(
        fs::read_dir(fs.join("restored/many")).unwrap().count(),
        20_000
    );
}
