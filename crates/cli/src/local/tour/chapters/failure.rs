//! Chapter 8: the operator and the engine are killed while data moves, and nothing is lost.

use std::io::Write;

use anyhow::Context;
use evenkeel_api::kafka::AutoRebalanceMode;
use evenkeel_api::rebalance::RebalanceState;
use evenkeel_api::{KafkaNodePool, KafkaRebalance, Reason, labels};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::ListParams;
use serde_json::json;

use super::super::guide::{Guide, Standing};
use super::super::seen::told;
use super::automatic::{Begun, follow_begun, idle, until_begun};
use super::{POOL, TEMPLATE};

/// How much may be moved in a second: it should last until everybody is dead.
const BYTES_PER_SECOND: u64 = 25_000_000;

pub(crate) async fn play<W: Write>(guide: &mut Guide<W>) -> anyhow::Result<()> {
    guide.tell("A broker comes, its data slowly this time. In the middle of it everybody is killed.")?;
    let throttle = guide.backstage.fitting(BYTES_PER_SECOND);
    guide.patch::<KafkaRebalance>(TEMPLATE, &json!({"spec": {"replicationThrottle": throttle}})).await?;
    guide.scale::<KafkaNodePool>(POOL, 3).await?;
    let begun = until_begun(guide, AutoRebalanceMode::AddBrokers).await?;
    guide
        .until("data moves", async |guide| {
            let percent = guide.progress(&begun.name).await?;
            let moving = percent.is_some_and(|percent| percent > 0);
            still_runs(guide, &begun, moving, "nothing has moved yet").await
        })
        .await?;

    guide.tell("First the operator, as by kill -9; it is a part of this process, so no command is shown.")?;
    let operator = guide.backstage.operator.clone().context("there is no operator to kill")?;
    operator.kill().await;
    let killed = engine(guide).await?.context("there is no engine to kill")?;
    guide.kill_pod(&killed.name_any()).await?;
    guide
        .until("another engine is there, and nobody is there to ask it", async |guide| {
            let another = engine(guide).await?.is_some_and(|it| it.uid() != killed.uid());
            still_runs(guide, &begun, another, "the old one is ending").await
        })
        .await?;
    guide.until_engine().await?;

    guide.tell("Another operator starts. It knows what stands in the API, and nothing else.")?;
    operator.start_again().context("could not start an operator")?;
    follow_begun(guide, &begun).await?;
    idle(guide, "and the operator rests again").await?;
    let failed = guide.warning(Reason::AutoRebalanceFailed).await?;
    guide.promise(failed.is_none(), "it was one rebalance from beginning to end, and none has failed")?;
    guide.until_ready().await?;
    let brokers = guide.picture().await?;
    guide.promise(brokers.0.get(&2).is_some_and(|it| it.replicas > 0), "the new broker holds its share")?;
    guide.until_whole().await
}

/// Reached if it is so while the rebalance runs.
async fn still_runs<W: Write>(
    guide: &Guide<W>,
    begun: &Begun,
    reached: bool,
    otherwise: &str,
) -> anyhow::Result<Standing> {
    let Some(found) = guide.rebalance(&begun.name).await? else {
        return Ok(Standing::Never("it was over before".into()));
    };
    match found.state() {
        RebalanceState::Ready | RebalanceState::Stopped | RebalanceState::NotReady => Ok(Standing::Never(told(&found))),
        _ => Ok(Standing::reached_if(reached, otherwise)),
    }
}

/// The pod of the engine, unless it is ending.
async fn engine<W: Write>(guide: &Guide<W>) -> anyhow::Result<Option<Pod>> {
    let named = format!("{}={}-cruise-control", labels::NAME, guide.cluster);
    let pods = guide.api::<Pod>().list(&ListParams::default().labels(&named)).await.context("could not list pods")?;
    Ok(pods.items.into_iter().find(|pod| pod.metadata.deletion_timestamp.is_none()))
}
