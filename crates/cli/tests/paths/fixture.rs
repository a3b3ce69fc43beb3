//! What command lines name besides the path: made once, and copied into the room of each run.

use super::server::Server;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is written into the room, with the places of what is in it.
const TEMPLATES: [(&str, &str); 4] = [
    ("client.cnf", "[client]\nsocket = {socket}\n"),
    ("server.cnf", "[mysqld]\ndatadir = {datadir}\n"),
    (
        "watched.toml",
        "[[server]]\nname = 'a'\nsocket = '{socket}'\n",
    ),
    (
        "fleet.toml",
        "[[server]]\nname = 'a'\nrepository = '{repository}'\n",
    ),
];

/// A capture without packets: the header of a file of Ethernet frames.
const CAPTURE: &[u8] = b"\xd4\xc3\xb2\xa1\x02\0\x04\0\0\0\0\0\0\0\0\0\0\0\x04\0\x01\0\0\0";

/// A certificate that nobody trusts, and its key.
const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----
MIIBczCCARmgAwIBAgIUIWJIv1L129ymtdOCQDyEeIY/mx0wCgYIKoZIzj0EAwIw
DjEMMAoGA1UEAwwDdGFwMCAXDTI2MTEyODE2NDg1NFoYDzIxMjYxMTA0MTY0ODU0
WjAOMQwwCgYDVQQDDAN0YXAwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAQLms94
eMBl/e1nq1bAfoyLx3SMB9gSqlRkdPUQmYA1QZzUvzuECEfR+1nvucXyMyEtiQgQ
JhGSG80daedYYfIso1MwUTAdBgNVHQ4EFgQUbjAxWxfqN9h8+vqO1NeUdSnSm6kw
HwYDVR0jBBgwFoAUbjAxWxfqN9h8+vqO1NeUdSnSm6kwDwYDVR0TAQH/BAUwAwEB
/zAKBggqhkjOPQQDAgNIADBFAiEAlul/f4+Ln0oGOLWHUVstYvDNDEudkhVL873K
CUcWiFoCID0flx9pWrjU98ycKxBx31r4no9Vf0+iT9r8v/JURqWC
-----END CERTIFICATE-----
";
const CERTIFICATE_KEY: &str = "-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgATxJGrRwGtsQbHLJ
lc0kI14htdxNDKDNZ4q/Hann8H2hRANCAAQLms94eMBl/e1nq1bAfoyLx3SMB9gS
qlRkdPUQmYA1QZzUvzuECEfR+1nvucXyMyEtiQgQJhGSG80daedYYfIs
-----END PRIVATE KEY-----
";

/// Four runs of a bench, as it tells them.
/// One entry of a server's slow query log.
const SLOW_LOG: &str = "# Time: 2026-11-28T08:17:15.762970Z
# User@Host: app[app] @ web1 []  Id:     7
# Query_time: 0.500000  Lock_time: 0.000096 Rows_sent: 2  Rows_examined: 9
SET timestamp=1795853835;
SELECT 1;
";

/// What `digest` answered once.
const DIGEST: &str =
    r#"{"schema": "evenkeel/digest/1", "fingerprints": "evenkeel", "classes": []}"#;

const RUNS: &str = r#"
{"schema": "evenkeel/bench-oltp/1", "transactions_per_s": 5.0, "p95_ms": 1.0, "p99_ms": 2.0}
{"schema": "evenkeel/bench-oltp/1", "transactions_per_s": 5.0, "p95_ms": 1.0, "p99_ms": 2.0}
{"schema": "evenkeel/bench-oltp/1", "transactions_per_s": 5.0, "p95_ms": 1.0, "p99_ms": 2.0}
{"schema": "evenkeel/bench-oltp/1", "transactions_per_s": 5.0, "p95_ms": 1.0, "p99_ms": 2.0}
"#;

/// Runs what it is told to on another host, here.
const SSH: &str = "#!/bin/sh\nfor last; do :; done\nexec sh -c \"$last\"\n";

/// As mydumper writes them.
const METADATA: &str = "Started dump at: 2026-01-01 00:00:00\n\
                        Finished dump at: 2026-01-01 00:00:01\n";
const SCHEMA: &str = "CREATE DATABASE /*!32312 IF NOT EXISTS*/ `shop` \
                      /*!40100 DEFAULT CHARACTER SET utf8mb4 */;\n";

pub(crate) struct Fixture {
    dir: tempfile::TempDir,
    /// Words by their names.
    words: BTreeMap<&'static str, String>,
    _server: Server,
}

impl Fixture {
    pub(crate) fn make() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let server = Server::on_a_port();
        let mut fixture = Self {
            words: BTreeMap::from([("port", server.port().to_string())]),
            dir,
            _server: server,
        };
        fixture.files();
        fixture.datadir();
        for (word, file) in [("recipient", "key"), ("other-recipient", "other-key")] {
            let made = fixture.run(&format!("keys generate --output {file}"));
            let made: serde_json::Value = serde_json::from_slice(&made).unwrap();
            let recipient = made["recipient"].as_str().unwrap();
            fixture.words.insert(word, recipient.to_owned());
        }
        let backup = "backup --no-defaults --snapshot=copy --volume=disk";
        fixture.run(&format!("{backup} repository"));
        fixture.run(&format!("{backup} encrypted --encrypt-to={{recipient}}"));
        fixture.run("url train urls --output table --table-size 64K --no-held-out");
        for (codes, table) in [("codes", ""), ("codes-of-table", "--table=table")] {
            let made = fixture.run(&format!("url compress urls {table}"));
            fs::write(fixture.at(codes), made).unwrap();
        }
        fixture
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn files(&self) {
        let urls = "https://example.com/\nhttps://example.com/a\n".repeat(50);
        let disk = [b"evenkeel".repeat(8192), vec![7; 1 << 16]].concat();
        for (name, content) in [
            ("disk", disk.as_slice()),
            ("empty", b""),
            ("library", b"\x7fELF and no more"),
            ("no-program", b"#!/bin/sh\necho nothing\n"),
            ("capture", CAPTURE),
            ("certificate", CERTIFICATE.as_bytes()),
            ("certificate-key", CERTIFICATE_KEY.as_bytes()),
            ("runs", RUNS.as_bytes()),
            ("ssh", SSH.as_bytes()),
            ("statements", b"SELECT 1;\n"),
            ("slow.log", SLOW_LOG.as_bytes()),
            ("digest.json", DIGEST.as_bytes()),
            ("urls", urls.as_bytes()),
        ] {
            fs::write(self.at(name), content).unwrap();
        }
        for program in ["no-program", "ssh"] {
            fs::set_permissions(self.at(program), fs::Permissions::from_mode(0o755)).unwrap();
        }
        fs::create_dir(self.at("directory")).unwrap();
        fs::create_dir(self.at("dump")).unwrap();
        fs::write(self.at("dump/metadata"), METADATA).unwrap();
        fs::write(self.at("dump/shop-schema-create.sql"), SCHEMA).unwrap();
    }

    /// The least that is taken for a stopped server's files.
    fn datadir(&self) {
        let datadir = self.dir.path().join("datadir");
        fs::create_dir(&datadir).unwrap();
        let mut header = vec![0; 4096];
        header[16..16 + 16].copy_from_slice(b"MariaDB 10.11.19");
        fs::write(datadir.join("ib_logfile0"), header).unwrap();
        fs::write(datadir.join("ibdata1"), vec![0; 1 << 16]).unwrap();
    }

    /// Runs a command that is to go well, where everything is made; returns what it says.
    fn run(&self, line: &str) -> Vec<u8> {
        let words = line.split_whitespace();
        let output = Command::new(env!("CARGO_BIN_EXE_evenkeel"))
            .current_dir(self.dir.path())
            .arg("--json")
            .args(words.map(|word| self.filled(word, self.dir.path())))
            .output()
            .unwrap();
        assert!(output.status.success(), "{line}: {output:?}");
        output.stdout
    }

    /// Puts a copy of something in a place in a room.
    pub(crate) fn put(&self, what: &str, place: &Path, room: &Path) {
        if let Some((_, text)) = TEMPLATES.iter().find(|(name, _)| *name == what) {
            return fs::write(place, self.filled(text, room)).unwrap();
        }
        let mut copy = Command::new("cp");
        let copied = copy.arg("-a").arg(self.at(what)).arg(place).status();
        assert!(copied.unwrap().success(), "{what}");
    }

    /// Returns a text with words in the places of their names: `{recipient}`; `{disk}` is a copy in the
    /// room, and what there is none of is a path in it that is free.
    pub(crate) fn filled(&self, text: &str, room: &Path) -> String {
        let mut whole = String::new();
        let mut rest = text;
        while let Some((before, name, after)) = next_name(rest) {
            whole += before;
            whole += &match self.words.get(name) {
                Some(word) => word.clone(),
                None => self.copy(name, room).display().to_string(),
            };
            rest = after;
        }
        whole + rest
    }

    fn copy(&self, name: &str, room: &Path) -> PathBuf {
        let place = room.join(name);
        if !place.exists() && self.at(name).exists() {
            self.put(name, &place, room);
        }
        place
    }
}

/// Splits a text at the first `{name}`.
fn next_name(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once('{')?;
    let (name, after) = rest.split_once('}')?;
    Some((before, name, after))
}
