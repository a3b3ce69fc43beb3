//! What a run said, without what is another in every run.

use super::TypedPath;
use serde_json::Value;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

/// What a run said on standard output, and how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Said {
    process: u32,
    pub(crate) code: Option<i32>,
    /// Whether there is something at the path afterwards.
    pub(crate) is_there: bool,
    pub(crate) text: String,
}

/// Values that are others each time: times, sizes of what is packed, names by chance.
const VARY: [&str; 14] = [
    "seconds",
    "time",
    "_s",
    "_ms",
    "created",
    "image_at",
    "saved",
    "disk_free",
    "bytes_stored",
    "bytes_copied",
    "bytes_freed",
    "recipient",
    "seed",
    // With a number made of the path.
    "kept_in",
];

impl Said {
    /// Runs it in the room. One that serves is told to end once it has said that it does.
    pub(crate) fn by(words: &[OsString], room: &Path, serves: bool) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("MYSQL_") {
                command.env_remove(name);
            }
        }
        command
            .env("HOME", room)
            .env("MYSQL_TEST_LOGIN_FILE", "/nonexistent")
            .current_dir(room)
            .arg("--json")
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut bytes = Vec::new();
        if serves && stdout.read_until(b'\n', &mut bytes).unwrap() > 0 {
            let pid = rustix::process::Pid::from_child(&child);
            // It may have ended by itself.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        stdout.read_to_end(&mut bytes).unwrap();
        Self {
            process: child.id(),
            code: child.wait().unwrap().code(),
            is_there: false,
            text: String::from_utf8_lossy(&bytes).into_owned(),
        }
    }

    /// The same with the path called PATH, the room ROOM, and nothing that varies.
    pub(crate) fn without(self, place: &TypedPath, room: &Path) -> Self {
        let documents = serde_json::Deserializer::from_str(&self.text).into_iter::<Value>();
        let text = match documents.collect::<Result<Vec<_>, _>>() {
            Ok(documents) => documents
                .into_iter()
                .map(|mut document| {
                    settle(&mut document);
                    serde_json::to_string_pretty(&document).unwrap() + "\n"
                })
                .collect(),
            Err(_) => self.text,
        };
        let text = text.replace(&format!("-{}", self.process), "-PROCESS");
        let mut names: Vec<(String, &str)> = [&place.real, &place.typed]
            .into_iter()
            .flat_map(|path| {
                let whole = room.join(path);
                [path.clone(), std::path::absolute(&whole).unwrap(), whole]
            })
            .map(|path| (path.display().to_string(), "PATH"))
            .collect();
        let name = place.real.file_name().unwrap().to_string_lossy();
        names.push((room.display().to_string(), "ROOM"));
        names.push((name.into_owned(), "NAME"));
        names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        let text = names
            .iter()
            .fold(text, |text, (name, called)| text.replace(name, called));
        Self {
            code: self.code,
            process: 0,
            is_there: place.real.exists(),
            text,
        }
    }
}

/// Takes out what varies.
fn settle(value: &mut Value) {
    match value {
        Value::Array(all) => all.iter_mut().for_each(settle),
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut() {
                let is_one = |vary: &&str| match vary.strip_prefix('_') {
                    Some(_) => name.ends_with(*vary),
                    None => name == *vary,
                };
                match value {
                    Value::Number(_) | Value::String(_) if VARY.iter().any(is_one) => {
                        *value = Value::Null;
                    }
                    other => settle(other),
                }
            }
        }
        _ => {}
    }
}
