//! Clusters at rest: nothing is to be done, now or at any moment that could be told, and nothing was heard of since all of it
//! was looked at. When their time comes, only Kafka is asked, which nobody watches; everything else is read anew now and then
//! all the same, because a watch may have missed something.
//!
//! Whether a cluster is at rest is decided by what was seen ([`Decision::is_at_rest`](super::decide::Decision)). Whether
//! anything was heard since is known here: a look begins, and whatever is heard from then on takes the rest away.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use super::{
    observe,
    seen::{Known, Seen},
};
use crate::seams::{ClusterRef, Trust};

/// After so many intervals everything is read anew.
const INTERVALS: u32 = 5;

/// What was known of a cluster when it came to rest.
#[derive(Clone, Debug)]
pub(super) struct Resting {
    /// The version of the Kafka that was looked at.
    version: Option<String>,
    /// What Kafka said of itself.
    known: Known,
    /// With what it is asked.
    pub(super) trust: Trust,
    /// When everything was looked at.
    looked_at: Instant,
}

impl Resting {
    /// What is to be remembered of a cluster that is at rest. None if Kafka was not asked: then there is nothing to compare.
    pub(super) fn of(seen: &Seen) -> Option<Self> {
        Some(Self {
            version: seen.kafka.metadata.resource_version.clone(),
            known: little(seen.metadata.known()?.clone()),
            trust: observe::trust(seen)?,
            looked_at: Instant::now(),
        })
    }

    /// Whether it may be enough to ask Kafka, of a cluster of which the watch knows this version.
    pub(super) fn lasts(&self, version: Option<&String>, interval: Duration) -> bool {
        self.version.as_ref() == version && self.looked_at.elapsed() < interval * INTERVALS
    }

    /// Whether Kafka says what it said.
    pub(super) fn is_confirmed(&self, said: Known) -> bool {
        little(said) == self.known
    }
}

/// What Kafka says to whoever asks it little.
fn little(known: Known) -> Known {
    Known { partitions: None, unread: None, closely: false, quorum: None, ..known }
}

/// Which clusters are at rest.
#[derive(Debug, Default)]
pub(super) struct Rests(Mutex<BTreeMap<ClusterRef, Rest>>);

#[derive(Debug)]
enum Rest {
    /// Somebody looks, and nothing was heard since that began.
    Looking,
    /// Nothing was heard since.
    AtRest(Arc<Resting>),
}

impl Rests {
    /// Everything of a cluster is about to be looked at.
    pub(super) fn begin(&self, of: &ClusterRef) {
        self.lock().insert(of.clone(), Rest::Looking);
    }

    /// Something happened to a cluster.
    pub(super) fn disturb(&self, of: &ClusterRef) {
        self.lock().remove(of);
    }

    /// The look has found a cluster at rest. If something was heard meanwhile it is not.
    pub(super) fn settle(&self, of: &ClusterRef, resting: Resting) {
        if let Some(rest) = self.lock().get_mut(of).filter(|rest| matches!(rest, Rest::Looking)) {
            *rest = Rest::AtRest(Arc::new(resting));
        }
    }

    /// What is known of a cluster that is at rest.
    pub(super) fn known(&self, of: &ClusterRef) -> Option<Arc<Resting>> {
        match self.lock().get(of)? {
            Rest::AtRest(resting) => Some(Arc::clone(resting)),
            Rest::Looking => None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ClusterRef, Rest>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resting() -> Resting {
        let known = Known { registered: [(0, false)].into(), ..Known::default() };
        let trust = Trust { authorities: Vec::new(), identity: None };
        Resting { version: Some("7".into()), known, trust, looked_at: Instant::now() }
    }

    #[test]
    fn whatever_is_heard_since_the_look_began_takes_the_rest_away() {
        let (rests, of) = (Rests::default(), ClusterRef::new("ns", "c"));
        rests.settle(&of, resting());
        assert!(rests.known(&of).is_none(), "nobody has looked");
        rests.begin(&of);
        assert!(rests.known(&of).is_none());
        rests.disturb(&of);
        rests.settle(&of, resting());
        assert!(rests.known(&of).is_none(), "something was heard while somebody looked");
        rests.begin(&of);
        rests.settle(&of, resting());
        assert!(rests.known(&of).is_some());
        rests.disturb(&ClusterRef::new("ns", "d"));
        assert!(rests.known(&of).is_some(), "of another one");
        rests.disturb(&of);
        assert!(rests.known(&of).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_rest_lasts_until_the_kafka_is_another_or_five_intervals_are_over() {
        let (resting, minute) = (resting(), Duration::from_secs(60));
        let (same, other) = ("7".to_owned(), "8".to_owned());
        assert!(resting.lasts(Some(&same), minute));
        assert!(!resting.lasts(Some(&other), minute) && !resting.lasts(None, minute));
        tokio::time::advance(4 * minute).await;
        assert!(resting.lasts(Some(&same), minute));
        tokio::time::advance(minute).await;
        assert!(!resting.lasts(Some(&same), minute));
    }

    #[test]
    fn kafka_confirms_a_rest_by_saying_the_same_however_closely_it_was_asked() {
        let resting = resting();
        let said = resting.known.clone();
        assert!(resting.is_confirmed(said.clone()));
        assert!(resting.is_confirmed(Known { partitions: Some(Vec::new()), closely: true, ..said.clone() }));
        assert!(!resting.is_confirmed(Known { registered: [(0, true)].into(), ..said.clone() }), "one is missed");
        assert!(!resting.is_confirmed(Known { cluster_id: "another".into(), ..said }));
    }
}
