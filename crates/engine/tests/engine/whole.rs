//! Whole engines on simulated brokers, under paused time: asked over their door, dying, and taking up again what they
//! had begun.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use evenkeel_engine::journal::topic::TOPIC;
use evenkeel_kafka::{
    Client, Settings, TopicPartition,
    calls::offsets::{Isolation, Place},
    connect::{Address, Connector, Memory, Opening},
};
use evenkeel_rest::{
    Answer,
    body::state::Phase,
    parameter::TaskStatus,
    request::{self, StopProposalExecution},
};
use evenkeel_sim::{
    BrokerId, Options,
    cluster::{BrokerSpec, Fault, NewTopic},
};

use crate::lives::{Life, PATIENCE, adding, executing, removing, spread, task};
use crate::stage::{self, Stage, moves};

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
    let planned = life.proposed(&spread()).await.0.summary.num_replica_movements;
    life.client.ask_and_wait(&executing(None), PATIENCE, Duration::from_secs(1)).await;
    life.until("it runs", |phase| matches!(phase, Phase::InterBroker(_))).await;
    let busy = life.client.ask_and_wait(&executing(None), PATIENCE, Duration::from_secs(1)).await;
    assert!(matches!(busy.answer, Answer::Busy(_)), "{:?}", busy.answer);
    let stopped = life.client.ask(&StopProposalExecution::default()).await;
    assert!(matches!(stopped.answer, Answer::Ready(_)), "{:?}", stopped.answer);
    life.until("it is over", |phase| *phase == Phase::Idle).await;
    stage.assert_at_rest("afterwards");
    // What had arrived is there, and everything else is where it was: no more moved than could be under way at once.
    let after = stage.registrations();
    let moved = before.iter().zip(&after).filter(|(before, after)| before.replicas != after.replicas).count();
    assert!(moved < planned as usize, "{moved} of {planned} moved");
    assert!(after.iter().all(|record| record.replicas.len() == 2 && record.adding.is_empty()));
}

/// Carries out a removal of broker 0 to its end.
async fn empty_the_first(life: &Life) {
    let reply = life.client.ask_and_wait(&removing(0), PATIENCE, Duration::from_secs(1)).await;
    assert!(matches!(reply.answer, Answer::Ready(_)), "{:?}", reply.answer);
    life.until("it runs", |phase| *phase != Phase::Idle).await;
    life.until("it is over", |phase| *phase == Phase::Idle).await;
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_came_a_moment_ago_is_known_to_who_asks_for_it() {
    let stage = Stage::new();
    let life = stage.engine();
    // This takes a look, which is young enough for the next request.
    for (id, dryrun) in [(4, true), (5, false)] {
        life.proposed(&spread()).await;
        stage.world.with(|cluster| cluster.add_broker(BrokerSpec::new(id).with_dirs(stage::DIRS)));
        stage.pipes.open(BrokerId(id));
        // Kafka has let it in, but most brokers have not heard of it.
        tokio::time::sleep(Duration::from_millis(u64::try_from(Options::default().start_time).unwrap())).await;
        let mut asked = adding(&[id]);
        (asked.execution.run.dryrun, asked.execution.run.stop_ongoing_execution) = (dryrun, !dryrun);
        let reply = life.client.ask_and_wait(&asked, PATIENCE, Duration::from_millis(10)).await;
        let Answer::Ready(proposed) = &reply.answer else { panic!("{:?}", reply.answer) };
        assert!(proposed.summary.num_replica_movements > 0, "{:?}", proposed.summary);
    }
}

#[tokio::test(start_paused = true)]
async fn a_broker_is_emptied_and_left_alone_for_a_while_even_after_a_restart() {
    let stage = Stage::new();
    let life = stage.engine();
    life.proposed(&spread()).await;
    empty_the_first(&life).await;
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
async fn a_broker_that_comes_with_the_id_of_one_that_left_is_another_one() {
    let stage = Stage::new();
    let life = stage.engine();
    life.proposed(&spread()).await;
    empty_the_first(&life).await;
    let removed = async || {
        let Answer::Ready(state) = life.client.ask(&request::State::default()).await.answer else { panic!("no state") };
        state.executor_state.unwrap().recently_removed_brokers
    };
    let gone = BrokerId(0);
    // One that is only away is left alone when it is back.
    stage.world.with(|cluster| cluster.stop_broker(gone));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(removed().await, [0]);
    stage.world.with(|cluster| cluster.unregister_broker(gone)).unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(removed().await, [0; 0]);
    stage.world.with(|cluster| cluster.start_broker(gone));
    tokio::time::sleep(Duration::from_secs(60)).await;
    let (welcome, _) = life.proposed(&spread()).await;
    assert_eq!(welcome.summary.excluded_brokers_for_replica_move, [0; 0]);
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
    assert!(matches!(refused.answer, Answer::NotYet(_)), "{:?}", refused.answer);
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

/// Four brokers in two racks, with two replicas of everything, one in each rack.
fn two_racks() -> Stage {
    let brokers = (0..4).map(|id| BrokerSpec::new(id).in_rack(["a", "b"][id as usize % 2]));
    Stage::on(brokers, moves(), 2_000)
}

#[tokio::test(start_paused = true)]
async fn what_the_engine_keeps_for_itself_makes_no_plan_impossible() {
    let mut asked = spread();
    asked.goal_options.goals.insert(0, "RackAwareGoal".to_owned());
    let stage = two_racks();
    let life = stage.engine();
    life.proposed(&asked).await;
    let journal = |stage: &Stage| stage.world.look(|cluster| cluster.registration(TOPIC, 0).unwrap().replicas.len());
    assert_eq!(journal(&stage), 2);
    // Nor one that was made when there were three racks.
    let stage = two_racks();
    let wide = NewTopic::manual(TOPIC, &[&[0, 1, 2]]).config("cleanup.policy", "compact");
    stage.world.with(|cluster| cluster.create_topic(&wide, false)).unwrap();
    let life = stage.engine();
    let (seen, _) = life.proposed(&asked).await;
    assert_eq!((journal(&stage), &seen.summary.excluded_topics[..]), (3, &[TOPIC.to_owned()][..]));
    assert!(seen.summary.num_replica_movements > 0);
}

#[tokio::test(start_paused = true)]
async fn plans_can_be_made_while_another_is_carried_out() {
    let stage = two_racks();
    let life = stage.engine();
    let mut asked = spread();
    asked.goal_options.goals.insert(0, "RackAwareGoal".to_owned());
    life.begun().await;
    let moving = || stage.world.look(|cluster| cluster.list_reassignments(None).len());
    while moving() == 0 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let mut seen = 0;
    while life.phase().await.is_some_and(|phase| phase != Phase::Idle) {
        let reply = life.client.ask_and_wait(&asked, PATIENCE, Duration::from_secs(1)).await;
        let Answer::Ready(plan) = reply.answer else { panic!("{:?}", reply.answer) };
        let replicas: i64 = plan.load_after_optimization.brokers.iter().map(|broker| broker.replicas as i64).sum();
        assert!(replicas >= 24, "{replicas}");
        seen += 1;
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    assert!(seen > 3, "only {seen} plans");
}

#[tokio::test(start_paused = true)]
async fn an_idle_engine_notices_soon_that_another_has_taken_over() {
    let stage = Stage::new();
    let older = stage.engine();
    older.proposed(&spread()).await;
    let newer = stage.engine();
    newer.proposed(&spread()).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let (status, body) = older.got("/readyz").await;
    assert_eq!(status, 503);
    assert!(body.contains("Another engine has taken over"), "{body}");
    let refused = older.client.ask(&request::PauseSampling::default()).await;
    assert!(matches!(refused.answer, Answer::NotYet(_)), "{:?}", refused.answer);
    let (status, said) = older.answered("GET", "state?substates=executor").await;
    assert!(status == 503 && said.contains("another engine has taken over"), "{said}");
    assert_eq!(newer.got("/readyz").await, (200, "ok\n".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn that_kafka_is_lost_is_told_within_seconds_and_mended_by_itself() {
    let stage = Stage::new();
    let life = stage.engine();
    assert_eq!(life.got("/readyz").await.0, 503);
    assert!(life.got("/readyz").await.1.contains("Kafka has not been reached yet"));
    let asked = life.begun().await;
    let all = || (0..4).map(evenkeel_sim::BrokerId);
    stage.world.with(|cluster| all().for_each(|id| cluster.suffer(&Fault::CutLink(id))));
    tokio::time::sleep(Duration::from_secs(10)).await;
    let (status, body) = life.got("/readyz").await;
    assert_eq!(status, 503);
    assert!(body.contains("Kafka cannot be reached"), "{body}");
    let before = tokio::time::Instant::now();
    let (status, body) = life.got("/kafkacruisecontrol/kafka_cluster_state").await;
    assert_eq!(status, 503, "{body}");
    assert!(before.elapsed() < Duration::from_secs(2) && body.contains("Kafka cannot be reached"), "{body}");
    tokio::time::sleep(Duration::from_secs(120)).await;
    let (_, text) = life.got("/kafkacruisecontrol/state").await;
    assert!(text.contains("Kafka cannot be reached") && text.contains("The execution is in trouble"), "{text}");
    stage.world.with(|cluster| all().for_each(|id| cluster.suffer(&Fault::MendedLink(id))));
    life.until("it is over", |phase| *phase == Phase::Idle).await;
    stage.assert_at_rest("afterwards");
    assert_eq!(life.got("/readyz").await.0, 200);
    assert!(life.status_of(asked).await.is_some());
    let Answer::Ready(state) = life.client.ask(&request::State::default()).await.answer else { panic!("no state") };
    let failures = state.anomaly_detector_state.unwrap().recent_broker_failures;
    assert!(failures.is_empty(), "{failures:?}");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_recorded_now_is_not_begun_and_may_be_asked_for_again() {
    let stage = Stage::new();
    let life = stage.engine_with("webserver.request.maxBlockTimeMs=100\n");
    let (seen, _) = life.proposed(&spread()).await;
    let approved = executing(seen.summary.proposal_id.clone());
    stage.cut(true);
    let reply = life.client.ask(&approved).await;
    assert!(matches!(reply.answer, Answer::Computing(_)), "{:?}", reply.answer);
    // It was taken on, so that nobody is told that there is nothing to do.
    assert_eq!(life.phase().await, Some(Phase::Generating));
    life.until("it is given up", |phase| *phase == Phase::Idle).await;
    let explained = life.client.follow(&approved, task(&reply)).await;
    assert!(matches!(explained.answer, Answer::NotYet(_)), "{:?}", explained.answer);
    let refused = life.client.ask_and_wait(&approved, PATIENCE, Duration::from_secs(1)).await;
    assert!(matches!(refused.answer, Answer::NotYet(_)), "{:?}", refused.answer);
    stage.cut(false);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(stage.world.look(|cluster| cluster.list_reassignments(None)), [], "nothing was begun");
    let reply = life.client.ask_and_wait(&approved, PATIENCE, Duration::from_secs(1)).await;
    assert!(matches!(reply.answer, Answer::Ready(_)), "{:?}", reply.answer);
    life.until("it is over", |phase| *phase == Phase::Idle).await;
    assert_eq!(life.status_of(task(&reply)).await, Some(TaskStatus::Completed));
}

#[tokio::test(start_paused = true)]
async fn loads_are_told_though_nothing_is_known_of_some_partitions() {
    let stage = Stage::new();
    stage.world.with(|cluster| cluster.create_topic(&NewTopic::manual("lone", &[&[3]]), false)).unwrap();
    let life = stage.engine();
    life.proposed(&spread()).await;
    // What lies on it alone is measured by nobody any more.
    stage.world.with(|cluster| cluster.suffer(&Fault::Crash(evenkeel_sim::BrokerId(3))));
    tokio::time::sleep(Duration::from_secs(120)).await;
    let reply = life.client.ask_and_wait(&request::Load::default(), PATIENCE, Duration::from_secs(1)).await;
    let Answer::Ready(load) = reply.answer else { panic!("{:?}", reply.answer) };
    assert_eq!(load.brokers.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn healing_that_never_happens_is_not_said_to_be_switched_on() {
    let stage = Stage::new();
    let life =
        stage.engine_with("anomaly.notifier.class=com.linkedin.kafka.cruisecontrol.detector.notifier.NoopNotifier\n");
    life.proposed(&spread()).await;
    let kind = evenkeel_rest::parameter::AnomalyType::BrokerFailure;
    let asked = request::Admin { enable_self_healing_for: [kind].into(), ..Default::default() };
    let Answer::Ready(answer) = life.client.ask(&asked).await.answer else { panic!("admin answers") };
    assert_eq!(answer.self_healing_enabled_after, [(kind, false)].into());
}

/// A way to brokers with a fault of ours in it, once it is switched on.
#[derive(Debug)]
struct Faulty {
    way: Memory,
    broken: Arc<AtomicBool>,
}

impl Connector for Faulty {
    fn open<'a>(&'a self, address: &'a Address) -> Opening<'a> {
        assert!(!self.broken.load(Ordering::Relaxed), "a fault of ours");
        self.way.open(address)
    }
}

#[tokio::test(start_paused = true)]
async fn a_part_that_fails_is_told_of_and_the_rest_still_answers() {
    let (stage, broken) = (Stage::new(), Arc::new(AtomicBool::new(false)));
    let connector = Faulty { way: stage.pipes.connector(), broken: Arc::clone(&broken) };
    let bootstrap = (0..4).map(|id| stage.pipes.address(evenkeel_sim::BrokerId(id))).collect();
    let life = stage.engine_over(Client::new(Arc::new(connector), Settings::new(bootstrap)), "");
    life.proposed(&spread()).await;
    assert_eq!((life.got("/readyz").await.0, life.got("/healthz").await.0), (200, 200));
    // A broker comes back, and whoever is the first to connect to it anew breaks off.
    broken.store(true, Ordering::Relaxed);
    for fault in [Fault::Crash(evenkeel_sim::BrokerId(3)), Fault::Return(evenkeel_sim::BrokerId(3))] {
        stage.world.with(|cluster| cluster.suffer(&fault));
        tokio::time::sleep(Duration::from_secs(30)).await;
    }
    let (status, body) = life.got("/readyz").await;
    assert_eq!(status, 503);
    assert!(body.contains("a part of the engine has failed"), "{body}");
    // Nor does it pass by itself.
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(life.got("/readyz").await.1.contains("has to be started again"));
    // So whoever starts it again is told to.
    let (status, body) = life.got("/healthz").await;
    assert!(status == 503 && body.contains("has to be started again"), "{status}: {body}");
    assert_eq!(life.got("/kafkacruisecontrol/state").await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_cannot_be_stops_nobody() {
    let stage = Stage::new();
    let life = stage.engine();
    life.begun().await;
    let goals = "goals=ReplicaDistributionGoal&skip_hard_goal_check=true";
    for wrong in [
        "rebalance?json=true&goals=NoSuchGoal&skip_hard_goal_check=true".to_owned(),
        "rebalance?json=true&goals=ReplicaDistributionGoal".to_owned(),
        format!("remove_broker?json=true&brokerid=99&{goals}"),
        format!("rebalance?json=true&proposal_id=unheard-of&{goals}"),
    ] {
        let (status, body) = life.answered("POST", &format!("{wrong}&dryrun=false&stop_ongoing_execution=true")).await;
        assert_ne!(status, 200, "{wrong}: {body}");
        let phase = life.phase().await;
        assert!(matches!(phase, Some(Phase::InterBroker(_))), "{wrong}: {phase:?}");
    }
    // A plan that counts on copies which the stop would call off.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let goals = "goals=ReplicaDistributionGoal,LeaderReplicaDistributionGoal&skip_hard_goal_check=true";
    let (status, body) = life.answered("POST", &format!("rebalance?json=true&{goals}")).await;
    assert_eq!(status, 200, "{body}");
    let body: serde_json::Value = evenkeel_rest::json::from_slice(body.as_bytes()).unwrap();
    let id = body["summary"]["proposalId"].as_str().unwrap();
    let right = format!("rebalance?json=true&{goals}&dryrun=false&stop_ongoing_execution=true");
    let (status, said) = life.answered("POST", &format!("{right}&proposal_id={id}")).await;
    assert!(status == 500 && said.contains("no longer is"), "{status} {said}");
    let phase = life.phase().await;
    assert!(matches!(phase, Some(Phase::InterBroker(_))), "{phase:?}");
    assert_eq!(life.answered("POST", &right).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_can_record_nothing_is_not_ready_and_says_why() {
    let stage = Stage::new();
    let life = stage.engine();
    life.proposed(&spread()).await;
    assert_eq!(life.got("/readyz").await.0, 200);
    let keepers = stage.world.look(|cluster| cluster.registration(TOPIC, 0).unwrap().replicas.clone());
    assert_eq!(keepers.len(), 3, "somebody is left to be reached");
    keepers.iter().for_each(|id| stage.world.with(|cluster| cluster.suffer(&Fault::Crash(*id))));
    tokio::time::sleep(Duration::from_secs(60)).await;
    let (status, body) = life.got("/readyz").await;
    assert!(status == 503 && body.contains("The journal cannot be written"), "{status} {body}");
    keepers.iter().for_each(|id| stage.world.with(|cluster| cluster.suffer(&Fault::Return(*id))));
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(life.got("/readyz").await, (200, "ok\n".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn what_people_have_switched_stays_so_in_the_next_life() {
    let stage = Stage::new();
    let heals = "anomaly.notifier.class=com.linkedin.kafka.cruisecontrol.detector.notifier.SelfHealingNotifier\n\
                 self.healing.enabled=true\n";
    let seen = async |life: &Life| {
        life.until("it acts", |phase| *phase == Phase::Idle).await;
        let state = life.answered("GET", "state?json=true").await.1;
        let state: serde_json::Value = evenkeel_rest::json::from_slice(state.as_bytes()).unwrap();
        let healing = state["AnomalyDetectorState"]["selfHealingEnabled"].to_string();
        (healing.contains("BROKER_FAILURE"), state["MonitorState"]["state"] == "PAUSED")
    };
    let life = stage.engine_with(heals);
    life.proposed(&spread()).await;
    assert_eq!(seen(&life).await, (true, false));
    life.answered("POST", "admin?json=true&disable_self_healing_for=broker_failure").await;
    life.answered("POST", "pause_sampling?json=true").await;
    assert_eq!(seen(&life).await, (false, true));
    drop(life);

    let life = stage.engine_with(heals);
    assert_eq!(seen(&life).await, (false, true));
    life.answered("POST", "resume_sampling?json=true").await;
    drop(life);

    // Whoever changes the settings means them.
    let life = stage.engine_with("");
    assert_eq!(seen(&life).await, (false, false));
    drop(life);
    let life = stage.engine_with(heals);
    assert_eq!(seen(&life).await, (false, false), "what was switched under these settings holds under them");
}

#[tokio::test(start_paused = true)]
async fn a_plan_is_there_before_anybody_asks() {
    let ready = async |life: &Life| {
        let state = life.answered("GET", "state?json=true&substates=analyzer").await.1;
        let state: serde_json::Value = evenkeel_rest::json::from_slice(state.as_bytes()).unwrap();
        state["AnalyzerState"]["isProposalReady"] == true
    };
    let broker = |id: i32| BrokerSpec::new(id).in_rack(&format!("rack-{id}"));
    let stage = Stage::on((0..4).map(broker), moves(), 2_000);
    let life = stage.engine();
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while !ready(&life).await {
        if tokio::time::Instant::now() >= deadline {
            panic!("there is none: {:?}", life.answered("GET", "proposals?json=true").await);
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    drop(life);
    let life = stage.engine_with("num.proposal.precompute.threads=0\n");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(!ready(&life).await);
}
