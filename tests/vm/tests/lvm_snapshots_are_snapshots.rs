//! Do thick and thin snapshots of LVM in the machine keep what their origin held, as those of a real
//! server's would?

use evenkeel_testkit::Lvm;
use std::fs::{File, read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

const MIB: u64 = 1 << 20;

/// Fills the first MiB of a device.
fn fill(device: &Path, byte: u8) {
    let open = File::options().write(true).open(device).expect("a device");
    open.write_all_at(&vec![byte; MIB as usize], 0)
        .expect("it can be written");
    open.sync_all().expect("it arrives");
}

/// Returns the byte that fills the first MiB of a device.
fn filling(device: &Path) -> u8 {
    let mut bytes = vec![0; MIB as usize];
    let open = File::open(device).expect("a device");
    open.read_exact_at(&mut bytes, 0).expect("it can be read");
    assert!(bytes.iter().all(|byte| *byte == bytes[0]));
    bytes[0]
}

#[test]
fn thick() {
    let lvm = Lvm::new("evk-thick");
    let origin = lvm.thick("data", 64 * MIB);
    fill(&origin, 1);
    let snapshot = lvm.thick_snapshot("data", "kept", 32 * MIB);
    fill(&origin, 2);
    assert_eq!((filling(&origin), filling(&snapshot)), (2, 1));
    assert_eq!(lvm.volumes(), ["data", "kept"]);
    lvm.remove("kept");
    assert_eq!(lvm.volumes(), ["data"]);
}

#[test]
fn a_thick_one_that_is_too_full_cannot_be_read() {
    let lvm = Lvm::new("evk");
    let origin = lvm.thick("data", 64 * MIB);
    let snapshot = lvm.thick_snapshot("data", "kept", 4 * MIB);
    let open = File::options().write(true).open(&origin).expect("a device");
    for at in 0..16 {
        open.write_all_at(&vec![3; MIB as usize], at * MIB)
            .expect("the origin never fails");
    }
    open.sync_all().expect("it arrives");
    let attributes = lvm.field("kept", "lv_attr");
    assert_eq!(attributes.as_bytes()[4], b'I', "invalid: {attributes}");
    assert!(read(&snapshot).is_err(), "what is lost is not made up");
}

#[test]
fn thin() {
    let lvm = Lvm::new("evk-thin");
    lvm.pool("pool", 128 * MIB, &["--chunksize=64k"]);
    let origin = lvm.thin("pool", "data", 96 * MIB);
    fill(&origin, 1);
    let snapshot = lvm.thin_snapshot("data", "kept");
    fill(&origin, 2);
    assert_eq!((filling(&origin), filling(&snapshot)), (2, 1));
    assert_eq!(lvm.volumes(), ["data", "kept", "pool"]);
}

/// What a backup has to know: thin_delta sees the chunks that differ, and no others.
#[test]
fn thin_volumes_tell_what_differs() {
    let lvm = Lvm::new("evk");
    lvm.pool("pool", 128 * MIB, &["--chunksize=64k"]);
    let origin = lvm.thin("pool", "data", 96 * MIB);
    fill(&origin, 1);
    let _ = lvm.thin_snapshot("data", "kept");
    let open = File::options().write(true).open(&origin).expect("a device");
    open.write_all_at(&[2; 4096], MIB / 2)
        .expect("it can be written");
    open.sync_all().expect("it arrives");
    let id = |volume| lvm.field(volume, "thin_id");
    let (old, new) = (id("kept"), id("data"));
    let pool = "/dev/mapper/evk-pool-tpool";
    let run = |program: &str, args: &[&str]| {
        let output = Command::new(program).args(args).output().expect(program);
        assert!(output.status.success(), "{program}: {output:?}");
        String::from_utf8(output.stdout).expect("text")
    };
    let message = |text| run("dmsetup", &["message", pool, "0", text]);
    message("reserve_metadata_snap");
    let metadata = "/dev/mapper/evk-pool_tmeta";
    let delta = run(
        "thin_delta",
        &["-m", "--snap1", &old, "--snap2", &new, metadata],
    );
    message("release_metadata_snap");
    let differs: Vec<&str> = delta
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with("<different") || line.contains("_only"))
        .collect();
    assert_eq!(differs, [r#"<different begin="8" length="1"/>"#], "{delta}");
}
