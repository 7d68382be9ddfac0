//! From a spec to a query, and what is said about specs that cannot become one.

use evenkeel_api::KafkaRebalanceSpec;
use evenkeel_api::rebalance::{BrokerVolumes, RebalanceMode};
use evenkeel_rest::Request;

use super::super::request;
use super::scene::{Engineer, Scene};

fn with(change: impl FnOnce(&mut KafkaRebalanceSpec)) -> Scene {
    let mut scene = Scene::new();
    change(&mut scene.seen.resource.spec);
    scene
}

fn query(scene: &Scene) -> String {
    let request = request::proposal(&scene.seen).map(Request::from).expect("a request");
    assert_eq!(request.contradiction(), None);
    format!("{}?{}", request.endpoint().name(), request.query().encoded())
}

fn refused(change: impl FnOnce(&mut KafkaRebalanceSpec)) -> String {
    request::proposal(&with(change).seen).map(Request::from).expect_err("refused")
}

/// Asked of our engine: both loads, and as many proposals as are shown.
const TOLD: &str = "max_proposals=20&verbose=true";
const TAG: &str = "reason=evenkeel-0b7e4b4a5f394a0e";

fn volumes(broker_id: i32, volume_ids: &[i32]) -> BrokerVolumes {
    BrokerVolumes { broker_id, volume_ids: volume_ids.to_vec(), ..Default::default() }
}

#[test]
fn each_mode_has_its_endpoint() {
    assert_eq!(query(&Scene::new()), format!("rebalance?{TOLD}&{TAG}"));
    let brokers = |mode| with(|spec| (spec.mode, spec.brokers) = (mode, Some(vec![4, 3])));
    let added = query(&brokers(RebalanceMode::AddBrokers));
    assert!(added.starts_with("add_broker?") && added.contains("brokerid=3%2C4") && added.contains("verbose=true"));
    assert!(query(&brokers(RebalanceMode::RemoveBrokers)).starts_with("remove_broker?"));
    let mut disks = with(|spec| {
        spec.mode = RebalanceMode::RemoveDisks;
        spec.move_replicas_off_volumes = Some(vec![volumes(0, &[1, 2])]);
        spec.goals = Some(vec!["ignored".into()]);
    });
    let dirs = "0-%2Fvar%2Flib%2Fkafka%2Fdata-1%2Fkafka-log0%2C0-%2Fvar%2Flib%2Fkafka%2Fdata-2%2Fkafka-log0";
    assert_eq!(query(&disks), format!("remove_disks?{TOLD}&{TAG}&brokerid_and_logdirs={dirs}"));
    // Cruise Control refuses what it does not know: there it has no `verbose`, and nowhere a limit of proposals.
    disks.kafka().engine.as_mut().unwrap().is_ours = false;
    assert_eq!(query(&disks), format!("remove_disks?{TAG}&brokerid_and_logdirs={dirs}"));
    disks.seen.resource.spec.mode = RebalanceMode::Full;
    disks.seen.resource.spec.goals = None;
    assert_eq!(query(&disks), format!("rebalance?verbose=true&{TAG}"));
}

#[test]
fn every_option_is_passed_on_and_zero_means_the_default() {
    let all = query(&with(|spec| {
        spec.goals = Some(vec!["RackAwareGoal".into(), "DiskCapacityGoal".into()]);
        spec.skip_hard_goal_check = Some(true);
        spec.excluded_topics = Some("a|b".into());
        spec.concurrent_partition_movements_per_broker = Some(4);
        spec.concurrent_intra_broker_partition_movements = Some(3);
        spec.concurrent_leader_movements = Some(2);
        spec.replication_throttle = Some(1);
        spec.replica_movement_strategies = Some(vec!["BaseReplicaMovementStrategy".into()]);
    }));
    for part in [
        "goals=RackAwareGoal%2CDiskCapacityGoal",
        "skip_hard_goal_check=true",
        "excluded_topics=a%7Cb",
        "concurrent_partition_movements_per_broker=4",
        "concurrent_intra_broker_partition_movements=3",
        "concurrent_leader_movements=2",
        "replication_throttle=1",
        "replica_movement_strategies=BaseReplicaMovementStrategy",
    ] {
        assert!(all.contains(part), "{part} in {all}");
    }
    let none = query(&with(|spec| {
        spec.goals = Some(vec![]);
        spec.concurrent_partition_movements_per_broker = Some(0);
        spec.concurrent_leader_movements = Some(0);
        spec.replication_throttle = Some(0);
    }));
    assert_eq!(none, format!("rebalance?{TOLD}&{TAG}"));
    assert!(query(&with(|spec| spec.rebalance_disk = Some(true))).contains("rebalance_disk=true"));
}

#[test]
fn the_limit_of_data_goes_to_our_engine_only() {
    let mut scene = Scene::new();
    scene.annotate("evenkeel.io/max-data-mb", "500");
    assert!(query(&scene).contains("max_data_to_move_mb=500"));
    scene.kafka().engine.as_mut().unwrap().is_ours = false;
    assert!(!query(&scene).contains("max_data_to_move_mb"));
}

#[test]
fn what_cannot_be_says_how_to_mend_it() {
    for mode in [RebalanceMode::AddBrokers, RebalanceMode::RemoveBrokers] {
        let told = refused(|spec| spec.mode = mode);
        assert_eq!(told, format!("mode {mode} needs spec.brokers: list at least one broker id"));
        assert!(refused(|spec| (spec.mode, spec.brokers) = (mode, Some(vec![]))).contains("at least one"));
        assert!(
            refused(|spec| (spec.mode, spec.brokers) = (mode, Some(vec![1, -2]))).contains("an id that is negative")
        );
        assert!(refused(|spec| (spec.mode, spec.brokers) = (mode, Some(vec![1, 1]))).contains("1 twice"));
    }
    let disks = |entries: Vec<BrokerVolumes>| {
        refused(|spec| {
            spec.mode = RebalanceMode::RemoveDisks;
            spec.move_replicas_off_volumes = Some(entries);
        })
    };
    assert!(refused(|spec| spec.mode = RebalanceMode::RemoveDisks).contains("moveReplicasOffVolumes"));
    assert!(disks(vec![]).contains("at least one broker"));
    assert!(disks(vec![volumes(0, &[])]).contains("lists no volumes"));
    assert!(disks(vec![volumes(0, &[1]), volumes(0, &[2])]).contains("0 twice"));
    assert!(disks(vec![volumes(0, &[1, 1])]).contains("1 twice"));
    assert!(disks(vec![volumes(-1, &[1])]).contains("negative"));
    assert!(disks(vec![volumes(1, &[-1])]).contains("negative"));
    assert!(
        refused(|spec| (spec.rebalance_disk, spec.goals) = (Some(true), Some(vec!["A".into()])))
            .contains("remove spec.goals")
    );
    let told = refused(|spec| spec.excluded_topics = Some("a(".into()));
    assert_eq!(told, "spec.excludedTopics `a(` is no regular expression: Unclosed group near index 2");
    assert!(refused(|spec| spec.concurrent_leader_movements = Some(-1)).contains("concurrentLeaderMovements"));
    assert!(refused(|spec| spec.replication_throttle = Some(-1)).contains("replicationThrottle"));
    assert!(refused(|spec| spec.goals = Some(vec!["A,B".into()])).contains("one name an entry"));
}

#[test]
fn fields_of_other_modes_are_ignored() {
    let scene = with(|spec| {
        spec.brokers = Some(vec![1]);
        spec.move_replicas_off_volumes = Some(vec![volumes(0, &[1])]);
    });
    assert_eq!(query(&scene), format!("rebalance?{TOLD}&{TAG}"));
}

/// Strimzi's own definitions bound no number, and the API server knows no `int32`: what is admitted has to be readable,
/// or every list that it is in is not.
#[test]
fn a_number_that_is_too_large_is_read_and_refused_in_words() {
    let beyond = 3_000_000_000_i64;
    for (spec, told) in [
        (
            serde_json::json!({"mode": "remove-brokers", "brokers": [0, beyond]}),
            "spec.brokers has an id that is negative, or larger",
        ),
        (serde_json::json!({"mode": "remove-brokers", "brokers": [beyond, beyond + 1]}), "larger than 2147483647"),
        (
            serde_json::json!({"concurrentLeaderMovements": beyond}),
            "spec.concurrentLeaderMovements is negative, or larger",
        ),
        (serde_json::json!({"concurrentPartitionMovementsPerBroker": i64::MAX}), "PerBroker is negative, or larger"),
        (serde_json::json!({"concurrentIntraBrokerPartitionMovements": u64::MAX}), "Movements is negative, or larger"),
        (
            serde_json::json!({"mode": "remove-disks", "moveReplicasOffVolumes": [{"brokerId": beyond, "volumeIds": [1]}]}),
            "no broker can have",
        ),
        (
            serde_json::json!({"mode": "remove-disks", "moveReplicasOffVolumes": [{"brokerId": 1, "volumeIds": [beyond]}]}),
            "of broker 1 has an id",
        ),
    ] {
        let mut scene = Scene::new();
        scene.seen.resource.spec = serde_json::from_value(spec).expect("readable");
        scene.run(&Engineer::default());
        assert_eq!(scene.state(), evenkeel_api::rebalance::RebalanceState::NotReady);
        assert!(scene.message().contains(told), "{}", scene.message());
    }
}

/// Strimzi's own definitions admit it.
#[test]
fn what_only_our_definitions_require_is_read_and_refused_in_words() {
    let resource: evenkeel_api::KafkaRebalance = serde_json::from_value(serde_json::json!({
        "apiVersion": "kafka.strimzi.io/v1", "kind": "KafkaRebalance", "metadata": {"name": "r"},
        "spec": {"mode": "remove-disks", "moveReplicasOffVolumes": [{}]},
        "status": {"conditions": [{}], "progress": {}},
    }))
    .expect("readable");
    let mut scene = Scene::new();
    scene.seen.resource.spec = resource.spec;
    scene.run(&Engineer::default());
    assert_eq!(scene.state(), evenkeel_api::rebalance::RebalanceState::NotReady);
    assert!(scene.message().contains("without a brokerId"), "{}", scene.message());
}
