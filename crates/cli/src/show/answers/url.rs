//! What `url train` and `url stats` say.

use super::Answer;
use evenkeel_op::units;
use evenkeel_urlcodec::lines::Measure;
use evenkeel_urlcodec::{CodeTable, Mode};
use serde::Serialize;
use std::time::Duration;

/// What a table makes of URLs.
#[derive(Debug, Clone, Serialize)]
pub struct UrlStatsAnswer {
    /// The table's id.
    pub table_id: String,
    /// `dense` or `fast`.
    pub mode: &'static str,
    /// The table's bytes.
    pub table_bytes: u64,
    /// How many URLs.
    pub urls: u64,
    /// Their bytes, without line ends.
    pub bytes_in: u64,
    /// Their codes' bytes, not as digits.
    pub bytes_out: u64,
    /// All codes' bytes by all URLs' bytes.
    pub ratio: f64,
    /// The mean of each URL's ratio.
    pub ratio_mean: f64,
}

impl UrlStatsAnswer {
    /// Puts the answer together.
    #[must_use]
    pub fn new(table: &CodeTable, measure: &Measure) -> Self {
        Self {
            table_id: table.id(),
            mode: mode(table),
            table_bytes: table.file().len() as u64,
            urls: measure.urls,
            bytes_in: measure.bytes_in,
            bytes_out: measure.bytes_out,
            ratio: measure.ratio(),
            ratio_mean: measure.ratio_mean(),
        }
    }
}

fn mode(table: &CodeTable) -> &'static str {
    match table.mode() {
        Mode::Dense => "dense",
        Mode::Fast => "fast",
    }
}

impl Answer for UrlStatsAnswer {
    const SCHEMA: &'static str = "evenkeel/url-stats/1";

    fn text(&self) -> String {
        format!(
            "{}: {} to {}, {:.2} % in total, {:.2} % on average (table {}, {}, {})\n",
            units::count(self.urls, "URL"),
            units::bytes(self.bytes_in),
            units::bytes(self.bytes_out),
            100.0 * self.ratio,
            100.0 * self.ratio_mean,
            self.table_id,
            self.mode,
            units::bytes(self.table_bytes),
        )
    }
}

/// A table that was trained.
#[derive(Debug, Clone, Serialize)]
pub struct UrlTrainAnswer {
    /// Where it is.
    pub table: String,
    /// Its id.
    pub table_id: String,
    /// `dense` or `fast`.
    pub mode: &'static str,
    /// Its bytes.
    pub table_bytes: u64,
    /// URLs that it was trained on.
    pub urls: u64,
    /// Their bytes.
    pub bytes_in: u64,
    /// The ratio over all of them: that of a table's own URLs.
    pub ratio: f64,
    /// URLs of one in ten hosts, left out of a second table.
    pub held_out_urls: Option<u64>,
    /// The ratio that the second table has over those.
    pub held_out_ratio: Option<f64>,
    /// Wall clock time.
    pub seconds: f64,
}

impl UrlTrainAnswer {
    /// Puts the answer together.
    #[must_use]
    pub fn new(
        path: String,
        table: &CodeTable,
        own: &Measure,
        held_out: Option<&Measure>,
        spent: Duration,
    ) -> Self {
        Self {
            table: path,
            table_id: table.id(),
            mode: mode(table),
            table_bytes: table.file().len() as u64,
            urls: own.urls,
            bytes_in: own.bytes_in,
            ratio: own.ratio(),
            held_out_urls: held_out.map(|measure| measure.urls),
            held_out_ratio: held_out.map(Measure::ratio),
            seconds: spent.as_secs_f64(),
        }
    }
}

impl Answer for UrlTrainAnswer {
    const SCHEMA: &'static str = "evenkeel/url-train/1";

    fn text(&self) -> String {
        let held_out = match (self.held_out_urls, self.held_out_ratio) {
            (Some(urls), Some(ratio)) => format!(
                "; of {} of hosts not trained on, {:.2} %",
                units::count(urls, "URL"),
                100.0 * ratio
            ),
            _ => String::new(),
        };
        format!(
            "{}: table {}, {}, {}; compresses the {} it was trained on to {:.2} %{held_out}; in {}\n",
            self.table,
            self.table_id,
            self.mode,
            units::bytes(self.table_bytes),
            units::count(self.urls, "URL"),
            100.0 * self.ratio,
            units::duration(Duration::from_secs_f64(self.seconds)),
        )
    }
}
