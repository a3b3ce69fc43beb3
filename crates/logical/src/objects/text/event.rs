//! CREATE EVENT in steps: made asleep, woken when everything is there.

use super::token::{Token, TokenKind, tokens};

/// The statements that an event's CREATE statement becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::objects) struct EventParts {
    /// Creates it disabled.
    pub(in crate::objects) create: Vec<u8>,
    /// Lets it go once it ran, for one that runs once and is not to outlive that: servers do not
    /// make such an event when its time has passed, but say in a note that they dropped it.
    pub(in crate::objects) settle: Option<Vec<u8>>,
    /// Enables it, for one that was enabled; its definer is named, as ALTER would set another.
    pub(in crate::objects) enable: Option<Vec<u8>>,
}

/// Reads what SHOW CREATE EVENT printed; `None` when it is not understood.
pub(in crate::objects) fn event_parts(create: &[u8]) -> Option<EventParts> {
    let mut tokens = tokens(create);
    let verb = tokens.next().filter(|one| one.is_word(create, "CREATE"))?;
    tokens.find(|one| one.is_word(create, "EVENT"))?;
    let name = tokens.next().filter(|one| one.kind == TokenKind::Name)?;
    // What comes first is printed by the server; the body begins behind DO.
    let head: Vec<Token> = tokens
        .take_while(|one| !one.is_word(create, "DO"))
        .collect();
    let completion = head
        .iter()
        .position(|one| one.is_word(create, "COMPLETION"))?;
    let after = &head[completion + 1..];
    let once = head.iter().take(3).any(|one| one.is_word(create, "AT"));
    let leaves = after
        .first()
        .filter(|one| once && one.is_word(create, "NOT"));
    let state = after
        .iter()
        .find(|one| one.is_word(create, "ENABLE") || one.is_word(create, "DISABLE"))?;
    let enabled = state.is_word(create, "ENABLE");
    let alter = [b"ALTER", &create[verb.end..name.end]].concat();
    let (kept_from, kept_to) = match leaves {
        Some(not) => (not.start, after.get(1)?.start),
        None => (state.start, state.start),
    };
    let word = if enabled {
        &b"DISABLE"[..]
    } else {
        state.of(create)
    };
    Some(EventParts {
        create: [
            &create[..kept_from],
            &create[kept_to..state.start],
            word,
            &create[state.end..],
        ]
        .concat(),
        settle: leaves.map(|_| [&alter, &b" ON COMPLETION NOT PRESERVE"[..]].concat()),
        enable: enabled.then(|| [&alter, &b" ENABLE"[..]].concat()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "DEFINER=`ENABLE`@`DO` EVENT `COMPLETION``ENABLE`";

    fn create(state: &str) -> String {
        format!(
            "CREATE {HEAD} ON SCHEDULE EVERY 1 DAY STARTS '2020-01-01 00:00:00' ON COMPLETION NOT \
             PRESERVE {state} COMMENT 'ENABLE' DO SELECT 'ENABLE' AS ENABLE"
        )
    }

    #[test]
    fn only_the_state_is_changed() {
        let parts = event_parts(create("ENABLE").as_bytes()).unwrap();
        assert_eq!(parts.create, create("DISABLE").into_bytes());
        let enable = format!("ALTER {HEAD} ENABLE");
        assert_eq!(parts.enable, Some(enable.into_bytes()));
        assert_eq!(parts.settle, None);
    }

    #[test]
    fn events_of_the_past_are_made_to_stay_first() {
        let once = |stays: &str, state: &str| {
            format!(
                "CREATE {HEAD} ON SCHEDULE AT '2020-01-01 00:00:00' ON COMPLETION {stays} {state} DO SELECT 1"
            )
        };
        let parts = event_parts(once("NOT PRESERVE", "ENABLE").as_bytes()).unwrap();
        assert_eq!(parts.create, once("PRESERVE", "DISABLE").into_bytes());
        let settle = format!("ALTER {HEAD} ON COMPLETION NOT PRESERVE");
        assert_eq!(parts.settle, Some(settle.into_bytes()));
        assert!(parts.enable.is_some());
        let parts = event_parts(once("PRESERVE", "DISABLE").as_bytes()).unwrap();
        assert_eq!((parts.settle, parts.enable), (None, None));
        assert_eq!(parts.create, once("PRESERVE", "DISABLE").into_bytes());
    }

    #[test]
    fn sleeping_events_stay_as_they_are() {
        for state in ["DISABLE", "DISABLE ON SLAVE", "DISABLE ON REPLICA"] {
            let parts = event_parts(create(state).as_bytes()).unwrap();
            assert_eq!(parts.create, create(state).into_bytes());
            assert_eq!(parts.enable, None);
        }
    }

    #[test]
    fn other_statements_are_not_understood() {
        for sql in [
            "CREATE TABLE `t` (a int)",
            "CREATE EVENT `e` DO SELECT 1 ENABLE",
            "CREATE",
        ] {
            assert_eq!(event_parts(sql.as_bytes()), None, "{sql}");
        }
    }
}
