//! Chapter 1: a cluster comes up, grows, and does not shrink over its own data.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use anyhow::Context;
use evenkeel_api::Reason;
use evenkeel_kafka::calls::topics::{Layout, NewTopic};

use super::super::brokers::Brokers;
use super::super::guide::{Guide, Standing};
use super::super::seen::is_ready;
use super::{POOL, pod_of, scale};

/// The topic that gives the new broker something to hold.
const TOPIC: &str = "parcels";

pub(crate) async fn play<W: Write>(guide: &mut Guide<W>) -> anyhow::Result<()> {
    guide.tell(
        "A Kafka with three controllers and three brokers in three zones was applied. The operator writes pod sets, \
         certificates and configurations; the node runs the pods; the engine watches the cluster.",
    )?;
    guide.command("kubectl wait kafka/lagoon --for=condition=Ready")?;
    guide.until_ready().await?;
    let before = guide.picture().await?;
    guide.promise(before.0.len() == 3, "three brokers are up")?;
    let zones: std::collections::BTreeSet<_> = before.0.values().map(|broker| broker.rack.clone()).collect();
    guide.promise(zones.len() == 3, "each stands in a zone of its own")?;

    guide.tell("More room is wanted: a fourth broker.")?;
    scale(guide, 4).await?;
    let pod = pod_of(guide, 3);
    guide
        .until("broker 3 has joined the cluster", Duration::from_secs(60), async |guide| {
            let up = guide.pod(&pod).await?.is_some_and(|pod| is_ready(&pod));
            let known = guide.pool(POOL).await?.status.is_some_and(|status| status.node_ids.contains(&3));
            let registered =
                guide.kafka.describe_cluster().await.is_ok_and(|it| it.brokers.iter().any(|it| it.id.0 == 3));
            Ok(Standing::reached_if(
                up && known && registered,
                format!("pod {pod}: {}", if up { "ready" } else { "starting" }),
            ))
        })
        .await?;
    guide.until_ready().await?;

    guide.tell("Somebody makes a topic, and Kafka puts part of it on the new broker.")?;
    guide.command(&format!("kafka-topics.sh --create --topic {TOPIC} --partitions 12 --replication-factor 3 …"))?;
    make_topic(guide).await?;
    guide
        .until("broker 3 holds data", Duration::from_secs(30), async |guide| {
            let replicas = Brokers::look(&guide.kafka).await?.0.get(&3).map_or(0, |it| it.replicas);
            Ok(Standing::reached_if(replicas > 0, "it holds nothing yet"))
        })
        .await?;
    guide.picture().await?;

    guide.tell("Now somebody scales down without a thought. What broker 3 holds would be short of a replica.")?;
    scale(guide, 3).await?;
    guide
        .until("the operator refuses, and says why", Duration::from_secs(30), async |guide| {
            let warning = guide.warning(Reason::ScaleDownPreventionCheck).await?;
            Ok(Standing::reached_if(warning.is_some(), "no warning yet"))
        })
        .await?;
    if let Some(warning) = guide.warning(Reason::ScaleDownPreventionCheck).await? {
        guide.print(&warning)?;
    }
    guide.until_ready().await?;
    let pool = guide.pool(POOL).await?;
    let kept = pool.spec.replicas == 3 && pool.status.is_some_and(|status| status.node_ids.contains(&3));
    guide.promise(kept, "the wish stands in the spec, and broker 3 in the status")?;
    let still = guide.pod(&pod).await?.is_some_and(|pod| pod.metadata.deletion_timestamp.is_none() && is_ready(&pod));
    guide.promise(still, "broker 3 still runs")?;

    guide.tell("The wish is taken back.")?;
    scale(guide, 4).await?;
    guide
        .until("nothing is left to warn of", Duration::from_secs(30), async |guide| {
            let warning = guide.warning(Reason::ScaleDownPreventionCheck).await?;
            Ok(Standing::reached_if(warning.is_none(), warning.unwrap_or_default()))
        })
        .await
}

async fn make_topic<W: Write>(guide: &Guide<W>) -> anyhow::Result<()> {
    let layout = Layout::Automatic { partitions: Some(12), replication_factor: Some(3) };
    let topic = NewTopic { name: TOPIC.to_owned(), layout, configs: BTreeMap::new() };
    for (name, made) in guide.kafka.create_topics(&[topic], false).await.whole()? {
        made.with_context(|| format!("could not make the topic {name}"))?;
    }
    Ok(())
}
