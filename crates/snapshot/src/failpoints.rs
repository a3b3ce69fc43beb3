//! Points at which tests kill the process; nothing at all without the `failpoints` feature.

/// Marks a state that a crash may leave behind.
macro_rules! fail_point {
    ($name:literal) => {{
        #[cfg(feature = "failpoints")]
        fail::fail_point!($name);
    }};
}
pub(crate) use fail_point;
