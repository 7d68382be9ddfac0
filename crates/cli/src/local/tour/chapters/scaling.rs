//! Chapter 4: brokers come and go, and their data by itself with them.

use std::io::Write;

use evenkeel_api::kafka::AutoRebalanceState;
use evenkeel_api::rebalance::RebalanceState;
use evenkeel_api::{Kafka, KafkaNodePool, KafkaRebalance};
use serde_json::json;

use super::super::guide::{Guide, Standing};
use super::super::seen::told;
use super::{POOL, gone};

/// The template of both modes.
const TEMPLATE: &str = "
apiVersion: kafka.strimzi.io/v1
kind: KafkaRebalance
metadata:
  name: even-out
  annotations:
    strimzi.io/rebalance-template: \"true\"
spec: {}
";

pub(crate) async fn play<W: Write>(guide: &mut Guide<W>) -> anyhow::Result<()> {
    guide.tell("From now on scaling shall take the data along. One template says how, for both directions.")?;
    guide.create::<KafkaRebalance>(TEMPLATE).await?;
    let modes = ["add-brokers", "remove-brokers"].map(|mode| json!({"mode": mode, "template": {"name": "even-out"}}));
    let cluster = guide.cluster.clone();
    guide.patch::<Kafka>(&cluster, &json!({"spec": {"cruiseControl": {"autoRebalance": modes}}})).await?;
    idle(guide, "the operator is ready to rebalance by itself").await?;

    guide.tell("Two more brokers.")?;
    guide.scale::<KafkaNodePool>(POOL, 5).await?;
    follow(guide, Mode::AddBrokers).await?;
    idle(guide, "and rests again").await?;
    let brokers = guide.picture().await?;
    let filled = [3, 4].iter().all(|id| brokers.0.get(id).is_some_and(|it| it.replicas > 0));
    guide.promise(filled, "both new brokers hold their share")?;

    guide.tell("And two less: they are emptied first, and only then removed.")?;
    guide.scale::<KafkaNodePool>(POOL, 3).await?;
    follow(guide, Mode::RemoveBrokers).await?;
    gone(guide, &[3, 4]).await?;
    idle(guide, "and rests again").await?;
    guide.until_ready().await?;
    guide.until_whole().await?;
    guide.picture().await?;
    Ok(())
}

/// Why data moves by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    AddBrokers,
    RemoveBrokers,
}

impl Mode {
    fn text(self) -> &'static str {
        match self {
            Self::AddBrokers => "add-brokers",
            Self::RemoveBrokers => "remove-brokers",
        }
    }

    fn state(self) -> AutoRebalanceState {
        match self {
            Self::AddBrokers => AutoRebalanceState::RebalanceOnScaleUp,
            Self::RemoveBrokers => AutoRebalanceState::RebalanceOnScaleDown,
        }
    }
}

/// Waits until automatic rebalancing has nothing to do.
pub(super) async fn idle<W: Write>(guide: &mut Guide<W>, promise: &str) -> anyhow::Result<()> {
    guide
        .until(promise, async |guide| {
            let status = guide.kafka_resource().await?.status.and_then(|status| status.auto_rebalance);
            let Some(status) = status else {
                return Ok(Standing::Not("it does not rebalance by itself yet".into(), None));
            };
            let resting = status.state == AutoRebalanceState::Idle && status.modes.is_empty();
            Ok(Standing::reached_if(resting, format!("{:?}", status.state)))
        })
        .await
}

/// Waits until the rebalance of a mode runs, and follows it to its end.
async fn follow<W: Write>(guide: &mut Guide<W>, mode: Mode) -> anyhow::Result<()> {
    let name = until_begun(guide, mode).await?;
    follow_begun(guide, mode, &name).await
}

/// Waits until there is a rebalance of a mode: its name.
pub(super) async fn until_begun<W: Write>(guide: &mut Guide<W>, mode: Mode) -> anyhow::Result<String> {
    let name = format!("{}-auto-rebalancing-{}", guide.cluster, mode.text());
    guide
        .until(&format!("a rebalance was made for it: {name}"), async |guide| {
            let status = guide.kafka_resource().await?.status.and_then(|status| status.auto_rebalance);
            let begun = status.as_ref().is_some_and(|it| it.state == mode.state());
            let made = guide.rebalance(&name).await?.is_some();
            Ok(Standing::reached_if(begun && made, "waiting for the brokers and the engine"))
        })
        .await?;
    Ok(name)
}

/// Follows a rebalance to its end. The resource goes when it is done, and what it was last seen as tells how it ended. A
/// drain that failed is tried again by the operator, and is waited for.
pub(super) async fn follow_begun<W: Write>(guide: &mut Guide<W>, mode: Mode, name: &str) -> anyhow::Result<()> {
    let mut trouble = None;
    guide
        .until("it ran to its end", async |guide| {
            let Some(found) = guide.rebalance(name).await? else {
                return Ok(trouble.clone().map_or(Standing::Reached, |text| Standing::Not(text, None)));
            };
            match found.state() {
                RebalanceState::Ready => return Ok(Standing::Reached),
                RebalanceState::Stopped | RebalanceState::NotReady if mode == Mode::AddBrokers => {
                    return Ok(Standing::Never(told(&found)));
                }
                RebalanceState::Stopped | RebalanceState::NotReady => trouble = Some(told(&found)),
                _ => trouble = None,
            }
            Ok(Standing::Not(told(&found), guide.progress(name).await?))
        })
        .await
}
