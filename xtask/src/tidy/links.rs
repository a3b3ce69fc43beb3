//! Every link from one page to another leads somewhere.

use std::path::Path;

/// Checks the relative links of one Markdown file.
pub(super) fn check(root: &Path, path: &str, text: &str) -> Vec<String> {
    let folder = root
        .join(path)
        .parent()
        .map(Path::to_path_buf)
        .unwrap_or_default();
    let mut found = Vec::new();
    for (number, target) in links(text) {
        let file = target.split('#').next().unwrap_or_default();
        if !file.is_empty() && !folder.join(file).exists() {
            found.push(format!(
                "{path}:{number}: the link to {target} leads nowhere"
            ));
        }
    }
    found
}

/// Returns the relative targets of `[text](target)` outside code, with their lines.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut in_code = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        for (at, _) in line.match_indices("](") {
            let rest = &line[at + 2..];
            let Some(end) = rest.find(')') else { continue };
            let target = &rest[..end];
            // Inside `code`, what looks like a link is not one.
            let is_code = line[..at].matches('`').count() % 2 == 1;
            if !is_code && !target.contains("://") && !target.starts_with("mailto:") {
                found.push((index + 1, target));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_relative_links_only() {
        let text = "[a](b.md#c) [w](https://x/y)\n```\n[n](o)\n```\n`[q](r)` [s](t.md)";
        assert_eq!(links(text), [(1, "b.md#c"), (5, "t.md")]);
    }

    #[test]
    fn a_dead_link_is_reported() {
        let root = crate::root();
        assert_eq!(
            check(&root, "xtask/x.md", "[a](nowhere.md) [b](Cargo.toml)").len(),
            1
        );
    }
}
