//! What goes wrong after a request was understood, in the words that clients match on. They are chains of Java class
//! names because that is what the original prints; [`Failure::sort`] reads them back, for the client.

use std::fmt::{self, Display};

use uuid::Uuid;

use crate::endpoint::Endpoint;

const WRAPPER: &str = "com.linkedin.kafka.cruisecontrol.exception.KafkaCruiseControlException";
const NOT_ENOUGH_WINDOWS: &str = "com.linkedin.cruisecontrol.exception.NotEnoughValidWindowsException";
const OPTIMIZATION_FAILURE: &str = "com.linkedin.kafka.cruisecontrol.exception.OptimizationFailureException";
const ILLEGAL_ARGUMENT: &str = "java.lang.IllegalArgumentException";
const ILLEGAL_STATE: &str = "java.lang.IllegalStateException";
/// What every refusal of a proposal that is no longer what it was begins with.
const PROPOSAL_OUTDATED: &str = "The proposal cannot be carried out as it was approved";

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What stands between the quotes of the error text.
    text: String,
    blame: Blame,
}

/// What has to change before the same request could work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Blame {
    /// Something, and somebody has to see to it.
    Somebody,
    /// Nothing was begun, and it passes without anybody doing anything about it.
    Nobody,
    /// The request itself.
    Request,
}

/// What a client makes of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// Loads are not known well enough yet; they will be.
    NotEnoughData,
    /// Something is being carried out; this has to wait for it.
    Busy,
    /// A broker that was named is not there.
    MissingBroker,
    /// As many tasks as there may be at a time.
    TasksExhausted,
    /// The approved proposal is unknown, or the cluster has changed too much for it.
    ProposalOutdated,
    /// Anything else.
    Other,
}

impl Failure {
    /// A failure in words of its own.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), blame: Blame::Somebody }
    }

    fn thrown(class: &str, text: impl Display) -> Self {
        Self::new(format!("{class}: {text}"))
    }

    fn wrapped(class: &str, text: impl Display) -> Self {
        Self::new(format!("{WRAPPER}: {class}: {text}"))
    }

    /// Something about the request cannot be; found while working on it.
    pub fn illegal_argument(text: impl Display) -> Self {
        Self::wrapped(ILLEGAL_ARGUMENT, text)
    }

    /// The cluster or the engine is in no state for it.
    pub fn illegal_state(text: impl Display) -> Self {
        Self::wrapped(ILLEGAL_STATE, text)
    }

    /// The same, and it will pass: nothing was begun, and whoever asks again later may be lucky. Told apart by its
    /// status, 503, and not by its text.
    pub fn not_now(text: impl Display) -> Self {
        Self { blame: Blame::Nobody, ..Self::illegal_state(text) }
    }

    /// The request asks for what this cluster does not have: the original's `UserRequestException`, told apart by its status,
    /// 400, and by the words around its text.
    pub fn bad_request(text: impl Display) -> Self {
        Self { blame: Blame::Request, ..Self::new(text.to_string()) }
    }

    /// Whether nothing was begun and the same request may work later.
    pub fn passes(&self) -> bool {
        self.blame == Blame::Nobody
    }

    /// Whether the request itself is to blame.
    pub fn is_bad_request(&self) -> bool {
        self.blame == Blame::Request
    }

    /// There is no window at all between the two moments. Indices count windows since 1970.
    pub fn no_window(from: i64, to: i64, asked: (i64, i64), current: i64, oldest: i64) -> Self {
        let (first, last) = asked;
        let text = format!(
            "There is no window available in range [{from}, {to}] (index [{first}, {last}]). \
             Window index (current: {current}, oldest: {oldest})."
        );
        Self::wrapped(NOT_ENOUGH_WINDOWS, text)
    }

    /// There are windows, but too few of them are complete enough.
    pub fn too_few_windows(valid: usize, from: i64, to: i64, options: impl Display) -> Self {
        let text = format!(
            "There are only {valid} valid windows when aggregating in range [{from}, {to}] for aggregation options {options}"
        );
        Self::wrapped(NOT_ENOUGH_WINDOWS, text)
    }

    /// Brokers that were named are not there. `remove_broker` says it without brackets.
    pub fn missing_brokers(endpoint: Endpoint, brokers: &[i32]) -> Self {
        let ids = listed(brokers);
        match endpoint {
            Endpoint::RemoveBroker => Self::illegal_argument(format_args!("Broker {ids} does not exist.")),
            Endpoint::Load => Self::thrown(ILLEGAL_ARGUMENT, format_args!("Broker {ids} does not exist.")),
            _ => Self::illegal_argument(format_args!("Broker [{ids}] does not exist.")),
        }
    }

    /// Something is being carried out already.
    pub fn ongoing_execution() -> Self {
        let text = "Cannot start a new execution while there is an ongoing execution. Please use \
                    stop_ongoing_execution=true to stop ongoing execution and start a new one.";
        Self::thrown(ILLEGAL_STATE, text)
    }

    /// Somebody else moves partitions, and is not to be stopped.
    pub fn foreign_moves() -> Self {
        let text = "Cannot execute new proposals while there are ongoing partition reassignments initiated by external \
                    agent.";
        Self::thrown(ILLEGAL_STATE, text)
    }

    /// Goals that nobody knows.
    pub fn unknown_goals(endpoint: Endpoint, unknown: &[&str], supported: &[&str]) -> Self {
        let (unknown, supported) = (listed(unknown), listed(supported));
        let text = format!("Goals [{unknown}] are not supported. Supported: [{supported}]");
        match endpoint {
            Endpoint::Proposals => Self::thrown(ILLEGAL_ARGUMENT, text),
            _ => Self::illegal_argument(text),
        }
    }

    /// Goals that must hold are not among those asked for.
    pub fn missing_hard_goals(missing: &[&str], given: &[&str]) -> Self {
        let (missing, given) = (listed(missing), listed(given));
        Self::illegal_argument(format_args!(
            "Missing hard goals [{missing}] in the provided goals: [{given}]. \
             Add skip_hard_goal_check=true parameter to ignore this sanity check."
        ))
    }

    /// A goal that must hold cannot.
    pub fn infeasible(goal: &str, why: impl Display) -> Self {
        Self::thrown(OPTIMIZATION_FAILURE, format_args!("[{goal}] {why}"))
    }

    /// Whether it says that a goal that must hold cannot.
    pub fn is_optimization_failure(&self) -> bool {
        self.text.starts_with(OPTIMIZATION_FAILURE)
    }

    /// As many tasks as there may be at a time.
    pub fn tasks_exhausted(active: usize) -> Self {
        Self::new(format!("There are already {active} active user tasks, which has reached the servlet capacity."))
    }

    /// The header names a task of another request, or none.
    pub fn unexpected_task(id: Uuid) -> Self {
        Self::new(format!("Unexpected header {id} (value: User-Task-ID) in the request."))
    }

    /// The header names nothing that could be a task.
    pub fn malformed_task(id: &str) -> Self {
        Self::new(format!("Invalid UUID string: {id}"))
    }

    /// `admin` asks for more moves than the cluster may make in all.
    pub fn concurrency_too_high(what: &str, asked: u32, limit: u32) -> Self {
        Self::new(format!(
            "Attempt to set {what} concurrency [{asked}] to greater than or equal to the maximum number of allowed \
             movements in cluster [{limit}]."
        ))
    }

    /// Ours: the proposal that was approved is not known here, or no longer fits.
    pub fn proposal_outdated(id: &str, why: impl Display) -> Self {
        Self::thrown(ILLEGAL_STATE, format_args!("{PROPOSAL_OUTDATED} ({id}): {why}"))
    }

    /// What a client makes of an error text, ours or the original's.
    pub fn sort(message: &str) -> Sort {
        const BUSY: [&str; 6] = [
            "Cannot start a new execution while there is an ongoing execution",
            "Cannot execute new proposals while there is an ongoing execution",
            "Cannot generate proposals while the executor is in",
            "ongoing partition reassignments initiated by external agent",
            "There are ongoing inter-broker partition movements",
            "There are ongoing intra-broker partition movements",
        ];
        if message.contains("NotEnoughValidWindows") {
            Sort::NotEnoughData
        } else if message.contains("IllegalArgumentException") && message.contains("does not exist.") {
            Sort::MissingBroker
        } else if BUSY.iter().any(|text| message.contains(text)) || message.contains("OngoingExecutionException") {
            Sort::Busy
        } else if message.contains("There are already ")
            && message.contains(" active user tasks, which has reached the servlet capacity")
        {
            Sort::TasksExhausted
        } else if message.contains(PROPOSAL_OUTDATED) {
            Sort::ProposalOutdated
        } else {
            Sort::Other
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn listed<T: ToString>(items: &[T]) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_texts_are_those_of_the_original() {
        let wrapper = "com.linkedin.kafka.cruisecontrol.exception.KafkaCruiseControlException: ";
        let expected: [(Failure, String); 8] = [
            (
                Failure::no_window(-1, 1794773338613, (1, -1), 0, 0),
                format!(
                    "{wrapper}com.linkedin.cruisecontrol.exception.NotEnoughValidWindowsException: There is no window \
                     available in range [-1, 1794773338613] (index [1, -1]). Window index (current: 0, oldest: 0)."
                ),
            ),
            (
                Failure::missing_brokers(Endpoint::AddBroker, &[77]),
                format!("{wrapper}java.lang.IllegalArgumentException: Broker [77] does not exist."),
            ),
            (
                Failure::missing_brokers(Endpoint::RemoveBroker, &[77]),
                format!("{wrapper}java.lang.IllegalArgumentException: Broker 77 does not exist."),
            ),
            (
                Failure::missing_brokers(Endpoint::Load, &[3]),
                "java.lang.IllegalArgumentException: Broker 3 does not exist.".to_owned(),
            ),
            (
                Failure::unknown_goals(Endpoint::Proposals, &["NoSuchGoal"], &["A", "B"]),
                "java.lang.IllegalArgumentException: Goals [NoSuchGoal] are not supported. Supported: [A, B]"
                    .to_owned(),
            ),
            (
                Failure::infeasible("RackAwareGoal", "Insufficient number of racks."),
                "com.linkedin.kafka.cruisecontrol.exception.OptimizationFailureException: [RackAwareGoal] \
                 Insufficient number of racks."
                    .to_owned(),
            ),
            (
                Failure::tasks_exhausted(5),
                "There are already 5 active user tasks, which has reached the servlet capacity.".to_owned(),
            ),
            (
                Failure::ongoing_execution(),
                "java.lang.IllegalStateException: Cannot start a new execution while there is an ongoing execution. \
                 Please use stop_ongoing_execution=true to stop ongoing execution and start a new one."
                    .to_owned(),
            ),
        ];
        for (failure, text) in expected {
            assert_eq!(failure.to_string(), text);
        }
    }

    #[test]
    fn what_is_said_is_understood() {
        let cases = [
            (Failure::no_window(-1, 5, (1, -1), 0, 0), Sort::NotEnoughData),
            (Failure::too_few_windows(1, -1, 5, "{}"), Sort::NotEnoughData),
            (Failure::missing_brokers(Endpoint::RemoveBroker, &[7]), Sort::MissingBroker),
            (Failure::missing_brokers(Endpoint::DemoteBroker, &[7]), Sort::MissingBroker),
            (Failure::ongoing_execution(), Sort::Busy),
            (Failure::foreign_moves(), Sort::Busy),
            (Failure::tasks_exhausted(12), Sort::TasksExhausted),
            (Failure::proposal_outdated("ab12", "broker 3 is gone"), Sort::ProposalOutdated),
            (Failure::unknown_goals(Endpoint::Rebalance, &["X"], &[]), Sort::Other),
            (Failure::missing_hard_goals(&["X"], &[]), Sort::Other),
            (Failure::infeasible("X", "no"), Sort::Other),
            (Failure::unexpected_task(Uuid::nil()), Sort::Other),
            (Failure::malformed_task("foo"), Sort::Other),
            (Failure::concurrency_too_high("INTER_BROKER_REPLICA", 99999, 1250), Sort::Other),
        ];
        for (failure, sort) in cases {
            assert_eq!(Failure::sort(&failure.to_string()), sort, "{failure}");
        }
    }
}
