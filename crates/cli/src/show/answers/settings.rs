//! What `settings` answers.

use super::Answer;
use crate::show::{Align, TextTable};
use evenkeel_server::options::Setting;
use serde::Serialize;

/// Every setting, and where it came from.
#[derive(Debug, Clone, Serialize)]
pub struct SettingsAnswer {
    /// In the order of precedence of the flags in `--help`.
    pub settings: Vec<ShownSetting>,
    /// What was passed over, and why.
    pub warnings: Vec<String>,
}

/// One setting.
#[derive(Debug, Clone, Serialize)]
pub struct ShownSetting {
    /// The flag's name without dashes.
    pub name: String,
    /// Its value; `***` for a password.
    pub value: String,
    /// Where the value came from.
    pub origin: String,
}

impl From<Setting> for ShownSetting {
    fn from(setting: Setting) -> Self {
        let Setting {
            name,
            value_shown: value,
            origin,
        } = setting;
        Self {
            name,
            value,
            origin: origin.to_string(),
        }
    }
}

impl Answer for SettingsAnswer {
    const SCHEMA: &'static str = "evenkeel/settings/1";

    fn text(&self) -> String {
        let columns = ["setting", "value", "from"].map(|name| (name, Align::Left));
        let mut table = TextTable::new(&columns);
        for setting in &self.settings {
            table.row([
                setting.name.clone(),
                setting.value.clone(),
                setting.origin.clone(),
            ]);
        }
        table.text()
    }
}
