//! Idle: what to begin, if anything, and what stands in its way.

use evenkeel_api::{
    Reason,
    kafka::{AutoRebalanceMode, AutoRebalanceState},
    rebalance::RebalanceState,
};

use super::{
    Act,
    draft::{Draft, removal},
};
use crate::auto_rebalance::{
    brokers::Check,
    generated::{Generated, StopReason},
    guards,
    observe::{Brake, Engine},
    recipe::{Recipe, make, name_for},
    state::{Brokers, listed, mode_of, state_of},
};

/// How it is said that nobody evens out load while brokers go.
pub(in crate::auto_rebalance) const HELD_BY_LEAVING: &str = "no rebalance on imbalance while brokers";

pub(super) fn step(draft: &mut Draft<'_>) {
    // From brokers that come or go the way leads to Idle first; what was found before may be mended from there.
    let is_scaling = mode_of(draft.recorded_state()).is_some_and(|mode| mode != AutoRebalanceMode::Imbalance);
    let next = draft.next(!is_scaling);
    draft.state = match next {
        // Never a second one: whatever is still there goes first.
        Some(mode) if draft.is_alone() => {
            draft.start(mode);
            state_of(mode)
        }
        // It is its turn, and recorded so: the one before it is just leaving.
        Some(mode) if draft.recorded_state() == state_of(mode) => state_of(mode),
        _ => AutoRebalanceState::Idle,
    };
}

impl Draft<'_> {
    /// Ends the rebalance that the state is about: it goes, and what is queued is next. The one after
    /// it is made when this one is no longer there.
    pub(super) fn end(&mut self, own: &Generated) {
        self.acts.push(removal(own));
        self.turn_to_next();
    }

    /// Goes on to what is queued for brokers, or to Idle. An imbalance is never next: every rebalance
    /// is one, so it has to be found again.
    pub(super) fn turn_to_next(&mut self) {
        self.state = self.next(false).map_or(AutoRebalanceState::Idle, state_of);
    }

    /// What may begin now. What stands in the way is noted.
    pub(super) fn next(&mut self, imbalance_too: bool) -> Option<AutoRebalanceMode> {
        let removal = self.removal_is_wanted();
        let addition = !self.targets().is_empty();
        if removal || addition {
            if let Some(text) = self.obstacle() {
                self.note(text.0, text.1);
                return None;
            }
            if removal && self.removal_is_due() && self.name_is_free(AutoRebalanceMode::RemoveBrokers) {
                // Nothing else meanwhile: it would be stopped for this as soon as they are there.
                return (!self.waits_for_those_who_come()).then_some(AutoRebalanceMode::RemoveBrokers);
            }
            if addition && self.addition_is_due() && self.name_is_free(AutoRebalanceMode::AddBrokers) {
                return Some(AutoRebalanceMode::AddBrokers);
            }
        }
        if imbalance_too
            && self.queue.additions.is_empty()
            && self.imbalance_is_due()
            && self.name_is_free(AutoRebalanceMode::Imbalance)
        {
            return Some(AutoRebalanceMode::Imbalance);
        }
        None
    }

    /// Whether brokers are about to go, be it that they are only looked at once more: a rebalance would put data on them
    /// again. Not those whom nobody empties: they may stay for ever.
    fn brokers_go(&self) -> bool {
        let comes_true = match self.seen.brokers.check {
            Check::Clear | Check::Unknown => true,
            Check::HasData => {
                self.configured().has(AutoRebalanceMode::RemoveBrokers)
                    && self.template(AutoRebalanceMode::RemoveBrokers).is_usable()
            }
            Check::Stuck => false,
        };
        comes_true && !self.seen.brokers.leaving.is_empty()
    }

    /// Whether brokers are to be emptied. Without a usable template it is as if the mode were off; the
    /// brokers stay, and it begins once the template is there.
    pub(super) fn removal_is_wanted(&mut self) -> bool {
        if !self.template(AutoRebalanceMode::RemoveBrokers).is_usable() {
            self.queue.removals = Brokers::new();
        }
        !self.queue.removals.is_empty()
    }

    /// What stands in the way of any rebalance.
    pub(super) fn obstacle(&self) -> Option<(Reason, String)> {
        match &self.seen.brake {
            Brake::Released => {}
            Brake::Pulled => {
                let text = "automatic rebalancing is held: remove the annotation evenkeel.io/auto-rebalance to go on";
                return Some((Reason::AutoRebalanceHeld, text.to_owned()));
            }
            Brake::Unreadable(invalid) => return Some((Reason::AutoRebalanceHeld, invalid.to_string())),
        }
        if !matches!(self.seen.engine, Engine::Current { .. }) {
            let text = "automatic rebalancing waits until Cruise Control is ready and knows all brokers";
            return Some((Reason::AutoRebalanceWaiting, text.to_owned()));
        }
        let moving = self.seen.manual.iter().find(|manual| manual.state == RebalanceState::Rebalancing)?;
        let text = format!("automatic rebalancing waits for the end of KafkaRebalance {}", moving.name);
        Some((Reason::AutoRebalanceWaiting, text))
    }

    /// Whether a rebalance of this mode can be made at all: a user's of the same name is not taken over, and one of ours may be
    /// kept by others. That it stands there is said with the other warnings.
    fn name_is_free(&self, mode: AutoRebalanceMode) -> bool {
        let name = name_for(&self.seen.cluster.name, mode, self.violations.first().unwrap_or_default());
        let lingers = self.seen.generated.iter().any(|own| own.name == name && own.lingers());
        !lingers && !self.seen.strangers.contains(&name)
    }

    /// Whether brokers that are to be emptied may be now.
    fn removal_is_due(&mut self) -> bool {
        if self.seen.brokers.check != Check::HasData {
            // Unknown: they stay, but nothing is begun on a guess.
            return false;
        }
        let attempts = &self.tracker.removal;
        let (due, failed, not_before) = (attempts.is_due(self.seen.now), attempts.failed, attempts.not_before);
        if let Some(time) = not_before.filter(|_| !due) {
            let brokers = listed(&self.queue.removals);
            self.waiting(format!("{failed} attempts to empty brokers {brokers} in a row; the next one is at {time}"));
            self.look_again_at(Some(time));
        }
        due
    }

    /// Whether other brokers are on their way: data may have nowhere to go without them, or not where it belongs.
    fn waits_for_those_who_come(&mut self) -> bool {
        let starting = &self.seen.brokers.starting;
        let awaited: Brokers = starting.keys().copied().filter(|id| !self.queue.removals.contains(id)).collect();
        let Some(until) = awaited.iter().map(|id| starting[id]).max() else { return false };
        let (leaving, awaited) = (listed(&self.queue.removals), listed(&awaited));
        self.waiting(format!("emptying brokers {leaving} waits until brokers {awaited} are ready, or until {until}"));
        self.look_again_at(Some(until));
        true
    }

    /// Whether something else is to be stopped for the sake of brokers to empty. Not for one more
    /// attempt at what has failed: it would stop a scale-up again and again, which may be just what
    /// the attempt needs.
    pub(super) fn removal_is_urgent(&mut self) -> bool {
        self.removal_is_wanted() && self.tracker.removal.failed == 0 && self.removal_may_begin()
    }

    /// Whether brokers could be emptied now if nothing else were there.
    pub(super) fn removal_may_begin(&mut self) -> bool {
        self.removal_is_wanted()
            && self.obstacle().is_none()
            && self.name_is_free(AutoRebalanceMode::RemoveBrokers)
            && self.removal_is_due()
            && !self.waits_for_those_who_come()
    }

    /// Whether data may be moved to added brokers now.
    pub(super) fn addition_is_due(&mut self) -> bool {
        let targets = self.targets();
        let absent = &targets - &self.seen.brokers.ready;
        if !absent.is_empty() {
            self.waiting(format!("the rebalance after scaling up waits until brokers {} are ready", listed(&absent)));
            return false;
        }
        let leaving = &self.seen.brokers.leaving;
        if !leaving.is_empty() && !matches!(self.seen.brokers.check, Check::HasData | Check::Stuck) {
            // They are about to go, and the engine rolls with them: what begins now would be cut.
            let text = format!(
                "the rebalance after scaling up waits until it is settled whether brokers {} go",
                listed(leaving)
            );
            self.waiting(text);
            return false;
        }
        let attempts = &self.tracker.addition;
        if let Some(time) = attempts.not_before.filter(|time| *time > self.seen.now) {
            self.waiting(format!("the rebalance to brokers {} is tried again at {time}", listed(&targets)));
            self.look_again_at(Some(time));
            return false;
        }
        if !self.template(AutoRebalanceMode::AddBrokers).is_usable() {
            // The scale-up is complete without it, as if the mode were off. It was said why.
            let text =
                format!("brokers {} were added without a rebalance: their template cannot be used", listed(&targets));
            self.event(true, Reason::InvalidRebalanceTemplate.as_str(), text);
            self.queue.additions = Brokers::new();
            return false;
        }
        true
    }

    fn imbalance_is_due(&mut self) -> bool {
        let watched = self.configured().has(AutoRebalanceMode::Imbalance);
        if !watched || self.violations.fixable.is_empty() || !self.violations.unfixable.is_empty() {
            return false;
        }
        // Its goals or its template are wrong: said with the other warnings.
        if !self.template(AutoRebalanceMode::Imbalance).is_usable() || self.goals_trouble().is_some() {
            return false;
        }
        if let Some((reason, text)) = self.obstacle() {
            self.note(reason, text);
            return false;
        }
        if self.brokers_go() {
            let brokers = listed(&self.seen.brokers.leaving);
            self.waiting(format!("{HELD_BY_LEAVING} {brokers} are to go"));
            return false;
        }
        if self.manual_is_asked_for() {
            // A user's rebalance is coming up, and clears the anomalies away.
            return false;
        }
        let (history, windows, now) = (&self.tracker.imbalance, &self.configured().windows, self.seen.now);
        let closed = if self.begun_already() {
            // It is counted. The hour may have become a wrong one.
            guards::window(windows, now).into_iter().collect()
        } else {
            guards::closed(history, &self.violations.fixable_goals(), windows, now)
        };
        for guard in &closed {
            let until = guard.opens.map_or("as things are, never".to_owned(), |opens| format!("at {opens}"));
            self.note(
                Reason::AutoRebalanceHeld,
                format!("no rebalance on imbalance: {}. It may begin {until}", guard.why),
            );
        }
        // All of them have to be open, so the last one counts.
        if closed.iter().all(|guard| guard.opens.is_some()) {
            self.look_again_at(closed.iter().filter_map(|guard| guard.opens).max());
        }
        closed.is_empty()
    }

    /// Whether the guards have let this one pass before, and a crash or a conflict came between the memory of that and the deed.
    fn begun_already(&self) -> bool {
        let history = &self.tracker.imbalance;
        let first = self.violations.first();
        first.is_some() && history.ended.is_none() && history.anomaly.as_deref() == first
    }

    /// Makes the rebalance of this mode.
    fn start(&mut self, mode: AutoRebalanceMode) {
        let brokers = match mode {
            AutoRebalanceMode::RemoveBrokers => self.queue.removals.clone(),
            AutoRebalanceMode::AddBrokers => self.targets(),
            AutoRebalanceMode::Imbalance => Brokers::new(),
        };
        let anomaly = self.violations.first().unwrap_or_default().to_owned();
        // Emptying brokers is asked for by the user, however much it takes.
        let on_imbalance = mode == AutoRebalanceMode::Imbalance;
        if on_imbalance {
            let goals = self.violations.fixable_goals();
            self.tracker.imbalance.begin(&anomaly, goals, self.seen.now);
        }
        let recipe = Recipe {
            cluster: &self.seen.cluster,
            mode,
            brokers: &brokers,
            anomaly: &anomaly,
            template: self.template(mode).spec(),
            throttle: self.configured().throttle,
            engine: self.engine(),
            most_data_mb: self.configured().most_data_mb.filter(|_| on_imbalance),
        };
        let rebalance = make(&recipe);
        self.acts.push(Act::Create(Box::new(rebalance)));
    }

    /// Whether somebody else stops it, which is waited for.
    pub(super) fn is_stopped_by_others(&mut self, own: &Generated) -> bool {
        let stops = own.is_stopped_by_others();
        if stops {
            self.waiting(format!("KafkaRebalance {} was told to stop, and comes to its end first", own.name));
        }
        stops
    }

    /// Stops what runs if the brake is pulled.
    pub(super) fn brake(&mut self, own: &Generated) -> bool {
        let pulled = self.seen.brake == Brake::Pulled;
        if pulled {
            if let Some((reason, text)) = self.obstacle() {
                self.note(reason, text);
            }
            self.stop(own, StopReason::Braked);
        }
        pulled
    }
}
