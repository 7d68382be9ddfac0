//! A small world for exploring the machine: one resource, an engine that may answer in every way an engine
//! can, a user, and a controller that may die between any two writes.
//!
//! Time stands still in it, so that worlds that differ in nothing else are the same world.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use evenkeel_api::rebalance::RebalanceState;
use evenkeel_rest::Request;
use evenkeel_rest::body::state::{ExecutorState, Phase, Stopping};
use evenkeel_rest::body::{OptimizationResult, Summary, UserTask};
use evenkeel_rest::json;
use evenkeel_rest::parameter::TaskStatus;

use super::super::{Call, Heard, Next, Observation, Plan, Said, Sort, decide, tag};
use super::explore::user;
use super::scene::{Scene, UID, executing, id, plan_of, steps, summary, task, trouble};

/// How an engine differs from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Names its proposals, and forgets no execution.
    Ours,
    /// Forgets everything when it restarts.
    Original,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Active,
    InExecution,
    Completed,
    /// Failed before anything moved.
    Refused,
    /// Failed or stopped after something had moved.
    Broken,
}

/// A task of the engine. Executions know the proposal that they were approved as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Job {
    pub n: u32,
    pub reason: String,
    pub executes: bool,
    pub status: Status,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Executor {
    Idle,
    Runs { n: u32, stopping: bool },
    Foreign,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ModelEngine {
    pub kind: Kind,
    pub jobs: Vec<Job>,
    pub executor: Executor,
    /// Which proposal can still be carried out exactly.
    pub known_proposal: Option<u32>,
    /// A submission that nobody answered: it lies in its mail, and is read after the next question is answered.
    pub unread: Option<Submission>,
    pub count: u32,
}

/// What matters of a request to carry something out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Submission {
    reason: String,
    proposal_id: Option<String>,
}

/// How a reconciliation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// To the end, with an engine that answered.
    Clean,
    /// To the end, but an answer was missing.
    Troubled,
    Crashed,
}

/// A moment of a reconciliation.
struct Moment {
    world: World,
    /// What the controller saw of the resource, if that is no longer what is so.
    seen: Option<Box<Observation>>,
    heard: Heard,
    end: End,
    depth: usize,
    /// Whether the user leaves it alone from here on: it has been disturbed once, or is not to be.
    undisturbed: bool,
}

#[derive(Clone)]
pub(super) struct World {
    pub scene: Scene,
    pub engine: ModelEngine,
    pub auto: bool,
    /// How often the user may still say something, and how often something may still go wrong.
    pub words: u32,
    pub faults: u32,
    /// What the user has approved, or would have: each proposal if approval is automatic.
    pub approvals: u32,
    pub accepted: u32,
    pub gone: bool,
}

impl World {
    pub(super) fn new(kind: Kind, auto: bool, words: u32, faults: u32) -> Self {
        let mut scene = Scene::new();
        if auto {
            scene.annotate("strimzi.io/rebalance-auto-approval", "true");
        }
        scene.kafka().engine.as_mut().unwrap().is_ours = kind == Kind::Ours;
        let (jobs, executor) = (Vec::new(), Executor::Idle);
        let engine = ModelEngine { kind, jobs, executor, known_proposal: None, unread: None, count: 0 };
        Self { scene, engine, auto, words, faults, approvals: 0, accepted: 0, gone: false }
    }

    /// The same for worlds between which nothing can tell. What a world does next depends on which task is which, not
    /// on their numbers; on whether the spec was edited, not on how often; on how many approvals are left.
    pub(super) fn key(&self) -> u64 {
        let mut resource = self.scene.seen.resource.clone();
        let observed = resource.status.as_mut().and_then(|status| status.observed_generation.take());
        let edited = observed.is_some() && observed != resource.metadata.generation;
        resource.metadata.generation = None;
        let session = self.session();
        // Of proposals that are over only one that is spoken of matters, and whether there was any.
        let matters = |job: &&Job| job.executes || job.status == Status::Active || Some(job.n) == session;
        let jobs: Vec<&Job> = self.engine.jobs.iter().filter(matters).collect();
        let engine = &self.engine;
        let known = engine.known_proposal.filter(|n| session == Some(*n));
        let forgotten = engine.jobs.len() - jobs.len() > 0;
        let counted = (engine.count.min(3), self.words, self.faults, self.approvals.saturating_sub(self.accepted));
        let rest = (engine.executor, &engine.unread, known, forgotten, counted, edited, self.gone);
        let text = serde_json::to_string(&resource).unwrap();
        let mut text = format!("{text}{:?}{:?}{jobs:?}{rest:?}", self.scene.seen.kafka, self.scene.seen.config_map);
        let mut numbers: Vec<u32> = jobs.iter().map(|job| job.n).chain(session).chain(known).collect();
        numbers.sort_unstable();
        numbers.dedup();
        for (rank, n) in numbers.into_iter().enumerate() {
            for (name, canonical) in [
                (format!("{n:08x}"), format!("id#{rank}")),
                (format!("plan-{n}\""), format!("plan#{rank}\"")),
                (format!("n: {n},"), format!("n#{rank},")),
                (format!("Some({n})"), format!("Some#{rank}")),
            ] {
                text = text.replace(&name, &canonical);
            }
        }
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        hasher.finish()
    }

    /// The number of the task that the status names.
    fn session(&self) -> Option<u32> {
        let id = self.scene.seen.resource.status.as_ref()?.session_id.as_ref()?;
        u32::from_str_radix(id.get(..8)?, 16).ok()
    }

    pub(super) fn state(&self) -> RebalanceState {
        self.scene.state()
    }

    pub(super) fn deleting(&self) -> bool {
        self.scene.seen.resource.metadata.deletion_timestamp.is_some()
    }

    fn collect_garbage(&mut self) {
        let finalizers = self.scene.seen.resource.metadata.finalizers.as_deref().unwrap_or_default();
        self.gone |= self.deleting() && finalizers.is_empty();
    }

    /// Everything that one reconciliation may lead to. The user does not wait until it is over: what was seen may be old by
    /// the time that something is to be written or begun, and then the API server refuses, and everything is seen anew.
    /// `undisturbed`: the user does wait.
    pub(super) fn reconcile(&self, undisturbed: bool) -> Vec<(World, End, Next)> {
        let mut ends = Vec::new();
        let mut stack = vec![Moment {
            world: self.clone(),
            seen: None,
            heard: Heard::default(),
            end: End::Clean,
            depth: 0,
            undisturbed,
        }];
        while let Some(Moment { mut world, seen: old, heard, end, depth, undisturbed }) = stack.pop() {
            assert!(depth < 40, "no end of it: {:?}", world.scene.called());
            if world.gone && old.is_none() {
                ends.push((world, end, Next::Rest));
                continue;
            }
            let mut seen = old.as_deref().unwrap_or(&world.scene.seen).clone();
            seen.heard = heard.clone();
            let decision = decide(&seen);
            seen.heard = Heard::default();
            if old.is_some() && (decision.begins_something() || !steps(&decision).is_empty()) {
                stack.push(Moment { world, seen: None, heard: Heard::default(), end, depth: depth + 1, undisturbed });
                continue;
            }
            for step in steps(&decision) {
                if world.faults > 0 {
                    let mut dies = world.clone();
                    dies.faults -= 1;
                    dies.collect_garbage();
                    ends.push((dies, End::Crashed, Next::Again));
                }
                step(&mut world.scene.seen);
            }
            world.collect_garbage();
            let next = if world.gone { Next::Rest } else { decision.next };
            match next {
                Next::Call(call) => {
                    let seen = old.unwrap_or_else(|| Box::new(world.scene.seen.clone()));
                    for (after, heard, troubled) in world.answers(&call, &heard) {
                        // It may die before it takes the answer in.
                        if after.faults > 0 && !troubled {
                            let mut dies = after.clone();
                            dies.faults -= 1;
                            ends.push((dies, End::Crashed, Next::Again));
                        }
                        let end = if troubled { End::Troubled } else { end };
                        let depth = depth + 1;
                        let words = if undisturbed { Vec::new() } else { user(&after) };
                        stack.extend(words.into_iter().map(|world| {
                            let (seen, heard) = (Some(seen.clone()), heard.clone());
                            Moment { world, seen, heard, end, depth, undisturbed: true }
                        }));
                        let is_old = after.scene.seen.resource != seen.resource;
                        stack.push(Moment {
                            world: after,
                            seen: is_old.then(|| seen.clone()),
                            heard,
                            end,
                            depth,
                            undisturbed,
                        });
                    }
                }
                Next::Again => {
                    stack.push(Moment {
                        world,
                        seen: None,
                        heard: Heard::default(),
                        end,
                        depth: depth + 1,
                        undisturbed,
                    });
                }
                next => ends.push((world, end, next)),
            }
        }
        ends
    }

    /// Every answer that this call may get: the world after it, what was heard, and whether it was trouble.
    fn answers(&self, call: &Call, heard: &Heard) -> Vec<(World, Heard, bool)> {
        let mut all = self.prompt_answers(call, heard);
        if let Some(unread) = &self.engine.unread {
            for (world, _, _) in &mut all {
                world.engine.unread = None;
                world.arrives(unread);
            }
        }
        // It is not lost, nor is it read before something else is.
        if let Call::Submit(planning) = call
            && self.faults > 0
            && self.engine.unread.is_none()
        {
            let mut late = self.clone();
            late.faults -= 1;
            late.engine.unread = Some(Submission::of(&Request::from(planning.clone())));
            let mut heard = heard.clone();
            Answer::lost(call, Sort::Unreachable).hear(call, &mut heard);
            all.push((late, heard, true));
        }
        all
    }

    /// A submission is read late: it is taken on, if nothing has changed since that stands against it.
    fn arrives(&mut self, submission: &Submission) {
        if self.engine.refusal(submission).is_none() {
            let n = self.accept(submission, Status::InExecution);
            self.engine.executor = Executor::Runs { n, stopping: false };
        }
    }

    /// Takes a submission on.
    fn accept(&mut self, submission: &Submission, status: Status) -> u32 {
        self.accepted += 1;
        assert!(self.accepted <= self.approvals, "a second submission for one approval");
        // Carried out, it is no longer what it was.
        self.engine.known_proposal = None;
        self.engine.begin(submission.reason.clone(), true, status)
    }

    fn prompt_answers(&self, call: &Call, heard: &Heard) -> Vec<(World, Heard, bool)> {
        let mut all: Vec<(World, Heard, bool)> = Vec::new();
        for (world, said) in self.normal_answers(call) {
            // It was done, and the answer does not come, or is none.
            for sort in [Sort::Unreachable, Sort::Garbled].into_iter().filter(|_| world.faults > 0) {
                let mut lost = world.clone();
                lost.faults -= 1;
                let mut heard = heard.clone();
                Answer::lost(call, sort).hear(call, &mut heard);
                all.push((lost, heard, true));
            }
            let mut heard = heard.clone();
            said.hear(call, &mut heard);
            all.push((world, heard, false));
        }
        if self.faults > 0 {
            let mut undelivered = self.clone();
            undelivered.faults -= 1;
            let mut heard = heard.clone();
            Answer::lost(call, Sort::Unreachable).hear(call, &mut heard);
            all.push((undelivered, heard, true));
        }
        all
    }

    fn normal_answers(&self, call: &Call) -> Vec<(World, Answer)> {
        let tasks = || self.engine.jobs.iter().map(|job| job.task(&self.engine)).collect::<Vec<_>>();
        let same = |answer| vec![(self.clone(), answer)];
        match call {
            Call::Propose(_) => self.propose(),
            Call::Submit(planning) => self.submit(&Request::from(planning.clone())),
            Call::Explain { request, .. } => {
                let executes = Request::from(request.clone()).executes();
                let mut all = same(Answer::Plan(trouble(Sort::Refused, "no racks")));
                // Each of these brings a new proposal, so with automatic approval they would go on for ever.
                if executes && self.engine.count < 3 {
                    all.extend(same(Answer::Plan(trouble(Sort::Outdated, "broker 3 is gone"))));
                }
                all
            }
            Call::ListTasks => same(Answer::Tasks(Ok(tasks()))),
            Call::Follow { task, .. } => {
                same(Answer::Tasks(Ok(tasks().into_iter().filter(|it| it.user_task_id == task.to_string()).collect())))
            }
            Call::LookAtExecutor => same(Answer::Executor(Ok(self.engine.executor_state()))),
            Call::Stop => {
                let mut world = self.clone();
                match &mut world.engine.executor {
                    Executor::Runs { stopping, .. } => *stopping = true,
                    other => panic!("a stop was sent to {other:?}"),
                }
                vec![(world, Answer::Stop)]
            }
        }
    }

    fn propose(&self) -> Vec<(World, Answer)> {
        assert!(!self.deleting(), "a proposal was asked for after the deletion");
        let mut ready = self.clone();
        let n = ready.engine.begin(tag::of_resource(UID), false, Status::Completed);
        ready.proposed(n);
        let plan = Answer::Plan(Ok(Plan { task: Some(id(n)), result: Some(ready.engine.plan(n)) }));
        let mut computing = self.clone();
        let m = computing.engine.begin(tag::of_resource(UID), false, Status::Active);
        vec![
            (ready, plan),
            (computing, Answer::Plan(Ok(Plan { task: Some(id(m)), result: None }))),
            (self.clone(), Answer::Plan(trouble(Sort::NotEnoughData, "windows"))),
            (self.clone(), Answer::Plan(trouble(Sort::Refused, "no racks"))),
        ]
    }

    /// A proposal was made.
    pub(super) fn proposed(&mut self, n: u32) {
        self.engine.known_proposal = Some(n);
        self.approvals += u32::from(self.auto);
    }

    fn submit(&self, request: &Request) -> Vec<(World, Answer)> {
        assert!(!self.deleting(), "an execution was submitted after the deletion");
        assert!(request.executes());
        assert!(self.auto || self.scene.asked() == Some("approve"), "submitted without an approval in force");
        let submission = Submission::of(request);
        let refused = |sort| (self.clone(), Answer::Plan(trouble(sort, "no")));
        if let Some(sort) = self.engine.refusal(&submission) {
            return vec![refused(sort)];
        }
        let accept = |status: Status| {
            let mut world = self.clone();
            let n = world.accept(&submission, status);
            if status == Status::InExecution {
                world.engine.executor = Executor::Runs { n, stopping: false };
            }
            (world, n)
        };
        let (runs, n) = accept(Status::InExecution);
        let plan = Answer::Plan(Ok(Plan { task: Some(id(n)), result: Some(self.engine.plan(n)) }));
        let (plans, m) = accept(Status::Active);
        let (nothing_to_do, k) = accept(Status::Completed);
        let mut all = vec![
            (runs, plan),
            (plans, Answer::Plan(Ok(Plan { task: Some(id(m)), result: None }))),
            (nothing_to_do, Answer::Plan(Ok(Plan { task: Some(id(k)), result: None }))),
            refused(Sort::Refused),
            refused(Sort::Busy),
        ];
        // Each of these brings a new proposal, so with automatic approval they would go on for ever.
        if self.engine.count < 3 {
            all.push(match self.engine.kind {
                Kind::Ours => refused(Sort::Outdated),
                Kind::Original => refused(Sort::NotEnoughData),
            });
        }
        all
    }
}

impl Submission {
    fn of(request: &Request) -> Self {
        let run = request.run().expect("a run");
        Self { reason: run.reason.clone().unwrap_or_default(), proposal_id: run.proposal_id.clone() }
    }
}

impl ModelEngine {
    /// Why a submission cannot be taken on.
    fn refusal(&self, submission: &Submission) -> Option<Sort> {
        if self.executor != Executor::Idle || self.jobs.iter().any(|job| job.executes && job.status == Status::Active) {
            return Some(Sort::Busy);
        }
        let known = self.known_proposal.map(|n| format!("plan-{n}"));
        match self.kind {
            Kind::Ours => {
                assert!(submission.proposal_id.is_some(), "our engine names its proposals");
                (submission.proposal_id != known).then_some(Sort::Outdated)
            }
            Kind::Original => None,
        }
    }

    fn begin(&mut self, reason: String, executes: bool, status: Status) -> u32 {
        self.count += 1;
        self.jobs.push(Job { n: self.count, reason, executes, status });
        self.count
    }

    fn plan(&self, n: u32) -> OptimizationResult {
        let proposal_id = (self.kind == Kind::Ours).then(|| format!("plan-{n}"));
        plan_of(Summary { proposal_id, ..summary() })
    }

    fn executor_state(&self) -> ExecutorState {
        match self.executor {
            Executor::Idle => ExecutorState::default(),
            Executor::Foreign => executing(99, "by hand"),
            Executor::Runs { n, stopping } => {
                let reason = self.jobs.iter().find(|job| job.n == n).map(|job| job.reason.as_str());
                let state = executing(n, reason.unwrap_or_default());
                if stopping { ExecutorState { phase: Phase::Stopping(Stopping::default()), ..state } } else { state }
            }
        }
    }

    pub(super) fn set(&mut self, n: u32, status: Status) {
        if let Some(job) = self.jobs.iter_mut().find(|job| job.n == n) {
            job.status = status;
        }
    }

    /// Whether an execution is under way, or will be.
    pub(super) fn is_busy_with_ours(&self) -> bool {
        matches!(self.executor, Executor::Runs { .. })
            || self.jobs.iter().any(|job| job.executes && matches!(job.status, Status::Active | Status::InExecution))
    }
}

impl Job {
    fn task(&self, engine: &ModelEngine) -> UserTask {
        let status = match self.status {
            Status::Active => TaskStatus::Active,
            Status::InExecution => TaskStatus::InExecution,
            Status::Completed => TaskStatus::Completed,
            Status::Refused | Status::Broken => TaskStatus::CompletedWithError,
        };
        let mut task = task(self.n, status, &self.reason);
        if self.status != Status::Active && self.status != Status::Refused {
            task.original_response = Some(json::to_string(&engine.plan(self.n)));
        }
        task
    }
}

enum Answer {
    Plan(Said<Plan>),
    Tasks(Said<Vec<UserTask>>),
    Executor(Said<ExecutorState>),
    Stop,
    StopLost(Sort),
}

impl Answer {
    fn lost(call: &Call, sort: Sort) -> Self {
        match call {
            Call::Propose(_) | Call::Explain { .. } | Call::Submit(_) => Self::Plan(trouble(sort, "down")),
            Call::Follow { .. } | Call::ListTasks => Self::Tasks(trouble(sort, "down")),
            Call::LookAtExecutor => Self::Executor(trouble(sort, "down")),
            Call::Stop => Self::StopLost(sort),
        }
    }

    fn hear(self, call: &Call, heard: &mut Heard) {
        match (self, call) {
            (Self::Plan(said), Call::Propose(_)) => heard.proposal = Some(said),
            (Self::Plan(said), Call::Explain { .. }) => heard.explanation = Some(said),
            (Self::Plan(said), _) => heard.submission = Some(said),
            (Self::Tasks(said), Call::Follow { in_full, .. }) => {
                heard.task = Some(said);
                heard.in_full = *in_full;
            }
            (Self::Tasks(said), _) => heard.tasks = Some(said),
            (Self::Executor(said), _) => heard.executor = Some(said),
            (Self::Stop, _) => heard.stop = Some(Ok(())),
            (Self::StopLost(sort), _) => heard.stop = Some(trouble(sort, "down")),
        }
    }
}
