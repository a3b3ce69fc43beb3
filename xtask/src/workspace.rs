//! What cargo says of the workspace: its packages, where each lies, and what it needs.

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// The workspace, as `cargo metadata` tells of it.
#[derive(Deserialize)]
pub(crate) struct Workspace {
    pub(crate) packages: Vec<Package>,
    /// Where cargo puts what it builds.
    pub(crate) target_directory: PathBuf,
    workspace_root: PathBuf,
}

/// One package of ours.
#[derive(Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    manifest_path: PathBuf,
    pub(crate) dependencies: Vec<Need>,
    pub(crate) targets: Vec<Target>,
}

/// What a package needs.
#[derive(Deserialize)]
pub(crate) struct Need {
    pub(crate) name: String,
    kind: Option<String>,
}

/// One thing that cargo builds of a package.
#[derive(Deserialize)]
pub(crate) struct Target {
    pub(crate) name: String,
    kind: Vec<String>,
    pub(crate) src_path: PathBuf,
}

impl Need {
    /// Whether only the package's tests need it: then nobody who needs the package is concerned.
    pub(crate) fn is_only_for_tests(&self) -> bool {
        self.kind.as_deref() == Some("dev")
    }
}

impl Target {
    /// Whether it is a file of tests below `tests/`.
    pub(crate) fn is_test(&self) -> bool {
        self.kind.iter().any(|kind| kind == "test")
    }
}

impl Package {
    /// Returns the directory it lies in.
    pub(crate) fn directory(&self) -> &Path {
        self.manifest_path.parent().unwrap_or(&self.manifest_path)
    }
}

impl Workspace {
    /// Asks cargo.
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let reported = crate::cargo()
            .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
            .current_dir(root)
            .output()
            .context("failed to run cargo metadata")?;
        let why = String::from_utf8_lossy(&reported.stderr);
        ensure!(reported.status.success(), "cargo metadata failed: {why}");
        serde_json::from_slice(&reported.stdout).context("cargo metadata is not as it should be")
    }

    /// Returns the package with the longest directory above `path`, which is below the top.
    pub(crate) fn owner(&self, path: &str) -> Option<&Package> {
        let path = self.workspace_root.join(path);
        let above = self.packages.iter().filter(|one| {
            one.directory() != self.workspace_root && path.starts_with(one.directory())
        });
        above.max_by_key(|one| one.directory().components().count())
    }

    /// Returns `path` of the package as it is called below the package's directory.
    pub(crate) fn inside(&self, package: &Package, path: &str) -> PathBuf {
        let path = self.workspace_root.join(path);
        let below = path.strip_prefix(package.directory());
        below.unwrap_or(&path).to_path_buf()
    }

    /// Returns the package of this name.
    pub(crate) fn package(&self, name: &str) -> Option<&Package> {
        self.packages.iter().find(|one| one.name == name)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns a workspace of packages `(name, directory, needs)`; a need with `?` in front is one of
    /// its tests only.
    pub(crate) fn made(packages: &[(&str, &str, &[&str])]) -> Workspace {
        let packages = packages.iter().map(|(name, directory, needs)| {
            let needs = needs.iter().map(|need| match need.strip_prefix('?') {
                Some(name) => serde_json::json!({"name": name, "kind": "dev"}),
                None => serde_json::json!({"name": need, "kind": null}),
            });
            serde_json::json!({
                "name": name,
                "manifest_path": format!("/top/{directory}/Cargo.toml"),
                "dependencies": needs.collect::<Vec<_>>(),
                "targets": [],
            })
        });
        serde_json::from_value(serde_json::json!({
            "packages": packages.collect::<Vec<_>>(),
            "target_directory": "/target",
            "workspace_root": "/top",
        }))
        .unwrap()
    }

    #[test]
    fn a_file_belongs_to_the_innermost_package() {
        let workspace = made(&[
            ("outer", "benchmarks", &[]),
            ("inner", "benchmarks/urls", &[]),
        ]);
        let owner = |path| workspace.owner(path).map(|one| one.name.as_str());
        assert_eq!(owner("benchmarks/urls/src/a.rs"), Some("inner"));
        assert_eq!(owner("benchmarks/urlsx/a.rs"), Some("outer"));
        assert_eq!(owner("docs/a.md"), None);
    }
}
