//! What is in the files: frames one after the other, in segments and in parts.

pub(crate) mod frame;
pub(crate) mod kept;
pub(crate) mod rows;
pub(crate) mod segment;
pub(crate) mod times;

/// Which file of a table it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Name {
    /// What compaction kept, in the order of row ids.
    Part {
        /// Of which checkpoint.
        generation: u32,
        /// Which of its parts.
        index: u32,
    },
    /// A piece of the log, in the order of writing.
    Segment(u64),
}

impl Name {
    pub(crate) fn file(self) -> String {
        match self {
            Self::Segment(number) => format!("{number:012}.seg"),
            Self::Part { generation, index } => format!("{generation:08}-{index:05}.part"),
        }
    }

    pub(crate) fn parse(file: &str) -> Option<Self> {
        let name = if let Some(number) = file.strip_suffix(".seg") {
            Self::Segment(number.parse().ok()?)
        } else {
            let (generation, index) = file.strip_suffix(".part")?.split_once('-')?;
            Self::Part {
                generation: generation.parse().ok()?,
                index: index.parse().ok()?,
            }
        };
        (name.file() == file).then_some(name)
    }

    /// As a number that is no other file's.
    pub(crate) fn id(self) -> u64 {
        match self {
            Self::Segment(number) => number,
            Self::Part { generation, index } => {
                1 << 63 | u64::from(generation) << 31 | u64::from(index)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_others_are_not() {
        let part = Name::Part {
            generation: 3,
            index: 9,
        };
        for name in [Name::Segment(7), part] {
            assert_eq!(Name::parse(&name.file()), Some(name));
        }
        for other in ["7.seg", "CHECKPOINT", "x.part", "000000000001.seg.tmp"] {
            assert_eq!(Name::parse(other), None, "{other}");
        }
    }
}
