//! Settings of the source that change what an event means.
//!
//! An event carries what the session had set where the servers' authors thought of it: sql_mode,
//! character sets, the time zone if a statement asked for it. The rest is what the server that applies it
//! has, so it has to be what the source had.

use crate::Run;
use evenkeel_op::{Error, Result};
use evenkeel_server::files::{HOST_TIME_ZONE, is_zone};
use std::collections::BTreeMap;
use std::path::Path;

/// Variables whose option has the same name. A server that does not know one goes without.
const VARIABLES: [&str; 29] = [
    "block_encryption_mode",
    "character_set_filesystem",
    "character_set_server",
    "check_constraint_checks",
    "collation_server",
    "default_authentication_plugin",
    "default_password_lifetime",
    "default_storage_engine",
    "default_table_encryption",
    "default_week_format",
    "div_precision_increment",
    "enforce_storage_engine",
    "explicit_defaults_for_timestamp",
    "ft_max_word_len",
    "ft_min_word_len",
    "group_concat_max_len",
    "innodb_autoinc_lock_mode",
    "innodb_compression_default",
    "innodb_file_per_table",
    "innodb_ft_enable_stopword",
    "innodb_ft_max_token_size",
    "innodb_ft_min_token_size",
    "innodb_strict_mode",
    "lc_time_names",
    "max_heap_table_size",
    "mysql56_temporal_format",
    "partial_revokes",
    "sql_require_primary_key",
    "system_versioning_alter_history",
];

/// Those of which nothing is a value too.
const LISTS: [&str; 2] = ["character_set_collations", "old_mode"];

/// Where a host keeps what it knows of zones.
const ZONES: &str = "/usr/share/zoneinfo";

/// Returns the options for the server that applies, from the source's variables.
pub(super) fn options(settings: &BTreeMap<String, String>) -> Vec<String> {
    let option = |name: &str, value: &String| format!("--loose-{}={value}", name.replace('_', "-"));
    let known = |name: &&'static str| Some((*name, settings.get(*name)?));
    let mut options: Vec<String> = VARIABLES
        .iter()
        .filter_map(known)
        .filter(|(_, value)| !value.is_empty())
        .chain(LISTS.iter().filter_map(known))
        .map(|(name, value)| option(name, value))
        .collect();
    if let Some(zone) = settings.get("time_zone") {
        options.push(format!("--default-time-zone={zone}"));
    }
    // Who may write it was asked on the source.
    options.push("--loose-log-bin-trust-function-creators=ON".to_owned());
    options
}

/// Returns the zone that `SYSTEM` has to mean, for `TZ`; `None` when it is this host's own.
///
/// Errors: `Refused` when the source's zone is not known on this host.
pub(super) fn zone(settings: &BTreeMap<String, String>, run: Run<'_>) -> Result<Option<String>> {
    if let Some(zone) = settings.get(HOST_TIME_ZONE).filter(|zone| is_zone(zone)) {
        return match is_known(zone) {
            true => Ok(Some(zone.clone())),
            false => Err(Error::refused(format!(
                "the server that was backed up lives in the time zone {zone}, which this host does not \
                 know: times would be off"
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
                "the server that was backed up lived in the time zone {other}, this host is in {now}: times \
                 that the binary log leaves to the server may be off"
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
