//! Does a backup of a busy server by a snapshot of its logical volume restore to exactly what was
//! committed, and does the next one read only what the thin pool says has changed?

use evenkeel_testkit::Marks;
use evenkeel_vm::{Case, VolumeKind};

/// A generation: its number, and the bank before and after it.
type Taken = (u32, Marks, Marks);

/// A full and two incremental generations under traffic, then restore and boot of each.
fn case(kind: VolumeKind, filesystem: &'static str) {
    let case = Case::start(kind, filesystem);
    let traffic = case.traffic();
    let mut taken: Vec<Taken> = Vec::new();
    let mut everything = 0;
    // The second reads everything and holds what the pool says against it.
    for flags in [&[][..], &["--audit"], &[]] {
        traffic.wait_for(20);
        let before = traffic.marks();
        let ended = case.back_up(flags);
        assert_eq!(ended.answer["snapshot"], "lvm", "{ended:?}");
        assert_eq!(ended.answer["pages_corrupt"], 0, "{ended:?}");
        taken.push((ended.generation(), before, traffic.marks()));
        let number = |name: &str| ended.answer[name].as_u64().expect(name);
        // Holes are not read.
        let read = number("bytes_read");
        everything = everything.max(read);
        match (kind, taken.len()) {
            (VolumeKind::Thin(_), 3) => assert!(read < everything / 2, "{read} of {everything}"),
            _ => assert!(read > everything / 2, "{read} of {everything}"),
        }
        let kept = case.snapshots();
        match kind {
            VolumeKind::Thin(_) => assert_eq!(kept.len(), 1, "the base of the next: {kept:?}"),
            VolumeKind::Thick => assert_eq!(kept, [""; 0], "it would slow the server down"),
        }
    }
    traffic.assert_undisturbed();
    drop(traffic.stop());
    for (generation, before, after) in &taken {
        case.check(Some(*generation), before, after);
    }
}

#[test]
fn thick_ext4() {
    case(VolumeKind::Thick, "ext4");
}
