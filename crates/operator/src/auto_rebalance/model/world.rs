//! The tiny world: what is in it, and what the operator makes of a look at it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use evenkeel_api::{
    KafkaRebalance, annotations,
    kafka::{AutoRebalanceMode, AutoRebalanceState, AutoRebalanceStatus},
    rebalance::{RebalanceMode, RebalanceState},
};

use super::{
    memory::{ANOMALIES, Memory, name_of},
    others::Rules,
    run::{Age, At, Run, Wish},
};
use crate::auto_rebalance::{
    brokers::{BrokersSeen, Check},
    decide::{
        Act, Decision, TrackerWrite, decide,
        tests::{ADD, IMBALANCE, REMOVE, at, calm, template},
    },
    generated::{Generated, Phase},
    guards::STARTS_PER_HOUR,
    imbalance::{FIXABLE, UNFIXABLE},
    observe::{self, Engine, Observation},
    settings::Configured,
    state::{Brokers, Recorded, mode_of, remember_added, state_of},
    tracker::Tracker,
};
use crate::kafka::{
    scale_down::{self, Verdict},
    seen::{Known, Metadata, Partition},
};

/// Brokers as bits. Bit 0 is the broker that always stays.
pub(super) type Set = u8;

/// What is found of templates while there is one.
static TEMPLATES: LazyLock<BTreeMap<String, KafkaRebalance>> = LazyLock::new(|| template(serde_json::json!({}), true));

/// A window that is not open at the moment of all looks, shortly before two in the afternoon.
const AT_NIGHT: &str = "* * 3 * * ?";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct World {
    /// The brokers that the spec asks for.
    pub(super) wanted: Set,
    /// The brokers there are, as the pool's status lists them.
    pub(super) pool: Set,
    /// Those that hold data.
    pub(super) data: Set,
    /// Those that were added and that nobody has moved data to, nor given a reason not to. Only the
    /// world knows; the machine has to remember.
    pub(super) owed: Set,
    /// Those whose rebalance a user has removed by force after it was seen: it is not made again. Nothing of it once the
    /// status says that it is over.
    pub(super) torn: Set,
    /// None where the feature was off.
    pub(super) status: Option<Status>,
    pub(super) memory: Memory,
    pub(super) run: Option<Run>,
    /// One that is over, and that a user's finalizer keeps.
    pub(super) lingering: Option<Run>,
    /// A user's rebalance.
    pub(super) manual: Option<Manual>,
    /// The anomaly on record that can be mended.
    pub(super) uneven: Option<usize>,
    /// Whether there is one that cannot.
    pub(super) unfixable: bool,
    pub(super) brake: Brake,
    /// The modes that are switched on.
    pub(super) modes: Modes,
    /// Whether the template that all of them name is there.
    pub(super) template: bool,
    /// Whether it is a time for maintenance.
    pub(super) window: bool,
    /// Whether a user's rebalance has the names that those for brokers get.
    pub(super) taken: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Status {
    /// By its mode; None is Idle.
    pub(super) mode: Option<AutoRebalanceMode>,
    pub(super) removals: Set,
    pub(super) additions: Set,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Manual {
    Asked,
    /// It has a plan that nobody has approved yet.
    Planned,
    Moving,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Brake {
    Released,
    Pulled,
    Unreadable,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Modes {
    pub(super) add: bool,
    pub(super) remove: bool,
    pub(super) imbalance: bool,
}

impl Modes {
    fn has(self, mode: AutoRebalanceMode) -> bool {
        match mode {
            AutoRebalanceMode::AddBrokers => self.add,
            AutoRebalanceMode::RemoveBrokers => self.remove,
            AutoRebalanceMode::Imbalance => self.imbalance,
        }
    }
}

/// How a look of the operator at the world goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    Clear,
    /// Kafka cannot be asked who holds data.
    Blind,
    /// Brokers that are to go were not known to be empty before.
    Anew,
    /// What brokers hold that are to go has nowhere to go.
    Stuck,
    /// Those that were added have not come up yet.
    Starting,
    /// The engine is rolling.
    Rolling,
    /// The engine is at something.
    Busy,
}

impl World {
    pub(super) fn new(rules: &Rules) -> Self {
        Self {
            wanted: 1,
            pool: 1,
            data: 1,
            owed: 0,
            torn: 0,
            status: Some(Status::default()),
            memory: Memory::default(),
            run: None,
            lingering: None,
            manual: None,
            uneven: None,
            unfixable: false,
            brake: Brake::Released,
            modes: rules.modes(),
            template: true,
            window: true,
            taken: false,
        }
    }

    /// The world after a whole look.
    pub(super) fn looked(&self, rules: &Rules, look: Look) -> World {
        self.look(rules, look).last().copied().unwrap_or(*self)
    }

    /// One look: the world after each write, in order.
    pub(super) fn look(&self, rules: &Rules, look: Look) -> Vec<World> {
        let mut world = *self;
        let mut writes = Vec::new();
        let (added, leaving) = (self.wanted & !self.pool, self.pool & !self.wanted);
        let verdict = self.judged(leaving, look);
        if added != 0 {
            let remembered = remember_added(world.recorded().as_ref(), &set(added), &world.generated(), at(0));
            if let Some(status) = remembered.filter(|_| self.modes.add) {
                world.record(Some(&status));
                writes.push(world);
            }
            world.pool |= added;
            world.owed |= if self.modes.add { added } else { 0 };
            writes.push(world);
        }
        if leaving != 0 && verdict.kept_because.is_none() {
            assert_eq!(leaving & world.data, 0, "removed with its data");
            let drain = world.run.filter(|run| run.mode == REMOVE && run.brokers & leaving != 0);
            assert!(drain.is_none_or(|run| run.is_over()), "removed before the drain was at its end");
            world.pool &= !leaving;
            world.owed &= !leaving;
            writes.push(world);
        }
        let decision = decide(&world.seen(rules, look, added, leaving, verdict.check));
        world.write(&decision, self, look, leaving, &mut writes);
        if self.modes.imbalance {
            let asked = matches!(self.manual, Some(Manual::Asked | Manual::Moving));
            let ours = world.run.is_some_and(|run| matches!(run.seen().phase(), Phase::Underway | Phase::Paused));
            assert!(!(asked || ours) || world.uneven.is_none(), "what is mended now is still on record");
        }
        writes
    }

    /// Whether these may go.
    fn judged(&self, leaving: Set, look: Look) -> Verdict {
        if leaving == 0 {
            return Verdict::default();
        }
        let copies = if look == Look::Stuck { 0b1110_0001 } else { 0 };
        let held = set(self.data).into_iter().map(|id| Partition {
            name: format!("t-{id}"),
            replicas: set(1 << id | copies),
            ..Partition::default()
        });
        let metadata = match look {
            Look::Blind => Metadata::Unreachable("nobody answers".to_owned()),
            _ => Metadata::Known(Known { partitions: Some(held.collect()), ..Known::default() }),
        };
        let known = if look == Look::Anew { 0 } else { leaving };
        let empty_since = set(known).into_iter().map(|id| (id, at(-100))).collect();
        let seen = scale_down::Look { metadata: &metadata, empty_since: &empty_since, now: at(0) };
        scale_down::judge(&set(leaving), self.wanted.count_ones() as usize, seen, &self.generated(), false)
    }

    fn generated(&self) -> Vec<Generated> {
        self.run.iter().chain(&self.lingering).map(Run::seen).collect()
    }

    fn seen(&self, rules: &Rules, look: Look, added: Set, leaving: Set, check: Check) -> Observation {
        let engine = match look {
            Look::Rolling => Engine::Rolling,
            _ => Engine::Current { id: "e1".to_owned(), executing: Some(look == Look::Busy) },
        };
        let calm = calm();
        let named = [ADD, REMOVE, IMBALANCE].into_iter().filter(|mode| self.modes.has(*mode));
        let windows = if self.window { Vec::new() } else { vec![AT_NIGHT.to_owned()] };
        let anomaly = |id: &str| format!("- {id}: [RackAwareGoal]");
        let fixable = self.uneven.map(|id| anomaly(ANOMALIES[id])).unwrap_or_default();
        let mut violations = BTreeMap::from([(FIXABLE.to_owned(), fixable)]);
        violations.extend(self.unfixable.then(|| (UNFIXABLE.to_owned(), anomaly("never"))));
        let there = self.modes.imbalance || self.uneven.is_some() || self.unfixable;
        let manual = self.manual.map(|manual| observe::Manual {
            name: "mine".to_owned(),
            state: match manual {
                Manual::Asked => RebalanceState::New,
                Manual::Planned => RebalanceState::ProposalReady,
                Manual::Moving => RebalanceState::Rebalancing,
            },
            since: None,
        });
        let unreadable = || [(annotations::AUTO_REBALANCE.to_owned(), "of".to_owned())].into();
        let taken: BTreeSet<String> = [ADD, REMOVE].map(|mode| name_of(mode, 0)).into();
        Observation {
            brake: match self.brake {
                Brake::Released => observe::Brake::Released,
                Brake::Pulled => observe::Brake::Pulled,
                Brake::Unreadable => observe::Brake::read(&unreadable()),
            },
            configured: Configured {
                modes: named.map(|mode| (mode, Some("t".to_owned()))).collect(),
                preempt: rules.preempt,
                windows,
                ..calm.configured
            },
            templates: if self.template { TEMPLATES.clone() } else { BTreeMap::new() },
            recorded: self.recorded(),
            brokers: BrokersSeen {
                present: set(self.pool),
                ready: set(if look == Look::Starting { 1 } else { self.pool }),
                // Whoever starts has taken too long already: then most may begin without it.
                starting: BTreeMap::new(),
                added: set(added),
                leaving: set(leaving),
                check,
                left: None,
            },
            engine,
            generated: self.generated(),
            manual: manual.into_iter().collect(),
            strangers: if self.taken { taken } else { BTreeSet::new() },
            violations: there.then_some(violations),
            tracker: (self.memory != Memory::default()).then(|| self.memory.tracker().written()),
            ..calm
        }
    }

    fn recorded(&self) -> Option<AutoRebalanceStatus> {
        let Status { mode, removals, additions } = self.status?;
        let recorded = Recorded {
            state: mode.map_or(AutoRebalanceState::Idle, state_of),
            removals: set(removals),
            additions: set(additions),
            imbalance: mode == Some(IMBALANCE),
        };
        Some(recorded.written(None, at(-1)))
    }

    fn record(&mut self, status: Option<&AutoRebalanceStatus>) {
        self.status = status.map(|status| {
            let recorded = Recorded::read(Some(status));
            Status {
                mode: mode_of(recorded.state),
                removals: bits(&recorded.removals),
                additions: bits(&recorded.additions),
            }
        });
        let Status { mode, additions, .. } = self.on_record();
        self.torn &= if mode == Some(ADD) { additions } else { 0 };
    }

    pub(super) fn on_record(&self) -> Status {
        self.status.unwrap_or_default()
    }

    /// Writes a decision that was made in the world before, noting the world after each write, and complains of what
    /// must not be.
    fn write(&mut self, decision: &Decision, before: &World, look: Look, leaving: Set, writes: &mut Vec<World>) {
        match &decision.tracker {
            TrackerWrite::Write(data) => self.memory = Memory::of(&Tracker::read(Some(data), at(0)).0),
            TrackerWrite::Delete => (self.memory, self.torn) = (Memory::default(), 0),
            TrackerWrite::Keep => {}
        }
        writes.push(*self);
        self.record(decision.status.as_ref());
        let Status { removals, additions, .. } = self.on_record();
        // Brokers to be emptied need nothing moved to them.
        self.owed &= !removals;
        if !self.modes.add || !self.template {
            // So it is to be: it was switched off, or nobody knows how it is to be done.
            self.owed &= additions;
        }
        writes.push(*self);
        for act in &decision.acts {
            self.act(act, before, look, leaving, writes);
            writes.push(*self);
        }
    }

    fn act(&mut self, act: &Act, before: &World, look: Look, leaving: Set, writes: &mut Vec<World>) {
        match act {
            Act::Create(made) => {
                let mode = match made.spec.mode {
                    RebalanceMode::AddBrokers => ADD,
                    RebalanceMode::RemoveBrokers => REMOVE,
                    _ => IMBALANCE,
                };
                let brokers = made.spec.brokers.iter().flatten().fold(0, |all, id| all | 1 << id);
                self.may_begin(mode, before, look, leaving);
                self.has_a_trigger(mode, brokers, leaving);
                if mode == REMOVE {
                    assert_ne!(leaving & self.data, 0, "there is nothing to empty");
                }
                let anomaly = self.uneven.filter(|_| mode == IMBALANCE).unwrap_or_default();
                assert_eq!(made.metadata.name, Some(name_of(mode, anomaly)));
                let lingering = self.lingering.map(|run| name_of(run.mode, run.anomaly));
                assert_ne!(made.metadata.name, lingering, "there is one of that name");
                self.run = Some(Run::new(mode, anomaly, brokers));
            }
            Act::Update { brokers, .. } => {
                let brokers = bits(brokers);
                assert_ne!(self.brake, Brake::Pulled, "the brake is pulled");
                let run = self.run.unwrap();
                assert!(!run.heeds_a_user(), "a user's stop is overwritten");
                self.has_a_trigger(run.mode, brokers, leaving);
                assert!(self.modes.has(run.mode) || brokers & !run.brokers == 0, "more of what is switched off");
                assert!(!run.deleting, "one that goes takes nothing new");
                let edited = run.edited || run.brokers != brokers;
                let outlived = look == Look::Rolling;
                self.run = Some(Run { brokers, edited, ask: Some(Wish::Refresh), outlived, ..run });
            }
            Act::Refresh { .. } => {
                assert_ne!(self.brake, Brake::Pulled, "the brake is pulled");
                let run = self.run.unwrap();
                assert!(!run.heeds_a_user(), "a user's stop is overwritten");
                let unheard = run.at == At::Unheard && run.age == Age::Old;
                assert!(run.outlived || unheard, "each engine is asked once");
                self.run = Some(Run { ask: Some(Wish::Refresh), outlived: false, ..run });
            }
            Act::Stop { why, .. } | Act::Withdraw { why, .. } => {
                let run = self.run.as_mut().unwrap();
                assert!(!run.heeds_a_user(), "a user's stop is taken for ours");
                run.ask = Some(Wish::Stop);
                run.stopped_for = Some(*why);
                if matches!(act, Act::Withdraw { .. }) {
                    writes.push(*self);
                    self.run.as_mut().unwrap().deleting = true;
                }
            }
            Act::Remove { .. } => {
                let is_off = !(self.modes.add || self.modes.remove || self.modes.imbalance);
                let run = self.run.as_mut().unwrap();
                assert!(run.is_over() || (run.paused && is_off), "removed while it runs");
                run.deleting = true;
                run.released = true;
                *self = self.sorted();
            }
            Act::EmptyViolations { unfixable_too } => {
                self.uneven = None;
                self.unfixable &= !unfixable_too;
            }
            Act::NoteViolations(_) => panic!("the engine writes it"),
            Act::DeleteViolations => {
                assert!(!self.modes.imbalance && look != Look::Rolling, "it would come back");
                (self.uneven, self.unfixable) = (None, false);
            }
        }
    }

    /// Whatever begins was recorded first, is alone, and nobody and nothing holds it.
    fn may_begin(&self, mode: AutoRebalanceMode, before: &World, look: Look, leaving: Set) {
        assert_eq!(self.run, None, "never two at once");
        assert_eq!(self.on_record().mode, Some(mode), "recorded first");
        assert_eq!(self.brake, Brake::Released, "the brake is pulled");
        assert!(self.modes.has(mode), "its mode is off");
        assert!(self.template, "there is no template");
        assert_ne!(look, Look::Rolling, "the engine is another one soon");
        assert_ne!(self.manual, Some(Manual::Moving), "a user's rebalance moves data");
        assert!(mode == IMBALANCE || !self.taken, "there is one of that name");
        if mode != IMBALANCE {
            return;
        }
        assert!(!self.unfixable, "a rebalance would not mend it");
        assert_ne!(self.manual, Some(Manual::Asked), "a user's rebalance comes first");
        assert_eq!(self.on_record().additions, 0, "brokers come first");
        let unmoved = look == Look::Stuck || (leaving & self.data != 0 && !self.modes.remove);
        assert!(leaving == 0 || unmoved, "brokers go first");
        // A crash came between memory and deed, and the guards have let it pass before.
        let begun = before.memory.begun == self.uneven;
        let open = !before.memory.paused && before.memory.starts < STARTS_PER_HOUR;
        assert!((begun || open) && self.window, "the guards are closed");
    }

    fn has_a_trigger(&self, mode: AutoRebalanceMode, brokers: Set, leaving: Set) {
        match mode {
            AutoRebalanceMode::RemoveBrokers => assert!(brokers != 0 && brokers & !leaving == 0, "not to be removed"),
            AutoRebalanceMode::AddBrokers => {
                assert!(brokers != 0 && brokers & leaving == 0, "data for a broker that goes");
                assert_eq!(brokers & !self.pool, 0, "data for a broker that is not there");
                assert_eq!(brokers & !self.on_record().additions, 0, "data for a broker that was not added");
                assert_eq!(brokers & self.torn, 0, "what a user has removed is made again");
            }
            AutoRebalanceMode::Imbalance => {
                assert!(self.uneven.is_some(), "nothing is violated");
            }
        }
    }

    /// The world in one line.
    pub(super) fn sketch(&self) -> String {
        let run = self.run.map(|run| {
            let Run { mode, brokers, at, edited, ask, stopped_for, paused, deleting, released, .. } = run;
            format!(
                "{mode}{brokers:b} {at:?} edited={edited} {ask:?} {stopped_for:?} paused={paused} deleting={deleting} \
                 released={released}"
            )
        });
        format!(
            "wanted {:b} pool {:b} data {:b} owed {:b} uneven {:?} {:?} modes {:?} manual {:?} template {}: {:?}; {}; {run:?}",
            self.wanted,
            self.pool,
            self.data,
            self.owed,
            self.uneven,
            self.brake,
            self.modes,
            self.manual,
            self.template,
            self.status,
            self.memory.sketch(),
        )
    }

    /// What must hold in every world.
    pub(super) fn check(&self) {
        assert_eq!(self.owed & !self.on_record().additions, 0, "an addition was lost");
    }

    /// Whether there is nothing left to do.
    pub(super) fn is_settled(&self) -> bool {
        self.status == Some(Status::default()) && self.run.is_none() && self.pool == self.wanted
    }

    /// Whether load was just evened out.
    pub(super) fn is_mended(&self) -> bool {
        self.run.is_some_and(|run| run.mode == IMBALANCE && run.at == At::Done)
    }
}

pub(super) fn set(bits: Set) -> Brokers {
    (0..8).filter(|id| bits & (1 << id) != 0).collect()
}

pub(super) fn bits(brokers: &Brokers) -> Set {
    brokers.iter().fold(0, |all, id| all | 1 << id)
}

/// Whether anything more can come of it by itself.
pub(super) fn can_be_stopped(at: At) -> bool {
    matches!(at, At::Planning | At::Planned | At::Withheld | At::Moving)
}
