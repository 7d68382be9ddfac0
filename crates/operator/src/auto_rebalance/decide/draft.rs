//! A decision in the making, and the rules that hold in every state.

use evenkeel_api::{
    Condition, Reason,
    annotations::Ask,
    kafka::{AutoRebalanceMode, AutoRebalanceState},
    rebalance::RebalanceState,
};
use jiff::{SignedDuration, Timestamp};

use super::{Act, Decision, Event, TrackerWrite};
use crate::auto_rebalance::{
    brokers::{self, Check, Queue},
    generated::{Generated, Phase, StopReason},
    imbalance::{self, Violations},
    observe::{Brake, Engine, Manual, Observation},
    poll,
    recipe::mode_of_name,
    settings::Configured,
    state::{Brokers, Recorded, listed, mode_of, state_name, state_of},
    template::{self, Template},
    tracker::{Attempts, LAST_COMPLETION, LastFailure, MEMORY, Sight, Tracker},
    windows,
};

/// The modes in the order in which they run.
const PRECEDENCE: [AutoRebalanceMode; 3] =
    [AutoRebalanceMode::RemoveBrokers, AutoRebalanceMode::AddBrokers, AutoRebalanceMode::Imbalance];

/// A proposal that takes longer waits for something.
const USUALLY_PROPOSED_IN: SignedDuration = SignedDuration::from_mins(1);

pub(super) struct Draft<'a> {
    pub(super) seen: &'a Observation,
    /// What is done from now on.
    pub(super) state: AutoRebalanceState,
    pub(super) queue: Queue,
    pub(super) tracker: Tracker,
    pub(super) violations: Violations,
    pub(super) acts: Vec<Act>,
    recorded: Recorded,
    /// What was seen before and is not there any more.
    missed: Option<Sight>,
    tracker_is_readable: bool,
    events: Vec<Event>,
    notes: Vec<Condition>,
    look_again: Option<Timestamp>,
}

impl<'a> Draft<'a> {
    pub(super) fn begin(seen: &'a Observation) -> Self {
        let recorded = Recorded::read(seen.recorded.as_ref());
        let queue = brokers::queue(&recorded, &seen.brokers, |mode| seen.configured.has(mode), &seen.generated);
        let (mut tracker, tracker_is_readable) = Tracker::read(seen.tracker.as_ref(), seen.now);
        tracker.refresh(&seen.spec_version, seen.now);
        // It is written before the status is: what it saw of another mode, a crash kept from being recorded. What it has
        // missed is over once the status says so.
        let mode = mode_of(recorded.state);
        let is_over = |sight: &Sight| {
            mode == Some(AutoRebalanceMode::AddBrokers) && sight.brokers.is_disjoint(&recorded.additions)
        };
        tracker.in_sight =
            tracker.in_sight.filter(|sight| mode_of_name(&sight.name, &seen.cluster.name) == mode && !is_over(sight));
        if seen.brokers.leaving.is_empty() {
            // Whatever stood in the way of removing brokers is gone.
            tracker.removal = Attempts::under(&seen.spec_version);
            tracker.failures.remove(&AutoRebalanceMode::RemoveBrokers);
        }
        if let Some(engine) = seen.engine.id() {
            tracker.removal.renew(engine);
            tracker.addition.renew(engine);
        }
        tracker.last_completion = last_end(seen).into_iter().chain(tracker.last_completion).max();
        let violations = seen.violations.as_ref().map(Violations::read).unwrap_or_default();
        let imbalance = AutoRebalanceMode::Imbalance;
        let is_made = seen.generated.iter().any(|own| own.mode == imbalance && !own.lingers())
            || (mode == Some(imbalance) && tracker.in_sight.is_some());
        if !is_made {
            tracker.imbalance.give_up_unless_first_is(violations.first(), seen.now);
        }
        Self {
            seen,
            state: recorded.state,
            queue,
            tracker,
            violations,
            acts: Vec::new(),
            recorded,
            missed: None,
            tracker_is_readable,
            events: Vec::new(),
            notes: Vec::new(),
            look_again: None,
        }
    }

    pub(super) fn configured(&self) -> &'a Configured {
        &self.seen.configured
    }

    pub(super) fn template(&self, mode: AutoRebalanceMode) -> Template<'a> {
        Template::of(mode, &self.seen.configured, &self.seen.templates)
    }

    /// The brokers that data may be moved to.
    pub(super) fn targets(&self) -> Brokers {
        self.queue.targets(&self.seen.brokers)
    }

    /// Counts a failed attempt to empty brokers, once for each resource.
    pub(super) fn count_failed_removal(&mut self, uid: &str) {
        self.tracker.removal.count_failure(uid, self.seen.now, self.seen.engine.id());
    }

    /// Asks for a rebalance about these brokers instead.
    pub(super) fn update(&mut self, own: &Generated, brokers: Brokers) {
        self.acts.push(Act::Update { name: own.name.clone(), brokers, engine: self.engine() });
    }

    /// Asks once more for what was asked before.
    pub(super) fn refresh(&mut self, own: &Generated) {
        self.acts.push(Act::Refresh { name: own.name.clone(), engine: self.engine() });
    }

    /// The engine that is asked now.
    pub(super) fn engine(&self) -> Option<String> {
        self.seen.engine.id().map(str::to_owned)
    }

    pub(super) fn recorded_state(&self) -> AutoRebalanceState {
        self.recorded.state
    }

    /// The generated rebalance that the state is about. One that runs although nothing is recorded
    /// of it is taken over: a crash, or a damaged status, came between. One that comes no further is not, nor one that was
    /// stopped, nor one that is paused, of which nobody knows how far it came: it may have been for an earlier broker of
    /// the same id.
    pub(super) fn find_own(&mut self) -> Option<&'a Generated> {
        let seen = self.seen;
        let of = |mode| {
            let mut all: Vec<_> = seen.generated.iter().filter(|own| own.mode == mode && !own.released).collect();
            all.sort_by_key(|own| !own.is_underway());
            all.first().copied()
        };
        if let Some(own) = mode_of(self.state).and_then(of) {
            return Some(own);
        }
        if self.state != AutoRebalanceState::Idle && self.tracker.in_sight.is_some() {
            return None;
        }
        let goes_on = |own: &&Generated| {
            // Asked for anew after its end, it says where it stood before.
            let is_at_work = own.phase() == Phase::Underway && !is_end(own.state);
            is_at_work && own.stopped_for.is_none() && own.is_stuck().is_none()
        };
        let adopted = PRECEDENCE
            .into_iter()
            .filter(|mode| self.configured().has(*mode))
            .find_map(|mode| of(mode).filter(goes_on))?;
        self.state = state_of(adopted.mode);
        if adopted.mode == AutoRebalanceMode::AddBrokers {
            let kept = &adopted.brokers & &self.seen.brokers.present;
            self.queue.additions.extend(&kept - &self.queue.removals);
        }
        Some(adopted)
    }

    /// What was in sight is missed. It stays in memory until the status says what came of that: whoever forgot it first, and
    /// died then, would take it for one that was never made.
    pub(super) fn miss(&mut self) {
        self.missed = self.tracker.in_sight.clone();
    }

    /// Tells a generated rebalance to stop, in whichever way its state allows, and not twice.
    pub(super) fn stop(&mut self, own: &Generated, why: StopReason) {
        self.acts.extend(ending(own, why));
    }

    /// Generated rebalances that the state is not about end and go, so that there is never a second.
    pub(super) fn clear_away_others(&mut self, own: Option<&Generated>) {
        for other in &self.seen.generated {
            if own.is_some_and(|own| own.name == other.name) {
                continue;
            }
            if other.lingers() {
                self.waiting(format!(
                    "KafkaRebalance {} is over, and finalizers of others keep it ({}): none of that name can be made until \
                     they are taken off",
                    other.name,
                    other.kept_by.join(", ")
                ));
            } else if other.phase() == Phase::Underway && self.seen.engine != Engine::Absent {
                self.stop(other, StopReason::Cancelled);
            } else if other.phase() == Phase::Paused {
                self.waiting(format!("KafkaRebalance {} is paused", other.name));
            } else {
                self.acts.push(removal(other));
            }
        }
    }

    /// Anomalies are forgotten as soon as any rebalance is asked for, and while one moves data: what it
    /// does not mend will be found again. Always after it was made, never before.
    pub(super) fn tend_violations(&mut self) {
        let Some(data) = &self.seen.violations else { return };
        if !self.configured().has(AutoRebalanceMode::Imbalance) {
            // First the engine stops writing it, then it goes; or it would come back.
            if self.seen.engine != Engine::Rolling {
                self.acts.push(Act::DeleteViolations);
            }
            return;
        }
        let ours = self.seen.generated.iter().any(Generated::is_underway);
        let theirs = self.manual_is_asked_for();
        let asking =
            self.acts.iter().any(|act| matches!(act, Act::Create(_) | Act::Update { .. } | Act::Refresh { .. }));
        let emptied_already = self.acts.iter().any(|act| matches!(act, Act::EmptyViolations { .. }));
        if (ours || theirs || asking) && !emptied_already && imbalance::emptied(data, false).is_some() {
            self.acts.push(Act::EmptyViolations { unfixable_too: false });
        }
    }

    /// Writes down what an engine has found that cannot do so itself. Not while a rebalance is under way or about to
    /// be: what is found then is just being mended.
    pub(super) fn note_violations(&mut self) {
        let Some(interval) = self.configured().polled_every else { return };
        // While there is nobody to ask, or something is just being mended, a watch tells of the end of that.
        let Some(polled) = &self.seen.polled else { return };
        let asking = self.acts.iter().any(|act| matches!(act, Act::Create(_)));
        if asking || !self.is_alone() || self.manual_is_asked_for() {
            return;
        }
        self.look_again_at(Some(polled.due()));
        let found = match &polled.found {
            Ok(found) => found,
            Err(why) => return self.waiting(format!("Cruise Control does not tell which goals are violated: {why}")),
        };
        let (before, last_end) = (self.seen.violations.as_ref(), self.tracker.last_completion);
        let noted = poll::noted(before, found, last_end, interval, self.seen.now);
        self.acts.extend(noted.map(Act::NoteViolations));
    }

    /// Whether there is no generated rebalance, but for those that are over and that only others keep.
    pub(super) fn is_alone(&self) -> bool {
        self.seen.generated.iter().all(Generated::lingers)
    }

    /// Whether a user's rebalance is about to clear the anomalies away.
    pub(super) fn manual_is_asked_for(&self) -> bool {
        self.seen.manual.iter().any(Manual::is_asked_for)
    }

    /// Says which rebalance of a user keeps load from being evened out, if one has no proposal for long: what is found is
    /// forgotten until it has one, so nothing else would tell.
    pub(super) fn note_manual(&mut self) {
        if !self.configured().has(AutoRebalanceMode::Imbalance) {
            return;
        }
        for manual in self.seen.manual.iter().filter(|manual| manual.is_awaited()) {
            let due = manual.since.and_then(|since| since.checked_add(USUALLY_PROPOSED_IN).ok());
            if due.is_some_and(|due| due > self.seen.now) {
                self.look_again_at(due);
            } else {
                let name = &manual.name;
                self.waiting(format!("no rebalance on imbalance while KafkaRebalance {name} waits for its proposal"));
            }
        }
    }

    pub(super) fn note(&mut self, reason: Reason, text: impl Into<String>) {
        let note = Condition::warning(reason, text);
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Something has to pass by itself.
    pub(super) fn waiting(&mut self, text: impl Into<String>) {
        self.note(Reason::AutoRebalanceWaiting, text);
    }

    pub(super) fn look_again_at(&mut self, time: Option<Timestamp>) {
        self.look_again = [self.look_again, time].into_iter().flatten().min();
    }

    pub(super) fn event(&mut self, is_warning: bool, reason: &'static str, note: impl Into<String>) {
        self.events.push(Event { is_warning, reason, note: note.into() });
    }

    /// Remembers a failure, or that a user stopped it, until the next success or another spec.
    pub(super) fn failed(&mut self, mode: AutoRebalanceMode, stopped: bool, message: String) {
        let reason = if stopped { Reason::AutoRebalanceStopped } else { Reason::AutoRebalanceFailed };
        self.event(true, reason.as_str(), message.clone());
        let spec_version = self.seen.spec_version.clone();
        self.tracker.failures.insert(mode, LastFailure { stopped, message, spec_version });
    }

    /// Everything that is to be said, in a fixed order.
    fn warnings(&self) -> Vec<Condition> {
        let configured = self.configured();
        let mut warnings = configured.remarks.clone();
        for mode in configured.modes.keys() {
            warnings.extend(self.template(*mode).warning(*mode));
        }
        if configured.has(AutoRebalanceMode::Imbalance) {
            warnings.extend(windows::warnings(&configured.windows));
            warnings.extend(self.goals_trouble());
            warnings.extend(self.violations.warnings(&self.seen.cluster.name));
        }
        for name in &self.seen.strangers {
            let text = format!(
                "KafkaRebalance {name} was not made by automatic rebalancing and has the name of one that is: none can be \
                 made while it is there. Give it another name"
            );
            warnings.push(Condition::warning(Reason::InvalidResourceException, text));
        }
        for own in self.seen.generated.iter().filter(|own| own.marked) {
            let text = format!(
                "KafkaRebalance {} is marked as a template, but automatic rebalancing has made it and waits for its end: \
                 the mark is ignored",
                own.name
            );
            warnings.push(Condition::warning(Reason::InvalidAnnotation, text));
        }
        if let Brake::Unreadable(invalid) = &self.seen.brake {
            warnings.push(Condition::warning(Reason::InvalidAnnotation, invalid.to_string()));
        }
        if !self.tracker_is_readable {
            let name = crate::auto_rebalance::tracker::tracker_name(&self.seen.cluster.name);
            let text = format!("ConfigMap {name} could not be read, so it was written anew");
            warnings.push(Condition::warning(Reason::InvalidResourceException, text));
        }
        warnings.extend(self.notes.iter().cloned());
        warnings.extend(self.tracker.failures.values().map(|failure| {
            let reason = if failure.stopped { Reason::AutoRebalanceStopped } else { Reason::AutoRebalanceFailed };
            Condition::warning(reason, failure.message.clone())
        }));
        warnings
    }

    /// What is wrong with the goals of a rebalance on imbalance.
    pub(super) fn goals_trouble(&self) -> Option<Condition> {
        template::goals_trouble(self.template(AutoRebalanceMode::Imbalance), self.configured())
    }

    pub(super) fn finish(mut self, own: Option<&Generated>) -> Decision {
        let removed =
            |name: &str, acts: &[Act]| acts.iter().any(|act| matches!(act, Act::Remove { name: of, .. } if of == name));
        let kept = own.filter(|own| self.state == state_of(own.mode) && !removed(&own.name, &self.acts));
        let kept = kept.map(|own| Sight { name: own.name.clone(), brokers: own.brokers.clone() });
        self.tracker.in_sight = kept.or(self.missed.take());

        let imbalance = self.state == AutoRebalanceState::RebalanceOnImbalance
            || (self.configured().has(AutoRebalanceMode::Imbalance)
                && (!self.violations.unfixable.is_empty() || self.goals_trouble().is_some()));
        let Queue { removals, additions } = self.queue.clone();
        let record = Recorded { state: self.state, removals, additions, imbalance };
        if record.state != self.recorded.state {
            let brokers = match mode_of(record.state) {
                Some(AutoRebalanceMode::RemoveBrokers) => format!(" of brokers {}", listed(&record.removals)),
                Some(AutoRebalanceMode::AddBrokers) => format!(" to brokers {}", listed(&record.additions)),
                _ => String::new(),
            };
            let note = format!("from {} to {}{brokers}", state_name(self.recorded.state), state_name(record.state));
            self.event(false, "AutoRebalance", note);
        }
        // Whoever is to go takes nothing new until it is gone, emptied or found empty. Not for a wish that nobody can carry out,
        // or that nobody does without its template: it may stand for ever, and so would the cordon.
        let comes_true = match self.seen.brokers.check {
            Check::Clear => true,
            Check::HasData | Check::Unknown => self.template(AutoRebalanceMode::RemoveBrokers).is_usable(),
            Check::Stuck => false,
        };
        let drains = self.configured().has(AutoRebalanceMode::RemoveBrokers) && comes_true;
        let cordoned = if drains { self.seen.brokers.leaving.clone() } else { record.removals.clone() };
        let data = self.tracker.written();
        let unchanged = match &self.seen.tracker {
            // Whatever else somebody has put there is not ours.
            Some(before) => [MEMORY, LAST_COMPLETION].iter().all(|key| before.get(*key) == data.get(*key)),
            None => self.tracker == untouched(&self.seen.spec_version),
        };
        Decision {
            tracker: if unchanged { TrackerWrite::Keep } else { TrackerWrite::Write(data) },
            status: Some(record.written(self.seen.recorded.as_ref(), self.seen.now)),
            warnings: self.warnings(),
            cordoned,
            acts: self.acts,
            events: self.events,
            look_again: self.look_again,
        }
    }
}

fn is_end(state: RebalanceState) -> bool {
    matches!(state, RebalanceState::Ready | RebalanceState::NotReady | RebalanceState::Stopped)
}

/// When the last rebalance of any kind came to its end: what was found before that is old news.
fn last_end(seen: &Observation) -> Option<Timestamp> {
    let ours = seen.generated.iter().map(|own| (own.state, own.since));
    let theirs = seen.manual.iter().map(|manual| (manual.state, manual.since));
    // One that is still to come was written by a clock that is wrong, and would make old news of all that is found.
    let ends = ours.chain(theirs).filter(|(state, _)| is_end(*state)).filter_map(|(_, since)| since);
    ends.filter(|since| *since <= seen.now).max()
}

/// A memory in which there is nothing worth writing down.
fn untouched(spec_version: &str) -> Tracker {
    let mut tracker = Tracker::default();
    tracker.refresh(spec_version, Timestamp::UNIX_EPOCH);
    tracker
}

/// What takes away a generated rebalance that has come to its end.
pub(super) fn removal(own: &Generated) -> Act {
    Act::Remove { name: own.name.clone(), uid: own.uid.clone() }
}

/// What ends a generated rebalance, in whichever way its state allows. None: it is on its way, or cannot be told.
pub(super) fn ending(own: &Generated, why: StopReason) -> Option<Act> {
    if own.is_stopped_by_others() {
        return None;
    }
    let name = own.name.clone();
    match own.state {
        RebalanceState::ReconciliationPaused => None,
        RebalanceState::PendingProposal | RebalanceState::Rebalancing => {
            let under_way = own.stopped_for.is_some() && matches!(own.ask, None | Some(Ask::Stop));
            (!under_way).then_some(Act::Stop { name, why })
        }
        _ if own.deleting && own.stopped_for.is_some() => None,
        _ => Some(Act::Withdraw { name, why }),
    }
}
