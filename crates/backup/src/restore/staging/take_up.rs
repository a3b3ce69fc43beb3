//! Takes up what a clone left that did not come to its end: nobody else could reach it meanwhile, and what is in
//! it is hashed before it is used.

use super::disk::{holds, names, write_new};
use super::held::Held;
use super::lock::lock;
use super::{HELD, HELD_SUFFIX, NO_DATA, Purpose, STOPPER, SYSTEM_SPACE, Staging};
use evenkeel_op::own_directory::OwnDirectory;
use evenkeel_op::{Context, Result};
use std::fs;
use std::io;

impl Staging {
    /// Takes up the staging directory that such a run left, or creates it afresh; returns whether it was
    /// there. One that another run works in is refused.
    pub(crate) fn take_up(&self) -> Result<bool> {
        if self.inside {
            self.refuse_busy()?;
            self.close_around()?;
        }
        let left = self.left()?;
        let was_there = left.is_some();
        match left {
            Some(left) => drop(self.made.get_or_init(|| left)),
            None => self.create()?,
        }
        if let Some(made) = self.made.get() {
            lock(&made.open, &self.place)?;
        }
        if was_there {
            self.hold_what_was_let_go()?;
        }
        Ok(was_there)
    }

    /// Returns what was left, where it is whole, this user's, and was closed all the time.
    fn left(&self) -> Result<Option<Held>> {
        let mark = self.mark().filter(|mark| mark.whole);
        let Some(mark) = mark.filter(|mark| mark.purpose == Purpose::Clone) else {
            return Ok(None);
        };
        if self.marker.purpose() != Purpose::Clone || self.inside && !self.is_unpublished()? {
            return Ok(None);
        }
        let Some((open, stat)) = OwnDirectory::find(&self.found_at())? else {
            return Ok(None);
        };
        let is_own = stat.st_uid == rustix::process::geteuid().as_raw();
        let is_closed = stat.st_mode & 0o077 == 0;
        let is_it = mark.directory == Some(stat.st_ino);
        let held = Held::new(open);
        if is_it {
            // Before anything of it is removed.
            lock(&held.open, &self.place)?;
        }
        Ok((is_it && is_own && is_closed).then_some(held))
    }

    /// Whether nothing was moved up into a mount point yet.
    fn is_unpublished(&self) -> Result<bool> {
        let names = names(self.around())?;
        Ok(names
            .iter()
            .all(|name| NO_DATA.iter().any(|ours| name == *ours)))
    }

    /// Holds files again that were let go just before the end.
    fn hold_what_was_let_go(&self) -> Result<()> {
        let dir = self.dir();
        let stopper = dir.join(SYSTEM_SPACE);
        for name in HELD {
            if name == SYSTEM_SPACE && holds(&stopper, STOPPER) {
                continue;
            }
            let held = dir.join(format!("{name}{HELD_SUFFIX}"));
            match fs::rename(dir.join(name), held) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(error).context(|| format!("failed to hold {name}"));
                }
                _ => {}
            }
        }
        match holds(&stopper, STOPPER) {
            true => Ok(()),
            false => write_new(&stopper, STOPPER),
        }
    }
}
