//! Copies generations to another place: object by object where the other repository is a copy of this
//! one, block by block where it is a repository of its own. Argued in `docs/src/design/copy.md`.

mod archive;
mod blocks;
mod choose;
mod commit;
mod objects;
mod plan;
mod request;
mod run;
mod send;

pub use request::{Chosen, Copied, CopyReport, CopyTo, CopyWay};

use crate::crypt::{self, Access};
use crate::open::check_wish;
use crate::repository::Repository;
use crate::store::Location;
use evenkeel_op::rate::RateLimit;
use evenkeel_op::{Cancel, Error, ErrorKind, Progress, Result};
use run::Run;
use std::sync::atomic::AtomicU64;

impl Repository {
    /// Copies generations to the repository at `to`, which is made if it is not there: as a copy of
    /// this one, or encrypted for whom `to` says, or in clear if that was asked for. What is there
    /// already is not sent again. Each generation is absent or whole over there, whenever the copy
    /// ends; what an interrupted one sent, object by object, is used by the next.
    pub fn copy_to(
        &self,
        to: &Location,
        how: &CopyTo,
        progress: &dyn Progress,
        cancel: &Cancel,
    ) -> Result<CopyReport> {
        let run = Run {
            how,
            rate: RateLimit::new(how.rate_bytes_per_s),
            sent: AtomicU64::new(0),
            objects: AtomicU64::new(0),
            progress,
            cancel,
        };
        let there = match Self::open_on(to.store()) {
            Ok(there) => Some(there),
            Err(error) if error.kind() == ErrorKind::NoRepository => None,
            Err(error) => return Err(error),
        };
        let changes_keys = !to.encrypt().is_empty() || (how.decrypt && self.keys().is_encrypted());
        match there {
            Some(there) if there.id() == self.id() => {
                if !to.encrypt().is_empty() {
                    check_wish(to.encrypt(), to.credentials(), &there)?;
                }
                objects::copy(self, there, &run)
            }
            None if !changes_keys => {
                objects::copy(self, Self::create_like(to.store(), self)?, &run)
            }
            _ => {
                let there = self.other(to, how)?;
                blocks::copy(self, &there, &run)
            }
        }
    }

    /// Opens or makes a repository of its own for this one's generations.
    fn other(&self, to: &Location, how: &CopyTo) -> Result<Self> {
        match self.access() {
            Access::Plain | Access::Reader => {}
            Access::Writer => return Err(crypt::no_reader()),
            Access::Locked => return Err(crypt::no_key()),
        }
        // What opens this one is not asked of one that should be in clear.
        let place = match how.decrypt {
            true => Location::on(to.store()),
            false => to.clone(),
        };
        let there = Self::open_or_create(&place)?;
        if there.access() == Access::Plain && self.access() != Access::Plain && !how.decrypt {
            return Err(Error::new(
                ErrorKind::WrongKey,
                format!(
                    "{} is not encrypted: data that is encrypted here would be unencrypted there",
                    there.place()
                ),
            )
            .hint("if you want that, add --decrypt"));
        }
        Ok(there)
    }
}
