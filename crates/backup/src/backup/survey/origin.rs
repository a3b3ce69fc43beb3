//! Whose backups a repository holds. A second server's would become increments of the first's, and keep rules
//! would remove the first's for them: it is refused, unless the caller says that it takes the first's place.

use super::Survey;
use super::volumes;
use crate::facts::Facts;
use evenkeel_op::{Error, Result, paths};
use evenkeel_repository::{Manifest, Repository};
use std::path::Path;

/// The server or the volumes that a run backs up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::backup) struct Origin {
    host: String,
    /// The data directory, or the volumes.
    places: Vec<String>,
    /// MySQL's name for itself, from 5.6 on. MariaDB has none that stays.
    server_uuid: Option<String>,
}

impl Origin {
    pub(in crate::backup) fn of(survey: &Survey) -> Self {
        let mut places: Vec<String> = volumes::places(&survey.layout, &survey.files)
            .into_values()
            .collect();
        if places.is_empty() {
            places.push(survey.files.datadir.display().to_string());
        }
        let name = rustix::system::uname();
        Self {
            host: name.nodename().to_string_lossy().into_owned(),
            places,
            server_uuid: survey.files.settings.get("server_uuid").cloned(),
        }
    }

    /// Reads that of a generation; nothing where only a key that is not at hand would show it.
    fn recorded(manifest: &Manifest) -> Result<Option<Self>> {
        let Some((host, places)) = manifest.source.split_once(':') else {
            return Ok(None);
        };
        let facts = Facts::of(manifest)?;
        let places = match facts.is_of_volumes() {
            true => facts.volumes.into_values().collect(),
            false => vec![places.to_owned()],
        };
        Ok(Some(Self {
            host: host.to_owned(),
            places,
            server_uuid: facts.settings.get("server_uuid").cloned(),
        }))
    }

    /// The name that manifests have: host and data directory, or volumes.
    pub(in crate::backup) fn name(&self) -> String {
        format!("{}:{}", self.host, self.places.join(","))
    }

    /// Says in words how another differs; nothing when it is the same.
    fn differs(&self, other: &Self) -> Option<String> {
        if self.host != other.host || !self.is_in_places_of(other) {
            return Some(format!("this is {}", other.name()));
        }
        match (&self.server_uuid, &other.server_uuid) {
            (Some(before), Some(now)) if before != now => Some(format!(
                "the server there is a different one now: its server_uuid was {before} and is {now}"
            )),
            _ => None,
        }
    }

    /// A link on the way may have come or gone since.
    fn is_in_places_of(&self, other: &Self) -> bool {
        let resolved = |places: &[String]| -> Vec<_> {
            let mut all: Vec<_> = places
                .iter()
                .map(|place| paths::resolved(Path::new(place)))
                .collect();
            all.sort();
            all
        };
        self.places == other.places || resolved(&self.places) == resolved(&other.places)
    }
}

/// Refuses what is not the source of the newest generation that can be read.
pub(in crate::backup) fn refuse_other(repository: &Repository, now: &Origin) -> Result<()> {
    let newest = repository.newest()?;
    let before = newest.as_ref().map(Origin::recorded).transpose()?.flatten();
    let Some((how, before)) = before.and_then(|before| Some((before.differs(now)?, before))) else {
        return Ok(());
    };
    let (place, before) = (repository.place(), before.name());
    Err(
        Error::usage(format!("{place} holds backups of {before}, but {how}"))
            .hint(
                "use one repository per server: otherwise keep rules would remove one server's \
             backups in favor of the other's",
            )
            .hint("if the server moved or was reinstalled, add --new-source once"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(host: &str, place: &str, uuid: Option<&str>) -> Origin {
        Origin {
            host: host.to_owned(),
            places: vec![place.to_owned()],
            server_uuid: uuid.map(str::to_owned),
        }
    }

    #[test]
    fn a_server_is_its_host_its_directory_and_its_uuid() {
        let db1 = origin("db1", "/srv/mysql", Some("a"));
        assert_eq!(db1.differs(&db1), None);
        for other in [
            origin("db2", "/srv/mysql", Some("a")),
            origin("db1", "/srv/mysql2", Some("a")),
            origin("db1", "/srv/mysql", Some("b")),
        ] {
            assert!(db1.differs(&other).is_some(), "{other:?}");
        }
        // Not recorded, or MariaDB: that alone is no reason.
        assert_eq!(db1.differs(&origin("db1", "/srv/mysql", None)), None);
        assert_eq!(origin("db1", "/srv/mysql", None).differs(&db1), None);
    }

    #[test]
    fn a_link_to_the_directory_is_the_directory() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("data"), dir.path().join("link"));
        std::fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let by = |path: &Path| origin("db1", path.to_str().unwrap(), None);
        assert_eq!(by(&link).differs(&by(&real)), None);
    }
}
