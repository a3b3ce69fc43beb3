//! What each command answers: the shape is the JSON contract, the text is for people.

use serde::Serialize;

/// An answer. Its serialised form and its schema name are public contracts.
pub trait Answer: Serialize {
    /// Name and version of the JSON shape.
    const SCHEMA: &'static str;

    /// Returns the answer for people, each line ended by a newline.
    fn text(&self) -> String;
}
