//! One yes or no for a load balancer, without flapping: servers are probed (`probe`), many at a time (`watch`), and
//! what that means for clients is decided (`machine`).

pub mod machine;
pub mod probe;
pub mod reason;
pub mod watch;
