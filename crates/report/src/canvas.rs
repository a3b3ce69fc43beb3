//! What all pictures share: sizes, colours, the legend, and the text of an SVG.
//!
//! A picture is as narrow as a column of text, so that on a telephone, where it is shrunk to about 400 pixels, its
//! letters are still eleven pixels high.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// The width of each picture, in the units of an SVG: about pixels.
pub(crate) const WIDTH: u32 = 560;
/// The size of all text but titles. The backend writes it down as 16 pixels: it divides by 1.24.
pub(crate) const TEXT: f64 = 20.0;
/// The size of titles.
const TITLE: f64 = 23.0;
/// The height of a line of text.
pub(crate) const LINE: u32 = 24;
/// Free at each side of a line of text.
pub(crate) const SIDE: u32 = 12;
/// One for each group: apart from each other for eyes that see fewer colours, on white and on black
/// (Okabe and Ito, without yellow and black).
const COLOURS: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
];
/// What is black or white on paper turns round where the reader's page is dark. The colours are
/// attributes, and a rule is stronger than those.
const STYLE: &str = "<style>svg{background:#fff}text{font-family:sans-serif}\
    @media(prefers-color-scheme:dark){svg{background:#16181c}text{fill:#dde1e6}\
    [stroke=\"#000000\"]{stroke:#aab0b8}}</style>";
/// About how wide a letter is, of wide fonts.
const LETTER: u32 = 9;
/// The line before a name in the legend, with the space around it.
const SWATCH: u32 = 46;

/// What is drawn on.
pub(crate) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Whether a picture is a file of its own, or part of a page that has its title and its colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Within {
    File,
    Page,
}

/// The colour of a group.
pub(crate) fn colour(group: usize) -> RGBColor {
    COLOURS[group % COLOURS.len()]
}

/// Grey lines that are not in the way.
pub(crate) fn faint() -> RGBAColor {
    RGBColor(128, 128, 128).mix(0.3)
}

/// About how much room a text takes.
pub(crate) fn width_of(text: &str) -> u32 {
    text.chars().count() as u32 * LETTER
}

/// Draws a picture as an SVG; the smallest SVG there is when it cannot be drawn.
pub(crate) fn svg(
    height: u32,
    within: Within,
    draw: impl FnOnce(&Area<'_>) -> Option<()>,
) -> String {
    let mut text = String::new();
    let area = SVGBackend::with_string(&mut text, (WIDTH, height)).into_drawing_area();
    // Writing into memory does not fail, and each text has a size: what remains is no plot at all.
    let drawn = draw(&area).and_then(|()| area.present().ok());
    drop(area);
    match (drawn, text.find('>').filter(|_| text.starts_with("<svg"))) {
        (Some(()), Some(end)) => {
            if within == Within::File {
                text.insert_str(end + 1, STYLE);
            }
            text
        }
        _ => format!(
            "<svg width=\"{WIDTH}\" height=\"{height}\" xmlns=\"http://www.w3.org/2000/svg\"></svg>\n"
        ),
    }
}

/// Lines of text over the whole width.
pub(crate) struct Lines {
    lines: Vec<String>,
    size: f64,
    is_centred: bool,
}

impl Lines {
    /// The title of a picture that is a file; a page has it above the picture.
    pub(crate) fn title(text: &str, within: Within) -> Self {
        let lines = match within {
            Within::File => wrapped(text, TITLE / TEXT),
            Within::Page => Vec::new(),
        };
        Self {
            lines,
            size: TITLE,
            is_centred: true,
        }
    }

    /// What stands above or below a picture; nothing for no text.
    pub(crate) fn of(text: &str) -> Self {
        Self {
            lines: wrapped(text, 1.0),
            size: TEXT,
            is_centred: false,
        }
    }

    /// How high they are.
    pub(crate) fn height(&self) -> u32 {
        match self.lines.len() as u32 {
            0 => 0,
            lines => lines * self.line() + 8,
        }
    }

    fn line(&self) -> u32 {
        (f64::from(LINE) * self.size / TEXT) as u32
    }

    pub(crate) fn draw(&self, area: &Area<'_>) -> Option<()> {
        let (x, side) = match self.is_centred {
            true => (WIDTH / 2, HPos::Center),
            false => (SIDE, HPos::Left),
        };
        let font = ("sans-serif", self.size).into_font();
        let style = TextStyle::from(font).pos(Pos::new(side, VPos::Top));
        for (number, line) in (0..).zip(&self.lines) {
            let at = (x as i32, (4 + number * self.line()) as i32);
            area.draw(&Text::new(line.clone(), at, style.clone()))
                .ok()?;
        }
        Some(())
    }
}

/// Breaks a text into lines that fit, of letters larger by a factor.
fn wrapped(text: &str, factor: f64) -> Vec<String> {
    let room = f64::from(WIDTH - 2 * SIDE) / factor;
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        match lines.last_mut() {
            Some(line) if f64::from(width_of(line) + width_of(word) + LETTER) <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// A name in the legend.
pub(crate) struct Named<'a> {
    pub(crate) name: &'a str,
    pub(crate) group: usize,
    pub(crate) is_dashed: bool,
}

/// Where each name goes, line by line.
fn places(names: &[Named<'_>]) -> Vec<(u32, u32)> {
    let (mut x, mut y) = (0, 0);
    let mut all = Vec::with_capacity(names.len());
    for named in names {
        let width = SWATCH + width_of(named.name);
        if x > 0 && x + width > WIDTH - SIDE {
            (x, y) = (0, y + 1);
        }
        all.push((x, y));
        x += width;
    }
    all
}

/// How high the legend of these names is.
pub(crate) fn legend_height(names: &[Named<'_>]) -> u32 {
    places(names)
        .last()
        .map_or(0, |(_, line)| (line + 1) * LINE + 4)
}

/// Draws names above a picture, where no line can run under them.
pub(crate) fn legend(area: &Area<'_>, names: &[Named<'_>]) -> Option<()> {
    for (named, (x, line)) in names.iter().zip(places(names)) {
        let (x, y) = ((x + SIDE) as i32, (line * LINE) as i32 + 13);
        let stroke = colour(named.group).stroke_width(4);
        let parts: &[(i32, i32)] = match named.is_dashed {
            true => &[(0, 8), (12, 20)],
            false => &[(0, 20)],
        };
        for (from, to) in parts {
            area.draw(&PathElement::new([(x + from, y), (x + to, y)], stroke))
                .ok()?;
        }
        let style = ("sans-serif", TEXT).into_font();
        area.draw(&Text::new(named.name.to_owned(), (x + 27, y - 9), style))
            .ok()?;
    }
    Some(())
}
