//! A private SeaweedFS on loopback: a real S3 server.

use crate::servers::cache;
use crate::{Scratch, until};
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// The version that `testkit/setup` fetches.
const VERSION: &str = "4.48";

/// A running server with one bucket.
#[derive(Debug)]
pub struct Seaweed {
    server: Child,
    s3: u16,
    filer: u16,
    /// What it makes outside its directory.
    sockets: Vec<PathBuf>,
    _scratch: Scratch,
}

impl Seaweed {
    /// The bucket.
    pub const BUCKET: &str = "backups";
    /// Who may do everything.
    pub const KEY: &str = "evenkeel-test";
    /// Who may read and list, and no more.
    pub const READER: &str = "evenkeel-reader";
    /// The secret of either key.
    pub const SECRET: &str = "not-a-secret";

    /// Starts it and makes the bucket.
    #[must_use]
    pub fn start() -> Self {
        let scratch = Scratch::new();
        let identities = format!(
            r#"{{"identities":[{{"name":"test","credentials":[{{"accessKey":"{}","secretKey":"{}"}}],
               "actions":["Admin","Read","Write","List","Tagging"]}},
               {{"name":"reader","credentials":[{{"accessKey":"{}","secretKey":"{}"}}],
               "actions":["Read","List"]}}]}}"#,
            Self::KEY,
            Self::SECRET,
            Self::READER,
            Self::SECRET
        );
        let config = scratch.join("identities.json");
        fs::write(&config, identities).expect("a file");
        let data = scratch.join("data");
        fs::create_dir(&data).expect("a directory");
        let [master, volume, filer, s3] = free_ports();
        // It ends with the test, also with a killed one.
        let mut server = Command::new("setpriv")
            .args(["--pdeathsig", "KILL"])
            .arg(Self::program())
            .arg("-logtostderr")
            .arg("server")
            .arg(format!("-dir={}", data.display()))
            .args(["-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-filer", "-s3"])
            .args(["-volume.max=100", "-master.volumeSizeLimitMB=1024"])
            .args([
                "-master.telemetry=false",
                "-s3.port.iceberg=0",
                "-s3.port.lance=0",
            ])
            .arg(format!(
                "-filer.localSocket={}/filer",
                scratch.path().display()
            ))
            .arg(format!("-s3.localSocket={}/s3", scratch.path().display()))
            .arg(format!("-master.port={master}"))
            .arg(format!("-volume.port={volume}"))
            .arg(format!("-filer.port={filer}"))
            .arg(format!("-s3.port={s3}"))
            .arg(format!("-s3.config={}", config.display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(scratch.join("log")).expect("a file"))
            .spawn()
            .expect("setpriv is there");
        let bucket = format!("POST /buckets/{}/ HTTP/1.1", Self::BUCKET);
        let log = scratch.join("log");
        until("SeaweedFS answers", || {
            let ended = server.try_wait().expect("a child");
            let log = || fs::read_to_string(&log).unwrap_or_default();
            assert!(ended.is_none(), "SeaweedFS ended: {}", log());
            ask(s3, "GET / HTTP/1.1").is_some()
                && ask(filer, &bucket).is_some_and(|answer| answer.contains(" 201 "))
        });
        Self {
            server,
            s3,
            filer,
            sockets: sockets([
                ("master", master),
                ("volume", volume),
                ("filer", filer),
                ("s3", s3),
            ]),
            _scratch: scratch,
        }
    }

    /// Returns the program. Panics when it is missing.
    #[must_use]
    pub fn program() -> PathBuf {
        let program = cache().join(format!("seaweedfs-{VERSION}/weed"));
        assert!(
            program.exists(),
            "{} is not there: run testkit/setup",
            program.display()
        );
        program
    }

    /// Returns the port that speaks S3.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.s3
    }

    /// Returns the uploads in parts that nobody has completed or given up.
    #[must_use]
    pub fn uploads(&self) -> Vec<String> {
        let folder = format!("/buckets/{}/.uploads/", Self::BUCKET);
        let line = format!("GET {folder}?limit=1000 HTTP/1.1\r\nAccept: application/json");
        let answer = ask(self.filer, &line).expect("an answer");
        let named = answer.split("\"FullPath\":").skip(1);
        named.map(|rest| rest.chars().take(80).collect()).collect()
    }

    /// Returns what S3 programs want in their environment to use it through `port`: its own, or a
    /// proxy's.
    #[must_use]
    pub fn environment(port: u16) -> Vec<(String, String)> {
        [
            ("AWS_ACCESS_KEY_ID", Self::KEY.to_owned()),
            ("AWS_SECRET_ACCESS_KEY", Self::SECRET.to_owned()),
            ("AWS_REGION", "us-east-1".to_owned()),
            ("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{port}")),
            ("AWS_ALLOW_HTTP", "true".to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }
}

impl Drop for Seaweed {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
        for socket in &self.sockets {
            let _ = fs::remove_file(socket);
        }
    }
}

/// Where it puts these, nobody can say.
fn sockets(services: [(&str, u16); 4]) -> Vec<PathBuf> {
    let each =
        services.map(|(name, port)| format!("/tmp/seaweedfs-{name}-grpc-{}.sock", port + 10_000));
    each.into_iter().map(PathBuf::from).collect()
}

/// Its other ports are these and 10 000 more: all below those that the kernel gives to whoever
/// connects somewhere.
fn free_ports() -> [u16; 4] {
    let is_free = |port: u16| {
        [port, port + 10_000]
            .iter()
            .all(|&port| TcpListener::bind(("127.0.0.1", port)).is_ok())
    };
    // Tests that run at the same time begin elsewhere.
    let begin = 11_000 + (std::process::id() % 2_500) as u16 * 4;
    let all = (begin..22_000).chain(11_000..begin);
    let mut found = all.filter(|&port| is_free(port));
    std::array::from_fn(|_| found.next().expect("free ports"))
}

/// Sends a request without a body and returns the answer, if there is one.
fn ask(port: u16, line: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    write!(
        stream,
        "{line}\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )
    .ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}
