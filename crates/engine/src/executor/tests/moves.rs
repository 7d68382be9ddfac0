//! Plans come true, within their limits.

use super::*;

const LISTS: [&[i32]; 6] = [&[0, 1], &[1, 0], &[0, 1], &[1, 0], &[0, 1], &[1, 0]];
const ALL: [(i32, &[i32]); 6] = [(0, &[2, 3]), (1, &[3, 2]), (2, &[2, 1]), (3, &[0, 3]), (4, &[1, 0]), (5, &[3, 0])];

#[test]
fn every_partition_ends_as_planned_and_is_copied_once() {
    let mut play = Play::new(&LISTS, &ALL);
    assert_eq!(play.run(), Ending::Completed);
    for (partition, wanted) in ALL {
        assert_eq!(play.replicas(partition), wanted, "partition {partition}");
        assert_eq!(play.leader(partition), Some(wanted[0]), "partition {partition}");
    }
    assert!(play.begun.values().all(|times| *times == 1), "{:?}", play.begun);
    play.assert_at_rest();
}

#[test]
fn no_more_is_under_way_than_allowed_and_room_is_filled() {
    let moves: Vec<(i32, &[i32])> =
        (0..6).map(|number| (number, if number % 2 == 0 { &[0, 2][..] } else { &[1, 3][..] })).collect();
    let mut play = Play::new(&LISTS, &moves).with(|order| order.throttle = Some(5 * MB));
    play.run();
    assert_eq!(play.most, (3, 2));
}

#[test]
fn spared_brokers_take_more_than_others() {
    let moves: Vec<(i32, &[i32])> = (0..6).map(|partition| (partition, &[0, 3][..])).collect();
    let lists = [&[0, 1][..]; 6];
    let mut play = Play::new(&lists, &moves).with(|order| {
        order.limits = Limits { per_broker: 1, in_cluster: 4, ..order.limits.clone() };
        order.limits.spared = [BrokerId(0), BrokerId(3)].into();
    });
    play.run();
    assert_eq!(play.most, (2, 2));
}

#[test]
fn a_throttle_is_set_before_anything_moves_and_gone_afterwards() {
    let mut play = Play::new(&LISTS, &ALL).with(|order| order.throttle = Some(10 * MB));
    let first = play.step(None);
    assert!(matches!(first.actions[..], [Action::LookForRates(_)]), "{:?}", first.actions);
    let second = play.step(None);
    assert!(matches!(second.actions[..], [Action::Throttle(_)]), "{:?}", second.actions);
    let third = play.step(None);
    let [Action::Relist(lists), Action::Reassign(moved)] = &third.actions[..] else { panic!("{:?}", third.actions) };
    // Partition 4 only changes its order, and is not held back.
    let copied: Vec<&TopicPartition> = moved.keys().filter(|it| it.partition != 4).collect();
    assert!(!copied.is_empty());
    assert_eq!(lists.partitions().collect::<Vec<_>>().iter().collect::<Vec<_>>(), copied);
    assert_eq!(play.run(), Ending::Completed);
    play.assert_at_rest();
}

#[test]
fn a_rate_that_somebody_has_set_before_is_left_alone() {
    let mut play = Play::new(&LISTS, &ALL).with(|order| order.throttle = Some(10 * MB));
    let theirs =
        Alteration { name: LEADER_RATE.to_owned(), operation: Operation::Set, value: Some("7000000".to_owned()) };
    let broker = evenkeel_sim::BrokerId(1);
    play.cluster.incremental_alter_configs(&Resource::Broker(broker), &[theirs], false).unwrap();
    assert_eq!(play.run(), Ending::Completed);
    let settings = play.cluster.describe_configs(broker, &Resource::Broker(broker)).unwrap();
    let rates: Vec<_> = settings.iter().filter(|it| it.name.contains("throttled.rate")).collect();
    assert_eq!(rates.len(), 1, "{rates:?}");
    assert_eq!((rates[0].name.as_str(), rates[0].value.as_deref()), (LEADER_RATE, Some("7000000")));
}

#[test]
fn small_moves_go_first_if_asked() {
    let mut play = Play::new(&LISTS, &ALL).with(|order| {
        order.moves[3].bytes = MB;
        order.limits.in_cluster = 1;
        order.strategies = vec![Strategy::PrioritizeSmallReplicaMovement, Strategy::Base];
    });
    // Partition 4 copies nothing at all; of the others number 3 is the smallest.
    let mut begun = Vec::new();
    while begun.len() < 2 {
        let step = play.step(None);
        for action in &step.actions {
            if let Action::Reassign(targets) = action {
                begun.extend(targets.keys().map(|tp| tp.partition));
            }
        }
        play.cluster.tick(250);
    }
    assert_eq!(begun[..2], [4, 3]);
}

#[test]
fn a_replica_lands_in_the_directory_of_the_plan() {
    for path in ["/d0", "/d1"] {
        let mut play = Play::new(&[&[0, 1]], &[(0, &[0, 3])]).with(|order| {
            order.moves[0].dirs = vec![DirMove { broker: BrokerId(3), from: None, to: path.to_owned() }];
        });
        assert_eq!(play.run(), Ending::Completed);
        assert_eq!(play.look().dirs[&(BrokerId(3), TopicPartition::new("t", 0))].dir, path);
    }
}

#[test]
fn replicas_change_directories_within_their_brokers() {
    let partition = TopicPartition::new("t", 0);
    let play = Play::new(&[&[0, 1]], &[(0, &[0, 1])]);
    let at = |play: &Play, id: i32| play.look().dirs[&(BrokerId(id), partition.clone())].dir.clone();
    let other = |dir: &str| if dir == "/d0" { "/d1" } else { "/d0" }.to_owned();
    let from = [at(&play, 0), at(&play, 1)];
    let mut play = play.with(|order| {
        order.moves[0].dirs = (0..2)
            .map(|id| DirMove {
                broker: BrokerId(id),
                from: Some(from[id as usize].clone()),
                to: other(&from[id as usize]),
            })
            .collect();
    });
    assert_eq!(play.run(), Ending::Completed);
    assert_eq!([at(&play, 0), at(&play, 1)], [other(&from[0]), other(&from[1])]);
}

#[test]
fn progress_is_counted_as_it_is_copied() {
    let mut play = Play::new(&[&[0, 1]], &[(0, &[2, 1])]).with(|order| order.throttle = Some(2 * MB));
    let mut seen = Vec::new();
    while play.step(None).ending.is_none() {
        seen.push(play.execution.progress(&play.look()).bytes_done);
        play.cluster.tick(250);
    }
    assert!(seen.is_sorted(), "{seen:?}");
    assert!(seen.iter().filter(|bytes| (1..20 * MB).contains(bytes)).count() > 5, "{seen:?}");
    let progress = play.execution.progress(&play.look());
    assert_eq!((progress.bytes_done, progress.bytes_total), (20 * MB, 20 * MB));
    assert_eq!((progress.replicas.completed, progress.leaders.completed), (1, 1));
}
