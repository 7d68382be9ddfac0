//! What a terminating namespace says about its progress, in the original's words.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Namespace, NamespaceCondition};
use serde_json::{Value, json};

use crate::kinds::Kind;

/// What a round of deleting has left behind.
#[derive(Debug, Default)]
pub(super) struct Remaining {
    /// `plural.group` to the number of objects.
    objects: BTreeMap<String, usize>,
    /// Finalizer to the number of objects that carry it.
    finalizers: BTreeMap<String, usize>,
    failures: Vec<String>,
}

impl Remaining {
    /// Objects of a kind that are still there, by name, with their finalizers.
    pub(super) fn add(&mut self, kind: &Kind, left: &BTreeMap<String, Vec<String>>) {
        self.objects.insert(format!("{}.{}", kind.resource.plural, kind.resource.group), left.len());
        for finalizer in left.values().flatten() {
            *self.finalizers.entry(finalizer.clone()).or_default() += 1;
        }
    }

    /// Objects of a kind could not be deleted.
    pub(super) fn failed(&mut self, error: &kube::Error) {
        self.failures.push(error.to_string());
        self.failures.sort();
    }

    /// The conditions that the namespace should have, unless it has them already.
    ///
    /// The time of a transition is when deletion was asked for, or as it was: this crate has no clock, and every
    /// transition of these conditions follows from that request.
    pub(super) fn conditions(&self, namespace: &Namespace) -> Option<Vec<Value>> {
        let before = namespace.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
        let now = &namespace.metadata.deletion_timestamp;
        let mut changed = false;
        let conditions = self.wanted().into_iter().map(|(kind, holds, reason, message)| {
            let status = if holds { "True" } else { "False" };
            let old = before.iter().find(|old| old.type_ == kind);
            let same = |old: &NamespaceCondition| {
                old.status == status
                    && old.reason.as_deref() == Some(reason)
                    && old.message.as_deref() == Some(message.as_str())
            };
            changed |= !old.is_some_and(same);
            let time = old.filter(|old| old.status == status).and_then(|old| old.last_transition_time.as_ref());
            let time = time.or(now.as_ref());
            json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": time})
        });
        let conditions: Vec<_> = conditions.collect();
        changed.then_some(conditions)
    }

    /// Type, whether it holds, reason, message.
    fn wanted(&self) -> [(&'static str, bool, &'static str, String); 5] {
        let listed = |counts: &BTreeMap<String, usize>, verb: &str| {
            let each = counts.iter().map(|(name, count)| format!("{name} {verb} {count} resource instances"));
            each.collect::<Vec<_>>().join(", ")
        };
        let failed = self.failures.len();
        let choose =
            |holds: bool, (reason, message): (&'static str, String), (ok, fine): (&'static str, &str)| match holds {
                true => (true, reason, message),
                false => (false, ok, fine.to_owned()),
            };
        let failure = format!("Failed to delete all resource types, {failed} remaining: {}", self.failures.join(", "));
        let content = format!("Some resources are remaining: {}", listed(&self.objects, "has"));
        let held =
            format!("Some content in the namespace has finalizers remaining: {}", listed(&self.finalizers, "in"));
        let named = |kind, (holds, reason, message)| (kind, holds, reason, message);
        [
            named(
                "NamespaceDeletionDiscoveryFailure",
                (false, "ResourcesDiscovered", "All resources successfully discovered".into()),
            ),
            named(
                "NamespaceDeletionGroupVersionParsingFailure",
                (false, "ParsedGroupVersions", "All legacy kube types successfully parsed".into()),
            ),
            named(
                "NamespaceDeletionContentFailure",
                choose(
                    failed > 0,
                    ("ContentDeletionFailed", failure),
                    ("ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
                ),
            ),
            named(
                "NamespaceContentRemaining",
                choose(
                    !self.objects.is_empty(),
                    ("SomeResourcesRemain", content),
                    ("ContentRemoved", "All content successfully removed"),
                ),
            ),
            named(
                "NamespaceFinalizersRemaining",
                choose(
                    !self.finalizers.is_empty(),
                    ("SomeFinalizersRemain", held),
                    ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
                ),
            ),
        ]
    }
}
