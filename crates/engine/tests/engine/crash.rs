//! The crash harness: an engine's executor that dies at the seam to Kafka, and the next one that goes on.
//!
//! First over a dozen moves, exhaustively: every call that a life makes from its birth to the end of the run is once
//! the last one that it sends and once the first one that it does not. Then over some hundred moves, with deaths at
//! seeded points, life after life. However it went, in the end everything lies as planned, on brokers and in their
//! directories, each move was made once, between brokers and between directories, nothing is held back, and the user task
//! is known to be completed.

use std::{collections::BTreeSet, sync::Arc};

use evenkeel_engine::{
    executor::{
        Limits, Move,
        service::{HistoryChange, Start},
    },
    journal::Journal,
    tasks::{Answer, Class, Question, Status, UserTask},
};
use evenkeel_kafka::Client;
use evenkeel_testkit::{
    mortal::{Death, Fate, Mortal},
    story::Chance,
};
use uuid::Uuid;

use crate::stage::{DIRS, MB, Stage, changes, comes, idle, moves, mv, run_of};

const TASK: Uuid = Uuid::from_u128(2);
/// The protocol's numbers for what changes where replicas lie, how fast they may be copied, and who leads.
const DEEDS: [i16; 4] = [34, 43, 44, 45];

/// What is wanted, and what happens while it is done undisturbed.
struct Plan {
    moves: Vec<Move>,
    limits: Limits,
    /// How often each partition changes.
    epochs: Vec<i32>,
    /// How often a replica has set out for another directory then, by broker.
    between_dirs: Vec<u64>,
    calls: Vec<i16>,
}

impl Plan {
    async fn new(moves: Vec<Move>, limits: Limits) -> Plan {
        let mut plan = Plan { moves, limits, epochs: Vec::new(), between_dirs: Vec::new(), calls: Vec::new() };
        let stage = plan.stage();
        // Some had to be put where they are to leave from.
        plan.between_dirs = between_dirs(&stage);
        let leaving = plan.moves.iter().flat_map(|mv| &mv.dirs).filter(|dir| dir.from.is_some());
        leaving.for_each(|dir| plan.between_dirs[dir.broker.0 as usize] += 1);
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
        let mut run = run_of(self.moves.clone());
        (run.task, run.order.limits, run.order.throttle) = (Some(TASK), self.limits.clone(), Some(50 * MB));
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
            ended: None,
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
        idle(&executor).await;
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
        assert_eq!(between_dirs(stage), self.between_dirs, "{what}: something was moved twice between directories");
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

/// How often replicas were sent from one directory to another, broker by broker.
fn between_dirs(stage: &Stage) -> Vec<u64> {
    stage.world.look(|cluster| (0..4).map(|id| cluster.dir_moves_begun(evenkeel_sim::BrokerId(id))).collect())
}

#[tokio::test(start_paused = true)]
async fn an_engine_may_die_at_any_call() {
    let small = moves().into_iter().map(|mv| Move { bytes: MB, ..mv }).collect();
    let limits = Limits { per_broker: 3, in_cluster: 4, ..Limits::default() };
    let plan = Plan::new(small, limits).await;
    assert!(plan.calls.len() > 50, "{:?}", plan.calls);
    assert!(DEEDS.iter().all(|deed| plan.calls.contains(deed)), "{:?}", plan.calls);
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
    let leaves = |number: i32| {
        let (old, new, dirs) = match number % 4 {
            0 => ([0, 1], [0, 2], vec![changes(0)]),
            1 => ([1, 0], [3, 0], vec![comes(3, DIRS[1])]),
            2 => ([0, 1], [0, 2], Vec::new()),
            _ => ([1, 0], [3, 0], vec![changes(0)]),
        };
        Move { dirs, ..mv(number, old, new, MB) }
    };
    (0..120).map(leaves).collect()
}

#[tokio::test(start_paused = true)]
async fn of_some_hundred_moves_none_is_lost_or_made_twice_however_often_the_engine_dies() {
    const DEATHS: usize = 200;
    let limits = Limits { per_broker: 20, in_cluster: 30, dirs_per_broker: 20, ..Limits::default() };
    let plan = Plan::new(many(), limits).await;
    let (mut deaths, mut seed) = (0, 0);
    while deaths < DEATHS {
        let mut chance = Chance::new(seed);
        let stage = plan.stage();
        let mut story = Vec::new();
        loop {
            // Of the many calls of a life any may be the last; a life that is too long for it comes to its end.
            let number = 1 + chance.below(plan.calls.len() as u64 * 5 / 4) as usize;
            let death = if chance.once_in(2) { Death::Before(number) } else { Death::After(number) };
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
