//! Are clones made during a pause from one point in time, while many threads write with direct I/O?
//!
//! Each writer thread writes a number to its first file and then, when that is done, to its second.
//! At every instant the first is equal or one ahead. Clones made one after the other without a
//! pause find the second ahead almost always.

use evenkeel_snapshot::pause::{Target, paused};
use evenkeel_snapshot::{Layout, Method, Sealed, Settings, SourceFile, open};
use evenkeel_testkit::{LoopFs, until};
use rustix::fs::{Mode, OFlags};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const WRITERS: usize = 6;
const BLOCK: usize = 4096;

#[repr(align(4096))]
struct Block([u8; BLOCK]);

fn write_on_and_on(directory: &Path, writer: usize) {
    let open = |which: &str| {
        let path = directory.join(format!("{which}{writer}.ibd"));
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::DIRECT;
        File::from(rustix::fs::open(path, flags, Mode::from_raw_mode(0o600)).unwrap())
    };
    let (first, second) = (open("a"), open("b"));
    let mut block = Box::new(Block([0; BLOCK]));
    for number in 1u64.. {
        for bytes in block.0.chunks_exact_mut(8) {
            bytes.copy_from_slice(&number.to_le_bytes());
        }
        first.write_all_at(&block.0, 0).unwrap();
        second.write_all_at(&block.0, 0).unwrap();
    }
}

/// The server, which the tests stop; nothing unless one of them started it.
#[test]
fn server() {
    let Ok(directory) = std::env::var("SERVER_DIRECTORY") else {
        return;
    };
    let directory = Path::new(&directory);
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            scope.spawn(move || write_on_and_on(directory, writer));
        }
    });
}

struct Server(Child);

impl Server {
    fn start(directory: &Path) -> Self {
        fs::create_dir(directory).unwrap();
        let server = Self(
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "server"])
                .env("SERVER_DIRECTORY", directory)
                .stdout(Stdio::null())
                .spawn()
                .unwrap(),
        );
        let last = SourceFile {
            name: String::new(),
            path: directory.join("b0.ibd"),
        };
        until("the server writes", || {
            (0..WRITERS).all(|writer| {
                let path = last.path.with_file_name(format!("b{writer}.ibd"));
                path.metadata().is_ok_and(|facts| facts.len() > 0)
            })
        });
        server
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

fn files(directory: &Path, which: &str) -> Vec<SourceFile> {
    let file = |writer| SourceFile {
        name: format!("data/{which}{writer}.ibd"),
        path: directory.join(format!("{which}{writer}.ibd")),
    };
    (0..WRITERS).map(file).collect()
}

/// Returns the number in a frozen file; panics if it holds more than one.
fn number(run: &Sealed, file: &SourceFile) -> u64 {
    let bytes = fs::read(run.frozen_path(file)).unwrap();
    let mut numbers = bytes
        .chunks_exact(8)
        .map(|c| u64::from_le_bytes(c.try_into().unwrap()));
    let first = numbers.next().unwrap();
    assert!(
        numbers.all(|number| number == first),
        "{} is torn",
        file.name
    );
    first
}

/// Clones all first files and then all second ones, and returns how many pairs were point-in-time consistent.
fn pairs_of_one_instant(server: &Server, directory: &Path, pause: bool) -> usize {
    let layout = Layout {
        datadir: directory.to_owned(),
        dirs: vec![],
        server_running: true,
        page_bytes: 16384,
        volumes: Vec::new(),
    };
    let mut run = open(Method::Reflink, &layout, &Settings::default(), None).unwrap();
    let (first, second) = (files(directory, "a"), files(directory, "b"));
    let mut take = || {
        run.take(&first)?;
        run.take(&second)
    };
    if pause {
        let target = Target::now(server.0.id() as i32).unwrap();
        paused(&target, Duration::from_secs(30), take).unwrap();
    } else {
        take().unwrap();
    }
    let made = run.instant().unwrap();
    let run = run.seal(made).unwrap();
    let pairs = first.iter().zip(&second);
    pairs
        .filter(|(first, second)| {
            let (first, second) = (number(&run, first), number(&run, second));
            first == second || first == second + 1
        })
        .count()
}

fn rounds(fs: &LoopFs) {
    let directory = fs.join("mysql");
    let server = Server::start(&directory);
    for round in 0..20 {
        let sound = pairs_of_one_instant(&server, &directory, true);
        assert_eq!(sound, WRITERS, "{} round {round}", fs.kind());
    }
    // The proof that the above can fail.
    until("clones without a pause are of several instants", || {
        pairs_of_one_instant(&server, &directory, false) < WRITERS
    });
}

#[test]
fn on_xfs() {
    rounds(&LoopFs::xfs(320 << 20));
}

#[test]
fn on_btrfs() {
    rounds(&LoopFs::btrfs(400 << 20));
}
