//! Whether brokers may go.
//!
//! A broker that holds data stays, whatever the spec says, and so do all others that were to go with it: the pools are
//! read as if nobody had asked. Nothing of that is written into anybody's spec. Who could not be asked counts as
//! holding data, but that is no reason to move any.
//!
//! What a broker knows of the cluster lags behind: a topic that was made a moment ago may not be seen yet. So a broker
//! goes only if it was seen empty twice, a second apart, since somebody wants it gone.
//!
//! Data that has more replicas than there would be brokers has nowhere to go: nothing is emptied for a wish that can never
//! come true, and it is said whose data it is.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::{
    nodes::Ids,
    seen::{Known, Metadata, Partition},
};
use crate::auto_rebalance::{Check, Generated, removal_is_held};

/// How far the two looks are apart at least. Brokers learn of changes within half a second, usually, and whoever waits for a
/// drained pod to go waits for this; a broker that is cut off for longer than that is not helped by a longer pause either.
pub const LOOKS_APART: SignedDuration = SignedDuration::from_secs(1);

/// How many partitions that are left are named.
const MOST_NAMED: usize = 3;

/// Why brokers stay, in words that all such reasons have in common.
const UNKNOWN: &str = "nobody knows whether they hold data";
const STUCK: &str = " replicas, and there would be ";
const HOLDS: &str = " holds data of ";
/// The same, of what passes by itself.
const UNFINISHED: &str = "the rebalance that empties them has not come to its end";
const SEEN_ONCE: &str = "they were seen to be empty only just now, and are looked at once more";

/// What became of the wish to remove brokers, or their role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Whether they hold data.
    pub check: Check,
    /// Why they stay. None: they may go.
    pub kept_because: Option<String>,
    /// Since when all of them are seen to be empty.
    pub empty_since: Option<Timestamp>,
}

/// What is seen of the brokers' data.
#[derive(Clone, Copy, Debug)]
pub struct Look<'a> {
    /// What Kafka says now.
    pub metadata: &'a Metadata,
    /// Since when brokers that are to go are known to be empty.
    pub empty_since: &'a BTreeMap<i32, Timestamp>,
    /// The present moment.
    pub now: Timestamp,
}

/// Whether these may go, so that so many brokers stay. `unchecked`: the user wants no check.
pub fn judge(leaving: &Ids, staying: usize, look: Look<'_>, generated: &[Generated], unchecked: bool) -> Verdict {
    let metadata = look.metadata;
    let (check, mut kept_because) = match (leaving.is_empty() || unchecked, metadata.partitions()) {
        (true, _) => (Check::Clear, None),
        (false, None) => {
            let why = match metadata {
                Metadata::Unreachable(why)
                | Metadata::Mistrusted(why)
                | Metadata::Known(Known { unread: Some(why), .. }) => {
                    format!("{UNKNOWN}: {why}")
                }
                _ => format!("{UNKNOWN}: Kafka cannot be asked yet"),
            };
            (Check::Unknown, Some(why))
        }
        (false, Some(partitions)) => match (stuck(leaving, staying, partitions), data_on(leaving, partitions)) {
            (Some(why), _) => (Check::Stuck, Some(why)),
            (None, Some(left)) => (Check::HasData, Some(left)),
            (None, None) => (Check::Clear, None),
        },
    };
    if kept_because.is_none() && !unchecked && removal_is_held(generated, leaving) {
        kept_because = Some(UNFINISHED.to_owned());
    }
    let is_empty = !leaving.is_empty() && !unchecked && check == Check::Clear;
    let empty_since = is_empty.then(|| {
        let all = leaving.iter().map(|id| look.empty_since.get(id).copied().unwrap_or(look.now));
        all.max().unwrap_or(look.now)
    });
    let is_new = empty_since.is_some_and(|since| look.now.duration_since(since) < LOOKS_APART);
    if kept_because.is_none() && is_new {
        kept_because = Some(SEEN_ONCE.to_owned());
    }
    Verdict { check, kept_because, empty_since }
}

/// Whether a message says that brokers stay for a reason that passes by itself, as it does in every removal.
pub fn passes(message: &str) -> bool {
    [UNFINISHED, SEEN_ONCE].iter().any(|reason| message.contains(reason))
}

/// What kind of reason a message gives, if it says why brokers stay: how much they hold is no other reason.
pub fn kind_of(message: &str) -> Option<&'static str> {
    [UNKNOWN, STUCK, HOLDS].into_iter().find(|reason| message.contains(reason))
}

/// Why what these hold can go nowhere, if it cannot. What is on its way to others already is not stuck, and does not count
/// twice while it is at both ends.
fn stuck(leaving: &Ids, staying: usize, partitions: &[Partition]) -> Option<String> {
    let held = partitions.iter().map(|partition| (partition, partition.wanted()));
    let held =
        held.filter(|(_, wanted)| !wanted.is_disjoint(leaving)).map(|(partition, wanted)| (partition, wanted.len()));
    let (widest, copies) = held.max_by_key(|(_, copies)| *copies)?;
    (copies > staying).then(|| {
        format!("{} has {copies}{STUCK}{staying} brokers: give it fewer replicas, or ask for more brokers", widest.name)
    })
}

/// Who of these holds how much, and some of what it is: a drain that ends with data left is understood by that alone. None
/// if all are empty.
pub fn data_on(brokers: &Ids, partitions: &[Partition]) -> Option<String> {
    let left: Vec<&Partition> = partitions.iter().filter(|it| !it.replicas.is_disjoint(brokers)).collect();
    let plural = |many: usize| if many == 1 { "" } else { "s" };
    let held = |id: &i32| left.iter().filter(|partition| partition.replicas.contains(id)).count();
    let holders = brokers.iter().map(|id| (id, held(id))).filter(|(_, many)| *many > 0);
    let each: Vec<String> =
        holders.map(|(id, many)| format!("broker {id}{HOLDS}{many} partition{}", plural(many))).collect();
    let named: Vec<&str> = left.iter().take(MOST_NAMED).map(|partition| partition.name.as_str()).collect();
    let rest = left.len() - named.len();
    let rest = if rest == 0 { String::new() } else { format!(" and {rest} more") };
    (!left.is_empty()).then(|| format!("{} ({}{rest})", each.join(", "), named.join(", ")))
}

#[cfg(test)]
mod tests {
    use evenkeel_api::{kafka::AutoRebalanceMode, rebalance::RebalanceState};

    use super::*;

    fn known(replicas: &[&[i32]]) -> Metadata {
        let partition = |(index, ids): (usize, &&[i32])| Partition {
            name: format!("t-{index}"),
            replicas: ids.iter().copied().collect(),
            ..Partition::default()
        };
        let partitions = Some(replicas.iter().enumerate().map(partition).collect());
        Metadata::Known(Known { partitions, ..Known::default() })
    }

    /// Looks at brokers 3 and 5, known to be empty for long.
    fn judged(leaving: &Ids, metadata: &Metadata, generated: &[Generated], unchecked: bool) -> Verdict {
        let now = Timestamp::UNIX_EPOCH + LOOKS_APART;
        let empty_since = BTreeMap::from([3, 5].map(|id| (id, Timestamp::UNIX_EPOCH)));
        judge(leaving, 3, Look { metadata, empty_since: &empty_since, now }, generated, unchecked)
    }

    #[test]
    fn a_broker_goes_only_when_it_was_seen_empty_twice() {
        let (metadata, leaving) = (known(&[&[0, 1]]), [3, 4].into());
        let second = |n: i64| Timestamp::UNIX_EPOCH + SignedDuration::from_secs(n);
        let mut empty_since = BTreeMap::new();
        for (now, goes) in [(0, false), (0, false), (1, true), (9, true)] {
            let look = Look { metadata: &metadata, empty_since: &empty_since, now: second(now) };
            let verdict = judge(&leaving, 3, look, &[], false);
            assert_eq!((verdict.check, verdict.kept_because.is_none()), (Check::Clear, goes), "at {now} s");
            assert_eq!(verdict.empty_since, Some(second(0)));
            empty_since.extend([3, 4].map(|id| (id, second(0))));
        }
        // One that joins the others is looked at anew, and one that holds data is not known to be empty.
        let look = Look { metadata: &metadata, empty_since: &empty_since, now: second(9) };
        assert!(judge(&[3, 5].into(), 3, look, &[], false).kept_because.is_some());
        let filled = known(&[&[0, 3]]);
        assert_eq!(judge(&leaving, 3, Look { metadata: &filled, ..look }, &[], false).empty_since, None);
    }

    #[test]
    fn brokers_with_data_stay_and_are_named() {
        let metadata = known(&[&[0, 1], &[1, 3], &[3, 4], &[0, 2]]);
        let verdict = judged(&[3, 4, 5].into(), &metadata, &[], false);
        assert_eq!(verdict.check, Check::HasData);
        let why = "broker 3 holds data of 2 partitions, broker 4 holds data of 1 partition (t-1, t-2)";
        assert_eq!(verdict.kept_because.as_deref(), Some(why));
        assert_eq!(judged(&[5].into(), &metadata, &[], false).kept_because, None);
        let many = judged(&[3].into(), &known(&[&[3][..]; 5]), &[], false).kept_because;
        assert_eq!(many.as_deref(), Some("broker 3 holds data of 5 partitions (t-0, t-1, t-2 and 2 more)"));
        assert_eq!(judged(&[3].into(), &metadata, &[], true), Verdict::default(), "nobody wanted to know");
    }

    #[test]
    fn data_that_has_nowhere_to_go_is_no_reason_to_move_any() {
        let metadata = known(&[&[0, 1], &[0, 1, 2, 3], &[3, 4]]);
        let verdict = judged(&[3].into(), &metadata, &[], false);
        let why = "t-1 has 4 replicas, and there would be 3 brokers: give it fewer replicas, or ask for more brokers";
        assert_eq!((verdict.check, verdict.kept_because.as_deref()), (Check::Stuck, Some(why)));
        assert_eq!(judged(&[4].into(), &metadata, &[], false).check, Check::HasData, "others have it");
        assert_eq!(judged(&[5].into(), &metadata, &[], false).check, Check::Clear);
    }

    /// Four brokers, three replicas each, and the last broker is emptied: while a partition moves it is on all four.
    #[test]
    fn data_that_moves_is_not_counted_at_both_ends() {
        let moving = |replicas: &[i32], going: &[i32]| {
            let set = |ids: &[i32]| ids.iter().copied().collect();
            let partition =
                Partition { name: "t-0".into(), replicas: set(replicas), going: set(going), ..Partition::default() };
            Metadata::Known(Known { partitions: Some(vec![partition]), ..Known::default() })
        };
        let verdict = judged(&[3].into(), &moving(&[0, 1, 2, 3], &[3]), &[], false);
        let why = "broker 3 holds data of 1 partition (t-0)";
        assert_eq!((verdict.check, verdict.kept_because.as_deref()), (Check::HasData, Some(why)), "it still has it");
        // Something else moves, from 0 to 1, of what has three replicas.
        assert_eq!(judged(&[3].into(), &moving(&[0, 1, 2, 3], &[0]), &[], false).check, Check::HasData);
        // What gets a fourth replica has nowhere to go.
        assert_eq!(judged(&[3].into(), &moving(&[0, 1, 2, 3], &[]), &[], false).check, Check::Stuck);
    }

    #[test]
    fn who_cannot_be_asked_keeps_everything() {
        for metadata in [Metadata::Nobody, Metadata::Unreachable("gone".into()), Metadata::Known(Known::default())] {
            let verdict = judged(&[3].into(), &metadata, &[], false);
            assert_eq!(verdict.check, Check::Unknown);
            assert!(verdict.kept_because.is_some());
            assert_eq!(judged(&Ids::new(), &metadata, &[], false), Verdict::default());
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
        let verdict = judged(&[3].into(), &known(&[&[0, 1]]), &[drain], false);
        assert_eq!(verdict.check, Check::Clear);
        assert!(verdict.kept_because.is_some());
    }
}
