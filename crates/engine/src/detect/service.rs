//! The loop: wakes when something is known that was not, when moves begin or end, and when a round is due.
//!
//! It looks, judges, asks what to do about what it found, tells people, and mends by sending a request to
//! whoever carries requests out. While moves are being made it only misses brokers, and does nothing about
//! them: what is still wrong afterwards is found again. It ends when whoever feeds it is gone.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use evenkeel_balancer::provision::Provision;
use evenkeel_rest::{body::state::AnomalyDetectorState, parameter::AnomalyType};
use tokio::{
    sync::{oneshot, watch},
    task::AbortHandle,
};
use uuid::Uuid;

use super::{
    Anomaly, Finding, Kind, Ledger, Millis, Status,
    failures::Missing,
    goals::{Round, goal_violations},
    notifier::{Manner, Told, Verdict},
    repair::{self, Terms},
    state::state,
    switches::Switches,
    tally::Tally,
    timetable::{Moment, Timetable},
    words::words,
};
use crate::{
    clock::WallClock,
    config::{detectors::Detectors as Settings, settings::Goals},
    metrics::Timer,
    notify::{Alert, Judgement, Notice},
};

mod feed;
#[cfg(test)]
mod tests;

pub use feed::{Inputs, Outcome, Repair, Unready};

/// The detectors. Clones are the same ones.
#[derive(Clone)]
pub struct Detectors {
    board: Arc<Mutex<Board>>,
    missing: watch::Receiver<BTreeMap<i32, Millis>>,
    heals: bool,
    clock: WallClock,
    life: AbortHandle,
}

/// What can be asked any time.
struct Board {
    ledger: Ledger,
    switches: Switches,
    tally: Tally,
    score: f64,
    provision: Provision,
    has_unfixable: bool,
    judging: Timer,
    fixes: BTreeMap<AnomalyType, Timer>,
}

/// How often what was done since the process began, and how long it took.
#[derive(Debug, Clone, Default)]
pub struct Timers {
    /// Judging all goals.
    pub judging: Timer,
    /// Anomalies that were looked into.
    pub handled: BTreeMap<AnomalyType, u64>,
    /// Making a plan against one and beginning to carry it out, or finding that there is none.
    pub fixes: BTreeMap<AnomalyType, Timer>,
}

impl Detectors {
    /// Begins to look.
    pub fn start(settings: Settings, goals: Goals, inputs: Inputs) -> Detectors {
        let (clock, now) = (inputs.clock, inputs.clock.now());
        let missing = Missing::recalled(inputs.missed.clone());
        let (recorded, missing_brokers) = watch::channel(missing.brokers().clone());
        let heals = settings.healing.manner == Manner::Heals;
        let on = if heals { settings.enabled.clone() } else { BTreeSet::new() };
        let board = Arc::new(Mutex::new(Board {
            ledger: Ledger::new(settings.kept),
            switches: Switches::new(on, now),
            tally: Tally::new(now),
            score: 100.0,
            provision: Provision::default(),
            has_unfixable: false,
            judging: Timer::default(),
            fixes: BTreeMap::new(),
        }));
        let watcher = Watcher {
            board: Arc::clone(&board),
            timetable: Timetable::new(settings.intervals, now),
            terms: Terms {
                goals: goals.self_healing.clone(),
                spared: settings.spared,
                may_estimate: settings.may_estimate,
            },
            goals: Arc::new(goals),
            settings,
            inputs,
            missing,
            recorded,
            told: Told::default(),
            violated: false,
            was_executing: false,
        };
        let life = tokio::spawn(watcher.run()).abort_handle();
        Detectors { board, missing: missing_brokers, heals, clock, life }
    }

    /// Looks no more.
    pub fn end(&self) {
        self.life.abort();
    }

    /// Whether it still looks.
    pub fn is_at_work(&self) -> bool {
        !self.life.is_finished()
    }

    /// As the API tells it.
    pub fn state(&self) -> AnomalyDetectorState {
        let board = locked(&self.board);
        state(&board.ledger, &board.switches, &board.tally, board.score, self.clock.now())
    }

    /// Sets whether a kind is mended without asking; says how it was and how it is now. Where the notifier never
    /// mends anything it stays off.
    pub fn switch(&self, kind: AnomalyType, on: bool) -> (bool, bool) {
        let mut board = locked(&self.board);
        let was = board.switches.set(kind, on && self.heals, self.clock.now());
        (was, board.switches.is_on(kind))
    }

    /// Whether the cluster has the right size, by the last round.
    pub fn provision(&self) -> Provision {
        locked(&self.board).provision.clone()
    }

    /// What was done so far.
    pub fn timers(&self) -> Timers {
        let board = locked(&self.board);
        Timers { judging: board.judging, handled: board.tally.times(), fixes: board.fixes.clone() }
    }

    /// Whether the last round found a goal that cannot be met.
    pub fn has_unfixable_goals(&self) -> bool {
        locked(&self.board).has_unfixable
    }

    /// Brokers that are missed and since when, each time it changes: to be recorded, and handed in at the next start.
    pub fn missing_brokers(&self) -> watch::Receiver<BTreeMap<i32, Millis>> {
        self.missing.clone()
    }
}

/// Nothing that panics is done under the lock; should it happen, what it guards is still whole.
fn locked(board: &Mutex<Board>) -> MutexGuard<'_, Board> {
    board.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The one who looks.
struct Watcher {
    settings: Settings,
    goals: Arc<Goals>,
    terms: Terms,
    inputs: Inputs,
    board: Arc<Mutex<Board>>,
    timetable: Timetable,
    missing: Missing,
    recorded: watch::Sender<BTreeMap<i32, Millis>>,
    told: Told,
    /// Whether the last judgement found anything.
    violated: bool,
    was_executing: bool,
}

impl Watcher {
    async fn run(mut self) {
        loop {
            let mut moment = Moment {
                now: self.inputs.clock.now(),
                generation: *self.inputs.generations.borrow_and_update(),
                executing: *self.inputs.executing.borrow_and_update(),
                sighted: false,
            };
            self.notice_execution(moment);
            moment.sighted = self.look(moment);
            if self.timetable.goals_due(moment) {
                self.judge(moment.generation).await;
            }
            self.handle().await;
            let pause = self.timetable.next(moment).map(|at| at - self.inputs.clock.now());
            let pause = pause.map(|millis| Duration::from_millis(millis.try_into().unwrap_or(0)));
            let due = async {
                match pause {
                    Some(pause) => tokio::time::sleep(pause).await,
                    None => std::future::pending().await,
                }
            };
            let fed = tokio::select! {
                changed = self.inputs.generations.changed() => changed.is_ok(),
                changed = self.inputs.executing.changed() => changed.is_ok(),
                () = due => true,
            };
            if !fed {
                return;
            }
        }
    }

    /// Moves begin: somebody mends. They end: nothing is being mended any more.
    fn notice_execution(&mut self, moment: Moment) {
        let mut board = locked(&self.board);
        if moment.executing && !self.was_executing {
            board.tally.execution_began(moment.now);
            board.has_unfixable = false;
        }
        if !moment.executing {
            board.ledger.mended();
        }
        self.was_executing = moment.executing;
    }

    /// Misses brokers and disks; says whether there was anything to see.
    fn look(&mut self, moment: Moment) -> bool {
        let Some(sight) = (self.inputs.sight)() else { return false };
        let now = moment.now;
        if let Some(until) = self.missing.doubted_until(&sight, now) {
            self.timetable.doubts_until(until);
            return true;
        }
        let changed = self.missing.look(&sight, now);
        if changed.brokers {
            self.recorded.send_replace(self.missing.brokers().clone());
        }
        if changed.brokers || self.timetable.brokers_due(now) {
            self.timetable.brokers_looked_for(now);
            let found = self.missing.broker_failure(&sight, self.settings.bearable);
            self.note(found, now);
        }
        if self.timetable.disks_due(moment) || (changed.dirs && !moment.executing) {
            self.timetable.disks_looked_for(now);
            let found = self.missing.disk_failure();
            self.note(found, now);
        }
        true
    }

    fn note(&mut self, found: Option<Finding>, now: Millis) -> Option<Uuid> {
        let id = found.is_some().then(|| (self.inputs.ids)());
        let mut board = locked(&self.board);
        match found.zip(id) {
            Some((finding, id)) => board.ledger.found(id, finding, now),
            None if !self.violated && self.missing == Missing::default() => board.tally.nothing_wrong(),
            None => {}
        }
        id
    }

    /// Judges the goals by what is known now.
    async fn judge(&mut self, generation: u64) {
        let (model, goals, spared) = (Arc::clone(&self.inputs.model), Arc::clone(&self.goals), self.settings.spared);
        let history = (self.inputs.history)();
        let began = Instant::now();
        let round = tokio::task::spawn_blocking(move || {
            model().map(|cluster| goal_violations(&cluster, &goals, spared, &history))
        });
        let now = self.inputs.clock.now();
        match round.await {
            Ok(Ok(round)) => {
                locked(&self.board).judging.took(began.elapsed());
                self.timetable.judged(generation, now);
                self.take_in(round, now);
            }
            Ok(Err(unready)) => {
                tracing::debug!(%unready, "goals are not judged");
                self.timetable.not_judged(generation);
            }
            Err(error) => {
                tracing::error!(%error, "judging the goals broke off");
                self.timetable.not_judged(generation);
            }
        }
    }

    fn take_in(&mut self, round: Round, now: Millis) {
        let judged = round.judged();
        for reason in &round.reasons {
            tracing::warn!(reason, "a goal cannot be met");
        }
        {
            let mut board = locked(&self.board);
            board.score = round.score;
            if judged {
                board.provision = round.provision;
            }
        }
        if !judged {
            return;
        }
        self.violated = round.finding.is_some();
        let (fixable, unfixable) = match &round.finding {
            Some(Finding::GoalViolation { fixable, unfixable }) => (fixable.clone(), unfixable.clone()),
            _ => Default::default(),
        };
        locked(&self.board).has_unfixable = !unfixable.is_empty();
        if self.settings.healing.manner == Manner::Tells && !unfixable.is_empty() {
            tracing::warn!(?unfixable, "self-healing is not possible due to unfixable goals");
        }
        let id = self.note(round.finding, now).unwrap_or_default();
        self.inputs.courier.tell(Notice::Judged(Judgement { id, fixable, unfixable }));
    }

    /// Deals with all that was found, the most urgent first.
    async fn handle(&mut self) {
        loop {
            let Some(anomaly) = locked(&self.board).ledger.take() else { return };
            let now = self.inputs.clock.now();
            // Asked anew: somebody may have begun while goals were being judged.
            let executing = *self.inputs.executing.borrow();
            if executing {
                self.postpone(&anomaly, now);
                continue;
            }
            match self.answer(&anomaly, now) {
                Verdict::Ignore => locked(&self.board).ledger.settle(anomaly.id, Status::Ignored, now),
                Verdict::Check(at) => {
                    self.timetable.brokers_by(at);
                    locked(&self.board).ledger.settle(anomaly.id, Status::CheckWithDelay, now);
                }
                Verdict::Fix => return self.mend(&anomaly).await,
            }
        }
    }

    /// Nothing is done while moves are being made. What was found is found again, brokers after a while.
    fn postpone(&mut self, anomaly: &Anomaly, now: Millis) {
        let status = match anomaly.finding.kind() {
            Kind::BrokerFailure => {
                self.timetable.brokers_after_backoff(now);
                Status::CheckWithDelay
            }
            Kind::DiskFailure | Kind::GoalViolation => Status::Ignored,
        };
        locked(&self.board).ledger.settle(anomaly.id, status, now);
    }

    fn answer(&mut self, anomaly: &Anomaly, now: Millis) -> Verdict {
        let kind = AnomalyType::from(anomaly.finding.kind());
        let may = {
            let mut board = locked(&self.board);
            board.tally.handled(kind, now);
            board.switches.is_on(kind)
        };
        let answer = self.settings.healing.answer(anomaly, may, now);
        let fixing = answer.verdict == Verdict::Fix;
        if answer.alert && self.told.is_news(&anomaly.finding, fixing) {
            let alert = Alert {
                id: anomaly.id,
                detected: anomaly.detected,
                finding: anomaly.finding.clone(),
                words: words(&anomaly.finding, self.settings.spared),
                mends_at: may.then_some(answer.mends_at),
                fixing,
            };
            tracing::warn!(anomaly = %anomaly.id, "{}", alert.text());
            self.inputs.courier.tell(Notice::Alert(alert));
        }
        answer.verdict
    }

    async fn mend(&mut self, anomaly: &Anomaly) {
        let (reply, answer) = oneshot::channel();
        let request = repair::request(&anomaly.finding, &self.terms);
        let began = Instant::now();
        let sent = self.inputs.repairs.send(Repair { anomaly: anomaly.id, request, reply }).await;
        let unanswered = || Outcome::Refused("the engine is stopping".to_owned());
        let outcome = match sent {
            Ok(()) => answer.await.unwrap_or_else(|_| unanswered()),
            Err(_) => unanswered(),
        };
        let now = self.inputs.clock.now();
        let mut board = locked(&self.board);
        board.fixes.entry(anomaly.finding.kind().into()).or_default().took(began.elapsed());
        let id = anomaly.id;
        // Whatever came of it, what else was found is found again.
        board.ledger.clear_waiting();
        match outcome {
            Outcome::Started(plan) => {
                tracing::info!(anomaly = %id, "self-healing started");
                board.ledger.mends(id, plan, now);
                board.tally.started += 1;
                board.tally.execution_began(now);
            }
            Outcome::NotReady(unready) => {
                tracing::info!(anomaly = %id, %unready, "self-healing waits");
                let loading = unready == Unready::Loading;
                let status = if loading { Status::LoadMonitorNotReady } else { Status::CompletenessNotReady };
                board.ledger.settle(id, status, now);
            }
            failed @ (Outcome::NothingToDo | Outcome::Refused(_)) => {
                tracing::warn!(anomaly = %id, outcome = ?failed, "self-healing failed to start");
                board.ledger.settle(id, Status::FixFailedToStart, now);
                board.tally.failed_to_start += 1;
            }
        }
        drop(board);
        self.timetable.brokers_after_backoff(now);
    }
}
