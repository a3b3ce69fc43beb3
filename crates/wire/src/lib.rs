//! The client/server protocol of MySQL and MariaDB at the packet level.
