//! Freeze a data directory for a moment, and say which byte ranges changed since an earlier one.
