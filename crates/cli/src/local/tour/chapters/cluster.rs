//! Chapter 1: a cluster comes up, grows, and does not shrink over its own data.

use std::collections::BTreeSet;
use std::io::Write;

use evenkeel_api::{KafkaNodePool, Reason};

use super::super::brokers::{Brokers, Placement};
use super::super::guide::{Guide, Standing};
use super::super::seen::is_ready;
use super::{POOL, pod_of};
use crate::local::data;

/// The topic that gives the new broker something to hold, and how many partitions it has.
const TOPIC: (&str, i32) = ("parcels", 12);
/// What is written to each of them.
const BYTES: usize = 512 * 1024;

pub(crate) async fn play<W: Write>(guide: &mut Guide<W>) -> anyhow::Result<()> {
    guide.tell(
        "A Kafka with three controllers and three brokers in three zones was applied. The operator writes pod sets, \
         certificates and configurations; the node runs the pods; the engine watches the cluster.",
    )?;
    guide.command(&format!("kubectl wait kafka/{} --for=condition=Ready --timeout=5m", guide.cluster))?;
    guide.until_ready().await?;
    guide.until_engine().await?;
    let wanted = guide.topics.iter().map(|(_, partitions)| partitions).sum::<i32>();
    guide
        .until(&format!("clients find the {wanted} partitions of its topics"), async |guide| {
            let placement = Placement::look(&guide.kafka).await?;
            let found = |(name, wanted): &(String, i32)| i32::try_from(placement.of_topic(name)) == Ok(*wanted);
            let missing: Vec<&str> =
                guide.topics.iter().filter(|it| !found(it)).map(|(name, _)| name.as_str()).collect();
            Ok(Standing::reached_if(missing.is_empty(), format!("not whole yet: {}", missing.join(", "))))
        })
        .await?;
    let before = guide.picture().await?;
    guide.promise(before.0.keys().eq(&[0, 1, 2]), "three brokers are up")?;
    let zones: BTreeSet<&String> = before.0.values().filter_map(|broker| broker.rack.as_ref()).collect();
    guide.promise(zones.len() == 3, "each stands in a zone of its own")?;

    guide.tell("More room is wanted: a fourth broker.")?;
    guide.scale::<KafkaNodePool>(POOL, 4).await?;
    let pod = pod_of(guide, 3);
    guide
        .until("broker 3 has joined the cluster", async |guide| {
            let up = guide.pod(&pod).await?.is_some_and(|pod| is_ready(&pod));
            let known = guide.pool(POOL).await?.status.is_some_and(|status| status.node_ids.contains(&3));
            let registered = guide.kafka.describe_cluster().await?.brokers.iter().any(|it| it.id.0 == 3 && !it.fenced);
            let text = format!("pod {pod}: {}", if up { "ready" } else { "starting" });
            Ok(Standing::reached_if(up && known && registered, text))
        })
        .await?;
    guide.until_ready().await?;

    guide.tell("Somebody makes a topic and writes to it, and Kafka puts part of it on the new broker.")?;
    let (topic, partitions) = TOPIC;
    guide.command(&format!(
        "kafka-topics.sh --bootstrap-server {} --create --topic {topic} --partitions {partitions} --replication-factor 3",
        guide.bootstrap
    ))?;
    let mut written = false;
    guide
        .until("broker 3 holds data", async |guide| {
            if !written {
                data::make_topic(&guide.kafka, topic, partitions).await?;
                data::write(&guide.kafka, topic, partitions, BYTES).await?;
                written = true;
            }
            let brokers = Brokers::look(&guide.kafka).await?;
            let holds = brokers.0.get(&3).is_some_and(|it| it.replicas > 0 && it.bytes > 0);
            Ok(Standing::reached_if(holds, "it holds nothing yet"))
        })
        .await?;
    guide.picture().await?;

    guide.tell("Now somebody scales down without a thought. What broker 3 holds would be short of a replica.")?;
    let uid = guide.pod(&pod).await?.and_then(|pod| pod.metadata.uid);
    guide.scale::<KafkaNodePool>(POOL, 3).await?;
    let mut said = String::new();
    guide
        .until("the operator refuses, and says which broker is in the way", async |guide| {
            said = guide.warning(Reason::ScaleDownPreventionCheck).await?.unwrap_or_default();
            Ok(Standing::reached_if(said.contains("broker 3 "), "no warning yet"))
        })
        .await?;
    guide.print(&said)?;
    guide.until_ready().await?;
    let pool = guide.pool(POOL).await?;
    let kept = pool.spec.replicas == 3 && pool.status.is_some_and(|status| status.node_ids.contains(&3));
    guide.promise(kept, "the wish stands in the spec, and broker 3 in the status")?;
    guide
        .throughout("broker 3 runs on, the same as before", async |guide| {
            let found = guide.pod(&pod).await?;
            Ok(found
                .is_some_and(|it| it.metadata.deletion_timestamp.is_none() && is_ready(&it) && it.metadata.uid == uid))
        })
        .await?;

    guide.tell("The wish is taken back.")?;
    guide.scale::<KafkaNodePool>(POOL, 4).await?;
    guide
        .until("nothing is left to warn of", async |guide| {
            let warning = guide.warning(Reason::ScaleDownPreventionCheck).await?;
            Ok(Standing::reached_if(warning.is_none(), warning.unwrap_or_default()))
        })
        .await
}
