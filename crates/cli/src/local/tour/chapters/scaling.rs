//! Chapter 3: brokers come and go, and their data by itself with them.

use std::io::Write;
use std::time::Duration;

use anyhow::Context;
use evenkeel_api::kafka::AutoRebalanceState;
use evenkeel_api::rebalance::RebalanceState;
use evenkeel_api::{Kafka, KafkaRebalance};
use kube::api::PostParams;
use serde_json::json;

use super::super::guide::{Guide, Standing};
use super::super::seen::told;
use super::{pod_of, scale};

/// The template of both modes.
const TEMPLATE: &str = "even-out";

pub(crate) async fn play<W: Write>(guide: &mut Guide<W>) -> anyhow::Result<()> {
    guide.tell("From now on scaling shall take the data along. One template says how, for both directions.")?;
    guide.command("kubectl annotate … strimzi.io/rebalance-template=true; kubectl patch kafka/lagoon --type merge -p '{spec: {cruiseControl: {autoRebalance: […]}}}'")?;
    let template = json!({
        "apiVersion": "kafka.strimzi.io/v1",
        "kind": "KafkaRebalance",
        "metadata": {"name": TEMPLATE, "annotations": {"strimzi.io/rebalance-template": "true"}},
        "spec": {},
    });
    let template: KafkaRebalance = serde_json::from_value(template)?;
    guide.api::<KafkaRebalance>().create(&PostParams::default(), &template).await.context("could not make it")?;
    let modes = ["add-brokers", "remove-brokers"].map(|mode| json!({"mode": mode, "template": {"name": TEMPLATE}}));
    let cluster = guide.cluster.clone();
    guide.patch::<Kafka>(&cluster, &json!({"spec": {"cruiseControl": {"autoRebalance": modes}}})).await?;
    idle(guide, "the operator is ready to rebalance by itself").await?;

    guide.tell("Two more brokers.")?;
    scale(guide, 5).await?;
    follow(guide, AutoRebalanceState::RebalanceOnScaleUp, "add-brokers").await?;
    idle(guide, "and rests again").await?;
    let brokers = guide.picture().await?;
    let filled = [3, 4].iter().all(|id| brokers.0.get(id).is_some_and(|it| it.replicas > 0));
    guide.promise(filled, "both new brokers hold their share")?;

    guide.tell("And two less: they are emptied first, and only then removed.")?;
    scale(guide, 3).await?;
    follow(guide, AutoRebalanceState::RebalanceOnScaleDown, "remove-brokers").await?;
    let pods = [pod_of(guide, 3), pod_of(guide, 4)];
    guide
        .until("both brokers are gone, and Kafka has forgotten them", Duration::from_secs(120), async |guide| {
            let mut left = 0;
            for pod in &pods {
                left += usize::from(guide.pod(pod).await?.is_some());
            }
            let registered = guide.kafka.describe_cluster().await?.brokers.len();
            Ok(Standing::reached_if(
                left == 0 && registered == 3,
                format!("{left} pods left, {registered} brokers registered"),
            ))
        })
        .await?;
    idle(guide, "and rests again").await?;
    guide.picture().await?;
    Ok(())
}

/// Waits until automatic rebalancing has nothing to do.
async fn idle<W: Write>(guide: &mut Guide<W>, promise: &str) -> anyhow::Result<()> {
    guide
        .until(promise, Duration::from_secs(180), async |guide| {
            let status = guide.kafka_resource().await?.status.and_then(|status| status.auto_rebalance);
            let Some(status) = status else {
                return Ok(Standing::Not("it does not rebalance by itself yet".into(), None));
            };
            let resting = status.state == AutoRebalanceState::Idle && status.modes.is_empty();
            Ok(Standing::reached_if(resting, format!("{:?}", status.state)))
        })
        .await
}

/// Waits until the rebalance of a mode runs, and follows it to its end. The resource goes when it is done.
async fn follow<W: Write>(guide: &mut Guide<W>, state: AutoRebalanceState, mode: &str) -> anyhow::Result<()> {
    let name = format!("{}-auto-rebalancing-{mode}", guide.cluster);
    guide
        .until(&format!("a rebalance was made for it: {name}"), Duration::from_secs(120), async |guide| {
            let status = guide.kafka_resource().await?.status.and_then(|status| status.auto_rebalance);
            let begun = status.as_ref().is_some_and(|it| it.state == state);
            let made = guide.rebalance(&name).await?.is_some();
            Ok(Standing::reached_if(begun && made, "waiting for the brokers and the engine"))
        })
        .await?;
    guide
        .until("it ran to its end", Duration::from_secs(180), async |guide| {
            let Some(found) = guide.rebalance(&name).await? else { return Ok(Standing::Reached) };
            if found.state() == RebalanceState::Ready {
                return Ok(Standing::Reached);
            }
            Ok(Standing::Not(told(&found), guide.progress(&name).await?))
        })
        .await
}
