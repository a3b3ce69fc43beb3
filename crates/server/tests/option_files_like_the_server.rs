//! Do we read option files exactly as the server's own programs do?
//!
//! Generates trees of option files, then compares our reading with `my_print_defaults`, which is
//! the judge. `EVENKEEL_SEED=N` repeats one tree.

use evenkeel_server::launch::Binary;
use evenkeel_server::option_file::{DefaultsSpec, OptionLine, USUAL_FILES, read};
use evenkeel_server::options::server_groups;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const TREES: u64 = 1000;

/// splitmix64: the same tree for the same seed, everywhere.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }

    /// Some of these, one after the other.
    fn some(&mut self, from: &[&str], most: usize) -> String {
        (0..self.below(most + 1)).map(|_| self.pick(from)).collect()
    }
}

const GROUPS: [&str; 9] = [
    "client",
    "Client",
    "mysqld",
    "client-server",
    "evenkeel",
    "client_a",
    "mysqld_a",
    "clienta",
    "x",
];
const NAMES: [&str; 10] = [
    "user",
    "pass-word",
    "pass_word",
    "loose-x",
    "skip-y",
    "a.b",
    "ssl_ca",
    "n'",
    "\"q r\"",
    "ü",
];
const BITS: [&str; 24] = [
    "a", "B7", " ", "\t", "#", ";", "'", "\"", "\\", "\\n", "\\s", "\\t", "\\\\", "\\\"", "\\'",
    "\\q", "=", "[", "]", "!", "/tmp/x", "à", "\u{a0}", "~",
];
/// Each may include those after it; the last one is never there.
const FILES: [&str; 15] = [
    "main.cnf",
    "extra.cnf",
    "home/.my.cnf",
    "home/my.cnf",
    "a.cnf",
    "b.cnf",
    "sub/1.cnf",
    "sub/10.cnf",
    "sub/2.x.cnf",
    "sub/.cnf",
    "sub/B.cnf",
    "sub/n.ini",
    "sub/xcnf",
    "sub/c.CNF",
    "absent.cnf",
];
/// From this rank on, files do not include the directory that they are in.
const SUB: usize = 6;
const SPACES: [&str; 6] = ["", "", " ", "\t", "  \t ", "\u{b}"];
const ENDS: [&str; 5] = ["\n", "\n", "\n", "\r\n", "  \n"];

fn value(dice: &mut Dice) -> String {
    let inner = dice.some(&BITS, 8);
    match dice.below(6) {
        0 => format!("'{inner}'"),
        1 => format!("\"{inner}\""),
        2 => format!("\"{inner}'"),
        3 => format!("{inner} # {}", dice.some(&BITS, 3)),
        4 if dice.one_in(8) => "long ".repeat(700 + dice.below(300)),
        _ => inner,
    }
}

fn line(dice: &mut Dice, dir: &Path, rank: usize) -> String {
    let (before, after) = (dice.pick(&SPACES), dice.pick(&SPACES));
    let name = dice.pick(&NAMES);
    let text = match dice.below(24) {
        0..8 => format!(
            "{before}{name}{after}={}{}",
            dice.pick(&SPACES),
            value(dice)
        ),
        8..10 => format!("{before}{name}{after}"),
        10 => format!("{before}{name} # comment = x"),
        11 => format!("{before}#{}", dice.some(&BITS, 4)),
        12 => format!("{before};{}", dice.some(&BITS, 4)),
        13 => before.to_owned(),
        14..18 => format!("{before}[{}{after}]{after}", dice.pick(&GROUPS)),
        18 => format!("{before}[{}] # no comment", dice.pick(&GROUPS)),
        19 => format!(
            "{before}!{after}include {}",
            dir.join(some_file(dice, rank)).display()
        ),
        20 => format!(
            "!include\t{}{after}",
            dir.join(some_file(dice, rank)).display()
        ),
        21 if rank < SUB => format!("!includedir {}{after}", dir.join("sub").display()),
        22 => format!(
            "!{} {}",
            dice.pick(&["includes", "foo", "includedirs"]),
            name
        ),
        _ if dice.one_in(40) => dice
            .pick(&["[broken", "!include", "!includedir /none"])
            .to_owned(),
        _ => format!("!include {}", dir.join("absent.cnf").display()),
    };
    text + dice.pick(&ENDS)
}

/// Returns a file that this one may include: a later one, or the tree would grow without end.
fn some_file(dice: &mut Dice, rank: usize) -> &'static str {
    let from = (rank + 1).min(FILES.len() - 1);
    dice.pick(&FILES[from..])
}

fn file(dice: &mut Dice, dir: &Path, rank: usize) -> String {
    let mut text = String::new();
    if !dice.one_in(25) {
        text += &format!("[{}]\n", dice.pick(&GROUPS));
    }
    for _ in 0..dice.below(20) {
        text += &line(dice, dir, rank);
    }
    if dice.one_in(6) {
        text.truncate(text.trim_end().len());
    }
    text
}

/// Writes a tree of option files and returns what to read of it, and the groups.
fn tree(dice: &mut Dice, dir: &Path) -> (DefaultsSpec, Vec<&'static str>) {
    fs::create_dir_all(dir.join("sub/dir.cnf")).unwrap();
    fs::create_dir_all(dir.join("home")).unwrap();
    for (rank, name) in FILES[..FILES.len() - 1].iter().copied().enumerate() {
        if dice.one_in(5) && name != "main.cnf" && name != "extra.cnf" {
            continue;
        }
        let path = dir.join(name);
        fs::write(&path, file(dice, dir, rank)).unwrap();
        let mode = if dice.one_in(12) { 0o666 } else { 0o600 };
        fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
    }
    let alone = dice.one_in(2);
    let spec = DefaultsSpec {
        no_defaults: false,
        defaults_file: alone.then(|| dir.join("main.cnf")),
        extra_file: (!dice.one_in(3)).then(|| dir.join("extra.cnf")),
        group_suffix: dice.one_in(3).then(|| "_a".to_owned()),
        home: Some(dir.join("home")),
        mysql_home: dice.one_in(3).then(|| dir.join("home")),
        default_files: USUAL_FILES.iter().map(PathBuf::from).collect(),
    };
    let mut groups: Vec<_> = (0..2 + dice.below(4)).map(|_| dice.pick(&GROUPS)).collect();
    groups.dedup();
    (spec, groups)
}

fn judge(spec: &DefaultsSpec, groups: &[&str], dir: &Path) -> Output {
    let mut command = Command::new("/usr/bin/my_print_defaults");
    command.env_clear().current_dir(dir);
    command.envs(spec.home.as_ref().map(|home| ("HOME", home)));
    command.envs(spec.mysql_home.as_ref().map(|home| ("MYSQL_HOME", home)));
    for (flag, path) in [
        ("--defaults-file=", &spec.defaults_file),
        ("--defaults-extra-file=", &spec.extra_file),
    ] {
        command.args(
            path.as_ref()
                .map(|path| format!("{flag}{}", path.display())),
        );
    }
    command.args(
        spec.group_suffix
            .as_ref()
            .map(|suffix| format!("--defaults-group-suffix={suffix}")),
    );
    let output = command.args(groups).output();
    output.expect("my_print_defaults of the MariaDB packages has to be installed")
}

fn printed(options: &[OptionLine]) -> String {
    let line = |option: &OptionLine| match &option.value {
        Some(value) => format!("--{}={value}\n", option.name),
        None => format!("--{}\n", option.name),
    };
    options.iter().map(line).collect()
}

/// Returns how many options the tree of this seed had, when both readers agree.
fn compare(seed: u64) -> Result<usize, String> {
    let scratch = tempfile::tempdir().unwrap();
    let mut dice = Dice(seed);
    let (spec, groups) = tree(&mut dice, scratch.path());
    let theirs = judge(&spec, &groups, scratch.path());
    let complaints = String::from_utf8_lossy(&theirs.stderr).into_owned();
    let ours = read(&spec, &groups);
    let (text, ignored) = match &ours {
        Ok(found) => {
            let ignored = found
                .warnings
                .iter()
                .filter(|w| w.contains("world-writable"));
            (Some(printed(&found.options)), ignored.count())
        }
        Err(_) => (None, 0),
    };
    let expected = String::from_utf8_lossy(&theirs.stdout).into_owned();
    let expected = theirs.status.success().then_some(expected);
    if text != expected {
        let main = fs::read_to_string(scratch.path().join("main.cnf")).unwrap();
        return Err(format!(
            "seed {seed}, groups {groups:?}, {spec:?}\nmain.cnf:\n{main}\nours: {ours:#?}\n\
             ours as text: {text:?}\ntheirs:       {expected:?}\n{complaints}"
        ));
    }
    if text.is_some() && ignored != complaints.matches("World-writable").count() {
        return Err(format!("seed {seed}: {ours:?}\n{complaints}"));
    }
    Ok(ours.map_or(0, |found| found.options.len()))
}

#[test]
fn generated_trees_read_the_same() {
    if let Ok(seed) = std::env::var("EVENKEEL_SEED") {
        compare(seed.parse().unwrap()).unwrap_or_else(|why| panic!("{why}"));
        return;
    }
    let mut options = 0;
    let mut filled = 0;
    for seed in 0..TREES {
        let found = compare(seed).unwrap_or_else(|why| panic!("{why}"));
        options += found;
        filled += usize::from(found > 0);
    }
    // A generator that makes nothing would agree with everybody.
    assert!(filled as u64 > TREES / 2, "{filled} trees had options");
    assert!(options > 4 * TREES as usize, "{options} options in all");
}

#[test]
fn this_machines_own_files_read_the_same() {
    let spec = DefaultsSpec::usual(None);
    let groups = [
        "client",
        "client-server",
        "mysqld",
        "mariadbd",
        "mysqld_safe",
    ];
    let theirs = judge(&spec, &groups, Path::new("/"));
    let ours = read(&spec, &groups).unwrap();
    assert_eq!(
        printed(&ours.options),
        String::from_utf8(theirs.stdout).unwrap()
    );
}

#[test]
fn a_servers_groups_are_its_own() {
    let binary = Binary::inspect(Path::new("/usr/sbin/mariadbd")).unwrap();
    let series = format!("{}.{}", binary.version.major, binary.version.minor);
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("x.cnf");
    let mut text = String::new();
    for group in [
        "mysqld",
        "server",
        "mariadb",
        "mariadbd",
        "galera",
        "client-server",
        "client",
        "embedded",
        "mysqld_safe",
        "mysqld-8.0",
        "mariadb-10.0",
        &format!("mysqld-{series}"),
        &format!("mariadb-{series}"),
        &format!("mariadbd-{series}"),
        &format!("server-{series}"),
    ] {
        text += &format!("[{group}]\nx={group}\n");
    }
    fs::write(&file, text).unwrap();
    let spec = DefaultsSpec {
        defaults_file: Some(file),
        ..DefaultsSpec::default()
    };
    let groups = server_groups(binary.flavour, Some(binary.version));
    let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
    let theirs = judge(&spec, &["--mysqld"], Path::new("/"));
    let ours = read(&spec, &groups).unwrap();
    assert_eq!(ours.options.len(), 9);
    assert_eq!(
        printed(&ours.options),
        String::from_utf8(theirs.stdout).unwrap()
    );
}

#[test]
fn paths_with_a_tilde_mean_the_home_given() {
    let scratch = tempfile::tempdir().unwrap();
    fs::write(scratch.path().join("x.cnf"), "[c]\n!include ~/y.cnf\nx\n").unwrap();
    fs::write(scratch.path().join("y.cnf"), "[c]\ny=~/z\n").unwrap();
    let spec = DefaultsSpec {
        defaults_file: Some("~/x.cnf".into()),
        home: Some(scratch.path().to_owned()),
        ..DefaultsSpec::default()
    };
    let theirs = judge(&spec, &["c"], Path::new("/"));
    let ours = read(&spec, &["c"]).unwrap();
    assert_eq!(printed(&ours.options), "--y=~/z\n--x\n");
    assert_eq!(
        printed(&ours.options),
        String::from_utf8(theirs.stdout).unwrap()
    );
}

#[test]
fn files_that_include_themselves_end() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("x.cnf");
    fs::write(&file, format!("[c]\nx\n!include {}\ny\n", file.display())).unwrap();
    let spec = DefaultsSpec {
        defaults_file: Some(file),
        ..DefaultsSpec::default()
    };
    let theirs = judge(&spec, &["c"], Path::new("/"));
    let ours = read(&spec, &["c"]).unwrap();
    assert_eq!(ours.options.len(), 22);
    assert_eq!(
        printed(&ours.options),
        String::from_utf8(theirs.stdout).unwrap()
    );
    assert_eq!(ours.warnings.len(), 1);
}
