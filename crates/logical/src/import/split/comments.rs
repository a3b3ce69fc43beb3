//! A statement without the comments that say nothing to any server.

use evenkeel_sql::{Mode, TokenKind, Tokens, is_blank};

/// Leaves comments out as the clients do: what ends with its line leaves the end of the line, and what stood
/// between two words a blank. Executed comments and hints stay.
pub fn without_comments(text: &[u8], mode: Mode) -> Vec<u8> {
    let mut kept = Vec::with_capacity(text.len());
    for token in Tokens::new(text, mode) {
        if token.kind != TokenKind::Comment {
            kept.extend_from_slice(token.of(text));
            continue;
        }
        let is_block = text[token.start] == b'/';
        if is_block && text.get(token.end).is_some_and(|byte| !is_blank(*byte)) {
            kept.push(b' ');
        }
    }
    kept.truncate(kept.trim_ascii_end().len());
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_go_as_with_the_client() {
        let text = "BEGIN -- x\n  /* y */ SELECT 1; # z\n SELECT/* a\nb */2;/*!40101 SELECT '/*' */;\n\n  END --";
        assert_eq!(
            String::from_utf8(without_comments(text.as_bytes(), Mode::default())).unwrap(),
            "BEGIN \n   SELECT 1; \n SELECT 2;/*!40101 SELECT '/*' */;\n\n  END"
        );
    }
}
