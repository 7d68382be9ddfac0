//! Chapter 2: a rebalance that a person asks for, looks at, approves and follows.

use std::io::Write;

use anyhow::{Context, ensure};
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
    let moves =
        guide.told_beside(NAME, "biggestMoves.json").await?.context("it does not say which moves are the biggest")?;
    guide.tell("Its biggest moves, and why each is made:")?;
    for line in reasons(&moves)? {
        guide.print(&line)?;
    }
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

/// The biggest moves of a proposal with their reasons, a line each. One without a reason is none that a person could
/// approve.
fn reasons(moves: &str) -> anyhow::Result<Vec<String>> {
    const SHOWN: usize = 3;
    let moves: Vec<Value> = serde_json::from_str(moves).context("the biggest moves cannot be read")?;
    ensure!(!moves.is_empty(), "there are no biggest moves");
    let line = |it: &Value| {
        let reason = it["reason"].as_str().filter(|reason| !reason.is_empty()).context("a move without a reason")?;
        let topic = it["topic"].as_str().unwrap_or_default();
        let megabytes = it["bytes"].as_f64().unwrap_or_default() / 1e6;
        Ok(format!("  {topic}-{}, {megabytes:.0} MB: {reason}", it["partition"]))
    };
    moves.iter().take(SHOWN).map(line).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_moves_are_told_with_their_reasons_and_one_without_is_not_passed_over() {
        let one = r#"{"topic":"orders","partition":3,"bytes":20000000,"reason":"RackAwareGoal: so"}"#;
        let told = reasons(&format!("[{one},{one},{one},{one}]")).unwrap();
        assert_eq!(told, ["  orders-3, 20 MB: RackAwareGoal: so"; 3]);
        assert!(reasons("[]").is_err() && reasons("no").is_err());
        assert!(reasons(r#"[{"topic":"orders","partition":3,"bytes":1,"reason":""}]"#).is_err());
    }
}
