//! Lines of pages are not too long to read beside something else.

/// Columns that a line of a page may have.
const COLUMNS_MAX: usize = 110;

/// Pages outside of the book.
const PAGES: [&str; 4] = [
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "README.md",
];

/// Checks the lines of a page. Code blocks and tables cannot be wrapped, and neither can a single word or code span, such
/// as a link.
pub(super) fn check(path: &str, text: &str) -> Vec<String> {
    let is_book = path.starts_with("docs/src/") && path.ends_with(".md");
    if !is_book && !PAGES.contains(&path) {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut is_code = false;
    for (index, line) in text.lines().enumerate() {
        let start = line.trim_start();
        if start.starts_with("```") {
            is_code = !is_code;
        }
        let columns = line.chars().count();
        if is_code || start.starts_with('|') || columns <= COLUMNS_MAX || !can_be_wrapped(start) {
            continue;
        }
        let number = index + 1;
        found.push(format!(
            "{path}:{number}: {columns} columns: wrap it at {COLUMNS_MAX}"
        ));
    }
    found
}

/// Returns whether a line has a space outside of code spans, after the mark of a list item or a quotation.
fn can_be_wrapped(line: &str) -> bool {
    let line = line.trim_start_matches(['*', '-', '>', ' ']).trim_end();
    line.split('`')
        .step_by(2)
        .any(|outside| outside.contains(' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_of_pages_are_seen() {
        let long = format!("* {} and more.", "word ".repeat(25).trim());
        let found = check("docs/src/tasks/a.md", &format!("Short.\n{long}\n"));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].starts_with("docs/src/tasks/a.md:2: 136 columns"),
            "{found:?}"
        );
        assert_eq!(check("README.md", &long).len(), 1);
        assert!(check("benchmarks/README.md", &long).is_empty());
        assert!(check("docs/src/images/a.svg", &long).is_empty());
    }

    #[test]
    fn what_cannot_be_wrapped_is_left_alone() {
        let words = "word ".repeat(30);
        let code = format!("```text\n{words}\n```\n");
        let table = format!("| {words} |\n  | {words} |\n");
        let link = format!("* [here](https://example.com/{})\n", "x".repeat(100));
        let span = format!("`evenkeel {words}`\n");
        for text in [&code, &table, &link, &span] {
            assert!(check("docs/src/a.md", text).is_empty(), "{text}");
        }
        assert_eq!(check("docs/src/a.md", &format!("{code}{words}")).len(), 1);
        assert_eq!(check("docs/src/a.md", &format!("{span}{words}")).len(), 1);
    }

    #[test]
    fn letters_count_and_not_bytes() {
        let line = format!("{} ä", "ä".repeat(COLUMNS_MAX - 2));
        assert!(check("docs/src/a.md", &line).is_empty());
        assert_eq!(check("docs/src/a.md", &format!("{line}ä")).len(), 1);
    }
}
