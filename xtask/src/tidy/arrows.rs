//! Which crate may need which. The operator and the engine meet only over REST, the API server
//! knows no kind of ours, and the balancer knows nobody: the arrows are what keeps it so.

use super::Finding;
use crate::metadata::{Dependency, Metadata, Package};

/// What one crate may need of the others, as folder names below `crates/`.
struct Arrows {
    from: &'static str,
    to: &'static [&'static str],
    /// Allowed besides, for its tests.
    in_tests: &'static [&'static str],
}

const EVERY: &[&str] =
    &["api", "apiserver", "balancer", "engine", "kafka", "node", "operator", "rest", "sim", "snapshot"];

/// Complete: a crate that is not here is refused until it gets its line.
const ALLOWED: [Arrows; 13] = [
    Arrows { from: "api", to: &[], in_tests: &[] },
    Arrows { from: "apiserver", to: &[], in_tests: &[] },
    Arrows { from: "balancer", to: &[], in_tests: &[] },
    Arrows { from: "kafka", to: &[], in_tests: &[] },
    Arrows { from: "rest", to: &[], in_tests: &[] },
    Arrows { from: "snapshot", to: &["balancer"], in_tests: &[] },
    Arrows { from: "sim", to: &["kafka"], in_tests: &[] },
    Arrows { from: "engine", to: &["balancer", "kafka", "rest"], in_tests: &["apiserver", "sim", "testkit"] },
    // Its tests need an engine to speak to, over REST, and that one needs a cluster.
    Arrows { from: "operator", to: &["api", "kafka", "rest"], in_tests: &["apiserver", "engine", "sim", "testkit"] },
    Arrows { from: "node", to: &["engine", "sim"], in_tests: &["apiserver", "testkit"] },
    Arrows { from: "cli", to: EVERY, in_tests: &["testkit"] },
    Arrows { from: "testkit", to: EVERY, in_tests: &[] },
    Arrows { from: "xtask", to: &[], in_tests: &[] },
];

pub(super) fn check(members: &Metadata) -> Vec<Finding> {
    members.packages.iter().flat_map(check_member).collect()
}

fn check_member(member: &Package) -> Vec<Finding> {
    let Some(arrows) = ALLOWED.iter().find(|arrows| arrows.from == folder(&member.name)) else {
        return vec![Finding::in_file(&member.name, "is a new crate: give it a line in the table of allowed arrows")];
    };
    member
        .dependencies
        .iter()
        .filter(|dependency| dependency.path.is_some() && !arrows.allow(dependency))
        .map(|dependency| {
            let may = if arrows.to.is_empty() { "none".to_owned() } else { arrows.to.join(", ") };
            Finding::in_file(&member.name, format!("must not need {}; crates it may need: {may}", dependency.name))
        })
        .collect()
}

impl Arrows {
    fn allow(&self, dependency: &Dependency) -> bool {
        let target = folder(&dependency.name);
        let only_tests = dependency.kind.as_deref() == Some("dev");
        self.to.contains(&target) || (only_tests && self.in_tests.contains(&target))
    }
}

fn folder(package: &str) -> &str {
    package.strip_prefix("evenkeel-").unwrap_or(package)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str, needs: &[(&str, Option<&str>)]) -> Package {
        Package {
            name: name.to_owned(),
            version: "0.1.0".to_owned(),
            source: None,
            license: None,
            dependencies: needs
                .iter()
                .map(|(name, kind)| Dependency {
                    name: (*name).to_owned(),
                    kind: kind.map(str::to_owned),
                    path: name.starts_with("evenkeel-").then(|| format!("crates/{}", folder(name))),
                })
                .collect(),
            manifest_path: String::new(),
        }
    }

    #[test]
    fn the_operator_never_links_the_engine() {
        let findings = check_member(&member("evenkeel-operator", &[("evenkeel-engine", None)]));
        assert_eq!(findings.len(), 1);
        assert!(findings[0].what.contains("must not need evenkeel-engine"));
    }

    #[test]
    fn the_api_server_knows_no_kind_of_ours() {
        assert_eq!(check_member(&member("evenkeel-apiserver", &[("evenkeel-api", None)])).len(), 1);
        assert_eq!(check_member(&member("evenkeel-apiserver", &[("evenkeel-api", Some("dev"))])).len(), 1);
    }

    #[test]
    fn tests_may_reach_further_than_code() {
        assert_eq!(check_member(&member("evenkeel-node", &[("evenkeel-testkit", Some("dev"))])), []);
        assert_eq!(check_member(&member("evenkeel-node", &[("evenkeel-testkit", None)])).len(), 1);
        assert_eq!(check_member(&member("evenkeel-cli", &[("evenkeel-testkit", None)])).len(), 1);
    }

    #[test]
    fn crates_from_elsewhere_are_no_arrows() {
        assert_eq!(check_member(&member("evenkeel-api", &[("serde", None)])), []);
    }

    #[test]
    fn a_crate_nobody_thought_about_is_refused() {
        assert_eq!(check_member(&member("evenkeel-helpers", &[])).len(), 1);
    }
}
