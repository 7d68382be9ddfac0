//! An execution under each fault of the simulator, under paused time: whatever happens in its middle, it comes to an end
//! that Kafka shows, with every partition where it was or where it was to go, and with nothing held back.

use std::time::Duration;

use evenkeel_engine::executor::{
    Ending, Executor, Kind,
    service::{HistoryChange, Start},
};
use evenkeel_sim::{
    BrokerId, TopicPartition,
    cluster::{BrokerSpec, Fault, NewTopic, Reassignment},
};

use crate::stage::{DIRS, Stage, idle, moves, run};

/// When it happens, and for how long it lasts.
const BEFORE: Duration = Duration::from_secs(2);
const MEANWHILE: Duration = Duration::from_secs(20);
/// Far more than an execution with a broker that nobody waits for any longer.
const PATIENCE: Duration = Duration::from_secs(4 * 3_600);
const RACKS: [&str; 4] = ["a", "b", "a", "b"];

/// What makes it undone; nothing for what is over when it has happened. Names every fault, so that a new one is
/// missed here.
fn remedies(fault: &Fault) -> Vec<Fault> {
    match fault {
        Fault::Crash(id) | Fault::Stop(id) => vec![Fault::Return(*id)],
        Fault::RackLost(lost) => {
            let there = (0..).zip(RACKS).filter(|(_, rack)| rack == lost);
            there.map(|(id, _)| Fault::Return(BrokerId(id))).collect()
        }
        Fault::SlowDisk(id, dir, _) => vec![Fault::SlowDisk(*id, *dir, 1.0)],
        Fault::FullDisk(id, dir) | Fault::FailedDir(id, dir) => vec![Fault::MendedDir(*id, *dir)],
        Fault::SlowLink(id, _) => vec![Fault::SlowLink(*id, 1.0)],
        Fault::CutLink(id) => vec![Fault::MendedLink(*id)],
        Fault::Return(_)
        | Fault::MendedDir(..)
        | Fault::MendedLink(_)
        | Fault::StaleMetadata(..)
        | Fault::ControllerChange
        | Fault::ForeignReassignment(_)
        | Fault::TopicDeleted(_)
        | Fault::TopicCreated(_) => Vec::new(),
    }
}

fn stage() -> Stage {
    let broker = |id: i32| BrokerSpec::new(id).in_rack(RACKS[id as usize]).with_dirs(DIRS);
    Stage::on((0..4).map(broker), moves(), 2_000)
}

/// The same with disks on which a copy from one to the other takes a while.
fn slow_stage() -> Stage {
    let slow = |id: i32| {
        let mut broker = BrokerSpec::new(id).in_rack(RACKS[id as usize]).with_dirs(DIRS);
        broker.dirs.iter_mut().for_each(|dir| dir.disk_bytes = 4e6);
        broker
    };
    Stage::on((0..4).map(slow), moves(), 2_000)
}

/// Carries the run out while `disturb` does what it likes in its middle.
async fn carried_out(stage: &Stage, disturb: impl AsyncFnOnce(Executor)) -> Ending {
    let executor = stage.executor().await;
    executor.begin(Start { run: run(), task: None, change: HistoryChange::default() }).await.unwrap();
    let disturbed = async {
        tokio::time::sleep(BEFORE).await;
        assert_ne!(stage.world.look(|cluster| cluster.list_reassignments(None)), [], "it is in its middle");
        disturb(executor.clone()).await;
    };
    let done = async { tokio::join!(disturbed, idle(&executor)) };
    tokio::time::timeout(PATIENCE, done).await.expect("it comes to an end");
    executor.endings().pop().expect("an ending").ending
}

async fn under(stage: &Stage, fault: &Fault) -> Ending {
    under_in(stage, fault, Kind::Replicas).await
}

/// The same once it works on tasks of this kind.
async fn under_in(stage: &Stage, fault: &Fault, kind: Kind) -> Ending {
    let ending = carried_out(stage, async |executor| {
        while executor.running().expect("it runs").1.phase != Some(kind) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        stage.world.with(|cluster| cluster.suffer(fault));
        tokio::time::sleep(MEANWHILE).await;
        remedies(fault).iter().for_each(|remedy| stage.world.with(|cluster| cluster.suffer(remedy)));
    })
    .await;
    // A broker that was away may have to catch up.
    tokio::time::sleep(Duration::from_secs(600)).await;
    ending
}

/// Every partition is as before or as planned, in any order, and everybody is in sync. Tells how many are as planned.
fn settled(stage: &Stage, what: &str) -> usize {
    stage.assert_at_rest(what);
    let sorted = |ids: Vec<i32>| {
        let mut ids = ids;
        ids.sort_unstable();
        ids
    };
    let mut planned = 0;
    for (mv, record) in moves().iter().zip(stage.registrations()) {
        let [old, new] = [&mv.old, &mv.new].map(|ids| sorted(ids.iter().map(|id| id.0).collect()));
        let now = sorted(record.replicas.iter().map(|id| id.0).collect());
        assert!(now == old || now == new, "{what}: {} lies on {now:?}", mv.partition);
        assert_eq!(record.isr.len(), now.len(), "{what}: {} {record:?}", mv.partition);
        planned += usize::from(now == new);
    }
    planned
}

#[tokio::test(start_paused = true)]
async fn what_only_takes_longer_ends_as_planned() {
    let created = NewTopic::manual("another", &[&[2, 3]]);
    for fault in [
        Fault::SlowDisk(BrokerId(2), 0, 0.05),
        Fault::SlowLink(BrokerId(0), 0.05),
        Fault::StaleMetadata(BrokerId(0), 60_000),
        Fault::ControllerChange,
        Fault::TopicCreated(Box::new(created)),
    ] {
        let stage = stage();
        assert_eq!(under(&stage, &fault).await, Ending::Completed, "{fault:?}");
        assert_eq!(settled(&stage, &format!("{fault:?}")), moves().len(), "{fault:?}");
        stage.assert_done(&format!("{fault:?}"));
    }
}

#[tokio::test(start_paused = true)]
async fn brokers_and_disks_that_go_and_return_leave_nothing_half_done() {
    for fault in [
        Fault::Crash(BrokerId(2)),
        Fault::Crash(BrokerId(0)),
        Fault::Stop(BrokerId(3)),
        Fault::RackLost("b".to_owned()),
        Fault::FullDisk(BrokerId(3), 0),
        Fault::FailedDir(BrokerId(2), 0),
        Fault::CutLink(BrokerId(2)),
        Fault::CutLink(BrokerId(1)),
    ] {
        let stage = stage();
        let ending = under(&stage, &fault).await;
        let planned = settled(&stage, &format!("{fault:?}"));
        // What was taken back is told; nothing else is left out.
        assert_eq!(ending == Ending::Completed, planned == moves().len(), "{fault:?}: {ending:?}, {planned}");
        assert!(planned > 0, "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn between_directories_too_nothing_is_left_half_done() {
    for fault in [
        Fault::Crash(BrokerId(0)),
        Fault::Stop(BrokerId(1)),
        Fault::Crash(BrokerId(3)),
        Fault::FullDisk(BrokerId(0), 1),
        Fault::FailedDir(BrokerId(1), 1),
        Fault::CutLink(BrokerId(0)),
        Fault::SlowDisk(BrokerId(1), 0, 0.1),
        Fault::StaleMetadata(BrokerId(0), 60_000),
        Fault::ControllerChange,
    ] {
        let stage = slow_stage();
        let ending = under_in(&stage, &fault, Kind::Dir(0)).await;
        assert_eq!(settled(&stage, &format!("{fault:?}")), moves().len(), "{fault:?}");
        let dirs = stage.dirs();
        let wanted = moves().into_iter().flat_map(|mv| {
            let number = mv.partition.partition;
            mv.dirs.into_iter().filter(|dir| dir.from.is_some()).map(move |dir| ((dir.broker.0, number), dir.to))
        });
        let undone = wanted.filter(|(at, to)| dirs.get(at) != Some(to)).count();
        assert_eq!(ending == Ending::Completed, undone == 0, "{fault:?}: {ending:?}, {undone} undone");
        let given_up = matches!(fault, Fault::FullDisk(..) | Fault::FailedDir(..));
        assert!(given_up || undone == 0, "{fault:?}: {undone} undone");
    }
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_stays_failed_keeps_no_run_from_its_end() {
    for (kind, broker, dir) in [
        (Kind::Replicas, 2, 0),
        (Kind::Replicas, 2, 1),
        (Kind::Replicas, 0, 0),
        (Kind::Replicas, 0, 1),
        (Kind::Dir(0), 0, 0),
        (Kind::Dir(0), 1, 0),
        (Kind::Dir(0), 1, 1),
    ] {
        let (what, fault) = (format!("{kind:?}, {broker}, {dir}"), Fault::FailedDir(BrokerId(broker), dir));
        let stage = slow_stage();
        let ending = carried_out(&stage, async |executor| {
            while executor.running().expect("it runs").1.phase != Some(kind) {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            stage.world.with(|cluster| cluster.suffer(&fault));
        });
        assert_eq!(ending.await, Ending::Incomplete, "{what}");
        stage.assert_at_rest(&what);
        for (mv, record) in moves().iter().zip(stage.registrations()) {
            let now: Vec<i32> = record.replicas.iter().map(|id| id.0).collect();
            let either = [&mv.old, &mv.new].map(|ids| ids.iter().map(|id| id.0).collect::<Vec<_>>());
            assert!(either.contains(&now), "{what}: {} lies on {now:?}", mv.partition);
        }
    }
}

/// Somebody else sends a partition to brokers 3 and 1, where nothing of this run is to go.
fn sent_elsewhere(partition: TopicPartition) -> Fault {
    Fault::ForeignReassignment(Reassignment { partition, target: Some([3, 1].map(BrokerId).to_vec()) })
}

#[tokio::test(start_paused = true)]
async fn what_others_send_elsewhere_before_its_turn_is_taken_back() {
    let stage = stage();
    let last = TopicPartition::new("orders", 11);
    assert_eq!(under(&stage, &sent_elsewhere(last)).await, Ending::Completed);
    stage.assert_done("somebody else has moved a partition");
}

#[tokio::test(start_paused = true)]
async fn what_others_send_elsewhere_on_its_way_is_theirs() {
    let stage = stage();
    let mut theirs = None;
    let ending = carried_out(&stage, async |_| {
        // To where a copy is on its way already: a new target without it would never be reached, here as in Kafka.
        let moving = loop {
            let mut listed = stage.world.look(|cluster| cluster.list_reassignments(None)).into_iter();
            match listed.find(|it| it.adding == [BrokerId(3)]) {
                Some(found) => break found.partition,
                None => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        };
        stage.world.with(|cluster| cluster.suffer(&sent_elsewhere(moving.clone())));
        theirs = Some(moving.partition);
    });
    assert_eq!(ending.await, Ending::Incomplete);
    tokio::time::sleep(Duration::from_secs(600)).await;
    for (mv, record) in moves().iter().zip(stage.registrations()) {
        let replicas: Vec<i32> = record.replicas.iter().map(|id| id.0).collect();
        let is_theirs = Some(mv.partition.partition) == theirs;
        let wanted = if is_theirs { vec![3, 1] } else { mv.new.iter().map(|id| id.0).collect() };
        assert_eq!(replicas, wanted, "{}", mv.partition);
    }
    stage.assert_at_rest("somebody else has moved a partition");
}

#[tokio::test(start_paused = true)]
async fn a_topic_that_goes_leaves_nothing_to_do() {
    let stage = stage();
    assert_eq!(under(&stage, &Fault::TopicDeleted("orders".to_owned())).await, Ending::Completed);
    assert_eq!(stage.world.look(|cluster| cluster.list_reassignments(None)), []);
}

#[tokio::test(start_paused = true)]
async fn answers_that_are_lost_after_the_deed_change_nothing() {
    // AddPartitionsToTxn, EndTxn, AlterReplicaLogDirs, ElectLeaders, IncrementalAlterConfigs,
    // AlterPartitionReassignments.
    for key in [24, 26, 34, 43, 44, 45] {
        let stage = stage();
        let ending = carried_out(&stage, async |_| {
            for _ in 0..3 {
                (0..4).for_each(|id| stage.world.lose_answer(BrokerId(id), key));
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        });
        assert_eq!(ending.await, Ending::Completed, "{key}");
        stage.assert_done(&format!("answers to {key} were lost"));
    }
}
