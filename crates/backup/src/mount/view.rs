//! All generations of a repository, or one, as a tree.
//!
//! ```text
//! MOUNTPOINT/SOURCE/GENERATION/ROOT/…      all of them
//! MOUNTPOINT/SOURCE/latest                 a link to the newest
//! MOUNTPOINT/ROOT/…                        one
//! ```

use super::contents::{Contents, Opened};
use super::listing::{TOP, plain_directory};
use evenkeel_mount::{Attributes, Entry, NodeId, NodeKind, ROOT, Tree};
use evenkeel_repository::Summary;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::sync::Arc;

/// The link to a source's newest generation.
const LATEST: &str = "latest";

/// What is above the generations.
enum Above {
    Directory(BTreeMap<OsString, (NodeId, NodeKind)>, (i64, u32)),
    Link(OsString),
}

pub(super) struct View {
    contents: Arc<Contents>,
    /// Numbered from [`ROOT`] on; empty when only one generation is shown.
    above: Vec<Above>,
    /// The one that is shown.
    one: Option<u32>,
}

fn missing() -> io::Error {
    rustix::io::Errno::NOENT.into()
}

/// What stands for something in a generation: below it are the numbers of what is above all.
fn node_of(generation: u32, number: u32) -> NodeId {
    u64::from(generation) << 32 | u64::from(number)
}

impl View {
    /// Shows one generation.
    pub(super) fn one(contents: Arc<Contents>, generation: u32) -> Self {
        Self {
            contents,
            above: Vec::new(),
            one: Some(generation),
        }
    }

    /// Shows these generations, by their source.
    pub(super) fn all(contents: Arc<Contents>, generations: &[Summary]) -> Self {
        let mut sources: BTreeMap<String, Vec<(u32, i64)>> = BTreeMap::new();
        for summary in generations {
            if let Some(about) = &summary.about {
                let created = about.created.as_second();
                let source = directory_name(&about.source);
                let of_source = sources.entry(source).or_default();
                of_source.push((summary.generation, created));
            }
        }
        let mut above = vec![Above::Directory(BTreeMap::new(), (0, 0))];
        let mut top = BTreeMap::new();
        for (source, generations) in sources {
            let newest = generations.iter().copied().max().unwrap_or_default();
            let mut names = BTreeMap::new();
            for (generation, _) in &generations {
                let name = OsString::from(generation.to_string());
                names.insert(name, (node_of(*generation, TOP), NodeKind::Directory));
            }
            above.push(Above::Link(newest.0.to_string().into()));
            names.insert(LATEST.into(), (above.len() as NodeId, NodeKind::Link));
            above.push(Above::Directory(names, (newest.1, 0)));
            top.insert(source.into(), (above.len() as NodeId, NodeKind::Directory));
        }
        above[0] = Above::Directory(top, (0, 0));
        Self {
            contents,
            above,
            one: None,
        }
    }

    fn above(&self, node: NodeId) -> Option<&Above> {
        self.above.get(node.checked_sub(ROOT)? as usize)
    }

    fn inside(&self, node: NodeId) -> io::Result<(u32, u32, Arc<Opened>)> {
        let (generation, number) = match self.one {
            Some(generation) if node == ROOT => (generation, TOP),
            _ => ((node >> 32) as u32, node as u32),
        };
        if generation == 0 {
            return Err(missing());
        }
        let opened = self.contents.generation(generation);
        let opened = opened.map_err(|error| self.contents.complain(&error))?;
        Ok((generation, number, opened))
    }
}

/// Returns the name of a source's directory: its host and place, without what parts paths.
pub(super) fn directory_name(source: &str) -> String {
    let (host, place) = source.split_once(':').unwrap_or((source, ""));
    let place = place.trim_matches('/').replace('/', "-");
    match place.is_empty() {
        true => host.replace('/', "-"),
        false => format!("{}:{place}", host.replace('/', "-")),
    }
}

impl Tree for View {
    fn attributes(&self, node: NodeId) -> io::Result<Attributes> {
        match self.above(node) {
            Some(Above::Directory(_, mtime)) => Ok(Attributes {
                mtime: *mtime,
                ..plain_directory()
            }),
            Some(Above::Link(target)) => Ok(Attributes {
                kind: NodeKind::Link,
                size: target.len() as u64,
                mode: 0o777,
                ..plain_directory()
            }),
            None => {
                let (_, number, opened) = self.inside(node)?;
                let listed = opened.listing.get(number).ok_or_else(missing)?;
                Ok(listed.attributes())
            }
        }
    }

    fn find(&self, directory: NodeId, name: &OsStr) -> io::Result<Option<NodeId>> {
        match self.above(directory) {
            Some(Above::Directory(names, _)) => Ok(names.get(name).map(|(node, _)| *node)),
            Some(Above::Link(_)) => Ok(None),
            None => {
                let (generation, number, opened) = self.inside(directory)?;
                let found = opened.listing.find(number, name);
                Ok(found.map(|number| node_of(generation, number)))
            }
        }
    }

    fn list(&self, directory: NodeId) -> io::Result<Vec<Entry>> {
        match self.above(directory) {
            Some(Above::Directory(names, _)) => {
                let entries = names.iter().map(|(name, (node, kind))| Entry {
                    name: name.clone(),
                    node: *node,
                    kind: *kind,
                });
                Ok(entries.collect())
            }
            Some(Above::Link(_)) => Err(rustix::io::Errno::NOTDIR.into()),
            None => {
                let (generation, number, opened) = self.inside(directory)?;
                let listed = opened.listing.get(number).ok_or_else(missing)?;
                let entries = listed.names().map(|(name, number)| Entry {
                    name: name.clone(),
                    node: node_of(generation, number),
                    kind: opened
                        .listing
                        .get(number)
                        .map_or(NodeKind::File, |l| l.kind()),
                });
                Ok(entries.collect())
            }
        }
    }

    fn target(&self, link: NodeId) -> io::Result<OsString> {
        match self.above(link) {
            Some(Above::Link(target)) => Ok(target.clone()),
            _ => Err(rustix::io::Errno::INVAL.into()),
        }
    }

    fn read_at(&self, file: NodeId, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let key = ((file >> 32) as u32, file as u32);
        self.contents.read(key, offset, buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_names_of_directories() {
        assert_eq!(directory_name("db1:/var/lib/mysql"), "db1:var-lib-mysql");
        assert_eq!(
            directory_name("db1:/dev/vg/a,/dev/vg/b"),
            "db1:dev-vg-a,-dev-vg-b"
        );
        assert_eq!(directory_name("odd"), "odd");
    }
}
