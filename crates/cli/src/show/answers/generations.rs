//! Answer of `generations`.

use super::Answer;
use super::backup::{BackupAnswer, millis};
use crate::show::{Align, TextTable};
use evenkeel_backup::report::{CorruptPage, GenerationReport};
use evenkeel_op::units;
use serde::{Serialize, Serializer};
use serde_json::Value;

/// The list of generations.
#[derive(Debug, Serialize)]
pub struct GenerationsAnswer {
    /// Oldest first.
    pub generations: Vec<ListedGeneration>,
    /// Those of which nothing is known.
    pub damaged: Vec<DamagedGeneration>,
}

/// A generation whose manifest cannot be read.
#[derive(Debug, Serialize)]
pub struct DamagedGeneration {
    /// Its number.
    pub generation: u32,
    /// What is wrong.
    pub damage: String,
}

/// One generation in the list.
#[derive(Debug)]
pub struct ListedGeneration {
    /// When the run began.
    pub created: String,
    /// When it was last proved that a server starts on it.
    pub proven: Option<String>,
    /// The generation.
    pub report: GenerationReport,
    /// Its facts are sealed, and the key is not at hand: what they would say is not known.
    pub sealed: bool,
}

/// What of a report is none of the facts, and so known of a sealed generation too.
const NEVER_SEALED: [&str; 7] = [
    "source",
    "generation",
    "kind",
    "based_on",
    "files",
    "bytes_logical",
    "bytes_stored",
];

impl Serialize for ListedGeneration {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Fields<'a> {
            created: &'a str,
            proven: Option<&'a str>,
            #[serde(flatten)]
            report: Value,
        }
        // A plain struct: it cannot fail to serialise.
        let mut report = serde_json::to_value(&self.report).unwrap_or_default();
        if let Some(fields) = report.as_object_mut().filter(|_| self.sealed) {
            let facts = fields.iter_mut();
            let facts = facts.filter(|(name, _)| !NEVER_SEALED.contains(&name.as_str()));
            facts.for_each(|(_, value)| *value = Value::Null);
        }
        let fields = Fields {
            created: &self.created,
            proven: self.proven.as_deref(),
            report,
        };
        fields.serialize(to)
    }
}

impl Answer for GenerationsAnswer {
    const SCHEMA: &'static str = "evenkeel/generations/1";

    fn text(&self) -> String {
        let mut sources = self.generations.iter().map(|one| &one.report.source);
        let first = sources.next();
        let are_of_one = sources.all(|source| Some(source) == first);
        let mut table = TextTable::new(&[
            ("generation", Align::Right),
            ("created", Align::Left),
            ("kind", Align::Left),
            ("based on", Align::Right),
            ("size", Align::Right),
            ("stored", Align::Right),
            ("write pause", Align::Right),
            ("proven", Align::Left),
            ("", Align::Left),
            (if are_of_one { "" } else { "source" }, Align::Left),
        ]);
        for one in &self.generations {
            let report = &one.report;
            table.row([
                report.generation.to_string(),
                one.created.clone(),
                report.kind.clone(),
                report
                    .based_on
                    .map_or("-".to_owned(), |base| base.to_string()),
                units::bytes(report.bytes_logical),
                units::bytes(report.bytes_stored),
                match one.sealed {
                    true => "-".to_owned(),
                    false => millis(report.write_pause_ms),
                },
                one.proven.clone().unwrap_or_else(|| "-".to_owned()),
                match report.pages_corrupt {
                    0 => String::new(),
                    count => format!("corrupt pages: {count}"),
                },
                match are_of_one {
                    true => String::new(),
                    false => report.source.clone(),
                },
            ]);
        }
        let mut text = table.text();
        if let Some(source) = first.filter(|source| are_of_one && !source.is_empty()) {
            text.push_str(&format!("of {source}\n"));
        }
        for one in &self.damaged {
            text.push_str(&format!(
                "generation {} is left out: {}\n",
                one.generation, one.damage
            ));
        }
        text
    }
}

/// One generation in detail.
#[derive(Debug, Serialize)]
pub struct GenerationAnswer {
    /// The generation as in the list.
    #[serde(flatten)]
    pub listed: ListedGeneration,
    /// The server it came from.
    pub server_version: Option<String>,
    /// Directories that were backed up, by root.
    pub roots: std::collections::BTreeMap<String, String>,
    /// Settings that a server on the restored files needs.
    pub settings: std::collections::BTreeMap<String, String>,
    /// Corrupt pages that were stored as they are.
    pub corrupt: Vec<CorruptPage>,
}

impl Answer for GenerationAnswer {
    const SCHEMA: &'static str = "evenkeel/generation/1";

    fn text(&self) -> String {
        let mut text = match self.listed.sealed {
            true => sealed(&self.listed.report),
            false => BackupAnswer::new(self.listed.report.clone(), Vec::new()).text(),
        };
        text.push_str(&format!("  created {}\n", self.listed.created));
        if let Some(proven) = &self.listed.proven {
            text.push_str(&format!("  proven restorable {proven}\n"));
        }
        if let Some(version) = &self.server_version {
            text.push_str(&format!("  server {version}\n"));
        }
        for (id, path) in &self.roots {
            text.push_str(&format!("  root {id}: {path}\n"));
        }
        for (name, value) in &self.settings {
            text.push_str(&format!("  {name} = {value}\n"));
        }
        for page in &self.corrupt {
            text.push_str(&format!(
                "  corrupt: page {} of {}: {}\n",
                page.page, page.file, page.why
            ));
        }
        text
    }
}

/// Says what is known without the key.
fn sealed(report: &GenerationReport) -> String {
    let based = report
        .based_on
        .map_or(String::new(), |base| format!(" on {base}"));
    format!(
        "generation {} ({}{based}) of {}\n  {}, {}; stored {}\n  \
         give the key to see more: --identity FILE or --passphrase-file FILE\n",
        report.generation,
        report.kind,
        report.source,
        units::count(report.files, "file"),
        units::bytes(report.bytes_logical),
        units::bytes(report.bytes_stored),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(sealed: bool) -> ListedGeneration {
        let report = serde_json::json!({
            "source": "db1:/data", "generation": 7, "kind": "full", "based_on": null, "files": 3,
            "bytes_logical": 12, "bytes_read": 0, "bytes_changed": 0, "bytes_stored": 1,
            "pages_checked": 0, "pages_corrupt": 0, "seconds": 0.0, "rested_s": 0.0, "lock_ms": 0.0,
            "write_pause_ms": 0.0, "snapshot": "",
            "coordinates": {"binlog_file": null, "binlog_position": null, "gtid": null},
        });
        ListedGeneration {
            created: "2026-11-20T00:00:00Z".to_owned(),
            proven: None,
            report: serde_json::from_value(report).unwrap(),
            sealed,
        }
    }

    #[test]
    fn what_is_sealed_is_not_known() {
        let json = serde_json::to_value(listed(true)).unwrap();
        for name in [
            "lock_ms",
            "write_pause_ms",
            "seconds",
            "pages_checked",
            "snapshot",
        ] {
            assert_eq!(json[name], Value::Null, "{name}");
        }
        assert_eq!(
            (&json["generation"], &json["files"]),
            (&7.into(), &3.into())
        );
        let answer = GenerationsAnswer {
            generations: vec![listed(true)],
            damaged: Vec::new(),
        };
        assert!(!answer.text().contains("0.0 ms"), "{}", answer.text());
        let open = serde_json::to_value(listed(false)).unwrap();
        assert_eq!(open["lock_ms"], 0.0);
    }
}
