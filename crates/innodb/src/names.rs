//! From file names and index ids to the names of tables and indexes.
