//! The redo log header and its checkpoint blocks.
