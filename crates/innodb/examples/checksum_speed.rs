//! Prints how fast pages are checked, in GB/s of one core: files as arguments, read into memory
//! first. `cargo run --release -p evenkeel-innodb --example checksum_speed -- FILE…`

use evenkeel_innodb::{Probe, SpaceFormat, verify};
use std::fs::File;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for path in std::env::args().skip(1) {
        let Probe::Checkable(format) = SpaceFormat::of_file(&File::open(&path)?)? else {
            println!("{path}: not checkable");
            continue;
        };
        let bytes = std::fs::read(&path)?;
        let rounds = (1 << 31) / bytes.len().max(1) + 1;
        let start = Instant::now();
        let mut bad = 0;
        for _ in 0..rounds {
            let pages = bytes.chunks_exact(format.physical_size()).zip(0..);
            bad += pages
                .filter(|(page, no)| verify(page, *no, &format).is_corrupt())
                .count();
        }
        let seconds = start.elapsed().as_secs_f64();
        let speed = (rounds * bytes.len()) as f64 / seconds / 1e9;
        println!("{path}: {:?}, {speed:.1} GB/s, {bad} bad", format.checksum);
    }
    Ok(())
}
