//! Runs in which nothing moves between brokers: from disk to disk, or only who leads.

use std::cell::RefCell;
use std::collections::BTreeMap;

use evenkeel_api::rebalance::RebalanceState;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

use crate::cluster::Brokers;
use crate::stage::{Stage, number};

const NAME: &str = "my-rebalance";
const PERCENT: &str = "completedByteMovementPercentage";
const MINUTES: &str = "estimatedTimeToCompletionInMinutes";
const EXECUTOR: &str = "executorState";

/// What the ConfigMap says of a run.
#[derive(Debug)]
struct Told {
    executor: Value,
    percent: u64,
    minutes: Option<u64>,
    brokers: Option<String>,
}

fn read(data: &BTreeMap<String, String>) -> Option<Told> {
    let figure = |key: &str| data.get(key).map(|text| text.parse().expect("a whole number"));
    Some(Told {
        executor: serde_json::from_str(data.get(EXECUTOR)?).expect("JSON"),
        percent: figure(PERCENT).expect("a run has a percentage"),
        minutes: figure(MINUTES),
        brokers: data.get("brokerProgress.json").cloned(),
    })
}

/// Approves what is proposed, and follows it to its end, which is a good one: everything that was told on the way. Nobody
/// is ever warned of anything.
async fn followed(stage: &Stage) -> Vec<Told> {
    stage.ask(NAME, "approve").await;
    let told = RefCell::new(Vec::new());
    let over = || async {
        let map = stage.api::<ConfigMap>().get(NAME).await.unwrap();
        told.borrow_mut().extend(read(&map.data.unwrap()));
        let now = stage.get(NAME).await;
        let conditions = &now.status.as_ref().expect("a status").conditions;
        assert!(!conditions.iter().any(|it| it.is_warning()), "{conditions:?}");
        now.state() == RebalanceState::Ready
    };
    stage.until("it is carried out", over).await;
    assert_eq!(stage.data(NAME, PERCENT).await.as_deref(), Some("100"));
    assert_eq!(stage.data(NAME, MINUTES).await.as_deref(), Some("0"));
    assert_eq!(stage.data(NAME, EXECUTOR).await, None);
    assert_eq!(stage.executions().await.len(), 1);
    told.into_inner()
}

/// The counters of bytes between disks are what the percentage is made of, and there are steps to be seen.
fn check_bytes_between_disks(told: &[Told]) {
    let copying = "INTRA_BROKER_REPLICA_MOVEMENT_TASK_IN_PROGRESS";
    let copies: Vec<&Told> = told.iter().filter(|it| it.executor["state"] == copying).collect();
    for it in &copies {
        let counter = |key: &str| it.executor[key].as_u64().unwrap_or_else(|| panic!("{key} in {:?}", it.executor));
        let (moved, total) = (counter("finishedIntraBrokerDataMovement"), counter("totalIntraBrokerDataToMove"));
        assert!(total > 0, "{it:?}");
        assert_eq!(it.percent, 100 * moved / total, "{it:?}");
        assert!(it.minutes.is_none() || moved > 0, "nobody knows before something has moved: {it:?}");
    }
    // Nor within the second in which it began: the engine tells no parts of seconds.
    assert!(copies.iter().any(|it| it.minutes.is_some()), "{told:?}");
    assert!(copies.iter().any(|it| (1..100).contains(&it.percent)), "{told:?}");
}

pub async fn disks_are_evened_out_and_say_how_far_they_are(stage: Stage) {
    let stage = stage.on_brokers(Brokers::with_disks());
    let _operator = stage.operator();
    stage.create(NAME, |it| it["spec"] = json!({"rebalanceDisk": true})).await;
    let ready = stage.until_state(NAME, RebalanceState::ProposalReady).await;
    assert_eq!((number(&ready, "numReplicaMovements"), number(&ready, "dataToMoveMB")), (Some(0), Some(0)));
    assert_eq!(number(&ready, "numIntraBrokerReplicaMovements"), Some(12));
    let megabytes = number(&ready, "intraBrokerDataToMoveMB");
    assert!((Some(228)..=Some(229)).contains(&megabytes), "twelve times 20,000,000 bytes: {megabytes:?}");
    assert_eq!(stage.brokers.on_disks(0), [6, 0], "nothing moves before it is approved");
    let told = followed(&stage).await;
    check_bytes_between_disks(&told);
    for broker in 0..4 {
        assert_eq!(stage.brokers.on_disks(broker), [3, 3], "broker {broker}");
    }
}

pub async fn a_disk_is_emptied_and_every_move_off_it_has_its_reason(stage: Stage) {
    let stage = stage.on_brokers(Brokers::with_disks());
    let _operator = stage.operator();
    let volumes = json!([{"brokerId": 1, "volumeIds": [0]}]);
    stage.create(NAME, |it| it["spec"] = json!({"mode": "remove-disks", "moveReplicasOffVolumes": volumes})).await;
    let ready = stage.until_state(NAME, RebalanceState::ProposalReady).await;
    assert_eq!(number(&ready, "numIntraBrokerReplicaMovements"), Some(6));
    let json = |text: Option<String>| serde_json::from_str::<Value>(&text.expect("it is there")).expect("JSON");
    let moves = json(stage.data(NAME, "biggestMoves.json").await);
    let moves = moves.as_array().unwrap();
    assert_eq!(moves.len(), 6, "{moves:?}");
    for it in moves {
        assert!(it["bytes"].as_u64() > Some(19_000_000), "{it}");
        assert_eq!(it["reason"], "the disk that it lies on is to be removed");
    }
    let load = json(stage.data(NAME, "brokerLoad.json").await);
    assert!(load["1"]["replicas"]["before"].is_number() && load["1"]["replicas"]["after"].is_number(), "{load}");
    let told = followed(&stage).await;
    check_bytes_between_disks(&told);
    assert_eq!(stage.brokers.on_disks(1), [0, 6]);
    assert_eq!(stage.brokers.on_disks(0), [6, 0], "the others were not named");
}

pub async fn leaders_weigh_nothing_so_it_is_nothing_until_it_is_everything(stage: Stage) {
    let stage = stage.on_brokers(Brokers::led_by_two());
    let _operator = stage.operator();
    stage
        .create(NAME, |it| {
            it["spec"]["goals"] = json!(["LeaderReplicaDistributionGoal"]);
            // Slow enough to be looked at.
            it["spec"]["concurrentLeaderMovements"] = json!(1);
        })
        .await;
    let ready = stage.until_state(NAME, RebalanceState::ProposalReady).await;
    assert_eq!((number(&ready, "numReplicaMovements"), number(&ready, "dataToMoveMB")), (Some(0), Some(0)));
    assert!(number(&ready, "numLeaderMovements") >= Some(6), "{ready:?}");
    assert_eq!(stage.brokers.led(), BTreeMap::from([(0, 6), (2, 6)]), "nothing happens before it is approved");
    let told = followed(&stage).await;
    let leading: Vec<&Told> =
        told.iter().filter(|it| it.executor["state"] == "LEADER_MOVEMENT_TASK_IN_PROGRESS").collect();
    assert!(leading.iter().any(|it| it.executor["numFinishedLeadershipMovements"].as_u64() > Some(0)), "{told:?}");
    for it in &told {
        assert_eq!((it.percent, it.minutes), (0, None), "{it:?}");
        assert_eq!(it.brokers.as_deref(), Some("{}"), "it was asked, and nobody receives anything");
    }
    // The engine's own topics count too, so how many of these each leads is another matter.
    assert_eq!(stage.brokers.led().len(), 4, "{:?}", stage.brokers.led());
}
