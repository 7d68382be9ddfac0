//! The disks of a node: one form for `ephemeral`, `persistent-claim` and `jbod`.
//!
//! An id, once given, belongs to its disk for good: what is on it would be taken for another disk's. So what a
//! storage was is written on the StrimziPodSet, and a change that would lose data is refused.

use std::collections::BTreeMap;

use evenkeel_api::{
    annotations,
    storage::{KraftMetadata, Storage, StorageType, Volume, VolumeType},
};

use super::quantity;

/// The disks of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disks {
    /// Whether they are numbered.
    pub jbod: bool,
    /// At least one, by id.
    pub disks: Vec<Disk>,
}

/// One disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// Its number; 0 for the only one.
    pub id: i32,
    /// What it is.
    pub kind: DiskKind,
    /// Whether it was chosen for the metadata log.
    pub metadata: bool,
}

/// What a disk is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiskKind {
    /// It goes with its pod.
    Ephemeral {
        /// How large it may become.
        limit: Option<String>,
    },
    /// A claim of its own.
    Claim {
        /// How large, such as `100Gi`.
        size: String,
        /// Storage class.
        class: Option<String>,
        /// Labels of the volume to claim.
        selector: BTreeMap<String, String>,
        /// Whether it is deleted with its node.
        delete: bool,
    },
}

/// A field of a storage, below `storage`, and what is wrong with it.
pub type Wrong = (String, String);

impl Disks {
    /// Reads a storage; all that is wrong with it, if anything is.
    pub fn read(storage: &Storage) -> Result<Self, Vec<Wrong>> {
        let mut wrong = Vec::new();
        let disks = match storage.type_ {
            StorageType::Jbod => jbod(storage.volumes.as_deref().unwrap_or_default(), &mut wrong),
            StorageType::Ephemeral => vec![Disk {
                id: 0,
                kind: ephemeral("", storage.size_limit.as_ref(), &mut wrong),
                metadata: storage.kraft_metadata.is_some(),
            }],
            StorageType::PersistentClaim => vec![Disk {
                id: 0,
                kind: claim("", storage.size.as_ref(), &mut wrong, |size| DiskKind::Claim {
                    size,
                    class: storage.class.clone(),
                    selector: storage.selector.clone().unwrap_or_default(),
                    delete: storage.delete_claim.unwrap_or_default(),
                }),
                metadata: storage.kraft_metadata.is_some(),
            }],
        };
        if wrong.is_empty() { Ok(Self { jbod: storage.type_ == StorageType::Jbod, disks }) } else { Err(wrong) }
    }

    /// The same with the metadata's disk alone: all that a node without partitions needs.
    #[must_use]
    pub fn for_metadata(&self) -> Self {
        Self { jbod: self.jbod, disks: vec![self.metadata_disk().clone()] }
    }

    /// The disk with the metadata log: the one chosen, else the first.
    pub fn metadata_disk(&self) -> &Disk {
        self.disks.iter().find(|disk| disk.metadata).unwrap_or(&self.disks[0])
    }

    /// The name of a disk's volume in its pod, such as `data-1`.
    pub fn volume(&self, disk: &Disk) -> String {
        if self.jbod { format!("data-{}", disk.id) } else { "data".to_owned() }
    }

    /// Where a disk is in the container.
    pub fn mount(&self, disk: &Disk) -> String {
        format!("/var/lib/kafka/{}", self.volume(disk))
    }

    /// The directory of a node's logs on a disk.
    pub fn log_dir(&self, disk: &Disk, node: i32) -> String {
        format!("{}/kafka-log{node}", self.mount(disk))
    }

    /// The name of a disk's claim.
    pub fn claim(&self, disk: &Disk, pod: &str) -> String {
        format!("{}-{pod}", self.volume(disk))
    }

    /// What makes it impossible to come here from what was before. `unchecked`: the user says that what goes is empty.
    pub fn refused_after(&self, before: &Self, unchecked: bool) -> Vec<Wrong> {
        if self.jbod != before.jbod {
            let text =
                "a storage cannot become `jbod` or cease to be: its directories would be others. Make a new pool";
            return vec![("type".to_owned(), text.to_owned())];
        }
        let mut wrong = Vec::new();
        for gone in before.disks.iter().filter(|old| !self.disks.iter().any(|disk| disk.id == old.id)) {
            if !unchecked {
                let text = format!(
                    "a volume cannot be taken away: what is on it would be lost. Empty it with a KafkaRebalance in mode \
                     remove-disks, and then annotate the Kafka with {}: \"true\"",
                    annotations::SKIP_BROKER_SCALE_DOWN_CHECK
                );
                wrong.push((format!("volumes[id={}]", gone.id), text));
            }
        }
        let (old, new) = (before.metadata_disk().id, self.metadata_disk().id);
        if old != new {
            let text = format!(
                "the metadata log is on volume {old} and cannot move to volume {new}: a node that finds it elsewhere does not \
                 start. Write `kraftMetadata: shared` at volume {old}"
            );
            wrong.push(("volumes".to_owned(), text));
        }
        for disk in &self.disks {
            let Some(old) = before.disks.iter().find(|old| old.id == disk.id) else { continue };
            let at =
                |field: &str| if self.jbod { format!("volumes[id={}].{field}", disk.id) } else { field.to_owned() };
            let mut refuse = |field: &str, text: String| wrong.push((at(field), text));
            match (&old.kind, &disk.kind) {
                (DiskKind::Ephemeral { .. }, DiskKind::Ephemeral { .. }) => {}
                (
                    DiskKind::Claim { size: old_size, class: old_class, selector: old_selector, .. },
                    DiskKind::Claim { size, class, selector, .. },
                ) => {
                    if quantity::bytes(size) < quantity::bytes(old_size) {
                        refuse("size", format!("a volume cannot shrink from {old_size} to {size}"));
                    }
                    if class != old_class {
                        let (new, old) = (named(class.as_deref()), named(old_class.as_deref()));
                        refuse("class", format!("the class of a volume cannot change from {old} to {new}"));
                    }
                    if selector != old_selector {
                        refuse("selector", "the volume that was selected cannot be exchanged for another".to_owned());
                    }
                }
                _ => refuse("type", "a volume cannot change between ephemeral and persistent-claim".to_owned()),
            }
        }
        wrong
    }
}

fn named(class: Option<&str>) -> String {
    class.map_or_else(|| "the default".to_owned(), |class| format!("`{class}`"))
}

fn jbod(volumes: &[Volume], wrong: &mut Vec<Wrong>) -> Vec<Disk> {
    if volumes.is_empty() {
        wrong.push(("volumes".to_owned(), "a storage of type jbod needs at least one volume".to_owned()));
    }
    let mut disks: Vec<Disk> = Vec::new();
    for (n, volume) in volumes.iter().enumerate() {
        let path = format!("volumes[{n}].");
        let id = volume.id.unwrap_or(0);
        if id < 0 || disks.iter().any(|disk| disk.id == id) {
            wrong.push((format!("{path}id"), format!("{id}: every volume needs an id of its own, 0 or greater")));
            continue;
        }
        let kind = match volume.type_ {
            VolumeType::Ephemeral => ephemeral(&path, volume.size_limit.as_ref(), wrong),
            VolumeType::PersistentClaim => claim(&path, volume.size.as_ref(), wrong, |size| DiskKind::Claim {
                size,
                class: volume.class.clone(),
                selector: volume.selector.clone().unwrap_or_default(),
                delete: volume.delete_claim.unwrap_or_default(),
            }),
        };
        disks.push(Disk { id, kind, metadata: volume.kraft_metadata == Some(KraftMetadata::Shared) });
    }
    if disks.iter().filter(|disk| disk.metadata).count() > 1 {
        wrong.push(("volumes".to_owned(), "at most one volume may say `kraftMetadata: shared`".to_owned()));
    }
    disks.sort_by_key(|disk| disk.id);
    disks
}

fn ephemeral(path: &str, limit: Option<&String>, wrong: &mut Vec<Wrong>) -> DiskKind {
    if let Some(text) = limit.filter(|text| !is_positive(text)) {
        wrong.push((format!("{path}sizeLimit"), no_amount(text)));
    }
    DiskKind::Ephemeral { limit: limit.cloned() }
}

fn claim(path: &str, size: Option<&String>, wrong: &mut Vec<Wrong>, kind: impl Fn(String) -> DiskKind) -> DiskKind {
    match size {
        None => wrong.push((format!("{path}size"), "is required for persistent-claim, such as `100Gi`".to_owned())),
        Some(text) if !is_positive(text) => wrong.push((format!("{path}size"), no_amount(text))),
        Some(_) => {}
    }
    kind(size.cloned().unwrap_or_default())
}

fn is_positive(text: &str) -> bool {
    quantity::bytes(text).is_some_and(|bytes| bytes > 0)
}

fn no_amount(text: &str) -> String {
    format!("`{text}` is no amount of bytes: write one such as `100Gi`")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(storage: Value) -> Result<Disks, Vec<Wrong>> {
        Disks::read(&serde_json::from_value(storage).unwrap())
    }

    fn refused(before: Value, after: Value) -> Vec<String> {
        let wrong = read(after).unwrap().refused_after(&read(before).unwrap(), false);
        wrong.into_iter().map(|(field, _)| field).collect()
    }

    #[test]
    fn directories_and_claims_have_their_known_names() {
        let one = read(json!({"type": "persistent-claim", "size": "1Gi"})).unwrap();
        let disk = &one.disks[0];
        assert_eq!(
            (one.log_dir(disk, 3), one.claim(disk, "c-p-3")),
            ("/var/lib/kafka/data/kafka-log3".to_owned(), "data-c-p-3".to_owned())
        );
        let two = read(json!({"type": "jbod", "volumes": [
            {"id": 1, "type": "persistent-claim", "size": "1Gi", "kraftMetadata": "shared"},
            {"id": 0, "type": "ephemeral"}]}))
        .unwrap();
        assert_eq!(two.disks.iter().map(|disk| disk.id).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(two.metadata_disk().id, 1);
        assert_eq!(two.log_dir(&two.disks[1], 3), "/var/lib/kafka/data-1/kafka-log3");
        assert_eq!(two.claim(&two.disks[1], "c-p-3"), "data-1-c-p-3");
        assert_eq!(two.for_metadata().disks.len(), 1);
    }

    #[test]
    fn everything_wrong_is_said_with_its_place() {
        let wrong = read(json!({"type": "jbod", "volumes": [
            {"id": 0, "type": "persistent-claim"},
            {"id": 0, "type": "ephemeral"},
            {"id": 2, "type": "persistent-claim", "size": "ten"},
            {"id": 3, "type": "ephemeral", "sizeLimit": "0"}]}))
        .unwrap_err();
        let fields: Vec<&str> = wrong.iter().map(|(field, _)| field.as_str()).collect();
        assert_eq!(fields, ["volumes[0].size", "volumes[1].id", "volumes[2].size", "volumes[3].sizeLimit"]);
        assert!(read(json!({"type": "jbod"})).is_err() && read(json!({"type": "persistent-claim"})).is_err());
        let metadata = json!({"type": "ephemeral", "kraftMetadata": "shared"});
        let twice = json!({"type": "jbod", "volumes": [
            {"id": 0, "type": "ephemeral", "kraftMetadata": "shared"},
            {"id": 1, "type": "ephemeral", "kraftMetadata": "shared"}]});
        assert!(read(metadata).is_ok() && read(twice).is_err());
    }

    #[test]
    fn what_would_lose_data_is_refused() {
        let claim = |size: &str| json!({"type": "persistent-claim", "size": size});
        assert_eq!(refused(claim("2Gi"), claim("1Gi")), ["size"]);
        assert_eq!(refused(claim("1Gi"), claim("2Gi")), [""; 0]);
        assert_eq!(refused(claim("1Gi"), claim("1024Mi")), [""; 0]);
        assert_eq!(refused(claim("1Gi"), json!({"type": "ephemeral"})), ["type"]);
        assert_eq!(
            refused(
                claim("1Gi"),
                json!({"type": "persistent-claim", "size": "1Gi", "class": "fast", "selector": {"a": "b"}})
            ),
            ["class", "selector"]
        );
        let jbod = |size: &str| {
            json!({"type": "jbod", "volumes": [
            {"id": 4, "type": "persistent-claim", "size": size}, {"id": 5, "type": "ephemeral"}]})
        };
        assert_eq!(refused(jbod("2Gi"), jbod("1Gi")), ["volumes[id=4].size"]);
        assert_eq!(refused(claim("1Gi"), jbod("1Gi")), ["type"]);
    }

    #[test]
    fn a_volume_stays_and_so_does_the_metadata_log_on_it() {
        let jbod = |ids: &[i32], metadata: Option<i32>| {
            let volume = |id: &i32| {
                let mut volume = json!({"id": id, "type": "ephemeral"});
                if Some(*id) == metadata {
                    volume["kraftMetadata"] = json!("shared");
                }
                volume
            };
            json!({"type": "jbod", "volumes": ids.iter().map(volume).collect::<Vec<_>>()})
        };
        assert_eq!(refused(jbod(&[1, 2], None), jbod(&[1], None)), ["volumes[id=2]"]);
        assert_eq!(refused(jbod(&[1, 2], None), jbod(&[1, 2, 3], None)), [""; 0]);
        let (before, after) = (read(jbod(&[1, 2], None)).unwrap(), read(jbod(&[1], None)).unwrap());
        assert_eq!(after.refused_after(&before, true), [], "the user knows that it is empty");
        assert_eq!(refused(jbod(&[1, 2], None), jbod(&[1, 2], Some(2))), ["volumes"]);
        assert_eq!(refused(jbod(&[1], None), jbod(&[0, 1], None)), ["volumes"], "the first one would be another");
        assert_eq!(refused(jbod(&[1], None), jbod(&[0, 1], Some(1))), [""; 0]);
        assert_eq!(refused(jbod(&[1, 2], Some(1)), jbod(&[1, 2], None)), [""; 0]);
    }
}
