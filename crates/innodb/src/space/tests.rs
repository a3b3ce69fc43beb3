use super::*;

fn page0(flags: u32) -> Vec<u8> {
    let mut page = vec![0; 16384];
    page[25] = 8;
    page[SPACE_ID + 3] = 7;
    page[DATA + 3] = 7;
    page[SIZE + 3] = 9;
    page[FLAGS..FLAGS + 4].copy_from_slice(&flags.to_be_bytes());
    page
}

fn checkable(flags: u32) -> SpaceFormat {
    match SpaceFormat::parse(&page0(flags)) {
        Probe::Checkable(format) => format,
        Probe::NotCheckable(why) => panic!("{flags:#x}: {why}"),
    }
}

fn refused(flags: u32) -> bool {
    matches!(SpaceFormat::parse(&page0(flags)), Probe::NotCheckable(_))
}

#[test]
fn full_crc32_flags() {
    let format = checkable(0x15);
    assert_eq!(format.checksum, ChecksumKind::FullCrc32);
    assert_eq!(format.physical_size(), 16384);
    assert_eq!((format.space_id, format.size_pages), (7, 9));
    assert!(!format.page_compressed);
    assert!(checkable(0x35).page_compressed);
    assert_eq!(checkable(0x17).physical_size(), 65536);
    assert!(refused(0x12), "2 KiB pages");
    assert!(refused(0xf5), "algorithm 7");
    assert!(refused(0x115), "bit 8");
}

#[test]
fn classic_flags() {
    assert_eq!(checkable(0).physical_size(), 16384);
    assert_eq!(checkable(0x21).checksum, ChecksumKind::Classic);
    assert_eq!(checkable(0x21 | 3 << 6).physical_size(), 4096);
    let zip = checkable(0x21 | 4 << 1);
    assert_eq!((zip.zip_size, zip.physical_size()), (Some(8192), 8192));
    assert!(checkable(0x21 | 1 << 13).encrypted);
    assert!(checkable(0x1_0021).page_compressed);
    assert!(!checkable(0x4021).encrypted, "SDI");
}

#[test]
fn contradictions_are_not_guessed_at() {
    assert!(refused(0x20), "long columns before the format had them");
    assert!(refused(0x01 | 4 << 1), "compressed without long columns");
    assert!(refused(0x21 | 5 << 6), "second spelling of 16 KiB");
    assert!(refused(0x21 | 5 << 1 | 3 << 6), "16 KiB inside 4 KiB pages");
    assert!(refused(0x8021), "bit 15");
    assert!(refused(0x2_0021), "bit 17");
    assert!(refused(0x21 | 8 << 6), "128 KiB pages");
}

#[test]
fn other_first_pages_say_why() {
    let why = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut page = page0(0x15);
        change(&mut page);
        match SpaceFormat::parse(&page) {
            Probe::NotCheckable(why) => why,
            Probe::Checkable(_) => panic!("accepted"),
        }
    };
    assert!(why(&|page| page.truncate(1000)).contains("shorter"));
    assert!(why(&|page| page.fill(0)).contains("never written"));
    assert!(why(&|page| page[PAGE_NO + 3] = 1).contains("not page 0"));
    assert!(why(&|page| page[TYPE + 1] = 9).contains("not a tablespace header"));
    assert!(why(&|page| page[DATA] = 1).contains("two different"));
}
