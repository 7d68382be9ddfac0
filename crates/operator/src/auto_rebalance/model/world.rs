//! The tiny world: what is in it, and everything that can happen next.

use std::collections::BTreeMap;

use evenkeel_api::{
    Reason,
    annotations::Ask,
    kafka::{AutoRebalanceMode, AutoRebalanceState, AutoRebalanceStatus},
    rebalance::{RebalanceMode, RebalanceState},
};

use crate::auto_rebalance::{
    brokers::{BrokersSeen, Check, removal_is_held},
    decide::{
        Act, Decision, TrackerWrite, decide,
        tests::{ADD, IMBALANCE, REMOVE, at, calm},
    },
    generated::{Generated, StopReason, name_for},
    imbalance::FIXABLE,
    observe::{Brake, Engine, Observation},
    settings::Configured,
    state::{Brokers, Recorded, mode_of, remember_added, state_of},
    tracker::{Attempts, History, Sight, Tracker},
};

/// Brokers as bits. Bit 0 is the broker that always stays.
pub(super) type Set = u8;

/// There is only ever one run, so all of them may have the same uid, if its end is made known.
const UID: &str = "uid";

/// What may happen in a world.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// The brokers that come and go.
    pub(super) optional: Set,
    /// Whether load drifts.
    pub(super) imbalance: bool,
    /// Whether scaling stops a rebalance on imbalance.
    pub(super) preempt: bool,
    /// Whether users stop, delete and remove generated resources, and pull the brake.
    pub(super) meddling: bool,
    /// Whether rebalances fail, Kafka cannot be asked and the engine rolls.
    pub(super) failures: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct World {
    /// The brokers that the spec asks for.
    pub(super) wanted: Set,
    /// The brokers there are, as the pool's status lists them.
    pub(super) pool: Set,
    /// Those that hold data.
    data: Set,
    /// Those that were added and that nobody has moved data to, nor given a reason not to. Only the
    /// world knows; the machine has to remember.
    owed: Set,
    pub(super) status: Status,
    pub(super) memory: Memory,
    pub(super) run: Option<Run>,
    uneven: bool,
    braked: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Status {
    /// By its mode; None is Idle.
    pub(super) mode: Option<AutoRebalanceMode>,
    pub(super) removals: Set,
    pub(super) additions: Set,
}

/// The tracker, without what does not matter here: texts, and how long pauses are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Memory {
    in_sight: Option<(AutoRebalanceMode, Set)>,
    removal: Tries,
    addition: Tries,
    begun: bool,
    pub(super) paused: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Tries {
    failed: bool,
    unknown: u8,
    waits: bool,
    /// Whether the present run was counted.
    counted: bool,
}

/// A generated KafkaRebalance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Run {
    mode: AutoRebalanceMode,
    brokers: Set,
    /// What the present plan is about: the brokers may have been changed since.
    planned: Set,
    at: At,
    edited: bool,
    ask: Option<Wish>,
    stopped_for: Option<StopReason>,
    deleting: bool,
    released: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum At {
    New,
    Planning,
    Planned,
    /// It has a plan that nobody approves.
    Withheld,
    Moving,
    Done,
    Failed,
    Unknown,
    Stopped,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Wish {
    Stop,
    Refresh,
}

/// How a look of the operator at the world goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    Clear,
    /// Kafka cannot be asked who holds data.
    Blind,
    /// The engine is rolling.
    Rolling,
}

/// What happened between one world and the next.
#[derive(Clone, Copy, Debug)]
#[expect(dead_code, reason = "read by whoever reads the story of a failure")]
pub(super) enum Step {
    /// The operator looked, and died after this write, which may be the last one.
    DiesAfterWrite(usize),
    Looks(Look),
    Happens(&'static str),
}

impl World {
    pub(super) fn new() -> Self {
        Self {
            wanted: 1,
            pool: 1,
            data: 1,
            owed: 0,
            status: Status { mode: None, removals: 0, additions: 0 },
            memory: Memory {
                in_sight: None,
                removal: Tries::default(),
                addition: Tries::default(),
                begun: false,
                paused: false,
            },
            run: None,
            uneven: false,
            braked: false,
        }
    }

    /// Everything that can happen next, with its name.
    pub(super) fn next(&self, rules: &Rules) -> Vec<(Step, World)> {
        let writes = self.look(rules, Look::Clear).into_iter().enumerate();
        let mut next: Vec<_> = writes.map(|(n, after)| (Step::DiesAfterWrite(n), after)).collect();
        for look in [Look::Blind, Look::Rolling].into_iter().filter(|_| rules.failures) {
            next.push((Step::Looks(look), self.looked(rules, look)));
        }
        next.push((Step::Happens("time passes"), self.aged()));
        let others = self.users(rules).into_iter().chain(self.runs(rules));
        next.extend(others.map(|(what, after)| (Step::Happens(what), after)));
        next
    }

    /// The world after a whole look.
    pub(super) fn looked(&self, rules: &Rules, look: Look) -> World {
        self.look(rules, look).last().copied().unwrap_or(*self)
    }

    /// One look: the world after each write, in order.
    fn look(&self, rules: &Rules, look: Look) -> Vec<World> {
        let mut world = *self;
        let mut writes = Vec::new();
        let (added, leaving) = (self.wanted & !self.pool, self.pool & !self.wanted);
        if added != 0 {
            let generated: Vec<Generated> = world.run.iter().map(Run::seen).collect();
            if let Some(status) = remember_added(world.recorded().as_ref(), &set(added), &generated, at(0)) {
                world.record(Some(&status));
                writes.push(world);
            }
            world.pool |= added;
            world.owed |= added;
            writes.push(world);
        }
        let generated: Vec<Generated> = world.run.iter().map(Run::seen).collect();
        let has_data = leaving & world.data != 0;
        let held = removal_is_held(&generated, &set(leaving));
        let free = look != Look::Blind && !has_data && !held;
        if leaving != 0 && free {
            let drain = world.run.filter(|run| run.mode == REMOVE && run.brokers & leaving != 0);
            assert!(drain.is_none_or(|run| run.at >= At::Done), "removed before the drain was at its end");
            world.pool &= !leaving;
            world.owed &= !leaving;
            writes.push(world);
        }
        let check = match look {
            Look::Blind => Check::Unknown,
            _ if has_data => Check::HasData,
            _ => Check::Clear,
        };
        let leaving = leaving & world.pool;
        let decision = decide(&world.seen(rules, look, added, leaving, check));
        world.write(&decision, leaving, &mut writes);
        writes
    }

    fn seen(&self, rules: &Rules, look: Look, added: Set, leaving: Set, check: Check) -> Observation {
        let anomalies = if self.uneven { "- a1: [RackAwareGoal]" } else { "" };
        let engine = match look {
            Look::Rolling => Engine::Rolling,
            _ => Engine::Current { since: at(-1_000), executing: Some(false) },
        };
        let calm = calm();
        let mut modes = BTreeMap::from([(ADD, None), (REMOVE, None)]);
        modes.extend(rules.imbalance.then_some((IMBALANCE, None)));
        Observation {
            brake: if self.braked { Brake::Pulled } else { Brake::Released },
            configured: Configured { modes, preempt: rules.preempt, ..calm.configured },
            recorded: self.recorded(),
            brokers: BrokersSeen {
                present: set(self.pool),
                ready: set(self.pool),
                added: set(added),
                leaving: set(leaving),
                check,
                left: None,
            },
            engine,
            generated: self.run.iter().map(Run::seen).collect(),
            violations: rules.imbalance.then(|| [(FIXABLE.to_owned(), anomalies.to_owned())].into()),
            tracker: Some(self.memory.tracker().written()),
            ..calm
        }
    }

    fn recorded(&self) -> Option<AutoRebalanceStatus> {
        let recorded = Recorded {
            state: self.status.mode.map_or(AutoRebalanceState::Idle, state_of),
            removals: set(self.status.removals),
            additions: set(self.status.additions),
            imbalance: self.status.mode == Some(IMBALANCE),
        };
        Some(recorded.written(None, at(-1)))
    }

    fn record(&mut self, status: Option<&AutoRebalanceStatus>) {
        let recorded = Recorded::read(status);
        self.status = Status {
            mode: mode_of(recorded.state),
            removals: bits(&recorded.removals),
            additions: bits(&recorded.additions),
        };
    }

    /// Writes a decision, noting the world after each write, and complains of what must not be.
    fn write(&mut self, decision: &Decision, leaving: Set, writes: &mut Vec<World>) {
        if let TrackerWrite::Write(data) = &decision.tracker {
            self.memory = Memory::of(&Tracker::read(Some(data), at(0)).0);
            writes.push(*self);
        }
        self.record(decision.status.as_ref());
        // Brokers to be emptied need nothing moved to them.
        self.owed &= !self.status.removals;
        writes.push(*self);
        for act in &decision.acts {
            self.act(act, leaving);
            writes.push(*self);
        }
    }

    fn act(&mut self, act: &Act, leaving: Set) {
        match act {
            Act::Create(made) => {
                assert_eq!(self.run, None, "never two at once");
                let mode = match made.spec.mode {
                    RebalanceMode::AddBrokers => ADD,
                    RebalanceMode::RemoveBrokers => REMOVE,
                    _ => IMBALANCE,
                };
                let brokers = made.spec.brokers.iter().flatten().fold(0, |all, id| all | 1 << id);
                assert_eq!(self.status.mode, Some(mode), "recorded first");
                assert!(!self.braked, "the brake is pulled");
                self.has_a_trigger(mode, brokers, leaving);
                if mode == REMOVE {
                    assert_ne!(leaving & self.data, 0, "there is nothing to empty");
                }
                self.run = Some(Run {
                    mode,
                    brokers,
                    planned: 0,
                    at: At::New,
                    edited: false,
                    ask: None,
                    stopped_for: None,
                    deleting: false,
                    released: false,
                });
            }
            Act::Update { brokers, .. } => {
                let brokers = bits(brokers);
                self.has_a_trigger(self.run.unwrap().mode, brokers, leaving);
                let run = self.run.as_mut().unwrap();
                assert!(!run.deleting, "one that goes takes nothing new");
                run.edited = run.edited || run.brokers != brokers;
                run.brokers = brokers;
                run.ask = Some(Wish::Refresh);
            }
            Act::Refresh { .. } => self.run.as_mut().unwrap().ask = Some(Wish::Refresh),
            Act::Stop { why, .. } | Act::Withdraw { why, .. } => {
                let run = self.run.as_mut().unwrap();
                run.ask = Some(Wish::Stop);
                run.stopped_for = Some(*why);
                run.deleting |= matches!(act, Act::Withdraw { .. });
            }
            Act::Remove { .. } => {
                let run = self.run.as_mut().unwrap();
                assert!(run.at >= At::Done, "removed while it runs");
                run.deleting = true;
                run.released = true;
            }
            Act::EmptyViolations { .. } => self.uneven = false,
            Act::NoteViolations(_) => panic!("the engine writes it"),
            Act::DeleteViolations => panic!("the mode is there"),
        }
    }

    fn has_a_trigger(&self, mode: AutoRebalanceMode, brokers: Set, leaving: Set) {
        match mode {
            AutoRebalanceMode::RemoveBrokers => assert!(brokers != 0 && brokers & !leaving == 0, "not to be removed"),
            AutoRebalanceMode::AddBrokers => {
                assert!(brokers != 0 && brokers & leaving == 0, "data for a broker that goes");
                assert_eq!(brokers & !self.pool, 0, "data for a broker that is not there");
            }
            AutoRebalanceMode::Imbalance => assert!(self.uneven, "nothing is violated"),
        }
    }

    /// The world in one line.
    pub(super) fn sketch(&self) -> String {
        let run = self.run.map(|run| {
            let Run { mode, brokers, at, edited, ask, stopped_for, deleting, released, .. } = run;
            format!("{mode}{brokers:b} {at:?} edited={edited} {ask:?} {stopped_for:?} deleting={deleting} released={released}")
        });
        let Status { mode, removals, additions } = self.status;
        let Memory { in_sight, removal, addition, .. } = self.memory;
        format!(
            "wanted {:b} pool {:b} data {:b} owed {:b} uneven {} braked {}: {mode:?} R{removals:b} A{additions:b}; {in_sight:?} \
             {removal:?} {addition:?}; {run:?}",
            self.wanted, self.pool, self.data, self.owed, self.uneven, self.braked
        )
    }

    /// What must hold in every world.
    pub(super) fn check(&self) {
        assert_eq!(self.owed & !self.status.additions, 0, "an addition was lost");
    }

    /// Whether there is nothing left to do.
    pub(super) fn is_settled(&self) -> bool {
        let idle = Status { mode: None, removals: 0, additions: 0 };
        self.status == idle && self.run.is_none() && self.pool == self.wanted
    }

    /// The same world in which users let go, and load stays as it is.
    pub(super) fn left_alone(mut self) -> World {
        self.braked = false;
        self.uneven = false;
        self
    }

    fn without_run(mut self) -> World {
        self.run = None;
        self.memory.removal.counted = false;
        self.memory.addition.counted = false;
        self
    }

    pub(super) fn aged(mut self) -> World {
        self.memory.removal.waits = false;
        self.memory.addition.waits = false;
        self.memory.paused = false;
        self
    }

    fn users(&self, rules: &Rules) -> Vec<(&'static str, World)> {
        let mut next = Vec::new();
        for optional in (0..=rules.optional).filter(|set| set & !rules.optional == 0) {
            next.push(("the user scales", World { wanted: 1 | optional, ..*self }));
        }
        let landing = self.pool & rules.optional;
        for broker in (1..8).map(|id| 1 << id).filter(|bit| landing & bit != 0) {
            next.push(("a new topic lands on a broker", World { data: self.data | broker, ..*self }));
        }
        if rules.imbalance {
            next.push(("load drifts", World { uneven: true, ..*self }));
        }
        if rules.meddling {
            next.push(("the user reaches for the brake", World { braked: !self.braked, ..*self }));
            if let Some(run) = self.run {
                let with = |run| World { run, ..*self };
                // What a user removes, nobody owes any more.
                let owed = if run.mode == ADD { self.owed & !run.brokers } else { self.owed };
                if matches!(run.at, At::Planning | At::Moving) {
                    next.push(("the user stops it", with(Some(Run { ask: Some(Wish::Stop), ..run }))));
                }
                next.push(("the user deletes it", with(Some(Run { deleting: true, ..run }))));
                next.push(("the user removes it by force", World { owed, ..*self }.without_run()));
            }
        }
        next
    }

    /// What the generated rebalance may do next.
    fn runs(&self, rules: &Rules) -> Vec<(&'static str, World)> {
        let Some(run) = self.run else { return Vec::new() };
        let mut next = vec![self.progress()];
        if rules.failures && run.at == At::Planned && !run.edited && run.ask.is_none() && !run.deleting {
            // What a user keeps from being moved, nobody owes any more.
            let owed = if run.mode == ADD { self.owed & !run.brokers } else { self.owed };
            next.push(("it is withheld", World { owed, run: Some(Run { at: At::Withheld, ..run }), ..*self }));
        }
        if rules.failures && matches!(run.at, At::Planning | At::Moving) {
            let lost = if run.mode == ADD { run.brokers } else { 0 };
            let with = |at, owed| World { owed, run: Some(Run { at, ..run }), ..*self };
            if !run.edited {
                next.push(("it fails", with(At::Failed, self.owed & !lost)));
            }
            if run.at == At::Moving && !run.edited {
                let last = self.memory.addition.unknown >= 3;
                let owed = if last { self.owed & !lost } else { self.owed };
                next.push(("it is lost sight of", with(At::Unknown, owed)));
            }
        }
        next
    }

    /// What the generated rebalance does if all goes well.
    pub(super) fn progress(&self) -> (&'static str, World) {
        let Some(run) = self.run else { return ("nothing runs", *self) };
        let mut world = *self;
        if run.released && run.at >= At::Done {
            return ("it is gone", world.without_run());
        }
        let renewed = (run.edited || run.ask == Some(Wish::Refresh)) && !run.deleting;
        let plan = Run { at: At::Planning, planned: run.brokers, edited: false, ask: None, ..run };
        let stop = Run { at: At::Stopped, ask: None, ..run };
        let before = run;
        let (what, run) = match run.at {
            At::New | At::Planning | At::Planned | At::Withheld if run.deleting => ("it is withdrawn", stop),
            // A stop is no valid wish before there is anything to stop, so it is kept.
            At::New => ("it plans", Run { ask: run.ask, ..plan }),
            At::Planning | At::Moving if run.ask == Some(Wish::Stop) => ("it stops", stop),
            At::Planning | At::Planned | At::Withheld | At::Moving if renewed => ("it plans anew", plan),
            At::Planning => ("it has a plan", Run { at: At::Planned, ..run }),
            At::Planned => ("it moves data", Run { at: At::Moving, ..run }),
            At::Moving => {
                match run.mode {
                    AutoRebalanceMode::RemoveBrokers => world.data &= !run.planned,
                    AutoRebalanceMode::AddBrokers => {
                        world.data |= run.planned & world.pool;
                        world.owed &= !run.planned;
                    }
                    AutoRebalanceMode::Imbalance => {}
                }
                ("it is done", Run { at: At::Done, ..run })
            }
            _ if renewed => ("it plans anew", plan),
            _ => ("it rests", run),
        };
        if before.at != At::Stopped && run.at == At::Stopped && run.stopped_for.is_none() && run.mode == ADD {
            // What a user stops, nobody owes any more.
            world.owed &= !run.brokers;
        }
        world.run = Some(run);
        (what, world)
    }
}

impl Run {
    fn seen(&self) -> Generated {
        let state = match self.at {
            At::New => RebalanceState::New,
            At::Planning => RebalanceState::PendingProposal,
            At::Planned | At::Withheld => RebalanceState::ProposalReady,
            At::Moving => RebalanceState::Rebalancing,
            At::Done => RebalanceState::Ready,
            At::Failed | At::Unknown => RebalanceState::NotReady,
            At::Stopped => RebalanceState::Stopped,
        };
        let reason = match self.at {
            At::Failed => Some(Reason::CruiseControlRestException),
            At::Unknown => Some(Reason::ExecutionOutcomeUnknown),
            _ => None,
        };
        Generated {
            name: name_for("c", self.mode, "a1"),
            uid: UID.to_owned(),
            mode: self.mode,
            brokers: set(self.brokers),
            state,
            because: reason.map(|reason| (reason.to_string(), "why".to_owned())),
            since: None,
            withheld: (self.at == At::Withheld).then(|| "it moves too much".to_owned()),
            ask: self.ask.map(|wish| match wish {
                Wish::Stop => Ask::Stop,
                Wish::Refresh => Ask::Refresh,
            }),
            edited: self.edited,
            stopped_for: self.stopped_for,
            deleting: self.deleting,
            marked: false,
            released: self.released,
        }
    }
}

impl Memory {
    fn of(tracker: &Tracker) -> Self {
        let sight = |sight: &Sight| {
            let mode = [ADD, REMOVE].into_iter().find(|mode| sight.name == name_for("c", *mode, ""));
            (mode.unwrap_or(IMBALANCE), bits(&sight.brokers))
        };
        Self {
            in_sight: tracker.in_sight.as_ref().map(sight),
            removal: Tries::of(&tracker.removal),
            addition: Tries::of(&tracker.addition),
            begun: tracker.imbalance.anomaly.is_some() && tracker.imbalance.ended.is_none(),
            paused: tracker.imbalance.ended.is_some(),
        }
    }

    fn tracker(&self) -> Tracker {
        let sight = |(mode, brokers)| Sight { name: name_for("c", mode, "a1"), brokers: set(brokers) };
        let imbalance = History {
            anomaly: self.begun.then(|| "a1".to_owned()),
            ended: self.paused.then(|| at(0)),
            ..History::default()
        };
        Tracker {
            in_sight: self.in_sight.map(sight),
            removal: self.removal.attempts(),
            addition: self.addition.attempts(),
            imbalance,
            ..Tracker::default()
        }
    }
}

impl Tries {
    fn of(attempts: &Attempts) -> Self {
        Self {
            failed: attempts.failed > 0,
            unknown: attempts.unknown as u8,
            waits: !attempts.is_due(at(0)),
            counted: attempts.counted.as_deref() == Some(UID),
        }
    }

    fn attempts(self) -> Attempts {
        Attempts {
            failed: self.failed.into(),
            unknown: self.unknown.into(),
            not_before: self.waits.then(|| at(30)),
            counted: self.counted.then(|| UID.to_owned()),
            ..Attempts::under("v1")
        }
    }
}

fn set(bits: Set) -> Brokers {
    (0..8).filter(|id| bits & (1 << id) != 0).collect()
}

fn bits(brokers: &Brokers) -> Set {
    brokers.iter().fold(0, |all, id| all | 1 << id)
}
