//! What holds whatever happens.

use crate::*;
use evenkeel_sim::cluster::{ElectionKind, Fault};
use evenkeel_sim::traffic::Load;
use proptest::prelude::*;

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Tick(i64),
    Reassign(i32, Vec<i32>),
    Cancel(i32),
    Elect(i32),
    Dir(i32, i32, bool),
    Suffer(Fault),
    Grow,
    Unregister(i32),
}

pub(crate) const BROKERS: i32 = 6;

pub(crate) fn step() -> impl Strategy<Value = Step> {
    let broker = 0..BROKERS;
    let partition = 0..4;
    let id = (0..BROKERS).prop_map(BrokerId);
    prop_oneof![
        4 => (1_i64..20_000).prop_map(Step::Tick),
        4 => (partition.clone(), proptest::sample::subsequence((0..BROKERS).collect::<Vec<_>>(), 1..5).prop_shuffle())
            .prop_map(|(partition, target)| Step::Reassign(partition, target)),
        1 => partition.clone().prop_map(Step::Cancel),
        1 => partition.clone().prop_map(Step::Elect),
        1 => (broker.clone(), partition, any::<bool>()).prop_map(|(broker, partition, dir)| Step::Dir(broker, partition, dir)),
        4 => prop_oneof![
            id.clone().prop_map(Fault::Crash),
            id.clone().prop_map(Fault::Stop),
            id.clone().prop_map(Fault::Return),
            (id.clone(), 0..2_usize).prop_map(|(id, dir)| Fault::FailedDir(id, dir)),
            (id.clone(), 0..2_usize).prop_map(|(id, dir)| Fault::MendedDir(id, dir)),
            id.clone().prop_map(Fault::CutLink),
            id.clone().prop_map(Fault::MendedLink),
            id.clone().prop_map(|id| Fault::SlowLink(id, 0.01)),
            id.prop_map(|id| Fault::StaleMetadata(id, 5_000)),
            Just(Fault::ControllerChange),
        ].prop_map(Step::Suffer),
        1 => Just(Step::Grow),
        1 => broker.prop_map(Step::Unregister),
    ]
}

fn live(steps: &[Step], seed: u64) -> Cluster {
    let mut cluster = Cluster::new(Options { seed, ..Options::default() }, (0..BROKERS).map(broker));
    let load = Load { swing: 0.5, ..Load::steady(5e6) };
    create(&mut cluster, &NewTopic::new("t", 4, 3).loaded(load, 60_000));
    let mut seen: Vec<i64> = Vec::new();
    for step in steps {
        happen(&mut cluster, step, &["t"]);
        check(&cluster);
        let marks: Vec<i64> = (0..).map_while(|n| cluster.high_watermark(&TopicPartition::new("t", n))).collect();
        assert!(seen.iter().zip(&marks).all(|(before, now)| before <= now), "back in time: {seen:?}, {marks:?}");
        seen = marks;
    }
    cluster
}

/// Makes one step. What is about partitions is done to each of these topics, where it has such a partition.
pub(crate) fn happen(cluster: &mut Cluster, step: &Step, topics: &[&str]) {
    let everywhere = |partition: i32| topics.iter().map(move |topic| TopicPartition::new(*topic, partition));
    let mut move_all = |partition, target: Option<&Vec<i32>>| {
        let target = target.map(|target| ids(target));
        let lines: Vec<_> =
            everywhere(partition).map(|partition| Reassignment { partition, target: target.clone() }).collect();
        drop(cluster.alter_reassignments(&lines, true));
    };
    match step {
        Step::Reassign(partition, target) => move_all(*partition, Some(target)),
        Step::Cancel(partition) => move_all(*partition, None),
        Step::Tick(millis) => cluster.tick(*millis),
        Step::Elect(partition) => {
            let among: Vec<_> = everywhere(*partition).collect();
            drop(cluster.elect_leaders(ElectionKind::Preferred, Some(&among)));
        }
        Step::Dir(id, partition, dir) => {
            let path = if *dir { "/d1" } else { "/d0" };
            for tp in everywhere(*partition) {
                drop(cluster.alter_replica_log_dir(BrokerId(*id), &tp, path));
            }
        }
        Step::Suffer(fault) => cluster.suffer(fault),
        Step::Grow => {
            for topic in topics {
                let count = cluster.partition_count(topic).unwrap_or(0);
                if count < 8 {
                    drop(cluster.create_partitions(topic, count + 1, None, false));
                }
            }
        }
        Step::Unregister(id) => drop(cluster.unregister_broker(BrokerId(*id))),
    }
}

/// Mends all that was broken, and gives the cluster the time to heal.
pub(crate) fn leave_in_peace(cluster: &mut Cluster) {
    for id in cluster.broker_ids() {
        for fault in [
            Fault::MendedDir(id, 0),
            Fault::MendedDir(id, 1),
            Fault::MendedLink(id),
            Fault::SlowLink(id, 1.0),
            Fault::Return(id),
        ] {
            cluster.suffer(&fault);
        }
        // One that was unregistered while it ran comes back by a restart only.
        cluster.stop_broker(id);
        cluster.start_broker(id);
    }
    cluster.tick(600_000);
}

fn check(cluster: &Cluster) {
    for partition in (0..).map_while(|n| cluster.registration("t", n)) {
        let mut sorted = partition.replicas.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), partition.replicas.len(), "a replica twice: {partition:?}");
        assert!(!sorted.is_empty(), "no replica left: {partition:?}");
        let has = |list: &[BrokerId]| list.iter().all(|broker| partition.replicas.contains(broker));
        assert!(has(&partition.isr) && has(&partition.adding) && has(&partition.removing), "{partition:?}");
        match partition.leader {
            Some(leader) => assert!(partition.isr.contains(&leader), "{partition:?}"),
            None => assert!(partition.isr.is_empty(), "{partition:?}"),
        }
        assert!(partition.leader_epoch <= partition.partition_epoch, "{partition:?}");
    }
    for id in cluster.broker_ids() {
        for dir in cluster.describe_log_dirs(id, None) {
            for replica in &dir.replicas {
                let size = cluster.partition_size(&replica.partition.topic, replica.partition.partition);
                assert!(replica.size <= size, "a copy larger than its original: {replica:?}");
                let held = cluster.replicas_on(id).contains(&replica.partition);
                assert!(held, "a log without a replica: {replica:?}");
            }
        }
    }
}

/// All that a cluster shows, as text.
fn picture(cluster: &mut Cluster) -> String {
    let mut text = String::new();
    for id in cluster.broker_ids() {
        text += &format!("{:?}\n", cluster.describe_brokers(id, true));
        text += &format!("{:?}\n", cluster.describe_topics(id));
        text += &format!("{:?}\n", cluster.describe_log_dirs(id, None));
        text += &format!("{:?}\n", cluster.metrics(id));
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn replicas_stay_whole_whatever_happens(steps in prop::collection::vec(step(), 1..60), seed in any::<u64>()) {
        live(&steps, seed);
    }

    #[test]
    fn the_same_seed_gives_the_same_bytes(steps in prop::collection::vec(step(), 1..30), seed in any::<u64>()) {
        prop_assert_eq!(picture(&mut live(&steps, seed)), picture(&mut live(&steps, seed)));
    }

    #[test]
    fn a_cluster_left_in_peace_heals(steps in prop::collection::vec(step(), 1..40), seed in any::<u64>()) {
        let mut cluster = live(&steps, seed);
        leave_in_peace(&mut cluster);
        for partition in (0..).map_while(|n| cluster.registration("t", n)) {
            let mut expected = partition.replicas.clone();
            let mut isr = partition.isr.clone();
            expected.sort_unstable();
            isr.sort_unstable();
            prop_assert_eq!(isr, expected);
        }
    }
}
