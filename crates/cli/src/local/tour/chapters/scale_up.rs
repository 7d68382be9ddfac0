//! Chapter 4: brokers are added, and get their share by themselves.

use std::io::Write;

use evenkeel_api::annotations::REBALANCE_TEMPLATE;
use evenkeel_api::kafka::AutoRebalanceMode;
use evenkeel_api::{Kafka, KafkaNodePool, KafkaRebalance};
use serde_json::json;

use super::super::guide::Guide;
use super::automatic::{follow, idle};
use super::{POOL, TEMPLATE, manifests};

pub(crate) async fn play<W: Write>(guide: &mut Guide<W>) -> anyhow::Result<()> {
    guide.tell("From now on scaling shall take the data along. One template says how, for both directions.")?;
    guide.create::<KafkaRebalance>(&manifests::rebalance(TEMPLATE, Some(REBALANCE_TEMPLATE), " {}")).await?;
    let modes = ["add-brokers", "remove-brokers"].map(|mode| json!({"mode": mode, "template": {"name": TEMPLATE}}));
    let cluster = guide.cluster.clone();
    guide.patch::<Kafka>(&cluster, &json!({"spec": {"cruiseControl": {"autoRebalance": modes}}})).await?;
    idle(guide, "the operator is ready to rebalance by itself").await?;

    guide.tell("Two more brokers.")?;
    guide.scale::<KafkaNodePool>(POOL, 5).await?;
    follow(guide, AutoRebalanceMode::AddBrokers).await?;
    idle(guide, "and the operator rests again").await?;
    let brokers = guide.picture().await?;
    let filled = [3, 4].iter().all(|id| brokers.0.get(id).is_some_and(|it| it.replicas > 0));
    guide.promise(filled, "both new brokers hold their share")?;
    guide.until_whole().await
}
