//! Merges what the environment, option files, the login path and the command line say, and
//! remembers who said it.

use super::merge::Merge;
use super::sources::{Origin, Resolved, Setting, Sources};
use super::{CONNECT_TIMEOUT, ConnectOptions, Secret, ServerKey, SslMode, keys, login_name};
use crate::connect::socket_path;
use crate::option_file::{self, OptionLine};
use evenkeel_op::{Error, Result};
use std::path::PathBuf;
use std::time::Duration;

/// Groups of option files that say how to reach a server, besides evenkeel's own.
const CLIENT_GROUPS: [&str; 3] = ["client", "client-server", "client-mariadb"];

/// Works out how to connect, for a verb that reads the groups of `verbs`, its own last: what that says
/// holds against the others, wherever in the files both stand. `known` are the names (with `-`) that the
/// `[evenkeel]` groups may hold besides the connection's: those of all verbs.
///
/// Errors: `Usage` for an unknown name in an `[evenkeel]` group, a value that makes no sense, or an
/// option file that the MySQL programs would refuse.
pub fn resolve(sources: &Sources, verbs: &[&str], known: &[&str]) -> Result<Resolved> {
    let own: Vec<String> = verbs
        .iter()
        .map(|verb| format!("evenkeel-{verb}"))
        .collect();
    let own: Vec<&str> = own.iter().map(String::as_str).collect();
    let groups = [&CLIENT_GROUPS[..], &["evenkeel"], &own].concat();
    let files = option_file::read(&sources.defaults, &groups)?;
    let mut merge = Merge {
        warnings: files.warnings,
        ..Merge::default()
    };
    merge.all_given(&sources.environment, &Origin::Environment);
    for option in &files.options {
        merge.line(strongest(option, &files.options, &own).clone(), known)?;
    }
    merge.login_path(sources)?;
    merge.all_given(&sources.given, &Origin::CommandLine);
    merge.finish()
}

impl Merge {
    fn parsed<T>(&self, key: &str, read: impl Fn(&str) -> Option<T>) -> Result<Option<T>> {
        let Some(text) = self.text(key) else {
            return Ok(None);
        };
        read(&text).map(Some).ok_or_else(|| {
            Error::usage(format!("'{text}' is not a value for {key}"))
                .hint(format!("it comes from: {}", self.origin(key)))
        })
    }

    /// Makes sense of what was said.
    fn finish(self) -> Result<Resolved> {
        let path = |key| self.text(key).map(PathBuf::from);
        let timeout = self.parsed("connect-timeout", |text| {
            let seconds = text.parse().ok()?;
            Duration::try_from_secs_f64(seconds).ok()
        })?;
        let mut connect = ConnectOptions {
            host: self.text("host").filter(|host| !host.is_empty()),
            port: self.parsed("port", |text| text.parse().ok())?,
            socket: path("socket"),
            user: self.text("user"),
            password: self
                .text("password")
                .filter(|password| !password.is_empty())
                .map(Secret::new),
            ssl_mode: SslMode::default(),
            ssl_ca: path("ssl-ca"),
            ssl_cert: path("ssl-cert"),
            ssl_key: path("ssl-key"),
            // As the MySQL clients: a file goes before asking.
            server_key: match (
                path("server-public-key-path"),
                self.text("get-server-public-key"),
            ) {
                (Some(path), _) => ServerKey::File(path),
                (None, Some(_)) => ServerKey::Asked,
                (None, None) => ServerKey::Unsaid,
            },
            // The MySQL programs take 0 for no limit; a day is one that nobody waits for.
            connect_timeout: match timeout {
                Some(Duration::ZERO) => Duration::from_secs(86_400),
                Some(timeout) => timeout,
                None => CONNECT_TIMEOUT,
            },
            packet_max: None,
        };
        self.protocol(&mut connect)?;
        let mode = self.parsed("ssl-mode", |text| text.parse().ok())?;
        connect.ssl_mode = match mode {
            Some(mode) => mode,
            // As the MySQL clients: who names an authority wants it asked.
            None if connect.ssl_ca.is_some() && !connect.means_socket() => SslMode::VerifyCa,
            None => SslMode::Preferred,
        };
        let ask_password = matches!(self.connection.get("password"), Some((None, _)));
        let mut settings = self.shown(&connect);
        settings.extend(
            self.own
                .iter()
                .map(|(key, option)| own_setting(key, option)),
        );
        Ok(Resolved {
            connect,
            ask_password,
            settings,
            own: self.own,
            warnings: self.warnings,
        })
    }

    fn protocol(&self, connect: &mut ConnectOptions) -> Result<()> {
        match self.text("protocol").map(|p| p.to_ascii_uppercase()) {
            None => {}
            Some(protocol) if protocol == "TCP" && connect.means_socket() => {
                connect.host = Some("127.0.0.1".to_owned());
            }
            Some(protocol) if protocol == "TCP" => {}
            Some(protocol) if protocol == "SOCKET" => connect.host = None,
            Some(other) => {
                return Err(Error::usage(format!("protocol {other} is not supported"))
                    .hint("use TCP or SOCKET"));
            }
        }
        Ok(())
    }

    fn shown(&self, connect: &ConnectOptions) -> Vec<Setting> {
        let path = |path: &Option<PathBuf>| {
            let shown = path.as_ref().map(|p| p.display().to_string());
            shown.unwrap_or_default()
        };
        let socket = connect.means_socket();
        let host = connect
            .host
            .clone()
            .unwrap_or_else(|| "localhost".to_owned());
        let place = if socket {
            ("socket", socket_path(connect).display().to_string())
        } else {
            ("port", connect.port.unwrap_or(3306).to_string())
        };
        let secret = connect.password.as_ref().map_or("", |_| "***");
        let timeout = connect.connect_timeout.as_secs_f64().to_string();
        [
            ("host", host),
            place,
            ("user", connect.user.clone().unwrap_or_else(login_name)),
            ("password", secret.to_owned()),
            ("ssl-mode", connect.ssl_mode.name().to_owned()),
            ("ssl-ca", path(&connect.ssl_ca)),
            ("ssl-cert", path(&connect.ssl_cert)),
            ("ssl-key", path(&connect.ssl_key)),
            ("connect-timeout", timeout),
        ]
        .map(|(name, value_shown)| Setting {
            name: name.to_owned(),
            value_shown,
            origin: self.origin(name),
        })
        .into()
    }
}

/// Returns what holds in the place of a line of one verb's group: what a later verb's group says of the same,
/// if it does.
fn strongest<'a>(option: &'a OptionLine, all: &'a [OptionLine], groups: &[&str]) -> &'a OptionLine {
    let rank = |one: &OptionLine| {
        let group = one.group.to_ascii_lowercase();
        // A suffix may stand behind it.
        groups.iter().rposition(|known| group.starts_with(known))
    };
    let name = |one: &OptionLine| keys::Name::of(&one.name).key;
    let (of, what) = (rank(option), name(option));
    let stronger = |one: &&OptionLine| of.is_some() && rank(one) > of && name(one) == what;
    all.iter().rfind(stronger).unwrap_or(option)
}

fn own_setting(key: &str, option: &OptionLine) -> Setting {
    let value = option.value.clone().unwrap_or_default();
    Setting {
        name: key.to_owned(),
        value_shown: if keys::is_secret(key) {
            "***".to_owned()
        } else {
            value
        },
        origin: Origin::File {
            path: option.file.clone(),
            line: option.line,
            group: option.group.clone(),
        },
    }
}

#[cfg(test)]
mod tests;
