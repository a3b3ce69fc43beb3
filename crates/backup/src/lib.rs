//! Back up, restore and verify a MySQL or MariaDB data directory.
