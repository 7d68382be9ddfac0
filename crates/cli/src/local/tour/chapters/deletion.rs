//! Chapter 3: a rebalance that is deleted while it runs is followed until it is stopped; then a broker is emptied and
//! removed.

use std::io::Write;

use evenkeel_api::rebalance::RebalanceState;
use evenkeel_api::{KafkaNodePool, KafkaRebalance, annotations};

use super::super::brokers::Placement;
use super::super::guide::{Guide, Standing};
use super::super::seen::told as told_of;
use super::rebalance::reach;
use super::{POOL, gone, manifests};

/// The rebalance that is deleted. It is slow on purpose: a megabyte a second.
const SLOW: &str = "empty-slowly";
const BYTES_PER_SECOND: u64 = 1_000_000;
/// The key of its ConfigMap under which the engine's own words about the run stand.
const EXECUTOR: &str = "executorState";
/// The one after it.
const NAME: &str = "empty-broker-3";
const SPEC: &str = "
  mode: remove-brokers
  brokers: [3]
";

pub(crate) async fn play<W: Write>(guide: &mut Guide<W>) -> anyhow::Result<()> {
    guide.tell("Broker 3 is to go after all. Somebody has it emptied, slowly, and then thinks better of it.")?;
    let throttle = guide.backstage.fitting(BYTES_PER_SECOND);
    let slow = format!("{SPEC}  replicationThrottle: {throttle}\n");
    guide.create::<KafkaRebalance>(&manifests::rebalance(SLOW, None, &slow)).await?;
    reach(guide, SLOW, RebalanceState::ProposalReady, "a proposal is there").await?;
    guide.annotate::<KafkaRebalance>(SLOW, annotations::REBALANCE, "approve").await?;
    reach(guide, SLOW, RebalanceState::Rebalancing, "data moves").await?;
    guide.delete::<KafkaRebalance>(SLOW).await?;
    let told = guide.told_beside(SLOW, EXECUTOR).await?;
    guide
        .throughout("it is deleted, and yet it stays, and says where it stands", async |guide| {
            let Some(found) = guide.rebalance(SLOW).await? else { return Ok(false) };
            let goes = found.metadata.deletion_timestamp.is_some();
            Ok(goes && found.state() == RebalanceState::Rebalancing)
        })
        .await?;
    guide
        .until("its progress is still told", async |guide| {
            let percent = guide.progress(SLOW).await?;
            let now = guide.told_beside(SLOW, EXECUTOR).await?;
            if now.is_some() && now != told {
                return Ok(Standing::Reached);
            }
            Ok(match guide.rebalance(SLOW).await? {
                Some(found) => Standing::Not(told_of(&found), percent),
                None => Standing::Never(format!("{SLOW} is gone")),
            })
        })
        .await?;

    guide.tell("A run that nobody sees would be worse than one that does not go. It goes when it is stopped.")?;
    guide.annotate::<KafkaRebalance>(SLOW, annotations::REBALANCE, "stop").await?;
    guide
        .until("it was stopped, and is gone", async |guide| {
            let found = guide.rebalance(SLOW).await?;
            Ok(Standing::reached_if(found.is_none(), found.as_ref().map(told_of).unwrap_or_default()))
        })
        .await?;
    guide.until_whole().await?;

    guide.tell("The second thoughts were wrong: once more, at full speed, and approved beforehand.")?;
    let manifest = manifests::rebalance(NAME, Some(annotations::REBALANCE_AUTO_APPROVAL), SPEC);
    guide.create::<KafkaRebalance>(&manifest).await?;
    reach(guide, NAME, RebalanceState::Ready, "the data has moved").await?;
    guide.picture().await?;
    guide
        .until("broker 3 is empty", async |guide| {
            let held = Placement::look(&guide.kafka).await?.held_by(&[3]);
            Ok(Standing::reached_if(held == 0, format!("it holds {held} replicas")))
        })
        .await?;
    guide.tell("Now there is nothing against one broker less.")?;
    guide.scale::<KafkaNodePool>(POOL, 3).await?;
    gone(guide, &[3]).await?;
    guide.until_ready().await?;
    guide.until_whole().await
}
