//! Packs, block maps and generations of physical backups.
