//! The answers of `keys`.

use super::Answer;
use evenkeel_repository::{Access, KeyHolder, KeyPlan, Role};
use serde::Serialize;
use std::path::PathBuf;
use zeroize::Zeroizing;

/// A new identity.
#[derive(Serialize)]
pub struct NewKeyAnswer {
    /// Whom to encrypt to.
    pub recipient: String,
    /// Where the identity is, if it was written into a file.
    pub file: Option<PathBuf>,
    /// The text of its file, if it was not.
    pub identity: Option<Zeroizing<String>>,
}

impl Answer for NewKeyAnswer {
    const SCHEMA: &'static str = "evenkeel/keys-generate/1";

    fn text(&self) -> String {
        match &self.identity {
            Some(identity) => identity.to_string(),
            None => format!("{}\n", self.recipient),
        }
    }
}

/// Who can open a repository.
#[derive(Debug, Serialize)]
pub struct KeysAnswer {
    /// Whether the repository is encrypted.
    pub encrypted: bool,
    /// Whether this is how it is, or only planned.
    pub executed: bool,
    /// Whether new keys are drawn for what is backed up from now on.
    pub rotated: bool,
    /// Who can open it.
    pub recipients: Vec<KeyHolder>,
}

impl KeysAnswer {
    /// Describes a repository as it is.
    #[must_use]
    pub fn list(access: Access, recipients: Vec<KeyHolder>) -> Self {
        Self {
            encrypted: access != Access::Plain,
            executed: true,
            rotated: false,
            recipients,
        }
    }

    /// Describes a change.
    #[must_use]
    pub fn changed(plan: &KeyPlan, executed: bool) -> Self {
        Self {
            encrypted: true,
            executed,
            rotated: plan.rotates,
            recipients: plan.after.clone(),
        }
    }
}

impl Answer for KeysAnswer {
    const SCHEMA: &'static str = "evenkeel/keys/1";

    fn text(&self) -> String {
        if !self.encrypted {
            return "this repository is not encrypted: anyone who can access it can read it\n"
                .to_owned();
        }
        let mut text = String::new();
        for one in &self.recipients {
            let role = match one.role {
                Role::Reader => "reader",
                Role::Writer => "writer",
            };
            let note = if one.passphrase { "  (passphrase)" } else { "" };
            text.push_str(&format!("{role}  {}{note}\n", one.recipient));
        }
        if !self.executed {
            text.push_str("only a plan: these would remain; add --execute to do it\n");
        }
        text
    }
}
