//! The bytes of packs, maps and file lists. Drawn in `docs/src/formats/repository.md`.

pub(crate) mod bytes;
pub(crate) mod frame;
pub(crate) mod header;
pub(crate) mod record;
