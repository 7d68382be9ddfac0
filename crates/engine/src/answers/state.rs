//! `state`: only the parts that are asked for are looked at.

use evenkeel_rest::{
    body::state::{
        AnalyzerState, AnomalyDetectorState, Completeness, ExecutorState, GoalReadiness, MonitorState, Readiness, State,
    },
    json::Version,
    parameter::Substate,
    request,
};

/// Where the parts come from; each is told whether details are wanted, and asked only if it is.
#[derive(Debug)]
pub struct Parts<A, M, E, D> {
    /// What can be planned.
    pub analyzer: A,
    /// What is known of the loads.
    pub monitor: M,
    /// What is being carried out.
    pub executor: E,
    /// What is wrong with the cluster.
    pub detector: D,
}

/// The answer. The original's `super_verbose` adds nothing to JSON; here it means `verbose`.
pub fn state<A, M, E, D>(asked: &request::State, parts: Parts<A, M, E, D>) -> State
where
    A: FnOnce(bool) -> AnalyzerState,
    M: FnOnce(bool) -> MonitorState,
    E: FnOnce(bool) -> ExecutorState,
    D: FnOnce() -> AnomalyDetectorState,
{
    let wanted = |part: Substate| asked.substates.is_empty() || asked.substates.contains(&part);
    let verbose = asked.verbose || asked.super_verbose;
    State {
        analyzer_state: wanted(Substate::Analyzer).then(|| (parts.analyzer)(verbose)),
        monitor_state: wanted(Substate::Monitor).then(|| (parts.monitor)(verbose)),
        executor_state: wanted(Substate::Executor).then(|| (parts.executor)(verbose)),
        anomaly_detector_state: wanted(Substate::AnomalyDetector).then(parts.detector),
        version: Version,
    }
}

/// A goal, what it needs, and whether that is known.
#[derive(Debug, Clone, PartialEq)]
pub struct GoalSeen {
    /// Its short name.
    pub name: String,
    /// Windows that it needs.
    pub windows: u64,
    /// The share of partitions that it needs, from 0 to 1.
    pub share: f64,
    /// Whether topics count of which not enough is known.
    pub all_topics: bool,
    /// Whether what it needs is known.
    pub ready: bool,
}

/// What can be planned.
pub fn analyzer_state(goals: &[GoalSeen], is_proposal_ready: bool, verbose: bool) -> AnalyzerState {
    let readiness = |goal: &GoalSeen| GoalReadiness {
        status: if goal.ready { Readiness::Ready } else { Readiness::NotReady },
        name: goal.name.clone(),
        model_complete_requirement: Completeness {
            include_all_topics: goal.all_topics,
            min_monitored_partitions_percentage: goal.share.into(),
            required_num_snapshots: goal.windows,
        },
    };
    AnalyzerState {
        is_proposal_ready,
        ready_goals: goals.iter().filter(|goal| goal.ready).map(|goal| goal.name.clone()).collect(),
        goal_readiness: verbose.then(|| goals.iter().map(readiness).collect()),
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_rest::body::state::MonitorPhase;

    use super::*;

    fn answered(asked: &request::State) -> State {
        let monitor = MonitorState {
            state: MonitorPhase::Running,
            figures: None,
            reason_of_latest_pause_or_resume: None,
            bootstrap_progress_pct: None,
            loading_progress_pct: None,
            error: None,
        };
        let goals = [("A", true), ("B", false)].map(|(name, ready)| GoalSeen {
            name: name.into(),
            windows: 1,
            share: 0.5,
            all_topics: true,
            ready,
        });
        let parts = Parts {
            analyzer: |verbose| analyzer_state(&goals, true, verbose),
            monitor: |_| monitor,
            executor: |_| ExecutorState::default(),
            detector: AnomalyDetectorState::default,
        };
        state(asked, parts)
    }

    #[test]
    fn only_what_is_asked_for_is_there() {
        let all = answered(&request::State::default());
        assert!(all.analyzer_state.is_some() && all.monitor_state.is_some());
        assert!(all.executor_state.is_some() && all.anomaly_detector_state.is_some());
        let one = request::State { substates: [Substate::Executor].into(), ..Default::default() };
        let some = answered(&one);
        assert!(some.analyzer_state.is_none() && some.monitor_state.is_none() && some.executor_state.is_some());
    }

    #[test]
    fn details_of_goals_come_with_verbose() {
        let plain = answered(&request::State::default()).analyzer_state.unwrap();
        assert_eq!((plain.ready_goals, plain.goal_readiness), (vec!["A".to_owned()], None));
        for asked in [
            request::State { verbose: true, ..Default::default() },
            request::State { super_verbose: true, ..Default::default() },
        ] {
            let detailed = answered(&asked).analyzer_state.unwrap().goal_readiness.unwrap();
            assert_eq!(detailed[1].status, Readiness::NotReady);
        }
    }
}
