//! What a server reads in a table's definition and does not keep. It says nothing of it: an older one ignores
//! what came later, and what is in a comment of the other flavour is to neither more than a comment.

use crate::objects::text::all_tokens;

/// Words of definitions, with what they stand for.
const WORDS: [(&str, &str); 10] = [
    ("CHECK", "a CHECK"),
    ("ENFORCED", "that a CHECK is NOT ENFORCED"),
    ("DESC", "the descending order of a key"),
    ("INVISIBLE", "that a column or key is INVISIBLE"),
    ("IGNORED", "that a key is IGNORED"),
    ("SRID", "the SRID of a column"),
    ("COMPRESSED", "that a column is COMPRESSED"),
    ("ENCRYPTION", "ENCRYPTION"),
    ("AUTOEXTEND_SIZE", "AUTOEXTEND_SIZE"),
    ("SECONDARY_ENGINE", "SECONDARY_ENGINE"),
];

/// Returns what the definition `dumped` says more often than `made`, which a server printed of the table that it
/// made by it.
pub(super) fn lost(dumped: &[u8], made: &[u8]) -> Vec<&'static str> {
    let (Some(before), Some(after)) = (all_tokens(dumped), all_tokens(made)) else {
        return Vec::new();
    };
    let says_more = |(word, _): &&(&str, &str)| {
        let before = before.iter().filter(|one| one.is_word(dumped, word));
        let after = after.iter().filter(|one| one.is_word(made, word));
        before.count() > after.count()
    };
    WORDS.iter().filter(says_more).map(|one| one.1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_of_the_definition_count() {
        let dumped = b"CREATE TABLE `t` (`CHECK` int /*!80023 INVISIBLE */ COMMENT 'DESC', \
                       KEY `k` (`CHECK` DESC), CONSTRAINT `c` CHECK (`CHECK` > 0) /*!80016 NOT ENFORCED */)";
        let made = b"CREATE TABLE `t` (`CHECK` int COMMENT 'DESC', KEY `k` (`CHECK`), CONSTRAINT `c` CHECK (`CHECK` > 0))";
        assert_eq!(
            lost(dumped, made),
            [
                "that a CHECK is NOT ENFORCED",
                "the descending order of a key",
                "that a column or key is INVISIBLE"
            ]
        );
        assert!(lost(made, dumped).is_empty());
    }
}
