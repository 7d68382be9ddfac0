//! How far a rebalance has come: three keys of its ConfigMap, and `brokerProgress.json`, which comes and goes with
//! `executorState` where our engine is asked.
//!
//! | state | `estimatedTimeToCompletionInMinutes` | `completedByteMovementPercentage` | `executorState` |
//! |---|---|---|---|
//! | New, PendingProposal | – | – | – |
//! | ProposalReady | – | 0 | – |
//! | Rebalancing | computed, once something has moved | computed | as the engine says |
//! | Stopped, NotReady | – | as before | as before |
//! | Ready | 0 | 100 | – |

use std::collections::BTreeMap;
use std::time::Duration;

use evenkeel_api::rebalance::RebalanceState;
use evenkeel_rest::body::state::{ExecutorState, Phase};
use evenkeel_rest::{json, reason};
use jiff::Timestamp;

const MINUTES: &str = "estimatedTimeToCompletionInMinutes";
const PERCENT: &str = "completedByteMovementPercentage";
const EXECUTOR: &str = "executorState";
const BROKERS: &str = "brokerProgress.json";

/// What the executor's state says about the progress of its run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Progress {
    /// None: this phase moves no data, so what was moved before stays true.
    percent: Option<u64>,
    /// None: nothing has moved yet, so nobody can say.
    minutes: Option<u64>,
    executor: String,
    /// What each broker receives: nobody anything, if only leaders change. None: the engine does not say.
    brokers: Option<String>,
}

impl Progress {
    /// Of the run that the executor is busy with. `began` is when its task came, for engines that do not say it;
    /// `tells_of_brokers`: whether it was asked what each broker receives.
    pub(super) fn of(
        executor: &ExecutorState,
        began: Option<Timestamp>,
        tells_of_brokers: bool,
        now: Timestamp,
    ) -> Self {
        let stamped = executor.trigger.as_ref().and_then(|trigger| reason::date_of(&trigger.triggered_task_reason));
        let elapsed = stamped.or(began).map(|start| now.duration_since(start).as_secs_f64());
        let bytes = Bytes::of(executor);
        Self {
            percent: bytes.as_ref().map(Bytes::percent),
            minutes: bytes.zip(elapsed).and_then(|(bytes, elapsed)| bytes.minutes_left(elapsed)),
            // As the original says it: what ours adds has a key of its own.
            executor: json::to_string(&ExecutorState { broker_progress: BTreeMap::new(), ..executor.clone() }),
            brokers: tells_of_brokers.then(|| json::to_string(&executor.broker_progress)),
        }
    }
}

/// How long a run will still take that the executor has worked on for so long, if anybody can say.
pub(super) fn left(executor: &ExecutorState, ran: Duration) -> Option<Duration> {
    match (&executor.phase, Bytes::of(executor)) {
        // It comes last, and takes no time to speak of.
        (Phase::Leadership(_), _) => Some(Duration::ZERO),
        (_, bytes) => {
            let seconds = bytes?.seconds_left(ran.as_secs_f64())?;
            Duration::try_from_secs_f64(seconds).ok()
        }
    }
}

/// Megabytes moved, and to move.
struct Bytes {
    moved: u64,
    total: u64,
    all_done: bool,
}

impl Bytes {
    /// None: this phase moves no data. The original goes through all of them, also through those without a move.
    fn of(executor: &ExecutorState) -> Option<Self> {
        let (moved, total, finished, moves) = match &executor.phase {
            Phase::InterBroker(moves) => (
                moves.finished_data_movement,
                moves.total_data_to_move,
                moves.num_finished_partition_movements,
                moves.num_total_partition_movements,
            ),
            Phase::IntraBroker(moves) => (
                moves.finished_intra_broker_data_movement,
                moves.total_intra_broker_data_to_move,
                moves.num_finished_intra_broker_partition_movements,
                moves.num_total_intra_broker_partition_movements,
            ),
            // Leaderships weigh nothing, and a run that begins or stops has no totals.
            _ => return None,
        };
        (moves > 0 || total > 0).then_some(Self { moved, total, all_done: finished == moves })
    }

    /// Rounded down, and never beyond 100: the totals are estimates.
    fn percent(&self) -> u64 {
        match self.total {
            // Topics without a megabyte: only the moves can be counted.
            0 => u64::from(self.all_done) * 100,
            total => (u128::from(self.moved) * 100 / u128::from(total)).min(100) as u64,
        }
    }

    /// At the average rate so far.
    fn seconds_left(&self, elapsed: f64) -> Option<f64> {
        if self.moved == 0 || elapsed <= 0.0 {
            return None;
        }
        let left = self.total.saturating_sub(self.moved) as f64;
        Some(left * elapsed / self.moved as f64)
    }

    /// The same, rounded to the nearest minute.
    fn minutes_left(&self, elapsed: f64) -> Option<u64> {
        Some((self.seconds_left(elapsed)? / 60.0).round() as u64)
    }
}

/// The percentage that was written last.
pub(super) fn last_percent(data: &BTreeMap<String, String>) -> Option<&str> {
    data.get(PERCENT).map(String::as_str)
}

/// Brings the keys to what they should be in a state. `report`: news from the executor; without any, what
/// was written while rebalancing stays.
pub(super) fn write(data: &mut BTreeMap<String, String>, state: RebalanceState, report: Option<&Progress>) {
    match state {
        RebalanceState::New | RebalanceState::PendingProposal => {
            for key in [MINUTES, PERCENT, EXECUTOR, BROKERS] {
                data.remove(key);
            }
        }
        RebalanceState::ProposalReady => {
            data.remove(MINUTES);
            data.remove(EXECUTOR);
            data.remove(BROKERS);
            data.insert(PERCENT.to_owned(), "0".to_owned());
        }
        RebalanceState::Rebalancing => {
            if let Some(report) = report {
                match report.minutes {
                    Some(minutes) => data.insert(MINUTES.to_owned(), minutes.to_string()),
                    None => data.remove(MINUTES),
                };
                if let Some(percent) = report.percent {
                    data.insert(PERCENT.to_owned(), percent.to_string());
                }
                data.insert(EXECUTOR.to_owned(), report.executor.clone());
                if let Some(brokers) = &report.brokers {
                    data.insert(BROKERS.to_owned(), brokers.clone());
                }
            }
            data.entry(PERCENT.to_owned()).or_insert_with(|| "0".to_owned());
        }
        RebalanceState::Stopped | RebalanceState::NotReady => {
            data.remove(MINUTES);
        }
        RebalanceState::Ready => {
            data.insert(MINUTES.to_owned(), "0".to_owned());
            data.insert(PERCENT.to_owned(), "100".to_owned());
            data.remove(EXECUTOR);
            data.remove(BROKERS);
        }
        RebalanceState::ReconciliationPaused => {}
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_rest::body::state::{BrokerProgress, InterBroker, IntraBroker, Leadership, Stopping, Trigger};
    use evenkeel_rest::json::Key;

    use super::*;

    const START: &str = "2026-01-01T00:00:00Z";

    fn at(seconds: i64) -> Timestamp {
        let start: Timestamp = START.parse().unwrap();
        Timestamp::from_second(start.as_second() + seconds).unwrap()
    }

    fn executor(phase: Phase) -> ExecutorState {
        let trigger = Trigger {
            triggered_task_reason: format!("evenkeel-1-2 (Client: 10.0.0.1, Date: {START})"),
            ..Trigger::default()
        };
        ExecutorState { phase, trigger: Some(trigger), ..ExecutorState::default() }
    }

    fn between_brokers(total: u64, moved: u64) -> ExecutorState {
        executor(Phase::InterBroker(InterBroker {
            total_data_to_move: total,
            finished_data_movement: moved,
            num_total_partition_movements: 2,
            num_finished_partition_movements: 1,
            ..Default::default()
        }))
    }

    /// After a minute, told by an engine of ours.
    fn of(executor: &ExecutorState) -> Progress {
        Progress::of(executor, None, true, at(60))
    }

    fn minutes(seconds: i64, total: u64, moved: u64) -> Option<u64> {
        Progress::of(&between_brokers(total, moved), None, true, at(seconds)).minutes
    }

    #[test]
    fn the_time_left_is_what_the_average_rate_says() {
        const DAY: i64 = 24 * 3600;
        for (seconds, total, moved, expected) in [
            (1, 1000, 10, 2),
            (60, 1000, 10, 99),
            (60, 1000, 500, 1),
            (60, 1_000_000, 100, 9999),
            (60, 1000, 990, 0),
            (1000, 2_147_483_647, 1_073_741_823, 17),
            (1000, 1000, 10, 1650),
            (3600, 1, 1, 0),
            (30 * DAY, 1000, 500, 43_200),
            (2, 10_000, 250, 1),
        ] {
            assert_eq!(minutes(seconds, total, moved), Some(expected), "{seconds} s, {moved} of {total}");
        }
    }

    #[test]
    fn nobody_can_say_before_something_has_moved_or_when_clocks_disagree() {
        assert_eq!(minutes(60, 1000, 0), None);
        assert_eq!(minutes(0, 1000, 10), None);
        assert_eq!(minutes(-5, 1000, 10), None);
        assert_eq!(minutes(60, 10, 20), Some(0), "more moved than planned");
        assert_eq!(minutes(60, 0, 0), None);
    }

    #[test]
    fn the_percentage_is_rounded_down_and_stays_within_bounds() {
        let percent = |total, moved| of(&between_brokers(total, moved)).percent;
        for (total, moved, expected) in
            [(100, 50, 50), (100, 0, 0), (100, 100, 100), (0, 0, 0), (10_000, 250, 2), (1000, 999, 99), (10, 20, 100)]
        {
            assert_eq!(percent(total, moved), Some(expected), "{moved} of {total}");
        }
        assert_eq!(percent(u64::MAX, u64::MAX), Some(100));
        let ended = InterBroker {
            num_total_partition_movements: 2,
            num_finished_partition_movements: 2,
            ..InterBroker::default()
        };
        let ended = executor(Phase::InterBroker(ended));
        assert_eq!(of(&ended).percent, Some(100), "no megabytes, and no moves left");
    }

    /// Every run of the original passes the moves between brokers, also one that has none.
    #[test]
    fn a_phase_in_which_nothing_is_to_be_moved_says_nothing() {
        let none = [Phase::InterBroker(InterBroker::default()), Phase::IntraBroker(IntraBroker::default())];
        for phase in none {
            let news = of(&executor(phase));
            assert_eq!((news.percent, news.minutes), (None, None));
            let written = |before: &[(&str, &str)]| {
                let data: BTreeMap<_, _> =
                    written(RebalanceState::Rebalancing, before, Some(&news)).into_iter().collect();
                data[PERCENT].clone()
            };
            assert_eq!((written(&[]), written(&[(PERCENT, "40")])), ("0".to_owned(), "40".to_owned()));
        }
    }

    #[test]
    fn moves_between_disks_have_counters_of_their_own() {
        let moves = IntraBroker {
            total_intra_broker_data_to_move: 1000,
            finished_intra_broker_data_movement: 500,
            ..Default::default()
        };
        let progress = of(&executor(Phase::IntraBroker(moves)));
        assert_eq!((progress.percent, progress.minutes), (Some(50), Some(1)));
    }

    #[test]
    fn the_start_is_the_date_of_the_reason_or_else_the_tasks() {
        let mut without = between_brokers(1000, 500);
        without.trigger.as_mut().unwrap().triggered_task_reason = "by hand".to_owned();
        assert_eq!(of(&without).minutes, None);
        assert_eq!(Progress::of(&without, Some(at(0)), true, at(60)).minutes, Some(1));
        assert_eq!(Progress::of(&between_brokers(1000, 500), Some(at(50)), true, at(60)).minutes, Some(1));
    }

    fn written(state: RebalanceState, before: &[(&str, &str)], report: Option<&Progress>) -> Vec<(String, String)> {
        let mut data = before.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        write(&mut data, state, report);
        data.into_iter().collect()
    }

    fn keys(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        expected.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn each_state_has_the_keys_that_the_table_gives_it() {
        let before = [(PERCENT, "40"), (MINUTES, "7"), (EXECUTOR, "{}"), ("brokerLoad.json", "{}")];
        let load = ("brokerLoad.json", "{}");
        assert_eq!(written(RebalanceState::New, &before, None), keys(&[load]));
        assert_eq!(written(RebalanceState::PendingProposal, &before, None), keys(&[load]));
        assert_eq!(written(RebalanceState::ProposalReady, &before, None), keys(&[load, (PERCENT, "0")]));
        for ended in [RebalanceState::Stopped, RebalanceState::NotReady] {
            assert_eq!(written(ended, &before, None), keys(&[load, (PERCENT, "40"), (EXECUTOR, "{}")]));
            assert_eq!(written(ended, &[load], None), keys(&[load]), "absent if never set");
        }
        assert_eq!(written(RebalanceState::Ready, &before, None), keys(&[load, (PERCENT, "100"), (MINUTES, "0")]));
        let mut same = keys(&before);
        same.sort();
        assert_eq!(written(RebalanceState::Rebalancing, &before, None), same, "no news: as it was");
        assert_eq!(written(RebalanceState::ReconciliationPaused, &before, None), same);
    }

    #[test]
    fn news_replace_what_was_written() {
        let news = Progress { percent: Some(50), minutes: Some(3), executor: "{1}".to_owned(), brokers: None };
        assert_eq!(
            written(RebalanceState::Rebalancing, &[(PERCENT, "40"), (MINUTES, "7")], Some(&news)),
            keys(&[(PERCENT, "50"), (MINUTES, "3"), (EXECUTOR, "{1}")])
        );
    }

    #[test]
    fn what_each_broker_receives_has_a_key_of_its_own() {
        let share = BrokerProgress { finished_data_movement: 3, total_data_to_move: 7 };
        let mut told = between_brokers(1000, 500);
        told.broker_progress = [(Key(2), share)].into();
        let news = of(&told);
        let data: BTreeMap<_, _> = written(RebalanceState::Rebalancing, &[], Some(&news)).into_iter().collect();
        assert_eq!(data[BROKERS], r#"{"2":{"finishedDataMovement":3,"totalDataToMove":7}}"#);
        assert!(!data[EXECUTOR].contains("brokerProgress"));
        assert_eq!(of(&between_brokers(1000, 500)).brokers.as_deref(), Some("{}"), "nobody receives anything");
        assert_eq!(Progress::of(&told, None, false, at(60)).brokers, None, "it was not asked");
        let before = [(BROKERS, "{}")];
        for (state, kept) in
            [(RebalanceState::Stopped, true), (RebalanceState::Ready, false), (RebalanceState::ProposalReady, false)]
        {
            assert_eq!(written(state, &before, None).iter().any(|(key, _)| key == BROKERS), kept, "{state}");
        }
    }

    #[test]
    fn leaderships_weigh_nothing_and_keep_what_was_moved_before() {
        for phase in [
            Phase::Leadership(Leadership::default()),
            Phase::Starting,
            Phase::Generating,
            Phase::Stopping(Stopping::default()),
            Phase::Unknown,
        ] {
            let news = Progress::of(&executor(phase), None, false, at(60));
            let data = written(RebalanceState::Rebalancing, &[(PERCENT, "40"), (MINUTES, "7")], Some(&news));
            assert_eq!(data[0], (PERCENT.to_owned(), "40".to_owned()));
            assert!(!data.iter().any(|(key, _)| key == MINUTES));
            let only = written(RebalanceState::Rebalancing, &[], Some(&news));
            assert_eq!(only[0], (PERCENT.to_owned(), "0".to_owned()), "0 until Ready");
        }
    }
}
