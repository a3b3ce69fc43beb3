//! What a snapshot needs to know about a server's files.

use evenkeel_server::files::FoundFile;
use evenkeel_snapshot::SourceFile;

pub(super) fn source(file: &FoundFile) -> SourceFile {
    SourceFile {
        name: file.name.clone(),
        path: file.path.clone(),
    }
}

pub(super) fn sources(files: &[FoundFile]) -> Vec<SourceFile> {
    files.iter().map(source).collect()
}
