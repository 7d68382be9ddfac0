//! Whether brokers may go.
//!
//! A broker that holds data stays, whatever the spec says, and so do all others that were to go with it: the pools are
//! read as if nobody had asked. Nothing of that is written into anybody's spec. Who could not be asked counts as
//! holding data, but that is no reason to move any.

use std::collections::BTreeMap;

use super::{nodes::Ids, seen::Metadata};
use crate::auto_rebalance::{Check, Generated, removal_is_held};

/// What became of the wish to remove brokers, or their role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Whether they hold data.
    pub check: Check,
    /// Why they stay. None: they may go.
    pub kept_because: Option<String>,
}

/// Whether these may go. `unchecked`: the user wants no check.
pub fn judge(leaving: &Ids, metadata: &Metadata, generated: &[Generated], unchecked: bool) -> Verdict {
    let (check, mut kept_because) = match (leaving.is_empty() || unchecked, metadata.partitions()) {
        (true, _) => (Check::Clear, None),
        (false, None) => {
            let why = match metadata {
                Metadata::Unreachable(why) => format!("nobody knows whether they hold data: {why}"),
                _ => "nobody knows whether they hold data: Kafka cannot be asked yet".to_owned(),
            };
            (Check::Unknown, Some(why))
        }
        (false, Some(partitions)) => {
            let mut held: BTreeMap<i32, usize> = BTreeMap::new();
            for partition in partitions {
                for id in partition.replicas.intersection(leaving) {
                    *held.entry(*id).or_default() += 1;
                }
            }
            if held.is_empty() { (Check::Clear, None) } else { (Check::HasData, Some(told(&held))) }
        }
    };
    if kept_because.is_none() && !unchecked && removal_is_held(generated, leaving) {
        kept_because = Some("the rebalance that empties them has not come to its end".to_owned());
    }
    Verdict { check, kept_because }
}

fn told(held: &BTreeMap<i32, usize>) -> String {
    let plural = |many: usize| if many == 1 { "" } else { "s" };
    let each: Vec<String> =
        held.iter().map(|(id, many)| format!("broker {id} holds data of {many} partition{}", plural(*many))).collect();
    each.join(", ")
}

#[cfg(test)]
mod tests {
    use evenkeel_api::{kafka::AutoRebalanceMode, rebalance::RebalanceState};

    use super::*;
    use crate::kafka::seen::{Known, Partition};

    fn known(replicas: &[&[i32]]) -> Metadata {
        let partition = |ids: &&[i32]| Partition { replicas: ids.iter().copied().collect(), ..Partition::default() };
        let partitions = Some(replicas.iter().map(partition).collect());
        Metadata::Known(Known { partitions, ..Known::default() })
    }

    #[test]
    fn brokers_with_data_stay_and_are_named() {
        let metadata = known(&[&[0, 1], &[1, 3], &[3, 4], &[0, 2]]);
        let verdict = judge(&[3, 4, 5].into(), &metadata, &[], false);
        assert_eq!(verdict.check, Check::HasData);
        let why = "broker 3 holds data of 2 partitions, broker 4 holds data of 1 partition";
        assert_eq!(verdict.kept_because.as_deref(), Some(why));
        assert_eq!(judge(&[5].into(), &metadata, &[], false), Verdict::default());
        assert_eq!(judge(&[3].into(), &metadata, &[], true), Verdict::default(), "nobody wanted to know");
    }

    #[test]
    fn who_cannot_be_asked_keeps_everything() {
        for metadata in [Metadata::Nobody, Metadata::Unreachable("gone".into()), Metadata::Known(Known::default())] {
            let verdict = judge(&[3].into(), &metadata, &[], false);
            assert_eq!(verdict.check, Check::Unknown);
            assert!(verdict.kept_because.is_some());
            assert_eq!(judge(&Ids::new(), &metadata, &[], false), Verdict::default());
        }
    }

    #[test]
    fn empty_brokers_stay_while_their_drain_goes_on() {
        let drain = Generated {
            mode: AutoRebalanceMode::RemoveBrokers,
            brokers: [3].into(),
            state: RebalanceState::Rebalancing,
            ..Generated::default()
        };
        let verdict = judge(&[3].into(), &known(&[&[0, 1]]), &[drain], false);
        assert_eq!(verdict.check, Check::Clear);
        assert!(verdict.kept_because.is_some());
    }
}
