//! One HTML page that stands alone: no script, nothing fetched, readable in light, dark and printed.
//!
//! It begins with what was found, continues with tables and pictures, each with the numbers behind it, and
//! ends with all that is needed to do it again.

mod figure;
mod html;

use crate::{Bars, Plot};

/// A page.
#[derive(Debug, Clone, Default)]
pub struct Page {
    /// What it is about, in one line.
    pub title: String,
    /// What was found, in sentences: one paragraph each.
    pub lead: Vec<String>,
    /// Figures that somebody in a hurry wants to see, with their names: `19,698`, `TpmC`.
    pub headline: Vec<Fact>,
    /// Everything else, in order.
    pub parts: Vec<Part>,
    /// What it was measured on and how to do it again.
    pub about: About,
}

/// A part of a page.
#[derive(Debug, Clone)]
pub enum Part {
    /// A heading.
    Heading(String),
    /// A paragraph.
    Text(String),
    /// Points, one line each.
    Points(Vec<String>),
    /// A table.
    Table(PageTable),
    /// A picture with the numbers behind it.
    Figure(Figure),
}

/// A picture.
#[derive(Debug, Clone)]
pub enum Figure {
    /// Lines.
    Plot(Plot),
    /// Bars.
    Bars(Bars),
}

/// Rows below names.
#[derive(Debug, Clone, Default)]
pub struct PageTable {
    /// The names of the columns.
    pub heads: Vec<String>,
    /// The rows, each as long as `heads`.
    pub rows: Vec<Vec<Cell>>,
}

/// What stands in a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cell {
    /// Words.
    Text(String),
    /// A number as it must be read, set to the right.
    Number(String),
    /// A verdict that is good news.
    Good(String),
    /// A verdict that is bad news.
    Bad(String),
}

/// Something that has a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// Its name.
    pub name: String,
    /// What it is.
    pub value: String,
}

/// What something was measured on and how to do it again.
#[derive(Debug, Clone, Default)]
pub struct About {
    /// The command line, without secrets.
    pub command: String,
    /// What random choices came from; none where there were none.
    pub seed: Option<u64>,
    /// When it was made, to be read.
    pub when: String,
    /// Which program made it, with its version.
    pub program: String,
    /// Processor, memory, kernel, filesystem.
    pub machine: Vec<Fact>,
    /// The server's version and the settings that matter.
    pub server: Vec<Fact>,
}

impl Page {
    /// Writes it.
    #[must_use]
    pub fn to_html(&self) -> String {
        html::page(self)
    }
}

impl Fact {
    /// Names something.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            value: value.into(),
        }
    }
}

impl From<Plot> for Part {
    fn from(plot: Plot) -> Self {
        Self::Figure(Figure::Plot(plot))
    }
}

impl From<Bars> for Part {
    fn from(bars: Bars) -> Self {
        Self::Figure(Figure::Bars(bars))
    }
}

impl PageTable {
    /// Begins one with the names of its columns.
    #[must_use]
    pub fn new(heads: &[&str]) -> Self {
        Self {
            heads: heads.iter().map(|&head| head.to_owned()).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }
}

impl Cell {
    /// Words.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// A number with so many digits after the point, thousands apart.
    #[must_use]
    pub fn number(value: f64, digits: usize) -> Self {
        Self::Number(number(value, digits))
    }
}

/// Writes a number to be read: thousands apart, so many digits after the point.
#[must_use]
pub fn number(value: f64, digits: usize) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let text = format!("{:.digits$}", value.abs());
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut grouped = String::new();
    // Four digits are read as they are.
    let is_long = whole.len() > 4;
    for (index, digit) in whole.chars().enumerate() {
        if is_long && index > 0 && (whole.len() - index).is_multiple_of(3) {
            grouped.push('\u{202f}');
        }
        grouped.push(digit);
    }
    let is_zero = text.chars().all(|c| matches!(c, '0' | '.'));
    let sign = if value < 0.0 && !is_zero { "−" } else { "" };
    format!("{sign}{grouped}{rest}")
}

#[cfg(test)]
mod tests;
