//! What `lvs` says of all volumes.

use super::tool;
use evenkeel_op::{Context, Error, Result};
use serde::Deserialize;

const FIELDS: &str = "vg_name,lv_name,lv_uuid,lv_tags,lv_layout,lv_active,origin_uuid,lv_size,pool_lv,\
pool_lv_uuid,lv_kernel_major,lv_kernel_minor,data_percent,metadata_percent,vg_free,vg_extent_size,\
metadata_lv,thin_id";

/// A logical volume.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Lv {
    pub(super) vg: String,
    /// Without the brackets that hidden ones have.
    pub(super) name: String,
    pub(super) uuid: String,
    pub(super) tags: Vec<String>,
    /// Words such as `linear`, `thin`, `pool`, `snapshot`.
    pub(super) layout: Vec<String>,
    pub(super) active: bool,
    /// Of a snapshot, thin or thick.
    pub(super) origin_uuid: String,
    pub(super) bytes: u64,
    pub(super) pool: String,
    pub(super) pool_uuid: String,
    /// Major and minor number, while it is active.
    pub(super) device: Option<(u32, u32)>,
    pub(super) data_percent: Option<f64>,
    pub(super) metadata_percent: Option<f64>,
    pub(super) vg_free_bytes: u64,
    pub(super) extent_bytes: u64,
    /// Of a pool.
    pub(super) metadata_lv: String,
    /// Of a thin volume, its number in the pool.
    pub(super) thin_id: Option<u64>,
}

impl Lv {
    /// Whether it is a volume in a thin pool.
    pub(super) fn is_thin(&self) -> bool {
        self.layout.iter().any(|word| word == "thin") && !self.pool_uuid.is_empty()
    }

    /// Returns `vg/name`, as the programs take it.
    pub(super) fn path(&self) -> String {
        format!("{}/{}", self.vg, self.name)
    }

    pub(super) fn has_tag(&self, wanted: &str) -> bool {
        self.tags.iter().any(|tag| tag == wanted)
    }
}

/// Returns all volumes.
pub(super) fn volumes() -> Result<Vec<Lv>> {
    let text = tool::run(
        "lvs",
        &[
            "-a",
            "--reportformat",
            "json",
            "--units",
            "b",
            "--nosuffix",
            "-o",
            FIELDS,
        ],
    )?;
    parse(&text)
}

#[derive(Deserialize)]
struct Document {
    report: Vec<Report>,
}

#[derive(Deserialize)]
struct Report {
    lv: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    vg_name: String,
    lv_name: String,
    lv_uuid: String,
    lv_tags: String,
    lv_layout: String,
    lv_active: String,
    origin_uuid: String,
    lv_size: String,
    pool_lv: String,
    pool_lv_uuid: String,
    lv_kernel_major: String,
    lv_kernel_minor: String,
    data_percent: String,
    metadata_percent: String,
    vg_free: String,
    vg_extent_size: String,
    metadata_lv: String,
    thin_id: String,
}

/// Reads a report. A volume of several segments is in it several times.
fn parse(text: &str) -> Result<Vec<Lv>> {
    let document: Document =
        serde_json::from_str(text).context(|| "failed to parse the output of lvs")?;
    let mut volumes: Vec<Lv> = Vec::new();
    for row in document.report.into_iter().flat_map(|report| report.lv) {
        if !volumes.iter().any(|known| known.uuid == row.lv_uuid) {
            volumes.push(volume(row)?);
        }
    }
    Ok(volumes)
}

fn volume(row: Row) -> Result<Lv> {
    let list = |text: &str| -> Vec<String> {
        let words = text.split(',').filter(|word| !word.is_empty());
        words.map(str::to_owned).collect()
    };
    let bare = |name: &str| {
        name.trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned()
    };
    let bytes = |text: &str| {
        text.parse::<u64>().map_err(|error| {
            Error::failed(format!("lvs reports an invalid size '{text}'")).because(error)
        })
    };
    let device = (row.lv_kernel_major.parse(), row.lv_kernel_minor.parse());
    Ok(Lv {
        tags: list(&row.lv_tags),
        layout: list(&row.lv_layout),
        active: row.lv_active == "active",
        origin_uuid: row.origin_uuid,
        bytes: bytes(&row.lv_size)?,
        pool: bare(&row.pool_lv),
        pool_uuid: row.pool_lv_uuid,
        device: match device {
            (Ok(major), Ok(minor)) => Some((major, minor)),
            _ => None,
        },
        data_percent: row.data_percent.parse().ok(),
        metadata_percent: row.metadata_percent.parse().ok(),
        vg_free_bytes: bytes(&row.vg_free)?,
        extent_bytes: bytes(&row.vg_extent_size)?,
        metadata_lv: bare(&row.metadata_lv),
        thin_id: row.thin_id.parse().ok(),
        name: bare(&row.lv_name),
        vg: row.vg_name,
        uuid: row.lv_uuid,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"  {
      "report": [
          {
              "lv": [
                  {"vg_name":"vg", "lv_name":"data", "lv_uuid":"u1", "lv_tags":"a,evenkeel", "lv_layout":"thin,sparse", "lv_active":"active", "origin_uuid":"", "lv_size":"104857600", "pool_lv":"pool", "pool_lv_uuid":"u2", "lv_kernel_major":"253", "lv_kernel_minor":"4", "data_percent":"12.50", "metadata_percent":"", "vg_free":"4194304", "vg_extent_size":"4194304", "metadata_lv":"", "thin_id":"1"},
                  {"vg_name":"vg", "lv_name":"pool", "lv_uuid":"u2", "lv_tags":"", "lv_layout":"thin,pool", "lv_active":"active", "origin_uuid":"", "lv_size":"209715200", "pool_lv":"", "pool_lv_uuid":"", "lv_kernel_major":"253", "lv_kernel_minor":"2", "data_percent":"6.25", "metadata_percent":"10.84", "vg_free":"4194304", "vg_extent_size":"4194304", "metadata_lv":"[pool_tmeta]", "thin_id":""},
                  {"vg_name":"vg", "lv_name":"data", "lv_uuid":"u1", "lv_tags":"", "lv_layout":"", "lv_active":"", "origin_uuid":"", "lv_size":"1", "pool_lv":"", "pool_lv_uuid":"", "lv_kernel_major":"-1", "lv_kernel_minor":"-1", "data_percent":"", "metadata_percent":"", "vg_free":"0", "vg_extent_size":"1", "metadata_lv":"", "thin_id":""},
                  {"vg_name":"vg", "lv_name":"[pool_tmeta]", "lv_uuid":"u3", "lv_tags":"", "lv_layout":"linear", "lv_active":"", "origin_uuid":"", "lv_size":"4194304", "pool_lv":"", "pool_lv_uuid":"", "lv_kernel_major":"-1", "lv_kernel_minor":"-1", "data_percent":"", "metadata_percent":"", "vg_free":"4194304", "vg_extent_size":"4194304", "metadata_lv":"", "thin_id":""}
              ]
          }
      ]
  }
"#;

    #[test]
    fn volumes_are_read_once_each() {
        let volumes = parse(TEXT).unwrap();
        assert_eq!(volumes.len(), 3);
        let thin = &volumes[0];
        assert!(thin.is_thin() && thin.active && thin.has_tag("evenkeel") && !thin.has_tag("even"));
        assert_eq!((thin.device, thin.thin_id), (Some((253, 4)), Some(1)));
        assert_eq!((thin.bytes, thin.path().as_str()), (100 << 20, "vg/data"));
        let pool = &volumes[1];
        assert!(!pool.is_thin());
        assert_eq!(pool.metadata_lv, "pool_tmeta");
        assert_eq!(pool.metadata_percent, Some(10.84));
        assert_eq!(volumes[2].name, "pool_tmeta");
        assert_eq!((volumes[2].device, volumes[2].active), (None, false));
    }

    #[test]
    fn nonsense_is_an_error() {
        assert!(parse("").is_err());
        assert!(parse("{\"report\":[{\"lv\":[{\"vg_name\":\"vg\"}]}]}").is_err());
        assert!(parse(&TEXT.replace("104857600", "100.00m")).is_err());
    }
}
