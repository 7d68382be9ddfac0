//! What people read: conditions that say what is so, and what to do next.

use std::time::Duration;

use evenkeel_api::annotations::{Ask, MAX_DATA_MB, REBALANCE, REBALANCE_AUTO_APPROVAL, REBALANCE_FINALIZER};
use evenkeel_api::rebalance::RebalanceState;
use evenkeel_rest::body::Summary;
use jiff::SignedDuration;

pub(super) const NO_EXECUTOR_STATE: &str = "Cruise Control's state has no ExecutorState";
pub(super) const STILL_THINKING: &str = "Cruise Control has not finished its answer";
pub(super) const MISSING_BROKER: &str =
    "Some or all of the brokers that spec.brokers or spec.moveReplicasOffVolumes names do not exist";
pub(super) const PENDING: &str = "Cruise Control is making a proposal";
pub(super) const PENDING_APPROVED: &str = "Cruise Control is making a proposal, which is carried out as soon as it is ready: \
     strimzi.io/rebalance=approve is set; remove it to look at the proposal first";
pub(super) const REBALANCING: &str =
    "Cruise Control carries the proposal out; annotate strimzi.io/rebalance=stop to stop it";
pub(super) const READY: &str = "The proposal was carried out; annotate strimzi.io/rebalance=refresh for a new one";
pub(super) const STOPPED: &str =
    "Stopped, nothing of it runs any more; annotate strimzi.io/rebalance=refresh for a new proposal";
pub(super) const STOPPED_BY_DELETION: &str = "Deleted before anything was carried out";
pub(super) const PAUSED: &str =
    "Paused by strimzi.io/pause-reconciliation; what runs in Cruise Control goes on unobserved";
pub(super) const STOPPING: &str = "Cruise Control was told to stop; waiting until nothing of it runs any more";
pub(super) const STOPS_LATER: &str = "Cruise Control is still planning the execution, and can only be told to stop what it carries \
     out: so it is, as soon as it begins";
/// Longer than any plan takes: whoever computes for so long has most likely got stuck.
pub(super) const SLOW: SignedDuration = SignedDuration::from_mins(10);
pub(super) const SLOW_PROPOSAL: &str = "Cruise Control has been making this proposal for more than ten minutes: look at its log, \
     and annotate strimzi.io/rebalance=refresh to ask again, or =stop to give up";
pub(super) const SLOW_EXECUTION: &str = "Cruise Control has been planning the execution for more than ten minutes, and nothing moves \
     yet: look at its log, or restart it";
pub(super) const NAMELESS_TASK: &str = "Cruise Control makes a proposal, but does not say under which User-Task-ID, so nobody can fetch \
     it; it is asked again. Look for something on the way to it that removes headers";
pub(super) const UNREADABLE_PLAN: &str = "Cruise Control finished the proposal, but its answer cannot be read; annotate strimzi.io/rebalance=refresh to ask again";
pub(super) const MUTE_PROPOSAL: &str = "Cruise Control could not make a proposal, and no longer says why; annotate \
     strimzi.io/rebalance=refresh to ask again";
pub(super) const FAILED_WHILE_PLANNING: &str = "Cruise Control could not plan the execution, nothing was moved, and it no \
     longer says why; annotate strimzi.io/rebalance=refresh: a new proposal meets the same obstacle and says which";
pub(super) const FAILED_WHILE_MOVING: &str = "The execution ended before all moves were made: moves failed, or somebody else \
     stopped it. What was moved stays moved; annotate strimzi.io/rebalance=refresh for a proposal from here";
pub(super) const FAILED: &str =
    "The execution ended with an error; annotate strimzi.io/rebalance=refresh for a proposal from here";
pub(super) const OUTCOME_UNKNOWN: &str = "Cruise Control no longer knows the execution, and does not carry it out: nobody can \
     say how far it came. Nothing is repeated unasked; annotate strimzi.io/rebalance=refresh for a proposal from here";
pub(super) const PERHAPS_SUBMITTED: &str = "Cruise Control has forgotten everything since the proposal, perhaps also its \
     execution. Nothing is repeated unasked; annotate strimzi.io/rebalance=refresh for a new proposal";

/// As much of a server's text as helps: its first line, without the names of Java's classes.
pub(super) fn trimmed(text: &str) -> String {
    const LONGEST: usize = 1000;
    // "Error processing POST request '/x' due to: 'a.b.CException: d.e.FException: what'." says `what`.
    let line = text.trim().lines().next().unwrap_or_default();
    let mut rest = line.split_once(" due to: '").map_or(line, |(_, inner)| inner.trim_end_matches(['.', '\'']));
    while let Some((class, tail)) = rest.split_once(": ") {
        let is_class = class.contains('.') && class.chars().all(|c| c.is_ascii_alphanumeric() || "._$".contains(c));
        if !is_class {
            break;
        }
        rest = tail;
    }
    rest.chars().take(LONGEST).collect()
}

pub(super) fn bare_status(status: u16) -> String {
    format!("Cruise Control answered with status {status} and nothing else")
}

/// An answer that is none of Cruise Control's. What answers is perhaps something else.
pub(super) fn garbled(what: &str) -> String {
    format!(
        "Cruise Control's answer makes no sense: {what}. Look at its log, and at what else may answer in its place (a \
         proxy, another image in spec.cruiseControl); then annotate {REBALANCE}=refresh to ask again"
    )
}

/// An answer that nobody reads to its end.
pub(super) fn too_large(limit: usize) -> String {
    format!(
        "Cruise Control's answer is larger than {} MiB, and more than that the operator does not read. If it is a plan, \
         have a smaller one made (spec.excludedTopics, spec.goals) or use the engine's own image, whose answers stay \
         small; if not, look at what else may answer in its place; then annotate {REBALANCE}=refresh to ask again",
        limit >> 20
    )
}

/// Nobody was reached, and if the certificate is why, or that there is none, what to compare.
pub(super) fn unreachable(what: String) -> String {
    // As rustls says it, whatever is wrong with the certificate; and when the answer is no TLS at all.
    if what.contains("invalid peer certificate") {
        return format!(
            "{what}. Cruise Control's certificate is not of the authority in the Secret <cluster>-cluster-ca-cert: \
             compare the two; the operator makes both anew if they are deleted"
        );
    }
    if what.contains("InvalidContentType") {
        return format!(
            "{what}. What answers speaks no TLS, and the operator gives its password to nobody else: leave \
             webserver.ssl.enable as it is, and look at what answers in Cruise Control's place"
        );
    }
    what
}

/// A proposal that is refused for good: in terms of the resource, and with the way on.
pub(super) fn refused(why: &str) -> String {
    let words = [
        ("Add skip_hard_goal_check=true parameter", "Set spec.skipHardGoalCheck: true"),
        ("skip_hard_goal_check=true", "spec.skipHardGoalCheck: true"),
        ("use_ready_default_goals", "goals that are ready"),
    ];
    let why = words.iter().fold(why.trim_end_matches('.').to_owned(), |why, (theirs, ours)| why.replace(theirs, ours));
    let needs = match why.contains("not known one by one") {
        true => ": spec.rebalanceDisk and mode remove-disks need JBOD storage, with more than one volume a broker",
        false => "",
    };
    format!("{why}{needs}. Edit the spec, or mend what it names and annotate {REBALANCE}=refresh")
}

/// An execution that was refused for good, after it had been taken on.
pub(super) fn nothing_moved(why: &str) -> String {
    format!("Nothing was moved: {}", refused(why))
}

/// A run that nobody can ask about any more, of what is to go.
pub(super) fn waits_to_go(why: &str) -> String {
    format!(
        "{why}. The deletion waits until Cruise Control says that the run is over. If it never will, remove the finalizer \
         {REBALANCE_FINALIZER} by hand: what may still run is then followed by nobody"
    )
}

pub(super) fn denied(status: u16) -> String {
    format!(
        "Cruise Control refused the operator's credentials (status {status}): compare the Secret \
         <cluster>-cruise-control-api with the users that Cruise Control was started with"
    )
}

/// A proposal in one line, and what to do with it.
pub(super) fn proposal(summary: &Summary) -> String {
    let replicas = summary.num_replica_movements;
    let disks = summary.num_intra_broker_replica_movements;
    let leaders = summary.num_leader_movements;
    if replicas + disks + leaders == 0 {
        return "Nothing has to move. Annotate strimzi.io/rebalance=approve to finish, or =refresh for a new proposal"
            .to_owned();
    }
    let mut parts = Vec::new();
    if replicas > 0 {
        parts.push(format!("{replicas} replicas between brokers ({} MB)", summary.data_to_move_mb));
    }
    if disks > 0 {
        parts.push(format!("{disks} replicas between disks ({} MB)", summary.intra_broker_data_to_move_mb));
    }
    if leaders > 0 {
        parts.push(format!("{leaders} leaderships"));
    }
    let estimate = match summary.estimated_minutes {
        Some(minutes) if minutes.0.is_finite() && minutes.0 <= 1.0 => ", in about a minute".to_owned(),
        Some(minutes) if minutes.0.is_finite() => format!(", in about {:.0} minutes", minutes.0.ceil()),
        _ => String::new(),
    };
    format!(
        "To move: {}{estimate}. Annotate strimzi.io/rebalance=approve to carry it out, or =refresh for a new proposal",
        parts.join(", ")
    )
}

/// The commands that a state understands.
pub(super) fn valid_asks(state: RebalanceState, deleting: bool, auto_approved: bool) -> &'static [&'static str] {
    match state {
        RebalanceState::PendingProposal | RebalanceState::Rebalancing if deleting => &["stop"],
        _ if deleting => &[],
        // It is kept, and counts once there is a proposal.
        RebalanceState::PendingProposal => &["stop", "refresh", "approve"],
        RebalanceState::Rebalancing => &["stop", "refresh"],
        // What would go on by itself can also be stopped.
        RebalanceState::ProposalReady if auto_approved => &["approve", "refresh", "stop"],
        RebalanceState::ProposalReady => &["approve", "refresh"],
        RebalanceState::Stopped | RebalanceState::NotReady | RebalanceState::Ready => &["refresh"],
        RebalanceState::New | RebalanceState::ReconciliationPaused => &[],
    }
}

/// What stands in the annotation.
pub(super) fn written(ask: &Ask) -> &str {
    match ask {
        Ask::Approve => "approve",
        Ask::Stop => "stop",
        Ask::Refresh => "refresh",
        Ask::Unknown(text) => text,
    }
}

pub(super) fn invalid_ask(ask: &Ask, state: RebalanceState, deleting: bool, auto_approved: bool) -> String {
    let valid = valid_asks(state, deleting, auto_approved).join(", ");
    let being_deleted = if deleting { " that is being deleted" } else { "" };
    let supported =
        if valid.is_empty() { "there are none; remove it".to_owned() } else { format!("valid are: {valid}") };
    format!("Annotation {REBALANCE}={} has no effect in state {state}{being_deleted}; {supported}", written(ask))
}

pub(super) fn outdated(why: &str) -> String {
    format!("The approved proposal was not carried out: {why}. Look at the new one and approve it")
}

pub(super) fn not_enough_data(why: &str, first_window: Option<Duration>) -> String {
    let when = first_window.map_or_else(
        || "It measures from outside, which takes less than a minute once it reaches Kafka; see its log".to_owned(),
        |window| {
            let seconds = window.as_secs();
            let window =
                if seconds < 120 { format!("{seconds} seconds") } else { format!("{} minutes", seconds.div_ceil(60)) };
            format!("Its first window is full {window} (partition.metrics.window.ms) after it began to measure")
        },
    );
    format!("Cruise Control has not measured enough yet, and is asked again by itself: {why}. {when}")
}

pub(super) fn above_cap(megabytes: u64, cap: u64) -> String {
    format!(
        "The proposal moves {megabytes} MB, more than the {cap} MB of annotation {MAX_DATA_MB}: \
         {REBALANCE_AUTO_APPROVAL} does not count for it. Approve it by hand, or raise the limit and refresh"
    )
}

pub(super) fn waiting_for(name: &str) -> String {
    format!("Approved, and waiting until KafkaRebalance {name} is over")
}

pub(super) fn waiting_for_executor(what: &str) -> String {
    format!("Approved, and waiting until Cruise Control has finished something else: {what}")
}

pub(super) fn invalid_while_running(why: &str) -> String {
    format!("The edited spec cannot be carried out: {why}. The run goes on as it was approved")
}

pub(super) fn foreign_config_map(name: &str) -> String {
    format!(
        "There is a ConfigMap {name} that does not belong to this KafkaRebalance, so load and progress are written \
         nowhere: rename it, or the KafkaRebalance"
    )
}

pub(super) fn relabelled(label: Option<&str>, cluster: &str) -> String {
    let says = label.map_or_else(|| "is gone".to_owned(), |label| format!("says {label}"));
    format!(
        "The label strimzi.io/cluster {says}, but data of Kafka {cluster} moves: the run is followed there to its \
         end, and only then the label counts"
    )
}

/// As the server says it, which knows best what is in the way.
pub(super) fn refused_config_map(name: &str, why: &str) -> String {
    format!(
        "ConfigMap {name} cannot be written, so load and progress are told nowhere; everything else goes on: {}. It is \
         written once the quota, the policy or the ConfigMap itself (immutable) lets it be",
        trimmed(why)
    )
}

pub(super) fn outcome_unknown(last_percent: Option<&str>) -> String {
    match last_percent {
        Some(percent) => format!("{OUTCOME_UNKNOWN}. When it was last seen {percent} % of the data had been moved"),
        None => OUTCOME_UNKNOWN.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_servers_text_is_cut_to_what_it_says() {
        let text = "Error processing POST request '/rebalance' due to: 'com.linkedin.kafka.cruisecontrol.exception.\
                    KafkaCruiseControlException: java.lang.IllegalArgumentException: Missing hard goals [A] in the \
                    provided goals: [B].'.\n\tat com.linkedin.x(Y.java:1)";
        assert_eq!(trimmed(text), "Missing hard goals [A] in the provided goals: [B]");
        assert_eq!(trimmed("plain: text"), "plain: text");
        assert_eq!(trimmed(""), "");
        assert_eq!(trimmed(&"x".repeat(5000)).len(), 1000);
    }

    #[test]
    fn a_refusal_speaks_of_the_spec_and_says_how_to_go_on() {
        let why = "Missing hard goals [A] in the provided goals: [B]. Add skip_hard_goal_check=true parameter to ignore this sanity check.";
        assert_eq!(
            refused(why),
            "Missing hard goals [A] in the provided goals: [B]. Set spec.skipHardGoalCheck: true to ignore this \
             sanity check. Edit the spec, or mend what it names and annotate strimzi.io/rebalance=refresh"
        );
    }

    #[test]
    fn an_invalid_command_says_what_is_valid() {
        assert_eq!(
            invalid_ask(&Ask::Unknown("aprove".into()), RebalanceState::ProposalReady, false, false),
            "Annotation strimzi.io/rebalance=aprove has no effect in state ProposalReady; valid are: approve, refresh"
        );
        assert_eq!(
            invalid_ask(&Ask::Refresh, RebalanceState::Rebalancing, true, false),
            "Annotation strimzi.io/rebalance=refresh has no effect in state Rebalancing that is being deleted; \
             valid are: stop"
        );
    }

    #[test]
    fn a_proposal_says_what_moves_and_for_how_long() {
        let summary = Summary {
            num_replica_movements: 3,
            data_to_move_mb: 40,
            num_leader_movements: 2,
            estimated_minutes: Some(1.2.into()),
            ..Summary::default()
        };
        assert_eq!(
            proposal(&summary),
            "To move: 3 replicas between brokers (40 MB), 2 leaderships, in about 2 minutes. Annotate \
             strimzi.io/rebalance=approve to carry it out, or =refresh for a new proposal"
        );
        let short = Summary { estimated_minutes: Some(0.3.into()), ..summary };
        assert!(proposal(&short).contains(", in about a minute. "), "{}", proposal(&short));
        assert!(proposal(&Summary::default()).starts_with("Nothing has to move."));
    }
}
