//! What a machine can say of a commit that is to go out.

/// What is known of it.
pub(super) struct Facts<'a> {
    pub(super) version: &'a str,
    pub(super) changelog: &'a str,
    /// Whether the work tree is the commit.
    pub(super) is_clean: bool,
    /// The tags of the commit.
    pub(super) tags: &'a [String],
    /// The names of the packages that were built.
    pub(super) packages: &'a [String],
}

/// The packages that a version has, without what stands behind the version.
const PACKAGES: [&str; 3] = ["evenkeel", "evenkeel-plugin-url", "evenkeel-queue-mariadb"];

/// Returns what does not hold yet, and what to do.
pub(super) fn open(facts: &Facts<'_>) -> Vec<String> {
    let version = facts.version;
    let mut open = Vec::new();
    if !facts.is_clean {
        open.push("the work tree is not the commit: commit first".to_owned());
    }
    open.extend(of_the_changelog(facts.changelog, version));
    let tag = format!("v{version}");
    if !facts.tags.contains(&tag) {
        open.push(format!(
            "no tag: git tag --sign {tag} --message 'evenkeel {version}'"
        ));
    }
    for package in PACKAGES {
        for begin in [
            format!("{package}_{version}-"),
            format!("{package}-{version}-"),
        ] {
            if !facts.packages.iter().any(|name| name.starts_with(&begin)) {
                open.push(format!("there is no package {begin}…: make packages"));
            }
        }
    }
    open
}

fn of_the_changelog(changelog: &str, version: &str) -> Option<String> {
    let heading = format!("## [{version}] - ");
    if !changelog.lines().any(|line| line.starts_with(&heading)) {
        return Some(format!(
            "CHANGELOG.md has no `{heading}DATE`: it is what now stands under Unreleased"
        ));
    }
    let (_, unreleased) = changelog.split_once("## [Unreleased]")?;
    let unreleased = unreleased.split("\n## [").next().unwrap_or_default();
    (!unreleased.trim().is_empty())
        .then(|| format!("CHANGELOG.md has changes under Unreleased: they belong to {version}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHANGELOG: &str = "# Changelog\n\n## [Unreleased]\n\n## [1.2.0] - 2026-11-24\n\n- all\n";

    fn packages(version: &str) -> Vec<String> {
        let names = PACKAGES.iter();
        names
            .flat_map(|name| {
                let (deb, rpm) = (
                    format!("{name}_{version}-1_amd64.deb"),
                    format!("{name}-{version}-1.x86_64.rpm"),
                );
                [deb, rpm]
            })
            .collect()
    }

    fn facts<'a>(changelog: &'a str, tags: &'a [String], packages: &'a [String]) -> Facts<'a> {
        Facts {
            version: "1.2.0",
            changelog,
            is_clean: true,
            tags,
            packages,
        }
    }

    #[test]
    fn a_release_that_is_ready_has_nothing_open() {
        let tags = ["v1.2.0".to_owned()];
        assert!(open(&facts(CHANGELOG, &tags, &packages("1.2.0"))).is_empty());
    }

    #[test]
    fn whatever_is_of_another_version_is_open() {
        let tags = ["v1.1.0".to_owned(), "v1.2.0-rc".to_owned()];
        let said = open(&facts(CHANGELOG, &tags, &packages("1.2.0")));
        assert!(said.len() == 1 && said[0].contains("git tag"), "{said:?}");
        let tags = ["v1.2.0".to_owned()];
        assert_eq!(open(&facts(CHANGELOG, &tags, &packages("1.1.0"))).len(), 6);
        let old = CHANGELOG.replace("1.2.0", "1.1.0");
        assert_eq!(open(&facts(&old, &tags, &packages("1.2.0"))).len(), 1);
        let more = CHANGELOG.replace("[Unreleased]\n", "[Unreleased]\n\n- one more\n");
        assert_eq!(open(&facts(&more, &tags, &packages("1.2.0"))).len(), 1);
        let built = packages("1.2.0");
        let changed = Facts {
            is_clean: false,
            ..facts(CHANGELOG, &tags, &built)
        };
        assert_eq!(open(&changed).len(), 1);
    }
}
