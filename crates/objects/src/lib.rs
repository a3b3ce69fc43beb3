//! A repository's objects in an object store: S3 and what speaks like it, Google Cloud Storage and
//! Azure Blob Storage.
//!
//! * [`StoreLocation`] is where, and how to get in: a URL and options by their usual names.
//! * [`ObjectsStore`] is a [`Store`](evenkeel_repository::store::Store) there. Nothing that a
//!   repository does needs to know about it.
//!
//! | a directory has | here |
//! |---|---|
//! | rename into place | one PUT, or a multipart upload that is completed |
//! | fail if it exists | `If-None-Match: *`; after a lost answer, what is there is compared |
//! | replace atomically | `If-Match` with what was read before: nobody's change is lost |
//! | `flock` | leases: objects that their holder renews, and that others take when it stopped |
//!
//! Folders do not exist, nor does anything unfinished: an upload that nobody completes is not to be
//! seen, and is what the bucket's own rule for incomplete uploads is for.

mod fault;
mod lease;
mod location;
mod reading;
mod retry;
mod shared;
mod store;
mod way;
mod window;
mod writing;

pub use location::StoreLocation;
pub use shared::StoreOptions;
pub use store::ObjectsStore;
pub use way::Tell;
