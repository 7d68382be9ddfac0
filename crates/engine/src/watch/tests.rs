use evenkeel_kafka::{
    ErrorCode, Refusal,
    calls::{
        cluster::{Broker, Cluster},
        log_dirs::{LogDir, Replica},
        reassignments::Reassignment,
        topics::Partition,
    },
};

use super::*;

fn ids(ids: &[i32]) -> Vec<BrokerId> {
    ids.iter().copied().map(BrokerId).collect()
}

fn broker(id: i32, fenced: bool) -> Broker {
    Broker { id: BrokerId(id), host: format!("h{id}"), port: 9092, rack: Some(format!("r{id}")), fenced }
}

fn partition(index: i32, leader: Option<i32>, replicas: &[i32], in_sync: &[i32], offline: &[i32]) -> Partition {
    Partition {
        index,
        leader: leader.map(BrokerId),
        leader_epoch: 0,
        replicas: ids(replicas),
        in_sync: ids(in_sync),
        offline: ids(offline),
    }
}

/// Brokers 0 and 1 are up, 2 is fenced, 3 is gone; `t-0` lies on 0 and 1, `t-1` on 1 and 3, `t-2` on 2 and 3.
fn seen() -> Sighting {
    seen_with(BTreeMap::new())
}

fn seen_with(moving: BTreeMap<TopicPartition, Moving>) -> Sighting {
    seen_at(5, moving)
}

fn seen_at(at: i64, moving: BTreeMap<TopicPartition, Moving>) -> Sighting {
    let cluster = Cluster {
        id: "c".to_owned(),
        controller: Some(BrokerId(1)),
        brokers: vec![broker(0, false), broker(1, false), broker(2, true)],
        names_fenced: true,
    };
    let topic = Topic {
        name: "t".to_owned(),
        id: 1,
        internal: false,
        partitions: vec![
            partition(0, Some(0), &[0, 1], &[1, 0], &[]),
            partition(1, Some(1), &[1, 3], &[1], &[3]),
            partition(2, None, &[2, 3], &[2], &[2, 3]),
        ],
    };
    let own = Topic { name: "__o".to_owned(), id: 2, internal: true, partitions: Vec::new() };
    let gone = Refusal { code: ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, message: None };
    let topics =
        BTreeMap::from([("t".to_owned(), Ok(topic)), ("__o".to_owned(), Ok(own)), ("x".to_owned(), Err(gone))]);
    assemble::sighting(at, cluster, topics, &BTreeMap::from([("t".to_owned(), 2)]), moving)
}

fn t(index: i32) -> TopicPartition {
    TopicPartition::new("t", index)
}

/// Partition, bytes, and whether it is still being copied here.
type Held = (i32, i64, bool);

fn dirs(of: &[(&str, &[Held])], failed: &[&str]) -> LogDirs {
    let dir = |replicas: &[Held]| LogDir {
        total_bytes: Some(1_000),
        usable_bytes: Some(400),
        cordoned: false,
        replicas: replicas
            .iter()
            .map(|(index, bytes, future)| (t(*index), Replica { bytes: *bytes, lag: 0, future: *future }))
            .collect(),
    };
    let refused = || Err(Refusal { code: ErrorCode::STORAGE_ERROR, message: None });
    let good = of.iter().map(|(path, replicas)| ((*path).to_owned(), Ok(dir(replicas))));
    let bad = failed.iter().map(|path| ((*path).to_owned(), refused()));
    LogDirs { knows_cordons: true, dirs: good.chain(bad).collect() }
}

#[test]
fn brokers_that_hold_something_and_are_gone_are_down() {
    let seen = seen();
    let up: Vec<(i32, bool)> = seen.view.brokers.iter().map(|(id, broker)| (*id, broker.up)).collect();
    assert_eq!(up, [(0, true), (1, true), (2, false), (3, false)]);
    assert_eq!(seen.view.brokers[&3].host, "");
    assert!(!seen.has_left(3) && seen.has_left(4), "something of 3 is expected back");
    assert!(
        !Sighting { names_fenced: false, ..seen.clone() }.has_left(4),
        "nobody says whether 4 is away for a moment"
    );
    assert_eq!((seen.controller, seen.at, seen.cluster.as_str()), (Some(1), 5, "c"));
    assert_eq!(seen.internal, BTreeSet::from(["__o".to_owned()]));
    assert_eq!(seen.view.partitions.len(), 3);
    assert_eq!(seen.view.partitions[&t(2)].leader, None);
    assert_eq!(seen.view.partitions[&t(1)].offline, BTreeSet::from([3]));
}

#[test]
fn who_is_in_sync_and_who_falls_short_is_told() {
    let seen = seen();
    assert_eq!(seen.in_sync(&t(0)), [0, 1]);
    assert_eq!(seen.in_sync(&t(1)), [1]);
    assert_eq!((seen.min_in_sync("t"), seen.min_in_sync("other")), (2, 1));
    assert_eq!(seen.short().collect::<Vec<_>>(), [&t(1), &t(2)]);
}

#[test]
fn directories_are_kept_where_they_matter_and_sizes_of_what_the_broker_leads() {
    let mut seen = seen();
    let mut sizes = BTreeMap::new();
    let told = dirs(&[("/a", &[(0, 70, false), (1, 10, true)]), ("/b", &[(1, 20, false)])], &["/c"]);
    assemble::take_dirs(&mut seen, 1, told.clone(), false, &mut sizes);
    assert_eq!(sizes, BTreeMap::from([(t(1), 20)]));
    assert_eq!(seen.view.brokers[&1].failed_dirs, BTreeSet::from(["/c".to_owned()]));
    assert!(seen.view.brokers[&1].dirs.is_empty());
    assert_eq!(seen.dirs[&1].len(), 2);
    assert_eq!(seen.dirs[&1]["/a"], Room { total: Some(1_000), usable: Some(400) });

    assemble::take_dirs(&mut seen, 1, told, true, &mut sizes);
    let lies = &seen.view.brokers[&1].dirs;
    assert_eq!((&*lies[&t(0)], &*lies[&t(1)]), ("/a", "/b"));
}

#[test]
fn a_broker_that_says_nothing_still_has_what_it_had() {
    let mut before = seen();
    let told = dirs(&[("/a", &[(0, 70, false)])], &["/c"]);
    assemble::take_dirs(&mut before, 0, told.clone(), true, &mut BTreeMap::new());
    before.silent.insert(1);
    // Asked, without an answer.
    let mut now = seen();
    now.silent.insert(0);
    assemble::remember_dirs(&mut now, &before, &[0, 1]);
    assert_eq!(now.view.brokers[&0], before.view.brokers[&0]);
    assert_eq!(now.dirs, before.dirs);
    assert_eq!(now.silent, BTreeSet::from([0]));
    // Not asked: as silent as it was.
    let mut later = seen();
    assemble::remember_dirs(&mut later, &before, &[]);
    assert_eq!(later.silent, BTreeSet::from([1]));
    // Answered anew: only the new counts.
    let mut mended = seen();
    assemble::take_dirs(&mut mended, 0, dirs(&[("/a", &[]), ("/c", &[])], &[]), true, &mut BTreeMap::new());
    assemble::remember_dirs(&mut mended, &before, &[0]);
    assert!(mended.view.brokers[&0].failed_dirs.is_empty() && mended.view.brokers[&0].dirs.is_empty());
}

#[test]
fn directories_matter_where_the_capacity_is_by_directory() {
    let capacities = Capacities::read(
        r#"{"brokerCapacities":[
            {"brokerId":"0","capacity":{"DISK":{"/a":"10","/b":"10"},"CPU":"100","NW_IN":"1","NW_OUT":"1"}},
            {"brokerId":"-1","capacity":{"DISK":"10","CPU":"100","NW_IN":"1","NW_OUT":"1"}}]}"#,
    )
    .unwrap();
    assert!(matter_on(&capacities, 0));
    assert!(!matter_on(&capacities, 1));
}

#[test]
fn who_is_getting_a_copy_is_no_replica_yet() {
    let seen = seen_with(assemble::moving(5, listed(&[0, 1], &[0], &[1]), None));
    let view = &seen.view.partitions[&t(0)];
    assert_eq!((&view.replicas[..], &view.adding[..]), (&[1][..], &[0][..]));
    assert_eq!(seen.in_sync(&t(0)), [1, 0]);
    assert!(!seen.trails(), "it is under way");
    assert_eq!(seen.coming_to(&[0, 2].into()), Some((&t(0), 0)));
    assert_eq!(seen.coming_to(&[1, 2].into()), None);
    // It is over, and brokers still show it: for a moment that is no reason to take the new ones for replicas.
    let trailing = seen_at(4_000, assemble::moving(4_000, nothing(), Some(&seen)));
    assert_eq!(trailing.view.partitions[&t(0)].replicas, [1]);
    assert!(trailing.trails());
    let settled = seen_at(6_000, assemble::moving(6_000, nothing(), Some(&seen)));
    assert_eq!(settled.view.partitions[&t(0)].replicas, [0, 1]);
    assert!(!settled.trails());
    // What metadata does not show to be moving is as it shows it.
    let over = seen_with(assemble::moving(5, listed(&[0, 2, 1], &[0, 2], &[1]), None));
    assert_eq!(over.view.partitions[&t(0)].replicas, [0, 1]);
    assert!(!over.trails());
}

#[test]
fn a_move_that_ends_while_it_is_looked_at_is_not_taken_for_settled() {
    let ended = assemble::Listed { before: listed(&[0, 1], &[0], &[1]).after, after: BTreeMap::new() };
    let seen = seen_with(assemble::moving(5, ended, None));
    assert_eq!(seen.view.partitions[&t(0)].replicas, [1]);
    assert!(seen.trails());
}

#[test]
fn a_move_that_takes_nothing_away_is_over_as_soon_as_it_is_not_listed() {
    let seen = seen_with(assemble::moving(5, listed(&[0, 1], &[0], &[]), None));
    assert_eq!(seen.view.partitions[&t(0)].adding, [0]);
    let over = seen_at(1_000, assemble::moving(1_000, nothing(), Some(&seen)));
    assert_eq!(over.view.partitions[&t(0)].replicas, [0, 1]);
    assert!(!over.trails());
}

/// `t-0` is listed.
fn listed(everybody: &[i32], adding: &[i32], removing: &[i32]) -> assemble::Listed {
    let of = Reassignment { replicas: ids(everybody), adding: ids(adding), removing: ids(removing) };
    assemble::Listed { before: BTreeMap::new(), after: BTreeMap::from([(t(0), of)]) }
}

fn nothing() -> assemble::Listed {
    assemble::Listed { before: BTreeMap::new(), after: BTreeMap::new() }
}
