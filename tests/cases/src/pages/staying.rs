//! Commands that stay in the foreground, each in a terminal of its own, so to speak.

use crate::house::House;
use std::fs;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// One of them.
#[derive(Debug)]
pub(super) struct Staying {
    line: String,
    child: Child,
    /// Files of the house: its process id, what it printed, what it said.
    files: [String; 3],
    /// The last two as the test sees them.
    paths: [std::path::PathBuf; 2],
}

impl Staying {
    pub(super) fn start(house: &House, environment: &str, line: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let files = ["pid", "out", "err"].map(|end| format!("/var/log/staying-{number}.{end}"));
        let [pid, out, err] = &files;
        let shell = format!("{environment}\necho $$ >{pid}\nexec {line} >{out} 2>{err}");
        let mut command = house.command(&shell);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Self {
            line: line.to_owned(),
            child: child.expect("nsenter runs"),
            paths: [house.path(out), house.path(err)],
            files,
        }
    }

    pub(super) fn line(&self) -> &str {
        &self.line
    }

    pub(super) fn printed(&self) -> (String, String) {
        let [out, err] = self
            .paths
            .each_ref()
            .map(|path| fs::read_to_string(path).unwrap_or_default());
        (out, err)
    }

    #[track_caller]
    pub(super) fn wait(&self, house: &House, ready: &str) {
        let pid = &self.files[0];
        // One that has ended will never be.
        house.until(&format!(
            "({ready}) || (test -s {pid} && ! kill -0 $(cat {pid}))"
        ));
        assert!(
            house.output(ready).status.success(),
            "{} has ended: {:?}",
            self.line,
            self.printed()
        );
    }

    #[track_caller]
    pub(super) fn stop(mut self, house: &House, code: i32) {
        house.run(&format!("kill -TERM $(cat {})", self.files[0]));
        let status = self.child.wait().expect("a child");
        assert_eq!(
            status.code(),
            Some(code),
            "{}: {:?}",
            self.line,
            self.printed()
        );
    }
}
