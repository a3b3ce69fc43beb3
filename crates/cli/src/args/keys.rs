//! Encryption: what opens a repository, and who may.

use super::Hidden;
use clap::{Args, Subcommand};
use evenkeel_repository::Recipient;
use std::path::PathBuf;

/// What opens an encrypted repository.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Encryption")]
pub struct Keys {
    /// An identity that opens the repository: a file as `evenkeel keys generate` and age-keygen
    /// write it; repeat for several.
    #[arg(long, value_name = "FILE", help_heading = "Encryption")]
    pub identity: Vec<PathBuf>,
    /// The passphrase that opens the repository, the first line of this file.
    #[arg(long, value_name = "FILE", help_heading = "Encryption")]
    pub passphrase_file: Option<PathBuf>,
    /// Keys that the other side of a link has opened. They come over the link, never from here.
    #[arg(long, hide = true, value_name = "KEYS", help_heading = "Encryption")]
    pub session_keys: Option<Hidden>,
}

/// For whom a new repository is encrypted.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Encryption")]
pub struct EncryptTo {
    /// Encrypt the repository that this first backup makes, so that this recipient (`age1…`) can
    /// read it; repeat for several. An identity that is given but not named here can add backups
    /// and not read them.
    #[arg(long, value_parser = super::recipient, value_name = "RECIPIENT", help_heading = "Encryption")]
    pub encrypt_to: Vec<Recipient>,
    /// Encrypt the repository that this first backup makes with a passphrase, the first line of
    /// this file.
    #[arg(long, value_name = "FILE", help_heading = "Encryption")]
    pub encrypt_passphrase_file: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  evenkeel keys generate --output admin.key        Make an identity; its recipient is printed
  evenkeel keys list /backup/shop                  Who can read, who can only write
  evenkeel keys add /backup/shop --identity admin.key --recipient age1... --writer
  evenkeel keys remove /backup/shop --identity admin.key --recipient age1... --execute";

/// Say who can open an encrypted repository.
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
    /// Make an identity and print its recipient.
    Generate(KeysGenerate),
    /// List who can open a repository.
    List(KeysList),
    /// Let someone open a repository.
    Add(KeysAdd),
    /// Let someone open a repository no longer.
    Remove(KeysRemove),
}

const GENERATE: &str = "\
Examples:
  evenkeel keys generate --output /etc/evenkeel/host.key
  evenkeel keys generate > admin.key

Without --output the identity is the answer: keep it where it cannot be lost. Who has it can open
what is encrypted to its recipient, and without it nobody can.";

/// Make an identity and print its recipient.
#[derive(Args, Debug)]
#[command(after_help = GENERATE)]
pub struct KeysGenerate {
    /// Write the identity into this new file, which only its owner can read.
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

const LIST: &str = "\
Examples:
  evenkeel keys list /backup/shop

Needs no key. Readers open everything; writers open what an incremental backup needs (names, maps
and hashes), but no content.";

/// List who can open a repository.
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

Takes a reader's identity or the passphrase. Nothing of the backups is written anew.";

/// Let someone open a repository.
#[derive(Args, Debug)]
#[command(after_help = ADD)]
pub struct KeysAdd {
    /// The repository.
    pub repository: PathBuf,
    /// Who: `age1…`.
    #[arg(
        long,
        required_unless_present = "new_passphrase_file",
        conflicts_with = "new_passphrase_file",
        value_parser = super::recipient
    )]
    pub recipient: Option<Recipient>,
    /// Only to add backups, not to read them.
    #[arg(long, requires = "recipient")]
    pub writer: bool,
    /// Whoever knows this passphrase, the first line of the file.
    #[arg(long, value_name = "FILE")]
    pub new_passphrase_file: Option<PathBuf>,
    /// What opens it.
    #[command(flatten)]
    pub keys: Keys,
}

const REMOVE: &str = "\
Examples:
  evenkeel keys remove /backup/shop --identity admin.key --recipient age1...      The plan
  evenkeel keys remove /backup/shop --identity admin.key --recipient age1... --execute

The keys of what is there are wrapped anew for those who stay, and what is backed up from then on has
new keys: nothing of the backups is written anew. Who was removed and kept a copy of the old keys can
still open old backups, but no new ones. Without --execute the plan is shown and nothing happens.";

/// Let someone open a repository no longer.
#[derive(Args, Debug)]
#[command(after_help = REMOVE)]
pub struct KeysRemove {
    /// The repository.
    pub repository: PathBuf,
    /// Who: `age1…`; of a passphrase, the recipient that `keys list` shows for it.
    #[arg(long, value_parser = super::recipient)]
    pub recipient: Recipient,
    /// Do it; without this the plan is shown and nothing happens.
    #[arg(long)]
    pub execute: bool,
    /// What opens it.
    #[command(flatten)]
    pub keys: Keys,
}
