//! InnoDB page, tablespace and redo log formats of MySQL and MariaDB.
