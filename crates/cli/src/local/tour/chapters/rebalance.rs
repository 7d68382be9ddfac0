//! Chapter 2: a rebalance that a person asks for, looks at, approves and follows; here to empty a broker.

use std::io::Write;
use std::time::Duration;

use anyhow::Context;
use evenkeel_api::rebalance::RebalanceState;
use evenkeel_api::{KafkaRebalance, annotations, labels};
use kube::api::PostParams;
use serde_json::{Value, json};

use super::super::guide::{Guide, Standing};
use super::super::seen::told;
use super::{pod_of, scale};

/// The rebalance of this chapter.
const NAME: &str = "empty-broker-3";

pub(crate) async fn play<W: Write>(guide: &mut Guide<W>) -> anyhow::Result<()> {
    guide.tell("Broker 3 is to go after all, so somebody asks for its data to be moved away first.")?;
    guide.command("kubectl apply -f - <<< '{kind: KafkaRebalance, spec: {mode: remove-brokers, brokers: [3]}, …}'")?;
    let rebalance = json!({
        "apiVersion": "kafka.strimzi.io/v1",
        "kind": "KafkaRebalance",
        "metadata": {"name": NAME, "labels": {labels::CLUSTER: guide.cluster}},
        "spec": {"mode": "remove-brokers", "brokers": [3]},
    });
    let rebalance: KafkaRebalance = serde_json::from_value(rebalance)?;
    guide.api::<KafkaRebalance>().create(&PostParams::default(), &rebalance).await.context("could not ask")?;
    reach(guide, NAME, RebalanceState::ProposalReady, "a proposal is there, and nothing has moved").await?;
    let proposal = proposal(guide).await?;
    guide.print(&proposal)?;

    guide.tell("It looks good, and is approved: exactly this plan is carried out.")?;
    guide.command(&format!("kubectl annotate kafkarebalance/{NAME} strimzi.io/rebalance=approve"))?;
    let approval = json!({"metadata": {"annotations": {annotations::REBALANCE: "approve"}}});
    guide.patch::<KafkaRebalance>(NAME, &approval).await?;
    reach(guide, NAME, RebalanceState::Ready, "the data has moved").await?;
    let brokers = guide.picture().await?;
    guide.promise(brokers.0.get(&3).is_some_and(|it| it.replicas == 0), "broker 3 is empty")?;

    guide.tell("Now there is nothing against one broker less.")?;
    scale(guide, 3).await?;
    let pod = pod_of(guide, 3);
    guide
        .until("broker 3 is gone, and Kafka has forgotten it", Duration::from_secs(60), async |guide| {
            let gone = guide.pod(&pod).await?.is_none();
            let registered = guide.kafka.describe_cluster().await?.brokers.iter().any(|it| it.id.0 == 3);
            let text = format!(
                "pod {}, {}",
                if gone { "gone" } else { "there" },
                if registered { "registered" } else { "forgotten" }
            );
            Ok(Standing::reached_if(gone && !registered, text))
        })
        .await?;
    guide.until_ready().await
}

/// Waits until a rebalance has come to a state, and shows the way there. One that ends elsewhere is not waited for.
async fn reach<W: Write>(
    guide: &mut Guide<W>,
    name: &str,
    wanted: RebalanceState,
    promise: &str,
) -> anyhow::Result<()> {
    guide
        .until(promise, Duration::from_secs(120), async |guide| {
            let found = guide.rebalance(name).await?.with_context(|| format!("{name} is gone"))?;
            let state = found.state();
            if state == wanted {
                return Ok(Standing::Reached);
            }
            anyhow::ensure!(state != RebalanceState::Stopped, "{}", told(&found));
            let percent = if state == RebalanceState::Rebalancing { guide.progress(name).await? } else { None };
            Ok(Standing::Not(told(&found), percent))
        })
        .await
}

/// What would move, as the resource tells it.
async fn proposal<W: Write>(guide: &Guide<W>) -> anyhow::Result<String> {
    let found = guide.rebalance(NAME).await?.context("it is gone")?;
    let result = found.status.and_then(|status| status.optimization_result).context("it has no proposal")?;
    let result = serde_json::to_value(result)?;
    let number = |key: &str| result.get(key).and_then(Value::as_f64).unwrap_or_default();
    Ok(format!(
        "{} replicas with {} MB would move, {} leaders would change; balancedness {:.1} -> {:.1}",
        number("numReplicaMovements"),
        number("dataToMoveMB"),
        number("numLeaderMovements"),
        number("onDemandBalancednessScoreBefore"),
        number("onDemandBalancednessScoreAfter"),
    ))
}
