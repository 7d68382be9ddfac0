//! A move that can neither go on nor back: Kafka lists it until somebody has mended what is broken, which may be never.
//! Nothing else waits for that. On simulated brokers, under paused time.

use std::time::Duration;

use evenkeel_rest::{Answer, body::state::Phase, parameter::TaskStatus};
use evenkeel_sim::{
    BrokerId, TopicPartition,
    cluster::{Fault, NewTopic, Reassignment},
};

use crate::lives::{Life, PATIENCE, executing, spread, task};
use crate::stage::{MB, Stage, mv};

/// Partitions of `bills`.
const BILLS: i32 = 6;

/// The one partition of `orders` is large and lies on broker 0 alone; `bills` lie on broker 1 as well.
fn stage() -> Stage {
    let stage = Stage::of(vec![mv(0, [0], [2], 20_000 * MB)], 2_000);
    let pair: &[i32] = &[1, 0];
    let bills = NewTopic::manual("bills", &[pair; BILLS as usize]);
    stage.world.with(|cluster| cluster.create_topic(&bills, false)).unwrap();
    stage
}

/// Somebody moves that of `orders` to broker 2, and broker 0 goes for good before it has arrived: nobody can lead it, now or if
/// the move were taken back.
async fn get_stuck(stage: &Stage) {
    let (partition, target) = (TopicPartition::new("orders", 0), Some(vec![BrokerId(2)]));
    let line = Reassignment { partition, target };
    stage.world.with(|cluster| cluster.suffer(&Fault::ForeignReassignment(line)));
    tokio::time::sleep(Duration::from_secs(1)).await;
    stage.world.with(|cluster| cluster.suffer(&Fault::Crash(BrokerId(0))));
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(stage.registrations()[0].leader, None);
}

/// The partitions of which a move is listed.
fn listed(stage: &Stage) -> Vec<TopicPartition> {
    stage.world.look(|cluster| cluster.list_reassignments(None)).into_iter().map(|it| it.partition).collect()
}

/// `bills` get back what they have lost, and the move of `orders` is as it was.
async fn assert_heals(stage: &Stage, life: &Life) {
    let reply = life.client.ask_and_wait(&executing(None), PATIENCE, Duration::from_secs(1)).await;
    assert!(matches!(reply.answer, Answer::Ready(_)), "{:?}", reply.answer);
    life.until("it is over", |phase| *phase == Phase::Idle).await;
    assert_eq!(life.status_of(task(&reply)).await, Some(TaskStatus::Completed));
    for number in 0..BILLS {
        let record = stage.world.look(|cluster| cluster.registration("bills", number).unwrap().clone());
        assert!(record.replicas.len() == 2 && !record.replicas.contains(&BrokerId(0)), "{record:?}");
    }
    assert_eq!(listed(stage), [TopicPartition::new("orders", 0)]);
}

#[tokio::test(start_paused = true)]
async fn others_begin_though_a_move_can_neither_go_on_nor_back() {
    let stage = stage();
    let life = stage.engine();
    life.proposed(&spread()).await;
    get_stuck(&stage).await;
    assert_heals(&stage, &life).await;
}
