//! Only the server crate knows which server can do what: everything else asks `server::abilities`.

use super::code::{flatten, is_test_file, sequences, without_tests};
use syn::visit::{self, Visit};

/// Who may look: abilities themselves, and those who start servers of every version to test with.
const MAY_LOOK: [&str; 5] = [
    "crates/server/",
    "testkit/",
    "tests/cases/",
    "tests/vm/",
    "xtask/",
];

const ASK: &str = "ask server::abilities what the server can do";

/// Token sequences of a decision by flavour or version.
const DECISIONS: [(&str, &str); 6] = [
    ("Flavour ::", ASK),
    (". flavour = =", ASK),
    (". flavour ! =", ASK),
    ("Version :: new", ASK),
    (". major", ASK),
    (". minor", ASK),
];

/// Words without which a file holds none of these, in lower case.
const WORDS: [&str; 5] = ["flavour", "version", "major", "minor", "mariadb"];

/// Methods that look for a word in a text.
const LOOKS: [&str; 8] = [
    "contains",
    "starts_with",
    "ends_with",
    "strip_prefix",
    "strip_suffix",
    "find",
    "split_once",
    "eq_ignore_ascii_case",
];

/// Checks one file.
pub(super) fn check(path: &str, text: &str) -> Vec<String> {
    let is_product = path.contains("/src/") && !is_test_file(path);
    if !is_product || MAY_LOOK.iter().any(|one| path.starts_with(one)) {
        return Vec::new();
    }
    // Parsing takes long, and few files have any of it.
    let lower = text.to_lowercase();
    if !WORDS.iter().any(|word| lower.contains(word)) {
        return Vec::new();
    }
    // What does not parse is reported with the other rules.
    let Ok(file) = syn::parse_file(text) else {
        return Vec::new();
    };
    let code = without_tests(file);
    let mut looks = Looks {
        path,
        found: Vec::new(),
    };
    looks.visit_file(&code);
    let tokens = flatten(quote::ToTokens::into_token_stream(code));
    let mut found = sequences(path, &tokens, &DECISIONS);
    found.extend(looks.found);
    found
}

/// Finds where a text is searched for the flavour's name.
struct Looks<'a> {
    path: &'a str,
    found: Vec<String>,
}

impl<'ast> Visit<'ast> for Looks<'_> {
    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        let names_one = call.args.iter().any(|one| {
            matches!(one, syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. })
                if text.value().to_lowercase().contains("mariadb"))
        });
        if names_one && LOOKS.iter().any(|method| call.method == method) {
            let (line, method) = (call.method.span().start().line, &call.method);
            self.found.push(format!(
                "{}:{line}: `{method}` looks for MariaDB in a text: {ASK}",
                self.path
            ));
        }
        visit::visit_expr_method_call(self, call);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = "fn f(able: &Abilities, text: &str) -> bool {\n\
        let is_one = matches!(able.kind, Flavour::MariaDb);\n\
        let other = able.flavour == one || able.flavour != two;\n\
        let new = able.version >= Version::new(8, 0, 0) || able.version.major > 8;\n\
        text.contains(\"-MariaDB\") || other || is_one || new\n}";

    #[test]
    fn decisions_by_flavour_stand_in_the_server_crate_alone() {
        let found = check("crates/backup/src/a.rs", CODE);
        assert_eq!(found.len(), 6, "{found:?}");
        assert_eq!(check("plugins/a/src/a.rs", CODE).len(), 6);
        for path in [
            "crates/server/src/a.rs",
            "crates/backup/tests/a.rs",
            "crates/backup/src/a/tests.rs",
            "testkit/src/a.rs",
        ] {
            assert!(check(path, CODE).is_empty(), "{path}");
        }
    }

    #[test]
    fn tests_and_values_of_the_type_are_left_alone() {
        let code = "fn f(flavour: Flavour) { one.flavour = flavour; g(one.flavour, \"MariaDB\"); }\n\
            #[cfg(test)]\nmod tests { fn f() { Flavour::MySql; } }";
        assert!(check("crates/backup/src/a.rs", code).is_empty());
    }
}
