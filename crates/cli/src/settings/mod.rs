//! What was typed, turned into what it means.
