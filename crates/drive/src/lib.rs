//! Keep N sessions busy and time them.
