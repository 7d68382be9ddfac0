use evenkeel_kafka::TopicPartition;

use super::*;
use crate::{
    executor::{Action, Adjustment, Listing, PartitionSight, Sight},
    tasks::{Answer, Class, Question, Status},
};

pub(super) fn run(moves: usize) -> Run {
    let brokers = |ids: &[i32]| ids.iter().copied().map(BrokerId).collect::<Vec<_>>();
    let moves = (0..moves).map(|number| Move {
        partition: TopicPartition::new(format!("topic-with-a-long-name-{}", number % 50), number as i32),
        old: brokers(&[0, 1, 2]),
        new: brokers(&[3, 1, 2]),
        old_leader: BrokerId(0),
        dirs: Vec::new(),
        bytes: 1_000_000,
    });
    Run {
        id: Uuid::from_u128(7),
        task: Some(Uuid::from_u128(8)),
        reason: "because (Client: 127.0.0.1, Date: 2026-01-01T00:00:00Z)".to_owned(),
        proposal: "abc".to_owned(),
        order: Order {
            throttle: Some(1_000_000),
            ..Order::of(moves.collect(), brokers(&[0, 1, 2, 3]).into_iter().collect())
        },
    }
}

/// What the brokers of the order show before anything has moved.
pub(super) fn sight(run: &Run, now: i64) -> Sight {
    let up: BTreeSet<BrokerId> = (0..4).map(BrokerId).collect();
    let seen = |mv: &Move| PartitionSight {
        replicas: mv.old.clone(),
        in_sync: mv.old.clone(),
        leader: Some(mv.old_leader),
        min_in_sync: 1,
        ..PartitionSight::default()
    };
    Sight {
        now,
        registered: up.clone(),
        up,
        partitions: run.order.moves.iter().map(|mv| (mv.partition.clone(), seen(mv))).collect(),
        ..Sight::default()
    }
}

#[test]
fn a_run_is_found_again_where_it_stood_and_leaves_nothing_when_it_is_over() {
    let run = run(2_500);
    let mut execution = Execution::new(run.order.clone());
    let mut topic = run.begun();
    assert!(topic.len() > 1);
    let first = execution.step(&sight(&run, 0));
    topic.extend(run.stepped(&execution, &first.changed));
    execution.rates_were_found(&(0..4).map(BrokerId).collect(), &[BrokerId(1)].into());
    execution.throttle_is_set();
    let second = execution.step(&sight(&run, 1));
    assert!(matches!(second.actions[..], [Action::Relist(_), Action::Reassign(_)]), "{:?}", second.actions);
    topic.extend(run.stepped(&execution, &second.changed));
    execution.stop();
    topic.extend(run.stepped(&execution, &BTreeSet::new()));

    let (found, resumed) = recover(topic.clone()).run.unwrap();
    assert_eq!(found, run);
    assert_eq!(resumed.tasks(), execution.tasks());
    assert_eq!((resumed.throttling(), resumed.is_stopping()), (Throttling::On, true));
    assert_eq!(resumed.rates(), Rates { of_others: [BrokerId(1)].into(), unasked: BTreeSet::new() });

    topic.extend(run.over(&execution));
    let nothing = recover(topic.clone());
    assert!(nothing.run.is_none());
    assert_eq!(nothing.strange, BTreeSet::new());
    // Compaction leaves no key behind.
    let keys = |deleted: bool| -> BTreeSet<&str> {
        topic.iter().filter(|entry| entry.value.is_none() == deleted).map(|entry| entry.key.as_str()).collect()
    };
    assert!(keys(false).is_subset(&keys(true)));
}

#[test]
fn a_run_that_was_never_stepped_begins_anew() {
    let run = run(3);
    let (found, execution) = recover(run.begun()).run.unwrap();
    assert_eq!(found, run);
    assert_eq!(execution.throttling(), Throttling::Wanted);
}

#[test]
fn no_record_is_too_large() {
    let run = run(20_000);
    let entries = run.begun();
    assert!(entries.len() > 4, "{}", entries.len());
    assert!(entries.iter().flat_map(|entry| &entry.value).all(|value| value.len() <= CHUNK));
    assert_eq!(recover(entries).run.unwrap().0.order.moves.len(), 20_000);
}

#[test]
fn half_a_run_is_no_run() {
    let run = run(20_000);
    let entries = run.begun();
    let head = entries.len() - 1;
    for missing in 0..entries.len() {
        let mut some = entries.clone();
        some.remove(missing);
        let recovered = recover(some);
        assert!(recovered.run.is_none());
        assert_eq!(recovered.strange.is_empty(), missing == head);
    }
}

#[test]
fn tasks_and_history_are_found_again_and_strange_keys_are_told() {
    let asked = UserTask {
        question: Question { method: "POST".into(), endpoint: "rebalance".into(), parameters: BTreeSet::new() },
        written: "POST /kafkacruisecontrol/rebalance".to_owned(),
        client: "127.0.0.1".to_owned(),
        class: Class::KafkaAdmin,
        started: 5,
        status: Status::Active,
        ended: None,
    };
    let history =
        History { removed: [(BrokerId(3), 17)].into(), missing: [(BrokerId(5), 18)].into(), ..History::default() };
    let (kept, gone) = (Uuid::from_u128(1), Uuid::from_u128(2));
    let strange = Entry { key: "policy/x".to_owned(), value: Some(b"{}".to_vec()) };
    let broken = Entry { key: format!("task/{}", Uuid::from_u128(3)), value: Some(b"{".to_vec()) };
    let recovered = recover(
        [
            task(kept, &asked),
            task(gone, &asked),
            vec![history.entry()],
            task_forgotten(gone, &asked),
            vec![strange.clone(), broken.clone()],
        ]
        .concat(),
    );
    assert_eq!(recovered.tasks, [(kept, asked)].into());
    assert_eq!(recovered.history, history);
    assert_eq!(recovered.strange, [strange.key, broken.key].into());
}

#[test]
fn a_long_answer_is_cut_and_put_together_again() {
    let body = "{\"summary\":\"ä\"}".repeat(100_000);
    let asked = UserTask {
        question: Question { method: "POST".into(), endpoint: "rebalance".into(), parameters: BTreeSet::new() },
        written: String::new(),
        client: String::new(),
        class: Class::KafkaAdmin,
        started: 5,
        status: Status::InExecution(Answer { code: 200, body }),
        ended: None,
    };
    let id = Uuid::from_u128(1);
    let mut entries = task(id, &asked);
    assert!(entries.len() > 3 && entries.iter().flat_map(|entry| &entry.value).all(|value| value.len() <= CHUNK));
    assert_eq!(recover(entries.clone()).tasks, [(id, asked.clone())].into());
    let mut torn = entries.clone();
    torn.remove(1);
    assert_eq!(recover(torn).strange, [format!("task/{id}")].into());
    entries.extend(task_forgotten(id, &asked.executed(false, 0)));
    assert!(recover(entries.clone()).tasks.is_empty());
    let keys = |deleted: bool| -> BTreeSet<&str> {
        entries.iter().filter(|entry| entry.value.is_none() == deleted).map(|entry| entry.key.as_str()).collect()
    };
    assert!(keys(false).is_subset(&keys(true)));
}

#[test]
fn limits_that_were_adjusted_are_found_again() {
    let run = run(3);
    let mut execution = Execution::new(run.order.clone());
    execution.adjust(&Adjustment { per_broker: Some(9), ..Adjustment::default() });
    let topic = [run.begun(), run.stepped(&execution, &BTreeSet::new())].concat();
    let (found, resumed) = recover(topic).run.unwrap();
    assert_eq!((found.order.limits.per_broker, resumed.limits().per_broker), (5, 9));
}

#[test]
fn of_two_runs_none_is_hidden() {
    let (first, mut second) = (run(3), run(2));
    second.id = Uuid::from_u128(9);
    let both = recover([second.begun(), first.begun()].concat());
    assert_eq!(both.run.map(|(run, _)| run.id), Some(first.id));
    assert_eq!(both.strange, [format!("run/{}", second.id)].into());
    // The beginning of one is taken back without a trace.
    let begun = second.begun();
    let left = recover([first.begun(), begun.clone(), Run::unbegun(&begun)].concat());
    assert_eq!((left.run.map(|(run, _)| run.id), left.strange), (Some(first.id), BTreeSet::new()));
}

#[test]
fn the_owner_is_known_by_its_record_alone() {
    let owner = owner::Owner { engine: Uuid::from_u128(5) };
    assert_eq!(owner::Owner::of(&owner.entry()), Some(owner));
    assert_eq!(owner::Owner::of(&Entry { key: "history".to_owned(), ..owner.entry() }), None);
    assert_eq!(recover([owner.entry()]).strange, BTreeSet::new());
}

#[test]
fn a_cluster_in_great_trouble_is_no_reason_why_nothing_can_begin() {
    let mut run = run(3);
    let short =
        (0..60_000).map(|number| TopicPartition::new(format!("topic-with-a-long-name-{}", number % 50), number));
    run.order.baseline.short = short.collect();
    let begun = run.begun();
    for entry in &begun {
        assert!(entry.value.as_ref().unwrap().len() <= CHUNK, "{} is too long", entry.key);
    }
    let (found, execution) = recover(begun.clone()).run.unwrap();
    assert_eq!(found, run);
    let left = recover(begun.into_iter().chain(run.over(&execution)));
    assert!(left.run.is_none());
    assert_eq!(left.strange, BTreeSet::new());
}

#[test]
fn what_is_left_of_throttles_may_be_long() {
    let throttle = |partitions: i32| {
        let listing = Listing((0..partitions).map(|number| (number, BrokerId(1))).collect());
        Throttle { rate: 5, brokers: [BrokerId(1)].into(), topics: [("t".to_owned(), listing)].into() }
    };
    let (nothing, much, little) = (Throttle::default(), throttle(100_000), throttle(3));
    let mut topic = leftover(&nothing, &much);
    assert!(topic.len() > 2 && topic.iter().all(|entry| entry.value.as_ref().unwrap().len() <= CHUNK));
    assert_eq!(recover(topic.clone()).leftover, much);
    topic.extend(leftover(&much, &little));
    assert_eq!(recover(topic.clone()).leftover, little);
    let mut last: BTreeMap<String, Option<Vec<u8>>> = BTreeMap::new();
    topic.extend(leftover(&little, &nothing));
    for entry in topic {
        last.insert(entry.key, entry.value);
    }
    assert!(last.values().all(Option::is_none), "{:?}", last.keys());
}
