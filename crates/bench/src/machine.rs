//! What a measurement was made on: the machine, where the server's files lie, and its settings. No figure
//! means anything without them.

use evenkeel_op::{Result, units};
use evenkeel_report::Fact;
use evenkeel_server::connect::{Session, quote};
use std::fs;
use std::path::Path;

/// Settings that decide how fast a server is; those that it has are reported.
const SETTINGS: [&str; 24] = [
    "innodb_buffer_pool_size",
    "innodb_flush_log_at_trx_commit",
    "innodb_flush_method",
    "innodb_log_file_size",
    "innodb_log_files_in_group",
    "innodb_redo_log_capacity",
    "innodb_doublewrite",
    "innodb_page_size",
    "innodb_io_capacity",
    "innodb_file_per_table",
    "innodb_compression_level",
    "log_bin",
    "sync_binlog",
    "binlog_format",
    "performance_schema",
    "query_cache_type",
    "query_cache_size",
    "key_buffer_size",
    "aria_pagecache_buffer_size",
    "max_connections",
    "thread_handling",
    "transaction_isolation",
    "tx_isolation",
    "character_set_server",
];

/// Returns the server's version and its settings that matter.
pub fn server(session: &mut Session) -> Result<Vec<Fact>> {
    let version = session.value("SELECT CONCAT(@@version, ' ', @@version_comment)")?;
    let mut facts = vec![Fact::new("version", version.unwrap_or_default())];
    let names = SETTINGS.map(quote).join(", ");
    let sql = format!("SHOW GLOBAL VARIABLES WHERE Variable_name IN ({names})");
    for row in session.rows(&sql)? {
        let (Some(name), Some(value)) = (row.at(0), row.at(1)) else {
            continue;
        };
        facts.push(Fact::new(name, readable(name, value)));
    }
    Ok(facts)
}

/// Sizes are read in units, and as the setting has them.
fn readable(name: &str, value: &str) -> String {
    let is_size = name.ends_with("_size") || name.ends_with("_capacity") && name.contains("redo");
    match value.parse::<u64>() {
        Ok(bytes) if is_size && bytes >= 1024 => format!("{} ({value})", units::bytes(bytes)),
        _ => value.to_owned(),
    }
}

/// Returns what is known of this machine, and of where a directory on it lies.
#[must_use]
pub fn here(datadir: Option<&Path>) -> Vec<Fact> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let mut facts = Vec::new();
    if let Some(processor) = processor(&read("/proc/cpuinfo")) {
        facts.push(Fact::new("processor", processor));
    }
    if let Some(bytes) = memory(&read("/proc/meminfo")) {
        facts.push(Fact::new("memory", units::bytes(bytes)));
    }
    let kernel = read("/proc/sys/kernel/osrelease");
    facts.push(Fact::new("kernel", format!("Linux {}", kernel.trim())));
    let load = read("/proc/loadavg");
    if let Some(load) = load.split(' ').next() {
        facts.push(Fact::new("load when the report was written", load));
    }
    let mount = datadir
        .and_then(|path| path.canonicalize().ok())
        .and_then(|path| mount(&read("/proc/self/mountinfo"), &path));
    facts.push(Fact::new(
        "the server's files",
        mount.unwrap_or_else(|| "cannot be seen from this machine".to_owned()),
    ));
    facts
}

/// Takes the processor's name and how many there are.
fn processor(cpuinfo: &str) -> Option<String> {
    let values = |name: &str| -> Vec<&str> {
        let lines = cpuinfo.lines().filter_map(|line| line.split_once(':'));
        lines
            .filter(|(key, _)| key.trim() == name)
            .map(|(_, value)| value.trim())
            .collect()
    };
    let count = values("processor").len();
    let names = values("model name");
    let name = names.first().copied().unwrap_or("of unknown make");
    (count > 0).then(|| format!("{count} × {name}"))
}

/// Takes the memory in bytes.
fn memory(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find(|line| line.starts_with("MemTotal:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

/// Finds the filesystem of a path: the mount that is the longest beginning of it, the last one where
/// several lie over each other.
fn mount(mountinfo: &str, path: &Path) -> Option<String> {
    let mounts = mountinfo.lines().filter_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let point = left.split(' ').nth(4)?.replace("\\040", " ");
        let mut right = right.split(' ');
        let noted = format!("{} on {}", right.next()?, right.next()?);
        path.starts_with(&point).then_some((point.len(), noted))
    });
    mounts
        .max_by_key(|(length, _)| *length)
        .map(|(_, noted)| noted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_and_memory_are_read() {
        let cpuinfo = "processor\t: 0\nmodel name\t: A CPU @ 3 GHz\n\nprocessor\t: 1\nmodel name\t: A CPU @ 3 GHz\n";
        assert_eq!(processor(cpuinfo).unwrap(), "2 × A CPU @ 3 GHz");
        assert_eq!(processor("processor : 0\n").unwrap(), "1 × of unknown make");
        assert_eq!(processor(""), None);
        assert_eq!(
            memory("MemTotal:  2048 kB\nMemFree: 1 kB\n"),
            Some(2048 * 1024)
        );
        assert_eq!(memory("nothing"), None);
    }

    #[test]
    fn the_innermost_mount_counts() {
        let mountinfo = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n\
            2 1 8:2 / /var/lib rw shared:1 - xfs /dev/sdb rw\n\
            3 1 8:3 / /var/library rw - tmpfs tmpfs rw\n\
            4 1 8:4 / /my\\040data rw - btrfs /dev/sdc rw\n";
        let of = |path: &str| mount(mountinfo, Path::new(path)).unwrap();
        assert_eq!(of("/var/lib/mysql"), "xfs on /dev/sdb");
        assert_eq!(of("/var/tmp"), "ext4 on /dev/sda1");
        assert_eq!(of("/my data/x"), "btrfs on /dev/sdc");
    }

    #[test]
    fn sizes_are_reported_in_units() {
        assert_eq!(
            readable("innodb_buffer_pool_size", "134217728"),
            format!("{} (134217728)", units::bytes(134_217_728))
        );
        assert_eq!(readable("max_connections", "151000"), "151000");
    }
}
