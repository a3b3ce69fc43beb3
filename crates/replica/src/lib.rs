//! Replicas: servers are asked how they are (`survey`), laid out by who replicates from whom (`topology`), and what is
//! wrong is named, with what repairs it (`diagnose`). Whether a replica has the rows of its source is found out, too
//! (`checksum`), and rows that differ are made those of the source (`repair`).

mod chain;
pub mod checksum;
pub mod diagnose;
pub mod heal;
pub mod lag;
pub mod repair;
pub mod resync;
pub mod survey;
pub mod topology;
