//! How each path is run: what is there before, the command line, and how it ends.

/// A path in a command line.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    /// Which: `backup --metrics`, `generations repository`.
    pub(crate) of: String,
    /// What is there before, by its name on the ground; `-` for nothing.
    pub(crate) there: String,
    pub(crate) code: i32,
    /// A part of the answer that is there only if the path was found.
    pub(crate) reported: String,
    /// The command line; `{}` is the path, `{name}` a copy of what the ground has, or a free place.
    pub(crate) line: String,
}

impl Row {
    /// Whether it works until it is told to end.
    pub(crate) fn serves(&self) -> bool {
        self.of.starts_with("mount ") && self.code == 0
    }

    /// How the path's name has to end.
    pub(crate) fn suffix(&self) -> &'static str {
        match self.of.ends_with("--metrics") {
            true => ".prom",
            false => "",
        }
    }
}

/// Reads a table: path, what is there, exit code, what is told, command line.
fn read(table: &str) -> impl Iterator<Item = Row> {
    table.trim().lines().map(|line| {
        let cells: Vec<&str> = line.splitn(5, '|').map(str::trim).collect();
        let [of, there, code, reported, line] = cells[..] else {
            panic!("not five cells: {line}");
        };
        Row {
            of: of.to_owned(),
            there: there.to_owned(),
            code: code.parse().unwrap(),
            reported: reported.to_owned(),
            line: line.to_owned(),
        }
    })
}

/// Verbs that talk to a server, and what they need besides.
const CONNECTING: [(&str, &str); 39] = [
    ("backup", "{new}"),
    ("baseline drop", "x"),
    ("baseline list", ""),
    ("baseline rollback", ""),
    ("baseline save", ""),
    ("bench cache", ""),
    ("bench compression", ""),
    ("bench inserts", ""),
    ("bench oltp load", ""),
    ("bench oltp run", ""),
    ("bench tpcc check", ""),
    ("bench tpcc load", "-w1"),
    ("bench tpcc run", ""),
    ("binlog archive", "{new}"),
    ("check", ""),
    ("clone", "--target={new}"),
    ("doctor", ""),
    ("dump", "--output={new}"),
    ("health check", "--timeout=10s"),
    ("health run", "--count=1 --interval=10s --timeout=10s"),
    ("import", "{statements}"),
    ("load", "{dump}"),
    ("lock", "-- true"),
    ("plugin install", "url --library={library}"),
    ("plugin status", "url"),
    ("plugin uninstall", "url"),
    ("qps", "--count=1 --interval=500ms"),
    ("queue compact", "a.b"),
    ("queue forward", "a.b c.d"),
    ("queue peek", "a.b"),
    ("queue status", ""),
    ("replay", "{slow.log} --read-only"),
    ("replica checksum", ""),
    ("replica diagnose", ""),
    ("replica heal", ""),
    ("replica repair", "--output={new}"),
    ("replica resync", "--datadir={datadir}"),
    ("replica status", ""),
    ("top", "--count=1 --interval=500ms"),
];

/// The paths of a connection: what is there, and what goes with it. Files for TLS are looked at before anything
/// is sent, and nobody is let in.
const CONNECTION: [(&str, &str, &str); 6] = [
    ("--socket", "socket", "--no-defaults"),
    ("--defaults-file", "client.cnf", ""),
    ("--defaults-extra-file", "client.cnf", ""),
    ("--ssl-ca", "empty", "--no-defaults -h 127.0.0.1 -P {port}"),
    (
        "--ssl-cert",
        "empty",
        "--no-defaults -h 127.0.0.1 -P {port}",
    ),
    ("--ssl-key", "empty", "--no-defaults -h 127.0.0.1 -P {port}"),
];

/// The paths of a connection, for each verb that has one.
pub(crate) fn connections() -> Vec<Row> {
    let mut rows: Vec<Row> = read(SETTINGS).collect();
    for (verb, words) in CONNECTING {
        rows.extend(CONNECTION.map(|(option, there, more)| Row {
            of: format!("{verb} {option}"),
            there: there.to_owned(),
            // Of a plugin for Nagios, and of servers that are down.
            code: match verb {
                "health check" => 2,
                "health run" => 4,
                _ => 14,
            },
            reported: "nobody is let in here".to_owned(),
            line: format!("{verb} {option}={{}} {more} {words}"),
        }));
    }
    rows
}

/// It connects to nothing, and shows what it would connect with.
const SETTINGS: &str = r#"
settings --socket              | socket     | 0 | "value": "PATH"       | settings --no-defaults --socket={}
settings --defaults-file       | client.cnf | 0 | PATH, line 2 [client] | settings --defaults-file={}
settings --defaults-extra-file | client.cnf | 0 | PATH, line 2 [client] | settings --defaults-extra-file={}
settings --ssl-ca              | empty      | 0 | "value": "PATH"       | settings --no-defaults --ssl-ca={}
settings --ssl-cert            | empty      | 0 | "value": "PATH"       | settings --no-defaults --ssl-cert={}
settings --ssl-key             | empty      | 0 | "value": "PATH"       | settings --no-defaults --ssl-key={}
"#;

/// What opens a repository, and how that ends with the key.
const WITH_KEY: &str = r#"
backup --identity          | key | 0  | "generation": 2      | backup {encrypted} --no-defaults --new-source --snapshot=copy --volume={disk} --identity={}
binlog archive --identity  | key | 14 | nobody is let in     | binlog archive {encrypted} --no-defaults --socket={socket} --identity={}
binlog extract --identity  | key | 14 | no such binary log   | binlog extract {encrypted} {new} --identity={}
binlog list --identity     | key | 0  | "sources": []        | binlog list {encrypted} --identity={}
check --identity           | key | 2  | no InnoDB files      | check --repository={encrypted} --identity={}
generations --identity     | key | 0  | "bytes_read": 131072 | generations {encrypted} --identity={}
keys add --identity        | key | 0  | "executed": true     | keys add {encrypted} --recipient={other-recipient} --identity={}
keys remove --identity     | key | 2  | cannot open this     | keys remove {encrypted} --recipient={other-recipient} --identity={}
mount --identity           | key | 0  | "generations": 1     | mount {encrypted} {directory} --identity={}
prune --identity           | key | 0  | "executed": false    | prune {encrypted} --identity={}
repository copy --identity | key | 0  | "becomes": 1         | repository copy {encrypted} {new} --decrypt --identity={}
restore --identity         | key | 0  | "files": 1           | restore {encrypted} --target={new} --identity={}
verify --identity          | key | 0  | "unchecked": []      | verify {encrypted} --identity={}
"#;

/// Who may open a repository that is made, or has to.
const PASSPHRASES: &str = "
backup --encrypt-passphrase-file          | empty | 12 | PATH holds no passphrase | backup {new} --no-defaults --snapshot=copy --volume={disk} --encrypt-passphrase-file={}
binlog archive --encrypt-passphrase-file  | empty | 12 | PATH holds no passphrase | binlog archive {new} --no-defaults --socket={socket} --encrypt-passphrase-file={}
repository copy --encrypt-passphrase-file | empty | 12 | PATH holds no passphrase | repository copy {repository} {new} --encrypt-passphrase-file={}
keys add --new-passphrase-file            | empty | 12 | PATH holds no passphrase | keys add {encrypted} --identity={key} --new-passphrase-file={}
";

/// The keys of each verb that opens a repository, and of those that may make one.
pub(crate) fn keys() -> Vec<Row> {
    let mut rows: Vec<Row> = read(WITH_KEY).chain(read(PASSPHRASES)).collect();
    // Of one that holds none: to try a passphrase takes its time.
    let empty = read(WITH_KEY).map(|row| Row {
        of: row.of.replace("--identity", "--passphrase-file"),
        line: row.line.replace("--identity", "--passphrase-file"),
        there: "empty".to_owned(),
        code: 12,
        reported: "PATH holds no passphrase".to_owned(),
    });
    rows.extend(empty);
    rows
}

/// All others.
pub(crate) fn others() -> Vec<Row> {
    read(OTHERS).collect()
}

const OTHERS: &str = r#"
backup --datadir | datadir | 0 | "generation": 1 | backup --no-defaults --snapshot=copy --datadir={} {new}
backup --metrics | - | 0 | "generation": 1 | backup --no-defaults --snapshot=copy --volume={disk} --metrics={} {new}
backup --ssh-program | no-program | 13 | the connection ended | backup {new} --no-defaults --snapshot=copy --volume={disk} --ssh=there --ssh-command={ssh} --ssh-program={}
backup --volume | disk | 0 | "generation": 1 | backup --no-defaults --snapshot=copy --volume={} {new}
backup repository | - | 0 | "generation": 1 | backup --no-defaults --snapshot=copy --volume={disk} {}
backup repository | repository | 0 | "generation": 2 | backup --no-defaults --new-source --snapshot=copy --volume={disk} {}
baseline drop --datadir | datadir | 14 | there is no baseline | baseline drop x --no-defaults --datadir={}
baseline list --datadir | datadir | 0 | "datadir": "PATH" | baseline list --no-defaults --datadir={}
baseline rollback --datadir | datadir | 14 | there is no baseline | baseline rollback --no-defaults --datadir={}
baseline save --datadir | datadir | 0 | "files": 2 | baseline save --no-defaults --datadir={}
bench cache --report | - | 14 | nobody is let in | bench cache --no-defaults --socket={socket} --report={}
bench compare first | runs | 0 | "p": 1.0 | bench compare {} {runs}
bench compare second | runs | 0 | "p": 1.0 | bench compare {runs} {}
bench compression --report | - | 14 | nobody is let in | bench compression --no-defaults --socket={socket} --report={}
bench inserts --report | - | 14 | nobody is let in | bench inserts --no-defaults --socket={socket} --report={}
bench oltp run --plot | - | 14 | nobody is let in | bench oltp run --no-defaults --socket={socket} --plot={}
bench oltp run --report | - | 14 | nobody is let in | bench oltp run --no-defaults --socket={socket} --report={}
bench recovery --server | no-program | 14 | PATH is not a MySQL | bench recovery --tables=1 --server={}
bench showdown --server | no-program | 14 | PATH is not a MySQL | bench showdown --quick --server={}
bench tpcc run --plot | - | 14 | nobody is let in | bench tpcc run --no-defaults --socket={socket} --plot={}
bench tpcc run --report | - | 14 | nobody is let in | bench tpcc run --no-defaults --socket={socket} --report={}
bench tpcc run -f | - | 2 | -f FILE | bench tpcc run -f {}
bench tpcc run -t | - | 2 | -t FILE | bench tpcc run -t {}
binlog archive --metrics | - | 14 | nobody is let in | binlog archive {new} --no-defaults --socket={socket} --metrics={}
binlog archive --ssh-program | no-program | 13 | the connection ended | binlog archive {new} --no-defaults --ssh=there --ssh-command={ssh} --ssh-program={}
binlog archive repository | - | 14 | nobody is let in | binlog archive --no-defaults --socket={socket} {}
binlog extract repository | repository | 14 | no such binary log | binlog extract {} {new}
binlog list repository | repository | 0 | "sources": [] | binlog list {}
capture --directory | - | 0 | | capture --pcap={capture} --append --directory={}
capture --defaults-file | client.cnf | 14 | | capture --server=localhost --for=100ms --defaults-file={}
capture --log | slow.log | 0 | | capture --log={}
capture --pcap | capture | 0 | | capture --pcap={}
capture --ssl-ca | certificate | 0 | | capture --for=10ms --tap=:0 --to=localhost --ssl-ca={}
capture --tap-cert | certificate | 0 | | capture --for=10ms --tap=:0 --to={socket} --tap-key={certificate-key} --tap-cert={}
capture --tap-key | certificate-key | 0 | | capture --for=10ms --tap=:0 --to={socket} --tap-cert={certificate} --tap-key={}
check --datadir | datadir | 0 | "place": "PATH" | check --no-defaults --datadir={}
check --heal-from | repository | 0 | "kept_in" | check --no-defaults --datadir={datadir} --heal-from={}
check --repository | repository | 2 | no InnoDB files in PATH | check --no-defaults --repository={}
check paths | datadir | 0 | "place": "PATH" | check {}
check paths | no-program | 2 | PATH is not an InnoDB tablespace | check {}
cron --lock | - | 0 | | cron --lock={} -- true
cron --log | - | 0 | | cron --log={} -- true
demo --dir | empty | 1 | create PATH | demo --dir={}
demo --server-binary | no-program | 14 | PATH is not a MySQL | demo --server-binary={}
digest --compare | digest.json | 0 | "changes": [ | digest {slow.log} --compare={}
digest --defaults-file | client.cnf | 14 | nobody is let in here | digest {slow.log} --history=mysql:/// --defaults-file={}
digest --history | - | 0 | "place": "PATH" | digest {slow.log} --history={}
digest --identity | key | 0 | "count": 1 | digest {slow.log} --identity={}
digest --html | - | 0 | "count": 1 | digest {slow.log} --html={}
digest files | slow.log | 0 | "file": "PATH" | digest {}
clone --ssh-program | no-program | 13 | the connection ended | clone --target={new} --no-defaults --ssh=there --ssh-command={ssh} --ssh-program={}
replica resync --datadir | datadir | 14 | nobody is let in | replica resync --no-defaults --socket={socket} --datadir={}
replica resync --ssh-program | no-program | 13 | the connection ended | replica resync --datadir={datadir} --no-defaults --ssh=there --ssh-command={ssh} --ssh-program={}
doctor --ssh-program | no-program | 13 | the connection ended | doctor --no-defaults --ssh=there --ssh-command={ssh} --ssh-program={}
dump --mask-key-file | statements | 2 | read or change the key file PATH | dump --no-defaults --socket={socket} --output={new} --mask=a.b.c=hash --mask-key-file={}
fleet file | fleet.toml | 0 | "exit_code": 0 | fleet {} -- generations
forget --metrics | - | 0 | "last" | forget {repository} --keep-last=1 --execute --metrics={}
forget repository | repository | 0 | "last" | forget {} --keep-last=1 --execute
generations repository | repository | 0 | "generation": 1 | generations {}
health check --datadir | datadir | 2 | nobody is let in | health check --no-defaults --socket={socket} --timeout=10s --min-disk=1 --datadir={}
health drain --control | - | 13 | no answer from | health drain db1 --control={}
health run --action | no-program | 4 | nobody is let in | health run --no-defaults --socket={socket} --count=1 --interval=10s --timeout=10s --action={}
health run --control | - | 4 | nobody is let in | health run --no-defaults --socket={socket} --count=1 --interval=10s --timeout=10s --control={}
health run --datadir | datadir | 4 | nobody is let in | health run --no-defaults --socket={socket} --count=1 --interval=10s --timeout=10s --min-disk=1 --datadir={}
health run --fleet | watched.toml | 4 | nobody is let in | health run --fleet={} --count=1 --interval=10s --timeout=10s
health run --state-directory | - | 4 | nobody is let in | health run --no-defaults --socket={socket} --count=1 --interval=10s --timeout=10s --state-directory={}
health status --control | - | 13 | no answer from | health status --control={}
health undrain --control | - | 13 | no answer from | health undrain db1 --control={}
import file | statements | 14 | nobody is let in | import --no-defaults --socket={socket} {}
keys add repository | encrypted | 0 | "executed": true | keys add {} --identity={key} --recipient={other-recipient}
keys generate --output | - | 0 | "file": "PATH" | keys generate --output={}
keys list repository | encrypted | 0 | "role": "reader" | keys list {}
keys remove repository | repository | 2 | not encrypted | keys remove {} --recipient={other-recipient}
load input | dump | 14 | nobody is let in | load --no-defaults --socket={socket} {}
mount --writable-scratch | - | 0 | "scratch": "PATH" | mount {repository} {directory} --writable-scratch={}
mount mountpoint | directory | 0 | "mountpoint": "PATH" | mount {repository} {}
mount repository | repository | 0 | "generations": 1 | mount {} {directory}
plugin install --library | library | 14 | nobody is let in | plugin install url --no-defaults --socket={socket} --library={}
plugin install --table | table | 14 | nobody is let in | plugin install url --no-defaults --socket={socket} --library={library} --table={}
prewarm --datadir | datadir | 0 | "datadir": "PATH" | prewarm --no-defaults --datadir={}
prewarm --defaults-extra-file | server.cnf | 0 | "datadir": "ROOM/datadir" | prewarm --defaults-extra-file={}
prewarm --defaults-file | server.cnf | 0 | "datadir": "ROOM/datadir" | prewarm --defaults-file={}
prune --metrics | - | 0 | "executed": true | prune {repository} --execute --metrics={}
prune repository | repository | 0 | "executed": true | prune {} --execute
qps --fleet | watched.toml | 14 | nobody is let in | qps --fleet={} --count=1 --interval=500ms
queue check path | datadir | 2 | no queue in PATH | queue check {}
queue salvage path | datadir | 2 | no queue in PATH | queue salvage {} --output={new}
replay --compare | digest.json | 2 | PATH is not the answer of a replay | replay {slow.log} --read-only --no-defaults --socket={socket} --compare={}
replay --identity | key | 14 | nobody is let in | replay {slow.log} --read-only --no-defaults --socket={socket} --identity={}
replay file | slow.log | 14 | nobody is let in | replay --read-only --no-defaults --socket={socket} {}
repository copy --ssh-program | no-program | 13 | the connection ended | repository copy {repository} {new} --ssh=there --ssh-command={ssh} --ssh-program={}
repository copy from | repository | 0 | "from": "PATH" | repository copy {} {new}
repository copy to | - | 0 | "to": "PATH" | repository copy {repository} {}
repository rebuild repository | repository | 0 | "live": [ | repository rebuild {} --execute
restore --onto | statements | 0 | "bytes_written": 131072 | restore {repository} --onto={} --execute
restore --ssh-program | no-program | 13 | the connection ended | restore {repository} --target={new} --ssh=there --ssh-command={ssh} --ssh-program={}
restore --target | - | 0 | "target": "PATH" | restore {repository} --target={}
restore --target | directory | 0 | "target": "PATH" | restore {repository} --target={}
restore repository | repository | 0 | "files": 1 | restore {} --target={new}
replica checksum --fleet | watched.toml | 14 | nobody is let in | replica checksum a --fleet={}
replica diagnose --fleet | watched.toml | 14 | nobody is let in | replica diagnose --fleet={}
replica heal --fleet | watched.toml | 14 | nobody is let in | replica heal --fleet={}
replica heal --hook | no-program | 14 | nobody is let in | replica heal --no-defaults --socket={socket} --allow=restart --execute --journal={new} --hook={}
replica repair --fleet | watched.toml | 14 | nobody is let in | replica repair a --output={new} --fleet={}
replica status --fleet | watched.toml | 14 | nobody is let in | replica status --fleet={}
top --fleet | watched.toml | 14 | nobody is let in | top --fleet={} --count=1 --interval=500ms
url compress --table | table | 0 | | url compress {urls} --table={}
url compress file | urls | 0 | | url compress {}
url decompress --table | table | 0 | https://example.com/a | url decompress {codes-of-table} --table={}
url decompress file | codes | 0 | https://example.com/a | url decompress {}
url grep --table | table | 0 | | url grep https://example.com/ {codes-of-table} --table={}
url grep file | codes | 0 | | url grep https://example.com/ {}
url stats --table | table | 0 | "table_bytes": | url stats {urls} --table={}
url stats file | urls | 0 | "urls": 100 | url stats {}
url train --output | - | 0 | "table": "PATH" | url train {urls} --output={} --table-size=64K --no-held-out
url train file | urls | 0 | "urls": 100 | url train {} --output={new} --table-size=64K --no-held-out
verify --metrics | - | 0 | "sound": true | verify {repository} --metrics={}
verify --server-binary | no-program | 14 | PATH is not a MySQL | verify {repository} --boot --server-binary={}
verify --ssh-program | no-program | 13 | the connection ended | verify {repository} --ssh=there --ssh-command={ssh} --ssh-program={}
verify repository | repository | 0 | "sound": true | verify {}
"#;
