//! Collects what everybody says about a connection, weakest first.

use super::SslMode;
use super::keys::{self, Name};
use super::sources::{Given, Origin, Sources};
use crate::login_path;
use crate::option_file::OptionLine;
use evenkeel_op::{Error, Result};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A value and who said it; `None` for an option without a value.
pub(super) type Said = (Option<String>, Origin);

/// What was said so far; whoever speaks later wins.
#[derive(Default)]
pub(super) struct Merge {
    pub(super) connection: BTreeMap<&'static str, Said>,
    pub(super) own: BTreeMap<String, OptionLine>,
    pub(super) warnings: Vec<String>,
}

impl Merge {
    /// Takes what was given one by one.
    pub(super) fn all_given(&mut self, given: &Given, origin: &Origin) {
        let path = |path: &Option<PathBuf>| path.as_ref().map(|p| p.display().to_string());
        let secret = given.password.as_ref().map(|s| s.reveal().to_owned());
        for (key, value) in [
            ("host", given.host.clone()),
            ("port", given.port.map(|port| port.to_string())),
            ("socket", path(&given.socket)),
            ("user", given.user.clone()),
            ("password", secret),
            ("protocol", given.protocol.clone()),
            (
                "ssl-mode",
                given.ssl_mode.map(|mode| mode.name().to_owned()),
            ),
            ("ssl-ca", path(&given.ssl_ca)),
            ("ssl-cert", path(&given.ssl_cert)),
            ("ssl-key", path(&given.ssl_key)),
            (
                "connect-timeout",
                given.connect_timeout.map(|t| t.as_secs_f64().to_string()),
            ),
        ] {
            if let Some(value) = value {
                self.say(key, Some(value), origin.clone());
            }
        }
    }

    fn say(&mut self, key: &'static str, value: Option<String>, origin: Origin) {
        self.connection.insert(key, (value, origin));
    }

    /// Takes one line of an option file.
    pub(super) fn line(&mut self, option: OptionLine, known: &[&str]) -> Result<()> {
        let name = Name::of(&option.name);
        let origin = Origin::File {
            path: option.file.clone(),
            line: option.line,
            group: option.group.clone(),
        };
        if let Some(key) = connection_key(&name.key) {
            self.connection_option(key, option.value, name.negated, origin);
            return Ok(());
        }
        let dashed = option.name.replace('_', "-");
        let ours = option.group.to_ascii_lowercase().starts_with("evenkeel");
        if !ours {
            // Meant for another program.
            return Ok(());
        }
        // "skip-" may be part of a name of ours, but turns none of ours round.
        let plain = if name.negated { &dashed } else { &name.key };
        if let Some(own) = [&dashed, plain]
            .into_iter()
            .find(|own| known.contains(&own.as_str()))
        {
            self.own.insert(own.to_owned(), option);
        } else if !name.loose {
            return Err(unknown(&option, &name.key, known));
        }
        Ok(())
    }

    fn connection_option(
        &mut self,
        key: &'static str,
        value: Option<String>,
        negated: bool,
        origin: Origin,
    ) {
        let on = !negated && value.as_deref().is_none_or(is_on);
        let before = self
            .text("ssl-mode")
            .and_then(|mode| mode.parse::<SslMode>().ok());
        // MariaDB's switches, in terms of ssl-mode. Neither undoes the other: a file may well turn
        // verification on first and TLS after it.
        let mode = match (key, on) {
            ("ssl", true) => before.max(Some(SslMode::Required)),
            ("ssl", false) => Some(SslMode::Disabled),
            ("ssl-verify-server-cert", true) => Some(SslMode::VerifyIdentity),
            ("ssl-verify-server-cert", false) => before.min(Some(SslMode::Required)),
            ("get-server-public-key", on) => {
                return self.say(key, on.then(String::new), origin);
            }
            _ => return self.say(key, value, origin),
        };
        if let Some(mode) = mode.filter(|mode| Some(*mode) != before) {
            self.say("ssl-mode", Some(mode.name().to_owned()), origin);
        }
    }

    /// Takes what the login path file says.
    pub(super) fn login_path(&mut self, sources: &Sources) -> Result<()> {
        let Some(file) = &sources.login_file else {
            return Ok(());
        };
        let named = sources.login_path.clone().or(self.text("login-path"));
        let mut groups: Vec<String> = std::iter::once("client".to_owned()).chain(named).collect();
        if let Some(suffix) = &sources.defaults.group_suffix {
            let more: Vec<_> = groups.iter().map(|g| format!("{g}{suffix}")).collect();
            groups.extend(more);
        }
        let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
        let found = login_path::read(file, &groups)?;
        self.warnings.extend(found.warnings);
        for option in found.options {
            if let Some(key) = connection_key(&Name::of(&option.name).key) {
                self.say(key, option.value, Origin::LoginPath(option.group));
            }
        }
        Ok(())
    }

    /// Returns the value said last.
    pub(super) fn text(&self, key: &str) -> Option<String> {
        self.connection
            .get(key)
            .and_then(|(value, _)| value.clone())
    }

    /// Returns who said it last.
    pub(super) fn origin(&self, key: &str) -> Origin {
        self.connection
            .get(key)
            .map_or(Origin::Default, |(_, origin)| origin.clone())
    }
}

fn connection_key(key: &str) -> Option<&'static str> {
    keys::CONNECTION.into_iter().find(|known| *known == key)
}

fn is_on(value: &str) -> bool {
    !["0", "off", "false"]
        .iter()
        .any(|off| value.eq_ignore_ascii_case(off))
}

fn unknown(option: &OptionLine, key: &str, known: &[&str]) -> Error {
    let error = Error::usage(format!(
        "{}, line {}: [{}] has no option '{}'",
        option.file.display(),
        option.line,
        option.group,
        option.name
    ));
    let all = keys::CONNECTION.into_iter().chain(known.iter().copied());
    match keys::nearest(key, all) {
        Some(near) => error.hint(format!("did you mean '{near}'?")),
        None => error.hint("remove it, or add the prefix loose- so that it is skipped"),
    }
}
