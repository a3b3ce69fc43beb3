//! Hands the connection to a tool: in an option file that is only in memory, so that the password is
//! in no argument, no environment and on no disk.

use evenkeel_op::paths::absolute;
use evenkeel_op::{Context, Error, Result};
use evenkeel_server::options::{ConnectOptions, SslMode};
use rustix::fs::{MemfdFlags, Mode};
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::Path;

/// An option file that lasts as long as this does.
#[derive(Debug)]
pub(crate) struct OptionFile {
    file: File,
}

impl OptionFile {
    /// Writes what a tool needs to reach the server.
    pub(crate) fn of(connect: &ConnectOptions) -> Result<Self> {
        let memory = rustix::fs::memfd_create("evenkeel-client", MemfdFlags::CLOEXEC)
            .context(|| "failed to create a file in memory")?;
        // Born for everybody to write; such a file the tools do not read.
        rustix::fs::fchmod(&memory, Mode::RUSR | Mode::WUSR)
            .context(|| "failed to set the mode of a file in memory")?;
        let mut file = File::from(memory);
        file.write_all(text(connect)?.as_bytes())
            .context(|| "failed to write a file in memory")?;
        Ok(Self { file })
    }

    /// Returns the option that names it. The path leads through this process, so that the tool can
    /// open it afresh, again and again, and nobody else's process inherits it.
    pub(crate) fn option(&self) -> String {
        format!(
            "--defaults-file=/proc/{}/fd/{}",
            std::process::id(),
            self.file.as_raw_fd()
        )
    }
}

fn text(connect: &ConnectOptions) -> Result<String> {
    let mut lines = String::from("[client]\n");
    let mut line = |name: &str, value: &str| -> Result<()> {
        lines.push_str(&format!("{name}={}\n", quoted(name, value)?));
        Ok(())
    };
    let local = matches!(connect.host.as_deref(), None | Some("localhost"));
    match (&connect.host, &connect.socket) {
        (Some(host), _) if !local => line("host", host)?,
        // The tool works in a directory of its own.
        (_, Some(socket)) => line("socket", path(&absolute(socket))?)?,
        _ => {}
    }
    if let Some(port) = connect.port.filter(|_| !local) {
        line("port", &port.to_string())?;
    }
    if let Some(user) = &connect.user {
        line("user", user)?;
    }
    if let Some(password) = &connect.password {
        line("password", password.reveal())?;
    }
    let files = [
        ("ssl-ca", &connect.ssl_ca),
        ("ssl-cert", &connect.ssl_cert),
        ("ssl-key", &connect.ssl_key),
    ];
    for (name, value) in files {
        if let Some(value) = value {
            line(name, path(&absolute(value))?)?;
        }
    }
    match connect.ssl_mode {
        SslMode::Disabled => lines.push_str("skip-ssl\n"),
        SslMode::Preferred => {}
        SslMode::Required | SslMode::VerifyCa => lines.push_str("ssl\n"),
        SslMode::VerifyIdentity => lines.push_str("ssl\nssl-verify-server-cert\n"),
    }
    Ok(lines)
}

fn path(path: &Path) -> Result<&str> {
    path.to_str()
        .ok_or_else(|| Error::refused(format!("{} is not text", path.display())))
}

/// Writes a value as it reads back: in quotes, so that `#` is no comment and spaces stay.
fn quoted(name: &str, value: &str) -> Result<String> {
    let mut out = String::from("\"");
    for sign in value.chars() {
        match sign {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            // It would end the line.
            '\0' => return Err(Error::refused(format!("the {name} holds a NUL"))),
            _ => out.push(sign),
        }
    }
    out.push('"');
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_server::options::Secret;
    use std::process::Command;

    fn connect(password: &str) -> ConnectOptions {
        ConnectOptions {
            socket: Some("/run/a b#/s".into()),
            user: Some("the user".to_owned()),
            password: Some(Secret::new(password)),
            ..ConnectOptions::default()
        }
    }

    /// What MariaDB's own reader of option files makes of it.
    fn read_back(file: &OptionFile) -> Vec<String> {
        let output = Command::new("my_print_defaults")
            .args([file.option().as_str(), "client"])
            .output()
            .expect("my_print_defaults: run testkit/setup");
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn the_servers_own_programs_read_what_was_meant() {
        for password in [
            "plain",
            "a#b",
            "a \"quoted\" 'word'",
            "back\\slash\\n",
            " ends ",
            "é;=!",
        ] {
            let file = OptionFile::of(&connect(password)).unwrap();
            assert!(!file.option().contains("plain"));
            let found = read_back(&file);
            let expected = ["--socket=/run/a b#/s", "--user=the user"].map(str::to_owned);
            assert_eq!(found[..2], expected, "{password}");
            assert_eq!(found[2], format!("--password={password}"));
            // Opened afresh each time, as the tools do.
            assert_eq!(read_back(&file), found);
        }
    }

    #[test]
    fn a_relative_socket_is_found_from_anywhere() {
        let mut connect = connect("x");
        connect.socket = Some("run/s".into());
        let whole = std::env::current_dir().unwrap().join("run/s");
        let expected = format!("--socket={}", whole.display());
        assert_eq!(read_back(&OptionFile::of(&connect).unwrap())[0], expected);
    }

    #[test]
    fn a_host_is_reached_over_tcp_with_the_wanted_security() {
        let mut connect = connect("x");
        connect.host = Some("127.0.0.1".to_owned());
        connect.port = Some(3307);
        connect.ssl_mode = SslMode::VerifyIdentity;
        connect.ssl_ca = Some("/ca.pem".into());
        let text = text(&connect).unwrap();
        for line in [
            "host=\"127.0.0.1\"",
            "port=\"3307\"",
            "ssl-ca=\"/ca.pem\"",
            "ssl-verify-server-cert",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
        assert!(!text.contains("socket"));
        assert!(text.contains("[client]"));
        assert!(super::text(&super::tests::connect("a\0b")).is_err());
    }
}
