//! Dependencies point down only: foundation ← mechanisms ← operations ← interface.

use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::Command;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Layer {
    Foundation,
    Mechanism,
    Operation,
    Interface,
    /// Throwaway servers and faults: never part of the product.
    Testkit,
    /// Developer tasks and end-to-end cases: may use anything.
    Workshop,
}

/// Every crate has its layer here; one that is missing fails the test.
const LAYERS: [(&str, Layer); 38] = [
    ("evenkeel-op", Layer::Foundation),
    ("evenkeel-sql", Layer::Foundation),
    ("evenkeel-server", Layer::Mechanism),
    ("evenkeel-innodb", Layer::Mechanism),
    ("evenkeel-binlog", Layer::Mechanism),
    ("evenkeel-snapshot", Layer::Mechanism),
    ("evenkeel-repository", Layer::Mechanism),
    ("evenkeel-drive", Layer::Mechanism),
    ("evenkeel-transport", Layer::Mechanism),
    ("evenkeel-objects", Layer::Mechanism),
    ("evenkeel-mount", Layer::Mechanism),
    ("evenkeel-wire", Layer::Mechanism),
    ("evenkeel-report", Layer::Mechanism),
    ("evenkeel-urlcodec", Layer::Mechanism),
    ("evenkeel-plugins", Layer::Mechanism),
    // Plugins stand on nothing of the program: a server loads them.
    ("evenkeel-queue", Layer::Foundation),
    ("evenkeel-queue-condition", Layer::Foundation),
    ("evenkeel-backup", Layer::Operation),
    ("evenkeel-recovery", Layer::Operation),
    ("evenkeel-logical", Layer::Operation),
    ("evenkeel-bench", Layer::Operation),
    ("evenkeel-queue-admin", Layer::Operation),
    ("evenkeel-traffic", Layer::Operation),
    ("evenkeel-live", Layer::Operation),
    ("evenkeel-health", Layer::Operation),
    ("evenkeel-replica", Layer::Operation),
    ("evenkeel-url-install", Layer::Operation),
    // It meets the user as SQL.
    ("evenkeel-plugin-url", Layer::Interface),
    ("evenkeel-queue-engine", Layer::Interface),
    ("evenkeel-cli", Layer::Interface),
    ("evenkeel-testkit", Layer::Testkit),
    ("evenkeel-xtask", Layer::Workshop),
    ("evenkeel-pages", Layer::Workshop),
    ("evenkeel-cases", Layer::Workshop),
    ("evenkeel-bench-traffic", Layer::Workshop),
    ("evenkeel-bench-urls", Layer::Workshop),
    ("evenkeel-bench-queues", Layer::Workshop),
    ("evenkeel-vm", Layer::Workshop),
];

/// The only dependencies inside a layer.
const BESIDE: [(&str, &str); 6] = [
    ("evenkeel-drive", "evenkeel-server"),
    ("evenkeel-plugins", "evenkeel-server"),
    // Rows come from wherever the server crate's options lead, and fail in its words.
    ("evenkeel-wire", "evenkeel-server"),
    // A repository's archived logs are in order by the numbers in their files' names.
    ("evenkeel-repository", "evenkeel-binlog"),
    // A repository's objects at the other end of a link.
    ("evenkeel-transport", "evenkeel-repository"),
    ("evenkeel-objects", "evenkeel-repository"),
];

/// Products of their own, by the folder that their crates are in: each could leave the repository in one move.
const PRODUCTS: [&str; 2] = ["queue", "url"];

/// What a product may need of the rest, besides the foundation.
const FOR_PRODUCTS: [&str; 2] = ["evenkeel-server", "evenkeel-plugins"];

/// Who may need a product, besides the product itself and the workshop.
const COMPOSER: &str = "evenkeel-cli";

/// One crate and the workspace crates it needs.
#[derive(Debug)]
pub(super) struct Package {
    name: String,
    /// The product that it is part of, if it is part of one.
    product: Option<&'static str>,
    /// (name, only for tests)
    needs: Vec<(String, bool)>,
}

/// Reads the workspace from `cargo metadata`.
pub(super) fn metadata(root: &Path) -> Result<Vec<Package>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args([
            "metadata",
            "--format-version",
            "1",
            "--no-deps",
            "--offline",
        ])
        .current_dir(root)
        .output()
        .context("failed to run cargo metadata")?;
    ensure!(
        output.status.success(),
        "cargo metadata failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let json: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let list = |value: &serde_json::Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let mut packages = Vec::new();
    for package in list(&json["packages"]) {
        let needs = list(&package["dependencies"])
            .iter()
            .filter(|need| need["path"].is_string())
            .map(|need| (text(&need["name"]), need["kind"] == "dev"))
            .collect();
        packages.push(Package {
            name: text(&package["name"]),
            product: product_at(root, Path::new(&text(&package["manifest_path"]))),
            needs,
        });
    }
    Ok(packages)
}

fn product_at(root: &Path, manifest: &Path) -> Option<&'static str> {
    let is_in = |product: &&str| manifest.starts_with(root.join(product));
    PRODUCTS.into_iter().find(is_in)
}

fn layer_of(name: &str) -> Option<Layer> {
    LAYERS
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, layer)| *layer)
}

/// Returns what is wrong with one crate needing another, if anything.
fn judge(package: &str, needs: &str, for_tests: bool) -> Option<String> {
    let from = layer_of(package)?;
    let to = layer_of(needs)?;
    let allowed = match (from, to) {
        (Layer::Workshop, _) => true,
        (_, Layer::Workshop) => false,
        (_, Layer::Testkit) => for_tests,
        // The testkit starts servers with the product's own launcher.
        (Layer::Testkit, to) => to <= Layer::Mechanism,
        // A test may set up its scene with a neighbour; the crate itself may not use it. (A crate
        // that needs itself for tests switches on a feature of its own.)
        (from, to) if from == to => for_tests || BESIDE.contains(&(package, needs)),
        (from, to) => to < from,
    };
    let kind = if for_tests { "dev-depends" } else { "depends" };
    (!allowed).then(|| {
        format!("Cargo.toml:1: {package} ({from:?}) {kind} on {needs} ({to:?}): dependencies point down only")
    })
}

/// Returns what is wrong with a crate needing another where either is part of a product, if anything.
fn judge_product(package: &Package, needs: &Package, for_tests: bool) -> Option<String> {
    let layer = layer_of(&needs.name);
    let allowed = match (package.product, needs.product) {
        (from, to) if from == to => true,
        (None, Some(_)) => {
            for_tests
                || package.name == COMPOSER
                || layer_of(&package.name) == Some(Layer::Workshop)
        }
        (Some(_), None) => {
            layer == Some(Layer::Foundation)
                || FOR_PRODUCTS.contains(&&*needs.name)
                || for_tests && layer == Some(Layer::Testkit)
        }
        // From one product to another.
        _ => false,
    };
    (!allowed).then(|| {
        format!(
            "Cargo.toml:1: {} depends on {}: queue/ and url/ are products of their own",
            package.name, needs.name
        )
    })
}

/// Checks all crates.
pub(super) fn check(packages: &[Package]) -> Vec<String> {
    let mut found = Vec::new();
    let known = |name: &str| packages.iter().find(|one| one.name == name);
    for package in packages {
        if layer_of(&package.name).is_none() {
            found.push(format!(
                "Cargo.toml:1: {} is not in the layer table",
                package.name
            ));
        }
        for (needs, for_tests) in &package.needs {
            found.extend(judge(&package.name, needs, *for_tests));
            let needs = known(needs);
            found.extend(needs.and_then(|needs| judge_product(package, needs, *for_tests)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn down_is_allowed_and_nothing_else() {
        assert!(judge("evenkeel-backup", "evenkeel-server", false).is_none());
        assert!(judge("evenkeel-drive", "evenkeel-server", false).is_none());
        assert!(judge("evenkeel-server", "evenkeel-drive", false).is_some());
        assert!(judge("evenkeel-innodb", "evenkeel-server", false).is_some());
        assert!(judge("evenkeel-op", "evenkeel-server", false).is_some());
        assert!(judge("evenkeel-innodb", "evenkeel-server", true).is_none());
        assert!(judge("evenkeel-server", "evenkeel-backup", true).is_some());
    }

    #[test]
    fn the_testkit_is_for_tests_only() {
        assert!(judge("evenkeel-server", "evenkeel-testkit", true).is_none());
        assert!(judge("evenkeel-server", "evenkeel-testkit", false).is_some());
        assert!(judge("evenkeel-cases", "evenkeel-testkit", false).is_none());
    }

    #[test]
    fn an_unknown_crate_is_reported() {
        let stranger = Package {
            name: "evenkeel-stranger".into(),
            product: None,
            needs: vec![],
        };
        assert_eq!(check(&[stranger]).len(), 1);
    }

    #[test]
    fn products_stand_alone() {
        let of = |name: &str, product| Package {
            name: format!("evenkeel-{name}"),
            product,
            needs: vec![],
        };
        let [core, admin] = ["queue", "queue-admin"].map(|name| of(name, Some("queue")));
        let codec = of("urlcodec", Some("url"));
        let [cli, cases, backup, server, plugins, wire, op, testkit] = [
            "cli", "cases", "backup", "server", "plugins", "wire", "op", "testkit",
        ]
        .map(|name| of(name, None));
        let allows = |from, to, for_tests| judge_product(from, to, for_tests).is_none();
        for from in [&admin, &cli, &cases] {
            assert!(allows(from, &core, false), "{from:?}");
        }
        assert!(!allows(&backup, &core, false) && allows(&backup, &core, true));
        for to in [&server, &plugins, &op] {
            assert!(allows(&admin, to, false), "{to:?}");
        }
        assert!(!allows(&admin, &wire, false) && !allows(&admin, &codec, true));
        assert!(allows(&core, &testkit, true) && !allows(&core, &testkit, false));
        let root = Path::new("/top");
        let at = |path| product_at(root, Path::new(path));
        assert_eq!(at("/top/queue/core/Cargo.toml"), Some("queue"));
        assert_eq!(at("/top/crates/queue/Cargo.toml"), None);
        assert_eq!(at("/top/queues/Cargo.toml"), None);
    }
}
