//! Which tables foreign keys may have changed when others were written to: what ON DELETE and ON UPDATE
//! do is in no log.

use super::catalog::Look;
use super::shapes::{Columns, Shapes, key};
use evenkeel_binlog::Done;
use regex::bytes::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

/// What was done to a table's rows that a foreign key may follow. New rows change no others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Written {
    /// Columns that have other values.
    updated: Columns,
    deleted: bool,
}

impl Written {
    const NOTHING: Self = Self {
        updated: Columns::NONE,
        deleted: false,
    };
    /// It is not known what.
    pub(super) const ANYHOW: Self = Self {
        updated: Columns::Any,
        deleted: true,
    };

    /// Describes what was done to rows; `columns` has those that an update changed.
    pub(super) fn of(done: Done, columns: Columns) -> Self {
        match done {
            Done::Inserted => Self::NOTHING,
            Done::Updated => Self {
                updated: columns,
                deleted: false,
            },
            Done::Deleted => Self {
                updated: Columns::NONE,
                deleted: true,
            },
        }
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self {
            updated: self.updated.and(other.updated),
            deleted: self.deleted || other.deleted,
        }
    }
}

/// A foreign key's actions: what is done to the rows that have it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Key {
    /// The table that it leads to.
    parent: String,
    /// The columns there.
    leads_to: Columns,
    on_delete: Written,
    on_update: Written,
}

impl Key {
    /// Returns what is done to its own table when that was done to the other.
    fn follow(&self, written: &Written) -> Written {
        let when = |did: bool, then: &Written| match did {
            true => then.clone(),
            false => Written::NOTHING,
        };
        let moved = written.updated.meets(&self.leads_to);
        when(written.deleted, &self.on_delete).and(when(moved, &self.on_update))
    }
}

/// Returns the tables whose rows a foreign key may have changed. Of a table outside of the dump it is not
/// known where its own keys lead, so it counts as written to.
pub(super) fn reached(
    look: &Look,
    shapes: &Shapes,
    written: &BTreeMap<String, Written>,
) -> BTreeSet<String> {
    let mut keys: BTreeMap<String, Vec<Key>> = BTreeMap::new();
    for database in &look.objects.databases {
        for table in &database.tables {
            let name = key(&database.name, &table.name);
            let found = keys_of(&database.name, &name, &table.create, shapes);
            keys.entry(name).or_default().extend(found);
        }
    }
    reached_by(&keys, shapes, written)
}

fn reached_by(
    keys: &BTreeMap<String, Vec<Key>>,
    shapes: &Shapes,
    written: &BTreeMap<String, Written>,
) -> BTreeSet<String> {
    if written.is_empty() {
        return BTreeSet::new();
    }
    let mut reached: BTreeMap<String, Written> = BTreeMap::new();
    loop {
        let state = |name: &String| {
            let of = |all: &BTreeMap<String, Written>| {
                all.get(name).cloned().unwrap_or(Written::NOTHING)
            };
            let done = of(written).and(of(&reached));
            match () {
                () if !keys.contains_key(name) => Written::ANYHOW,
                () if shapes.is_versioned(name) && !done.updated.is_none() => Written::ANYHOW,
                () => done,
            }
        };
        let follow = |own: &[Key]| {
            let followed = own.iter().map(|key| key.follow(&state(&key.parent)));
            followed.fold(Written::NOTHING, Written::and)
        };
        let next: BTreeMap<String, Written> = keys
            .iter()
            .map(|(child, own)| (child.clone(), follow(own)))
            .filter(|(_, done)| *done != Written::NOTHING)
            .collect();
        if next == reached {
            return reached.into_keys().collect();
        }
        reached = next;
    }
}

/// Reads the foreign keys of a table's statement, of which each stands on a line of its own. A comment that
/// looks like one is no harm: it only makes one table more to be read again.
fn keys_of(schema: &str, own: &str, create: &[u8], shapes: &Shapes) -> Vec<Key> {
    static REFERENCES: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let name = "`((?:[^`]|``)+)`";
        let list = "((?:`(?:[^`]|``)+`(?:, )?)+)";
        Regex::new(&format!(
            r"(?:FOREIGN KEY \({list}\) )?REFERENCES {name}(?:\.{name})? \({list}?([^\n]*)"
        ))
        .ok()
    });
    let Some(pattern) = &*REFERENCES else {
        return Vec::new();
    };
    let found = pattern.captures_iter(create).map(|found| {
        let bytes = |at: usize| found.get(at).map_or(&b""[..], |one| one.as_bytes());
        let text = |at: usize| String::from_utf8_lossy(bytes(at)).replace("``", "`");
        let rest = text(5);
        let says = |event: &str, what: &str| rest.contains(&format!("ON {event} {what}"));
        let set = Written {
            updated: shapes.listed(own, bytes(1)),
            deleted: false,
        };
        let on_update = says("UPDATE", "SET ") || says("UPDATE", "CASCADE");
        let parent = match found.get(3) {
            Some(_) => key(&text(2), &text(3)),
            None => key(schema, &text(2)),
        };
        Key {
            leads_to: shapes.listed(&parent, bytes(4)),
            parent,
            on_delete: match () {
                () if says("DELETE", "CASCADE") => Written::of(Done::Deleted, Columns::NONE),
                () if says("DELETE", "SET ") => set.clone(),
                () => Written::NOTHING,
            },
            on_update: match on_update {
                true => set,
                false => Written::NOTHING,
            },
        }
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::{Column, Generated};

    fn these<const N: usize>(places: [usize; N]) -> Columns {
        Columns::These(BTreeSet::from(places))
    }

    fn updated<const N: usize>(places: [usize; N]) -> Written {
        Written::of(Done::Updated, these(places))
    }

    fn deleted() -> Written {
        Written::of(Done::Deleted, Columns::NONE)
    }

    /// Tables with these columns; computed ones begin with `=`.
    fn shapes(tables: &[(&str, &[&str])]) -> Shapes {
        let mut shapes = Shapes::default();
        for (name, columns) in tables {
            let columns = columns.iter().map(|name| {
                let plain = Column::for_tests(name.trim_start_matches('='), "int", None);
                Column {
                    generated: match name.starts_with('=') {
                        true => Generated::Stored,
                        false => Generated::No,
                    },
                    ..plain
                }
            });
            let columns: Vec<Column> = columns.collect();
            shapes.add((*name).to_owned(), &columns, *name == "d.dated");
        }
        shapes
    }

    #[test]
    fn actions_are_read() {
        let create = b"CREATE TABLE `c` (\n  CONSTRAINT `x` FOREIGN KEY (`a`) REFERENCES `p` (`ID`) ON DELETE CASCADE,\n  \
            CONSTRAINT `y` FOREIGN KEY (`b`, `a`) REFERENCES `O`.`t``q` (`i)`, `j`) ON DELETE SET NULL ON UPDATE CASCADE,\n  \
            CONSTRAINT `z` FOREIGN KEY (`b`) REFERENCES `n` (`i`) ON DELETE NO ACTION ON UPDATE SET NULL\n) ENGINE=InnoDB";
        let key = |parent: &str, leads_to, on_delete, on_update| Key {
            parent: parent.to_owned(),
            leads_to,
            on_delete,
            on_update,
        };
        let shapes = shapes(&[
            ("d.c", &["z", "b", "a"]),
            ("d.p", &["n", "id"]),
            ("o.t`q", &["j", "i)", "k"]),
            ("d.n", &["=i"]),
        ]);
        assert_eq!(
            keys_of("d", "d.c", create, &shapes),
            [
                key("d.p", these([1]), deleted(), Written::NOTHING),
                key("o.t`q", these([0, 1]), updated([1, 2]), updated([1, 2])),
                key("d.n", Columns::Any, Written::NOTHING, updated([1])),
            ]
        );
    }

    #[test]
    fn what_foreign_keys_do_is_followed() {
        let line = |leads: &str| format!("FOREIGN KEY (`a`) REFERENCES {leads}");
        let tables = [
            ("d.child", line("`parent` (`i`) ON DELETE CASCADE")),
            ("d.grandchild", line("`child` (`i`) ON DELETE SET NULL")),
            ("d.follower", line("`grandchild` (`a`) ON UPDATE CASCADE")),
            ("d.stranger", line("`grandchild` (`i`) ON UPDATE CASCADE")),
            ("d.renamed", line("`parent` (`i`) ON UPDATE CASCADE")),
            ("d.strict", line("`parent` (`i`)")),
            ("d.own", line("`own` (`i`) ON DELETE CASCADE")),
            (
                "d.of_elsewhere",
                line("`x`.`outside` (`i`) ON DELETE CASCADE"),
            ),
            ("d.computed", line("`maker` (`c`) ON UPDATE CASCADE")),
            ("d.maker", String::new()),
            ("d.heir", line("`dated` (`i`) ON DELETE CASCADE")),
            ("d.dated", String::new()),
            ("d.parent", String::new()),
            ("d.t", String::new()),
        ];
        let columns: Vec<(&str, &[&str])> = tables
            .iter()
            .map(|(name, _)| match *name {
                "d.maker" => (*name, &["i", "=c"][..]),
                _ => (*name, &["i", "a", "n"][..]),
            })
            .collect();
        let shapes = shapes(&columns);
        let keys: BTreeMap<String, Vec<Key>> = tables
            .iter()
            .map(|(name, text)| {
                let keys = keys_of("d", name, text.as_bytes(), &shapes);
                ((*name).to_owned(), keys)
            })
            .collect();
        let reached = |name: &str, how: Written| -> Vec<String> {
            let found = reached_by(&keys, &shapes, &BTreeMap::from([(name.to_owned(), how)]));
            let outside = "d.of_elsewhere".to_owned();
            assert!(found.contains(&outside));
            found.into_iter().filter(|name| *name != outside).collect()
        };
        assert_eq!(
            reached("d.parent", deleted()),
            ["d.child", "d.follower", "d.grandchild"]
        );
        assert_eq!(reached("d.parent", updated([0, 2])), ["d.renamed"]);
        let unknown = Written::of(Done::Updated, Columns::Any);
        assert_eq!(reached("d.parent", unknown), ["d.renamed"]);
        assert_eq!(reached("d.parent", updated([1, 2])), [""; 0]);
        assert_eq!(reached("d.parent", Written::NOTHING), [""; 0]);
        assert_eq!(reached("d.own", deleted()), ["d.own"]);
        assert_eq!(reached("d.child", updated([0])), [""; 0]);
        assert_eq!(reached("d.maker", updated([0])), ["d.computed"]);
        assert_eq!(reached("d.dated", updated([2])), ["d.heir"]);
        assert_eq!(
            reached_by(&keys, &shapes, &BTreeMap::new()),
            BTreeSet::new()
        );
    }
}
