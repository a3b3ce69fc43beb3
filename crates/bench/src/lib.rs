//! Workloads and measurements that repeat.
