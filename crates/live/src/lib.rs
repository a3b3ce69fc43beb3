//! What many servers do right now: asked at intervals (`poll`, `details`), compared (`rates`), laid out (`view`).

pub mod details;
pub mod gauges;
pub mod poll;
pub mod rates;
pub mod status;
pub mod view;
