use std::sync::Arc;

use evenkeel_kafka::TopicPartition as Partition;
use uuid::Uuid;

use super::*;
use crate::executor::{DirMove, Execution, Move, Progress, Rates};

const REASON: &str = "why not (Client: 10.0.0.1, Date: 2026-11-15T20:12:33Z)";

/// Three moves: one of each kind.
fn run(task: Option<Uuid>) -> Run {
    let ids = |ids: &[i32]| ids.iter().copied().map(BrokerId).collect::<Vec<_>>();
    let mv = |number: i32, old: &[i32], new: &[i32], dirs: Vec<DirMove>| Move {
        partition: Partition::new("t", number),
        old: ids(old),
        new: ids(new),
        old_leader: BrokerId(old[0]),
        dirs,
        bytes: 10 * MB,
    };
    let dir = DirMove { broker: BrokerId(1), from: Some("/d0".to_owned()), to: "/d1".to_owned() };
    Run {
        id: Uuid::from_u128(1),
        task,
        reason: REASON.to_owned(),
        proposal: "p".to_owned(),
        order: Order {
            limits: Limits { in_cluster: 30, ..Limits::default() },
            ..Order::of(
                vec![
                    mv(0, &[0, 1], &[0, 2], vec![]),
                    mv(1, &[1, 0], &[1, 0], vec![dir]),
                    mv(2, &[0, 1], &[1, 0], vec![]),
                ],
                (0..3).map(BrokerId).collect(),
            )
        },
    }
}

/// Where the tasks stand: replicas of 0, replicas of 2, directory of 1, leader of 2, by kind and move.
fn report(run: &Run, phase: Kind, stage: impl Fn(Kind, usize) -> Stage) -> Report {
    let mut tasks = Execution::new(run.order.clone()).tasks().to_vec();
    tasks.iter_mut().for_each(|task| task.stage = stage(task.kind, task.of));
    let execution = Execution::resume(
        run.order.clone(),
        tasks.iter().map(|task| task.stage).enumerate(),
        crate::executor::Throttling::Off,
        Rates::default(),
        false,
        None,
    );
    let progress =
        Progress { bytes_done: 7 * MB + 5, dir_bytes_done: 3 * MB, ..execution.progress(&Default::default()) };
    Report {
        phase: Some(phase),
        progress,
        tasks: Arc::new(tasks),
        limits: Some(run.order.limits.clone()),
        ..Report::default()
    }
}

fn shown(run: &Run, report: &Report, verbose: bool) -> serde_json::Value {
    let body = state(Standing::Running(run, report), &History::default(), verbose);
    serde_json::from_str(&evenkeel_rest::json::to_string(&body)).unwrap()
}

const BEGUN: Stage = Stage::InProgress { since: 0, asked: 0 };
const DONE: Stage = Stage::Ended(End::Completed);

#[test]
fn idle_and_about_to_begin() {
    let history =
        History { removed: [(BrokerId(4), 1)].into(), demoted: [(BrokerId(3), 1)].into(), ..History::default() };
    let idle = state(Standing::Idle, &history, true);
    assert_eq!((idle.phase, idle.trigger), (Phase::Idle, None));
    assert_eq!((idle.recently_removed_brokers, idle.recently_demoted_brokers), (vec![4], vec![3]));
    let run = run(Some(Uuid::from_u128(9)));
    let generating = state(Standing::Generating(&trigger(&run)), &History::default(), false);
    assert_eq!(generating.phase.name(), "GENERATING_PROPOSALS_FOR_EXECUTION");
    let starting = shown(&run, &Report::default(), true);
    assert_eq!(starting["state"], "STARTING_EXECUTION");
    assert_eq!(starting["triggeredUserTaskId"], Uuid::from_u128(9).to_string());
    assert_eq!(
        (&starting["triggeredSelfHealingTaskId"], &starting["triggeredTaskReason"]),
        (&"".into(), &REASON.into())
    );
}

#[test]
fn what_the_engine_began_by_itself_has_the_name_of_its_run() {
    let run = run(None);
    let shown = shown(&run, &Report::default(), false);
    assert_eq!(shown["triggeredSelfHealingTaskId"], run.id.to_string());
    assert_eq!(shown["triggeredUserTaskId"], "");
}

#[test]
fn replicas_move() {
    let run = run(None);
    let report = report(&run, Kind::Replicas, |kind, of| match (kind, of) {
        (Kind::Replicas, 0) => BEGUN,
        (Kind::Replicas, _) => DONE,
        _ => Stage::Pending,
    });
    let plain = shown(&run, &report, false);
    assert_eq!(plain["state"], "INTER_BROKER_REPLICA_MOVEMENT_TASK_IN_PROGRESS");
    let numbers = ["numInProgressPartitionMovements", "numFinishedPartitionMovements", "numTotalPartitionMovements"];
    assert_eq!(numbers.map(|key| plain[key].as_u64().unwrap()), [1, 1, 2]);
    assert_eq!((&plain["finishedDataMovement"], &plain["totalDataToMove"]), (&7.into(), &10.into()));
    assert_eq!(plain["averageConcurrentPartitionMovementsPerBroker"], 5.0);
    assert!(plain.get("inProgressPartitionMovement").is_none());
    let detailed = shown(&run, &report, true);
    let task = &detailed["inProgressPartitionMovement"][0];
    assert_eq!((&task["state"], &task["type"]), (&"IN_PROGRESS".into(), &"INTER_BROKER_REPLICA_ACTION".into()));
    assert_eq!(task["proposal"]["newReplicas"], serde_json::json!([0, 2]));
    assert_eq!(detailed["completedPartitionMovement"].as_array().unwrap().len(), 1);
    assert_eq!(detailed["pendingPartitionMovement"], serde_json::json!([]));
}

#[test]
fn spared_brokers_may_take_part_in_more() {
    let mut run = run(None);
    run.order.limits.spared = [BrokerId(2)].into();
    let report = report(&run, Kind::Replicas, |_, _| Stage::Pending);
    let shown = shown(&run, &report, false);
    let key = |which: &str| shown[&format!("{which}ConcurrentPartitionMovementsPerBroker")].as_f64().unwrap();
    assert_eq!(["minimum", "maximum", "average"].map(key), [5.0, 30.0, 40.0 / 3.0]);
}

#[test]
fn directories_move() {
    let run = run(None);
    let report = report(&run, Kind::Dir(0), |kind, _| match kind {
        Kind::Replicas => DONE,
        Kind::Dir(_) => BEGUN,
        Kind::Leader => Stage::Pending,
    });
    let shown = shown(&run, &report, true);
    assert_eq!(shown["state"], "INTRA_BROKER_REPLICA_MOVEMENT_TASK_IN_PROGRESS");
    assert_eq!(shown["numInProgressIntraBrokerPartitionMovements"], 1);
    assert_eq!(
        (&shown["finishedIntraBrokerDataMovement"], &shown["totalIntraBrokerDataToMove"]),
        (&3.into(), &10.into())
    );
    assert_eq!(shown["inProgressIntraBrokerPartitionMovement"][0]["brokerId"], 1);
}

#[test]
fn leadership_moves() {
    let run = run(None);
    let report = report(&run, Kind::Leader, |kind, _| if kind == Kind::Leader { BEGUN } else { DONE });
    let shown = shown(&run, &report, true);
    assert_eq!(shown["state"], "LEADER_MOVEMENT_TASK_IN_PROGRESS");
    assert_eq!(
        (&shown["numPendingLeadershipMovements"], &shown["numTotalLeadershipMovements"]),
        (&1.into(), &1.into())
    );
    assert_eq!(shown["clusterLeaderMovementConcurrency"], 1_000);
    assert_eq!(shown["pendingLeadershipMovement"][0]["state"], "IN_PROGRESS");
}

#[test]
fn what_was_begun_is_taken_back() {
    let run = run(None);
    let mut report = report(&run, Kind::Replicas, |kind, of| match (kind, of) {
        (Kind::Replicas, 0) => Stage::Aborting { since: 0, asked: 0, why: Why::Stopped },
        (Kind::Replicas, _) => Stage::Ended(End::Aborted(Why::Stopped)),
        _ => Stage::Pending,
    });
    report.stopping = true;
    let shown = shown(&run, &report, true);
    assert_eq!(shown["state"], "STOPPING_EXECUTION");
    let numbers = ["abortingPartitions", "numCancelledPartitionMovements", "numCancelledLeadershipMovements"];
    assert_eq!(numbers.map(|key| shown[key].as_u64().unwrap()), [1, 1, 1]);
    assert_eq!(shown["abortingPartitionMovement"].as_array().unwrap().len(), 1);
    assert_eq!(shown["cancelledIntraBrokerPartitionMovement"].as_array().unwrap().len(), 1);
}

/// When all moves are over there is a moment in which the throttle is lifted. Whoever moved no bytes has none to tell of then.
#[test]
fn at_its_end_a_run_is_where_it_was_last() {
    let ended = |moves: &[usize]| {
        let mut run = run(None);
        let all = run.order.moves.clone();
        run.order = Order::of(moves.iter().map(|of| all[*of].clone()).collect(), (0..3).map(BrokerId).collect());
        let report = Report { phase: None, ..report(&run, Kind::Replicas, |_, _| DONE) };
        shown(&run, &report, false)["state"].as_str().unwrap().to_owned()
    };
    assert_eq!(ended(&[0]), "INTER_BROKER_REPLICA_MOVEMENT_TASK_IN_PROGRESS");
    assert_eq!(ended(&[0, 1]), "INTRA_BROKER_REPLICA_MOVEMENT_TASK_IN_PROGRESS");
    assert_eq!(ended(&[1]), "INTRA_BROKER_REPLICA_MOVEMENT_TASK_IN_PROGRESS");
    assert_eq!(ended(&[0, 1, 2]), "LEADER_MOVEMENT_TASK_IN_PROGRESS");
}
