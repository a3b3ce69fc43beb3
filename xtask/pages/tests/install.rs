//! Does `dist/install` put everything where the programs, systemd and the shells look for it, and do the packages hold
//! the same?

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Makes a directory as cargo leaves it. Of the programs only that which writes pages is run.
fn built(parts: &[&str]) -> tempfile::TempDir {
    let built = tempfile::tempdir().unwrap();
    let pages = built.path().join("evenkeel-pages");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_evenkeel-pages"), pages).unwrap();
    for part in parts {
        std::fs::write(built.path().join(part), part).unwrap();
    }
    built
}

const ALL: [&str; 3] = [
    "evenkeel",
    "libevenkeel_url.so",
    "evenkeel_queue-mariadb-10.11.19.so",
];

/// Runs `dist/install` with this environment and no other of its own.
fn install(built: &Path, variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(evenkeel_pages::root().join("dist/install"));
    for name in ["PREFIX", "DESTDIR", "ZSH", "PARTS"] {
        command.env_remove(name);
    }
    command.arg(built).envs(variables.iter().copied());
    command.output().unwrap()
}

fn installed(built: &Path, variables: &[(&str, &str)]) {
    let done = install(built, variables);
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
}

/// Returns all files below a directory, with a slash in front.
fn files(root: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![root.to_path_buf()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => open.push(path),
                false => {
                    found.insert(format!("/{}", path.strip_prefix(root).unwrap().display()));
                }
            }
        }
    }
    found
}

fn utf8(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn everything_is_where_it_is_looked_for() {
    let built = built(&ALL);
    let root = tempfile::tempdir().unwrap();
    let variables = [("DESTDIR", utf8(root.path())), ("PREFIX", "/usr")];
    installed(built.path(), &variables);
    let found = files(root.path());
    for wanted in [
        "/usr/bin/evenkeel",
        "/usr/lib/evenkeel/libevenkeel_url.so",
        "/usr/lib/evenkeel/evenkeel_queue-mariadb-10.11.19.so",
        "/usr/share/man/man1/evenkeel.1",
        "/usr/share/man/man1/evenkeel-backup.1",
        "/usr/share/bash-completion/completions/evenkeel",
        "/usr/share/fish/vendor_completions.d/evenkeel.fish",
        "/usr/share/zsh/site-functions/_evenkeel",
        "/usr/share/doc/evenkeel/examples/example.conf",
        "/usr/share/doc/evenkeel/examples/example.toml",
        "/usr/share/doc/evenkeel/LICENSE-MIT",
        "/usr/share/evenkeel/sql/digest.sql",
    ] {
        assert!(found.contains(wanted), "{wanted} is not among {found:#?}");
    }
    let dist = evenkeel_pages::root().join("dist/systemd");
    for unit in files(&dist).iter().filter(|name| !name.contains("example")) {
        let installed = root.path().join(format!("usr/lib/systemd/system{unit}"));
        let text = std::fs::read_to_string(&installed).expect(unit);
        assert_eq!(
            text,
            std::fs::read_to_string(dist.join(&unit[1..])).unwrap()
        );
    }
    // Each page that a unit names is there.
    let units = [
        "evenkeel-backup@",
        "evenkeel-fleet",
        "evenkeel-health",
        "evenkeel-prewarm",
    ];
    for unit in units {
        let text = std::fs::read_to_string(dist.join(format!("{unit}.service"))).unwrap();
        let (_, page) = text.split_once("Documentation=man:").expect(unit);
        let (page, _) = page.split_once("(1)").unwrap();
        assert!(found.contains(&format!("/usr/share/man/man1/{page}.1")));
    }
}

/// With another prefix the units run the program that lies there: systemd finds it, and takes them.
#[test]
fn units_run_the_program_that_was_installed() {
    let built = built(&ALL);
    let root = tempfile::tempdir().unwrap();
    installed(built.path(), &[("PREFIX", utf8(root.path()))]);
    let units = root.path().join("lib/systemd/system");
    let all: Vec<PathBuf> = files(&units)
        .iter()
        // A template is checked as one of its instances.
        .map(|name| {
            let path = units.join(&name[1..]);
            let instance = path.with_file_name(name[1..].replace('@', "@shop"));
            std::fs::rename(&path, &instance).unwrap();
            instance
        })
        .collect();
    assert_eq!(all.len(), 6);
    let verified = Command::new("systemd-analyze")
        .args(["verify", "--man=no"])
        .args(&all)
        .output()
        .expect("systemd-analyze");
    let said = String::from_utf8_lossy(&verified.stderr);
    assert!(
        verified.status.success() && !said.contains("evenkeel"),
        "{said}"
    );
}

#[test]
fn what_was_not_built_is_named() {
    let half = built(&["evenkeel"]);
    let root = tempfile::tempdir().unwrap();
    let done = install(half.path(), &[("DESTDIR", utf8(root.path()))]);
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(1));
    assert!(
        said.contains("libevenkeel_url.so") && said.contains("make build"),
        "{said}"
    );
}

/// Whether a pattern as the packagers have it, `DIR/*` or `DIR/**/*`, takes a path.
fn takes(pattern: &str, path: &str) -> bool {
    let (directory, deep) = match pattern.strip_suffix("/**/*") {
        Some(directory) => (directory, true),
        None => (pattern.strip_suffix("/*").expect(pattern), false),
    };
    let below = path
        .strip_prefix(directory)
        .and_then(|rest| rest.strip_prefix('/'));
    below.is_some_and(|rest| deep || !rest.contains('/'))
}

/// The sources of a package's files: those of its .deb and of its .rpm.
fn sources(manifest: &str) -> [Vec<String>; 2] {
    let text = std::fs::read_to_string(evenkeel_pages::root().join(manifest)).unwrap();
    let manifest: toml::Table = text.parse().unwrap();
    let metadata = &manifest["package"]["metadata"];
    let source = |asset: &toml::Value| asset.get(0).or(asset.get("source")).cloned();
    ["deb", "generate-rpm"].map(|kind| {
        let assets = metadata[kind]["assets"].as_array().unwrap();
        let sources = assets.iter().map(|asset| source(asset).unwrap());
        sources
            .map(|one| one.as_str().unwrap().to_owned())
            .collect()
    })
}

#[test]
fn packages_hold_what_is_installed_and_nothing_else() {
    let built = built(&ALL);
    for (part, manifest) in [
        ("evenkeel", "crates/cli/Cargo.toml"),
        ("url", "url/plugin/Cargo.toml"),
        ("queue", "queue/engine/Cargo.toml"),
    ] {
        let root = tempfile::tempdir().unwrap();
        let variables = [
            ("DESTDIR", utf8(root.path())),
            ("PREFIX", "/usr"),
            ("PARTS", part),
        ];
        installed(built.path(), &variables);
        for (kind, sources) in ["deb", "rpm"].into_iter().zip(sources(manifest)) {
            let stage = format!("target/release/stage/{kind}/{part}");
            let mut idle: BTreeSet<&String> = sources.iter().collect();
            for file in files(root.path()) {
                let staged = format!("{stage}{file}");
                let taken: Vec<_> = sources.iter().filter(|one| takes(one, &staged)).collect();
                assert_eq!(
                    taken.len(),
                    1,
                    "{manifest}: {kind} takes {file} by {taken:?}"
                );
                idle.remove(taken[0]);
            }
            assert!(
                idle.is_empty(),
                "{manifest}: {kind} finds nothing by {idle:?}"
            );
        }
    }
}
