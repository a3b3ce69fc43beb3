//! Settings of the source that change what an event means.
//!
//! An event carries what the session had set where the servers' authors thought of it: sql_mode,
//! character sets, the time zone if a statement asked for it. The rest is what the server that applies it
//! has, so it has to be what the source had.

use evenkeel_op::{Error, Result, Run};
use evenkeel_server::files::{CHANGE_MEANING, HOST_TIME_ZONE, LISTS_THAT_CHANGE_MEANING, is_zone};
use std::collections::BTreeMap;
use std::path::Path;

/// Those that no option sets, ON where nobody says otherwise. A server that does not know one has not said it.
const NO_OPTION: [&str; 1] = ["check_constraint_checks"];

/// Where a host keeps what it knows of zones.
const ZONES: &str = "/usr/share/zoneinfo";

/// Returns the options for the server that applies, from the source's variables.
pub(super) fn options(settings: &BTreeMap<String, String>) -> Vec<String> {
    let option = |name: &str, value: &String| format!("--loose-{}={value}", name.replace('_', "-"));
    let known = |name: &&'static str| Some((*name, settings.get(*name)?));
    // A server that does not know one goes without.
    let mut options: Vec<String> = CHANGE_MEANING
        .iter()
        .filter_map(known)
        .filter(|(_, value)| !value.is_empty())
        .chain(LISTS_THAT_CHANGE_MEANING.iter().filter_map(known))
        .map(|(name, value)| option(name, value))
        .collect();
    if let Some(zone) = settings.get("time_zone") {
        options.push(format!("--default-time-zone={zone}"));
    }
    // Where links were switched off, DATA DIRECTORY of a table without transactions meant nothing.
    if settings.get("have_symlink").is_some_and(|it| it != "YES") {
        options.push("--loose-symbolic-links=OFF".to_owned());
    }
    // The words of a file are not here; that there shall be none can be said.
    if settings
        .get("ft_stopword_file")
        .is_some_and(String::is_empty)
    {
        options.push("--loose-ft-stopword-file=".to_owned());
    }
    // Who may write it was asked on the source.
    options.push("--loose-log-bin-trust-function-creators=ON".to_owned());
    options
}

/// Returns statements that set what the source had where there is no option for it.
pub(super) fn statements(settings: &BTreeMap<String, String>) -> impl Iterator<Item = String> {
    let off = NO_OPTION
        .iter()
        .filter(|name| settings.get(**name).is_some_and(|value| value == "OFF"));
    off.map(|name| format!("SET GLOBAL {name} = OFF"))
}

/// Warns of what the source had set and no server here can be given.
pub(super) fn tell_what_lacks(settings: &BTreeMap<String, String>, run: Run<'_>) {
    let is = |name: &str, values: &[&str]| {
        let value = settings.get(name);
        value.is_some_and(|value| !value.is_empty() && !values.contains(&value.as_str()))
    };
    if is("ft_stopword_file", &["(built-in)"]) {
        run.progress.warn(
            "the source server has its own stop words (ft_stopword_file), which backups do not \
             contain: full-text indexes of MyISAM and Aria tables are incomplete for the rows \
             applied here; run REPAIR TABLE … QUICK on that server to complete them"
                .to_owned(),
        );
    }
    if is("innodb_encrypt_tables", &["OFF", "0"]) {
        run.progress.warn(
            "tables created after the generation are not encrypted here: the server encrypts \
             them (innodb_encrypt_tables) once it runs with its keys"
                .to_owned(),
        );
    }
}

/// Returns the zone that `SYSTEM` has to mean, for `TZ`; `None` when it is this host's own.
///
/// Errors: `Refused` when the source's zone is not known on this host.
pub(super) fn zone(settings: &BTreeMap<String, String>, run: Run<'_>) -> Result<Option<String>> {
    if let Some(zone) = settings.get(HOST_TIME_ZONE).filter(|zone| is_zone(zone)) {
        return match is_known(zone) {
            true => Ok(Some(zone.clone())),
            false => Err(Error::refused(format!(
                "the source server uses the time zone {zone}, which this host does not know: \
                 times would be wrong"
            ))
            .hint("install the time zones (Debian: apt-get install tzdata), or restore on another host")),
        };
    }
    // Of a generation from before zones were kept, or of a server whose process could not be seen.
    let Some(abbreviation) = settings.get("system_time_zone") else {
        return Ok(None);
    };
    let now = jiff::tz::TimeZone::system()
        .to_offset_info(jiff::Timestamp::now())
        .abbreviation()
        .to_owned();
    match abbreviation.as_str() {
        "UTC" => Ok(Some("UTC".to_owned())),
        same if same == now => Ok(None),
        other => {
            run.progress.warn(format!(
                "the source server used the time zone {other}, this host uses {now}: times that \
                 the server computes from the binary log may be wrong"
            ));
            Ok(None)
        }
    }
}

/// Whether this host can tell the time of a zone: it has it, or the text says itself what it is.
fn is_known(zone: &str) -> bool {
    let says_it_itself = !zone.contains('/') && zone.bytes().any(|byte| byte.is_ascii_digit());
    // Where nothing is known of zones, everything is UTC.
    let is_utc = ["UTC", "UCT", "GMT", "Zulu"].contains(&zone.trim_start_matches("Etc/"));
    is_utc || says_it_itself || Path::new(ZONES).join(zone).is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        pairs.iter().map(owned).collect()
    }

    #[test]
    fn only_a_list_may_be_empty() {
        let given = options(&settings(&[
            ("enforce_storage_engine", ""),
            ("old_mode", ""),
            ("default_storage_engine", "MyISAM"),
            ("datadir", "/x"),
        ]));
        assert!(given.contains(&"--loose-old-mode=".to_owned()), "{given:?}");
        assert!(given.contains(&"--loose-default-storage-engine=MyISAM".to_owned()));
        assert!(
            !given
                .iter()
                .any(|one| one.contains("enforce") || one.contains("datadir"))
        );
    }

    #[test]
    fn a_zone_that_nobody_knows_is_refused() {
        let cancel = evenkeel_op::Cancel::new();
        let run = Run {
            progress: &evenkeel_op::Silent,
            cancel: &cancel,
        };
        let of = |text: &str| zone(&settings(&[(HOST_TIME_ZONE, text)]), run);
        assert_eq!(of("UTC").unwrap().as_deref(), Some("UTC"));
        assert_eq!(of("Etc/UTC").unwrap().as_deref(), Some("Etc/UTC"));
        assert_eq!(of("JST-9").unwrap().as_deref(), Some("JST-9"));
        assert!(of("Atlantis/Poseidonis").is_err());
    }
}
