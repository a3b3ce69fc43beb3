//! URLs compressed by the server itself, as functions of SQL.
//!
//! | function | what |
//! |---|---|
//! | `url_compress(s)` | the code of a string |
//! | `url_decompress(b)` | the string of a code; NULL for bytes that are none |
//! | `url_prefix_low(s)`, `url_prefix_high(s)` | codes from the first on and below the second begin with `s` |
//! | `url_table_id()` | which table they use |
//!
//! One library serves MariaDB and MySQL: what they expect of a function is the same, and small.
//!
//! | file | what |
//! |---|---|
//! | `abi` | what the server hands over, and guards against panics |
//! | `functions` | what the functions do |
//! | `table` | which table they use |

mod abi;
mod functions;
mod table;
