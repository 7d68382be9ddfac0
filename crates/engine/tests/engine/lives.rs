//! Whole engines on a stage, as the tests that ask them over their door need them.
#![allow(unreachable_pub, reason = "a test binary has no outside")]

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use axum::Router;
use evenkeel_engine::{
    clock::WallClock,
    config::capacity::Capacities,
    engine::{Engine, Parts, Running},
    executor::Move,
    notify::Courier,
    serve::router,
};
use evenkeel_rest::{
    Answer,
    body::{OptimizationResult, state::Phase},
    client::{Client, Reply},
    parameter::TaskStatus,
    request::{self, AddBroker, Rebalance, RemoveBroker},
};
use evenkeel_sim::cluster::{Alteration, BrokerSpec, Fault, Operation, Reassignment, Resource};
use http_body_util::BodyExt;
use tower::ServiceExt;
use uuid::Uuid;

use crate::stage::{DIRS, MB, Stage, changes, mv, settings};

pub const PATIENCE: Duration = Duration::from_secs(600);

/// One life of an engine.
pub struct Life {
    pub router: Router,
    pub client: Client<Router>,
    _running: Running,
}

impl Stage {
    pub fn engine(&self) -> Life {
        self.engine_with("")
    }

    /// One with settings of its own.
    pub fn engine_with(&self, more: &str) -> Life {
        self.engine_over(self.client(), more)
    }

    /// One that knows how much each directory of a broker can hold.
    pub fn engine_with_dirs(&self, more: &str) -> Life {
        self.engine_of(self.client(), more, r#"{"/d0": "50000", "/d1": "50000"}"#)
    }

    /// One that reaches the brokers through this client.
    pub fn engine_over(&self, client: evenkeel_kafka::Client, more: &str) -> Life {
        self.engine_of(client, more, r#""100000""#)
    }

    fn engine_of(&self, client: evenkeel_kafka::Client, more: &str, disk: &str) -> Life {
        let text = "metric.sampling.interval.ms=5000\n\
                    partition.metrics.window.ms=10000\n\
                    min.samples.per.partition.metrics.window=1\n\
                    partition.sample.store.topic.partition.count=2\n\
                    broker.sample.store.topic.partition.count=2\n\
                    default.replication.throttle=5000000\n";
        let rest = r#""CPU": {"num.cores": "8"}, "NW_IN": "100000", "NW_OUT": "100000""#;
        let capacities =
            format!(r#"{{"brokerCapacities": [{{"brokerId": "-1", "capacity": {{"DISK": {disk}, {rest}}}}}]}}"#);
        let parts = Parts {
            client,
            settings: Arc::new(settings(&format!("{text}{more}"))),
            capacities: Arc::new(Capacities::read(&capacities).unwrap()),
            courier: Courier::silent(),
            clock: WallClock::starting_at(self.world.look(|cluster| cluster.wall_clock())),
        };
        let running = Engine::start(parts).unwrap();
        let base = "http://engine:9090/kafkacruisecontrol".parse().unwrap();
        let router = router(running.door());
        Life { client: Client::new(router.clone(), base), router, _running: running }
    }

    /// Sends partition 11, which no plan of these tests needs to move, elsewhere, as another tool would.
    pub fn another_tool_moves(&self) {
        let ids = [2, 3].map(evenkeel_sim::BrokerId).to_vec();
        let line = Reassignment { partition: evenkeel_sim::TopicPartition::new("orders", 11), target: Some(ids) };
        self.world.with(|cluster| cluster.suffer(&Fault::ForeignReassignment(line)));
    }

    /// Nothing arrives within the hour.
    pub fn crawl(&self) {
        let rates = ["leader.replication.throttled.rate", "follower.replication.throttled.rate"];
        let lists = ["leader.replication.throttled.replicas", "follower.replication.throttled.replicas"];
        self.world.with(|cluster| {
            let set = |name: &str, value: &str| Alteration {
                name: name.to_owned(),
                operation: Operation::Set,
                value: Some(value.to_owned()),
            };
            for id in (0..4).map(evenkeel_sim::BrokerId) {
                let slow = rates.map(|name| set(name, "1000"));
                cluster.incremental_alter_configs(&Resource::Broker(id), &slow, false).unwrap();
            }
            let all = lists.map(|name| set(name, "*"));
            let topic = Resource::Topic("orders".to_owned());
            cluster.incremental_alter_configs(&topic, &all, false).unwrap();
        });
    }

    /// Brokers that hold something of `orders`.
    pub fn holders(&self) -> BTreeSet<i32> {
        self.registrations().iter().flat_map(|record| record.replicas.iter().map(|id| id.0)).collect()
    }
}

impl Life {
    /// Asks until there is a plan: at first the journal is not open, and then nothing is known.
    pub async fn proposed(&self, asked: &Rebalance) -> (OptimizationResult, Uuid) {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let reply = self.client.ask_and_wait(asked, PATIENCE, Duration::from_secs(1)).await;
            if let Answer::Ready(result) = reply.answer {
                return (result, reply.task.expect("a task has a name"));
            }
            assert!(tokio::time::Instant::now() < deadline, "{:?}", reply.answer);
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    pub async fn phase(&self) -> Option<Phase> {
        match self.client.ask(&request::State::default()).await.answer {
            // Before the journal is open nobody knows.
            Answer::Ready(state) => state.executor_state.map(|it| it.phase),
            _ => None,
        }
    }

    pub async fn until(&self, what: &str, is_so: impl Fn(&Phase) -> bool) {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let phase = self.phase().await;
            if phase.as_ref().is_some_and(&is_so) {
                return;
            }
            assert!(tokio::time::Instant::now() < deadline, "{what}: {phase:?}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    pub async fn status_of(&self, task: Uuid) -> Option<TaskStatus> {
        let asked = request::UserTasks { user_task_ids: [task].into(), ..Default::default() };
        match self.client.ask(&asked).await.answer {
            Answer::Ready(tasks) => tasks.user_tasks.first().map(|task| task.status),
            other => panic!("{other:?}"),
        }
    }
}

/// Only counts matter here, so that every run is the same.
pub fn spread() -> Rebalance {
    let mut asked = Rebalance::default();
    asked.goal_options.goals = vec!["ReplicaDistributionGoal".to_owned(), "LeaderReplicaDistributionGoal".to_owned()];
    asked.execution.skip_hard_goal_check = true;
    asked
}

pub fn executing(proposal: Option<String>) -> Rebalance {
    let mut asked = spread();
    asked.execution.run.dryrun = false;
    asked.execution.run.reason = Some("a test".to_owned());
    asked.execution.run.proposal_id = proposal;
    asked
}

/// Empties a broker.
pub fn removing(broker: i32) -> RemoveBroker {
    let mut asked = RemoveBroker { brokerid: [broker].into(), ..RemoveBroker::default() };
    asked.goal_options.goals = spread().goal_options.goals;
    asked.execution.skip_hard_goal_check = true;
    asked.execution.run.dryrun = false;
    asked
}

/// Fills brokers that hold little.
pub fn adding(brokers: &[i32]) -> AddBroker {
    let mut asked = AddBroker { brokerid: brokers.iter().copied().collect(), ..AddBroker::default() };
    asked.goal_options.goals = spread().goal_options.goals;
    asked.execution.skip_hard_goal_check = true;
    asked.execution.run.dryrun = false;
    asked
}

pub fn task<T>(reply: &Reply<T>) -> Uuid {
    reply.task.expect("a task has a name")
}

impl Life {
    /// What is answered to a bare `GET`: the code and the body.
    pub async fn got(&self, path: &str) -> (u16, String) {
        let request = http::Request::get(path).body(axum::body::Body::empty()).unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    /// A client that has said nothing about itself yet.
    pub fn asking(&self) -> Client<Router> {
        Client::new(self.router.clone(), "http://engine:9090/kafkacruisecontrol".parse().unwrap())
    }

    /// Begins what `spread` comes to, once it can be planned.
    pub async fn begun(&self) -> Uuid {
        self.proposed(&spread()).await;
        let reply = self.client.ask_and_wait(&executing(None), PATIENCE, Duration::from_secs(1)).await;
        assert!(matches!(reply.answer, Answer::Ready(_)), "{:?}", reply.answer);
        self.until("it runs", |phase| matches!(phase, Phase::InterBroker(_))).await;
        task(&reply)
    }
}

/// The header that names a task.
const TASK: &str = "User-Task-ID";

impl Life {
    /// What is answered at once to a request of the API: the code and the body.
    pub async fn answered_first(&self, method: &str, path: &str) -> (u16, String) {
        let request = http::Request::builder().method(method).uri(format!("/kafkacruisecontrol/{path}"));
        let response = self.router.clone().oneshot(request.body(axum::body::Body::empty()).unwrap()).await.unwrap();
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    /// What is answered in the end to a request of the API: the code and the body.
    pub async fn answered(&self, method: &str, path: &str) -> (u16, String) {
        let mut task = None;
        loop {
            let mut request = http::Request::builder().method(method).uri(format!("/kafkacruisecontrol/{path}"));
            if let Some(task) = &task {
                request = request.header(TASK, task);
            }
            let request = request.body(axum::body::Body::empty()).unwrap();
            let response = self.router.clone().oneshot(request).await.unwrap();
            let status = response.status().as_u16();
            task = response.headers().get(TASK).cloned().or(task);
            let body = response.into_body().collect().await.unwrap().to_bytes();
            if status != 202 {
                return (status, String::from_utf8(body.to_vec()).unwrap());
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }
}

/// Four brokers with two slow disks each; everything lies on the first one of each broker.
pub fn crowded() -> Stage {
    let broker = |id: i32| {
        let mut broker = BrokerSpec::new(id).with_dirs(DIRS);
        broker.dirs.iter_mut().for_each(|dir| dir.disk_bytes = 4e6);
        broker
    };
    let crowd = |number: i32| {
        let pair = [number % 4, (number + 1) % 4];
        Move { dirs: pair.map(changes).to_vec(), ..mv(number, pair, pair, 20 * MB) }
    };
    Stage::on((0..4).map(broker), (0..12).map(crowd).collect(), 2_000)
}

/// Evens out the directories of each broker.
pub fn between_disks() -> Rebalance {
    let mut asked = Rebalance::default();
    asked.scope.rebalance_disk = true;
    asked.execution.run.dryrun = false;
    asked
}
