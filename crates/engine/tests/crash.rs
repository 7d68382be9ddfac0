//! The crash harness: an engine's executor that dies at the seam to Kafka, and the next one that goes on.
//!
//! First over a dozen moves, exhaustively: every call that a life makes from its birth to the end of the run is once
//! the last one that it sends and once the first one that it does not. Then over some hundred moves, with deaths at
//! seeded points, life after life. However it went, in the end everything lies as planned, on brokers and in their
//! directories, each move between brokers was made once,
//! nothing is held back, and the user task is known to be completed.

mod mortal;
mod stage;

use std::{collections::BTreeSet, sync::Arc};

use evenkeel_engine::{
    executor::{
        Limits, Move, Order,
        service::{HistoryChange, Start},
    },
    journal::{Journal, Run},
    tasks::{Answer, Class, Question, Status, UserTask},
};
use evenkeel_kafka::{BrokerId, Client, TopicPartition};
use mortal::{Death, Fate, Mortal};
use stage::{DIRS, MB, Stage, changes, comes, moves};
use uuid::Uuid;

const TASK: Uuid = Uuid::from_u128(2);
/// The protocol's number for it.
const ALTER_REPLICA_LOG_DIRS: i16 = 34;

/// What is wanted, and how often each partition changes while it is done undisturbed.
struct Plan {
    moves: Vec<Move>,
    limits: Limits,
    epochs: Vec<i32>,
    calls: Vec<i16>,
}

impl Plan {
    async fn new(moves: Vec<Move>, limits: Limits) -> Plan {
        let mut plan = Plan { moves, limits, epochs: Vec::new(), calls: Vec::new() };
        let stage = plan.stage();
        let fate = Fate::of(Death::Never);
        plan.live(&stage, &fate).await;
        plan.epochs = epochs(&stage);
        plan.calls = fate.made();
        plan.check(&stage, "a quiet life").await;
        plan
    }

    fn stage(&self) -> Stage {
        Stage::of(self.moves.clone(), 2_000)
    }

    fn start(&self) -> Start {
        let order = Order {
            limits: self.limits.clone(),
            throttle: Some(50 * MB),
            ..Order::of(self.moves.clone(), (0..4).map(BrokerId).collect())
        };
        let reason = "a test".to_owned();
        let run = Run { id: Uuid::from_u128(1), task: Some(TASK), reason, proposal: "p".to_owned(), order };
        let question =
            Question { method: "POST".to_owned(), endpoint: "rebalance".to_owned(), parameters: BTreeSet::new() };
        let answer = Answer { code: 200, body: "{}".to_owned() };
        let task = UserTask {
            question,
            written: "POST /kafkacruisecontrol/rebalance".to_owned(),
            client: "127.0.0.1".to_owned(),
            class: Class::KafkaAdmin,
            started: 5,
            status: Status::InExecution(answer),
        };
        Start { run, task: Some(task), change: HistoryChange::default() }
    }

    /// One life: what is on record is carried on, and if nothing is, whoever wants it asks again.
    async fn live(&self, stage: &Stage, fate: &Arc<Fate>) {
        let mortal = Mortal { memory: stage.pipes.connector(), fate: Arc::clone(fate) };
        let client = Client::new(Arc::new(mortal), stage.client().settings().clone());
        let (executor, tasks) = stage.executor_over(client).await;
        if executor.running().is_none() && !tasks.contains_key(&TASK) {
            executor.begin(self.start()).await.unwrap();
        }
        executor.idle().await;
    }

    /// One life that may end at any moment; tells whether it came to its good end.
    async fn dying(&self, stage: &Stage, death: Death) -> bool {
        let fate = Fate::of(death);
        let done = tokio::select! {
            biased;
            () = fate.died() => false,
            () = self.live(stage, &fate) => true,
        };
        // Brokers do what they were asked last.
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        done
    }

    async fn check(&self, stage: &Stage, what: &str) {
        stage.assert_done(what);
        assert_eq!(epochs(stage), self.epochs, "{what}: something was moved twice");
        let (_, left) = Journal::open(stage.client()).await.unwrap();
        assert!(left.run.is_none(), "{what}");
        assert_eq!(left.strange, BTreeSet::new(), "{what}");
        let status = left.tasks.get(&TASK).map(|task| task.status.clone());
        assert!(matches!(status, Some(Status::Completed(_))), "{what}: {status:?}");
    }
}

/// How often each partition was changed.
fn epochs(stage: &Stage) -> Vec<i32> {
    stage.registrations().iter().map(|record| record.partition_epoch).collect()
}

#[tokio::test(start_paused = true)]
async fn an_engine_may_die_at_any_call() {
    let small = moves().into_iter().map(|mv| Move { bytes: MB, ..mv }).collect();
    let limits = Limits { per_broker: 3, in_cluster: 4, ..Limits::default() };
    let plan = Plan::new(small, limits).await;
    assert!(plan.calls.len() > 50, "{:?}", plan.calls);
    assert!(plan.calls.contains(&ALTER_REPLICA_LOG_DIRS), "{:?}", plan.calls);
    let mut survivors = Vec::new();
    for number in 1..=plan.calls.len() {
        for death in [Death::Before(number), Death::After(number)] {
            let stage = plan.stage();
            let what = format!("{death:?}, call {}", plan.calls[number - 1]);
            if plan.dying(&stage, death).await {
                survivors.push(what.clone());
            }
            assert!(plan.dying(&stage, Death::Never).await);
            plan.check(&stage, &what).await;
        }
    }
    // Which of two answers comes first is chance, so a life may do with a call or two less than the one that was counted.
    assert!(survivors.len() <= 6, "{survivors:?}");
}

/// A hundred and twenty partitions that each leave one of two brokers for one of two others; half of the replicas that
/// stay change their directory.
fn many() -> Vec<Move> {
    let mv = |number: i32| {
        let (old, new, dirs) = match number % 4 {
            0 => ([0, 1], [0, 2], vec![changes(0)]),
            1 => ([1, 0], [3, 0], vec![comes(3, DIRS[1])]),
            2 => ([0, 1], [0, 2], Vec::new()),
            _ => ([1, 0], [3, 0], vec![changes(0)]),
        };
        Move {
            partition: TopicPartition::new("orders", number),
            old: old.map(BrokerId).to_vec(),
            new: new.map(BrokerId).to_vec(),
            old_leader: BrokerId(old[0]),
            dirs,
            bytes: MB,
        }
    };
    (0..120).map(mv).collect()
}

/// SplitMix64: the same seed, the same deaths.
fn dice(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[tokio::test(start_paused = true)]
async fn of_some_hundred_moves_none_is_lost_or_made_twice_however_often_the_engine_dies() {
    const DEATHS: usize = 200;
    let limits = Limits { per_broker: 20, in_cluster: 30, dirs_per_broker: 20, ..Limits::default() };
    let plan = Plan::new(many(), limits).await;
    let (mut deaths, mut seed) = (0, 0);
    while deaths < DEATHS {
        let mut roll = dice(seed);
        let stage = plan.stage();
        let mut story = Vec::new();
        loop {
            // Of the many calls of a life any may be the last; a life that is too long for it comes to its end.
            let number = 1 + (roll() % (plan.calls.len() as u64 * 5 / 4)) as usize;
            let death = if roll().is_multiple_of(2) { Death::Before(number) } else { Death::After(number) };
            story.push(death);
            if plan.dying(&stage, death).await {
                break;
            }
            deaths += 1;
        }
        plan.check(&stage, &format!("seed {seed}: {story:?}")).await;
        seed += 1;
    }
}
