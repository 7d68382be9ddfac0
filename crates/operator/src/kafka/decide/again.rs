//! When to look again although nobody calls: not everything that is waited for can be watched.

use evenkeel_api::{conditions, labels};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use super::{
    super::{
        nodes::Ids,
        roll::Roll,
        scale_down::LOOKS_APART,
        seen::{Metadata, Seen},
    },
    Decision,
    objects::Nodes,
    plan::Plan,
};
use crate::pod_set::decide::is_ready;

/// When to look again at a restart that waits: nobody calls when replicas come into sync.
const SYNC_TAKES: SignedDuration = SignedDuration::from_secs(3);

/// When to look again at brokers that are gone and were not empty: all partitions have to be read for it.
const LINGERS: SignedDuration = SignedDuration::from_secs(30);

/// When to look again at brokers that stay because of their data: all partitions have to be read for it.
const MOVED_BY_HAND: SignedDuration = SignedDuration::from_secs(5);

/// Nothing calls when a broker registers, or is missed by the others.
const SOON: SignedDuration = SignedDuration::from_secs(2);

/// A look that is waited for comes after so many parts of the time in which nothing has happened, or sooner.
const PART_OF_QUIET: i32 = 4;

/// The longest pause before such a look.
const LONGEST: SignedDuration = SignedDuration::from_secs(60);

/// When to look again at the latest. `drains`: a rebalance empties those that are to go, and its end is heard of.
pub(super) fn look_again(
    seen: &Seen,
    plan: &Plan,
    nodes: &Nodes,
    decision: &Decision,
    drains: bool,
) -> Option<Timestamp> {
    let quiet = decision.found_quiet.map(|since| seen.now.duration_since(since)).unwrap_or_default();
    let waited = waited_in_vain(&seen.metadata, seen.read_at.duration_since(seen.now));
    let after =
        |pause: SignedDuration| seen.now.saturating_add(unhurried(pause.max(waited), quiet)).unwrap_or(seen.now);
    let second_look = plan.found_empty.values().map(|since| since.saturating_add(LOOKS_APART).unwrap_or(seen.now));
    let is_ready = decision.status.conditions.first().is_some_and(|state| state.type_ == conditions::READY);
    let waits = [
        (matches!(nodes.roll, Roll::Wait { .. }), SYNC_TAKES),
        // A person may move the data away.
        (!plan.kept.is_empty() && !drains, MOVED_BY_HAND),
        (!nodes.gone.lingering.is_empty(), LINGERS),
        (!is_ready || !is_settled(&seen.metadata, ready_brokers(seen), &nodes.gone.lingering), SOON),
    ];
    let waits = waits.into_iter().filter(|(waits, _)| *waits).map(|(_, pause)| after(pause));
    second_look.filter(|due| *due > seen.now).chain(waits).min()
}

/// How long Kafka was waited for that did not answer, in a look that took so long. Only so many clusters are looked at side by
/// side: one that is silent pauses for as long as it has kept a place, so that others get it.
fn waited_in_vain(metadata: &Metadata, took: SignedDuration) -> SignedDuration {
    match metadata {
        Metadata::Unreachable(_) => took,
        Metadata::Nobody | Metadata::Mistrusted(_) | Metadata::Known(_) => SignedDuration::ZERO,
    }
}

/// A pause, or a longer one if there was nothing to do for long: what takes its time is not looked at all the time, and who
/// looks late looks later by a part of what it took anyway.
fn unhurried(pause: SignedDuration, quiet: SignedDuration) -> SignedDuration {
    pause.max((quiet / PART_OF_QUIET).min(LONGEST))
}

/// How many brokers' pods are ready.
fn ready_brokers(seen: &Seen) -> usize {
    let is_broker = |pod: &&Pod| pod.labels().get(labels::BROKER_ROLE).is_some_and(|role| role == "true");
    seen.pods.iter().filter(is_broker).filter(|pod| is_ready(pod)).count()
}

/// Whether Kafka counts on just as many brokers as are ready. A broker registers after its pod is ready, and is missed a
/// while after it has gone; those that linger are missed for longer than that.
fn is_settled(metadata: &Metadata, ready: usize, lingering: &Ids) -> bool {
    match metadata {
        Metadata::Nobody => ready == 0,
        Metadata::Unreachable(_) | Metadata::Mistrusted(_) => false,
        Metadata::Known(known) => {
            let listed = known.registered.iter().filter(|(id, _)| !lingering.contains(id));
            let fenced: Vec<bool> = listed.map(|(_, fenced)| *fenced).collect();
            fenced.len() == ready && !fenced.contains(&true)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::super::seen::Known, *};

    #[test]
    fn what_stays_as_it_is_is_looked_at_ever_more_rarely() {
        let seconds = SignedDuration::from_secs;
        let pauses = [0, 8, 9, 40, 240, 9_999].map(|quiet| unhurried(SOON, seconds(quiet)).as_millis());
        assert_eq!(pauses, [2_000, 2_000, 2_250, 10_000, 60_000, 60_000]);
    }

    #[test]
    fn one_that_does_not_answer_pauses_for_as_long_as_it_was_waited_for() {
        let took = SignedDuration::from_secs(10);
        assert_eq!(waited_in_vain(&Metadata::Unreachable("why".into()), took), took);
        for answered in [Metadata::Nobody, Metadata::Mistrusted("why".into()), Metadata::Known(Known::default())] {
            assert_eq!(waited_in_vain(&answered, took), SignedDuration::ZERO);
        }
    }

    #[test]
    fn a_cluster_is_settled_when_kafka_counts_on_all_that_are_ready_and_on_nobody_else() {
        let settled = |ready: usize, registered: &[(i32, bool)], lingering: &[i32]| {
            let known = Known { registered: registered.iter().copied().collect(), ..Known::default() };
            is_settled(&Metadata::Known(known), ready, &lingering.iter().copied().collect())
        };
        assert!(settled(2, &[(0, false), (1, false)], &[]));
        assert!(!settled(2, &[(0, false)], &[]), "1 has not registered yet");
        assert!(!settled(2, &[(0, false), (1, true)], &[]), "1 is not counted on yet");
        assert!(!settled(1, &[(0, false), (1, true)], &[]), "1 is gone and still listed");
        assert!(settled(1, &[(0, false), (1, true)], &[1]), "and will be for a while");
        assert!(is_settled(&Metadata::Nobody, 0, &Ids::new()) && !is_settled(&Metadata::Nobody, 1, &Ids::new()));
        assert!(!is_settled(&Metadata::Unreachable("why".into()), 1, &Ids::new()));
    }
}
