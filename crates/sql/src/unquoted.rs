//! What stands between quotes.

use crate::Mode;

/// Returns what a string or a name says; what has no quotes says itself.
///
/// What is in front of the first quote, as in `_utf8mb4'…'`, is left out.
#[must_use]
pub fn unquoted(text: &[u8], mode: Mode) -> Vec<u8> {
    let is_quote = |byte: &u8| matches!(byte, b'\'' | b'"' | b'`');
    let Some(begin) = text.iter().position(is_quote) else {
        return text.to_vec();
    };
    let quote = text[begin];
    let escapes = mode.escapes(quote);
    let mut said = Vec::with_capacity(text.len());
    let mut rest = &text[begin + 1..];
    while let whole @ [byte, after @ ..] = rest {
        rest = after;
        match *byte {
            _ if mode.wide.is_pair(whole) => {
                said.extend_from_slice(&whole[..2]);
                rest = &after[1..];
            }
            b'\\' if escapes => {
                let Some((escaped, after)) = after.split_first() else {
                    break;
                };
                rest = after;
                match escaped {
                    b'0' => said.push(0),
                    b'b' => said.push(8),
                    b'n' => said.push(b'\n'),
                    b'r' => said.push(b'\r'),
                    b't' => said.push(b'\t'),
                    b'Z' => said.push(0x1a),
                    // Only LIKE reads these.
                    b'%' | b'_' => said.extend_from_slice(&[b'\\', *escaped]),
                    other => said.push(*other),
                }
            }
            same if same == quote => match after.split_first() {
                Some((_, after)) => {
                    said.push(quote);
                    rest = after;
                }
                None => break,
            },
            other => said.push(other),
        }
    }
    said
}
