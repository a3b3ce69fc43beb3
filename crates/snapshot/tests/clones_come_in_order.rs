//! Are files cloned one by one in the order in which they are given, whatever directories they lie in?

mod ground;

use evenkeel_snapshot::{Method, SourceFile, open};
use ground::{datadir, layout, settings, xfs};
use std::fs;
use std::path::Path;

/// Of each list one file more is missing, so that the clones stop there: those before it are made, and no
/// other.
#[test]
fn what_stands_behind_is_not_there_before() {
    let fs = xfs();
    let datadir = datadir(&fs);
    fs::create_dir(datadir.join("shop")).unwrap();
    let layout = layout(&datadir);
    // No directory's files stand together.
    let names: Vec<String> = (0..12)
        .map(|at| match at % 3 {
            0 => format!("{at}"),
            1 => format!("bank/{at}"),
            _ => format!("shop/{at}"),
        })
        .collect();
    let files: Vec<SourceFile> = names
        .iter()
        .map(|name| SourceFile {
            name: format!("data/{name}"),
            path: datadir.join(name),
        })
        .collect();
    for missing in 0..files.len() {
        for (at, file) in files.iter().enumerate() {
            match at == missing {
                true => fs::remove_file(&file.path).unwrap_or_default(),
                false => fs::write(&file.path, "content").unwrap(),
            }
        }
        let mut provider = open(Method::Reflink, &layout, &settings(), None).unwrap();
        let error = provider.take(&files).unwrap_err();
        assert!(error.to_string().contains(&names[missing]), "{error}");
        let clones = ground::holding(&fs);
        for (at, name) in names.iter().enumerate() {
            assert_eq!(
                is_cloned(&clones, name),
                at < missing,
                "{name} of {missing}"
            );
        }
        provider.abandon().unwrap();
    }
}

/// Whether a clone of this name is anywhere below a holding directory.
fn is_cloned(holding: &Path, name: &str) -> bool {
    let wanted: String = name.split('/').map(|part| format!("/{part}~")).collect();
    let mut left = vec![holding.to_owned()];
    while let Some(dir) = left.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                left.push(path);
            } else if path.to_string_lossy().ends_with(&format!("/data~{wanted}")) {
                return true;
            }
        }
    }
    false
}
