//! Makes plans off the async threads, and remembers them.
//!
//! Requests that ask for the same on the same knowledge share one plan: whoever comes while it is
//! being made waits for it, whoever comes later finds it. Plans are also kept by name, so that one
//! that was approved is the one that runs.

use std::{
    cell::Cell,
    collections::VecDeque,
    num::NonZeroUsize,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use evenkeel_rest::{Endpoint, Failure, Request, body::Step, request::GoalOptions};
use tokio::sync::{OnceCell, Semaphore};

use crate::{
    config::{capacity::Capacities, settings::Settings},
    journal::History,
    metrics::Timer,
    monitor::{
        Known,
        windows::{NotEnough, Requirement},
    },
    proposals::{Ask, Proposal, ask, make, not_enough, wanted},
    serve::Steps,
};

#[cfg(test)]
mod tests;

/// How many plans are kept by name.
const KEPT: usize = 64;
/// How many changes the plans that are kept, and those that are cached, may have together: what many large ones weigh is
/// bounded too.
const KEPT_CHANGES: usize = 100_000;
/// How many answers are cached.
const CACHED: usize = 64;
/// How many models may be in memory at once.
const AT_ONCE: usize = 2;

/// Makes plans. Clones share what they remember.
#[derive(Clone)]
pub struct Planner {
    shared: Arc<Shared>,
}

struct Shared {
    settings: Arc<Settings>,
    capacities: Arc<Capacities>,
    turns: Arc<Semaphore>,
    threads: usize,
    memory: Mutex<Memory>,
}

type Answer = Result<Arc<Proposal>, Failure>;

/// The oldest first.
#[derive(Default)]
struct Memory {
    cached: VecDeque<Cached>,
    kept: VecDeque<Arc<Proposal>>,
    tally: Tally,
}

/// Plans made since the process began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Those that were made.
    pub made: Timer,
    /// How many could not be made.
    pub failed: u64,
    /// Whether the last one could not be made because no plan would meet the goals.
    pub unfixable: bool,
    /// Models of the cluster that were made, for plans and for detectors.
    pub models: Timer,
}

struct Cached {
    generation: u64,
    key: String,
    /// Whether it is what a request without goals asks for.
    plain: bool,
    answer: Arc<OnceCell<Answer>>,
}

impl Planner {
    /// One that remembers nothing yet.
    pub fn new(settings: Arc<Settings>, capacities: Arc<Capacities>) -> Planner {
        let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let (turns, memory) = (Arc::new(Semaphore::new(AT_ONCE)), Mutex::default());
        Planner { shared: Arc::new(Shared { settings, capacities, turns, threads, memory }) }
    }

    /// The plan for `request`. `known` says what is known, if it is enough; `history` is of brokers
    /// that are still to be left alone.
    pub async fn propose<Asking>(
        &self,
        request: &Request,
        history: &History,
        steps: &Steps,
        known: impl Fn(Requirement) -> Asking,
    ) -> Answer
    where
        Asking: Future<Output = Result<Arc<Known>, NotEnough>>,
    {
        // What is wrong with a request is wrong before anything is known.
        wanted(request, &self.shared.settings.goals)?;
        steps.begin(Step::AggregatingMetrics);
        let (ask, known) = self.asked(request, history, known).await?;
        let answer = self.cached(known.generation, ask.key(), is_plain(request), plans_anew(request));
        let made = answer.get_or_init(|| self.make(ask, request.endpoint(), known, steps.clone())).await.clone()?;
        self.keep(&made);
        Ok(made)
    }

    /// The plan for `request` on a cluster that is not yet as it is said to be `known`. Nobody else gets it.
    pub async fn foresee<Asking>(
        &self,
        request: &Request,
        history: &History,
        known: impl Fn(Requirement) -> Asking,
    ) -> Answer
    where
        Asking: Future<Output = Result<Arc<Known>, NotEnough>>,
    {
        let (ask, known) = self.asked(request, history, known).await?;
        self.make(ask, request.endpoint(), known, Steps::default()).await
    }

    /// What a request asks for, and what has to be known for that.
    async fn asked<Asking>(
        &self,
        request: &Request,
        history: &History,
        known: impl Fn(Requirement) -> Asking,
    ) -> Result<(Ask, Arc<Known>), Failure>
    where
        Asking: Future<Output = Result<Arc<Known>, NotEnough>>,
    {
        let ask = self.ask(request, history, &*known(Requirement::LEAST).await.map_err(|why| not_enough(&why))?)?;
        let known = known(ask.requirement).await.map_err(|why| not_enough(&why))?;
        Ok((ask, known))
    }

    /// What is wrong with a request, as far as it can be told without making a plan.
    pub fn check(&self, request: &Request, history: &History, known: &Known) -> Result<(), Failure> {
        match request.run().and_then(|run| run.proposal_id.as_deref()) {
            Some(id) => self.by_id(id, request, history, known).map(drop),
            None => self.ask(request, history, known).map(drop),
        }
    }

    /// The plan that was approved for `request`: one of this name that was made for the same operation.
    pub fn by_id(&self, id: &str, request: &Request, history: &History, known: &Known) -> Answer {
        let ask = self.ask(request, history, known)?;
        let memory = self.memory();
        let mut named = memory.kept.iter().rev().filter(|kept| kept.id == id).peekable();
        if named.peek().is_none() {
            return Err(Failure::proposal_outdated(id, "it is not known here, or no longer"));
        }
        let found = named.find(|kept| kept.is_for(&ask)).cloned();
        found.ok_or_else(|| Failure::proposal_outdated(id, "it was made for another operation"))
    }

    /// A model was made elsewhere, and took so long.
    pub fn modelled(&self, took: Duration) {
        self.memory().tally.models.took(took);
    }

    /// Plans made so far.
    pub fn tally(&self) -> Tally {
        self.memory().tally
    }

    /// Whether there is a plan for the default goals that was made on what is known in this generation.
    pub fn is_up_to_date(&self, generation: u64) -> bool {
        let made = |cached: &Cached| matches!(cached.answer.get(), Some(Ok(_)));
        self.memory().cached.iter().any(|cached| cached.generation == generation && cached.plain && made(cached))
    }

    fn ask(&self, request: &Request, history: &History, known: &Known) -> Result<Ask, Failure> {
        ask(request, &self.shared.settings, &known.sighting.view, known.unmeasured, history)
    }

    /// The place of an answer, there already or not.
    fn cached(&self, generation: u64, key: String, plain: bool, anew: bool) -> Arc<OnceCell<Answer>> {
        let mut memory = self.memory();
        if anew {
            memory.cached.retain(|cached| cached.key != key || !cached.answer.initialized());
        }
        let same = |cached: &&Cached| cached.generation == generation && cached.key == key;
        if let Some(cached) = memory.cached.iter().find(same) {
            return cached.answer.clone();
        }
        memory.cached.retain(|cached| cached.generation >= generation);
        if memory.cached.len() >= CACHED {
            memory.cached.pop_front();
        }
        let answer = Arc::new(OnceCell::new());
        memory.cached.push_back(Cached { generation, key, plain, answer: answer.clone() });
        answer
    }

    async fn make(&self, mut ask: Ask, endpoint: Endpoint, known: Arc<Known>, steps: Steps) -> Answer {
        let turn = Arc::clone(&self.shared.turns).acquire_owned().await;
        ask.request.threads = self.shared.threads;
        let (shared, planner) = (self.shared.clone(), self.clone());
        let made = tokio::task::spawn_blocking(move || {
            // As long as the model is there, and not as long as somebody waits for what comes of it.
            let _turn = turn;
            let (began, model) = (Instant::now(), Cell::new(Duration::ZERO));
            let begins = |step: Step| {
                // The model is the first step.
                if matches!(step, Step::Optimizing(_)) {
                    model.set(began.elapsed());
                    planner.modelled(model.get());
                }
                steps.begin(step);
            };
            let mut made = make(ask, endpoint, &known, &shared.capacities, &shared.settings, &begins)?;
            made.took = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
            let (changes, model_ms) = (made.outcome.plan.changes.len(), model.get().as_millis());
            tracing::info!(proposal = made.id, changes, model_ms, ms = made.took, "planned");
            Ok(Arc::new(made))
        });
        let answer = made.await.unwrap_or_else(|error| {
            tracing::error!(%error, "planning broke off");
            Err(Failure::illegal_state("planning broke off; the log of the engine says why"))
        });
        self.memory().tally.count(&answer);
        answer
    }

    fn keep(&self, made: &Arc<Proposal>) {
        let mut memory = self.memory();
        // The newest of equal ones is kept, so that its age is that of the last time it was asked for.
        memory.kept.retain(|kept| kept.id != made.id || !kept.is_for(&made.ask));
        memory.kept.push_back(made.clone());
        let changes =
            |kept: &VecDeque<Arc<Proposal>>| -> usize { kept.iter().map(|kept| kept.outcome.plan.changes.len()).sum() };
        while memory.kept.len() > KEPT || memory.kept.len() > 1 && changes(&memory.kept) > KEPT_CHANGES {
            memory.kept.pop_front();
        }
        memory.lighten();
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        // Nothing is done under the lock that could leave it half done.
        self.shared.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Memory {
    /// Lets go of answers that are too many changes together, the oldest first. The newest stays whatever it weighs, and so
    /// does the first by the default goals, which was made ahead: others are asked whether it is there.
    fn lighten(&mut self) {
        let weight = |cached: &Cached| match cached.answer.get() {
            Some(Ok(made)) => made.outcome.plan.changes.len(),
            _ => 0,
        };
        let ahead = self.cached.iter().position(|cached| cached.plain);
        let mut changes = ahead.map_or(0, |at| weight(&self.cached[at]));
        let newest = self.cached.len().saturating_sub(1);
        let mut at = self.cached.len();
        let mut stays: VecDeque<Cached> = VecDeque::with_capacity(at);
        while let Some(cached) = self.cached.pop_back() {
            at -= 1;
            changes += if Some(at) == ahead { 0 } else { weight(&cached) };
            if Some(at) == ahead || at == newest || changes <= KEPT_CHANGES {
                stays.push_front(cached);
            }
        }
        self.cached = stays;
    }
}

impl Tally {
    fn count(&mut self, answer: &Answer) {
        match answer {
            Ok(made) => {
                self.made.took(Duration::from_millis(made.took));
                self.unfixable = false;
            }
            Err(failure) => {
                self.failed += 1;
                self.unfixable = failure.is_optimization_failure();
            }
        }
    }
}

/// Whether the request asks for a rebalance by the default goals.
fn is_plain(request: &Request) -> bool {
    let by_default = |options: &GoalOptions, between_disks: bool| options.goals.is_empty() && !between_disks;
    match request {
        Request::Proposals(it) => by_default(&it.goal_options, it.scope.rebalance_disk),
        Request::Rebalance(it) => by_default(&it.goal_options, it.scope.rebalance_disk),
        _ => false,
    }
}

/// Whether the caller wants no plan that is there already.
fn plans_anew(request: &Request) -> bool {
    match request {
        Request::Proposals(it) => it.scope.ignore_proposal_cache,
        Request::Rebalance(it) => it.scope.ignore_proposal_cache,
        _ => false,
    }
}
