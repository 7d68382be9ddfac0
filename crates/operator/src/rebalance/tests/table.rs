//! Every state, with every command, in every sort of circumstances, and every answer that the engine may give to
//! whatever is asked then: one reconciliation of each, and what must hold in all of them.
//!
//! [`super::explore`] follows long ways through a world in which the engine is consistent. Here nothing need be: an
//! engine may say anything at any time, and what must never happen does not happen even so.

use std::collections::BTreeSet;

use evenkeel_api::annotations::{self, AUTO_REBALANCING_FINALIZER};
use evenkeel_api::rebalance::RebalanceState::{
    self, NotReady, PendingProposal, ProposalReady, Ready, Rebalancing, Stopped,
};
use evenkeel_rest::body::UserTask;
use evenkeel_rest::body::state::{ExecutorState, Phase, Stopping};
use evenkeel_rest::parameter::TaskStatus;

use super::super::{Call, FoundKafka, Heard, Next, Plan, Said, Sort, Template, decide, tag};
use super::picture::{self, Step};
use super::scene::{Engineer, Scene, UID, executing, execution, id, plan, steps, task, trouble};

const SORTS: [Sort; 10] = [
    Sort::NotEnoughData,
    Sort::Busy,
    Sort::TasksExhausted,
    Sort::NotYet,
    Sort::Outdated,
    Sort::Refused,
    Sort::NoSuchBroker,
    Sort::Denied,
    Sort::Unreachable,
    Sort::Garbled,
];
const COMMANDS: [Option<&str>; 5] = [None, Some("approve"), Some("stop"), Some("refresh"), Some("aprove")];

/// What may be so beside state and command.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Circumstance {
    Deleting,
    Paused,
    Edited,
    /// Edited into something that cannot be carried out.
    Impossible,
    Auto,
    Generated,
    /// There is no Kafka to ask.
    Missing,
    NotReady,
    NoTemplate,
    /// A limit that the proposal is above.
    Limited,
    /// A limit that nobody can read.
    BadLimit,
    /// An engine that is not ours.
    Original,
}

use Circumstance::{
    Auto, BadLimit, Deleting, Edited, Generated, Impossible, Limited, Missing, NoTemplate, Original, Paused,
};

const CIRCUMSTANCES: [Circumstance; 12] = [
    Deleting,
    Paused,
    Edited,
    Impossible,
    Auto,
    Generated,
    Missing,
    Circumstance::NotReady,
    NoTemplate,
    Limited,
    BadLimit,
    Original,
];

impl Circumstance {
    fn apply(self, scene: &mut Scene) {
        match self {
            Deleting => scene.delete(),
            Paused => scene.annotate(annotations::PAUSE_RECONCILIATION, "true"),
            Edited => scene.edit(|spec| spec.skip_hard_goal_check = Some(true)),
            Impossible => scene.edit(|spec| spec.excluded_topics = Some("(".into())),
            Auto => scene.annotate(annotations::REBALANCE_AUTO_APPROVAL, "true"),
            Generated => scene.set_finalizer(AUTO_REBALANCING_FINALIZER, true),
            Missing => scene.seen.kafka = FoundKafka::Missing { name: "my-cluster".into() },
            Self::NotReady => {
                if let FoundKafka::There(cluster) = &mut scene.seen.kafka {
                    cluster.ready = false;
                }
            }
            NoTemplate => scene.seen.template = Template::Missing("t".into()),
            Limited => scene.annotate(annotations::MAX_DATA_MB, "1"),
            BadLimit => scene.annotate(annotations::MAX_DATA_MB, "much"),
            Original => {
                if let FoundKafka::There(cluster) = &mut scene.seen.kafka {
                    cluster.engine.as_mut().expect("an engine").is_ours = false;
                }
            }
        }
    }
}

/// Each alone, and each together with the two that change the most.
fn sets() -> Vec<Vec<Circumstance>> {
    let mut all = vec![vec![]];
    for one in CIRCUMSTANCES {
        all.push(vec![one]);
        if one != Deleting {
            all.push(vec![Deleting, one]);
        }
        if one != Auto && one != Deleting {
            all.push(vec![Auto, one]);
        }
    }
    all
}

/// A resource in every state, with what can be in doubt in doubt.
fn scenes() -> Vec<(&'static str, Scene)> {
    let perhaps_submitted = {
        let mut scene = Scene::proposal_ready();
        scene.set_finalizer(annotations::REBALANCE_FINALIZER, true);
        scene
    };
    let without_session = |mut scene: Scene| {
        scene.seen.resource.status.as_mut().expect("a status").session_id = None;
        scene
    };
    vec![
        ("new", Scene::new()),
        ("pending", Scene::pending()),
        ("pending, not asked", without_session(Scene::pending())),
        ("proposal ready", Scene::proposal_ready()),
        ("perhaps submitted", perhaps_submitted),
        ("rebalancing", Scene::rebalancing()),
        ("rebalancing, task unknown", without_session(Scene::rebalancing())),
        ("ready", Scene::resting(Ready)),
        ("stopped", Scene::resting(Stopped)),
        ("failed", Scene::resting(NotReady)),
    ]
}

/// Everything that may be heard in answer to a call.
fn answers(call: &Call) -> Vec<Heard> {
    fn of<T>(sorts: &[Sort], good: Vec<T>, hear: impl Fn(Said<T>) -> Heard) -> Vec<Heard> {
        let bad = sorts.iter().map(|sort| trouble(*sort, "so it is"));
        good.into_iter().map(Ok).chain(bad).map(hear).collect()
    }
    // Where a plan is asked for it matters what sort of trouble there is, elsewhere only whether there is any.
    fn any<T>(good: Vec<T>, hear: impl Fn(Said<T>) -> Heard) -> Vec<Heard> {
        of(&[Sort::Refused, Sort::Unreachable, Sort::Garbled], good, hear)
    }
    fn each<T>(good: Vec<T>, hear: impl Fn(Said<T>) -> Heard) -> Vec<Heard> {
        of(&SORTS, good, hear)
    }
    let plans = || {
        let mut all = Vec::new();
        for task in [Some(id(2)), None] {
            all.extend([Plan { task, result: Some(plan()) }, Plan { task, result: None }]);
        }
        all
    };
    let statuses = [TaskStatus::Active, TaskStatus::InExecution, TaskStatus::Completed, TaskStatus::CompletedWithError];
    match call {
        Call::Propose(_) => each(plans(), |said| Heard { proposal: Some(said), ..Heard::default() }),
        Call::Explain { .. } => each(plans(), |said| Heard { explanation: Some(said), ..Heard::default() }),
        Call::Submit(_) => each(plans(), |said| Heard { submission: Some(said), ..Heard::default() }),
        Call::Follow { task: asked, in_full } => {
            let mut good: Vec<Vec<UserTask>> = vec![vec![]];
            good.extend(statuses.map(|status| {
                let n = u32::try_from(asked.as_u128() >> 96).expect("one of ours");
                vec![task(n, status, &tag::of_execution(UID, id(1)))]
            }));
            let in_full = *in_full;
            any(good, |said| Heard { task: Some(said), in_full, ..Heard::default() })
        }
        Call::ListTasks => {
            let mut good: Vec<Vec<UserTask>> =
                vec![vec![], vec![task(1, TaskStatus::Completed, &tag::of_resource(UID))]];
            good.extend(statuses.map(|status| vec![execution(status)]));
            any(good, |said| Heard { tasks: Some(said), ..Heard::default() })
        }
        Call::LookAtExecutor => {
            let ours = executing(2, &tag::of_execution(UID, id(1)));
            let stopping = ExecutorState { phase: Phase::Stopping(Stopping::default()), ..ours.clone() };
            let good = vec![ExecutorState::default(), executing(99, "by hand"), ours, stopping];
            any(good, |said| Heard { executor: Some(said), ..Heard::default() })
        }
        Call::Stop => any(vec![()], |said| Heard { stop: Some(said), ..Heard::default() }),
    }
}

fn joined(earlier: &Heard, news: Heard) -> Heard {
    Heard {
        proposal: news.proposal.or_else(|| earlier.proposal.clone()),
        explanation: news.explanation.or_else(|| earlier.explanation.clone()),
        submission: news.submission.or_else(|| earlier.submission.clone()),
        in_full: if news.task.is_some() { news.in_full } else { earlier.in_full },
        task: news.task.or_else(|| earlier.task.clone()),
        tasks: news.tasks.or_else(|| earlier.tasks.clone()),
        executor: news.executor.or_else(|| earlier.executor.clone()),
        stop: news.stop.or_else(|| earlier.stop.clone()),
    }
}

/// One way through a reconciliation.
#[derive(Clone)]
struct Way {
    scene: Scene,
    heard: Heard,
    submissions: usize,
    /// After a decision that asks for a fresh look the way is only followed a little: that is the beginning of another.
    again: usize,
}

struct Case {
    name: String,
    with: Vec<Circumstance>,
    command: Option<&'static str>,
    before: Scene,
}

impl Case {
    fn has(&self, circumstance: Circumstance) -> bool {
        self.with.contains(&circumstance)
    }

    fn was(&self) -> RebalanceState {
        self.before.state()
    }

    /// Follows every way, and adds the steps on it to `steps_seen`. How many ways there were.
    fn play(&self, steps_seen: &mut BTreeSet<Step>) -> usize {
        let start = Way { scene: self.before.clone(), heard: Heard::default(), submissions: 0, again: 0 };
        let (mut ways, mut ends) = (vec![start], 0);
        while let Some(mut way) = ways.pop() {
            assert!(way.scene.calls.len() < 12, "no end of it: {} {:?}", self.name, way.scene.called());
            way.scene.seen.heard = way.heard.clone();
            let decision = decide(&way.scene.seen);
            way.scene.seen.heard = Heard::default();
            let before = way.scene.state();
            for step in steps(&decision) {
                step(&mut way.scene.seen);
            }
            steps_seen.extend(picture::step(before, way.scene.state()));
            match &decision.next {
                Next::Call(call) => {
                    self.check_call(&way, call);
                    way.submissions += usize::from(matches!(**call, Call::Submit(_)));
                    way.scene.calls.push(Call::clone(call));
                    for news in answers(call) {
                        ways.push(Way { heard: joined(&way.heard, news), ..way.clone() });
                    }
                }
                Next::Again if way.again < 1 && way.submissions == 0 => {
                    ways.push(Way { heard: Heard::default(), again: way.again + 1, ..way });
                }
                next => {
                    ends += 1;
                    self.check_end(&way, next);
                }
            }
        }
        ends
    }

    fn check_call(&self, way: &Way, call: &Call) {
        let context = || format!("{}: {:?}, then {call:?}", self.name, way.scene.called());
        assert!(!self.has(Missing), "there is nobody to ask: {}", context());
        assert!(!self.has(Paused) || self.has(Deleting), "nobody looks at what is paused: {}", context());
        match call {
            Call::Submit(_) => {
                let approved = way.scene.asked() == Some("approve");
                let beforehand = self.has(Auto) && !self.has(Limited) && !self.has(BadLimit);
                assert!(approved || beforehand, "nobody approved it: {}", context());
                assert!(way.scene.has_finalizer(), "not on record before it is sent: {}", context());
                assert_eq!(way.submissions, 0, "sent twice: {}", context());
                assert!(!self.has(Deleting) && !self.has(Impossible), "{}", context());
                assert!(
                    !self.has(NoTemplate) && !self.has(Circumstance::NotReady),
                    "it could not begin: {}",
                    context()
                );
                // Only what is idle is given something to do.
                assert!(matches!(&way.heard.executor, Some(Ok(it)) if it.phase == Phase::Idle), "{}", context());
            }
            Call::Propose(_) => {
                assert!(!self.has(Deleting), "after the deletion: {}", context());
                assert!(way.scene.has_finalizer(), "not on record before it is sent: {}", context());
                assert_eq!(way.scene.state(), PendingProposal, "{}", context());
            }
            Call::Stop => {
                let ours = |it: &ExecutorState| tag::runs(it, UID, Some(id(2)));
                assert!(matches!(&way.heard.executor, Some(Ok(it)) if ours(it)), "not ours: {}", context());
                // What is edited into something impossible goes on as it was approved.
                let edited = self.has(Edited) && !self.has(NoTemplate);
                assert!(
                    self.command == Some("stop") || self.command == Some("refresh") || edited,
                    "unasked: {}",
                    context()
                );
            }
            _ => {}
        }
    }

    fn check_end(&self, way: &Way, next: &Next) {
        let (was, is) = (self.was(), way.scene.state());
        let context = || format!("{}: {:?}, {was} -> {is}, {next:?}", self.name, way.scene.called());
        let generated = |scene: &Scene| {
            scene.seen.resource.metadata.finalizers.iter().flatten().any(|it| it == AUTO_REBALANCING_FINALIZER)
        };
        assert_eq!(generated(&way.scene), self.has(Generated), "somebody else's: {}", context());
        if self.has(Paused) && !self.has(Deleting) {
            assert_eq!((is, way.scene.calls.len()), (RebalanceState::ReconciliationPaused, 0), "{}", context());
            assert_eq!(way.scene.asked(), self.command, "{}", context());
            return;
        }
        // Hopeless ones are let go as they are.
        let hopeless = self.has(Deleting) && self.has(Missing);
        let held = way.scene.has_finalizer();
        if hopeless {
            assert!(!held && is == was, "{}", context());
            return;
        }

        // The finalizer is there while an operation runs, and only then.
        match is {
            PendingProposal | Rebalancing => assert!(held, "{}", context()),
            ProposalReady if held => {
                let searched = way.scene.called().contains(&"list");
                let in_doubt = was == ProposalReady || way.submissions > 0 || searched || *next == Next::Again;
                assert!(in_doubt, "held for no reason: {}", context());
            }
            _ => assert!(!held, "{}", context()),
        }

        // What rests begins anew only if it is asked to or edited.
        if matches!(was, Ready | Stopped | NotReady) {
            let edited = self.has(Edited) || self.has(Impossible);
            let may = !self.has(Deleting) && (self.command == Some("refresh") || edited);
            assert!(may || (is == was && way.scene.calls.is_empty()), "restarted: {}", context());
        }

        // Data moves only after a submission, or if it was moving.
        if is == Rebalancing && was != Rebalancing {
            // Whoever looks for a run that was perhaps submitted may find one.
            let found = way.scene.called().contains(&"list");
            assert!(way.submissions == 1 || found, "{}", context());
            assert_ne!(way.scene.asked(), Some("approve"), "an approval is used up: {}", context());
        }
        // What moves is given up for a new proposal only if somebody asked for one, or if nothing was moved after all.
        if was == Rebalancing && matches!(is, PendingProposal | ProposalReady) {
            let refused = way.scene.called().contains(&"explain");
            assert!(self.command == Some("refresh") || self.has(Edited) || refused, "{}", context());
        }
        // What is under way is looked at again by itself.
        if matches!(is, PendingProposal | Rebalancing) {
            assert!(matches!(next, Next::After(_) | Next::Again), "nobody comes back: {}", context());
        }
        // A limit that cannot be read is never silently none.
        if self.has(BadLimit) {
            assert!(way.scene.warnings().contains(&"InvalidAnnotation"), "{}", context());
        }
    }
}

/// Every command in every circumstance and every answer, for scenes whose names begin so, which are those of these states.
fn check_all(which: &[&str], states: &[RebalanceState]) {
    let (mut ends, mut steps) = (0, BTreeSet::new());
    for (name, scene) in scenes().into_iter().filter(|(name, _)| which.iter().any(|which| name.starts_with(which))) {
        for with in sets() {
            for command in COMMANDS {
                let mut before = scene.clone();
                before.calls.clear();
                if let Some(command) = command {
                    before.ask(command);
                }
                for circumstance in &with {
                    circumstance.apply(&mut before);
                }
                let name = format!("{name}, {command:?}, {with:?}");
                ends += Case { name, with: with.clone(), command, before }.play(&mut steps);
            }
        }
    }
    assert!(ends > 1_000, "{ends}");
    picture::shows(&steps, states);
}

#[test]
fn whatever_is_said_to_what_is_new_or_pending() {
    check_all(&["new", "pending"], &[RebalanceState::New, PendingProposal]);
}

#[test]
fn whatever_is_said_to_a_proposal() {
    check_all(&["proposal", "perhaps"], &[ProposalReady]);
}

#[test]
fn whatever_is_said_to_a_run() {
    check_all(&["rebalancing"], &[Rebalancing]);
}

#[test]
fn whatever_is_said_to_what_rests() {
    check_all(&["ready", "stopped", "failed"], &[Ready, Stopped, NotReady]);
}

/// Two waiting ones of which the first cannot go on: it holds up nobody.
#[test]
fn whoever_lacks_its_template_gives_up_its_place() {
    let mut scene = Scene::proposal_ready();
    scene.ask("approve");
    scene.run(&Engineer::with(&[]).running(executing(99, "by hand")));
    assert_eq!(scene.warnings(), ["WaitingForOtherRebalance"]);
    scene.seen.template = Template::Missing("t".into());
    scene.run(&Engineer::default());
    assert_eq!(scene.warnings(), ["NoSuchResourceException"]);
}
