//! Chapter 2: a rebalance that a person asks for, looks at, approves and follows.

use std::io::Write;

use anyhow::Context;
use evenkeel_api::rebalance::RebalanceState;
use evenkeel_api::{KafkaRebalance, annotations};
use serde_json::Value;

use super::super::brokers::Placement;
use super::super::guide::{Guide, Standing};
use super::super::seen::told;
use super::manifests;

/// The rebalance of this chapter.
const NAME: &str = "fill-broker-3";
const SPEC: &str = "
  mode: add-brokers
  brokers: [3]
";

pub(crate) async fn play<W: Write>(guide: &mut Guide<W>) -> anyhow::Result<()> {
    guide.tell(
        "Kafka moves nothing by itself, so the new broker has hardly anything to do. Somebody asks for a plan.",
    )?;
    let before = Placement::look(&guide.kafka).await?;
    guide.create::<KafkaRebalance>(&manifests::rebalance(NAME, None, SPEC)).await?;
    reach(guide, NAME, RebalanceState::ProposalReady, "a proposal is there").await?;
    let proposal = proposal(guide).await?;
    guide.print(&proposal)?;
    guide
        .throughout("nothing moves before it is approved", async |guide| {
            Ok(Placement::look(&guide.kafka).await?.moved_since(&before) == 0)
        })
        .await?;

    guide.tell("It looks good, and is approved: exactly this plan is carried out.")?;
    guide.annotate::<KafkaRebalance>(NAME, annotations::REBALANCE, "approve").await?;
    reach(guide, NAME, RebalanceState::Ready, "the data has moved").await?;
    guide.picture().await?;
    let had = before.held_by(&[3]);
    guide
        .until("broker 3 has its share of the work", async |guide| {
            let held = Placement::look(&guide.kafka).await?.held_by(&[3]);
            Ok(Standing::reached_if(held > had, format!("it holds {held} replicas, and held {had}")))
        })
        .await?;
    guide.until_whole().await
}

/// Waits until a rebalance has come to a state, and shows the way there. One that ends elsewhere is not waited for.
pub(super) async fn reach<W: Write>(
    guide: &mut Guide<W>,
    name: &str,
    wanted: RebalanceState,
    promise: &str,
) -> anyhow::Result<()> {
    guide
        .until(promise, async |guide| {
            let Some(found) = guide.rebalance(name).await? else {
                return Ok(Standing::Never(format!("{name} is gone")));
            };
            let state = found.state();
            if state == wanted {
                return Ok(Standing::Reached);
            }
            if matches!(state, RebalanceState::Stopped | RebalanceState::NotReady) {
                return Ok(Standing::Never(told(&found)));
            }
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
