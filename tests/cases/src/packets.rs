//! What runs on the network between a server and its clients, written to a file.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Packets of the loopback interface, while they are captured.
pub struct Packets(Child);

impl Packets {
    /// Begins to capture what goes to and from a port.
    pub fn of(port: u16, file: &Path) -> Self {
        let mut tcpdump = Command::new("tcpdump");
        tcpdump.args(["-i", "lo", "-s", "0", "-B", "65536", "-Z", "root", "-w"]);
        tcpdump.arg(file).arg(format!("tcp port {port}"));
        let mut child = tcpdump.stderr(Stdio::piped()).spawn().expect("tcpdump");
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("listening on") {
            assert_ne!(said.read_line(&mut line).unwrap(), 0, "{line}");
        }
        Self(child)
    }

    /// Ends when all packets so far are in the file.
    pub fn end(mut self) {
        std::thread::sleep(std::time::Duration::from_millis(1500));
        let pid = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        assert!(self.0.wait().unwrap().success());
    }
}
