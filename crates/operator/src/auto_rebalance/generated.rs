//! KafkaRebalances that automatic rebalancing has made: what is read from them, and what that means.
//!
//! One is found by its name, which nobody can change, and not by its label, which a user can take off.
//! That it is ours, and not a user's of the same name, its finalizer or its owner tells: a crash between
//! taking the finalizer off and deleting leaves one with its owner alone. A mark that would make a template
//! of it counts for nothing while the finalizer is on: somebody waits for its end.

use evenkeel_api::{
    Condition, KafkaRebalance, KafkaRebalanceStatus, Reason,
    annotations::{self, ASKED_OF, Ask, STOPPED_FOR},
    kafka::AutoRebalanceMode,
    labels,
    rebalance::RebalanceState,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::recipe::{cluster_of_name, mode_of_name};
use super::state::Brokers;

/// Why automatic rebalancing stops a rebalance of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StopReason {
    /// Something more urgent has to run first.
    Preempted,
    /// The brake was pulled.
    Braked,
    /// What it was for is no longer wanted.
    Cancelled,
    /// Automatic rebalancing was switched off.
    SwitchedOff,
    /// Its proposal is not approved by itself, and nobody else is there to approve it.
    Withheld,
}

impl StopReason {
    const ALL: [Self; 5] = [Self::Preempted, Self::Braked, Self::Cancelled, Self::SwitchedOff, Self::Withheld];

    /// The value of the annotation [`STOPPED_FOR`].
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Preempted => "preempted",
            Self::Braked => "braked",
            Self::Cancelled => "cancelled",
            Self::SwitchedOff => "switched-off",
            Self::Withheld => "withheld",
        }
    }
}

/// What was seen of a generated KafkaRebalance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generated {
    /// Its name.
    pub name: String,
    /// Its uid: the same name may come again.
    pub uid: String,
    /// What set it off.
    pub mode: AutoRebalanceMode,
    /// B: the brokers in its spec.
    pub brokers: Brokers,
    /// Where it stands.
    pub state: RebalanceState,
    /// Reason and message of that state.
    pub because: Option<(String, String)>,
    /// Since when it stands there.
    pub since: Option<Timestamp>,
    /// Why its proposal is not approved by itself, if it is not: it would wait for ever.
    pub withheld: Option<String>,
    /// Whether its proposal is there and somebody took the annotation off it by which it would be approved.
    pub unapproved: bool,
    /// What is asked of it and was not dealt with yet.
    pub ask: Option<Ask>,
    /// The engine that was asked for it, if one is noted.
    pub asked_of: Option<String>,
    /// Whether its spec was changed and nothing has come of that yet.
    pub edited: bool,
    /// Why we stopped it, if we did.
    pub stopped_for: Option<StopReason>,
    /// Whether it is to be deleted.
    pub deleting: bool,
    /// Whether somebody has marked it as a template, which it cannot be.
    pub marked: bool,
    /// Whether we have let go of it: it is to be deleted, and our finalizer is off.
    pub released: bool,
    /// Finalizers of others that are on it, if nobody else's is: nothing is done for it any more.
    pub kept_by: Vec<String>,
    /// Whether its label names its cluster.
    pub labelled: bool,
}

/// How far a generated rebalance has come, as far as automatic rebalancing cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// It plans, moves, or is about to.
    Underway,
    /// The user told the operator to leave it alone.
    Paused,
    /// It has done what it was for.
    Done,
    /// It has failed.
    Failed,
    /// The user stopped it.
    Stopped,
    /// We stopped it, or it was deleted before it could begin what was asked last.
    Abandoned,
}

impl Generated {
    /// What a KafkaRebalance of this cluster tells. None if it is not one of ours.
    pub fn read(rebalance: &KafkaRebalance, cluster: &str) -> Option<Self> {
        let metadata = &rebalance.metadata;
        let name = metadata.name.as_deref()?;
        let mode = mode_of_name(name, cluster)?;
        let empty = Default::default();
        let notes = metadata.annotations.as_ref().unwrap_or(&empty);
        let held = is_held(metadata);
        let marked = annotations::is_template(notes);
        let mut owners = metadata.owner_references.iter().flatten();
        let owned = owners.any(|owner| owner.kind == "Kafka" && owner.name == cluster);
        if !held && (marked || !owned) {
            return None;
        }
        let state = rebalance.state();
        let status = rebalance.status.as_ref();
        let condition =
            status.and_then(|status| status.conditions.iter().find(|condition| condition.type_.parse() == Ok(state)));
        let observed = status.and_then(|status| status.observed_generation);
        let deleting = metadata.deletion_timestamp.is_some();
        let stopped_for = notes.get(STOPPED_FOR);
        let label = metadata.labels.as_ref().and_then(|all| all.get(labels::CLUSTER));
        Some(Self {
            name: name.to_owned(),
            uid: metadata.uid.clone().unwrap_or_default(),
            mode,
            brokers: rebalance.spec.brokers.iter().flatten().copied().collect(),
            state,
            because: condition
                .and_then(|condition| Some((condition.reason.clone()?, condition.message.clone().unwrap_or_default()))),
            since: condition.and_then(|condition| condition.since()),
            withheld: status.filter(|_| state == RebalanceState::ProposalReady).and_then(withheld),
            unapproved: state == RebalanceState::ProposalReady && !annotations::is_auto_approved(notes),
            ask: annotations::ask(notes),
            asked_of: notes.get(ASKED_OF).cloned(),
            edited: observed.is_some_and(|observed| is_edited(metadata, observed)),
            stopped_for: stopped_for
                .and_then(|text| StopReason::ALL.into_iter().find(|reason| reason.as_str() == text)),
            deleting,
            marked,
            released: deleting && !held,
            kept_by: kept_by(metadata),
            labelled: label.is_some_and(|label| label == cluster),
        })
    }

    pub(super) fn phase(&self) -> Phase {
        // A new spec or a refresh that nobody has dealt with yet: the state speaks of the run before.
        let renewed = self.edited || self.ask == Some(Ask::Refresh);
        match self.state {
            RebalanceState::ReconciliationPaused => Phase::Paused,
            // Nothing comes of it any more, and nobody says so.
            RebalanceState::New | RebalanceState::ProposalReady if self.lingers() => Phase::Abandoned,
            RebalanceState::New
            | RebalanceState::PendingProposal
            | RebalanceState::ProposalReady
            | RebalanceState::Rebalancing => Phase::Underway,
            RebalanceState::Ready | RebalanceState::NotReady | RebalanceState::Stopped if !renewed => {
                match self.state {
                    RebalanceState::Ready => Phase::Done,
                    _ if self.stopped_for.is_some() => Phase::Abandoned,
                    RebalanceState::NotReady => Phase::Failed,
                    _ => Phase::Stopped,
                }
            }
            // What is to be deleted starts nothing new.
            _ if self.deleting => Phase::Abandoned,
            _ => Phase::Underway,
        }
    }

    /// Why it comes no further by itself: neither a command nor a new spec is on its way to it.
    pub(super) fn is_stuck(&self) -> Option<&str> {
        self.withheld.as_deref().filter(|_| !self.moves_on())
    }

    /// Whether it waits until somebody approves it by hand.
    pub(super) fn waits_for_approval(&self) -> bool {
        self.unapproved && !self.moves_on() && !self.deleting
    }

    /// Whether a command that it understands, or a new spec, is on its way to it.
    fn moves_on(&self) -> bool {
        let is_asked = match &self.ask {
            Some(Ask::Approve | Ask::Refresh) => true,
            Some(Ask::Stop) => !self.unapproved,
            Some(Ask::Unknown(_)) | None => false,
        };
        is_asked || self.edited || self.stopped_for.is_some()
    }

    /// Whether somebody else has told it to stop, and it is just doing so. Until it has, it is left alone: whoever asks
    /// something else of it takes the stop back, or makes one of ours of it.
    pub(super) fn is_stopped_by_others(&self) -> bool {
        let heeds_it = match self.state {
            // A new one keeps it, and stops as soon as it has begun.
            RebalanceState::New | RebalanceState::PendingProposal | RebalanceState::Rebalancing => true,
            RebalanceState::ProposalReady => !self.unapproved && !self.deleting,
            _ => false,
        };
        heeds_it && self.ask == Some(Ask::Stop) && self.stopped_for.is_none()
    }

    /// Whether it is at its end, we have let go of it, and it is there only because of the finalizers of others.
    pub(super) fn lingers(&self) -> bool {
        let is_at_work = matches!(
            self.state,
            RebalanceState::PendingProposal | RebalanceState::Rebalancing | RebalanceState::ReconciliationPaused
        );
        self.released && !is_at_work && !self.kept_by.is_empty()
    }

    pub(super) fn is_underway(&self) -> bool {
        matches!(self.phase(), Phase::Underway | Phase::Paused)
    }
}

/// The cluster that a KafkaRebalance was made for which waits for us: our finalizer is on it. Its name tells, whatever has
/// become of its labels.
pub(crate) fn held_for(rebalance: &ObjectMeta) -> Option<&str> {
    rebalance.name.as_deref().filter(|_| is_held(rebalance)).and_then(cluster_of_name)
}

/// Whether the spec is another one than that which the status speaks of. Asking for deletion raises the generation as well, and
/// changes nothing in the spec.
fn is_edited(rebalance: &ObjectMeta, observed: i64) -> bool {
    let by_deletion = i64::from(rebalance.deletion_timestamp.is_some());
    let since = rebalance.generation.unwrap_or_default().saturating_sub(observed);
    since != 0 && since != by_deletion
}

fn is_held(rebalance: &ObjectMeta) -> bool {
    rebalance.finalizers.iter().flatten().any(|name| name == annotations::AUTO_REBALANCING_FINALIZER)
}

/// The finalizers of others. None while that of its own controller is on: then something may still run.
fn kept_by(rebalance: &ObjectMeta) -> Vec<String> {
    let all = || rebalance.finalizers.iter().flatten();
    if all().any(|name| name == annotations::REBALANCE_FINALIZER) {
        return Vec::new();
    }
    all().filter(|name| *name != annotations::AUTO_REBALANCING_FINALIZER).cloned().collect()
}

/// Why the proposal of a generated rebalance was not approved by itself: it moves too much, or nobody can read how much
/// it may move.
fn withheld(status: &KafkaRebalanceStatus) -> Option<String> {
    let of_cap = |condition: &&Condition| {
        condition.is_warning()
            && (condition.has_reason(Reason::AutoRebalanceHeld)
                || (condition.has_reason(Reason::InvalidAnnotation)
                    && condition.message.as_deref().is_some_and(|text| text.contains(annotations::MAX_DATA_MB))))
    };
    status.conditions.iter().find(of_cap).map(|condition| condition.message.clone().unwrap_or_default())
}

#[cfg(test)]
impl Default for Generated {
    fn default() -> Self {
        Self {
            name: "c-auto-rebalancing-add-brokers".into(),
            uid: "uid".into(),
            mode: AutoRebalanceMode::AddBrokers,
            brokers: Brokers::new(),
            state: RebalanceState::New,
            because: None,
            since: None,
            withheld: None,
            unapproved: false,
            ask: None,
            asked_of: None,
            edited: false,
            stopped_for: None,
            deleting: false,
            marked: false,
            released: false,
            kept_by: Vec::new(),
            labelled: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::recipe::{
        Cluster, make,
        tests::{cluster, recipe},
    };
    use super::*;

    #[test]
    fn whom_it_was_made_for_is_told_by_the_name_of_what_waits_for_us() {
        let (cluster, brokers) = (cluster(), Brokers::from([3]));
        let made = make(&recipe(&cluster, AutoRebalanceMode::AddBrokers, &brokers));
        assert_eq!(held_for(&made.metadata), Some("c"));
        let mut meddled = made.clone();
        meddled.metadata.labels = Some([(labels::CLUSTER.to_owned(), "other".to_owned())].into());
        meddled.metadata.owner_references = None;
        meddled.metadata.annotations = Some([(annotations::REBALANCE_TEMPLATE.into(), "true".into())].into());
        assert_eq!(held_for(&meddled.metadata), Some("c"), "whatever was done to the rest of it");
        let mut users = made.clone();
        users.metadata.finalizers = None;
        assert_eq!(held_for(&users.metadata), None, "it waits for nobody");
        let odd = Cluster { name: "a-auto-rebalancing-b".into(), ..cluster };
        let odd = make(&recipe(&odd, AutoRebalanceMode::Imbalance, &brokers));
        assert_eq!(held_for(&odd.metadata), Some("a-auto-rebalancing-b"));
    }

    #[test]
    fn a_user_s_of_the_same_name_is_not_ours_and_a_mark_does_not_make_it_so() {
        let (cluster, none) = (cluster(), Brokers::new());
        let made = make(&recipe(&cluster, AutoRebalanceMode::AddBrokers, &none));
        let mut marked = made.clone();
        marked.metadata.annotations = Some([(annotations::REBALANCE_TEMPLATE.into(), "true".into())].into());
        assert!(Generated::read(&marked, "c").is_some_and(|own| own.marked), "somebody waits for its end");
        let mut let_go = made.clone();
        let_go.metadata.finalizers = None;
        assert!(Generated::read(&let_go, "c").is_some(), "its owner tells");
        let mut template = marked;
        template.metadata.finalizers = None;
        assert_eq!(Generated::read(&template, "c"), None);
        let mut users = let_go;
        users.metadata.owner_references = None;
        assert_eq!(Generated::read(&users, "c"), None);
        users.metadata.finalizers = made.metadata.finalizers;
        assert!(Generated::read(&users, "c").is_some(), "its finalizer tells");
    }

    #[test]
    fn a_resource_is_read_with_what_its_state_says() {
        let (cluster, brokers) = (cluster(), Brokers::from([3]));
        let mut rebalance = make(&recipe(&cluster, AutoRebalanceMode::AddBrokers, &brokers));
        rebalance.metadata.uid = Some("uid".into());
        let fresh = Generated { brokers: brokers.clone(), ..Generated::default() };
        assert_eq!(Generated::read(&rebalance, "c"), Some(fresh.clone()));
        for label in [None, Some("other")] {
            let mut relabelled = rebalance.clone();
            relabelled.metadata.labels = label.map(|name| [(labels::CLUSTER.to_owned(), name.to_owned())].into());
            assert!(!Generated::read(&relabelled, "c").unwrap().labelled, "{label:?}");
        }

        let failed = Condition::state("NotReady").because(Reason::CruiseControlRestException, "why");
        rebalance.status = Some(KafkaRebalanceStatus {
            conditions: vec![Condition { last_transition_time: Some("1970-01-01T00:00:07Z".into()), ..failed }],
            observed_generation: Some(1),
            ..KafkaRebalanceStatus::default()
        });
        rebalance.metadata.generation = Some(2);
        let notes = rebalance.metadata.annotations.as_mut().unwrap();
        notes.insert(STOPPED_FOR.into(), "braked".into());
        notes.insert(ASKED_OF.into(), "pod/1".into());
        notes.insert(annotations::REBALANCE.into(), "stop".into());
        assert_eq!(
            Generated::read(&rebalance, "c").unwrap(),
            Generated {
                state: RebalanceState::NotReady,
                because: Some(("CruiseControlRestException".into(), "why".into())),
                since: Some(Timestamp::from_second(7).unwrap()),
                ask: Some(Ask::Stop),
                asked_of: Some("pod/1".into()),
                edited: true,
                stopped_for: Some(StopReason::Braked),
                ..fresh
            }
        );
    }

    #[test]
    fn a_proposal_without_its_approval_waits_for_somebody() {
        let (cluster, brokers) = (cluster(), Brokers::from([3]));
        let waits = |state: &str, notes: &[(&str, &str)]| {
            let mut rebalance = make(&recipe(&cluster, AutoRebalanceMode::AddBrokers, &brokers));
            let notes = notes.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
            rebalance.metadata.annotations = Some(notes.collect());
            rebalance.status = Some(KafkaRebalanceStatus {
                conditions: vec![Condition::state(state)],
                ..KafkaRebalanceStatus::default()
            });
            Generated::read(&rebalance, "c").unwrap().waits_for_approval()
        };
        let by_itself = annotations::REBALANCE_AUTO_APPROVAL;
        assert!(!waits("ProposalReady", &[(by_itself, "true")]));
        for lost in [&[][..], &[(by_itself, "false")], &[(by_itself, "ture")]] {
            assert!(waits("ProposalReady", lost), "{lost:?}");
            assert!(!waits("PendingProposal", lost) && !waits("Rebalancing", lost), "{lost:?}");
        }
        assert!(!waits("ProposalReady", &[(annotations::REBALANCE, "approve")]), "somebody has");
        for in_vain in ["aprove", "stop"] {
            assert!(waits("ProposalReady", &[(annotations::REBALANCE, in_vain)]), "{in_vain} means nothing here");
        }
    }

    #[test]
    fn what_others_keep_lingers_once_nothing_runs_any_more() {
        let (cluster, brokers) = (cluster(), Brokers::from([3]));
        let read = |state: &str, finalizers: &[&str]| {
            let mut rebalance = make(&recipe(&cluster, AutoRebalanceMode::AddBrokers, &brokers));
            rebalance.metadata.deletion_timestamp =
                Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(Timestamp::UNIX_EPOCH));
            rebalance.metadata.finalizers = Some(finalizers.iter().map(|name| (*name).to_owned()).collect());
            rebalance.status = Some(KafkaRebalanceStatus {
                conditions: vec![Condition::state(state)],
                ..KafkaRebalanceStatus::default()
            });
            Generated::read(&rebalance, "c").unwrap()
        };
        let (ours, theirs) = (annotations::AUTO_REBALANCING_FINALIZER, "example.com/keep");
        for end in ["Ready", "NotReady", "Stopped", "ProposalReady"] {
            let lingering = read(end, &[theirs]);
            assert!(lingering.lingers() && !lingering.is_underway(), "{end}");
            assert_eq!(lingering.kept_by, [theirs]);
            assert!(!read(end, &[ours, theirs]).lingers(), "{end}: we have not let go of it");
            assert!(!read(end, &[theirs, annotations::REBALANCE_FINALIZER]).lingers(), "{end}: it may still run");
            assert!(!read(end, &[]).lingers(), "{end}: it is as good as gone");
        }
        for at_work in ["PendingProposal", "Rebalancing", "ReconciliationPaused"] {
            assert!(!read(at_work, &[theirs]).lingers(), "{at_work}");
        }
    }

    #[test]
    fn a_stop_of_others_counts_where_it_is_heeded() {
        let stopped = |state| Generated { state, ask: Some(Ask::Stop), ..Generated::default() };
        let underway = [RebalanceState::New, RebalanceState::PendingProposal, RebalanceState::Rebalancing];
        for heeding in underway.into_iter().chain([RebalanceState::ProposalReady]) {
            assert!(stopped(heeding).is_stopped_by_others(), "{heeding}");
            let ours = Generated { stopped_for: Some(StopReason::Preempted), ..stopped(heeding) };
            assert!(!ours.is_stopped_by_others(), "{heeding}: it is ours");
        }
        for deaf in [RebalanceState::Ready, RebalanceState::Stopped, RebalanceState::NotReady] {
            assert!(!stopped(deaf).is_stopped_by_others(), "{deaf}");
        }
        let unapproved = Generated { unapproved: true, ..stopped(RebalanceState::ProposalReady) };
        assert!(!unapproved.is_stopped_by_others(), "it would not go on by itself");
        let asked = Generated { ask: Some(Ask::Refresh), ..stopped(RebalanceState::Rebalancing) };
        assert!(!asked.is_stopped_by_others());
    }

    #[test]
    fn a_deletion_is_no_new_spec() {
        let read = |observed: i64, generation: i64, deleted: bool| {
            let (cluster, brokers) = (cluster(), Brokers::from([3]));
            let mut rebalance = make(&recipe(&cluster, AutoRebalanceMode::AddBrokers, &brokers));
            rebalance.metadata.generation = Some(generation);
            rebalance.metadata.deletion_timestamp =
                deleted.then_some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(Timestamp::UNIX_EPOCH));
            rebalance.status = Some(KafkaRebalanceStatus {
                conditions: vec![Condition::state("Ready")],
                observed_generation: Some(observed),
                ..KafkaRebalanceStatus::default()
            });
            Generated::read(&rebalance, "c").unwrap().phase()
        };
        assert_eq!((read(1, 1, false), read(1, 2, false)), (Phase::Done, Phase::Underway));
        assert_eq!((read(1, 2, true), read(2, 2, true)), (Phase::Done, Phase::Done), "it did what it was for");
        assert_eq!(read(1, 3, true), Phase::Abandoned, "deleted before it could begin what was asked last");
    }

    #[test]
    fn an_end_counts_only_if_nothing_was_asked_since() {
        let in_state = |state| Generated { state, ..Generated::default() };
        for (state, phase) in [
            (RebalanceState::New, Phase::Underway),
            (RebalanceState::PendingProposal, Phase::Underway),
            (RebalanceState::ProposalReady, Phase::Underway),
            (RebalanceState::Rebalancing, Phase::Underway),
            (RebalanceState::ReconciliationPaused, Phase::Paused),
            (RebalanceState::Ready, Phase::Done),
            (RebalanceState::NotReady, Phase::Failed),
            (RebalanceState::Stopped, Phase::Stopped),
        ] {
            assert_eq!(in_state(state).phase(), phase, "{state}");
        }
        let done = in_state(RebalanceState::Ready);
        assert_eq!(Generated { edited: true, ..done.clone() }.phase(), Phase::Underway);
        assert_eq!(Generated { ask: Some(Ask::Refresh), ..done.clone() }.phase(), Phase::Underway);
        assert_eq!(Generated { edited: true, deleting: true, ..done.clone() }.phase(), Phase::Abandoned);
        assert_eq!(Generated { deleting: true, ..done.clone() }.phase(), Phase::Done);
        let ours = Some(StopReason::Preempted);
        assert_eq!(Generated { stopped_for: ours, ..done }.phase(), Phase::Done, "it was quicker than we");
        for state in [RebalanceState::Stopped, RebalanceState::NotReady] {
            assert_eq!(Generated { stopped_for: ours, ..in_state(state) }.phase(), Phase::Abandoned);
        }
    }
}
