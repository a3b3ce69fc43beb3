//! What a host whose database is backed up may change in the head.
//!
//! The head decides what healing and prune remove. Whoever may replace it could have the repository's own
//! side destroy every generation, so a session from another host may only do to it what its errand needs.

use crate::fault::store_failed;
use crate::head::{Head, Live};
use crate::ids::{Digest, RepositoryId};
use crate::manifest::GenerationRef;
use crate::names;
use crate::sealed;
use crate::store::Store;
use crate::there::There;
use evenkeel_op::{Error, Result};
use std::io;

/// What may be different in the next head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Succession {
    /// What is known of how generations were proved.
    Proofs,
    /// One more generation; in a repository that is being made, the first head, which is empty.
    Generation,
}

/// Checks that a head that is about to replace the stored one differs from it by no more than it may.
/// `bytes` is the new one as it would be stored.
///
/// Errors: `Refused` when it differs by more; those of reading; `Differs` when one of them is damaged.
pub fn check_next_head(store: &dyn Store, bytes: &[u8], may: Succession) -> Result<()> {
    let next: Head = sealed::unseal("head", names::HEAD, bytes)?;
    let refused = |what: &str| {
        Error::refused(format!("the other host tried to change {what} in the head"))
            .hint("if you did not do this: check who has access to that host")
    };
    let stored = match store.open(names::HEAD) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return match begins(&next) && may == Succession::Generation {
                true => Ok(()),
                false => Err(refused("what generations there are")),
            };
        }
        Err(error) => return Err(store_failed("read", names::HEAD, error)),
        Ok(opened) => sealed::whole(names::HEAD, Ok(opened))?,
    };
    let now: Head = sealed::unseal("head", names::HEAD, &stored)?;
    if begins(&now) && begins(&next) && is_missing(store, names::IDENTITY) {
        // It is being made, again after an interruption.
        return Ok(());
    }
    if next.repository != now.repository {
        return Err(refused("whose head it is"));
    }
    if next.sequence != now.sequence.saturating_add(1) {
        return Err(refused("its number"));
    }
    let now = raised(store, now, &next)?;
    if next.retired != now.retired || next.changes != now.changes {
        return Err(refused("what was forgotten or pruned"));
    }
    match may {
        Succession::Proofs => same_but_proofs(&now, &next),
        Succession::Generation => same_and_one(store, &now, &next),
    }
    .map_err(refused)
}

/// Returns the head with those generations among the live ones that the next head has there again, as
/// healing does: what is not gone was not forgotten.
fn raised(store: &dyn Store, now: Head, next: &Head) -> Result<Head> {
    let is_back = |one: &GenerationRef| next.live(one.generation).is_some();
    if !now.retired.iter().any(is_back) {
        return Ok(now);
    }
    let mut raised = now;
    There::read(store)?.raise(&mut raised);
    Ok(raised)
}

/// Returns the number of the next generation, as far as anybody can tell who does not know which repository
/// this is; nothing when there is none left.
pub fn next_generation(store: &dyn Store) -> Result<Option<u32>> {
    let there = There::read(store)?;
    let stored = match store.open(names::HEAD) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        opened => Some(sealed::whole(names::HEAD, opened)?),
    };
    let head = stored.and_then(|stored| sealed::unseal("head", names::HEAD, &stored).ok());
    // Where it is damaged, no run begins anyway.
    let head: Head = head.unwrap_or_else(|| Head::empty(RepositoryId([0; 16])));
    Ok(there.next(&head))
}

/// Whether a head is that of a repository that was just made.
fn begins(head: &Head) -> bool {
    *head
        == Head {
            sequence: 1,
            ..Head::empty(head.repository)
        }
}

fn is_missing(store: &dyn Store, name: &str) -> bool {
    matches!(store.open(name), Err(error) if error.kind() == io::ErrorKind::NotFound)
}

fn same_but_proofs(now: &Head, next: &Head) -> std::result::Result<(), &'static str> {
    let bare = |live: &Live| (live.generation, live.manifest);
    match now.live.iter().map(bare).eq(next.live.iter().map(bare)) {
        true => Ok(()),
        false => Err("what generations there are"),
    }
}

fn same_and_one(
    store: &dyn Store,
    now: &Head,
    next: &Head,
) -> std::result::Result<(), &'static str> {
    let is_known = |live: &&Live| {
        now.known()
            .iter()
            .any(|one| one.generation == live.generation)
    };
    let (kept, new): (Vec<&Live>, Vec<&Live>) = next.live.iter().partition(is_known);
    if !kept.into_iter().eq(&now.live) {
        return Err("the existing generations");
    }
    match new[..] {
        [] => Ok(()),
        [one] if one.proven.is_none() && is_there(store, one) => Ok(()),
        [_] => Err("a generation that does not exist"),
        _ => Err("more than one generation"),
    }
}

/// Whether the manifest that a head names is there: so its number is one that could be had.
fn is_there(store: &dyn Store, live: &Live) -> bool {
    let name = names::object(live.generation, names::MANIFEST);
    sealed::read_object(store, &name).is_ok_and(|bytes| Digest::of(&bytes) == live.manifest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::GenerationRef;
    use crate::store::{Existing, LocalStore};

    fn live(generation: u32) -> Live {
        Live {
            generation,
            manifest: Digest::of(&generation.to_le_bytes()),
            proven: None,
        }
    }

    fn put(store: &LocalStore, generation: u32, object: &str) {
        for folder in [names::GENERATIONS.to_owned(), names::folder(generation)] {
            store.make_folder(&folder).unwrap();
        }
        let name = names::object(generation, object);
        sealed::write_object(store, &name, &generation.to_le_bytes(), Existing::Refuse).unwrap();
    }

    /// A repository with generations 2 and 3 of which 1 was forgotten, and its next head, changed.
    fn checked(may: Succession, change: impl FnOnce(&mut Head)) -> Result<()> {
        let dir = tempfile::tempdir().unwrap();
        let store = LocalStore::new(dir.path());
        let mut head = Head::empty(RepositoryId::random().unwrap());
        head.live = vec![live(2), live(3)];
        head.retired = vec![GenerationRef {
            generation: 1,
            manifest: Digest::of(b"1"),
        }];
        head.write(&store).unwrap();
        head.sequence += 1;
        change(&mut head);
        for generation in [4, 5, 9] {
            put(&store, generation, names::MANIFEST);
        }
        let bytes = sealed::seal("head", &head).unwrap();
        check_next_head(&store, &bytes, may)
    }

    fn proof() -> crate::Proof {
        crate::Proof {
            at: jiff::Timestamp::UNIX_EPOCH,
            how: serde_json::Value::Null,
        }
    }

    #[test]
    fn an_errand_may_do_what_it_is_for() {
        use Succession::{Generation, Proofs};
        assert!(checked(Proofs, |head| head.live[1].proven = Some(proof())).is_ok());
        assert!(checked(Generation, |head| head.live.push(live(4))).is_ok());
        assert!(checked(Generation, |head| head.live.push(live(9))).is_ok());
        assert!(checked(Generation, |_| {}).is_ok());
    }

    #[test]
    fn and_nothing_else() {
        use Succession::{Generation, Proofs};
        type Change = fn(&mut Head);
        let changes: [(&str, Change); 11] = [
            ("all retired", |head| {
                head.retired.extend(head.known());
                head.live.clear();
            }),
            ("one gone", |head| drop(head.live.remove(0))),
            ("another manifest", |head| {
                head.live[0].manifest = Digest::of(b"x")
            }),
            ("two more", |head| head.live.extend([live(4), live(5)])),
            ("a far number", |head| head.live.push(live(u32::MAX))),
            ("one that is not there", |head| head.live.push(live(6))),
            ("one that is another", |head| {
                head.live.push(live(9));
                head.live[2].manifest = Digest::of(b"x");
            }),
            ("a forgotten one again", |head| head.live.insert(0, live(1))),
            ("an object dropped", |head| {
                head.changes.push(crate::head::Change {
                    generation: 2,
                    object: "pack-0000".to_owned(),
                    now: None,
                });
            }),
            ("an old number", |head| head.sequence = 1),
            ("another repository", |head| {
                head.repository = RepositoryId::random().unwrap()
            }),
        ];
        for (what, change) in changes {
            for may in [Proofs, Generation] {
                assert!(checked(may, change).is_err(), "{what}, {may:?}");
            }
        }
        assert!(checked(Proofs, |head| head.live.push(live(4))).is_err());
        assert!(checked(Generation, |head| head.live[0].proven = Some(proof())).is_err());
    }

    #[test]
    fn what_was_not_forgotten_may_come_back() {
        for is_gone in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let store = LocalStore::new(dir.path());
            let mut head = Head::empty(RepositoryId::random().unwrap());
            head.live = vec![live(2)];
            head.retired = vec![GenerationRef {
                generation: 1,
                manifest: live(1).manifest,
            }];
            head.write(&store).unwrap();
            put(&store, 1, if is_gone { "maps" } else { names::FILES });
            head.sequence += 1;
            head.retired.clear();
            head.live.insert(0, live(1));
            let bytes = sealed::seal("head", &head).unwrap();
            let checked = check_next_head(&store, &bytes, Succession::Generation);
            assert_eq!(checked.is_err(), is_gone, "{checked:?}");
        }
    }

    #[test]
    fn the_first_head_is_empty() {
        let dir = tempfile::tempdir().unwrap();
        let store = LocalStore::new(dir.path());
        let mut head = Head::empty(RepositoryId::random().unwrap());
        head.sequence = 1;
        let check = |head: &Head, may| {
            check_next_head(&store, &sealed::seal("head", head).unwrap(), may).is_ok()
        };
        assert!(check(&head, Succession::Generation));
        assert!(!check(&head, Succession::Proofs));
        head.live.push(live(1));
        assert!(!check(&head, Succession::Generation));
    }
}
