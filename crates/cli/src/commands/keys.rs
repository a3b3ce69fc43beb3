//! `keys`: who can open an encrypted repository.

use crate::args::{KeysAdd, KeysCare, KeysGenerate, KeysRemove, KeysVerb};
use crate::settings;
use crate::show::Ui;
use crate::show::answers::{KeysAnswer, NewKeyAnswer};
use evenkeel_op::{Error, Result, exit};
use evenkeel_repository::{KeyChange, NewIdentity, Repository, Role};
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

/// Runs the command.
pub fn run(args: &KeysCare, ui: &Ui) -> Result<u8> {
    match &args.verb {
        KeysVerb::Generate(args) => generate(args, ui),
        KeysVerb::List(args) => {
            let repository = Repository::open(ui.repository(&args.repository)?)?;
            ui.answer(&KeysAnswer::list(
                repository.access(),
                repository.key_holders()?,
            ));
            Ok(exit::DONE)
        }
        KeysVerb::Add(args) => add(args, ui),
        KeysVerb::Remove(args) => remove(args, ui),
    }
}

fn generate(args: &KeysGenerate, ui: &Ui) -> Result<u8> {
    let identity = NewIdentity::generate(now());
    if let Some(path) = &args.output {
        write(path, identity.file.as_bytes()).map_err(|error| {
            Error::failed(format!("failed to write {}", path.display()))
                .because(error)
                .hint("name a file that does not exist yet: an identity is never overwritten")
        })?;
    }
    ui.answer(&NewKeyAnswer {
        recipient: identity.recipient.to_string(),
        file: args.output.clone(),
        identity: args.output.is_none().then(|| identity.file.clone()),
    });
    Ok(exit::DONE)
}

/// To the second, as age-keygen does.
fn now() -> jiff::Timestamp {
    let now = jiff::Timestamp::now();
    jiff::Timestamp::from_second(now.as_second()).unwrap_or(now)
}

fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn add(args: &KeysAdd, ui: &Ui) -> Result<u8> {
    let place = settings::unlock(
        ui.repository(&args.repository)?,
        &args.keys,
        "keys",
        ui.cancel(),
    )?;
    let role = match args.writer {
        true => Role::Writer,
        false => Role::Reader,
    };
    let change = match (&args.recipient, &args.new_passphrase_file) {
        (Some(recipient), _) => KeyChange::Add(recipient.clone(), role),
        (None, Some(path)) => KeyChange::AddPassphrase(settings::passphrase_in(path, ui.cancel())?),
        (None, None) => {
            return Err(Error::usage("no recipient was given").hint("--recipient age1…"));
        }
    };
    let repository = Repository::open(place)?;
    let plan = repository.plan_keys(&change)?;
    if plan.needed {
        repository.perform_keys(&plan, Duration::ZERO)?;
    }
    ui.answer(&KeysAnswer::changed(&plan, true));
    Ok(exit::DONE)
}

fn remove(args: &KeysRemove, ui: &Ui) -> Result<u8> {
    let place = settings::unlock(
        ui.repository(&args.repository)?,
        &args.keys,
        "keys",
        ui.cancel(),
    )?;
    let repository = Repository::open(place)?;
    let plan = repository.plan_keys(&KeyChange::Remove(args.recipient.clone()))?;
    if args.execute {
        repository.perform_keys(&plan, Duration::ZERO)?;
    }
    ui.answer(&KeysAnswer::changed(&plan, args.execute));
    Ok(exit::DONE)
}
