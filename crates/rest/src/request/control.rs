//! Requests that steer the engine itself.

use std::collections::BTreeSet;

use super::Consistent;
use crate::parameter::{Adjusters, Anomalies, BrokerIds, Concurrency, Flag, Millis, ReviewId, Text, parameters};

parameters! {
    /// `stop_proposal_execution`: make no further move, and take back those under way.
    pub struct StopProposalExecution {
        optional {
            /// Why.
            reason: Text,
            /// Refused: there is no two-step verification.
            review_id: ReviewId,
        }
        defaults {
            /// Accepted, without effect: a stop is as quick as it can be without it.
            force_stop: Flag = false,
            /// Whether moves that other tools began are taken back too.
            stop_external_agent: Flag = true,
        }
    }
}

parameters! {
    /// `pause_sampling`: measure nothing for a while.
    pub struct PauseSampling {
        optional {
            /// Why.
            reason: Text,
            /// Refused: there is no two-step verification.
            review_id: ReviewId,
        }
    }
}

parameters! {
    /// `resume_sampling`: measure again.
    pub struct ResumeSampling {
        optional {
            /// Why.
            reason: Text,
            /// Refused: there is no two-step verification.
            review_id: ReviewId,
        }
    }
}

parameters! {
    /// `admin`: change settings while running.
    pub struct Admin {
        optional {
            /// Refused if true: limits are not adjusted by themselves.
            min_isr_based_concurrency_adjustment: Flag,
            /// Moves between brokers at a time for each broker.
            concurrent_partition_movements_per_broker: Concurrency,
            /// Moves between disks at a time for each broker.
            concurrent_intra_broker_partition_movements: Concurrency,
            /// Leadership moves at a time in the cluster.
            concurrent_leader_movements: Concurrency,
            /// Leadership moves at a time for each broker.
            broker_concurrent_leader_movements: Concurrency,
            /// Moves between brokers at a time in the cluster.
            max_partition_movements_in_cluster: Concurrency,
            /// Accepted, without effect: progress is looked at as often as needed.
            execution_progress_check_interval_ms: Millis,
            /// Why.
            reason: Text,
            /// Refused: there is no two-step verification.
            review_id: ReviewId,
        }
        defaults {
            /// Anomalies that are no longer to be fixed automatically.
            disable_self_healing_for: Anomalies = BTreeSet::new(),
            /// Anomalies that are to be fixed automatically.
            enable_self_healing_for: Anomalies = BTreeSet::new(),
            /// Accepted, without effect: limits are not adjusted anyway. `INTRA_BROKER_REPLICA` is refused.
            disable_concurrency_adjuster_for: Adjusters = BTreeSet::new(),
            /// Refused: limits are not adjusted by themselves.
            enable_concurrency_adjuster_for: Adjusters = BTreeSet::new(),
            /// Brokers to forget the removal of.
            drop_recently_removed_brokers: BrokerIds = BTreeSet::new(),
            /// Brokers to forget the demotion of.
            drop_recently_demoted_brokers: BrokerIds = BTreeSet::new(),
        }
    }
}

impl Consistent for StopProposalExecution {}
impl Consistent for PauseSampling {}
impl Consistent for ResumeSampling {}

impl Consistent for Admin {
    fn contradiction(&self) -> Option<String> {
        in_both("anomaly", &self.disable_self_healing_for, &self.enable_self_healing_for)
            .or_else(|| {
                let (off, on) = (&self.disable_concurrency_adjuster_for, &self.enable_concurrency_adjuster_for);
                in_both("concurrency type", off, on)
            })
            .or_else(|| self.asks_nothing().then(|| "Nothing executable found in request.".to_owned()))
    }
}

impl Admin {
    /// Whether there is nothing but a reason in it.
    fn asks_nothing(&self) -> bool {
        let empty = Self { reason: self.reason.clone(), review_id: self.review_id, ..Self::default() };
        *self == empty
    }
}

fn in_both<T: Ord + ToString>(what: &str, off: &BTreeSet<T>, on: &BTreeSet<T>) -> Option<String> {
    let both: Vec<String> = off.intersection(on).map(T::to_string).collect();
    (!both.is_empty()).then(|| {
        let both = both.join(", ");
        format!("The same {what} cannot be specified in both disable and enable parameters. Intersection: [{both}].")
    })
}
