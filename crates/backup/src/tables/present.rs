//! Which schemas and tables files are of.

use evenkeel_innodb::names::decode;
use evenkeel_server::files::ServerFiles;
use evenkeel_server::tables::TableId;
use std::collections::{HashMap, HashSet};
use std::path::{Component, Path};

/// How a server calls a schema or table whose file name is not in its encoding.
pub(super) const RAW: &str = "#mysql50#";

/// The files of an image, by what they are of.
#[derive(Debug, Default)]
pub(super) struct Present<'f> {
    /// By directory and name as on disk; the directory is empty for what lies on top of a root.
    files: HashSet<(String, String)>,
    /// Where they lie on the server's host.
    paths: HashSet<&'f Path>,
    /// Extensions, by schema and table.
    tables: HashMap<String, HashMap<String, Vec<String>>>,
    schemas: HashSet<String>,
}

impl<'f> Present<'f> {
    /// Sorts the files that were found.
    pub(super) fn of(files: &'f ServerFiles) -> Self {
        let mut present = Self::default();
        for file in &files.files {
            present.add_file(&file.name);
            present.paths.insert(&file.path);
        }
        let dirs = files.dirs.iter().map(|(name, _)| name.as_str());
        present.add_schemas(files, dirs);
        present
    }

    /// Sorts the files that a tool has sent. A table that was made meanwhile comes as `.new`.
    pub(super) fn of_names<'n>(
        files: &'f ServerFiles,
        names: impl Iterator<Item = &'n str>,
        dirs: impl Iterator<Item = &'n str>,
    ) -> Self {
        let mut present = Self::default();
        for name in names {
            match name.strip_suffix(".new") {
                Some(stem) => present.add_file(&format!("{stem}.ibd")),
                None => present.add_file(name),
            }
        }
        present.add_schemas(files, dirs);
        present
    }

    fn add_file(&mut self, name: &str) {
        let Some((root, rest)) = name.split_once('/') else {
            return;
        };
        let (dir, file) = match rest.rsplit_once('/') {
            Some((dirs, file)) => (dirs.rsplit('/').next().unwrap_or(dirs), file),
            None => (root.strip_prefix("schema-").unwrap_or(""), rest),
        };
        self.files.insert((dir.to_owned(), file.to_owned()));
        let Some((stem, kind)) = file.rsplit_once('.') else {
            return;
        };
        let marks = ["#P#", "#p#"];
        let cut = marks.iter().find_map(|mark| stem.split_once(mark));
        let stem = cut.map_or(stem, |(table, _)| table);
        for schema in spellings(dir) {
            let tables = self.tables.entry(schema).or_default();
            for table in spellings(stem) {
                let kinds = tables.entry(table).or_default();
                if !kinds.iter().any(|known| known == kind) {
                    kinds.push(kind.to_owned());
                }
            }
        }
    }

    fn add_schemas<'n>(&mut self, files: &ServerFiles, dirs: impl Iterator<Item = &'n str>) {
        let inside = dirs.filter_map(|name| name.strip_prefix("data/"));
        for dir in inside.filter(|dir| !dir.contains('/')) {
            self.schemas.extend(spellings(dir));
        }
        let links = files
            .roots
            .iter()
            .filter_map(|root| root.id.strip_prefix("schema-"));
        self.schemas.extend(links.flat_map(spellings));
        // A server without a dictionary takes every directory for a schema. What is no name of one was not
        // made by CREATE DATABASE, and may be left out.
        for (path, _) in &files.excluded {
            if path.parent() == Some(&files.datadir) {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                self.schemas.insert(format!("{RAW}{name}"));
            }
        }
    }

    pub(super) fn has_schema(&self, schema: &str) -> bool {
        self.schemas.contains(schema)
    }

    /// Whether a table has a file of a kind.
    pub(super) fn has_file(&self, table: &TableId, kind: &str) -> bool {
        self.kinds(table).iter().any(|known| known == kind)
    }

    /// The extensions of a table's files.
    pub(super) fn kinds(&self, table: &TableId) -> &[String] {
        let tables = self.tables.get(&table.schema);
        let kinds = tables.and_then(|tables| tables.get(&table.name));
        kinds.map_or(&[], Vec::as_slice)
    }

    /// Whether a tablespace is there, which the server has at `path`.
    pub(super) fn has_tablespace(&self, path: &Path, datadir: &Path) -> bool {
        let inside = path.strip_prefix(datadir).unwrap_or(path);
        let is_plain =
            |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        if !inside.components().all(is_plain) {
            let place = datadir.join(path).canonicalize();
            return place.is_ok_and(|place| self.paths.contains(place.as_path()));
        }
        let dir = inside
            .parent()
            .and_then(Path::file_name)
            .unwrap_or_default();
        let name = inside.file_name().unwrap_or_default();
        let wanted = (
            dir.to_string_lossy().into_owned(),
            name.to_string_lossy().into_owned(),
        );
        self.files.contains(&wanted)
    }
}

/// Returns by which names a server knows what is called so on disk.
pub(super) fn spellings(part: &str) -> impl Iterator<Item = String> + use<> {
    let is_encoded = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'@';
    let encoded = part.bytes().all(is_encoded);
    let raw = !encoded || part.contains('@');
    let names = [
        encoded.then(|| decode(part)),
        raw.then(|| format!("{RAW}{part}")),
    ];
    names.into_iter().flatten()
}
