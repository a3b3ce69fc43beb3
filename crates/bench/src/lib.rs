//! Workloads and measurements that repeat.

pub mod recovery;
