//! The files of InnoDB's system tablespace.

use evenkeel_op::{Error, Result};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Reads `ibdata1:12M;/elsewhere/ibdata2:50M:autoextend` into absolute paths.
pub(super) fn files(variables: &BTreeMap<String, String>, home: &Path) -> Result<Vec<PathBuf>> {
    let spec = variables
        .get("innodb_data_file_path")
        .map_or("ibdata1:12M", String::as_str);
    let mut files = Vec::new();
    for one in spec.split(';').filter(|one| !one.is_empty()) {
        let mut parts = one.split(':');
        let path = home.join(parts.next().unwrap_or_default());
        let size = parts.next().unwrap_or_default();
        if size.ends_with("raw") {
            return Err(Error::refused(format!(
                "the InnoDB system tablespace is on the raw device {}",
                path.display()
            ))
            .hint(
                "move it into a file: dump the data, and load it into a server with \
                 innodb_data_file_path=ibdata1:12M:autoextend",
            ));
        }
        files.push(std::fs::canonicalize(&path).unwrap_or(path));
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(spec: &str) -> Result<Vec<PathBuf>> {
        let variables = [("innodb_data_file_path".to_owned(), spec.to_owned())].into();
        files(&variables, Path::new("/home-of-innodb"))
    }

    #[test]
    fn paths_are_below_the_home_unless_absolute() {
        let files = of("ibdata1:12M;/else/ibdata2:12M:autoextend").unwrap();
        assert_eq!(
            files,
            ["/home-of-innodb/ibdata1", "/else/ibdata2"].map(PathBuf::from)
        );
    }

    #[test]
    fn raw_devices_are_refused_by_name() {
        for spec in ["/dev/sdb1:10Graw", "ibdata1:12M;/dev/sdb1:10Gnewraw"] {
            let error = of(spec).unwrap_err();
            assert_eq!(error.kind(), evenkeel_op::ErrorKind::Refused);
            assert!(error.to_string().contains("/dev/sdb1"));
        }
    }
}
