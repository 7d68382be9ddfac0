//! Chapter 5: the engine is killed while data moves, and nothing is lost.

use std::io::Write;

use anyhow::Context;
use evenkeel_api::{KafkaNodePool, labels};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::ListParams;

use super::super::guide::{Guide, Standing};
use super::POOL;
use super::scaling::{Mode, follow_begun, idle, until_begun};

pub(crate) async fn play<W: Write>(guide: &mut Guide<W>) -> anyhow::Result<()> {
    guide.tell("A fourth broker once more. In the middle of it the engine is killed.")?;
    guide.scale::<KafkaNodePool>(POOL, 4).await?;
    let name = until_begun(guide, Mode::AddBrokers).await?;
    guide
        .until("data moves", async |guide| {
            let percent = guide.progress(&name).await?;
            let over = guide.rebalance(&name).await?.is_none();
            Ok(Standing::reached_if(over || percent.is_some_and(|percent| percent > 0), "nothing has moved yet"))
        })
        .await?;
    let killed = engine(guide).await?.context("there is no engine to kill")?;
    guide.delete::<Pod>(&killed.name_any()).await?;
    guide
        .until("another engine is there", async |guide| {
            let found = engine(guide).await?;
            let another = found.is_some_and(|it| it.uid() != killed.uid());
            Ok(Standing::reached_if(another, "the old one is ending"))
        })
        .await?;
    guide.until_engine().await?;
    follow_begun(guide, Mode::AddBrokers, &name).await?;
    idle(guide, "and the operator rests again").await?;
    let brokers = guide.picture().await?;
    guide.promise(brokers.0.get(&3).is_some_and(|it| it.replicas > 0), "the new broker holds its share")?;
    guide.until_whole().await
}

/// The pod of the engine, unless it is ending.
async fn engine<W: Write>(guide: &Guide<W>) -> anyhow::Result<Option<Pod>> {
    let named = format!("{}={}-cruise-control", labels::NAME, guide.cluster);
    let pods = guide.api::<Pod>().list(&ListParams::default().labels(&named)).await.context("could not list pods")?;
    Ok(pods.items.into_iter().find(|pod| pod.metadata.deletion_timestamp.is_none()))
}
