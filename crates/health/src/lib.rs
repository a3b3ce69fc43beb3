//! One yes or no for a load balancer, without flapping: servers are probed (`probe`), many at a time (`watch`), what
//! that means for clients is decided (`machine`) and kept (`board`, `keep`), load balancers are answered (`serve`),
//! and people are obeyed (`control`); a program is run (`action`), a port is closed (`block`). The loop is in `daemon`.

pub mod action;
pub mod aside;
pub mod block;
pub mod board;
pub mod control;
pub mod daemon;
mod ears;
mod ended;
pub mod keep;
pub mod machine;
pub mod notify;
pub mod probe;
pub mod reason;
pub mod saver;
pub mod serve;
pub mod watch;
