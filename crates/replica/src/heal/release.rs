//! Servers that repairs have taken out of use, put back: once they are well, or if nothing was done to them.

use super::Fence;
use super::journal::{HealEvent, HealJournal, HealOutcome};
use evenkeel_op::{Result, Run};
use std::collections::BTreeSet;

/// Puts servers back into use that were repaired and compared, and are well, and those that no repair has touched:
/// they are as they were in use. Returns those, and those that stay out.
///
/// Errors: those of the journal.
pub(super) fn put_back(
    is_well: &dyn Fn(&str) -> bool,
    journal: &mut HealJournal,
    fence: &mut Option<&mut dyn Fence>,
    run: Run<'_>,
) -> Result<(Vec<String>, Vec<String>)> {
    let (mut released, mut kept) = (Vec::new(), Vec::new());
    let drained = journal.drained();
    let servers: BTreeSet<&String> = drained.iter().map(|(_, server)| server).collect();
    for server in servers {
        let own = || drained.iter().filter(|(_, one)| one == server);
        // The last one has taken over what others had drained.
        let Some((id, _)) = own().next_back() else {
            continue;
        };
        let Some(fence) = fence else {
            kept.push(server.clone());
            continue;
        };
        let is_repaired = journal.outcome(id) == Some(HealOutcome::Repaired);
        let is_untouched = own().all(|(id, _)| !journal.has_steps(id));
        let is_back = match is_untouched || is_repaired && is_well(server) {
            true => fence.release(server, id).map(|was_out| (true, was_out)),
            // Somebody else may have put it back.
            false => fence
                .is_out(server, Some(id))
                .map(|is_out| (!is_out, false)),
        };
        match is_back {
            Ok((true, was_out)) => {
                for (id, server) in own().cloned() {
                    journal.add(HealEvent::Released { id, server })?;
                }
                if was_out {
                    released.push(server.clone());
                }
            }
            Ok((false, _)) => kept.push(server.clone()),
            Err(error) => {
                run.progress
                    .warn(format!("{server} is still drained: {}", error.chain()));
                kept.push(server.clone());
            }
        }
    }
    Ok((released, kept))
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_op::{Cancel, Silent};

    /// The repair that the server is drained for.
    struct OneServer(Option<String>);

    impl Fence for OneServer {
        fn is_out(&mut self, _server: &str, id: Option<&str>) -> Result<bool> {
            Ok(self.0.is_some() && (id.is_none() || self.0.as_deref() == id))
        }

        fn drain(&mut self, _server: &str, id: &str) -> Result<()> {
            self.0 = Some(id.to_owned());
            Ok(())
        }

        fn release(&mut self, server: &str, id: &str) -> Result<bool> {
            let is_out = self.is_out(server, Some(id))?;
            if is_out {
                self.0 = None;
            }
            Ok(is_out)
        }
    }

    fn put_back_of(journal: &mut HealJournal, health: &mut OneServer, is_well: bool) -> String {
        let (progress, cancel) = (Silent, Cancel::new());
        let run = Run {
            progress: &progress,
            cancel: &cancel,
        };
        let mut fence: Option<&mut dyn Fence> = Some(health);
        let (released, kept) = put_back(&|_| is_well, journal, &mut fence, run).unwrap();
        format!("released {released:?} kept {kept:?}")
    }

    #[test]
    fn a_replica_comes_back_once_it_was_repaired_and_compared() {
        let directory = tempfile::tempdir().unwrap();
        let mut journal = HealJournal::open(&directory.path().join("heal")).unwrap();
        let mut health = OneServer(None);
        let kept = "released [] kept [\"db2\"]";
        for (id, outcome) in [
            ("a", None),
            ("b", Some(HealOutcome::Failed)),
            ("c", Some(HealOutcome::NotCompared)),
            ("d", Some(HealOutcome::Differs)),
            ("e", Some(HealOutcome::Repaired)),
        ] {
            let (server, text) = ("db2".to_owned(), id.to_owned());
            let (of, on) = (text.clone(), server.clone());
            journal
                .add(HealEvent::Drained { id: text, server })
                .unwrap();
            health.drain("db2", id).unwrap();
            let does = "STOP SLAVE".to_owned();
            journal.add(HealEvent::Step { id: of, on, does }).unwrap();
            if let Some(outcome) = outcome {
                let (id, why) = (id.to_owned(), String::new());
                journal.add(HealEvent::Ended { id, outcome, why }).unwrap();
            }
            assert_eq!(put_back_of(&mut journal, &mut health, false), kept);
            if outcome != Some(HealOutcome::Repaired) {
                assert_eq!(put_back_of(&mut journal, &mut health, true), kept);
            }
        }
        let all = put_back_of(&mut journal, &mut health, true);
        assert_eq!(all, "released [\"db2\"] kept []");
        assert!(journal.drained().is_empty() && health.0.is_none());
    }

    #[test]
    fn one_that_no_repair_has_touched_comes_back_as_it_was() {
        let directory = tempfile::tempdir().unwrap();
        let mut journal = HealJournal::open(&directory.path().join("heal")).unwrap();
        let mut health = OneServer(None);
        let text = str::to_owned;
        for id in ["a", "b"] {
            let (id, server) = (text(id), text("db2"));
            health.drain(&server, &id).unwrap();
            journal.add(HealEvent::Drained { id, server }).unwrap();
        }
        let why = text("it has changed since it was looked at");
        let (id, outcome) = (text("b"), HealOutcome::Failed);
        journal.add(HealEvent::Ended { id, outcome, why }).unwrap();
        let all = put_back_of(&mut journal, &mut health, false);
        assert_eq!(all, "released [\"db2\"] kept []");
        assert!(journal.drained().is_empty() && health.0.is_none());
    }

    #[test]
    fn one_that_somebody_else_has_put_back_is_forgotten() {
        let directory = tempfile::tempdir().unwrap();
        let mut journal = HealJournal::open(&directory.path().join("heal")).unwrap();
        let (id, server) = ("a".to_owned(), "db2".to_owned());
        journal.add(HealEvent::Drained { id, server }).unwrap();
        let (id, on, does) = ("a".to_owned(), "db2".to_owned(), "STOP SLAVE".to_owned());
        journal.add(HealEvent::Step { id, on, does }).unwrap();
        let all = put_back_of(&mut journal, &mut OneServer(None), false);
        assert_eq!(all, "released [] kept []");
        assert!(journal.drained().is_empty());
    }
}
