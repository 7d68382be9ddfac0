//! A door, somebody at the desk behind it, and a simulated cluster that he works on.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses its own part of it")]

use std::sync::{Arc, OnceLock};

use axum::Router;
use evenkeel_engine::{
    answers::{self, AdminPlan, AdminSeen, ClusterSeen, Parts},
    clock::WallClock,
    config::{properties::Properties, settings::Settings},
    executor::{
        Executor,
        service::{HistoryChange, Start},
    },
    journal::Run,
    metrics::{self, Page},
    serve::{Answered, Asked, Desk, Door, DoorSettings, Steps, router},
    tasks::UserTask,
};
use evenkeel_kafka::{BrokerId, Error};
use evenkeel_rest::{
    Answer, Client, Failure, Request,
    body::{
        Body, Message, Step, Summary,
        state::{AnomalyDetectorState, MonitorPhase, MonitorState},
    },
    parameter::TaskStatus,
    request,
};
use evenkeel_sim::cluster::Fault;
use tokio::sync::watch;
use uuid::Uuid;

use crate::stage::{Stage, run};

/// What clients talk to.
pub type Service = Router;

/// All of it.
pub struct Office {
    pub stage: Arc<Stage>,
    pub router: Router,
    door: Arc<Door<Clerk>>,
    clerk: Arc<Clerk>,
    settings: Settings,
}

/// Works on requests: what concerns the executor for real, and plans as given.
pub struct Clerk {
    executor: OnceLock<Executor>,
    /// Until it opens, loads are being computed.
    gate: watch::Sender<bool>,
}

impl Office {
    /// One that has not found Kafka yet.
    fn on(stage: Arc<Stage>, change: impl FnOnce(&mut DoorSettings)) -> Office {
        let properties = Properties::read("bootstrap.servers=sim:9092", |_| None).unwrap();
        let settings = Settings::read(&properties).unwrap().settings;
        let clerk = Arc::new(Clerk { executor: OnceLock::new(), gate: watch::Sender::new(false) });
        let mut of_door = DoorSettings {
            webserver: settings.webserver.clone(),
            tasks: settings.tasks.clone(),
            answer_within: settings.answer_within,
        };
        change(&mut of_door);
        let clock = WallClock::starting_at(stage.world.look(|cluster| cluster.wall_clock()));
        let door = Door::new(Arc::clone(&clerk), of_door, clock).unwrap();
        Office { stage, router: router(&door), door, clerk, settings }
    }

    pub async fn shut() -> Office {
        Office::on(Arc::new(Stage::new()), |_| {})
    }

    pub async fn open() -> Office {
        Office::with(|_| {}).await
    }

    pub async fn with(change: impl FnOnce(&mut DoorSettings)) -> Office {
        let office = Office::on(Arc::new(Stage::new()), change);
        office.opened().await;
        office
    }

    /// One that lets in only users of this file.
    pub async fn guarded(users: &str) -> Office {
        let path = std::env::temp_dir().join(format!("evenkeel-users-{}", Uuid::new_v4()));
        std::fs::write(&path, users).unwrap();
        let office = Office::with(|settings| settings.webserver.credentials = Some(path.clone())).await;
        std::fs::remove_file(path).unwrap();
        office
    }

    /// Finds Kafka, and opens.
    pub async fn opened(&self) {
        let clock = WallClock::starting_at(self.stage.world.look(|cluster| cluster.wall_clock()));
        let (executor, tasks) = Executor::open(self.stage.client(), &self.settings.executor, clock, |why| {
            self.door.waits_for_journal(why);
        })
        .await;
        self.door.join(&executor, tasks);
        assert!(self.clerk.executor.set(executor).is_ok(), "opened once");
    }

    /// The process dies, and another one comes.
    pub async fn reopened(self) -> Office {
        let stage = Arc::clone(&self.stage);
        drop(self);
        let office = Office::on(stage, |_| {});
        office.opened().await;
        office
    }

    /// Another process on the same cluster.
    pub async fn beside(&self) -> Office {
        let office = Office::on(Arc::clone(&self.stage), |_| {});
        office.opened().await;
        office
    }

    pub fn executor(&self) -> &Executor {
        self.clerk.executor()
    }

    pub fn service(&self) -> Service {
        self.router.clone()
    }

    /// From now on loads are computed at once.
    pub fn let_through(&self) {
        self.clerk.gate.send_replace(true);
    }

    /// Cuts the network to all brokers, or mends it.
    pub fn cut(&self, cut: bool) {
        let all = (0..4).map(evenkeel_sim::BrokerId);
        let fault = |id| if cut { Fault::CutLink(id) } else { Fault::MendedLink(id) };
        self.stage.world.with(|cluster| all.for_each(|id| cluster.suffer(&fault(id))));
    }

    /// How a user task stands.
    pub async fn status_of(&self, id: Uuid) -> TaskStatus {
        let asked = request::UserTasks { user_task_ids: [id].into(), ..Default::default() };
        let client = Client::new(self.service(), "http://engine:9090/kafkacruisecontrol".parse().unwrap());
        let Answer::Ready(tasks) = client.ask(&asked).await.answer else { panic!("user_tasks answers") };
        tasks.user_tasks.first().expect("the task is known").status
    }
}

impl Clerk {
    fn executor(&self) -> &Executor {
        self.executor.get().expect("the door is shut before it is there")
    }

    async fn executed(&self, asked: &Asked, answered: &Answered) -> Result<(), Failure> {
        let run = Run { id: Uuid::new_v4(), task: Some(asked.id), reason: asked.reason.clone(), ..run() };
        let change = HistoryChange { removed: [BrokerId(7)].into(), ..HistoryChange::default() };
        let start = Start { run, task: Some(asked.in_execution(answered)), change };
        Ok(self.executor().begin(start).await?)
    }

    async fn administered(&self, asked: &request::Admin) -> Result<evenkeel_rest::body::AdminAnswer, Failure> {
        let plan = AdminPlan::of(asked, 1250)?;
        self.executor().adjust(plan.adjustment);
        let mut seen = AdminSeen::default();
        if plan.forgets_brokers() {
            let forgotten = self.executor().forget_brokers(&plan.removed, &plan.demoted).await;
            seen.history = Some(forgotten.map_err(Failure::illegal_state)?);
        }
        Ok(plan.answer(&seen))
    }
}

fn monitor_state() -> MonitorState {
    MonitorState {
        state: MonitorPhase::Running,
        figures: Some(Default::default()),
        reason_of_latest_pause_or_resume: None,
        bootstrap_progress_pct: None,
        loading_progress_pct: None,
        error: None,
    }
}

impl Desk for Clerk {
    async fn answer(&self, asked: Asked, steps: Steps) -> Result<Answered, Failure> {
        match &asked.request {
            Request::State(state) => {
                let body = answers::state(
                    state,
                    Parts {
                        analyzer: |verbose| answers::analyzer_state(&[], false, verbose),
                        monitor: |_| monitor_state(),
                        executor: |verbose| self.executor().state(verbose),
                        detector: AnomalyDetectorState::default,
                    },
                );
                Ok(asked.answered(|| body.json(), || body.text()))
            }
            Request::KafkaClusterState(state) => {
                let body = answers::cluster_state(state, &ClusterSeen::default())?;
                Ok(asked.answered(|| body.json(), || body.text()))
            }
            Request::Admin(admin) => {
                let body = self.administered(admin).await?;
                Ok(asked.answered(|| body.json(), || body.text()))
            }
            Request::StopProposalExecution(stop) => {
                let stopped = self.executor().stop(stop.stop_external_agent).await;
                stopped.map_err(Failure::illegal_state)?;
                let body = Message::execution_stopped();
                Ok(asked.answered(|| body.json(), || body.text()))
            }
            Request::PauseSampling(_) | Request::ResumeSampling(_) => {
                let body = Message::sampling_paused();
                Ok(asked.answered(|| body.json(), || body.text()))
            }
            Request::Load(_) => {
                steps.begin(Step::GeneratingClusterModel);
                let _ = self.gate.subscribe().wait_for(|open| *open).await;
                Ok(asked.answered(|| r#"{"version":1,"hosts":[],"brokers":[]}"#.to_owned(), || "loads".to_owned()))
            }
            Request::PartitionLoad(_) => Err(Failure::new("no such luck")),
            Request::Proposals(proposals) if proposals.goal_options.optimization.verbose => panic!("a fault of ours"),
            _ => {
                let json = || format!(r#"{{"summary":{},"version":1}}"#, Summary::default().json());
                let mut answered = asked.answered(json, || "a plan".to_owned());
                if asked.request.executes() {
                    self.executed(&asked, &answered).await?;
                    answered.executes = true;
                }
                Ok(answered)
            }
        }
    }

    async fn record(&self, id: Uuid, task: &UserTask) -> Result<(), Error> {
        self.executor().record_task(id, task).await
    }

    async fn forget(&self, tasks: &[(Uuid, UserTask)]) -> Result<(), Error> {
        self.executor().forget_tasks(tasks).await
    }

    fn measure(&self, page: &mut Page) {
        if let Some(executor) = self.executor.get() {
            metrics::executor(page, executor);
        }
    }
}
