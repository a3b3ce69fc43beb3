//! Text tables.

/// On which side a column's text stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// A table of text with a header.
#[derive(Debug)]
pub struct TextTable {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl TextTable {
    /// Makes a table without rows.
    #[must_use]
    pub fn new(columns: &[(&str, Align)]) -> Self {
        let columns = columns
            .iter()
            .map(|(name, align)| ((*name).to_owned(), *align))
            .collect();
        Self {
            columns,
            rows: Vec::new(),
        }
    }

    /// Adds a row; missing cells are empty.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.into());
    }

    /// Returns the table with a newline after each line, and no spaces at the ends of lines.
    #[must_use]
    pub fn text(&self) -> String {
        let names: Vec<String> = self.columns.iter().map(|(name, _)| name.clone()).collect();
        let lines: Vec<&Vec<String>> = std::iter::once(&names).chain(&self.rows).collect();
        let mut text = String::new();
        for line in &lines {
            let mut shown = String::new();
            for (index, (_, align)) in self.columns.iter().enumerate() {
                let width = lines.iter().map(|l| width(l.get(index))).max().unwrap_or(0);
                let cell = line.get(index).map_or("", String::as_str);
                let gap = " ".repeat(width - cell.chars().count());
                match align {
                    Align::Left => shown.push_str(&format!("{cell}{gap}")),
                    Align::Right => shown.push_str(&format!("{gap}{cell}")),
                }
                shown.push_str("  ");
            }
            text.push_str(shown.trim_end());
            text.push('\n');
        }
        text
    }
}

fn width(cell: Option<&String>) -> usize {
    cell.map_or(0, |cell| cell.chars().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = TextTable::new(&[
            ("n", Align::Right),
            ("name", Align::Left),
            ("ok", Align::Left),
        ]);
        table.row(["7".into(), "a".into(), "yes".into()]);
        table.row(["12".into(), "longer".into(), String::new()]);
        assert_eq!(
            table.text(),
            " n  name    ok\n 7  a       yes\n12  longer\n"
        );
    }
}
