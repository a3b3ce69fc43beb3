//! End-to-end cases on real servers and filesystems.
