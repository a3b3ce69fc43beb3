//! Rules about Rust code, checked on its tokens.

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// Longest function, from its signature to its closing brace.
const FUNCTION_LINES_MAX: usize = 70;

/// Functions that are longer all the same: tests that tell one story from beginning to end. The
/// list may only shrink, and so may they.
const LONGER: [(&str, &str, usize); 4] = [
    (
        "tests/cases/tests/every_layout_restores.rs",
        "files_everywhere",
        99,
    ),
    (
        "tests/cases/tests/every_layout_restores.rs",
        "tables_without_transactions",
        102,
    ),
    (
        "tests/cases/tests/every_layout_restores.rs",
        "compressed_tables",
        94,
    ),
    (
        "crates/repository/tests/survives_a_crash.rs",
        "survives",
        75,
    ),
];

/// Where `unsafe` may stand: ioctls, raw waits, rings of reads and of packets, a map of a file, and what servers load.
const UNSAFE_ALLOWED: [&str; 7] = [
    "queue/core/src/",
    "queue/engine/src/",
    "url/plugin/src/",
    "crates/snapshot/src/",
    "crates/server/src/launch",
    "crates/recovery/src/prewarm/ring.rs",
    "crates/traffic/src/capture/live/ring.rs",
];

/// Crates that meet the user or the developer and so may print, exit and read the environment.
const INTERFACES: [&str; 6] = [
    "crates/cli/",
    "xtask/",
    "testkit/",
    "tests/cases/",
    "benchmarks/",
    "tests/vm/",
];

/// Token sequences that no file may hold.
const NOWHERE: [(&str, &str); 4] = [
    ("todo !", "unfinished"),
    ("unimplemented !", "unfinished"),
    ("dbg !", "left over from debugging"),
    ("# [ ignore", "a test that does not run proves nothing"),
];

/// Token sequences that no library may hold: it returns values, its caller talks to the world.
const NOT_IN_LIBRARIES: [(&str, &str); 14] = [
    ("println !", "a library does not print"),
    ("print !", "a library does not print"),
    ("eprintln !", "a library does not print"),
    ("eprint !", "a library does not print"),
    ("process :: exit", "a library does not exit"),
    ("process :: abort", "a library does not exit"),
    ("env :: var", "a library does not read the environment"),
    ("env :: var_os", "a library does not read the environment"),
    ("env :: vars", "a library does not read the environment"),
    ("env :: vars_os", "a library does not read the environment"),
    (
        "env :: set_var",
        "a library does not change the environment",
    ),
    ("env :: args", "a library does not read the command line"),
    ("env :: args_os", "a library does not read the command line"),
    ("home_dir", "a library does not know about $HOME"),
];

/// Checks one Rust file.
pub(super) fn check(path: &str, text: &str) -> Vec<String> {
    let file = match syn::parse_file(text) {
        Ok(file) => file,
        Err(error) => return vec![format!("{path}:1: does not parse: {error}")],
    };
    let mut lengths = Lengths {
        path,
        found: Vec::new(),
    };
    lengths.visit_file(&file);
    let mut found = lengths.found;

    let whole = flatten(file.to_token_stream());
    found.extend(sequences(path, &whole, &NOWHERE));
    if !UNSAFE_ALLOWED
        .iter()
        .any(|allowed| path.starts_with(allowed))
    {
        let rule = [("unsafe", "unsafe code"), ("unsafe_code", "unsafe code")];
        found.extend(sequences(path, &whole, &rule));
    }
    let is_library = path.contains("/src/") && !INTERFACES.iter().any(|one| path.starts_with(one));
    if is_library {
        found.extend(sequences(
            path,
            &flatten(without_tests(file).into_token_stream()),
            &NOT_IN_LIBRARIES,
        ));
    }
    found
}

struct Lengths<'a> {
    path: &'a str,
    found: Vec<String>,
}

impl Lengths<'_> {
    fn measure(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let first = signature.span().start().line;
        let lines = block.span().end().line + 1 - first;
        let (path, name) = (self.path, &signature.ident);
        let longer = LONGER
            .iter()
            .find(|(file, function, _)| *file == path && name == function);
        let allowed = longer.map_or(FUNCTION_LINES_MAX, |(_, _, lines)| *lines);
        if lines > allowed {
            self.found.push(format!(
                "{path}:{first}: fn {name} has {lines} lines, {allowed} are allowed"
            ));
        }
    }
}

impl<'ast> Visit<'ast> for Lengths<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.measure(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.measure(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }
}

/// Whether attributes say that an item only exists in tests.
pub(super) fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let text = attribute.meta.to_token_stream().to_string();
        text == "test" || text.starts_with("cfg (test") || text.starts_with("cfg(test")
    })
}

/// Drops the items that only exist in tests.
pub(super) fn without_tests(mut file: syn::File) -> syn::File {
    if is_test(&file.attrs) {
        file.items.clear();
    }
    file.items.retain(|item| match item {
        syn::Item::Mod(item) => !is_test(&item.attrs),
        syn::Item::Fn(item) => !is_test(&item.attrs),
        syn::Item::Impl(item) => !is_test(&item.attrs),
        syn::Item::Use(item) => !is_test(&item.attrs),
        _ => true,
    });
    file
}

/// Whether a file holds the tests of the module beside it.
pub(super) fn is_test_file(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/src/tests/")
}

/// One token and the line it stands on. Literals are kept apart: a rule never matches a string.
pub(super) struct Token {
    pub(super) text: String,
    line: usize,
}

pub(super) fn flatten(stream: TokenStream) -> Vec<Token> {
    let mut tokens = Vec::new();
    for tree in stream {
        let line = tree.span().start().line;
        match tree {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    proc_macro2::Delimiter::Parenthesis => ("(", ")"),
                    proc_macro2::Delimiter::Brace => ("{", "}"),
                    proc_macro2::Delimiter::Bracket => ("[", "]"),
                    proc_macro2::Delimiter::None => ("", ""),
                };
                tokens.push(Token {
                    text: open.to_owned(),
                    line,
                });
                tokens.extend(flatten(group.stream()));
                tokens.push(Token {
                    text: close.to_owned(),
                    line,
                });
            }
            TokenTree::Literal(_) => tokens.push(Token {
                text: "\"\"".to_owned(),
                line,
            }),
            TokenTree::Ident(name) => tokens.push(Token {
                text: name.to_string(),
                line,
            }),
            TokenTree::Punct(punct) => {
                let text = punct.as_char().to_string();
                // `::` comes as two tokens; rules write it as one.
                match tokens.last_mut() {
                    Some(last) if last.text == ":" && text == ":" => last.text.push(':'),
                    _ => tokens.push(Token { text, line }),
                }
            }
        }
    }
    tokens
}

pub(super) fn sequences(path: &str, tokens: &[Token], rules: &[(&str, &str)]) -> Vec<String> {
    let mut found = Vec::new();
    for (pattern, why) in rules {
        let words: Vec<&str> = pattern.split(' ').collect();
        for window in tokens.windows(words.len()) {
            if window
                .iter()
                .map(|token| token.text.as_str())
                .eq(words.iter().copied())
            {
                found.push(format!("{path}:{}: `{pattern}`: {why}", window[0].line));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIBRARY: &str = "crates/op/src/a.rs";

    #[test]
    fn libraries_neither_print_nor_read_the_environment() {
        let code =
            "fn f() { println!(\"x\"); let _ = std::env::var(\"HOME\"); vec![env::args()]; }";
        assert_eq!(check(LIBRARY, code).len(), 3);
        assert!(check("crates/cli/src/a.rs", code).is_empty());
        assert!(check("crates/op/tests/a.rs", code).is_empty());
    }

    #[test]
    fn tests_inside_libraries_may_print() {
        let code = "#[cfg(test)]\nmod tests { fn f() { println!(\"x\"); } }";
        assert!(check(LIBRARY, code).is_empty());
    }

    #[test]
    fn strings_and_comments_are_not_code() {
        let code = "// println!(1)\nfn f() -> &'static str { \"dbg!(x) unsafe\" }";
        assert!(check(LIBRARY, code).is_empty());
    }

    #[test]
    fn unfinished_and_ignored_are_seen_everywhere() {
        let code = "#[test]\n#[ignore]\nfn f() { todo!() }";
        assert_eq!(check("tests/cases/tests/a.rs", code).len(), 2);
    }

    #[test]
    fn unsafe_stands_only_where_it_may() {
        let code = "#[allow(unsafe_code)]\nfn f() { unsafe { g() } }";
        assert_eq!(check(LIBRARY, code).len(), 2);
        assert!(check("crates/snapshot/src/fiemap.rs", code).is_empty());
    }

    #[test]
    fn long_functions_are_seen_in_impls_too() {
        let body = "    let _ = 1;\n".repeat(FUNCTION_LINES_MAX);
        let code = format!("struct S;\nimpl S {{\nfn f() {{\n{body}}}\n}}\n");
        assert_eq!(check(LIBRARY, &code).len(), 1);
    }
}
