//! A statement without the comments that say nothing to any server.

use super::wide::Wide;
use super::{Quoting, is_blank, is_executed};
use memchr::memchr;

/// Leaves comments out as the clients do: what ends with its line leaves the end of the line, and what stood
/// between two words a blank. Executed comments and hints stay.
pub fn without_comments(text: &[u8], quoting: Quoting) -> Vec<u8> {
    let mut kept = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        let rest = &text[at..];
        let blank = |at: usize| rest.get(at).is_none_or(|byte| is_blank(*byte));
        let length = match byte {
            b'\'' | b'"' | b'`' => quoted(rest, quoting),
            b'#' => {
                at += line(rest);
                continue;
            }
            b'-' if rest.get(1) == Some(&b'-') && blank(2) => {
                at += line(rest);
                continue;
            }
            b'/' if rest.get(1) == Some(&b'*') && !is_executed(rest) => {
                let end = rest[2..].windows(2).position(|two| two == b"*/");
                let length = end.map_or(rest.len(), |end| end + 4);
                if rest.get(2) != Some(&b'+') {
                    at += length;
                    if text.get(at).is_some_and(|byte| !is_blank(*byte)) {
                        kept.push(b' ');
                    }
                    continue;
                }
                length
            }
            _ if quoting.wide.is_pair(rest) => 2,
            _ => 1,
        };
        kept.extend_from_slice(&rest[..length]);
        at += length;
    }
    kept.truncate(kept.trim_ascii_end().len());
    kept
}

fn line(rest: &[u8]) -> usize {
    memchr(b'\n', rest).unwrap_or(rest.len())
}

/// Returns how long the literal or name is that begins here; all there is when it has no end.
fn quoted(rest: &[u8], quoting: Quoting) -> usize {
    let quote = rest[0];
    let escapes = quoting.escapes(quote);
    let mut at = 1;
    while let Some(byte) = rest.get(at) {
        at += match byte {
            _ if quoting.wide != Wide::No && quoting.wide.is_pair(&rest[at..]) => 2,
            b'\\' if escapes => 2,
            byte if *byte == quote => return at + 1,
            _ => 1,
        };
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_go_as_with_the_client() {
        let text = "BEGIN -- x\n  /* y */ SELECT 1; # z\n SELECT/* a\nb */2;/*!40101 SELECT '/*' */;\n\n  END --";
        assert_eq!(
            String::from_utf8(without_comments(text.as_bytes(), Quoting::default())).unwrap(),
            "BEGIN \n   SELECT 1; \n SELECT 2;/*!40101 SELECT '/*' */;\n\n  END"
        );
    }
}
