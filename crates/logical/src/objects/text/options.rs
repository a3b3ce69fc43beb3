//! Options of a table that may have to continue another host.

use super::token::{Token, TokenKind, all_tokens};

/// Returns a CREATE TABLE statement without the directories that it names for data and indexes, of
/// the table and of its partitions. A text that is not understood comes back unchanged.
pub(in crate::objects) fn without_directories(create: &[u8]) -> Vec<u8> {
    let Some(tokens) = all_tokens(create) else {
        return create.to_vec();
    };
    let mut kept = Vec::with_capacity(create.len());
    let mut from = 0;
    let mut at = 0;
    while at < tokens.len() {
        let Some(length) = directory(create, &tokens[at..]) else {
            at += 1;
            continue;
        };
        let (start, end) = (tokens[at].start, tokens[at + length - 1].end);
        kept.extend_from_slice(&create[from..start]);
        let blank = create[end..].iter().take_while(|byte| **byte == b' ');
        from = end + blank.count();
        at += length;
    }
    kept.extend_from_slice(&create[from..]);
    kept
}

/// Returns how many tokens the option has that begins here.
fn directory(create: &[u8], tokens: &[Token]) -> Option<usize> {
    let first = tokens.first()?;
    let what = first.is_word(create, "DATA") || first.is_word(create, "INDEX");
    if !what || !tokens.get(1)?.is_word(create, "DIRECTORY") {
        return None;
    }
    let value = if tokens.get(2)?.is_sign(b'=') { 3 } else { 2 };
    (tokens.get(value)?.kind == TokenKind::Text).then_some(value + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_go_and_texts_stay() {
        let create = "CREATE TABLE `t` (\n  `DATA` int COMMENT 'DATA DIRECTORY=''/x'''\n) ENGINE=InnoDB \
                      DATA DIRECTORY='/a''b/' /*!50100 INDEX DIRECTORY = '/c/' */ COMMENT='x'";
        let without = "CREATE TABLE `t` (\n  `DATA` int COMMENT 'DATA DIRECTORY=''/x'''\n) ENGINE=InnoDB \
                       /*!50100 */ COMMENT='x'";
        let got = without_directories(create.as_bytes());
        assert_eq!(String::from_utf8(got).unwrap(), without);
        let broken = b"CREATE TABLE `t DATA DIRECTORY='/a'";
        assert_eq!(without_directories(broken), broken);
    }
}
