//! Packs, block maps and generations of physical backups.
//!
//! A repository is a directory of objects that are written once and never changed:
//!
//! ```text
//! repository             identity: format version, random id
//! head                   which generations there are; the only object that is ever replaced
//! writer.lock reader.lock
//! generations/7/
//!   pending              while the run is unfinished
//!   pack-0000 …          frames of about 1 MiB of changed blocks, compressed; a table of frames
//!   maps                 per file, a tree: which block lies where, and its hash
//!   files                names, metadata and map roots, sorted by name
//!   manifest             written last: with it, the generation exists
//! binlogs/               archived binary logs, which are no generation's: [`logs`]
//! ```
//!
//! The format is drawn byte by byte in `docs/src/formats/repository.md`.
//!
//! # Who may run beside whom
//!
//! | running ↓ starting → | backup | restore, verify | forget, prune | list |
//! |---|---|---|---|---|
//! | **backup** (`writer.lock` alone) | busy | yes | busy | yes |
//! | **restore, verify** (`reader.lock` shared) | yes | yes | busy | yes |
//! | **forget, prune** (both locks alone) | busy | busy | busy | yes |
//! | **list** (no lock) | yes | yes | yes | yes |
//!
//! A backup and a restore share no lock because a backup only adds: readers see what the head
//! names, and the head changes when everything it names is durable. Locks are `flock`s: the
//! kernel drops them when a process dies. Whoever takes the writer lock first finishes or
//! removes what an interrupted run left. Two writers that do not see each other's locks still
//! cannot both commit a number: objects are never replaced.

mod catalog;
mod copy;
mod crypt;
mod fault;
mod forget;
mod format;
mod head;
mod heal;
mod ids;
mod keep;
mod list;
mod locks;
pub mod logs;
mod lru;
mod manifest;
mod map;
mod marks;
mod mutex;
mod names;
mod open;
mod prune;
mod read;
mod rebuild;
mod removal;
mod repository;
mod sealed;
pub mod store;
mod succession;
mod there;
mod verify;
mod walk;
mod write;

pub use age::secrecy;
pub use copy::{Chosen, Copied, CopyReport, CopyTo, CopyWay};
pub use crypt::{
    Access, Credentials, Encrypt, KeyChange, KeyHolder, KeyPlan, NewIdentity, Recipient, Role,
    decrypted, encrypted, is_begun_by_age,
};
pub use forget::{Forget, ForgetPlan};
pub use head::Proof;
pub use ids::{BlockHash, Digest, RepositoryId};
pub use keep::KeepRules;
pub use list::{FileKind, FileMeta, FileRecord, Files};
pub use manifest::{GenerationKind, GenerationRef, Manifest, ObjectInfo};
pub use names::{ARCHIVE_LOCK, BINLOGS, READER_LOCK, WRITER_LOCK};
pub use prune::{Prune, PrunePlan, PruneStep};
pub use read::{BlockContent, FileReader, Reader};
pub use rebuild::RebuildPlan;
pub use repository::{About, Create, Repository, Summary};
pub use store::Location;
pub use succession::{Succession, check_next_head, next_generation};
pub use verify::{Finding, Sample, SampleReport, Verify, VerifyReport};
pub use write::{
    BaseFile, BaseInfo, Begin, Change, CommitInfo, Compression, FileBuilder, GrowingBuilder, Leaf,
    RunKind, Worker, Writer,
};
