//! One KafkaRebalance and what is around it, for tests: decisions are carried out on it as a controller
//! would, and the engine says what the test wants.

use std::time::Duration;

use evenkeel_api::annotations;
use evenkeel_api::rebalance::RebalanceState;
use evenkeel_api::{Condition, KafkaRebalance, KafkaRebalanceSpec, KafkaRebalanceStatus, Reason, labels};
use evenkeel_rest::body::state::{ExecutorState, InterBroker, Phase, Trigger};
use evenkeel_rest::body::{BrokerLoad, BrokerState, ClusterLoad, OptimizationResult, Summary, UserTask};
use evenkeel_rest::json;
use evenkeel_rest::parameter::TaskStatus;
use jiff::Timestamp;
use uuid::Uuid;

use super::super::{
    Call, Cluster, Decision, Engine, Finalizer, FoundConfigMap, FoundKafka, Heard, Next, Observation, Order, Plan,
    Said, Sort, Template, Trouble, decide, tag,
};

pub(super) const UID: &str = "0b7e4b4a-5f39-4a0e-9f7a-0c8f2f0f3a11";
pub(super) const NOW: i64 = 1_767_225_600;

/// The engine's ids: the first eight digits tell them apart.
pub(super) fn id(n: u32) -> Uuid {
    Uuid::from_u128(u128::from(n) << 96)
}

pub(super) fn summary() -> Summary {
    Summary { num_replica_movements: 3, data_to_move_mb: 100, proposal_id: Some("plan-1".into()), ..Summary::default() }
}

pub(super) fn plan_of(summary: Summary) -> OptimizationResult {
    let load = |leaders| ClusterLoad { brokers: vec![broker(0, leaders, 0.0)], hosts: vec![] };
    OptimizationResult {
        summary,
        proposals: None,
        load_before_optimization: Some(load(1)),
        goal_summary: vec![],
        load_after_optimization: load(2),
        version: Default::default(),
    }
}

pub(in crate::rebalance) fn plan() -> OptimizationResult {
    plan_of(summary())
}

/// A broker of which hardly anything is known.
pub(in crate::rebalance) fn broker(id: i32, leaders: u64, disk_mb: f64) -> BrokerLoad {
    let zero = 0.0.into();
    BrokerLoad {
        follower_nw_in_rate: zero,
        broker_state: BrokerState::Alive,
        broker: id,
        nw_out_rate: zero,
        disk_state: None,
        num_core: zero,
        host: "h".into(),
        cpu_pct: zero,
        replicas: 9,
        network_in_capacity: zero,
        rack: "r".into(),
        leaders,
        disk_capacity_mb: zero,
        disk_mb: disk_mb.into(),
        pnw_out_rate: zero,
        network_out_capacity: zero,
        leader_nw_in_rate: zero,
        disk_pct: f64::NAN.into(),
    }
}

pub(super) fn task(n: u32, status: TaskStatus, reason: &str) -> UserTask {
    let answer = match status {
        TaskStatus::Active => None,
        TaskStatus::CompletedWithError => Some(status.name().to_owned()),
        _ => Some(json::to_string(&plan())),
    };
    UserTask {
        status,
        client_identity: "10.0.0.1".into(),
        request_url: format!("POST /kafkacruisecontrol/rebalance?reason={reason}&json=true"),
        user_task_id: id(n).to_string(),
        start_ms: NOW * 1000 + i64::from(n),
        original_response: answer,
    }
}

/// The executor, busy with the run of a task.
pub(super) fn executing(n: u32, reason: &str) -> ExecutorState {
    let moves = InterBroker {
        total_data_to_move: 1000,
        finished_data_movement: 500,
        num_total_partition_movements: 10,
        num_finished_partition_movements: 5,
        ..InterBroker::default()
    };
    ExecutorState {
        phase: Phase::InterBroker(moves),
        trigger: Some(Trigger {
            triggered_task_reason: format!("{reason} (Client: 10.0.0.1, Date: 2025-12-31T23:59:00Z)"),
            triggered_user_task_id: id(n).to_string(),
            ..Trigger::default()
        }),
        ..ExecutorState::default()
    }
}

pub(super) fn trouble<T>(sort: Sort, text: &str) -> Said<T> {
    Err(Trouble { sort, text: text.to_owned() })
}

/// What the engine says, question by question. None: the test does not expect the question.
#[derive(Clone, Default)]
pub(super) struct Engineer {
    pub propose: Option<Said<Plan>>,
    pub explain: Option<Said<Plan>>,
    pub submit: Option<Said<Plan>>,
    pub tasks: Option<Said<Vec<UserTask>>>,
    pub executor: Option<Said<ExecutorState>>,
    pub stop: Option<Said<()>>,
}

impl Engineer {
    pub(super) fn proposes(answer: Said<Plan>) -> Self {
        Self { propose: Some(answer), ..Self::default() }
    }

    pub(super) fn ready(n: u32) -> Said<Plan> {
        Ok(Plan { task: Some(id(n)), result: Some(plan()) })
    }

    pub(super) fn computing(n: u32) -> Said<Plan> {
        Ok(Plan { task: Some(id(n)), result: None })
    }

    /// With tasks and an idle executor.
    pub(super) fn with(tasks: &[UserTask]) -> Self {
        Self { tasks: Some(Ok(tasks.to_vec())), executor: Some(Ok(ExecutorState::default())), ..Self::default() }
    }

    /// Took the execution on, and then refused it: why.
    pub(super) fn refuses(why: Said<Plan>) -> Self {
        Self { explain: Some(why), ..Self::with(&[execution(TaskStatus::CompletedWithError)]) }
    }

    pub(super) fn running(self, executor: ExecutorState) -> Self {
        Self { executor: Some(Ok(executor)), ..self }
    }

    fn answer(&self, call: &Call, heard: &mut Heard) {
        /// What the test has prepared.
        fn prepared<T: Clone>(answer: &Option<T>, call: &Call) -> T {
            answer.clone().unwrap_or_else(|| panic!("unexpected call {call:?}"))
        }
        match call {
            Call::Propose(_) => heard.proposal = Some(prepared(&self.propose, call)),
            Call::Explain { .. } => heard.explanation = Some(prepared(&self.explain, call)),
            Call::Submit(_) => heard.submission = Some(prepared(&self.submit, call)),
            Call::ListTasks => heard.tasks = Some(prepared(&self.tasks, call)),
            Call::LookAtExecutor => heard.executor = Some(prepared(&self.executor, call)),
            Call::Stop => heard.stop = Some(self.stop.clone().unwrap_or(Ok(()))),
            Call::Follow { task, in_full } => {
                let all = prepared(&self.tasks, call);
                let one = |tasks: Vec<UserTask>| tasks.into_iter().filter(|it| it.user_task_id == task.to_string());
                heard.task = Some(all.map(|tasks| one(tasks).collect()));
                heard.in_full = *in_full;
            }
        }
    }
}

/// A KafkaRebalance and what is around it.
#[derive(Clone)]
pub(super) struct Scene {
    pub seen: Observation,
    /// The calls that were made, in order.
    pub calls: Vec<Call>,
    pub events: Vec<String>,
}

impl Scene {
    /// A new one, for a Kafka that is ready, with our engine.
    pub(super) fn new() -> Self {
        let mut resource = KafkaRebalance::new("my-rebalance", KafkaRebalanceSpec::default());
        resource.metadata.uid = Some(UID.to_owned());
        resource.metadata.generation = Some(1);
        resource.metadata.labels = Some([(labels::CLUSTER.to_owned(), "my-cluster".to_owned())].into());
        let engine = Engine {
            is_ours: true,
            missing_secret: None,
            first_window: Some(Duration::from_secs(90)),
            is_leaving: false,
        };
        let seen = Observation {
            resource,
            namespace_terminating: false,
            kafka: FoundKafka::There(Cluster { name: "my-cluster".into(), ready: true, engine: Some(engine) }),
            template: Template::None,
            config_map: FoundConfigMap::Absent,
            recorded_cluster: None,
            others: Vec::new(),
            heard: Heard::default(),
            now: Timestamp::from_second(NOW).unwrap(),
        };
        Self { seen, calls: Vec::new(), events: Vec::new() }
    }

    /// With a proposal to approve, made by task 1.
    pub(super) fn proposal_ready() -> Self {
        let mut scene = Self::new();
        scene.run(&Engineer::proposes(Engineer::ready(1)));
        assert_eq!(scene.state(), RebalanceState::ProposalReady);
        scene.calls.clear();
        scene
    }

    /// With a proposal in the making, by task 1.
    pub(super) fn pending() -> Self {
        let mut scene = Self::new();
        scene.run(&Engineer::proposes(Engineer::computing(1)));
        assert_eq!(scene.state(), RebalanceState::PendingProposal);
        scene.calls.clear();
        scene
    }

    /// With a run under way, by task 2.
    pub(super) fn rebalancing() -> Self {
        let mut scene = Self::proposal_ready();
        scene.ask("approve");
        let engineer = Engineer { submit: Some(Engineer::ready(2)), ..Engineer::with(&[]) };
        scene.run(&engineer);
        assert_eq!(scene.state(), RebalanceState::Rebalancing);
        scene.calls.clear();
        scene
    }

    /// In a state in which nothing goes on.
    pub(super) fn resting(state: RebalanceState) -> Self {
        let mut scene = Self::rebalancing();
        match state {
            RebalanceState::Ready => drop(scene.run(&Engineer::with(&[execution(TaskStatus::Completed)]))),
            RebalanceState::NotReady => drop(scene.run(&Engineer::refuses(trouble(Sort::Refused, "no racks")))),
            RebalanceState::Stopped => {
                scene.ask("stop");
                scene.run(&Engineer::with(&[execution(TaskStatus::CompletedWithError)]));
            }
            other => panic!("{other} is no resting state"),
        }
        assert_eq!(scene.state(), state);
        scene.calls.clear();
        scene
    }

    /// The same with the original for an engine, which does not name its proposals.
    #[must_use]
    pub(super) fn of_the_original(mut self) -> Self {
        self.kafka().engine.as_mut().unwrap().is_ours = false;
        let status = self.seen.resource.status.as_mut();
        if let Some(result) = status.and_then(|status| status.optimization_result.as_mut()) {
            result.remove("proposalId");
        }
        self
    }

    pub(super) fn annotate(&mut self, name: &str, value: &str) {
        self.seen.resource.metadata.annotations.get_or_insert_default().insert(name.to_owned(), value.to_owned());
    }

    pub(super) fn ask(&mut self, value: &str) {
        self.annotate(annotations::REBALANCE, value);
    }

    pub(super) fn asked(&self) -> Option<&str> {
        let notes = self.seen.resource.metadata.annotations.as_ref()?;
        notes.get(annotations::REBALANCE).map(String::as_str)
    }

    pub(super) fn edit(&mut self, change: impl FnOnce(&mut KafkaRebalanceSpec)) {
        change(&mut self.seen.resource.spec);
        let generation = self.seen.resource.metadata.generation.get_or_insert_default();
        *generation += 1;
    }

    /// As the API server does it: the generation rises too.
    pub(super) fn delete(&mut self) {
        let now = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(self.seen.now);
        self.seen.resource.metadata.deletion_timestamp = Some(now);
        self.edit(|_| {});
    }

    pub(super) fn kafka(&mut self) -> &mut Cluster {
        match &mut self.seen.kafka {
            FoundKafka::There(cluster) => cluster,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn state(&self) -> RebalanceState {
        self.seen.resource.state()
    }

    pub(super) fn status(&self) -> &KafkaRebalanceStatus {
        self.seen.resource.status.as_ref().expect("a status")
    }

    pub(super) fn condition(&self) -> &Condition {
        &self.status().conditions[0]
    }

    pub(super) fn reason(&self) -> Option<&str> {
        self.condition().reason.as_deref()
    }

    pub(super) fn message(&self) -> &str {
        self.condition().message.as_deref().unwrap_or_default()
    }

    pub(super) fn warning(&self, reason: Reason) -> Option<&str> {
        let found = self.status().conditions.iter().find(|it| it.is_warning() && it.has_reason(reason));
        found.map(|it| it.message.as_deref().unwrap_or_default())
    }

    pub(super) fn warnings(&self) -> Vec<&str> {
        let warnings = self.status().conditions.iter().filter(|it| it.is_warning());
        warnings.map(|it| it.reason.as_deref().unwrap_or_default()).collect()
    }

    pub(super) fn session(&self) -> Option<&str> {
        self.status().session_id.as_deref()
    }

    pub(super) fn has_finalizer(&self) -> bool {
        let finalizers = self.seen.resource.metadata.finalizers.iter().flatten();
        finalizers.into_iter().any(|it| it == annotations::REBALANCE_FINALIZER)
    }

    pub(super) fn set_finalizer(&mut self, name: &str, on: bool) {
        let finalizers = self.seen.resource.metadata.finalizers.get_or_insert_default();
        finalizers.retain(|it| it != name);
        if on {
            finalizers.push(name.to_owned());
        }
    }

    pub(super) fn data(&self, key: &str) -> Option<&str> {
        match &self.seen.config_map {
            FoundConfigMap::Ours(data) => data.get(key).map(String::as_str),
            _ => None,
        }
    }

    /// What the names of the calls were.
    pub(super) fn called(&self) -> Vec<&'static str> {
        self.calls.iter().map(name_of).collect()
    }

    /// Reconciles until nothing is left to do at once. The last decision.
    pub(super) fn run(&mut self, engineer: &Engineer) -> Decision {
        self.seen.heard = Heard::default();
        for _ in 0..20 {
            let decision = decide(&self.seen);
            for step in steps(&decision) {
                step(&mut self.seen);
            }
            self.events.extend(decision.events.iter().map(|event| event.reason.clone()));
            match &decision.next {
                Next::Call(call) => {
                    self.calls.push(Call::clone(call));
                    engineer.answer(call, &mut self.seen.heard);
                }
                Next::Again => self.seen.heard = Heard::default(),
                Next::After(_) | Next::Rest => return decision,
            }
        }
        panic!("no end of it: {:?}", self.called());
    }

    /// The next decision, not carried out.
    pub(super) fn look(&self) -> Decision {
        decide(&self.seen)
    }
}

pub(super) fn name_of(call: &Call) -> &'static str {
    match call {
        Call::Propose(_) => "propose",
        Call::Explain { .. } => "explain",
        Call::Submit(_) => "submit",
        Call::Follow { .. } => "follow",
        Call::ListTasks => "list",
        Call::LookAtExecutor => "look",
        Call::Stop => "stop",
    }
}

/// What is to hold whichever engine there is.
pub(super) fn of_both_engines(scene: fn() -> Scene) -> [Scene; 2] {
    [scene(), scene().of_the_original()]
}

/// The execution of the scene, as a task.
pub(super) fn execution(status: TaskStatus) -> UserTask {
    task(2, status, &tag::of_execution(UID, id(1)))
}

type Step<'a> = Box<dyn Fn(&mut Observation) + 'a>;

/// The writes of a decision in the order in which they are made.
pub(super) fn steps(decision: &Decision) -> Vec<Step<'_>> {
    let mut steps: Vec<Step<'_>> = Vec::new();
    let finalizer = |on: bool| {
        move |seen: &mut Observation| {
            let finalizers = seen.resource.metadata.finalizers.get_or_insert_default();
            finalizers.retain(|it| it != annotations::REBALANCE_FINALIZER);
            if on {
                assert!(seen.resource.metadata.deletion_timestamp.is_none(), "the API server refuses this");
                finalizers.push(annotations::REBALANCE_FINALIZER.to_owned());
            }
        }
    };
    if decision.finalizer == Finalizer::Add {
        steps.push(Box::new(finalizer(true)));
    }
    let forget = |seen: &mut Observation| {
        seen.resource.metadata.annotations.get_or_insert_default().remove(annotations::REBALANCE);
    };
    if decision.forget.as_ref().is_some_and(|it| it.order == Order::BeforeStatus) {
        steps.push(Box::new(forget));
    }
    if let Some(config_map) = &decision.config_map {
        steps.push(Box::new(|seen| seen.config_map = FoundConfigMap::of(&seen.resource, Some(config_map))));
    }
    if let Some(status) = &decision.status {
        steps.push(Box::new(|seen| seen.resource.status = Some(status.clone())));
    }
    if decision.forget.as_ref().is_some_and(|it| it.order == Order::AfterStatus) {
        steps.push(Box::new(forget));
    }
    if decision.finalizer == Finalizer::Remove {
        steps.push(Box::new(finalizer(false)));
    }
    steps
}
