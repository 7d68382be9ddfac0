//! The CEL rules of the CRDs.
//!
//! A rule stands here only if what it refuses is wrong in *any* resource of the kind. A template may
//! carry fields that make no sense for its mode, so whatever depends on two fields at once is left to
//! the controllers, which answer with a condition instead.
//!
//! The API server estimates what a rule may cost in the worst case and refuses the CRD when that is
//! too much; and it meters each evaluation, and refuses the object when that takes too long. A search
//! for duplicates is quadratic, so every list with such a rule is bounded: far beyond real clusters,
//! yet so that a list of full length can still be checked. For numbers, two searches by `indexOf` are
//! several times cheaper than a count.

use serde_json::{Value, json};

/// Broker ids in one list.
pub const MAX_BROKER_IDS: u32 = 500;
/// Brokers whose volumes one rebalance may empty.
pub const MAX_BROKERS_WITH_VOLUMES: u32 = 500;
/// Volumes of one broker that one rebalance may empty.
pub const MAX_VOLUME_IDS: u32 = 64;
/// Volumes of one JBOD storage.
pub const MAX_JBOD_VOLUMES: u32 = 128;
/// Entries of `autoRebalance`. There are three modes; the rest is room for the message that says so.
pub const MAX_AUTO_REBALANCE_ENTRIES: u32 = 16;

const NO_NEGATIVE: &str = "self.all(id, id >= 0)";
const NO_DUPLICATE: &str = "self.all(id, self.indexOf(id) == self.lastIndexOf(id))";

/// The rules of a list of broker ids.
pub(crate) fn broker_ids() -> Value {
    json!([
        rule(NO_NEGATIVE, "broker ids are 0 or greater: remove the negative ones"),
        rule(NO_DUPLICATE, "a broker id is listed twice: list each broker once"),
    ])
}

/// The rules of the list of brokers whose volumes are to be emptied. That none is listed twice is not among them: it is a
/// map by broker id, which says so at no cost.
pub(crate) fn brokers_with_volumes() -> Value {
    json!([
        rule("self.size() > 0", "list at least one broker with its volumes, or leave moveReplicasOffVolumes out",),
        rule("self.all(entry, entry.brokerId >= 0)", "broker ids are 0 or greater: remove the negative ones",),
    ])
}

/// The rules of one broker's list of volumes to be emptied.
pub(crate) fn volume_ids() -> Value {
    json!([
        rule("self.size() > 0", "list at least one volume id, or leave this broker out of moveReplicasOffVolumes",),
        rule(NO_NEGATIVE, "volume ids are 0 or greater: remove the negative ones"),
        rule(NO_DUPLICATE, "a volume id is listed twice: list each volume once"),
    ])
}

/// The rules of the volumes of a JBOD storage.
pub(crate) fn jbod_volumes() -> Value {
    json!([
        rule("self.size() > 0", "list at least one volume, or leave volumes out"),
        rule(
            "self.all(volume, !has(volume.id) || volume.id >= 0)",
            "volume ids are 0 or greater: give each volume such an id",
        ),
        rule(
            "self.all(volume, !has(volume.id) || self.exists_one(other, has(other.id) && other.id == volume.id))",
            "a volume id is used twice: give each volume an id of its own",
        ),
    ])
}

/// The rules of `autoRebalance`.
pub(crate) fn auto_rebalance() -> Value {
    json!([
        rule(
            "self.size() > 0",
            "list at least one mode, or leave autoRebalance out to switch automatic rebalancing off",
        ),
        rule(
            "self.all(entry, self.exists_one(other, other.mode == entry.mode))",
            "a mode is listed twice: keep one entry for each of add-brokers, remove-brokers and imbalance",
        ),
    ])
}

fn rule(rule: &str, message: &str) -> Value {
    json!({"rule": rule, "message": message})
}
