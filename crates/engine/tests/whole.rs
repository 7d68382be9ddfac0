//! Whole engines on simulated brokers, under paused time: asked over their door, dying, and taking up again what they
//! had begun.

mod stage;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use axum::Router;
use evenkeel_engine::{
    clock::WallClock,
    config::{capacity::Capacities, properties::Properties, settings::Settings},
    engine::{Engine, Parts, Running},
    notify::Courier,
    serve::router,
};
use evenkeel_kafka::{
    TopicPartition,
    calls::offsets::{Isolation, Place},
};
use evenkeel_rest::{
    Answer,
    body::{OptimizationResult, state::Phase},
    client::{Client, Reply},
    parameter::TaskStatus,
    request::{self, Rebalance, RemoveBroker, StopProposalExecution},
};
use evenkeel_sim::cluster::Fault;
use stage::Stage;
use uuid::Uuid;

const PATIENCE: Duration = Duration::from_secs(600);

/// One life of an engine.
struct Life {
    client: Client<Router>,
    _running: Running,
}

impl Stage {
    fn engine(&self) -> Life {
        let text = "bootstrap.servers=sim:9000\n\
                    metric.sampling.interval.ms=5000\n\
                    partition.metrics.window.ms=10000\n\
                    min.samples.per.partition.metrics.window=1\n\
                    partition.sample.store.topic.partition.count=2\n\
                    broker.sample.store.topic.partition.count=2\n\
                    default.replication.throttle=5000000\n";
        let properties = Properties::read(text, |_| None).unwrap();
        let settings = Settings::read(&properties).unwrap().settings;
        let capacity = r#"{"DISK": "100000", "CPU": {"num.cores": "8"}, "NW_IN": "100000", "NW_OUT": "100000"}"#;
        let capacities = format!(r#"{{"brokerCapacities": [{{"brokerId": "-1", "capacity": {capacity}}}]}}"#);
        let parts = Parts {
            client: self.client(),
            settings: Arc::new(settings),
            capacities: Arc::new(Capacities::read(&capacities).unwrap()),
            courier: Courier::silent(),
            clock: WallClock::starting_at(self.world.look(|cluster| cluster.wall_clock())),
        };
        let running = Engine::start(parts).unwrap();
        let base = "http://engine:9090/kafkacruisecontrol".parse().unwrap();
        Life { client: Client::new(router(running.door()), base), _running: running }
    }

    /// Brokers that hold something of `orders`.
    fn holders(&self) -> BTreeSet<i32> {
        self.registrations().iter().flat_map(|record| record.replicas.iter().map(|id| id.0)).collect()
    }
}

impl Life {
    /// Asks until there is a plan: at first the journal is not open, and then nothing is known.
    async fn proposed(&self, asked: &Rebalance) -> (OptimizationResult, Uuid) {
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

    async fn phase(&self) -> Option<Phase> {
        match self.client.ask(&request::State::default()).await.answer {
            // Before the journal is open nobody knows.
            Answer::Ready(state) => state.executor_state.map(|it| it.phase),
            _ => None,
        }
    }

    async fn until(&self, what: &str, is_so: impl Fn(&Phase) -> bool) {
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

    async fn status_of(&self, task: Uuid) -> Option<TaskStatus> {
        let asked = request::UserTasks { user_task_ids: [task].into(), ..Default::default() };
        match self.client.ask(&asked).await.answer {
            Answer::Ready(tasks) => tasks.user_tasks.first().map(|task| task.status),
            other => panic!("{other:?}"),
        }
    }
}

/// Only counts matter here, so that every run is the same.
fn spread() -> Rebalance {
    let mut asked = Rebalance::default();
    asked.goal_options.goals = vec!["ReplicaDistributionGoal".to_owned(), "LeaderReplicaDistributionGoal".to_owned()];
    asked.execution.skip_hard_goal_check = true;
    asked
}

fn executing(proposal: Option<String>) -> Rebalance {
    let mut asked = spread();
    asked.execution.run.dryrun = false;
    asked.execution.run.reason = Some("a test".to_owned());
    asked.execution.run.proposal_id = proposal;
    asked
}

fn task<T>(reply: &Reply<T>) -> Uuid {
    reply.task.expect("a task has a name")
}

#[tokio::test(start_paused = true)]
async fn what_was_approved_is_carried_out_and_remembered_by_the_next_life() {
    let stage = Stage::new();
    let life = stage.engine();
    let (seen, _) = life.proposed(&spread()).await;
    assert!(seen.summary.num_replica_movements > 0, "{:?}", seen.summary);
    let id = seen.summary.proposal_id.clone().expect("a proposal has a name");
    let reply = life.client.ask_and_wait(&executing(Some(id)), PATIENCE, Duration::from_secs(1)).await;
    let Answer::Ready(begun) = &reply.answer else { panic!("{:?}", reply.answer) };
    assert_eq!(begun.summary.num_replica_movements, seen.summary.num_replica_movements);
    life.until("it runs", |phase| matches!(phase, Phase::InterBroker(_))).await;
    assert_eq!(life.status_of(task(&reply)).await, Some(TaskStatus::InExecution));
    life.until("it is over", |phase| *phase == Phase::Idle).await;
    assert_eq!(life.status_of(task(&reply)).await, Some(TaskStatus::Completed));
    assert_eq!(stage.holders(), BTreeSet::from([0, 1, 2, 3]));
    stage.assert_at_rest("afterwards");
    // A second look finds nothing to do, and an approval cannot be used twice on what has changed.
    let (again, _) = life.proposed(&spread()).await;
    assert_eq!(again.summary.num_replica_movements, 0);
    let stale = executing(seen.summary.proposal_id.clone());
    let refused = life.client.ask_and_wait(&stale, PATIENCE, Duration::from_secs(1)).await;
    assert!(matches!(refused.answer, Answer::ProposalOutdated(_)), "{:?}", refused.answer);
    drop(life);

    let life = stage.engine();
    life.until("the next life answers", |phase| *phase == Phase::Idle).await;
    assert_eq!(life.status_of(task(&reply)).await, Some(TaskStatus::Completed));
}

#[tokio::test(start_paused = true)]
async fn a_run_goes_on_in_the_next_life_and_its_task_is_known() {
    let stage = Stage::new();
    let life = stage.engine();
    life.proposed(&spread()).await;
    let reply = life.client.ask_and_wait(&executing(None), PATIENCE, Duration::from_secs(1)).await;
    life.until("it runs", |phase| matches!(phase, Phase::InterBroker(_))).await;
    drop(life);

    let life = stage.engine();
    life.until("it still runs", |phase| matches!(phase, Phase::InterBroker(_))).await;
    assert_eq!(life.status_of(task(&reply)).await, Some(TaskStatus::InExecution));
    life.until("it is over", |phase| *phase == Phase::Idle).await;
    assert_eq!(life.status_of(task(&reply)).await, Some(TaskStatus::Completed));
    assert_eq!(stage.holders(), BTreeSet::from([0, 1, 2, 3]));
    stage.assert_at_rest("afterwards");
}

#[tokio::test(start_paused = true)]
async fn a_stop_takes_back_what_is_under_way() {
    let stage = Stage::new();
    let before = stage.registrations();
    let life = stage.engine();
    life.proposed(&spread()).await;
    life.client.ask_and_wait(&executing(None), PATIENCE, Duration::from_secs(1)).await;
    life.until("it runs", |phase| matches!(phase, Phase::InterBroker(_))).await;
    let busy = life.client.ask_and_wait(&executing(None), PATIENCE, Duration::from_secs(1)).await;
    assert!(matches!(busy.answer, Answer::Busy(_)), "{:?}", busy.answer);
    let stopped = life.client.ask(&StopProposalExecution::default()).await;
    assert!(matches!(stopped.answer, Answer::Ready(_)), "{:?}", stopped.answer);
    life.until("it is over", |phase| *phase == Phase::Idle).await;
    stage.assert_at_rest("afterwards");
    // What had not arrived is where it was.
    let after = stage.registrations();
    assert!(before.iter().zip(&after).any(|(before, after)| before.replicas == after.replicas));
}

#[tokio::test(start_paused = true)]
async fn a_broker_is_emptied_and_left_alone_for_a_while_even_after_a_restart() {
    let stage = Stage::new();
    let life = stage.engine();
    life.proposed(&spread()).await;
    let mut asked = RemoveBroker { brokerid: [0].into(), ..RemoveBroker::default() };
    asked.goal_options.goals = spread().goal_options.goals;
    asked.execution.skip_hard_goal_check = true;
    asked.execution.run.dryrun = false;
    let reply = life.client.ask_and_wait(&asked, PATIENCE, Duration::from_secs(1)).await;
    assert!(matches!(reply.answer, Answer::Ready(_)), "{:?}", reply.answer);
    life.until("it runs", |phase| *phase != Phase::Idle).await;
    life.until("it is over", |phase| *phase == Phase::Idle).await;
    assert!(!stage.holders().contains(&0), "{:?}", stage.holders());
    drop(life);

    let life = stage.engine();
    life.until("the next life answers", |phase| *phase == Phase::Idle).await;
    let Answer::Ready(state) = life.client.ask(&request::State::default()).await.answer else { panic!("no state") };
    assert_eq!(state.executor_state.unwrap().recently_removed_brokers, [0]);
    let (spared, _) = life.proposed(&spread()).await;
    assert_eq!(spared.summary.excluded_brokers_for_replica_move, [0]);
}

#[tokio::test(start_paused = true)]
async fn a_stop_that_was_answered_holds_in_the_next_life() {
    let stage = Stage::new();
    let life = stage.engine();
    life.proposed(&spread()).await;
    life.client.ask_and_wait(&executing(None), PATIENCE, Duration::from_secs(1)).await;
    life.until("it runs", |phase| matches!(phase, Phase::InterBroker(_))).await;
    // It dies with the answer: whatever it had not done yet, nobody does any more.
    let stopped = life.client.ask(&StopProposalExecution::default()).await;
    assert!(matches!(stopped.answer, Answer::Ready(_)), "{:?}", stopped.answer);
    drop(life);

    let life = stage.engine();
    life.until("it is over", |phase| *phase == Phase::Idle).await;
    stage.assert_at_rest("afterwards");
    let (left, _) = life.proposed(&spread()).await;
    assert!(left.summary.num_replica_movements > 0, "all of it was done");
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_is_dropped_does_nothing_more() {
    let stage = Stage::new();
    let life = stage.engine();
    life.proposed(&spread()).await;
    drop(life);
    let stored = || async {
        let samples = TopicPartition::new("__KafkaCruiseControlPartitionMetricSamples", 0);
        let offsets = stage.client().list_offsets(&[(samples, Place::Latest)].into(), Isolation::Committed).await;
        offsets.expect("an answer")
    };
    // What is on its way arrives.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let before = stored().await;
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(stored().await, before);
}

#[tokio::test(start_paused = true)]
async fn how_it_is_can_be_asked_while_kafka_is_out_of_reach() {
    let stage = Stage::new();
    for id in 0..4 {
        stage.world.with(|cluster| cluster.suffer(&Fault::CutLink(evenkeel_sim::BrokerId(id))));
    }
    let life = stage.engine();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let Answer::Ready(state) = life.client.ask(&request::State::default()).await.answer else { panic!("no state") };
    assert!(state.monitor_state.is_some() && state.executor_state.is_none());
    let refused = life.client.ask(&spread()).await;
    assert!(matches!(refused.answer, Answer::Refused { status: 503, .. }), "{:?}", refused.answer);
}

#[tokio::test(start_paused = true)]
async fn after_a_gap_in_sampling_no_plan_is_made_blindly() {
    let stage = Stage::new();
    let life = stage.engine();
    let mut asked = spread();
    asked.goal_options.goals = vec!["DiskUsageDistributionGoal".to_owned(), "ReplicaDistributionGoal".to_owned()];
    let (seen, _) = life.proposed(&asked).await;
    assert_eq!(seen.summary.monitored_partitions_percentage.0, 100.0);
    life.client.ask(&request::PauseSampling::default()).await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    life.client.ask(&request::ResumeSampling::default()).await;
    // Whenever it is asked, its answer rests on what was measured, or says that too little was.
    let mut waited = 0;
    for _ in 0..60 {
        match life.client.ask_and_wait(&asked, PATIENCE, Duration::from_secs(1)).await.answer {
            Answer::Ready(result) => {
                assert!(result.summary.monitored_partitions_percentage.0 > 99.0, "{:?}", result.summary);
                assert!(result.goal_summary.iter().any(|goal| goal.goal == "DiskUsageDistributionGoal"));
            }
            Answer::NotEnoughData(_) => waited += 1,
            other => panic!("{other:?}"),
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert!(waited < 60, "there is never a plan again");
}
