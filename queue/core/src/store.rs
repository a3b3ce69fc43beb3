//! The tables of a server. In the directory of a database a table is one small anchor file; its rows
//! are in a directory named after the id in it. So a table appears, is renamed and is gone in one step.

use crate::error::{During, Error, Result};
use crate::io::Io;
use crate::place::is_table;
use crate::table::{Options, Queue, Report, read_small, replace_small};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const MAGIC: [u8; 8] = *b"EVKQTAB\n";
const VERSION: u32 = 1;

/// What an anchor file's name ends with in a server's data directory, behind a dot.
pub const SUFFIX: &str = "QUE";

/// What an anchor file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anchor {
    /// Which table it is, for ever.
    pub id: u128,
    /// The columns, in the words of whoever made the table.
    pub layout: Vec<u8>,
}

impl Anchor {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend(VERSION.to_le_bytes());
        out.extend((self.layout.len() as u32).to_le_bytes());
        out.extend(self.id.to_le_bytes());
        out.extend(&self.layout);
        let crc = crc32c::crc32c(&out);
        out.extend(crc.to_le_bytes());
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> std::result::Result<Self, &'static str> {
        if bytes.len() < 36 || bytes[..8] != MAGIC {
            return Err("this is not a table of the queue engine");
        }
        let body = bytes.len() - 4;
        if bytes[body..] != crc32c::crc32c(&bytes[..body]).to_le_bytes() {
            return Err("the checksum of the table's file does not match");
        }
        if bytes[8..12] != VERSION.to_le_bytes() {
            return Err("the table is of an unknown version: use a newer plugin");
        }
        if bytes[12..16] != (body as u32 - 32).to_le_bytes() {
            return Err("the table's file has another length");
        }
        Ok(Self {
            id: u128::from_le_bytes(bytes[16..32].try_into().expect("sixteen bytes")),
            layout: bytes[32..body].to_vec(),
        })
    }
}

/// All tables of a server.
#[derive(Clone)]
pub struct Store {
    io: Arc<dyn Io>,
    root: PathBuf,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("root", &self.root).finish()
    }
}

impl Store {
    /// The tables whose rows are below this directory, which is made if it is not there.
    ///
    /// # Errors
    ///
    /// It cannot be made.
    pub fn new(io: Arc<dyn Io>, root: &Path) -> Result<Self> {
        io.make_dir(root).during("make", root)?;
        if let Some(parent) = root.parent() {
            io.sync_dir(parent).during("sync", parent)?;
        }
        let root = root.to_path_buf();
        Ok(Self { io, root })
    }

    fn dir(&self, id: u128) -> PathBuf {
        self.root.join(format!("{id:032x}"))
    }

    /// Makes an empty table. When its anchor is there it is there, and durably so.
    ///
    /// # Errors
    ///
    /// The file system refuses: it is not there. What is left of it is swept later.
    pub fn create(&self, anchor: &Path, layout: &[u8]) -> Result<()> {
        let id = fastrand::u128(..);
        let layout = layout.to_vec();
        let made = Queue::create(&*self.io, &self.dir(id), id)
            .and_then(|()| self.io.sync_dir(&self.root).during("sync", &self.root))
            .and_then(|()| put(&*self.io, anchor, &Anchor { id, layout }));
        // It may have its name already, when only that could not be made durable.
        if made.is_err() {
            match self.anchor(anchor) {
                Ok(there) if there.id == id => {
                    let _ = self.drop_table(anchor, None).map(|id| self.remove_rows(id));
                }
                _ => self.remove_rows(id),
            }
        }
        made
    }

    /// Reads an anchor.
    ///
    /// # Errors
    ///
    /// It is not there, or is none.
    pub fn anchor(&self, anchor: &Path) -> Result<Anchor> {
        let bytes = read_small(&*self.io, anchor)?;
        Anchor::decode(&bytes).map_err(|what| Error::Foreign {
            file: anchor.display().to_string(),
            what: what.into(),
        })
    }

    /// Says that the columns are others now; the rows stay.
    ///
    /// # Errors
    ///
    /// The file system refuses: the old ones stay.
    pub fn set_layout(&self, anchor: &Path, layout: &[u8]) -> Result<()> {
        let id = self.anchor(anchor)?.id;
        let layout = layout.to_vec();
        put(&*self.io, anchor, &Anchor { id, layout })
    }

    /// Opens a table, after a crash too. It must not be open already.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] where something broke that no crash breaks.
    pub fn open(&self, anchor: &Path, options: Options) -> Result<(Arc<Queue>, Report)> {
        self.open_either(anchor, options, false)
    }

    /// Opens a table of which something broke: the rest is kept, and rewritten. The report says
    /// what is lost. Rows whose removal is lost come again.
    ///
    /// # Errors
    ///
    /// Its files cannot be read at all, or not be written.
    pub fn salvage(&self, anchor: &Path, options: Options) -> Result<(Arc<Queue>, Report)> {
        self.open_either(anchor, options, true)
    }

    fn open_either(
        &self,
        anchor: &Path,
        options: Options,
        salvages: bool,
    ) -> Result<(Arc<Queue>, Report)> {
        let id = self.anchor(anchor)?.id;
        let opened = Queue::open(&self.io, &self.dir(id), id, options, salvages)?;
        Ok((Arc::new(opened.0), opened.1))
    }

    /// Gives a table another name, in one step.
    ///
    /// # Errors
    ///
    /// The file system refuses: it has the old name, after a crash perhaps the new one.
    pub fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let ((old, _), (new, _)) = (split(from)?, split(to)?);
        self.io.rename(from, to).during("rename", from)?;
        let sync = |dir: &Path| self.io.sync_dir(dir).during("sync", dir);
        let synced = sync(new).and_then(|()| if old == new { Ok(()) } else { sync(old) });
        if synced.is_err() {
            // Whoever asked goes on as if nothing had been done.
            self.io.rename(to, from).during("rename", to)?;
        }
        synced
    }

    /// Takes a table's name away; `open` is the table if it is open. All who wait for it are told at
    /// once, and when this returns nobody makes a file of it any more. Returns whose rows
    /// [`remove_rows`](Self::remove_rows) may remove now.
    ///
    /// # Errors
    ///
    /// The anchor cannot be removed: the table is still there. Or that cannot be made durable: it is gone,
    /// and may be there again, with its rows, after a crash.
    pub fn drop_table(&self, anchor: &Path, open: Option<&Queue>) -> Result<u128> {
        let id = self.anchor(anchor)?.id;
        let (dir, _) = split(anchor)?;
        self.io.unlink(anchor).during("remove", anchor)?;
        let synced = self.io.sync_dir(dir).during("sync", dir);
        if let Some(table) = open {
            table.drop_now();
        }
        synced.map(|()| id)
    }

    /// Removes the rows of a table that has no name any more. What cannot be removed is swept when the
    /// server starts.
    pub fn remove_rows(&self, id: u128) {
        let _ = self.remove_dir(&self.dir(id));
    }

    fn remove_dir(&self, dir: &Path) -> Result<()> {
        for name in self.io.list(dir).during("list", dir)? {
            let path = dir.join(name);
            self.io.unlink(&path).during("remove", &path)?;
        }
        self.io.remove_dir(dir).during("remove", dir)
    }

    /// Removes what no anchor speaks of: tables that a crash left half made or half gone. `known` are
    /// the ids of all anchors there are. Returns how many there were. What cannot be removed stays: it keeps
    /// nobody from the tables that are there.
    ///
    /// # Errors
    ///
    /// The directory cannot be listed.
    pub fn sweep(&self, known: &[u128]) -> Result<usize> {
        let mut swept = 0;
        for name in self.io.list(&self.root).during("list", &self.root)? {
            let id = u128::from_str_radix(&name, 16);
            let Some(id) = id.ok().filter(|_| is_table(&name)) else {
                continue;
            };
            if !known.contains(&id) && self.remove_dir(&self.dir(id)).is_ok() {
                swept += 1;
            }
        }
        Ok(swept)
    }
}

/// Writes an anchor, in one step.
pub(crate) fn put(io: &dyn Io, anchor: &Path, content: &Anchor) -> Result<()> {
    let (dir, name) = split(anchor)?;
    // Not the table's name with something behind it: that may be as long as a name can be.
    let new = format!("{:032x}.{SUFFIX}.new", content.id);
    let done = replace_small(io, dir, &new, name, &content.encode());
    if done.is_err() {
        // DROP DATABASE would stop at it.
        let _ = io.unlink(&dir.join(new));
    }
    done
}

fn split(anchor: &Path) -> Result<(&Path, &str)> {
    let name = anchor.file_name().and_then(|name| name.to_str());
    match (anchor.parent(), name) {
        (Some(dir), Some(name)) => Ok((dir, name)),
        _ => Err(Error::Foreign {
            file: anchor.display().to_string(),
            what: "a table's file has to have a name in a directory".into(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_anchor_is_read_back_and_every_flipped_bit_is_seen() {
        let whole = Anchor {
            id: 77 << 100,
            layout: b"id int".to_vec(),
        };
        let bytes = whole.encode();
        assert_eq!(Anchor::decode(&bytes), Ok(whole));
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(Anchor::decode(&bytes).is_err(), "bit {bit}");
        }
    }
}
