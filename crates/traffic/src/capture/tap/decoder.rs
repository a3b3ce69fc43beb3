//! Statements out of what was relayed. Whatever a connection says, a decoder that fails is one connection's, and the
//! traffic does not notice.

use super::super::connections::{Each, Options, add, statement};
use super::queue::{Batch, Entry, What};
use crate::statement::Coverage;
use evenkeel_op::Result;
use evenkeel_wire::watch::{Seen, Side, Watch, command};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The server's numbers of: access denied, connections without TLS are prohibited.
const NEED_TLS: [u16; 2] = [1045, 3159];

#[derive(Debug)]
struct Talk {
    host: String,
    watch: Watch,
    hides_tls: bool,
    /// Its decoder failed.
    is_broken: bool,
}

/// Decodes connections.
#[derive(Debug)]
pub(super) struct Decoder {
    options: Options,
    all: HashMap<u64, Talk>,
    pub(super) coverage: Coverage,
    pub(super) logins_failed: u64,
    failure_is_reported: bool,
}

/// What is done with a connection.
#[derive(Debug, Clone, Copy)]
enum Work<'a> {
    Bytes(Side, i64, &'a [u8]),
    Gap(Side),
    End,
}

impl Decoder {
    pub(super) fn new(options: Options) -> Self {
        Self {
            options,
            all: HashMap::new(),
            coverage: Coverage::default(),
            logins_failed: 0,
            failure_is_reported: false,
        }
    }

    /// Decodes a batch; what is complete goes to `each`.
    pub(super) fn take(&mut self, batch: &Batch, each: &mut Each<'_>) -> Result<()> {
        let mut rest = &batch.bytes[..];
        for entry in &batch.entries {
            let mut bytes = &rest[..0];
            if let What::Bytes(_, count) = entry.what {
                (bytes, rest) = rest.split_at(count);
            }
            self.entry(entry, bytes, each)?;
        }
        Ok(())
    }

    fn entry(&mut self, entry: &Entry, bytes: &[u8], each: &mut Each<'_>) -> Result<()> {
        let number = entry.connection;
        match &entry.what {
            What::Opened {
                host,
                hides_tls,
                is_joined,
            } => {
                let talk = Talk {
                    host: host.clone(),
                    watch: self.options.watch(*is_joined),
                    hides_tls: *hides_tls,
                    is_broken: false,
                };
                self.all.insert(number, talk);
                Ok(())
            }
            What::Bytes(side, _) => self.work(number, Work::Bytes(*side, entry.at_ns, bytes), each),
            What::Missing(side, count) => {
                self.coverage.bytes_missing += count;
                self.work(number, Work::Gap(*side), each)
            }
            What::Closed => {
                let worked = self.work(number, Work::End, each);
                self.all.remove(&number);
                worked
            }
        }
    }

    fn work(&mut self, number: u64, work: Work<'_>, each: &mut Each<'_>) -> Result<()> {
        let Some(talk) = self.all.get_mut(&number) else {
            return Ok(());
        };
        if talk.is_broken {
            return Ok(());
        }
        let mut result = Ok(());
        let (watch, host) = (&mut talk.watch, &talk.host);
        let (before, was_encrypted) = (watch.counts(), watch.is_encrypted());
        let is_end = matches!(work, Work::End);
        let mut failed = 0;
        let mut tell = |seen: &Seen<'_>| {
            let is_refused = seen.error.is_some_and(|error| NEED_TLS.contains(&error));
            // A login that waits when the connection ends came to nothing.
            failed += u64::from(seen.command == command::CONNECT && (is_refused || is_end));
            if result.is_ok() {
                result = each(&statement(seen, number, host));
            }
        };
        let is_sound = is_survived(|| match work {
            Work::Bytes(side, at_ns, bytes) => watch.bytes(side, at_ns, bytes, &mut tell),
            Work::Gap(side) => watch.gap(side, &mut tell),
            Work::End => watch.end(&mut tell),
        });
        if talk.hides_tls {
            self.logins_failed += failed;
        }
        if !is_sound {
            talk.is_broken = true;
            self.coverage.undecodable += 1;
        }
        let is_newly_encrypted = !was_encrypted && talk.watch.is_encrypted();
        self.coverage.connections_encrypted += u64::from(is_newly_encrypted);
        add(&mut self.coverage, before, talk.watch.counts());
        result
    }

    /// Returns whether a login failed for the first time, once.
    pub(super) fn first_login_failed(&mut self) -> bool {
        let is_new = self.logins_failed > 0 && !self.failure_is_reported;
        self.failure_is_reported |= is_new;
        is_new
    }

    /// Ends all, in the order in which they began.
    pub(super) fn end_all(&mut self, each: &mut Each<'_>) -> Result<()> {
        let mut numbers: Vec<u64> = self.all.keys().copied().collect();
        numbers.sort_unstable();
        for number in numbers {
            self.work(number, Work::End, each)?;
        }
        self.all.clear();
        Ok(())
    }
}

/// Does something; returns whether it did not panic.
fn is_survived(work: impl FnOnce()) -> bool {
    // What it worked on is not looked at again.
    catch_unwind(AssertUnwindSafe(work)).is_ok()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_panic_is_survived() {
        assert!(!super::is_survived(|| panic!("as a decoder might")));
        assert!(super::is_survived(|| ()));
    }
}
