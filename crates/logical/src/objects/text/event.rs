//! CREATE EVENT in two steps: made asleep, woken when everything is there.

use super::token::{Kind, Tokens};

/// The statements that an event's CREATE statement becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::objects) struct EventParts {
    /// Creates it disabled.
    pub(in crate::objects) create: Vec<u8>,
    /// Enables it, for one that was enabled; its definer is named, as ALTER would set another.
    pub(in crate::objects) enable: Option<Vec<u8>>,
}

/// Reads what SHOW CREATE EVENT printed; `None` when it is not understood.
pub(in crate::objects) fn event_parts(create: &[u8]) -> Option<EventParts> {
    let mut tokens = Tokens::new(create);
    let verb = tokens.next().filter(|one| one.is_word(create, "CREATE"))?;
    tokens.find(|one| one.is_word(create, "EVENT"))?;
    let name = tokens.next().filter(|one| one.kind == Kind::Name)?;
    // What comes first is printed by the server; the body begins behind DO.
    let mut completion = false;
    for token in tokens {
        if token.is_word(create, "DO") {
            break;
        }
        completion |= token.is_word(create, "COMPLETION");
        if !completion {
            continue;
        }
        if token.is_word(create, "DISABLE") {
            let create = create.to_vec();
            return Some(EventParts {
                create,
                enable: None,
            });
        }
        if token.is_word(create, "ENABLE") {
            let head = &create[verb.end..name.end];
            return Some(EventParts {
                create: [&create[..token.start], b"DISABLE", &create[token.end..]].concat(),
                enable: Some([b"ALTER", head, b" ENABLE"].concat()),
            });
        }
    }
    None
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
