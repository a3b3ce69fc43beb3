//! Throwaway servers, filesystems and workloads for evenkeel's tests.
//!
//! What is missing on the machine makes a test fail, with a message that says what to run; it never
//! makes a test pass by not testing. Everything made here goes away when its value is dropped, also
//! while a failed test unwinds; what a killed test left is removed by the next one.

pub mod bank;
pub mod checkout;
pub mod effort;
pub mod http_faults;
pub mod loopfs;
pub mod lvm;
pub mod proxy;
pub mod replicas;
pub mod scratch;
pub mod seaweed;
pub mod servers;
pub mod sshd;
pub mod traffic;
pub mod wait;

pub use bank::{Bank, BankState};
pub use checkout::checkout;
pub use http_faults::{HttpFault, HttpFaults};
pub use loopfs::LoopFs;
pub use lvm::Lvm;
pub use proxy::Proxy;
pub use replicas::{By, wait_until_caught_up};
pub use scratch::Scratch;
pub use seaweed::Seaweed;
pub use servers::{TestServer, servers};
pub use sshd::Sshd;
pub use traffic::{BankTraffic, Marks};
pub use wait::{until, until_within};
