//! What somebody who may write makes of a document: other content, with the checksum that it needs.

use super::memory::Objects;
use serde_json::Value;
use std::sync::Arc;

/// Splits a document into its title and its body.
pub fn opened(bytes: &[u8]) -> (String, Value) {
    let text = std::str::from_utf8(bytes).unwrap();
    let (title, rest) = text.split_once('\n').unwrap();
    let (body, _) = rest.rsplit_once("blake3 ").unwrap();
    (title.to_owned(), serde_json::from_str(body).unwrap())
}

/// Makes a document of a title and a body.
pub fn sealed(title: &str, body: &Value) -> Vec<u8> {
    let body = serde_json::to_string_pretty(body).unwrap();
    let text = format!("{title}\n{body}\n");
    let digest = blake3::hash(text.as_bytes()).to_hex();
    format!("{text}blake3 {digest}\n").into_bytes()
}

/// Changes a document of a repository.
pub fn change(objects: &mut Objects, name: &str, change: impl FnOnce(&mut Value)) {
    let (title, mut body) = opened(&objects[name]);
    change(&mut body);
    objects.insert(name.to_owned(), Arc::new(sealed(&title, &body)));
}
