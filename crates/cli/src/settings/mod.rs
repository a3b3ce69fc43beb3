//! What was typed, turned into what it means.

mod account;
mod connection;
mod data_directory;
mod fleet;
mod health;
mod history;
mod keys;
mod locking;
mod mask_key;
mod own;
mod password;
mod place;
mod state;
mod watched;

pub use account::owner;
pub use connection::{connect, resolved, ssl_mode};
pub use data_directory::{stopped_server, stopped_server_at};
pub use fleet::{FleetMember, fleet};
pub use health::{health_checks, health_rules, refuse_far_disk};
pub use history::{history, is_server, server_named};
pub use keys::{encrypt, identities, passphrase_in, unlock, unlock_archive, unlock_or_encrypt};
pub use locking::{choice, limits};
pub use mask_key::mask_key;
pub use own::{with_files, with_files_here};
pub use password::with_password;
pub use place::{is_url, location, shown_place};
pub use state::state_directory;
pub use watched::{ServerMeant, servers_meant, watched};
