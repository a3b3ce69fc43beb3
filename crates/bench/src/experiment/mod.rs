//! Ways of doing the same thing, one against the other: each several times, in turn, so that what changes
//! meanwhile on the machine meets all of them. One run says nothing; medians and spreads do.
//!
//! | file | what |
//! |---|---|
//! | `rounds` | the order, and what the runs came to |
//! | `report`, `page` | medians, spreads, the report to pass on |
//! | `inserts` | one row or many to a statement, with and without locks and transactions |
//! | `compression` | what InnoDB's formats take on disk and in time |
//! | `cache` | the query cache and memcached before a table |
//! | `memcached` | a memcached of our own, and its protocol |

mod cache;
mod compression;
mod inserts;
mod memcached;
mod page;
mod report;
mod rounds;

pub use cache::{CacheRequest, cache};
pub use compression::{CompressionRequest, compression};
pub use inserts::{InsertsRequest, inserts};
pub use page::page;
pub use report::{Arm, ExperimentReport, Metric};
