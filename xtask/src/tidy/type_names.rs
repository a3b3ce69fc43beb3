//! A type's name says what it is, also where it is used: one word for many things is no name.

use syn::visit::{self, Visit};

/// Names that many types had once, and what to say instead.
const VAGUE: [(&str, &str); 8] = [
    ("Place", "location, address, position, directory"),
    ("State", "the state of what"),
    ("Kind", "the kind of what"),
    ("Table", "the table of what"),
    ("Ground", "workspace, context, fixture"),
    ("Face", "UI"),
    ("Manners", "options"),
    ("Patience", "timeouts, retry policy"),
];

/// Checks the names of the types that a file defines, tests included.
pub(super) fn check(path: &str, text: &str) -> Vec<String> {
    // Parsing takes long. What does not parse is reported with the other rules.
    let may_have = VAGUE.iter().any(|(name, _)| text.contains(name));
    let Some(file) = may_have.then(|| syn::parse_file(text).ok()).flatten() else {
        return Vec::new();
    };
    let mut names = Names {
        path,
        found: Vec::new(),
    };
    names.visit_file(&file);
    names.found
}

struct Names<'a> {
    path: &'a str,
    found: Vec<String>,
}

impl Names<'_> {
    fn look(&mut self, name: &syn::Ident) {
        let Some((vague, instead)) = VAGUE.iter().find(|(vague, _)| name == vague) else {
            return;
        };
        let (path, line) = (self.path, name.span().start().line);
        self.found.push(format!(
            "{path}:{line}: type '{vague}': a name that many types could have; say more ({instead})"
        ));
    }
}

impl<'ast> Visit<'ast> for Names<'_> {
    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.look(&item.ident);
        visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.look(&item.ident);
        visit::visit_item_enum(self, item);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.look(&item.ident);
        visit::visit_item_trait(self, item);
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.look(&item.ident);
        visit::visit_item_type(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vague_names_of_types_are_seen() {
        let text = "struct Place;\nfn f() {\n    enum State { Kind }\n}\nmod m {\n    type Table = u8;\n}\n";
        let found = check("crates/a/src/b.rs", text);
        let at: Vec<_> = found.iter().map(|one| &one[..19]).collect();
        assert_eq!(
            at,
            [
                "crates/a/src/b.rs:1",
                "crates/a/src/b.rs:3",
                "crates/a/src/b.rs:6"
            ],
            "{found:?}"
        );
        assert!(check("a.rs", "struct RowState;\nenum Part { Place, Table }\n").is_empty());
    }
}
