//! Which statements are counted.

use crate::Statement;
use regex::bytes::Regex;

/// Which statements are counted: those that pass all of it.
#[derive(Debug, Default)]
pub struct Filter {
    /// Not before this time, in nanoseconds since 1970.
    pub since_ns: Option<i64>,
    /// Before this time.
    pub until_ns: Option<i64>,
    /// Of one of these accounts.
    pub users: Vec<String>,
    /// In one of these schemas.
    pub schemas: Vec<String>,
    /// From one of these hosts.
    pub hosts: Vec<String>,
    /// With this in the text.
    pub matching: Option<Regex>,
}

impl Filter {
    pub(super) fn takes(&self, one: &Statement<'_>) -> bool {
        let among = |names: &[String], name: Option<&str>| {
            names.is_empty() || name.is_some_and(|name| names.iter().any(|known| known == name))
        };
        self.since_ns.is_none_or(|since| one.at_ns >= since)
            && self.until_ns.is_none_or(|until| one.at_ns < until)
            && among(&self.users, one.user)
            && among(&self.schemas, one.schema)
            && among(&self.hosts, one.host)
            && self
                .matching
                .as_ref()
                .is_none_or(|rule| rule.is_match(one.sql))
    }
}
