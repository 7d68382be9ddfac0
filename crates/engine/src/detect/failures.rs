//! The rounds that miss brokers and disks.
//!
//! A broker is missed if it holds replicas and is not up; a log directory if it failed on a broker that
//! is up and some of whose replicas are offline: one that was emptied since is nobody's business any
//! more. Since when something is missed is remembered. Of brokers the memory outlives the process:
//! whoever starts the detectors hands in what was missed before ([`Missing::recalled`]) and records what
//! [`super::service::Detectors::missing_brokers`] says, because the time until a broker's load goes
//! elsewhere must not begin anew with each restart.

use std::collections::{BTreeMap, BTreeSet};

use super::{Finding, Millis};
use crate::model::View;

/// What of the cluster matters here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sight {
    /// Brokers that are up.
    pub up: BTreeSet<i32>,
    /// Brokers that hold replicas and are not up.
    pub missing: BTreeSet<i32>,
    /// Failed directories of brokers that are up and have offline replicas.
    pub failed_dirs: BTreeMap<i32, BTreeSet<String>>,
}

impl Sight {
    /// What a view shows; `None` if not one broker is up. Somebody has answered, so that cannot be: the cluster has just
    /// come back, and its brokers have not told the controller yet.
    pub fn seen(view: &View) -> Option<Sight> {
        Some(Sight::of(view)).filter(|sight| !sight.up.is_empty())
    }

    fn of(view: &View) -> Sight {
        let up: BTreeSet<i32> = view.brokers.iter().filter(|(_, broker)| broker.up).map(|(id, _)| *id).collect();
        let replicas = view.partitions.values().flat_map(|partition| &partition.replicas);
        let missing = replicas.filter(|id| !up.contains(id)).copied().collect();
        let offline: BTreeSet<i32> = view.partitions.values().flat_map(|seen| &seen.offline).copied().collect();
        let failed = view
            .brokers
            .iter()
            .filter(|(id, broker)| broker.up && offline.contains(id) && !broker.failed_dirs.is_empty());
        let failed_dirs = failed.map(|(id, broker)| (*id, broker.failed_dirs.clone())).collect();
        Sight { up, missing, failed_dirs }
    }
}

/// How many brokers may fail before nothing is mended without people.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bearable {
    /// So many.
    pub count: usize,
    /// This share of all.
    pub share: f64,
}

/// What is missed, and since when.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Missing {
    brokers: BTreeMap<i32, Millis>,
    dirs: BTreeMap<i32, BTreeMap<String, Millis>>,
    /// Since when most of them are.
    most_since: Option<Millis>,
}

/// That most brokers are gone has to last so long to be believed: a cluster that was out of reach comes back broker by
/// broker.
const BELIEVED_AFTER: Millis = 30_000;

/// What a look has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Changed {
    /// Which brokers are missed.
    pub brokers: bool,
    /// Which directories are.
    pub dirs: bool,
}

impl Missing {
    /// With brokers that were missed before this process began.
    pub fn recalled(brokers: BTreeMap<i32, Millis>) -> Missing {
        Missing { brokers, ..Missing::default() }
    }

    /// Until when a look is not to be believed, if so.
    pub fn doubted_until(&mut self, sight: &Sight, now: Millis) -> Option<Millis> {
        self.most_since = (sight.missing.len() > sight.up.len()).then(|| self.most_since.unwrap_or(now));
        self.most_since.map(|since| since + BELIEVED_AFTER).filter(|until| *until > now)
    }

    /// Takes in what is seen.
    pub fn look(&mut self, sight: &Sight, now: Millis) -> Changed {
        let brokers: BTreeMap<i32, Millis> =
            sight.missing.iter().map(|id| (*id, self.brokers.get(id).copied().unwrap_or(now))).collect();
        let since = |id: &i32, dir: &String| self.dirs.get(id).and_then(|dirs| dirs.get(dir)).copied().unwrap_or(now);
        let dirs: BTreeMap<i32, BTreeMap<String, Millis>> = sight
            .failed_dirs
            .iter()
            .map(|(id, dirs)| (*id, dirs.iter().map(|dir| (dir.clone(), since(id, dir))).collect()))
            .collect();
        let changed = Changed { brokers: brokers != self.brokers, dirs: dirs != self.dirs };
        (self.brokers, self.dirs) = (brokers, dirs);
        changed
    }

    /// Brokers that are missed, and since when.
    pub fn brokers(&self) -> &BTreeMap<i32, Millis> {
        &self.brokers
    }

    /// Brokers that are missed, as a finding.
    pub fn broker_failure(&self, sight: &Sight, bearable: Bearable) -> Option<Finding> {
        let gone = self.brokers.len();
        let share = gone as f64 / (gone + sight.up.len()).max(1) as f64;
        let fixable = gone <= bearable.count && share <= bearable.share;
        (gone > 0).then(|| Finding::BrokerFailure { since: self.brokers.clone(), fixable })
    }

    /// Directories that are missed, as a finding. While brokers are missed too there is none: mending it
    /// would move their replicas before their time.
    pub fn disk_failure(&self) -> Option<Finding> {
        (self.brokers.is_empty() && !self.dirs.is_empty()).then(|| Finding::DiskFailure { since: self.dirs.clone() })
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_kafka::TopicPartition;

    use super::*;
    use crate::model::{BrokerView, PartitionView};

    const USUAL: Bearable = Bearable { count: 10, share: 0.4 };

    fn view(brokers: i32, down: &[i32], partitions: &[(&[i32], &[i32])]) -> View {
        let broker = |id: i32| BrokerView { up: !down.contains(&id), ..BrokerView::default() };
        let partition = |(replicas, offline): &(&[i32], &[i32])| PartitionView {
            replicas: replicas.to_vec(),
            leader: None,
            offline: offline.iter().copied().collect(),
            adding: Vec::new(),
        };
        View {
            brokers: (0..brokers).map(|id| (id, broker(id))).collect(),
            partitions: (0..).zip(partitions).map(|(n, it)| (TopicPartition::new("t", n), partition(it))).collect(),
        }
    }

    #[test]
    fn a_broker_is_missed_from_the_first_look_until_it_is_back() {
        let mut missing = Missing::default();
        let whole = Sight::of(&view(3, &[], &[(&[0, 1], &[])]));
        // 2 is down too, but nothing lies on it.
        let broken = Sight::of(&view(3, &[1, 2], &[(&[0, 1], &[1])]));
        assert_eq!(missing.look(&whole, 5), Changed { brokers: false, dirs: false });
        assert_eq!(missing.broker_failure(&whole, USUAL), None);
        assert!(missing.look(&broken, 10).brokers);
        assert!(!missing.look(&broken, 20).brokers);
        let share = Bearable { share: 0.5, ..USUAL };
        let found = Finding::BrokerFailure { since: [(1, 10)].into(), fixable: true };
        assert_eq!(missing.broker_failure(&broken, share), Some(found));
        assert!(missing.look(&whole, 30).brokers);
        assert_eq!(missing.broker_failure(&whole, share), None);
    }

    #[test]
    fn that_most_are_gone_is_believed_only_if_it_lasts() {
        let mut missing = Missing::default();
        let most = Sight::of(&view(3, &[1, 2], &[(&[0, 1, 2], &[1, 2])]));
        let few = Sight::of(&view(3, &[2], &[(&[0, 1, 2], &[2])]));
        assert_eq!(missing.doubted_until(&most, 1_000), Some(31_000));
        assert_eq!(missing.doubted_until(&most, 30_000), Some(31_000));
        assert_eq!(missing.doubted_until(&most, 31_000), None);
        assert_eq!(missing.doubted_until(&few, 32_000), None);
        assert_eq!(missing.doubted_until(&most, 33_000), Some(63_000));
        assert_eq!(Sight::seen(&view(2, &[0, 1], &[(&[0, 1], &[])])), None);
    }

    #[test]
    fn a_broker_that_was_missed_before_a_restart_is_missed_since_then() {
        let mut missing = Missing::recalled([(0, 1), (1, 2)].into());
        let broken = Sight::of(&view(3, &[1], &[(&[0, 1], &[1])]));
        assert!(missing.look(&broken, 50).brokers, "0 is back");
        assert_eq!(*missing.brokers(), [(1, 2)].into());
    }

    #[test]
    fn too_many_are_not_mended_without_people() {
        let fixable = |brokers: i32, down: &[i32], bearable| {
            let sight = Sight::of(&view(brokers, down, &[(down, &[])]));
            let mut missing = Missing::default();
            missing.look(&sight, 0);
            let Some(Finding::BrokerFailure { fixable, .. }) = missing.broker_failure(&sight, bearable) else {
                panic!()
            };
            fixable
        };
        assert!(fixable(5, &[0, 1], USUAL), "two of five are 0.4");
        assert!(!fixable(4, &[0, 1], USUAL));
        assert!(!fixable(5, &[0, 1], Bearable { count: 1, share: 1.0 }));
    }

    #[test]
    fn a_failed_directory_is_missed_while_something_is_offline_and_no_broker_is_gone() {
        let mut view = view(3, &[], &[(&[0, 1], &[1])]);
        view.brokers.get_mut(&1).unwrap().failed_dirs = ["/a".to_owned()].into();
        view.brokers.get_mut(&2).unwrap().failed_dirs = ["/b".to_owned()].into();
        let mut missing = Missing::default();
        assert!(missing.look(&Sight::of(&view), 7).dirs);
        assert!(!missing.look(&Sight::of(&view), 9).dirs);
        let since = [(1, [("/a".to_owned(), 7)].into())].into();
        assert_eq!(missing.disk_failure(), Some(Finding::DiskFailure { since }));

        let mut worse = view.clone();
        worse.brokers.get_mut(&0).unwrap().up = false;
        missing.look(&Sight::of(&worse), 11);
        assert_eq!(missing.disk_failure(), None);

        // Emptied: the directory is still broken, and nothing is missing from it.
        view.partitions.values_mut().for_each(|partition| partition.offline.clear());
        missing.look(&Sight::of(&view), 13);
        assert_eq!(missing.disk_failure(), None);
    }
}
