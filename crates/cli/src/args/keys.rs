//! Encryption: what opens a repository, and who may.

use super::Hidden;
use clap::{Args, Subcommand};
use evenkeel_repository::Recipient;
use std::path::PathBuf;

/// What opens an encrypted repository.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Encryption")]
pub struct Keys {
    /// A file with an identity that opens the repository, written by `evenkeel keys generate` or age-keygen;
    /// repeat for several.
    #[arg(long, value_name = "FILE", help_heading = "Encryption")]
    pub identity: Vec<PathBuf>,
    /// A file whose first line is the passphrase that opens the repository.
    #[arg(long, value_name = "FILE", help_heading = "Encryption")]
    pub passphrase_file: Option<PathBuf>,
    /// Keys that the other host has opened. They come over the link, never from the command line.
    #[arg(long, hide = true, value_name = "KEYS", help_heading = "Encryption")]
    pub session_keys: Option<Hidden>,
}

/// For whom a new repository is encrypted.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Encryption")]
pub struct EncryptTo {
    /// Encrypt the new repository for this recipient (`age1…`), who can read it; repeat for several. An
    /// --identity whose recipient is not named here can add backups but not read them.
    #[arg(long, value_parser = super::recipient, value_name = "RECIPIENT", help_heading = "Encryption")]
    pub encrypt_to: Vec<Recipient>,
    /// Encrypt the new repository with a passphrase, the first line of this file.
    #[arg(long, value_name = "FILE", help_heading = "Encryption")]
    pub encrypt_passphrase_file: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  evenkeel keys generate --output admin.key        Create an identity and print its recipient
  evenkeel keys list /backup/shop                  Who can read, who can only write
  evenkeel keys add /backup/shop --identity admin.key --recipient age1... --writer
  evenkeel keys remove /backup/shop --identity admin.key --recipient age1... --execute";

/// Manage who can open an encrypted repository.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES, subcommand_required = true, arg_required_else_help = true)]
pub struct KeysCare {
    /// What to do.
    #[command(subcommand)]
    pub verb: KeysVerb,
}

/// What to do with keys.
#[derive(Subcommand, Debug)]
pub enum KeysVerb {
    /// Create an identity and print its recipient.
    Generate(KeysGenerate),
    /// List the keys of a repository.
    List(KeysList),
    /// Add a key to a repository.
    Add(KeysAdd),
    /// Remove a key from a repository.
    Remove(KeysRemove),
}

const GENERATE: &str = "\
Examples:
  evenkeel keys generate --output /etc/evenkeel/host.key
  evenkeel keys generate > admin.key

Without --output, the identity is printed. Keep it where it cannot be lost: it opens everything that is
encrypted for its recipient, and nothing else does.";

/// Create an identity and print its recipient.
#[derive(Args, Debug)]
#[command(after_help = GENERATE)]
pub struct KeysGenerate {
    /// Write the identity to this new file, which only its owner can read.
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

const LIST: &str = "\
Examples:
  evenkeel keys list /backup/shop

This needs no key. Readers can open everything. Writers can open only what an incremental backup needs (names,
maps and hashes), but no content.";

/// List the keys of a repository.
#[derive(Args, Debug)]
#[command(after_help = LIST)]
pub struct KeysList {
    /// The repository.
    pub repository: PathBuf,
}

const ADD: &str = "\
Examples:
  evenkeel keys add /backup/shop --identity admin.key --recipient age1...
  evenkeel keys add /backup/shop --identity admin.key --recipient age1... --writer
  evenkeel keys add /backup/shop --identity admin.key --new-passphrase-file secret

This needs a reader's identity or the passphrase. The backups are not rewritten.";

/// Add a key to a repository.
#[derive(Args, Debug)]
#[command(after_help = ADD)]
pub struct KeysAdd {
    /// The repository.
    pub repository: PathBuf,
    /// The recipient: `age1…`.
    #[arg(
        long,
        required_unless_present = "new_passphrase_file",
        conflicts_with = "new_passphrase_file",
        value_parser = super::recipient
    )]
    pub recipient: Option<Recipient>,
    /// Allow this recipient to add backups, but not to read them.
    #[arg(long, requires = "recipient")]
    pub writer: bool,
    /// Add a passphrase, the first line of this file.
    #[arg(long, value_name = "FILE")]
    pub new_passphrase_file: Option<PathBuf>,
    /// The key.
    #[command(flatten)]
    pub keys: Keys,
}

const REMOVE: &str = "\
Examples:
  evenkeel keys remove /backup/shop --identity admin.key --recipient age1...      The plan
  evenkeel keys remove /backup/shop --identity admin.key --recipient age1... --execute

The existing keys are re-encrypted for the remaining recipients, and new backups get new keys. The backups
are not rewritten. A removed recipient who kept a copy of the old keys can still open old backups, but no
new ones. Without --execute the plan is only shown.";

/// Remove a key from a repository.
#[derive(Args, Debug)]
#[command(after_help = REMOVE)]
pub struct KeysRemove {
    /// The repository.
    pub repository: PathBuf,
    /// The recipient: `age1…`; for a passphrase, the recipient that `keys list` shows for it.
    #[arg(long, value_parser = super::recipient)]
    pub recipient: Recipient,
    /// Carry out the plan; without this the plan is only shown.
    #[arg(long)]
    pub execute: bool,
    /// The key.
    #[command(flatten)]
    pub keys: Keys,
}
