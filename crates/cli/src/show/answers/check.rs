//! What `check` answers.

use super::Answer;
use evenkeel_op::units;
use evenkeel_recovery::check::{CheckReport, Finding, HealReport, Severity};
use std::time::Duration;

impl Answer for CheckReport {
    const SCHEMA: &'static str = "evenkeel/check/1";

    fn text(&self) -> String {
        let verdict = match (self.sound, self.pages_damaged) {
            (true, 0) => "sound",
            (true, _) => "healed",
            (false, _) => "DAMAGED",
        };
        let generation = self
            .generation
            .map_or(String::new(), |n| format!(", generation {n}"));
        let speed = (self.bytes as f64 / self.seconds.max(0.001)) as u64;
        let mut text = format!(
            "{}{generation}: {}, {}, {} in {} ({}/s): {verdict}\n",
            self.place,
            units::count(self.files, "file"),
            units::count(self.pages, "page"),
            units::bytes(self.bytes),
            units::duration(Duration::from_secs_f64(self.seconds)),
            units::bytes(speed),
        );
        text.push_str(&format!("  {}\n", counts(self)));
        let kinds = self.page_kinds.iter();
        let kinds: Vec<String> = kinds
            .map(|(kind, count)| format!("{kind} {count}"))
            .collect();
        if !kinds.is_empty() {
            text.push_str(&format!("  {}\n", kinds.join(", ")));
        }
        if let Some(end) = self.lsn_end {
            text.push_str(&format!(
                "  newest LSN {}, the redo log ends at {end}\n",
                self.lsn_max
            ));
        }
        for (why, pages) in &self.unchecked {
            text.push_str(&format!(
                "  NOT CHECKED: {}: {why}\n",
                units::count(pages, "page")
            ));
        }
        for (label, notes) in [
            ("note", &self.files_unchecked),
            ("NOT READ", &self.files_unreadable),
        ] {
            for note in notes {
                text.push_str(&format!("  {label}: {}: {}\n", note.file, note.why));
            }
        }
        for note in &self.notes {
            text.push_str(&format!("  note: {note}\n"));
        }
        for finding in &self.findings {
            text.push_str(&sentence(finding));
        }
        if self.findings_more > 0 {
            text.push_str(&format!("  and {} more\n", self.findings_more));
        }
        if let Some(heal) = &self.heal {
            text.push_str(&healing(heal));
        }
        text
    }
}

fn counts(report: &CheckReport) -> String {
    let mut parts = vec![
        format!("{} checked", report.pages_checked),
        format!("{} empty", report.pages_empty),
        format!("{} damaged", report.pages_damaged),
    ];
    for (count, what) in [
        (report.pages_torn, "torn, which crash recovery repairs"),
        (
            report.pages_read_again,
            "read again while the server wrote them",
        ),
    ] {
        if count > 0 {
            parts.push(format!("{count} {what}"));
        }
    }
    if report.files_vanished > 0 {
        parts.push(format!(
            "{} dropped meanwhile",
            units::count(report.files_vanished, "file")
        ));
    }
    parts.join(", ")
}

fn sentence(finding: &Finding) -> String {
    let mark = match finding.severity {
        Severity::Damage => "DAMAGED",
        Severity::Torn => "torn",
        Severity::Notice => "odd",
    };
    let page = finding
        .page
        .map_or(String::new(), |page| format!(" page {page}"));
    let mut of = Vec::new();
    if let Some(table) = &finding.table {
        of.push(format!("table {table}"));
    }
    match (&finding.index, finding.kind) {
        (Some(index), kind) => of.push(format!("{kind} index {index}")),
        (None, kind @ ("clustered" | "secondary")) => of.push(format!("a {kind} index")),
        (None, kind) => of.push(format!("page kind: {kind}")),
    }
    let mut text = format!(
        "  {mark}: {}{page} ({}): {}\n",
        finding.file,
        of.join(", "),
        finding.why
    );
    if finding.severity != Severity::Damage {
        return text;
    }
    if let Some(sql) = &finding.rebuild_sql {
        text.push_str(&format!(
            "    nothing is lost; on the running server: {sql}\n"
        ));
    }
    if let Some(sql) = &finding.lookup_sql {
        text.push_str(&format!(
            "    to find the index, ask the running server: {sql}\n"
        ));
    }
    if let Some(copy) = &finding.copy {
        text.push_str(&format!(
            "    generation {} has a good copy, of LSN {}\n",
            copy.generation, copy.lsn
        ));
    }
    text
}

fn healing(heal: &HealReport) -> String {
    let mut text = String::new();
    for page in &heal.pages {
        let what = format!("page {} of {}", page.page, page.file);
        let from = page.from.as_deref().unwrap_or("nowhere");
        text.push_str(&match page.outcome {
            "healed" => format!("  healed: {what}, from {from}: {}\n", page.why),
            "planned" => format!("  can be healed: {what}, from {from}: {}\n", page.why),
            _ => format!("  NOT healed: {what}: {}\n", page.why),
        });
        for way in &page.instead {
            text.push_str(&format!("    instead: {way}\n"));
        }
    }
    let is_planned = heal.pages.iter().any(|page| page.outcome == "planned");
    if is_planned {
        text.push_str("  nothing was written; add --execute to do it\n");
    }
    if heal.executed {
        let place = heal.kept_in.display();
        text.push_str(&format!("  the damaged pages are kept in {place}\n"));
    }
    text
}
