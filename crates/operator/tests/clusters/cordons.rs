//! Brokers that are to go take nothing new until they are gone, and new ones with their ids are not held to it.

use evenkeel_api::KafkaRebalance;
use evenkeel_sim::cluster::{NewTopic, Resource};
use evenkeel_sim::{BrokerId, Cluster};
use serde_json::json;

use crate::scene::{brokers, cluster, is_ready, is_registered, scale, tell_of, usual};
use crate::stage::{Stage, a_while, until};

const DRAIN: &str = "my-cluster-auto-rebalancing-remove-brokers";
const KEY: &str = "cordoned.log.dirs";

/// What a broker was told about cordons while it ran.
fn cordon(cluster: &mut Cluster, id: i32) -> Option<String> {
    let told = cluster.describe_configs(BrokerId(id), &Resource::Broker(BrokerId(id))).unwrap();
    told.into_iter().find(|entry| entry.name == KEY && entry.source.number() == 2)?.value
}

#[tokio::test(start_paused = true)]
async fn a_cordon_holds_from_the_wish_to_the_end_and_no_longer() {
    let stage = Stage::new().await;
    let mut spec = usual();
    spec["cruiseControl"]["autoRebalance"] = json!([{"mode": "remove-brokers"}]);
    let machines = cluster(&stage, spec).await;
    until("it is ready", || is_ready(&stage)).await;
    let cordons = |id: i32| machines.world().look(|cluster| cordon(cluster, id));
    for _ in 0..2 {
        scale(&stage, 4).await;
        until("the fourth serves", || async {
            machines.world().look(|cluster| cluster.is_serving(BrokerId(3))) && brokers(&stage).await.len() == 4
        })
        .await;
        a_while().await;
        assert_eq!(cordons(3), None, "whatever its predecessor was told");
        machines.world().with(|cluster| cluster.create_topic(&NewTopic::manual("wide", &[&[3, 0]]), false).unwrap());
        a_while().await;

        scale(&stage, 3).await;
        until("it is to be emptied", || async {
            stage.api::<KafkaRebalance>().get_opt(DRAIN).await.unwrap().is_some()
        })
        .await;
        tell_of(&stage, DRAIN, "Rebalancing", None).await;
        a_while().await;
        assert_eq!(cordons(3).as_deref(), Some("*"));
        machines.world().with(|cluster| cluster.delete_topic("wide").unwrap());
        tell_of(&stage, DRAIN, "Ready", None).await;
        until("it goes", || async {
            assert_eq!(cordons(3).as_deref(), Some("*"), "nothing may come while it is looked at once more");
            brokers(&stage).await.len() == 3
        })
        .await;
        until("it is forgotten", || async { !is_registered(&machines, 3) }).await;
    }
}
