//! Lints are set in one place; a crate that forgets to inherit them has none.

use super::Finding;

pub(super) fn check(member: &str, manifest: &str) -> Option<Finding> {
    let inherits = manifest
        .parse::<toml::Table>()
        .ok()
        .and_then(|manifest| manifest.get("lints")?.get("workspace")?.as_bool())
        .unwrap_or(false);
    (!inherits).then(|| Finding::in_file(member, "does not inherit the workspace's lints (`[lints] workspace = true`)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_without_the_workspace_lints_is_refused() {
        assert_eq!(check("x", "[package]\nname = \"x\"\n\n[lints]\nworkspace = true\n"), None);
        assert!(check("x", "[package]\nname = \"x\"\n").is_some());
        assert!(check("x", "[lints]\nworkspace = false\n").is_some());
        assert!(check("x", "[lints.rust]\nunsafe_code = \"allow\"\n").is_some());
    }
}
