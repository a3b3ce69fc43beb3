//! Texts in JSON: a string where their bytes are UTF-8, else `{"base64": "…"}`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// A text as JSON has it.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Text<'a> {
    Utf8(Cow<'a, str>),
    Other { base64: String },
}

impl<'a> Text<'a> {
    fn of(bytes: &'a [u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Utf8(text.into()),
            Err(_) => Self::Other {
                base64: STANDARD.encode(bytes),
            },
        }
    }

    fn bytes<E: serde::de::Error>(self) -> Result<Vec<u8>, E> {
        match self {
            Self::Utf8(text) => Ok(text.into_owned().into_bytes()),
            Self::Other { base64 } => STANDARD.decode(base64).map_err(E::custom),
        }
    }
}

/// For fields of type `Vec<u8>`.
pub(super) mod bytes {
    use super::Text;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(in crate::objects) fn serialize<S: Serializer>(
        bytes: &[u8],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        Text::of(bytes).serialize(to)
    }

    pub(in crate::objects) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<u8>, D::Error> {
        Text::deserialize(from)?.bytes()
    }
}

/// For fields of type `Vec<Vec<u8>>`.
pub(super) mod list {
    use super::Text;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(in crate::objects) fn serialize<S: Serializer>(
        list: &[Vec<u8>],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_seq(list.iter().map(|bytes| Text::of(bytes)))
    }

    pub(in crate::objects) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<Vec<u8>>, D::Error> {
        let texts = Vec::<Text<'_>>::deserialize(from)?;
        texts.into_iter().map(Text::bytes).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::AccountObject;
    use proptest::prelude::*;

    fn account(create: Vec<u8>, grants: Vec<Vec<u8>>) -> AccountObject {
        AccountObject {
            account: "u@h".parse().unwrap(),
            role: false,
            create,
            grants,
        }
    }

    #[test]
    fn texts_are_strings_where_they_can_be() {
        let json = serde_json::to_string(&account("ü\0".into(), vec![b"\xFF".to_vec()])).unwrap();
        assert!(json.contains(r#""create":"ü\u0000""#), "{json}");
        assert!(json.contains(r#""grants":[{"base64":"/w=="}]"#), "{json}");
        let wrong = json.replace("/w==", "/w=!");
        assert!(serde_json::from_str::<AccountObject>(&wrong).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_come_back(
            create in proptest::collection::vec(any::<u8>(), 0..40),
            grants in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..9), 0..4),
        ) {
            let one = account(create, grants);
            let json = serde_json::to_vec(&one).unwrap();
            prop_assert_eq!(serde_json::from_slice::<AccountObject>(&json).unwrap(), one);
        }
    }
}
