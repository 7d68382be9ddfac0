//! A decision in the making: what was, and what is to be different.
//!
//! Warnings are made anew each time, so one that is not repeated is gone. What nothing was said about stays
//! as it was, and a status in which nothing has changed is not written.

use std::time::Duration;

use evenkeel_api::annotations::{self, Ask};
use evenkeel_api::rebalance::{RebalanceProgress, RebalanceState};
use evenkeel_api::{Condition, FreeForm, KafkaRebalanceStatus, Reason, conditions, unknown_fields};
use evenkeel_rest::body::OptimizationResult;
use uuid::Uuid;

use super::config_map::{self, FoundConfigMap, News};
use super::decide::Round;
use super::decision::{Decision, Event, EventKind, Forget, Next, Order};
use super::hear::{Call, Trouble};
use super::observe::Blocked;
use super::progress::Progress;
use super::{finalizer, load, messages, moves, result};

/// A decision in the making.
pub(super) struct Draft<'a> {
    round: &'a Round<'a>,
    state: RebalanceState,
    condition: Condition,
    session: Option<String>,
    result: Option<FreeForm>,
    generation: Option<i64>,
    warnings: Vec<Condition>,
    news: News,
    forget: Option<Forget>,
    submitting: bool,
    events: Vec<Event>,
}

impl<'a> Draft<'a> {
    /// Everything as it was, without warnings.
    pub(super) fn stay(round: &'a Round<'a>) -> Self {
        let standing = &round.standing;
        Self {
            round,
            state: standing.state,
            condition: standing.condition().cloned().unwrap_or_default(),
            session: standing.status.session_id.clone(),
            result: standing.status.optimization_result.clone(),
            generation: standing.status.observed_generation,
            warnings: Vec::new(),
            news: News::default(),
            forget: None,
            submitting: false,
            events: Vec::new(),
        }
    }

    /// The same, and a word about a command that means nothing here.
    pub(super) fn stay_and_mind_the_ask(round: &'a Round<'a>) -> Self {
        Self::stay(round).minding_the_ask()
    }

    /// A word about a command that means nothing where it stands, unless it is just being taken away.
    pub(super) fn minding_the_ask(self) -> Self {
        let round = self.round;
        let state = round.standing.state;
        let valid = messages::valid_asks(state, round.deleting, round.auto_approved);
        match &round.ask {
            Some(ask) if self.forget.is_none() && !valid.contains(&messages::written(ask)) => {
                let text = messages::invalid_ask(ask, state, round.deleting, round.auto_approved);
                self.warn(Reason::InvalidAnnotation, text)
            }
            _ => self,
        }
    }

    /// On to a state.
    pub(super) fn go(round: &'a Round<'a>, state: RebalanceState, message: impl Into<String>) -> Self {
        let condition = Condition { message: Some(message.into()), ..Condition::state(state.as_str()) };
        Self { state, condition, ..Self::stay(round) }
    }

    /// On to `NotReady`.
    pub(super) fn fail(round: &'a Round<'a>, reason: Reason, message: impl Into<String>) -> Self {
        let condition = Condition::state(conditions::NOT_READY).because(reason, message);
        Self { state: RebalanceState::NotReady, condition, ..Self::stay(round) }
    }

    /// The state is the same, and something else is to be said of it.
    pub(super) fn saying(mut self, message: &str) -> Self {
        self.condition.message = Some(message.to_owned());
        self
    }

    pub(super) fn warn(mut self, reason: Reason, message: impl Into<String>) -> Self {
        self.warnings.push(Condition::warning(reason, message));
        self
    }

    pub(super) fn warn_blocked(self, blocked: Blocked) -> Self {
        self.warn(blocked.reason, blocked.message)
    }

    pub(super) fn warn_trouble(self, trouble: &Trouble) -> Self {
        self.warn(Reason::CruiseControlRestException, trouble.text.clone())
    }

    /// The same, and to whoever waits for a deletion, what to do if there is never any answer.
    pub(super) fn warn_trouble_on_the_way_out(self, trouble: &Trouble) -> Self {
        match self.round.deleting {
            true => self.warn(Reason::CruiseControlRestException, messages::waits_to_go(&trouble.text)),
            false => self.warn_trouble(trouble),
        }
    }

    /// The same for what is missing to ask at all.
    pub(super) fn warn_blocked_on_the_way_out(self, blocked: Blocked) -> Self {
        match self.round.deleting {
            true => self.warn(blocked.reason, messages::waits_to_go(&blocked.message)),
            false => self.warn_blocked(blocked),
        }
    }

    /// Keeps a warning that was there: it tells of something that happened, not of something that is so.
    pub(super) fn keep_warning(mut self, reason: Reason) -> Self {
        self.warnings.extend(self.round.standing.warning(reason).cloned());
        self
    }

    pub(super) fn session(mut self, session: Option<Uuid>) -> Self {
        self.session = session.map(|id| id.to_string());
        self
    }

    /// The spec as it is now is the one that the status speaks of.
    pub(super) fn current_spec(mut self) -> Self {
        self.generation = self.round.seen.resource.metadata.generation;
        self
    }

    pub(super) fn without_result(mut self) -> Self {
        self.result = None;
        self
    }

    /// A new plan: its numbers into the status, its loads into the ConfigMap.
    pub(super) fn plan(mut self, plan: &OptimizationResult) -> Self {
        self.result = Some(result::of(&plan.summary));
        self.loads(plan)
    }

    /// What the ConfigMap said of a plan, once more.
    pub(super) fn loads(mut self, plan: &OptimizationResult) -> Self {
        self.news.load = Some(load::json(plan));
        self.news.moves = Some(moves::json(plan, self.round.seen.resource.spec.mode));
        self
    }

    /// What the ConfigMap says of a plan is no longer so.
    pub(super) fn without_loads(mut self) -> Self {
        (self.news.load, self.news.moves) = (Some(None), Some(None));
        self
    }

    pub(super) fn has_result(&self) -> bool {
        self.result.is_some()
    }

    pub(super) fn progress(mut self, progress: Option<Progress>) -> Self {
        self.news.progress = progress;
        self
    }

    /// The command was heard.
    pub(super) fn forget(mut self) -> Self {
        self.forget = self.round.ask.clone().map(|ask| Forget {
            order: if ask == Ask::Approve { Order::BeforeStatus } else { Order::AfterStatus },
            ask,
        });
        self
    }

    /// The command was heard, if it was this one.
    pub(super) fn forget_if(self, ask: Ask) -> Self {
        if self.round.ask.as_ref() == Some(&ask) { self.forget() } else { self }
    }

    /// The approval came to nothing. Why is told first: if the process dies in between, the next one finds an approval
    /// that is not valid any more, and not a proposal that nobody seems to have approved.
    pub(super) fn forget_vain_approval(mut self) -> Self {
        let vain = self.round.ask.clone().filter(|ask| *ask == Ask::Approve);
        self.forget = vain.map(|ask| Forget { order: Order::AfterStatus, ask });
        self
    }

    /// What asked for a new proposal was heard. So was an approval that an edit came together with: it was
    /// given to something that is not what the spec says now.
    pub(super) fn forget_what_led_here(self) -> Self {
        match self.round.ask {
            Some(Ask::Refresh) => self.forget(),
            Some(Ask::Approve) if self.round.edited => self.forget(),
            _ => self,
        }
    }

    /// An execution is about to be submitted, or may have been.
    pub(super) fn submitting(mut self) -> Self {
        self.submitting = true;
        self
    }

    pub(super) fn tell(mut self, reason: &str, note: impl Into<String>) -> Self {
        self.events.push(Event { kind: EventKind::Normal, reason: reason.to_owned(), note: note.into() });
        self
    }

    pub(super) fn call(self, call: Call) -> Decision {
        self.finish(Next::Call(Box::new(call)))
    }

    pub(super) fn again(self) -> Decision {
        self.finish(Next::Again)
    }

    pub(super) fn after(self, pause: Duration) -> Decision {
        self.finish(Next::After(pause))
    }

    /// Later, and the later the longer the trouble that was named last has been there.
    pub(super) fn back_off(self) -> Decision {
        const SHORTEST: u64 = 5;
        const LONGEST: u64 = 60;
        let reason = self.warnings.last().and_then(|warning| warning.reason.clone());
        let was = self.round.standing.conditions.iter().find(|it| it.is_warning() && it.reason == reason);
        let since = was.and_then(Condition::since).unwrap_or(self.round.seen.now);
        let age = self.round.seen.now.duration_since(since).as_secs().max(0).unsigned_abs();
        self.after(Duration::from_secs((age / 2).clamp(SHORTEST, LONGEST)))
    }

    /// Nothing is left to do. A new state is looked at once more all the same: what the user wrote meanwhile
    /// may mean something else in it.
    pub(super) fn rest(self) -> Decision {
        let next = if self.state == self.round.standing.state { Next::Rest } else { Next::Again };
        self.finish(next)
    }

    fn finish(mut self, next: Next) -> Decision {
        let seen = self.round.seen;
        let standing = &self.round.standing;
        // What could not be written may be what the ConfigMap says of the plan.
        let is_going_on = matches!(self.state, RebalanceState::ProposalReady | RebalanceState::Rebalancing);
        let owes_loads = self.news.load.is_none() && self.round.tells_loads() && self.round.was_refused();
        if owes_loads && !is_going_on && self.state != standing.state {
            self = self.without_loads();
        }
        let data = config_map::data(&seen.config_map, self.state, &self.news).or_else(|| match &seen.config_map {
            FoundConfigMap::Ours(data) if seen.is_mislabelled() => Some(data.clone()),
            _ => None,
        });
        let has_config_map = data.is_some() || seen.config_map.data().is_some();
        self.result = self.result.map(|it| result::beside(it, has_config_map.then(|| seen.name())));
        match &seen.config_map {
            FoundConfigMap::Foreign if self.result.is_some() => {
                self = self.warn(Reason::InvalidResourceException, messages::foreign_config_map(seen.name()));
            }
            FoundConfigMap::Refused { why, .. } => {
                self = self.warn(Reason::KubernetesClientException, messages::refused_config_map(seen.name(), why));
            }
            // Nothing is to be written this time, so nobody knows whether it could be.
            FoundConfigMap::Ours(_) if data.is_none() && self.state == standing.state => {
                self = self.keep_warning(Reason::KubernetesClientException);
            }
            // The rest is written, and this is not.
            FoundConfigMap::Ours(_) if owes_loads && is_going_on && self.result.is_some() => {
                self = self.keep_warning(Reason::KubernetesClientException);
            }
            _ => {}
        }
        if let Some(Err(invalid)) = seen.resource.metadata.annotations.as_ref().map(annotations::max_data_mb) {
            // Where it kept an approval back it is said already.
            let text = invalid.to_string();
            if self.warnings.iter().all(|warning| warning.message.as_ref() != Some(&text)) {
                self = self.warn(Reason::InvalidAnnotation, text);
            }
        }
        for field in unknown_fields(&seen.resource) {
            self = self.warn(Reason::UnknownFields, format!("Nobody knows the field {field}: correct or remove it"));
        }
        let now_true = std::iter::once(self.condition).chain(self.warnings);
        let status = KafkaRebalanceStatus {
            conditions: conditions::settle(now_true, &standing.conditions, seen.now),
            observed_generation: self.generation,
            session_id: self.session,
            progress: (has_config_map && shows_progress(self.state))
                .then(|| RebalanceProgress { rebalance_progress_config_map: seen.name().to_owned() }),
            optimization_result: self.result,
        };
        let mut events = self.events;
        // The end of a pause is told too: it is what people wait for.
        if self.state != standing.state || standing.paused {
            events.push(arrival(&status.conditions[0]));
        }
        Decision {
            finalizer: finalizer::on_the_way_to(self.state, self.submitting, &seen.resource),
            forget: self.forget,
            config_map: data.map(|data| config_map::build(&seen.resource, seen.cluster(), data)),
            status: (seen.resource.status.as_ref() != Some(&status)).then_some(status),
            events,
            next,
        }
    }
}

/// In the states that a run can be looked up in.
fn shows_progress(state: RebalanceState) -> bool {
    !matches!(state, RebalanceState::New | RebalanceState::PendingProposal | RebalanceState::ReconciliationPaused)
}

fn arrival(condition: &Condition) -> Event {
    let bad = condition.type_ == conditions::NOT_READY;
    Event {
        kind: if bad { EventKind::Warning } else { EventKind::Normal },
        reason: condition.type_.clone(),
        note: condition.message.clone().unwrap_or_default(),
    }
}
