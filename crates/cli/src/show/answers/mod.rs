//! What each command answers: the shape is the JSON contract, the text is for people.

mod backup;
mod demo;
mod doctor;
mod forget;
mod lock;
mod rebuild;
mod restore;
mod settings;

pub use backup::{BackupAnswer, GenerationAnswer, GenerationsAnswer, ListedGeneration};
pub use doctor::{Check, DoctorAnswer, LeftOut, ShownLayout, ShownMethod, ShownRoot};
pub use forget::{ForgetAnswer, PruneAnswer};
pub use lock::LockReport;
pub use rebuild::RebuildAnswer;
pub use restore::VerifyAnswer;
pub use settings::{SettingsAnswer, ShownSetting};

use serde::Serialize;

/// An answer. Its serialised form and its schema name are public contracts.
pub trait Answer: Serialize {
    /// Name and version of the JSON shape.
    const SCHEMA: &'static str;

    /// Returns the answer for people, each line ended by a newline.
    fn text(&self) -> String;
}
