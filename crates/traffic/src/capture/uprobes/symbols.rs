//! Where the functions of a server are that are watched, and what follows from which ones it has.

use evenkeel_op::{Error, Result};
use object::read::elf::ElfFile64;
use object::{Object, ObjectSegment, ObjectSymbol, ReadCache};
use std::fs::File;

/// A function that is watched, by how its mangled name begins, and what runs there.
struct Wanted {
    symbol: &'static str,
    programs: &'static [&'static str],
}

const fn wanted(symbol: &'static str, programs: &'static [&'static str]) -> Wanted {
    Wanted { symbol, programs }
}

/// MariaDB passes a command as it was sent: number, session, text, length.
const MARIADB: &str = "_Z16dispatch_command19enum_server_commandP3THDPcj";
const OF_MARIADB: [Wanted; 6] = [
    wanted(
        "_Z17general_log_printP3THD19enum_server_commandPKcz",
        &["login_mariadb"],
    ),
    wanted("_ZN3THDC2Ey", &["numbered_mariadb"]),
    wanted("_ZN9StatementC2EP3LEX", &["prepared_mariadb"]),
    wanted("_Z15mysql_change_dbP3THD", &["schema_set", "schema"]),
    wanted("_ZN3THDD2Ev", &["gone"]),
    wanted(MARIADB, &["dispatched_mariadb", "dispatch_mariadb"]),
];

/// MySQL passes what it made of a command: session, a structure, number.
const MYSQL: &str = "_Z16dispatch_commandP3THDPK8COM_DATA19enum_server_command";
const OF_MYSQL: [Wanted; 6] = [
    wanted(
        "_ZN12Query_logger17general_log_printEP3THD19enum_server_commandPKcz",
        &["login_mysql"],
    ),
    wanted(
        "_ZN18Global_THD_manager17get_new_thread_idEv",
        &["numbered_mysql"],
    ),
    wanted(
        "_ZN16Protocol_classic15store_ps_statusE",
        &["prepared_mysql"],
    ),
    wanted("_Z15mysql_change_dbP3THD", &["schema_set", "schema"]),
    wanted("_ZN3THDD2Ev", &["gone"]),
    wanted(MYSQL, &["dispatched_mysql", "dispatch_mysql"]),
];

/// What shows the text of executions: only watched once it is needed, as all statements pass there.
const LOG_OF_MARIADB: Wanted = wanted(
    "_Z17general_log_writeP3THD19enum_server_commandPKc",
    &["logged_mariadb"],
);
const LOG_OF_MYSQL: Wanted = wanted(
    "_ZN12Query_logger17general_log_writeEP3THD19enum_server_commandPKc",
    &["logged_mysql"],
);

/// MySQL from 8.0 takes parameters apart before it dispatches an execution.
const TAKES_APART: &str = "_Z19mysqld_stmt_executeP3THDP18Prepared_statementbmP8PS_PARAM";
/// MySQL from 8.0.23 has attributes of statements, and each parameter has a name.
const HAS_NAMES: &str = "_ZN26mysql_query_attributes_imp6create";

/// A function to watch: what runs there, and where it begins in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProbeLocation {
    pub(super) program: &'static str,
    pub(super) offset: u64,
}

/// What a server's program has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Symbols {
    /// In the order in which they should be watched.
    pub(super) places: Vec<ProbeLocation>,
    /// What shows the text of executions.
    pub(super) log: Option<ProbeLocation>,
    /// Commands come as they were sent.
    pub(super) has_packets: bool,
    /// The number of a statement shows when it is prepared.
    pub(super) shows_prepared: bool,
    /// Bytes from one parameter to the next, where the server takes them apart.
    pub(super) parameter_bytes: u64,
}

impl Symbols {
    /// Looks for the functions in a server's program.
    ///
    /// # Errors
    ///
    /// `Failed` when it is no program for Linux, or has no such functions. `shown` says in messages what it is.
    pub(super) fn read(program: File, shown: &str) -> Result<Self> {
        let cache = ReadCache::new(program);
        let elf: ElfFile64<'_, object::Endianness, _> =
            ElfFile64::parse(&cache).map_err(|error| no_function(shown).because(error))?;
        let find = |name: &str| {
            let all = || elf.dynamic_symbols().chain(elf.symbols());
            let is_it = |symbol: &object::read::elf::ElfSymbol64<'_, '_, _, _>| {
                symbol.is_definition() && symbol.name().is_ok_and(|it| it.starts_with(name))
            };
            let address = all().find(is_it)?.address();
            elf.segments().find_map(|segment| {
                let within = address.checked_sub(segment.address())?;
                let (begin, size) = segment.file_range();
                (within < size).then_some(begin + within)
            })
        };
        let (of_server, log) = match (find(MARIADB), find(MYSQL)) {
            (Some(_), _) => (&OF_MARIADB, &LOG_OF_MARIADB),
            (None, Some(_)) => (&OF_MYSQL, &LOG_OF_MYSQL),
            (None, None) => return Err(no_function(shown)),
        };
        let places = of_server.iter().filter_map(|wanted| {
            let offset = find(wanted.symbol)?;
            Some(
                wanted
                    .programs
                    .iter()
                    .map(move |program| ProbeLocation { program, offset }),
            )
        });
        let places: Vec<ProbeLocation> = places.flatten().collect();
        let log = find(log.symbol).map(|offset| ProbeLocation {
            program: log.programs[0],
            offset,
        });
        let parameter_bytes = match (find(TAKES_APART), find(HAS_NAMES)) {
            (None, _) => 0,
            (Some(_), None) => 32,
            (Some(_), Some(_)) => 48,
        };
        Ok(Self {
            has_packets: find(MARIADB).is_some(),
            shows_prepared: places
                .iter()
                .any(|place| place.program.starts_with("prepared_")),
            places,
            log,
            parameter_bytes,
        })
    }
}

fn no_function(shown: &str) -> Error {
    Error::failed(format!(
        "{shown} is not a server, or its symbols were removed: it does not show where it dispatches commands"
    ))
    .hint("to see which processes are servers: pgrep -a 'mysqld|mariadbd'")
    .hint("capture packets with --interface, or have clients connect through evenkeel with --tap")
}
