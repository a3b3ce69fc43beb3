//! For which server a library of the engine was built, by what it declares: the server reads the same, and loads no other.
//!
//! Nothing of the library is run. It may be any file: whatever it says of places in it is checked.

/// What a plugin's declaration is called in the libraries of each family of servers.
const DECLARATIONS: [(&str, &str); 2] = [
    ("_maria_plugin_declarations_", "mariadb"),
    ("_mysql_plugin_declarations_", "mysql"),
];

/// Where a declaration points to what is asked of it, in bytes: the version of the engine's interface, the names of the
/// engine and of its author.
const INTERFACE: u64 = 8;
const NAME: u64 = 16;
const AUTHOR: u64 = 24;

/// Returns for which server a library of the engine was built, as [`Found::server`](super::Found::server) has it:
/// `mariadb-10.11.19`; `None` where it is no such library.
#[must_use]
pub fn built_for(bytes: &[u8]) -> Option<String> {
    let elf = Elf::new(bytes)?;
    let (declaration, family) = DECLARATIONS
        .iter()
        .find_map(|(symbol, family)| Some((elf.symbol(symbol)?, family)))?;
    let pointed = |at: u64| elf.offset(elf.pointer(declaration.checked_add(at)?)?);
    if !elf.is_text(pointed(NAME)?, "QUEUE") || !elf.is_text(pointed(AUTHOR)?, "evenkeel") {
        return None;
    }
    // A storage engine's interface has the server's version, and room for eight bits more.
    let version = elf.word(pointed(INTERFACE)?)? >> 8;
    let (major, minor, patch) = (version / 10_000, version / 100 % 100, version % 100);
    Some(format!("{family}-{major}.{minor}.{patch}"))
}

/// A library of 64 bits, little-endian.
struct Elf<'a> {
    bytes: &'a [u8],
    sections: Vec<Section>,
    /// What a pointer into the library itself is called where the library is loaded.
    relative: u64,
}

/// A piece of it.
struct Section {
    kind: u32,
    offset: u64,
    size: u64,
    /// For symbols: which section has their names.
    link: u32,
}

/// Kinds of sections: pointers, symbols.
const POINTERS: u32 = 4;
const SYMBOLS: u32 = 11;

/// The kind of segment that is loaded.
const LOADED: u32 = 1;

impl<'a> Elf<'a> {
    fn new(bytes: &'a [u8]) -> Option<Self> {
        if !bytes.starts_with(b"\x7fELF\x02\x01") {
            return None;
        }
        let mut elf = Self {
            bytes,
            sections: Vec::new(),
            relative: 0,
        };
        // x86-64, and ARM.
        elf.relative = match elf.half(18)? {
            62 => 8,
            183 => 1027,
            _ => return None,
        };
        let (table, size, count) = (elf.long(40)?, elf.half(58)?, elf.half(60)?);
        for number in 0..u64::from(count) {
            let at = table.checked_add(number * u64::from(size))?;
            elf.sections.push(Section {
                kind: elf.word(at.checked_add(4)?)?,
                offset: elf.long(at.checked_add(24)?)?,
                size: elf.long(at.checked_add(32)?)?,
                link: elf.word(at.checked_add(40)?)?,
            });
        }
        Some(elf)
    }

    fn array<const N: usize>(&self, at: u64) -> Option<[u8; N]> {
        let at = usize::try_from(at).ok()?;
        let bytes = self.bytes.get(at..at.checked_add(N)?)?;
        bytes.try_into().ok()
    }

    fn half(&self, at: u64) -> Option<u16> {
        self.array(at).map(u16::from_le_bytes)
    }

    fn word(&self, at: u64) -> Option<u32> {
        self.array(at).map(u32::from_le_bytes)
    }

    fn long(&self, at: u64) -> Option<u64> {
        self.array(at).map(u64::from_le_bytes)
    }

    /// Whether a text of the file, which ends with a zero, is this one.
    fn is_text(&self, at: u64, text: &str) -> bool {
        let at = usize::try_from(at).ok();
        let rest = at.and_then(|at| self.bytes.get(at..));
        let rest = rest.and_then(|rest| rest.strip_prefix(text.as_bytes()));
        rest.is_some_and(|rest| rest.first() == Some(&0))
    }

    /// Where the entries of all sections of a kind are, with those sections.
    fn entries(&self, kind: u32) -> impl Iterator<Item = (&Section, u64)> {
        let of_kind = self.sections.iter().filter(move |one| one.kind == kind);
        // Both kinds that are asked for have entries of 24 bytes. Sections may say that they are longer than the file, or
        // that all of them have the same bytes.
        let most = self.bytes.len() / 24;
        let entries = of_kind.flat_map(|one| {
            (0..one.size / 24)
                .map(move |number| (one, one.offset.saturating_add(number.saturating_mul(24))))
        });
        entries.take(most)
    }

    /// The address of a symbol.
    fn symbol(&self, name: &str) -> Option<u64> {
        let is_it = |(section, at): &(&Section, u64)| {
            let names = self.sections.get(section.link as usize);
            let place = names.zip(self.word(*at));
            let place = place.and_then(|(names, place)| names.offset.checked_add(place.into()));
            place.is_some_and(|place| self.is_text(place, name))
        };
        let (_, at) = self.entries(SYMBOLS).find(is_it)?;
        self.long(at.checked_add(8)?)
    }

    /// The address that a pointer at this address has once the library is loaded.
    fn pointer(&self, address: u64) -> Option<u64> {
        let is_it = |(_, at): &(&Section, u64)| self.long(*at) == Some(address);
        let (_, at) = self.entries(POINTERS).find(is_it)?;
        let is_relative = self.long(at.checked_add(8)?)? == self.relative;
        self.long(at.checked_add(16)?).filter(|_| is_relative)
    }

    /// Where in the file the byte at an address is.
    fn offset(&self, address: u64) -> Option<u64> {
        let (table, size, count) = (self.long(32)?, self.half(54)?, self.half(56)?);
        (0..u64::from(count)).find_map(|number| {
            let at = table.checked_add(number * u64::from(size))?;
            let (kind, offset) = (self.word(at)?, self.long(at.checked_add(8)?)?);
            let (begin, bytes) = (
                self.long(at.checked_add(16)?)?,
                self.long(at.checked_add(32)?)?,
            );
            let into = address.checked_sub(begin).filter(|into| *into < bytes)?;
            (kind == LOADED).then_some(offset.checked_add(into)?)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a library is loaded at.
    const BASE: u64 = 0x1000;

    /// A library with a declaration and nothing else.
    fn library(symbol: &str, version: u32, author: &str) -> Vec<u8> {
        let mut file = vec![0; 64 + 56];
        let mut put = |bytes: &[u8]| {
            let at = file.len();
            file.extend(bytes);
            file.resize(file.len().next_multiple_of(8), 0);
            at as u64
        };
        let declaration = put(&[0; 40]);
        let targets = [
            (INTERFACE, put(&(version << 8).to_le_bytes())),
            (NAME, put(b"QUEUE\0")),
            (AUTHOR, put(format!("{author}\0").as_bytes())),
        ];
        let names = format!("\0{symbol}\0");
        let names = (put(names.as_bytes()), names.len() as u64);
        let longs = |numbers: &[u64]| -> Vec<u8> {
            numbers.iter().flat_map(|one| one.to_le_bytes()).collect()
        };
        let symbols = (put(&longs(&[0, 0, 0, 1, declaration + BASE, 40])), 48);
        let pointers = targets.map(|(at, to)| longs(&[declaration + BASE + at, 8, to + BASE]));
        let pointers = (put(&pointers.concat()), 72);
        let section = |kind: u32, link: u32, (offset, size): (u64, u64)| {
            let mut out = [0; 4].to_vec();
            out.extend(kind.to_le_bytes());
            out.extend(longs(&[0, 0, offset, size]));
            out.extend(link.to_le_bytes());
            out.resize(64, 0);
            out
        };
        let sections = [
            section(0, 0, (0, 0)),
            section(SYMBOLS, 2, symbols),
            section(3, 0, names),
            section(POINTERS, 0, pointers),
        ];
        let table = put(&sections.concat());
        let whole = file.len() as u64;
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        file[18] = 62;
        file[32..40].copy_from_slice(&64u64.to_le_bytes());
        file[40..48].copy_from_slice(&table.to_le_bytes());
        for (at, number) in [(54, 56), (56, 1), (58, 64), (60, 4u8)] {
            file[at] = number;
        }
        file[64] = LOADED as u8;
        let segment = longs(&[0, BASE, BASE, whole, whole]);
        file[72..72 + segment.len()].copy_from_slice(&segment);
        file
    }

    #[test]
    fn a_library_says_for_which_server_it_is() {
        let maria = library(DECLARATIONS[0].0, 101_119, "evenkeel");
        assert_eq!(built_for(&maria).as_deref(), Some("mariadb-10.11.19"));
        let mysql = library(DECLARATIONS[1].0, 90_704, "evenkeel");
        assert_eq!(built_for(&mysql).as_deref(), Some("mysql-9.7.4"));
    }

    #[test]
    fn another_library_says_nothing() {
        let stranger = library(DECLARATIONS[0].0, 101_119, "evenkeels");
        assert_eq!(built_for(&stranger), None);
        let none = library("_maria_plugin_declarations", 101_119, "evenkeel");
        assert_eq!(built_for(&none), None);
    }

    /// Sections that are all the same piece, as long as the file: each entry is looked at once for all of them.
    #[test]
    fn a_file_is_read_once() {
        let mut file = library("_", 1, "evenkeel");
        file.resize(2 << 20, 0);
        let table = file.len() as u64 - 64;
        let at = table as usize;
        file[at + 4] = SYMBOLS as u8;
        file[at + 32..at + 40].copy_from_slice(&table.to_le_bytes());
        file[40..48].copy_from_slice(&table.to_le_bytes());
        file[58..62].copy_from_slice(&[0, 0, 0xff, 0xff]);
        let elf = Elf::new(&file).unwrap();
        assert_eq!(elf.sections.len(), 0xffff);
        assert_eq!(elf.entries(SYMBOLS).count(), file.len() / 24);
        assert_eq!(built_for(&file), None);
    }

    #[test]
    fn nothing_in_a_file_is_trusted() {
        let whole = library(DECLARATIONS[0].0, 101_119, "evenkeel");
        // Of the last section's entry the end is not needed.
        for end in 0..whole.len() - 24 {
            assert_eq!(built_for(&whole[..end]), None, "{end} bytes");
        }
        for at in 0..whole.len() {
            for byte in [0, 1, 0x7f, 0x80, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] = byte;
                // It may say anything, but is read to an end.
                let _ = built_for(&bytes);
            }
            let mut bytes = whole.clone();
            let end = (at + 8).min(bytes.len());
            bytes[at..end].fill(0xff);
            let _ = built_for(&bytes);
        }
    }
}
