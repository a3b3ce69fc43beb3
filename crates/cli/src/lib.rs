//! The evenkeel command line.
