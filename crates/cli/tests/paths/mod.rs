//! A path in five spellings: made, typed, and taken out of what is said.

pub(crate) mod elsewhere;
mod fixture;
pub(crate) mod rows;
mod said;
mod server;

use evenkeel_testkit::effort::{Part, share};
use fixture::Fixture;
use rows::Row;
use said::Said;
use server::Server;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// How a path is spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spelling {
    Absolute,
    Relative,
    Blanks,
    Letters,
    Link,
}

const OTHERS: [Spelling; 4] = [
    Spelling::Relative,
    Spelling::Blanks,
    Spelling::Letters,
    Spelling::Link,
];

/// Each row by its number with each of the other spellings; in a sample with one, and its neighbours with others.
fn spellings(rows: usize) -> Vec<(usize, Spelling)> {
    let count = OTHERS.len();
    let of_row = |row: usize| (0..count).map(move |nth| (row, OTHERS[(row + nth) % count]));
    let all: Vec<_> = (0..rows).flat_map(of_row).collect();
    share("spellings of paths", &all, Part::new(0, count))
}

/// Runs every row in every spelling; panics with all that differ.
pub(crate) fn run_all(rows: &[Row]) {
    let fixture = Fixture::make();
    let spellings = spellings(rows.len());
    let mut wrong = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        let first = run(row, Spelling::Absolute, &fixture);
        if first.code != Some(row.code) || !first.text.contains(&row.reported) {
            wrong.push(format!("it ends otherwise: {row:#?}\n{first:#?}"));
            continue;
        }
        let others = spellings.iter().filter(|(of, _)| *of == number);
        for &(_, spelling) in others {
            let other = run(row, spelling, &fixture);
            if other != first {
                wrong.push(format!(
                    "{}, {spelling:?}: {other:#?}\nnot {first:#?}",
                    row.of
                ));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// Runs a row in a room of its own, in which nothing else is.
fn run(row: &Row, spelling: Spelling, fixture: &Fixture) -> Said {
    let room = tempfile::tempdir().unwrap();
    let room = room.path();
    let place = TypedPath::make(row, spelling, room, fixture);
    let words: Vec<OsString> = row
        .line
        .split_whitespace()
        .map(|word| match word.split_once("{}") {
            Some((before, after)) => {
                let mut whole = OsString::from(before);
                whole.push(&place.typed);
                whole.push(after);
                whole
            }
            None => fixture.filled(word, room).into(),
        })
        .collect();
    let _server = Server::at(&room.join("socket"));
    let said = Said::by(&words, room, row.serves());
    said.without(&place, room)
}

/// Where something is, and how that is typed.
pub(crate) struct TypedPath {
    pub(crate) real: PathBuf,
    pub(crate) typed: PathBuf,
    _server: Option<Server>,
}

impl TypedPath {
    fn make(row: &Row, spelling: Spelling, room: &Path, fixture: &Fixture) -> Self {
        let (folder, name) = match spelling {
            Spelling::Absolute | Spelling::Relative => ("place", "qwz"),
            Spelling::Blanks => ("two words", "q w z"),
            Spelling::Letters => ("Größe", "слово"),
            Spelling::Link => ("real", "qwz"),
        };
        let name = format!("{name}{}", row.suffix());
        let real = room.join(folder).join(&name);
        fs::create_dir(room.join(folder)).unwrap();
        let server = match row.there.as_str() {
            "-" => None,
            "socket" => Some(Server::at(&real)),
            what => {
                fixture.put(what, &real, room);
                None
            }
        };
        let typed = match spelling {
            Spelling::Relative => Path::new(".").join(folder).join(&name),
            // What is there is itself behind a link; what is not is in a directory that is.
            Spelling::Link if real.exists() => {
                let link = room.join(format!("link{}", row.suffix()));
                symlink(&real, &link).unwrap();
                link
            }
            Spelling::Link => {
                symlink(room.join(folder), room.join("link")).unwrap();
                room.join("link").join(&name)
            }
            _ => real.clone(),
        };
        Self {
            real,
            typed,
            _server: server,
        }
    }
}
