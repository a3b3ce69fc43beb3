//! How libraries and their functions are put into a server and taken out, whatever they do.
//!
//! A library is never written over while a server may have it loaded: each has a name of its own,
//! made of what is in it. So the server's own list of functions says all that there is to know, and
//! an interrupted run is resumed.
//!
//! | file | what |
//! |---|---|
//! | `names` | names made of what is in a library |
//! | `place` | files into the server's plugin directory |
//! | `functions` | functions found, made and dropped |
//! | `refusal` | what the server's errors mean here |

pub mod functions;
pub mod names;
pub mod place;
pub mod refusal;

pub use functions::{Function, Registered};
pub use place::{PluginDirectory, Wanted};
