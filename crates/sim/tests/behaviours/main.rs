//! What real brokers (4.3.1) were seen to do, one test per observation.

mod brokers;
mod configs;
mod elections;
mod followers;
mod log_dirs;
mod properties;
mod reassignments;
mod records;
mod throttles;
mod views;
mod written;

use evenkeel_sim::cluster::{BrokerSpec, MoveView, NewTopic, Reassignment, Registration};
use evenkeel_sim::{BrokerId, Cluster, Code, Options, Refusal, TopicPartition};

/// Brokers 0 to `count` in three racks, each with two directories.
pub(crate) fn cluster(count: i32) -> Cluster {
    Cluster::new(Options::default(), (0..count).map(broker))
}

pub(crate) fn broker(id: i32) -> BrokerSpec {
    BrokerSpec::new(id).in_rack(["a", "b", "c"][id as usize % 3]).with_dirs(["/d0", "/d1"])
}

/// A cluster with topic `t` of one partition with these replicas, and 100 MB in it.
pub(crate) fn with_partition(count: i32, replicas: &[i32]) -> Cluster {
    let mut cluster = cluster(count);
    create(&mut cluster, &NewTopic::manual("t", &[replicas]));
    cluster.fill(&t0(), 100_000_000);
    cluster.tick(1_000);
    cluster
}

pub(crate) fn create(cluster: &mut Cluster, topic: &NewTopic) {
    cluster.create_topic(topic, false).expect("a topic that can be made");
}

pub(crate) fn t0() -> TopicPartition {
    TopicPartition::new("t", 0)
}

pub(crate) fn ids(ids: &[i32]) -> Vec<BrokerId> {
    ids.iter().copied().map(BrokerId).collect()
}

pub(crate) fn reassign(cluster: &mut Cluster, target: &[i32]) -> Result<(), Refusal> {
    send(cluster, Some(ids(target)))
}

pub(crate) fn cancel(cluster: &mut Cluster) -> Result<(), Refusal> {
    send(cluster, None)
}

fn send(cluster: &mut Cluster, target: Option<Vec<BrokerId>>) -> Result<(), Refusal> {
    let line = Reassignment { partition: t0(), target };
    cluster.alter_reassignments(&[line], true).remove(0)
}

pub(crate) fn now(cluster: &Cluster) -> &Registration {
    cluster.registration("t", 0).expect("the partition of the test")
}

pub(crate) fn moving(cluster: &Cluster) -> Option<MoveView> {
    cluster.list_reassignments(None).into_iter().next()
}

pub(crate) fn code(result: Result<(), Refusal>) -> i16 {
    result.map_or_else(|refusal| refusal.code.number(), |()| 0)
}

/// Lets time pass until no move is listed; false if that takes more than ten minutes.
pub(crate) fn settle(cluster: &mut Cluster) -> bool {
    for _ in 0..600 {
        if moving(cluster).is_none() {
            return true;
        }
        cluster.tick(1_000);
    }
    false
}

/// The bytes of `t-0` on a broker, by directory.
pub(crate) fn sizes(cluster: &Cluster, broker: i32) -> Vec<(String, u64, bool)> {
    let dirs = cluster.describe_log_dirs(BrokerId(broker), Some(&[t0()]));
    let entries = dirs.into_iter().flat_map(|dir| {
        let path = dir.path.clone();
        dir.replicas.into_iter().map(move |replica| (path.clone(), replica.size, replica.is_future))
    });
    entries.collect()
}

#[test]
fn codes_have_the_numbers_of_the_protocol() {
    let known = [
        (Code::UnknownTopicOrPartition, 3),
        (Code::InvalidReplicationFactor, 38),
        (Code::InvalidReplicaAssignment, 39),
        (Code::InvalidRequest, 42),
        (Code::PolicyViolation, 44),
        (Code::OperationNotAttempted, 55),
        (Code::KafkaStorageError, 56),
        (Code::PreferredLeaderNotAvailable, 80),
        (Code::ElectionNotNeeded, 84),
        (Code::NoReassignmentInProgress, 85),
    ];
    known.iter().for_each(|(code, number)| assert_eq!(code.number(), *number));
}
