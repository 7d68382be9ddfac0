//! The deed of the init container `rack`: it writes a label of its node into a file. The node does it by itself, as it
//! knows its labels and needs no image for that.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Container;

use super::materials::Left;
use super::tree::File;

/// The name of that container.
const NAME: &str = "rack";

/// Whether the node does this init container's deed itself.
pub(crate) fn is_deed(container: &Container) -> bool {
    let command = container.command.as_deref().unwrap_or_default();
    container.name == NAME && command.iter().take(2).eq(["evenkeel", "rack"].iter())
}

/// What the container would leave in a volume; or why it would fail. `command` is the resolved one.
pub(crate) fn perform(
    container: &Container,
    command: &[String],
    node_labels: &BTreeMap<String, String>,
) -> Result<Left, String> {
    let option = |name: &str| {
        let mut words = command.iter().skip_while(|word| *word != name);
        words.nth(1).ok_or_else(|| format!("the command of the container `{NAME}` has no {name}"))
    };
    let (label, path) = (option("--label")?, option("--to")?);
    let rack = node_labels.get(label).ok_or_else(|| format!("the node has no label {label}"))?;
    let mounts = container.volume_mounts.iter().flatten();
    let place = mounts.filter_map(|mount| {
        let inside = path.strip_prefix(mount.mount_path.trim_end_matches('/'))?.strip_prefix('/')?;
        Some((mount.name.clone(), inside.to_owned()))
    });
    // The innermost mount is the one that a write would land in.
    let place = place.min_by_key(|(_, inside)| inside.len());
    let place = place.ok_or_else(|| format!("{path} is in no volume, so nobody else would see it"))?;
    Ok([(place, File { bytes: rack.clone().into_bytes(), mode: 0o644 })].into())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const LABEL: &str = "topology.kubernetes.io/zone";

    fn container(command: &[&str], mounts: Value) -> Container {
        serde_json::from_value(json!({"name": NAME, "command": command, "volumeMounts": mounts})).unwrap()
    }

    fn left(command: &[&str], mounts: Value) -> Result<Vec<String>, String> {
        let container = container(command, mounts);
        let labels = [(LABEL.to_owned(), "zone-1".to_owned())].into();
        let left = perform(&container, container.command.as_deref().unwrap_or_default(), &labels)?;
        let shown = |((volume, path), file): (&(String, String), &File)| {
            format!("{volume}:{path}={}", String::from_utf8_lossy(&file.bytes))
        };
        Ok(left.iter().map(shown).collect())
    }

    #[test]
    fn the_label_of_the_node_goes_into_the_volume() {
        let to = "/opt/kafka/init/rack.id";
        let command = ["evenkeel", "rack", "--node", "n", "--label", LABEL, "--to", to];
        let mounts = json!([{"name": "opt", "mountPath": "/opt"}, {"name": "init", "mountPath": "/opt/kafka/init"}]);
        assert_eq!(left(&command, mounts.clone()).unwrap(), ["init:rack.id=zone-1"]);
        assert_eq!(
            left(&command, json!([])).unwrap_err(),
            format!("{to} is in no volume, so nobody else would see it")
        );
        let command = ["evenkeel", "rack", "--label", "other", "--to", to];
        assert_eq!(left(&command, mounts.clone()).unwrap_err(), "the node has no label other");
        let missing = left(&command[..4], mounts).unwrap_err();
        assert_eq!(missing, "the command of the container `rack` has no --to");
    }

    #[test]
    fn other_containers_are_run() {
        assert!(is_deed(&container(&["evenkeel", "rack"], json!([]))));
        assert!(!is_deed(&container(&["bash", "-c", "rack"], json!([]))));
    }
}
