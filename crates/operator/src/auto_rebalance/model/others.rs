//! What users do in the tiny world, and what else befalls it.

use crate::auto_rebalance::decide::tests::ADD;

use super::{
    memory::{ANOMALIES, Memory},
    run::{Age, At, Run, Wish},
    world::{Brake, Look, Manual, Modes, Set, Status, World, can_be_stopped},
};

/// What may happen in a world.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rules {
    /// The brokers that come and go.
    pub(super) optional: Set,
    /// Whether the operator does all of what it has decided, and never dies in between.
    pub(super) steady: bool,
    /// Whether load drifts.
    pub(super) imbalance: bool,
    /// Whether scaling stops a rebalance on imbalance.
    pub(super) preempt: bool,
    /// Whether users stop, delete and remove generated resources, and pull the brake.
    pub(super) meddling: bool,
    /// Whether rebalances fail, Kafka cannot be asked and the engine rolls.
    pub(super) failures: bool,
    /// Whether nobody knows how rebalances end.
    pub(super) lost: bool,
    /// Whether engines are replaced, and refuse what passes by itself.
    pub(super) engines: bool,
    /// Whether users pause generated resources.
    pub(super) pauses: bool,
    /// Whether users edit generated resources and ask for them anew.
    pub(super) edits: bool,
    /// Whether users put finalizers on generated resources, and take them off.
    pub(super) keeps: bool,
    /// Whether users make rebalances of their own.
    pub(super) manual: bool,
    /// Whether their names may be ours.
    pub(super) names: bool,
    /// Whether the template comes and goes.
    pub(super) templates: bool,
    /// Whether modes are switched off and on.
    pub(super) switching: bool,
    /// Whether there are windows, and the memory of the guards is laid hands on.
    pub(super) guards: bool,
}

impl Rules {
    /// The modes that are on in the beginning.
    pub(super) fn modes(&self) -> Modes {
        Modes { add: true, remove: true, imbalance: self.imbalance }
    }
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

type Next = Vec<(&'static str, World)>;

impl World {
    /// Everything that can happen next, with its name.
    pub(super) fn next(&self, rules: &Rules) -> Vec<(Step, World)> {
        let writes = self.look(rules, Look::Clear);
        let left_out = if rules.steady { writes.len().saturating_sub(1) } else { 0 };
        let writes = writes.into_iter().enumerate().skip(left_out);
        let mut next: Vec<_> = writes.map(|(n, after)| (Step::DiesAfterWrite(n), after)).collect();
        next.extend(self.troubled_looks(rules).into_iter().map(|look| (Step::Looks(look), self.looked(rules, look))));
        // Without guards an hour is as good as a while.
        let mut others = vec![("a while passes", self.aged(!rules.guards))];
        if rules.guards {
            others.push(("an hour passes", self.aged(true)));
        }
        self.users(rules, &mut others);
        self.meddlers(rules, &mut others);
        self.minds(rules, &mut others);
        self.runs(rules, &mut others);
        next.extend(others.into_iter().map(|(what, after)| (Step::Happens(what), after)));
        next
    }

    /// Ways in which the operator may look at this world that make a difference.
    fn troubled_looks(&self, rules: &Rules) -> Vec<Look> {
        let leaving = self.pool & !self.wanted;
        let is_unknown = self.run.is_some_and(|run| run.at == At::Unknown);
        let looks = [
            (Look::Blind, rules.failures && leaving != 0),
            (Look::Anew, leaving != 0 && leaving & self.data == 0),
            (Look::Stuck, rules.failures && leaving & self.data != 0),
            (Look::Starting, rules.failures && self.on_record().additions != 0),
            (Look::Rolling, rules.failures),
            (Look::Busy, is_unknown),
        ];
        looks.into_iter().filter(|(_, matters)| *matters).map(|(look, _)| look).collect()
    }

    /// The same world in which users let go, everything is as it ought to be, and load stays as it is.
    pub(super) fn left_alone(mut self, rules: &Rules) -> World {
        self.brake = Brake::Released;
        self.uneven = None;
        self.unfixable = false;
        self.modes = rules.modes();
        self.template = true;
        self.window = true;
        self.taken = false;
        if let Some(run) = &mut self.run {
            run.paused = false;
            run.approved = true;
        }
        self.manual = self.manual.filter(|manual| *manual == Manual::Moving);
        self.let_go()
    }

    /// The same world, of which the engine finds that load is uneven, and can be evened out.
    pub(super) fn drifted(self) -> World {
        World { uneven: self.uneven.or(Some(0)), ..self }
    }

    /// Users take their finalizers off.
    fn let_go(self) -> World {
        World { run: self.run.map(|run| Run { kept: false, ..run }), lingering: None, ..self }
    }

    /// A user's rebalance comes to its end.
    pub(super) fn without_manual(self) -> World {
        World { manual: None, ..self }
    }

    pub(super) fn aged(mut self, by_an_hour: bool) -> World {
        self.memory = self.memory.aged(by_an_hour);
        if let Some(run) = &mut self.run
            && run.at == At::Unheard
            && run.age == Age::Fresh
        {
            run.age = Age::Old;
        }
        self
    }

    /// What is asked for is another thing, so what failed before is tried again.
    fn asking(self, change: impl FnOnce(&mut World)) -> World {
        let mut world = World { memory: self.memory.under_another_spec(), ..self };
        change(&mut world);
        world
    }

    fn users(&self, rules: &Rules, next: &mut Next) {
        for optional in (0..=rules.optional).filter(|set| set & !rules.optional == 0) {
            next.push(("the user scales", self.asking(|world| world.wanted = 1 | optional)));
        }
        let landing = self.pool & rules.optional;
        for broker in (1..8).map(|id| 1 << id).filter(|bit| landing & bit != 0) {
            next.push(("a new topic lands on a broker", World { data: self.data | broker, ..*self }));
        }
        if rules.imbalance && self.modes.imbalance {
            // An anomaly that is still on record is not written down once more; the next one has another id, which matters to
            // guards alone.
            let last = self.uneven.or(self.memory.begun).or(self.run.map(|run| run.anomaly));
            let other = last.filter(|_| rules.guards).map_or(0, |last| (last + 1) % ANOMALIES.len());
            let id = self.uneven.unwrap_or(other);
            next.push(("load drifts", World { uneven: Some(id), ..*self }));
        }
        if rules.guards && self.modes.imbalance {
            next.push(("load drifts beyond repair", World { unfixable: true, ..*self }));
            next.push(("the engine finds it can be mended", World { unfixable: false, ..*self }));
        }
        if rules.manual {
            let is_moving = self.run.is_some_and(|run| run.at == At::Moving);
            let (what, manual) = match self.manual {
                None => ("a user asks for a rebalance", Some(Manual::Asked)),
                Some(Manual::Asked) => ("a user's rebalance has a plan", Some(Manual::Planned)),
                Some(Manual::Planned) if is_moving => ("a user's rebalance waits", self.manual),
                Some(Manual::Planned) => ("a user approves", Some(Manual::Moving)),
                Some(Manual::Moving) => ("a user's rebalance is done", None),
            };
            next.push((what, World { manual, ..*self }));
            next.push(("a user deletes a rebalance", self.without_manual()));
        }
    }

    /// Hands on what the operator has made.
    fn meddlers(&self, rules: &Rules, next: &mut Next) {
        if rules.meddling {
            for brake in [Brake::Released, Brake::Pulled] {
                next.push(("the user reaches for the brake", World { brake, ..*self }));
            }
        }
        if rules.edits {
            next.push(("the user misspells the brake", World { brake: Brake::Unreadable, ..*self }));
            next.push(("the user corrects the brake", World { brake: Brake::Released, ..*self }));
        }
        if rules.guards {
            next.push(("the user deletes the tracker", World { memory: Memory::default(), torn: 0, ..*self }));
            next.push(("the user damages the tracker", World { memory: Memory::damaged(), torn: 0, ..*self }));
        }
        if rules.keeps {
            next.push(("the user takes the finalizers off", self.let_go()));
        }
        let Some(run) = self.run else { return };
        let with = |run| World { run: Some(run), ..*self };
        if rules.keeps && !run.deleting {
            next.push(("the user puts a finalizer on it", with(Run { kept: true, ..run })));
        }
        if rules.meddling {
            if can_be_stopped(run.at) {
                next.push(("the user stops it", with(Run { ask: Some(Wish::Stop), ..run })));
            }
            next.push(("the user deletes it", with(Run { deleting: true, ..run })));
            // What a user removes, nobody owes any more.
            let Status { mode, additions, .. } = self.on_record();
            let of_run = if mode == Some(ADD) && run.mode == ADD { self.memory.seen_filled() & additions } else { 0 };
            let torn = World { owed: self.owed & !run.forfeits(), torn: self.torn | of_run, ..*self };
            next.push(("the user removes it by force", torn.without_run()));
        }
        if rules.pauses {
            next.push(("the user pauses it", with(Run { paused: !run.deleting, ..run })));
            next.push(("the user unpauses it", with(Run { paused: false, ..run })));
        }
        if rules.edits && !run.deleting {
            next.push(("the user asks for it anew", with(Run { ask: Some(Wish::Refresh), ..run })));
            let all = 1 | rules.optional;
            // What it was about and is not any more still waits for its turn.
            let edited = run.edited || run.brokers != all;
            next.push(("the user edits its brokers", with(Run { brokers: all, edited, ..run })));
            next.push((
                "the user takes its approval off, or puts it back",
                with(Run { approved: !run.approved, ..run }),
            ));
        }
    }

    /// Users change their minds about the whole.
    fn minds(&self, rules: &Rules, next: &mut Next) {
        if rules.templates {
            next.push(("the template comes or goes", self.asking(|world| world.template = !world.template)));
        }
        if rules.names && self.run.is_none() {
            next.push(("a name is taken or given up", World { taken: !self.taken, ..*self }));
        }
        if rules.guards {
            next.push(("a window opens or closes", World { window: !self.window, ..*self }));
        }
        if rules.switching {
            let Modes { add, remove, imbalance } = self.modes;
            let others = [
                Modes { add: !add, ..self.modes },
                Modes { remove: !remove, ..self.modes },
                Modes { imbalance: rules.imbalance && !imbalance, ..self.modes },
                Modes { add: false, remove: false, imbalance: false },
                rules.modes(),
            ];
            for modes in others {
                next.push(("a mode is switched", self.asking(|world| world.modes = modes)));
            }
        }
    }

    /// What the generated rebalance may do next.
    fn runs(&self, rules: &Rules, next: &mut Next) {
        let Some(run) = self.run else { return };
        next.push(self.progress());
        let with = |at: At, owed: Set| World { owed, run: Some(run.gone_to(at)), ..*self };
        if rules.engines {
            let mut replaced = *self;
            replaced.memory.with_another_engine();
            replaced.run = Some(Run { outlived: true, ..run });
            next.push(("the engine is replaced", replaced));
        }
        if run.paused {
            return;
        }
        let (kept, lost) = (self.owed, self.owed & !run.forfeits());
        if rules.failures && run.at == At::Planned && !run.edited && run.ask.is_none() && !run.deleting {
            // What a user keeps from being moved, nobody owes any more.
            next.push(("it is withheld", with(At::Withheld, lost)));
        }
        if rules.failures && matches!(run.at, At::Planning | At::Moving) && !run.edited {
            // What an earlier engine was asked for is asked of the present one before it is given up.
            next.push(("it fails", with(At::Failed, if run.outlived { kept } else { lost })));
        }
        if rules.lost && run.at == At::Moving && !run.edited {
            let owed = if self.memory.is_last_attempt() { lost } else { kept };
            next.push(("it is lost sight of", with(At::Unknown, owed)));
        }
        if rules.engines && run.at == At::New && !run.deleting {
            next.push(("the Kafka is not ready", with(At::Early, kept)));
        }
        if rules.engines && matches!(run.at, At::New | At::Planning) && !run.edited && !run.deleting {
            next.push(("something is not there", with(At::Lacking, kept)));
            next.push(("its brokers are not known", with(At::Unheard, kept)));
        }
        if run.at == At::Moving && run.ask == Some(Wish::Stop) {
            let mut done = *self;
            done.carry_out(&run);
            done.run = Some(run.gone_to(At::Done));
            next.push(("it is done before it stops", done));
        }
    }
}
