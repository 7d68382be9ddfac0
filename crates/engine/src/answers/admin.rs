//! `admin`: what is to be changed, and what is said about it.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_kafka::BrokerId;
use evenkeel_rest::{
    Failure,
    body::AdminAnswer,
    parameter::{AdjusterType, AnomalyType},
    request,
};

use crate::{executor::Adjustment, journal::History};

/// What is to be done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AdminPlan {
    /// New limits of the run that is under way.
    pub adjustment: Adjustment,
    /// Brokers whose removal is to be forgotten.
    pub removed: BTreeSet<BrokerId>,
    /// Brokers whose demotion is to be forgotten.
    pub demoted: BTreeSet<BrokerId>,
    /// Anomalies that are, or are no longer, to be mended unasked.
    pub healing: BTreeMap<AnomalyType, bool>,
    adjusters: BTreeSet<AdjusterType>,
    limit_lines: String,
    min_isr: bool,
}

/// What was found when it was done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AdminSeen {
    /// Which anomalies of the plan were mended unasked before.
    pub healing_before: BTreeMap<AnomalyType, bool>,
    /// Which of them are now: whoever never mends anything is not made to.
    pub healing_after: BTreeMap<AnomalyType, bool>,
    /// Brokers removed and demoted before and after, if any were to be forgotten.
    pub history: Option<(History, History)>,
}

impl AdminPlan {
    /// What the request comes to. No limit may reach `ceiling`. Limits are not adjusted by themselves here: whoever
    /// wants them to be is told so, whoever does not gets what he wants.
    pub fn of(asked: &request::Admin, ceiling: usize) -> Result<AdminPlan, Failure> {
        if let Some(wanted) = asked.enable_concurrency_adjuster_for.first() {
            return Err(not_built(&format!("Adjusting the concurrency of {wanted}")));
        }
        if asked.disable_concurrency_adjuster_for.contains(&AdjusterType::IntraBrokerReplica) {
            return Err(not_built("Adjusting the concurrency of INTRA_BROKER_REPLICA"));
        }
        if asked.min_isr_based_concurrency_adjustment == Some(true) {
            return Err(not_built("MinISR-based concurrency adjustment"));
        }
        let mut limits = Limits { ceiling, lines: String::new() };
        let adjustment = Adjustment {
            per_broker: limits.take(
                "concurrent_partition_movements_per_broker",
                "INTER_BROKER_REPLICA",
                asked.concurrent_partition_movements_per_broker,
            )?,
            dirs_per_broker: limits.take(
                "concurrent_intra_broker_partition_movements",
                "INTRA_BROKER_REPLICA",
                asked.concurrent_intra_broker_partition_movements,
            )?,
            leaders_in_cluster: limits.take(
                "concurrent_leader_movements",
                "LEADERSHIP_CLUSTER",
                asked.concurrent_leader_movements,
            )?,
            leaders_per_broker: limits.take(
                "broker_concurrent_leader_movements",
                "LEADERSHIP_BROKER",
                asked.broker_concurrent_leader_movements,
            )?,
            in_cluster: limits.take_up_to(
                "max_partition_movements_in_cluster",
                "max inter-broker partition movements",
                asked.max_partition_movements_in_cluster,
            )?,
        };
        let mut limit_lines = limits.lines;
        // How far an execution is, is looked at as often as can be anyway.
        if let Some(interval) = asked.execution_progress_check_interval_ms {
            let interval = u64::try_from(interval).unwrap_or(0);
            limit_lines += &AdminAnswer::concurrency_line("execution_progress_check_interval_ms", interval);
        }
        let ids = |brokers: &BTreeSet<i32>| brokers.iter().copied().map(BrokerId).collect();
        let switched = |anomalies: &BTreeSet<AnomalyType>, on: bool| {
            anomalies.iter().map(move |anomaly| (*anomaly, on)).collect::<Vec<_>>()
        };
        let healing =
            [switched(&asked.enable_self_healing_for, true), switched(&asked.disable_self_healing_for, false)];
        Ok(AdminPlan {
            adjustment,
            removed: ids(&asked.drop_recently_removed_brokers),
            demoted: ids(&asked.drop_recently_demoted_brokers),
            healing: healing.concat().into_iter().collect(),
            adjusters: asked.disable_concurrency_adjuster_for.clone(),
            limit_lines,
            min_isr: asked.min_isr_based_concurrency_adjustment.is_some(),
        })
    }

    /// Whether brokers are to be forgotten.
    pub fn forgets_brokers(&self) -> bool {
        !self.removed.is_empty() || !self.demoted.is_empty()
    }

    /// The answer, once it is done.
    pub fn answer(&self, seen: &AdminSeen) -> AdminAnswer {
        let never = |them: &BTreeSet<AdjusterType>| them.iter().map(|it| (*it, false)).collect();
        let lines = Some(self.limit_lines.clone()).filter(|lines| !lines.is_empty());
        AdminAnswer {
            self_healing_enabled_before: seen.healing_before.clone(),
            self_healing_enabled_after: seen.healing_after.clone(),
            concurrency_adjuster_enabled_before: never(&self.adjusters),
            concurrency_adjuster_enabled_after: never(&self.adjusters),
            ongoing_concurrency_change_request: lines,
            drop_recent_brokers_request: seen.history.as_ref().map(|(before, after)| self.dropped(before, after)),
            min_isr_based_concurrency_adjustment_request: self.min_isr.then(|| AdminAnswer::min_isr_line(false, false)),
            ..AdminAnswer::default()
        }
    }

    fn dropped(&self, before: &History, after: &History) -> String {
        let ids = |brokers: &BTreeMap<BrokerId, i64>| brokers.keys().map(|broker| broker.0).collect::<Vec<_>>();
        let line = |name: &str, asked: &BTreeSet<BrokerId>, before, after| {
            let asked: Vec<i32> = asked.iter().map(|broker| broker.0).collect();
            if asked.is_empty() {
                String::new()
            } else {
                AdminAnswer::dropped_line(name, &asked, &ids(before), &ids(after))
            }
        };
        line("removed", &self.removed, &before.removed, &after.removed)
            + &line("demoted", &self.demoted, &before.demoted, &after.demoted)
    }
}

struct Limits {
    ceiling: usize,
    lines: String,
}

impl Limits {
    /// One that must stay below the ceiling.
    fn take(&mut self, parameter: &str, name: &str, asked: Option<u32>) -> Result<Option<usize>, Failure> {
        self.within(self.ceiling.saturating_sub(1), parameter, name, asked)
    }

    /// One that may be the ceiling itself.
    fn take_up_to(&mut self, parameter: &str, name: &str, asked: Option<u32>) -> Result<Option<usize>, Failure> {
        self.within(self.ceiling, parameter, name, asked)
    }

    fn within(
        &mut self,
        most: usize,
        parameter: &str,
        name: &str,
        asked: Option<u32>,
    ) -> Result<Option<usize>, Failure> {
        let Some(asked) = asked else { return Ok(None) };
        let limit = usize::try_from(asked).unwrap_or(usize::MAX);
        if limit > most {
            let ceiling = u32::try_from(self.ceiling).unwrap_or(u32::MAX);
            return Err(Failure::concurrency_too_high(name, asked, ceiling));
        }
        self.lines += &AdminAnswer::concurrency_line(parameter, u64::from(asked));
        Ok(Some(limit))
    }
}

fn not_built(what: &str) -> Failure {
    Failure::new(format!("{what} is not supported by this engine yet."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> request::Admin {
        request::Admin::default()
    }

    #[test]
    fn limits_are_set_and_said_but_never_too_high() {
        let some = request::Admin {
            concurrent_partition_movements_per_broker: Some(7),
            execution_progress_check_interval_ms: Some(1500),
            ..asked()
        };
        let plan = AdminPlan::of(&some, 1250).unwrap();
        assert_eq!(plan.adjustment, Adjustment { per_broker: Some(7), ..Adjustment::default() });
        assert_eq!(
            plan.answer(&AdminSeen::default()).ongoing_concurrency_change_request.unwrap(),
            "Inter-broker partition movement concurrency is set to 7\nExecution progress check interval is set to 1500Ms\n"
        );
        let all = request::Admin { max_partition_movements_in_cluster: Some(1250), ..asked() };
        assert_eq!(AdminPlan::of(&all, 1250).unwrap().adjustment.in_cluster, Some(1250));
        let more = request::Admin { max_partition_movements_in_cluster: Some(1251), ..asked() };
        assert!(AdminPlan::of(&more, 1250).is_err());
        let much = request::Admin { concurrent_partition_movements_per_broker: Some(99_999), ..asked() };
        assert_eq!(
            AdminPlan::of(&much, 1250).unwrap_err().to_string(),
            "Attempt to set INTER_BROKER_REPLICA concurrency [99999] to greater than or equal to the maximum number of \
             allowed movements in cluster [1250]."
        );
    }

    #[test]
    fn what_is_forgotten_is_said_in_the_original_s_words() {
        let some = request::Admin {
            drop_recently_removed_brokers: [1, 2].into(),
            drop_recently_demoted_brokers: [0].into(),
            ..asked()
        };
        let plan = AdminPlan::of(&some, 1250).unwrap();
        assert!(plan.forgets_brokers());
        let before = History { demoted: [(BrokerId(0), 5)].into(), ..History::default() };
        let seen = AdminSeen { history: Some((before, History::default())), ..AdminSeen::default() };
        assert_eq!(
            plan.answer(&seen).drop_recent_brokers_request.unwrap(),
            "None of the brokers to drop ([1, 2]) are in the recently removed broker set ([]).\n\
             Dropped recently demoted brokers (requested: [0] after-dropping: []).\n"
        );
    }

    #[test]
    fn healing_is_switched_both_ways() {
        let some = request::Admin {
            enable_self_healing_for: [AnomalyType::BrokerFailure].into(),
            disable_self_healing_for: [AnomalyType::GoalViolation].into(),
            ..asked()
        };
        let plan = AdminPlan::of(&some, 1250).unwrap();
        let wanted = BTreeMap::from([(AnomalyType::BrokerFailure, true), (AnomalyType::GoalViolation, false)]);
        assert_eq!(plan.healing, wanted);
        let seen = AdminSeen { healing_after: wanted.clone(), ..AdminSeen::default() };
        assert_eq!(plan.answer(&seen).self_healing_enabled_after, wanted);
    }

    #[test]
    fn what_is_not_built_is_refused_only_if_it_is_wanted() {
        let on = |some: request::Admin| AdminPlan::of(&some, 1250).is_err();
        let one: BTreeSet<AdjusterType> = [AdjusterType::InterBrokerReplica].into();
        assert!(on(request::Admin { enable_concurrency_adjuster_for: one.clone(), ..asked() }));
        assert!(on(request::Admin { min_isr_based_concurrency_adjustment: Some(true), ..asked() }));
        let off = request::Admin {
            disable_concurrency_adjuster_for: one.clone(),
            min_isr_based_concurrency_adjustment: Some(false),
            ..asked()
        };
        let answer = AdminPlan::of(&off, 1250).unwrap().answer(&AdminSeen::default());
        assert_eq!(answer.concurrency_adjuster_enabled_after, [(AdjusterType::InterBrokerReplica, false)].into());
        assert!(answer.min_isr_based_concurrency_adjustment_request.unwrap().contains("after: false"));
    }
}
