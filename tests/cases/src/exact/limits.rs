//! What one server holds and another does not. A schema that goes from one to the other is drawn without it;
//! sent all the same, it has to be told of.

use evenkeel_server::abilities::Flavour;
use evenkeel_testkit::TestServer;

/// What a table has that not every server holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Only {
    /// UUID, INET4, INET6.
    Addresses,
    /// A table of Aria.
    Aria,
    /// A CHECK that is enforced.
    Checks,
    /// A column that is compressed.
    CompressedColumns,
    /// A key in descending order.
    Descending,
    /// A default that is an expression.
    ExpressionDefaults,
    /// A key of an expression.
    FunctionalKeys,
    /// A key that the optimizer does not see.
    HiddenKeys,
    /// A column that `*` leaves out.
    InvisibleColumns,
    /// A TIMESTAMP beyond 2038.
    LateTimestamps,
    /// A key over the members of an array.
    ManyValuedKeys,
    /// A floating zero with a sign.
    NegativeZero,
    /// `utf8mb4_0900_ai_ci`.
    NewCollations,
    /// A full-text key by the parser ngram.
    Ngrams,
    /// A period, and a key without overlaps in it.
    Periods,
    /// A column of one reference system.
    SridColumns,
    /// A CHECK that is not enforced.
    UncheckedChecks,
    /// VECTOR.
    Vectors,
}

/// Why a server does not hold something.
#[derive(Debug, Clone, Copy)]
pub struct Limit {
    /// What.
    pub what: Only,
    /// The servers that have it not.
    pub lacks: &'static [&'static str],
    /// Why, as the servers' documentation has it.
    pub why: &'static str,
}

const MARIADB: [&str; 3] = ["mariadb-10.11", "mariadb-11.4", "mariadb-11.8"];

/// All of them.
pub const LIMITS: [Limit; 18] = [
    limit(
        Only::Addresses,
        &["mysql-5.7.22", "mysql-8.0.15", "mysql-9"],
        "UUID, INET4 and INET6 are types of MariaDB",
    ),
    limit(
        Only::Aria,
        &["mysql-5.7.22", "mysql-8.0.15", "mysql-9"],
        "Aria is an engine of MariaDB",
    ),
    limit(
        Only::Checks,
        &["mysql-5.7.22", "mysql-8.0.15"],
        "CHECK is read and ignored before MySQL 8.0.16",
    ),
    limit(
        Only::CompressedColumns,
        &["mysql-5.7.22", "mysql-8.0.15", "mysql-9"],
        "columns are compressed by MariaDB",
    ),
    limit(
        Only::Descending,
        &["mysql-5.7.22"],
        "DESC in keys is read and ignored before MySQL 8.0",
    ),
    limit(
        Only::ExpressionDefaults,
        &["mysql-5.7.22"],
        "a default may be an expression since MySQL 8.0.13",
    ),
    limit(
        Only::FunctionalKeys,
        &[
            "mariadb-10.11",
            "mariadb-11.4",
            "mariadb-11.8",
            "mysql-5.7.22",
        ],
        "a part of a key may be an expression since MySQL 8.0.13, in MariaDB it is a column",
    ),
    limit(
        Only::HiddenKeys,
        &["mysql-5.7.22"],
        "a key may be INVISIBLE since MySQL 8.0",
    ),
    limit(
        Only::InvisibleColumns,
        &["mysql-5.7.22", "mysql-8.0.15"],
        "columns may be invisible since MySQL 8.0.23",
    ),
    limit(
        Only::LateTimestamps,
        &[
            "mariadb-10.11",
            "mariadb-11.4",
            "mysql-5.7.22",
            "mysql-8.0.15",
            "mysql-9",
        ],
        "TIMESTAMP goes beyond 2038 since MariaDB 11.5",
    ),
    limit(
        Only::ManyValuedKeys,
        &[
            "mariadb-10.11",
            "mariadb-11.4",
            "mariadb-11.8",
            "mysql-5.7.22",
            "mysql-8.0.15",
        ],
        "a key of many values per row came with MySQL 8.0.17",
    ),
    limit(
        Only::NegativeZero,
        &MARIADB,
        "MariaDB stores no negative zero",
    ),
    limit(
        Only::NewCollations,
        &["mariadb-10.11", "mysql-5.7.22"],
        "utf8mb4_0900_ai_ci came with MySQL 8.0, and to MariaDB with 11.4.5",
    ),
    limit(Only::Ngrams, &MARIADB, "the parser ngram belongs to MySQL"),
    limit(
        Only::Periods,
        &["mysql-5.7.22", "mysql-8.0.15", "mysql-9"],
        "periods are MariaDB's",
    ),
    limit(
        Only::SridColumns,
        &[
            "mariadb-10.11",
            "mariadb-11.4",
            "mariadb-11.8",
            "mysql-5.7.22",
        ],
        "a column has an SRID since MySQL 8.0",
    ),
    limit(
        Only::UncheckedChecks,
        &[
            "mariadb-10.11",
            "mariadb-11.4",
            "mariadb-11.8",
            "mysql-5.7.22",
            "mysql-8.0.15",
        ],
        "NOT ENFORCED came with MySQL 8.0.16",
    ),
    limit(
        Only::Vectors,
        &[
            "mariadb-10.11",
            "mariadb-11.4",
            "mysql-5.7.22",
            "mysql-8.0.15",
        ],
        "VECTOR came with MariaDB 11.7 and MySQL 9.0",
    ),
];

const fn limit(what: Only, lacks: &'static [&'static str], why: &'static str) -> Limit {
    Limit { what, lacks, why }
}

impl Limit {
    /// Returns whether a server has it.
    #[must_use]
    pub fn is_held_by(&self, server: &TestServer) -> bool {
        !self.lacks.contains(&server.id)
    }

    /// Returns whether it can go from one server to the other.
    #[must_use]
    pub fn travels(&self, from: &TestServer, to: &TestServer) -> bool {
        self.is_held_by(from) && self.is_held_by(to)
    }
}

impl Only {
    /// Returns what makes a table with it on a server that has it.
    #[must_use]
    pub fn statements(self, on: &TestServer) -> Vec<String> {
        let hidden = match on.binary.flavour {
            Flavour::MariaDb => "IGNORED",
            Flavour::MySql => "INVISIBLE",
        };
        if self == Self::HiddenKeys {
            return vec![
                format!("CREATE TABLE hidden_keys (id INT PRIMARY KEY, a INT, KEY k (a) {hidden})"),
                "INSERT INTO hidden_keys VALUES (1, 5), (2, NULL)".to_owned(),
            ];
        }
        let statements = self.of_values().iter().chain(self.of_definitions());
        statements.map(|one| (*one).to_owned()).collect()
    }

    /// What is in the rows.
    fn of_values(self) -> &'static [&'static str] {
        match self {
            Self::Addresses => &[
                "CREATE TABLE addresses (id INT PRIMARY KEY, u UUID, f INET4, s INET6 NOT NULL, KEY u (u))",
                "INSERT INTO addresses VALUES (1, '00000000-0000-1000-8000-ffffffffffff', '255.0.255.1', '::'), \
                 (2, NULL, NULL, 'ffff::1'), (3, '123e4567-e89b-42d3-a456-426614174000', '0.0.0.0', '::ffff:1.2.3.4')",
            ],
            Self::Aria => &[
                "CREATE TABLE aria (id INT, t TEXT, PRIMARY KEY (id)) ENGINE=Aria ROW_FORMAT=PAGE",
                "INSERT INTO aria VALUES (-1, 'a'), (0, ''), (7, NULL)",
            ],
            Self::CompressedColumns => &[
                "CREATE TABLE compressed (id INT PRIMARY KEY, t MEDIUMTEXT COMPRESSED, b VARBINARY(200) COMPRESSED)",
                "INSERT INTO compressed VALUES (1, REPEAT('ab', 3000), X'00FF'), (2, '', NULL)",
            ],
            Self::LateTimestamps => &[
                "CREATE TABLE late (id INT PRIMARY KEY, t TIMESTAMP(3) NULL)",
                "INSERT INTO late VALUES (1, '2106-02-07 06:28:15.999'), (2, '2038-01-19 03:14:08'), (3, NULL)",
            ],
            Self::NegativeZero => &[
                "CREATE TABLE negative_zero (id INT PRIMARY KEY, f FLOAT, d DOUBLE)",
                "INSERT INTO negative_zero VALUES (1, '-0', '-0'), (2, 0, 0)",
            ],
            Self::NewCollations => &[
                "CREATE TABLE new_collations (id INT PRIMARY KEY, t VARCHAR(9) COLLATE utf8mb4_0900_ai_ci, KEY (t)) \
                 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin",
                "INSERT INTO new_collations VALUES (1, 'a'), (2, _utf8mb4 X'F09F9880')",
            ],
            Self::SridColumns => &[
                "CREATE TABLE srid_columns (id INT PRIMARY KEY, p POINT NOT NULL SRID 4326, g GEOMETRY SRID 3857, SPATIAL KEY p (p))",
                "INSERT INTO srid_columns VALUES (1, ST_GeomFromText('POINT(1 2)', 4326), ST_GeomFromText('POINT(5 6)', 3857)), \
                 (2, ST_GeomFromText('POINT(-89 179)', 4326), NULL)",
            ],
            Self::Vectors => &[
                "CREATE TABLE vectors (id INT PRIMARY KEY, v VECTOR(3), w VECTOR(1) NOT NULL)",
                "INSERT INTO vectors VALUES (1, X'0000803F0000004000004040', X'000080BF'), (2, NULL, X'0A090D5C')",
            ],
            _ => &[],
        }
    }

    /// What is in the definition.
    fn of_definitions(self) -> &'static [&'static str] {
        match self {
            Self::Checks => &[
                "CREATE TABLE checks (id INT PRIMARY KEY, a INT, CONSTRAINT positive CHECK (a > 0))",
                "INSERT INTO checks VALUES (1, 1), (2, NULL)",
            ],
            Self::Descending => &[
                "CREATE TABLE descending (id INT, a INT, b INT, PRIMARY KEY (id DESC), KEY k (a DESC, b))",
                "INSERT INTO descending VALUES (1, 2, 3), (3, NULL, 1), (2, 2, 2)",
            ],
            Self::ExpressionDefaults => &[
                "CREATE TABLE computed_defaults (id INT PRIMARY KEY, u VARCHAR(40) DEFAULT (UUID()), n INT DEFAULT (1 + 2))",
                "INSERT INTO computed_defaults (id) VALUES (1), (2)",
            ],
            Self::FunctionalKeys => &[
                "CREATE TABLE functional_keys (id INT PRIMARY KEY, a INT, KEY k ((a + 1), id))",
                "INSERT INTO functional_keys VALUES (1, 5), (2, NULL)",
            ],
            Self::InvisibleColumns => &[
                "CREATE TABLE invisible (id INT PRIMARY KEY, a INT INVISIBLE, b VARCHAR(9) DEFAULT 'x' INVISIBLE, c INT)",
                "INSERT INTO invisible (id, a, b, c) VALUES (1, 2, 'y', 3), (2, NULL, NULL, NULL)",
            ],
            Self::ManyValuedKeys => &[
                "CREATE TABLE many_values (id INT PRIMARY KEY, j JSON, KEY k ((CAST(j->'$.a' AS UNSIGNED ARRAY))))",
                "INSERT INTO many_values VALUES (1, '{\"a\": [1, 2]}'), (2, NULL)",
            ],
            Self::Ngrams => &[
                "CREATE TABLE ngrams (id INT PRIMARY KEY, t TEXT, FULLTEXT KEY k (t) WITH PARSER ngram)",
                "INSERT INTO ngrams VALUES (1, 'some words')",
            ],
            Self::Periods => &[
                "CREATE TABLE periods (id INT, a DATE, b DATE, PERIOD FOR p (a, b), UNIQUE KEY k (id, p WITHOUT OVERLAPS))",
                "INSERT INTO periods VALUES (1, '2026-01-01', '2026-02-01'), (1, '2026-02-01', '2026-03-01')",
            ],
            Self::UncheckedChecks => &[
                "CREATE TABLE unchecked (id INT PRIMARY KEY, a INT, CONSTRAINT unchecked_a CHECK (a > 0) NOT ENFORCED)",
                "INSERT INTO unchecked VALUES (1, -1)",
            ],
            _ => &[],
        }
    }
}
