//! Chapter 7: data piles up on some brokers; the engine sees it, and the operator has it mended.

use std::io::Write;

use anyhow::Context;
use evenkeel_api::annotations::REBALANCE_TEMPLATE;
use evenkeel_api::kafka::AutoRebalanceMode;
use evenkeel_api::{Kafka, KafkaRebalance};
use evenkeel_operator::auto_rebalance::tracker::{Tracker, tracker_name};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

use super::super::brokers::Placement;
use super::super::guide::{Guide, Standing};
use super::automatic::{follow_begun, idle, until_begun};
use super::{TEMPLATE, manifests};
use crate::local::data;

/// What is watched, and what is mended.
const GOALS: &str = "RackAwareGoal, ReplicaCapacityGoal, DiskCapacityGoal, DiskUsageDistributionGoal";
/// The goal that is violated here.
const VIOLATED: &str = "DiskUsageDistributionGoal";
const WATCHING: &str = "steady";
/// The topic that lies on two brokers, how many partitions it has, and how much comes into each, in records of this size.
const TOPIC: &str = "manifests";
const PARTITIONS: i32 = 12;
const BYTES: u64 = 45_000_000;
const RECORD: u64 = 1_000_000;

pub(crate) async fn play<W: Write>(guide: &mut Guide<W>) -> anyhow::Result<()> {
    let before = guide.brokers().await?;
    let [one, other, idle_one] = before.0.keys().copied().collect::<Vec<_>>()[..] else {
        return guide.promise(false, "there are three brokers");
    };
    guide.tell(&format!(
        "Nobody scales, and yet load shifts: somebody makes a topic by hand, all of it on brokers {one} and {other}, and \
         a lot is written to it."
    ))?;
    let lists: Vec<[i32; 2]> =
        (0..PARTITIONS).map(|number| if number % 2 == 0 { [one, other] } else { [other, one] }).collect();
    let listed: Vec<String> = lists.iter().map(|[leader, follower]| format!("{leader}:{follower}")).collect();
    let at = guide.bootstrap.clone();
    guide.command(&format!(
        "kafka-topics.sh --bootstrap-server {at} --create --topic {TOPIC} --replica-assignment {}",
        listed.join(",")
    ))?;
    data::make_placed_topic(&guide.kafka, TOPIC, &lists).await?;
    let bytes = guide.backstage.fitting(BYTES);
    guide.command(&format!(
        "kafka-producer-perf-test.sh --topic {TOPIC} --num-records {} --record-size {RECORD} --throughput -1 \
         --producer-props bootstrap.servers={at}",
        bytes * u64::from(PARTITIONS.unsigned_abs()) / RECORD
    ))?;
    guide.backstage.pour(&guide.kafka, TOPIC, PARTITIONS, bytes).await?;
    // All of it is there before anybody looks: what is evened out in the midst of it is only a part.
    let uneven = guide.picture().await?;

    guide.tell("Kafka leaves it there. From now on the engine shall watch how full disks are.")?;
    let spec = format!("\n  goals: [{GOALS}]\n  skipHardGoalCheck: true\n");
    guide.create::<KafkaRebalance>(&manifests::rebalance(WATCHING, Some(REBALANCE_TEMPLATE), &spec)).await?;
    let modes = [("add-brokers", TEMPLATE), ("remove-brokers", TEMPLATE), ("imbalance", WATCHING)];
    let modes = modes.map(|(mode, template)| json!({"mode": mode, "template": {"name": template}}));
    let config = json!({"anomaly.detection.goals": GOALS.replace(' ', "")});
    let wanted = json!({"spec": {"cruiseControl": {"config": config, "autoRebalance": modes}}});
    let cluster = guide.cluster.clone();
    guide.patch::<Kafka>(&cluster, &wanted).await?;
    let begun = until_begun(guide, AutoRebalanceMode::Imbalance).await?;
    let goals = goals_found(guide).await?;
    guide.promise(goals.contains(VIOLATED), &format!("the engine has found what is violated: {goals}"))?;
    follow_begun(guide, &begun).await?;
    idle(guide, "and the operator rests again").await?;
    guide
        .until(&format!("broker {idle_one} has taken its part of it"), async |guide| {
            let held = Placement::look(&guide.kafka).await?.of_topic_on(TOPIC, idle_one);
            Ok(Standing::reached_if(held > 0, "it holds none of it"))
        })
        .await?;
    let even = guide.picture().await?;
    // Within a tenth of the mean is what the goal asks for, of what the engine knew then; the rest is left to the next time.
    let closer = even.spread() * 3 < uneven.spread() * 2;
    guide.promise(closer, "the fullest and the emptiest broker are closer to each other by a third, or more")?;
    guide.until_whole().await
}

/// The goals that the rebalance was made for, as the operator remembers them.
async fn goals_found<W: Write>(guide: &Guide<W>) -> anyhow::Result<String> {
    let name = tracker_name(&guide.cluster);
    let found = guide.api::<ConfigMap>().get(&name).await.with_context(|| format!("could not read {name}"))?;
    let (memory, _) = Tracker::read(found.data.as_ref(), Timestamp::now());
    Ok(memory.imbalance.goals.into_iter().collect::<Vec<_>>().join(", "))
}
