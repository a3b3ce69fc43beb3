//! Names made of what is in a library.

/// Returns the part of a library's name that changes with what is in it.
#[must_use]
pub fn build(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex()[..16].to_owned()
}

/// Returns whether a text is such a part.
#[must_use]
pub fn is_build(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_made_of_what_is_in_the_library() {
        assert_eq!(build(b"code"), build(b"code"));
        assert_ne!(build(b"code"), build(b"other code"));
        assert!(is_build(&build(b"code")));
        assert!(!is_build("0123") && !is_build("0123456789abcdeg"));
    }
}
