//! A generated KafkaRebalance of the tiny world, and what it does if all goes well.

use evenkeel_api::{Reason, annotations::Ask, kafka::AutoRebalanceMode, rebalance::RebalanceState};

use super::{
    memory::name_of,
    world::{Manual, Set, World, set},
};
use crate::auto_rebalance::{
    decide::tests::{ADD, at},
    generated::{Generated, StopReason},
};

/// There is only ever one run, so all of them may have the same uid, if its end is made known.
pub(super) const UID: &str = "uid";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Run {
    pub(super) mode: AutoRebalanceMode,
    /// The anomaly that it is for, where it is for one.
    pub(super) anomaly: usize,
    pub(super) brokers: Set,
    /// What the present plan is about: the brokers may have been changed since.
    pub(super) planned: Set,
    pub(super) at: At,
    pub(super) edited: bool,
    pub(super) ask: Option<Wish>,
    pub(super) stopped_for: Option<StopReason>,
    pub(super) paused: bool,
    pub(super) deleting: bool,
    pub(super) released: bool,
    /// Whether a user's finalizer is on it.
    pub(super) kept: bool,
    pub(super) age: Age,
    /// Whether it is approved by itself.
    pub(super) approved: bool,
    /// Whether the engine that was asked for it is not the one that is there.
    pub(super) outlived: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum At {
    New,
    Planning,
    Planned,
    /// It has a plan that nobody approves.
    Withheld,
    Moving,
    Done,
    /// The engine refused.
    Failed,
    /// Something was not there when it began; it begins by itself when it is.
    Lacking,
    /// The Kafka was not ready when it began; likewise.
    Early,
    /// The engine did not know its brokers.
    Unheard,
    /// Nobody knows how it ended.
    Unknown,
    Stopped,
}

/// For how long it has stood where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Age {
    Fresh,
    /// Long enough to be asked again.
    Old,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Wish {
    Stop,
    Refresh,
}

impl Run {
    pub(super) fn new(mode: AutoRebalanceMode, anomaly: usize, brokers: Set) -> Self {
        Self {
            mode,
            anomaly,
            brokers,
            planned: 0,
            at: At::New,
            edited: false,
            ask: None,
            stopped_for: None,
            paused: false,
            deleting: false,
            released: false,
            kept: false,
            age: Age::Fresh,
            approved: true,
            outlived: false,
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.at >= At::Done
    }

    /// Brokers that nobody owes anything any more when it does not do what it is for.
    pub(super) fn forfeits(&self) -> Set {
        if self.mode == ADD { self.brokers } else { 0 }
    }

    pub(super) fn gone_to(self, at: At) -> Self {
        Self { at, age: Age::Fresh, ..self }
    }

    pub(super) fn seen(&self) -> Generated {
        let state = match self.at {
            _ if self.paused => RebalanceState::ReconciliationPaused,
            At::New => RebalanceState::New,
            At::Planning => RebalanceState::PendingProposal,
            At::Planned | At::Withheld => RebalanceState::ProposalReady,
            At::Moving => RebalanceState::Rebalancing,
            At::Done => RebalanceState::Ready,
            At::Failed | At::Lacking | At::Early | At::Unheard | At::Unknown => RebalanceState::NotReady,
            At::Stopped => RebalanceState::Stopped,
        };
        let reason = match self.at {
            _ if self.paused => None,
            At::Failed => Some(Reason::CruiseControlRestException),
            At::Lacking => Some(Reason::NoSuchResourceException),
            At::Early => Some(Reason::InvalidResourceException),
            At::Unheard => Some(Reason::NoSuchBroker),
            At::Unknown => Some(Reason::ExecutionOutcomeUnknown),
            _ => None,
        };
        let since = match self.age {
            Age::Fresh => at(-5),
            Age::Old => at(-500),
        };
        Generated {
            name: name_of(self.mode, self.anomaly),
            uid: UID.to_owned(),
            mode: self.mode,
            brokers: set(self.brokers),
            state,
            because: reason.map(|reason| (reason.to_string(), "why".to_owned())),
            since: Some(since),
            withheld: (self.at == At::Withheld && !self.paused && self.approved)
                .then(|| "it moves too much".to_owned()),
            unapproved: self.has_a_plan() && !self.paused && !self.approved,
            ask: self.ask.map(|wish| match wish {
                Wish::Stop => Ask::Stop,
                Wish::Refresh => Ask::Refresh,
            }),
            asked_of: Some(if self.outlived { "e0" } else { "e1" }.to_owned()),
            edited: self.edited,
            stopped_for: self.stopped_for,
            deleting: self.deleting,
            marked: false,
            released: self.released,
            kept_by: if self.kept { vec!["example.com/keep".to_owned()] } else { Vec::new() },
            labelled: true,
        }
    }

    /// Whether nothing comes of it any more, and only a user's finalizer keeps it.
    fn lingers(&self) -> bool {
        self.released && self.kept && !self.paused && !matches!(self.at, At::Planning | At::Moving)
    }

    fn has_a_plan(&self) -> bool {
        matches!(self.at, At::Planned | At::Withheld)
    }

    /// Whether a user has told it to stop, and it will.
    pub(super) fn heeds_a_user(&self) -> bool {
        let is_at_it = matches!(self.at, At::New | At::Planning | At::Moving)
            || (self.has_a_plan() && self.approved && !self.deleting);
        is_at_it && !self.paused && self.ask == Some(Wish::Stop) && self.stopped_for.is_none()
    }
}

impl World {
    /// What the generated rebalance does if all goes well.
    pub(super) fn progress(&self) -> (&'static str, World) {
        let (what, world) = self.progressed();
        (what, world.sorted())
    }

    /// The same world, in which one that only lingers is in nobody's way: of that one, no more matters than its name.
    pub(super) fn sorted(self) -> World {
        let Some(run) = self.run.filter(Run::lingers) else { return self };
        let rest =
            Run { at: At::Done, deleting: true, released: true, kept: true, ..Run::new(run.mode, run.anomaly, 0) };
        World { lingering: Some(rest), ..self.without_run() }
    }

    fn progressed(&self) -> (&'static str, World) {
        let Some(run) = self.run else { return ("nothing runs", *self) };
        if run.released && (run.is_over() || matches!(run.at, At::New | At::Planned | At::Withheld)) {
            return match run.kept {
                // What is deleted is followed, pause or not.
                true => ("it lingers", World { run: Some(Run { paused: false, ..run }), ..*self }),
                false => ("it is gone", self.without_run()),
            };
        }
        if run.paused && !run.deleting {
            return ("it is left alone", *self);
        }
        let before = run;
        // What is deleted is followed to its end, pause or not.
        let run = Run { paused: false, ..run };
        let mut world = *self;
        let renewed = (run.edited || run.ask == Some(Wish::Refresh)) && !run.deleting;
        let plan = Run { planned: run.brokers, edited: false, ask: None, ..run.gone_to(At::Planning) };
        let stop = Run { ask: None, ..run.gone_to(At::Stopped) };
        let (what, run) = match run.at {
            At::New | At::Planned | At::Withheld if run.deleting => ("it is withdrawn", stop),
            At::Planning if run.deleting && !run.released => ("it is withdrawn", stop),
            // A stop is no valid wish before there is anything to stop, so it is kept.
            At::New => ("it plans", Run { ask: run.ask, ..plan }),
            // What was edited before the stop does not begin anew after it.
            At::Planning | At::Moving if run.ask == Some(Wish::Stop) => ("it stops", Run { edited: false, ..stop }),
            At::Planning | At::Planned | At::Withheld | At::Moving if renewed => ("it plans anew", plan),
            At::Planned | At::Withheld if run.ask == Some(Wish::Stop) && run.approved => ("it stops", stop),
            At::Planning => ("it has a plan", run.gone_to(At::Planned)),
            At::Planned if !run.approved => ("it waits for approval", run),
            At::Planned if self.manual == Some(Manual::Moving) => ("it waits for its turn", run),
            At::Planned => ("it moves data", run.gone_to(At::Moving)),
            At::Withheld => ("it waits for approval", run),
            At::Moving => {
                world.carry_out(&run);
                ("it is done", run.gone_to(At::Done))
            }
            At::Lacking | At::Early if !run.deleting => ("it begins by itself", plan),
            _ if renewed => ("it plans anew", plan),
            _ => ("it rests", run),
        };
        if before.at != At::Stopped && run.at == At::Stopped && run.stopped_for.is_none() {
            // What a user stops, nobody owes any more.
            world.owed &= !run.forfeits();
        }
        world.run = Some(run);
        (what, world)
    }

    /// Its plan has become true.
    pub(super) fn carry_out(&mut self, run: &Run) {
        match run.mode {
            AutoRebalanceMode::RemoveBrokers => self.data &= !run.planned,
            AutoRebalanceMode::AddBrokers => {
                self.data |= run.planned & self.pool;
                self.owed &= !run.planned;
            }
            AutoRebalanceMode::Imbalance => {}
        }
    }

    pub(super) fn without_run(mut self) -> World {
        self.run = None;
        self.memory = self.memory.without_run();
        self
    }
}
