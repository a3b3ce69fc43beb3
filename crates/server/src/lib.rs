//! Talk to one MySQL or MariaDB server: options, connection, abilities, files, locks, launcher.
