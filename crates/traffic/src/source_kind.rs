//! What statements were seen by, and what is known of them therefore.

/// What statements were seen by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SourceKind {
    /// Packets, of an interface or a file.
    #[default]
    Packets,
    /// A relay between clients and server.
    Tap,
    /// The server's own functions.
    Uprobes,
    /// The slow query log.
    SlowLog,
    /// The general query log.
    GeneralLog,
    /// What the server's performance_schema remembered.
    PerformanceSchema,
}

impl SourceKind {
    const ALL: [Self; 6] = [
        Self::Packets,
        Self::Tap,
        Self::Uprobes,
        Self::SlowLog,
        Self::GeneralLog,
        Self::PerformanceSchema,
    ];

    /// Returns its name in answers and files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Packets => "packets",
            Self::Tap => "tap",
            Self::Uprobes => "uprobes",
            Self::SlowLog => "slow-log",
            Self::GeneralLog => "general-log",
            Self::PerformanceSchema => "performance-schema",
        }
    }

    /// Returns the one with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// Whether times say who came before whom: they are of one clock, and tell when a request and its answer went by.
    #[must_use]
    pub const fn has_exact_times(self) -> bool {
        matches!(self, Self::Packets | Self::Tap | Self::Uprobes)
    }

    /// Whether a statement without an error is one that succeeded.
    #[must_use]
    pub const fn knows_errors(self) -> bool {
        matches!(self, Self::Packets | Self::Tap | Self::PerformanceSchema)
    }

    /// Whether the server wrote or answered it: then its text may have passwords.
    #[must_use]
    pub const fn is_told_by_server(self) -> bool {
        matches!(
            self,
            Self::SlowLog | Self::GeneralLog | Self::PerformanceSchema
        )
    }

    /// Whether it says how long statements took.
    #[must_use]
    pub const fn knows_latency(self) -> bool {
        !matches!(self, Self::GeneralLog)
    }
}
