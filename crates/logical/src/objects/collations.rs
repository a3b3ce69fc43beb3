//! Which collations objects name, and others in their place: flavours do not have the same ones.

use super::text::all_tokens;
use super::{ObjectName, Objects, Program, SchemaObjectKind};

impl Objects {
    /// Returns the collations that schemas and tables name, and those that programs were made under,
    /// each with who names it.
    #[must_use]
    pub fn collations(&self) -> Vec<(ObjectName, String)> {
        let mut all = Vec::new();
        for database in &self.databases {
            let mut add = |kind, name: &str, collation: String| {
                let object = ObjectName {
                    kind,
                    database: database.name.clone(),
                    name: name.to_owned(),
                };
                all.push((object, collation));
            };
            add(
                SchemaObjectKind::Database,
                &database.name,
                database.collation.clone(),
            );
            for table in &database.tables {
                for collation in named(&table.create) {
                    add(SchemaObjectKind::Table, &table.name, collation);
                }
            }
            let views = database.views.iter().map(|view| &view.program);
            let programs = views
                .chain(&database.routines)
                .chain(&database.triggers)
                .chain(&database.events);
            for program in programs {
                let under = [
                    Some(&program.collation_connection),
                    program.database_collation.as_ref(),
                ];
                for collation in under.into_iter().flatten() {
                    add(program.kind, &program.name, collation.clone());
                }
            }
        }
        all
    }

    /// Puts a collation in the place of another, in every text and setting. Strings and names in
    /// backticks are left alone.
    pub fn replace_collation(&mut self, from: &str, to: &str) {
        for database in &mut self.databases {
            replace_name(&mut database.collation, from, to);
            for table in &mut database.tables {
                table.create = replaced(&table.create, from, to);
            }
            let views = database.views.iter_mut().map(|view| &mut view.program);
            let programs = views
                .chain(&mut database.routines)
                .chain(&mut database.triggers)
                .chain(&mut database.events);
            for program in programs {
                replace_in_program(program, from, to);
            }
        }
    }
}

fn replace_in_program(program: &mut Program, from: &str, to: &str) {
    program.create = replaced(&program.create, from, to);
    replace_name(&mut program.collation_connection, from, to);
    if let Some(collation) = &mut program.database_collation {
        replace_name(collation, from, to);
    }
}

fn replace_name(name: &mut String, from: &str, to: &str) {
    if name.eq_ignore_ascii_case(from) {
        to.clone_into(name);
    }
}

/// Returns whether a statement names a collation; strings and names in backticks are none.
pub(crate) fn names_collation(sql: &[u8], collation: &str) -> bool {
    named(sql)
        .iter()
        .any(|one| one.eq_ignore_ascii_case(collation))
}

/// Returns the words behind `COLLATE`, each once.
fn named(create: &[u8]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let tokens = all_tokens(create).unwrap_or_default();
    let mut rest = tokens.iter();
    while let Some(token) = rest.next() {
        if !token.is_word(create, "COLLATE") {
            continue;
        }
        let name = rest.by_ref().find(|next| !next.is_sign(b'='));
        if let Some(name) = name {
            let name = String::from_utf8_lossy(name.of(create)).into_owned();
            if !all.contains(&name) {
                all.push(name);
            }
        }
    }
    all
}

fn replaced(create: &[u8], from: &str, to: &str) -> Vec<u8> {
    let from = from.to_ascii_uppercase();
    let mut out = Vec::with_capacity(create.len());
    let mut copied = 0;
    for token in all_tokens(create).unwrap_or_default() {
        if token.is_word(create, &from) {
            out.extend_from_slice(&create[copied..token.start]);
            out.extend_from_slice(to.as_bytes());
            copied = token.end;
        }
    }
    out.extend_from_slice(&create[copied..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collations_are_found_and_replaced_outside_of_strings() {
        let create =
            b"CREATE TABLE `x_ci` (\n  `a` char(1) COLLATE x_ci DEFAULT 'COLLATE x_ci',\n  \
                       `b` char(1) CHARACTER SET l COLLATE l_bin\n) ENGINE=InnoDB COLLATE=x_ci";
        assert_eq!(named(create), ["x_ci", "l_bin"]);
        let other =
            b"CREATE TABLE `x_ci` (\n  `a` char(1) COLLATE y_ci DEFAULT 'COLLATE x_ci',\n  \
                      `b` char(1) CHARACTER SET l COLLATE l_bin\n) ENGINE=InnoDB COLLATE=y_ci";
        assert_eq!(replaced(create, "X_ci", "y_ci"), other);
    }
}
