//! `lock`: a command runs while the server is locked, and the lock's end is checked.

use crate::args::Lock;
use crate::show::Ui;
use crate::show::answers::LockReport;
use crate::{child, settings};
use evenkeel_op::{Error, ErrorKind, Result};
use evenkeel_server::abilities::Abilities;
use evenkeel_server::coordinates::Coordinates;
use evenkeel_server::lock::{LockChoice, Locker};
use std::process::Command;

/// What releases a lock of the user's own when they do not say.
const UNLOCK: &str = "UNLOCK TABLES";

/// Runs the command under the lock and returns its exit code.
pub fn run(args: &Lock, ui: &Ui) -> Result<u8> {
    let choice = choice(args)?;
    let mut command = child::command(&args.command)?;
    let options = settings::connect(&args.connection, "lock", ui)?;
    super::resume::resume(&options, ui);
    let limits = settings::limits(&args.locking);
    let mut locker = Locker::open(&options, limits, ui.progress(), ui.cancel())?;
    let name = describe(&choice, locker.abilities());
    ui.note(&format!("locking with {name}"));
    locker.take(&choice)?;
    let coordinates = coordinates(&mut locker, ui)?;
    ui.note(&format!("locked {}", place(&coordinates)));
    export(&mut command, &coordinates);

    let signals = ui.signals().hand_on();
    let ended = child::start(command).and_then(|child| child::finish(child, signals, || ()));
    // Released and checked also when the command could not be run.
    let held = locker.release();
    let (ended, ()) = ended?;
    let held = held.inspect_err(|_| ui.note(&format!("command {ended}")))?;
    ui.answer_aside(&LockReport::new(name, coordinates, held, ended));
    Ok(ended.exit_code())
}

fn choice(args: &Lock) -> Result<LockChoice> {
    if let Some(before) = &args.before {
        let after = args.after.clone().unwrap_or_else(|| UNLOCK.to_owned());
        return Ok(LockChoice::Statements {
            before: before.clone(),
            after,
        });
    }
    settings::choice(args.lock).ok_or_else(|| {
        Error::usage("--lock none leaves nothing to do")
            .hint("run the command itself, or choose another lock")
    })
}

fn describe(choice: &LockChoice, abilities: &Abilities) -> String {
    match choice {
        LockChoice::Auto if abilities.backup_stage => "BACKUP STAGE BLOCK_COMMIT".to_owned(),
        LockChoice::Auto => "FLUSH TABLES WITH READ LOCK".to_owned(),
        LockChoice::BackupStage => "BACKUP STAGE BLOCK_COMMIT".to_owned(),
        LockChoice::Instance => "LOCK INSTANCE FOR BACKUP".to_owned(),
        LockChoice::GlobalRead => "FLUSH TABLES WITH READ LOCK".to_owned(),
        LockChoice::Statements { before, .. } => before.clone(),
    }
}

/// Reads the coordinates. An account that may lock but not see them still gets its lock.
fn coordinates(locker: &mut Locker<'_>, ui: &Ui) -> Result<Coordinates> {
    match locker.coordinates() {
        Err(error) if error.kind() == ErrorKind::Refused => {
            ui.warn_of("the coordinates are not known: ", &error);
            Ok(Coordinates::default())
        }
        other => other,
    }
}

fn place(at: &Coordinates) -> String {
    let mut text = match (&at.binlog_file, at.binlog_position) {
        (Some(file), Some(position)) => format!("at {file}:{position}"),
        _ => "without a binary log".to_owned(),
    };
    if let Some(gtid) = &at.gtid {
        text.push_str(&format!(", GTID {gtid}"));
    }
    text
}

/// Puts the coordinates into the command's environment, and nothing from an outer `lock`.
fn export(command: &mut Command, at: &Coordinates) {
    let variables = [
        ("EVENKEEL_BINLOG_FILE", at.binlog_file.clone()),
        (
            "EVENKEEL_BINLOG_POSITION",
            at.binlog_position.map(|position| position.to_string()),
        ),
        ("EVENKEEL_GTID", at.gtid.clone()),
    ];
    for (name, value) in variables {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_read_well() {
        let at = Coordinates {
            binlog_file: Some("binlog.000003".into()),
            binlog_position: Some(442),
            gtid: Some("0-1-5".into()),
        };
        assert_eq!(place(&at), "at binlog.000003:442, GTID 0-1-5");
        assert_eq!(place(&Coordinates::default()), "without a binary log");
    }

    #[test]
    fn coordinates_of_an_outer_lock_are_not_inherited() {
        let mut command = Command::new("env");
        export(&mut command, &Coordinates::default());
        assert_eq!(
            command
                .get_envs()
                .filter(|(_, value)| value.is_none())
                .count(),
            3
        );
    }
}
