//! The fenced blocks of a page.

/// One of them.
#[derive(Debug, Clone)]
pub struct Block {
    /// What stands behind the fence.
    pub language: String,
    /// Its first line on the page.
    pub line: usize,
    /// Its lines, without what indents all of them.
    pub lines: Vec<String>,
}

impl Block {
    /// Returns its text.
    #[must_use]
    pub fn text(&self) -> String {
        self.lines.iter().map(|line| format!("{line}\n")).collect()
    }

    /// Returns its first line.
    #[must_use]
    pub fn first(&self) -> &str {
        self.lines.first().map_or("", String::as_str)
    }
}

/// Returns the blocks of a page, those in lists as well.
#[must_use]
pub(super) fn of(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = page.lines().enumerate();
    while let Some((at, fence)) = lines.next() {
        let Some(language) = fence.trim_start().strip_prefix("```") else {
            continue;
        };
        let indent = fence.len() - fence.trim_start().len();
        let inside = lines
            .by_ref()
            .map(|(_, line)| line)
            .take_while(|line| !line.trim_start().starts_with("```"));
        blocks.push(Block {
            language: language.trim().to_owned(),
            line: at + 2,
            lines: inside
                .map(|line| line.get(indent..).unwrap_or_default().to_owned())
                .collect(),
        });
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_in_lists_lose_what_indents_them() {
        let page = "a\n\n```text\none\n  two\n```\n\n* b\n\n  ```sql\n  SELECT 1\n  ```\n";
        let blocks = of(page);
        let [first, second] = &blocks[..] else {
            panic!("{blocks:?}");
        };
        assert_eq!((first.language.as_str(), first.line), ("text", 4));
        assert_eq!(first.lines, ["one", "  two"]);
        assert_eq!((second.language.as_str(), second.line), ("sql", 11));
        assert_eq!(second.lines, ["SELECT 1"]);
    }
}
