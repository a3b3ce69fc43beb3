//! Which tables foreign keys may have changed when others were written to: what ON DELETE and ON UPDATE
//! do is in no log.

use super::catalog::Look;
use super::untouched::key;
use evenkeel_binlog::Done;
use regex::bytes::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

/// What was done to a table's rows that a foreign key may follow. New rows change no others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Written {
    updated: bool,
    deleted: bool,
}

impl Written {
    /// It is not known what.
    pub(super) const ANYHOW: Self = Self {
        updated: true,
        deleted: true,
    };

    pub(super) fn add(&mut self, done: Done) {
        match done {
            Done::Inserted => {}
            Done::Updated => self.updated = true,
            Done::Deleted => self.deleted = true,
        }
    }

    fn and(self, other: Self) -> Self {
        Self {
            updated: self.updated || other.updated,
            deleted: self.deleted || other.deleted,
        }
    }
}

/// A foreign key's actions: what is done to the rows that have it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Key {
    /// The table that it leads to.
    parent: String,
    on_delete: Written,
    on_update: Written,
}

impl Key {
    /// Returns what is done to its own table when that was done to the other.
    fn follow(&self, written: Written) -> Written {
        let when = |did: bool, then: Written| if did { then } else { Written::default() };
        when(written.deleted, self.on_delete).and(when(written.updated, self.on_update))
    }
}

/// Returns the tables whose rows a foreign key may have changed. Of a table outside of the dump it is not
/// known where its own keys lead, so it counts as written to.
pub(super) fn reached(look: &Look, written: &BTreeMap<String, Written>) -> BTreeSet<String> {
    let mut keys = BTreeMap::new();
    let mut known = BTreeSet::new();
    for database in &look.objects.databases {
        for table in &database.tables {
            let name = key(&database.name, &table.name);
            keys.insert(name.clone(), keys_of(&database.name, &table.create));
            known.insert(name);
        }
    }
    reached_by(&keys, &known, written)
}

fn reached_by(
    keys: &BTreeMap<String, Vec<Key>>,
    known: &BTreeSet<String>,
    written: &BTreeMap<String, Written>,
) -> BTreeSet<String> {
    if written.is_empty() {
        return BTreeSet::new();
    }
    let mut reached: BTreeMap<String, Written> = BTreeMap::new();
    loop {
        let state = |name: &String| {
            let of = |all: &BTreeMap<String, Written>| all.get(name).copied().unwrap_or_default();
            match known.contains(name) {
                true => of(written).and(of(&reached)),
                false => Written::ANYHOW,
            }
        };
        let follow = |own: &[Key]| {
            let followed = own.iter().map(|key| key.follow(state(&key.parent)));
            followed.fold(Written::default(), Written::and)
        };
        let next: BTreeMap<String, Written> = keys
            .iter()
            .map(|(child, own)| (child.clone(), follow(own)))
            .filter(|(_, done)| *done != Written::default())
            .collect();
        if next == reached {
            return reached.into_keys().collect();
        }
        reached = next;
    }
}

/// Reads the foreign keys of a table's statement, of which each stands on a line of its own. A comment that
/// looks like one is no harm: it only makes one table more to be read again.
fn keys_of(schema: &str, create: &[u8]) -> Vec<Key> {
    static REFERENCES: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let name = "`((?:[^`]|``)+)`";
        Regex::new(&format!(r"REFERENCES {name}(?:\.{name})? \(([^\n]*)")).ok()
    });
    let Some(pattern) = &*REFERENCES else {
        return Vec::new();
    };
    let found = pattern.captures_iter(create).map(|found| {
        let text = |at: usize| {
            let found = found.get(at)?;
            Some(String::from_utf8_lossy(found.as_bytes()).replace("``", "`"))
        };
        let rest = text(3).unwrap_or_default();
        let action = |event: &str| Written {
            deleted: rest.contains(&format!("ON {event} CASCADE")) && event == "DELETE",
            updated: rest.contains(&format!("ON {event} SET "))
                || rest.contains(&format!("ON {event} CASCADE")) && event == "UPDATE",
        };
        Key {
            parent: match (text(1).unwrap_or_default(), text(2)) {
                (schema, Some(table)) => key(&schema, &table),
                (table, None) => key(schema, &table),
            },
            on_delete: action("DELETE"),
            on_update: action("UPDATE"),
        }
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const UPDATED: Written = Written {
        updated: true,
        deleted: false,
    };
    const DELETED: Written = Written {
        updated: false,
        deleted: true,
    };
    const NOTHING: Written = Written {
        updated: false,
        deleted: false,
    };

    #[test]
    fn actions_are_read() {
        let create = b"CREATE TABLE `c` (\n  CONSTRAINT `x` FOREIGN KEY (`a`) REFERENCES `p` (`id`) ON DELETE CASCADE,\n  \
            CONSTRAINT `y` FOREIGN KEY (`b`) REFERENCES `O`.`t``q` (`i)`, `j`) ON DELETE SET NULL ON UPDATE CASCADE,\n  \
            CONSTRAINT `z` FOREIGN KEY (`b`) REFERENCES `n` (`i`) ON DELETE NO ACTION\n) ENGINE=InnoDB";
        let key = |parent: &str, on_delete, on_update| Key {
            parent: parent.to_owned(),
            on_delete,
            on_update,
        };
        assert_eq!(
            keys_of("d", create),
            [
                key("d.p", DELETED, NOTHING),
                key("o.t`q", UPDATED, UPDATED),
                key("d.n", NOTHING, NOTHING),
            ]
        );
    }

    #[test]
    fn what_foreign_keys_do_is_followed() {
        let line = |leads: &str| format!("FOREIGN KEY (`a`) REFERENCES {leads}");
        let tables = [
            ("d.child", line("`parent` (`i`) ON DELETE CASCADE")),
            ("d.grandchild", line("`child` (`i`) ON DELETE SET NULL")),
            ("d.follower", line("`grandchild` (`i`) ON UPDATE CASCADE")),
            ("d.renamed", line("`parent` (`i`) ON UPDATE CASCADE")),
            ("d.strict", line("`parent` (`i`)")),
            ("d.own", line("`own` (`i`) ON DELETE CASCADE")),
            (
                "d.of_elsewhere",
                line("`x`.`outside` (`i`) ON DELETE CASCADE"),
            ),
            ("d.parent", String::new()),
            ("d.t", String::new()),
        ];
        let keys: BTreeMap<String, Vec<Key>> = tables
            .iter()
            .map(|(name, text)| ((*name).to_owned(), keys_of("d", text.as_bytes())))
            .collect();
        let known = keys.keys().cloned().collect();
        let reached = |written: &[(&str, Written)]| -> Vec<String> {
            let written = written.iter().map(|(name, how)| ((*name).to_owned(), *how));
            let found = reached_by(&keys, &known, &written.collect());
            let outside = "d.of_elsewhere".to_owned();
            assert_eq!(found.contains(&outside), !found.is_empty());
            found.into_iter().filter(|name| *name != outside).collect()
        };
        assert_eq!(
            reached(&[("d.parent", DELETED)]),
            ["d.child", "d.follower", "d.grandchild"]
        );
        assert_eq!(reached(&[("d.parent", UPDATED)]), ["d.renamed"]);
        assert_eq!(reached(&[("d.parent", NOTHING)]), [""; 0]);
        assert_eq!(reached(&[("d.own", DELETED)]), ["d.own"]);
        assert_eq!(reached(&[("d.child", UPDATED)]), [""; 0]);
        assert_eq!(reached_by(&keys, &known, &BTreeMap::new()), BTreeSet::new());
    }
}
