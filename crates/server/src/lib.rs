//! Talk to one MySQL or MariaDB server: options, connection, abilities, files, locks, launcher.

pub mod abilities;
pub mod connect;
pub mod coordinates;
pub mod files;
pub mod key_range;
pub mod launch;
pub mod lock;
pub mod login_path;
pub mod option_file;
pub mod options;
pub mod replication;
pub mod semi_sync;
pub mod service;
pub mod stopped;
pub mod tables;
pub mod throttle;
