//! What many servers do right now: asked at intervals (`poll`), compared (`rates`), laid out (`view`).

pub mod poll;
pub mod rates;
pub mod status;
pub mod view;
