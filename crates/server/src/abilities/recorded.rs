//! What is known of a server of which there is only what a backup recorded.

use super::{Abilities, Flavour};

/// A server as a backup recorded it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// Whose server it was. One that recorded no version counts as MariaDB.
    pub flavour: Flavour,
    /// What it could do; `None` when no version is recorded, or what is recorded is not a version.
    pub abilities: Option<Abilities>,
}

impl Recorded {
    /// Reads `VERSION()` as a backup recorded it.
    #[must_use]
    pub fn of(version_text: Option<&str>) -> Self {
        Self {
            flavour: version_text.map_or(Flavour::MariaDb, |text| Flavour::of(text, "")),
            abilities: version_text.and_then(|text| Abilities::of_version(text, "").ok()),
        }
    }

    /// Whether it could do something. One that is not known could not.
    pub fn could(&self, ability: impl FnOnce(&Abilities) -> bool) -> bool {
        self.abilities.as_ref().is_some_and(ability)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_can_nothing() {
        let directories = |text| Recorded::of(text).could(|able| able.innodb_directories);
        assert!(directories(Some("8.0.15-log")) && directories(Some("10.0.1")));
        assert!(!directories(Some("5.7.22")) && !directories(Some("10.11.1-MariaDB")));
        assert!(!directories(None) && !directories(Some("MySQL")));
    }

    #[test]
    fn a_flavour_is_known_without_a_version() {
        assert_eq!(Recorded::of(None).flavour, Flavour::MariaDb);
        assert_eq!(Recorded::of(Some("")).flavour, Flavour::MySql);
        assert_eq!(
            Recorded::of(Some("10.11-MariaDB")).flavour,
            Flavour::MariaDb
        );
    }
}
