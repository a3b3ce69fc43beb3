//! Prepared statements: prepared once, run with their values, forgotten.

use super::super::access::Act;
use super::super::known::Known;
use super::super::order::{self, Doing, Sees, There};
use super::super::step::{Step, What};
use super::{HIDDEN, Planner, done_ns, keys};
use crate::{Command, Statement};
use evenkeel_op::Result;

impl Planner {
    /// Adds the preparation of a statement. What may not run is not prepared.
    pub(super) fn prepare(&mut self, one: &Statement<'_>) -> Result<()> {
        let Some(id) = one.statement else {
            return Ok(());
        };
        let mode = self.choice.mode;
        let is_asked = self.choice.read_only;
        let Known { access, only_reads } = Known::of(one.sql, mode, is_asked);
        let is_secret = memchr::memmem::find(one.sql, HIDDEN).is_some();
        if matches!(access.act, Act::Left(_)) || is_secret || one.is_cut() || one.is_unseen {
            self.session(one).prepared.remove(&id);
            return Ok(());
        }
        if self.choice.read_only && !only_reads {
            self.session(one).prepared.insert(id, false);
            return Ok(());
        }
        self.follow_schema(one)?;
        let open = self.session(one);
        open.prepared.insert(id, only_reads);
        let done_ns = done_ns(one);
        let doing = Doing {
            by: (open.number, open.steps),
            sees: Sees::Known(one.at_ns),
            there: There {
                effect_ns: done_ns,
                known_ns: done_ns,
            },
        };
        // It needs the tables, as whoever created them left them.
        let in_transaction = open.in_transaction || open.may_have_locks;
        let tables = keys(&access, open.schema.as_deref());
        let mut after = Vec::new();
        for (table, _) in tables {
            self.order.waits(table, false, doing, &mut after);
        }
        order::tidy(&mut after);
        let step = Step {
            at_ns: one.at_ns,
            what: What::Prepare,
            in_transaction,
            after,
            statement: id,
            ..Step::default()
        };
        self.step(one, &step, one.sql)
    }

    /// Returns whether a statement only reads that was prepared before; `None` for others.
    pub(super) fn is_prepared(&self, one: &Statement<'_>) -> Option<bool> {
        let id = one.statement.filter(|_| one.command == Command::Execute)?;
        one.values?;
        self.open.get(&one.connection)?.prepared.get(&id).copied()
    }

    /// Returns how a statement runs.
    pub(super) fn how(&self, one: &Statement<'_>) -> What {
        match self.is_prepared(one) {
            Some(_) => What::Execute,
            None => What::Statement,
        }
    }

    /// Adds that a prepared statement is forgotten.
    pub(super) fn forget_prepared(&mut self, one: &Statement<'_>) -> Result<()> {
        let Some(id) = one.statement else {
            return Ok(());
        };
        let open = self.open.get_mut(&one.connection);
        let only_reads = open.and_then(|open| open.prepared.remove(&id));
        if only_reads.is_none_or(|only_reads| self.choice.read_only && !only_reads) {
            return Ok(());
        }
        let step = Step {
            at_ns: one.at_ns,
            what: What::Close,
            statement: id,
            ..Step::default()
        };
        self.step(one, &step, &[])
    }
}
