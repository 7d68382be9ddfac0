//! Chapter 6: one broker comes and another goes at the same time, and both are taken care of, one after the other.

use std::io::Write;

use evenkeel_api::KafkaNodePool;
use evenkeel_api::kafka::AutoRebalanceMode;

use super::super::brokers::Placement;
use super::super::guide::{Guide, Standing};
use super::automatic::{follow, idle, until_queued};
use super::{POOL, gone, manifests};

/// The pool that the new broker is in. Zones go round by id here, so 5 is in the zone of 2.
const NEW_POOL: &str = "pier";
const NEW_POOL_SPEC: &str = "
  replicas: 1
  roles: [broker]
  storage:
    type: persistent-claim
    size: 100Gi
";

pub(crate) async fn play<W: Write>(guide: &mut Guide<W>) -> anyhow::Result<()> {
    guide.tell(
        "Broker 2 is to be replaced by one of another pool, broker 5, in the same zone. Nobody waits for the one to be \
         there before the other is sent away.",
    )?;
    let seen = guide.transitions().await?.len();
    guide.create::<KafkaNodePool>(&manifests::pool(NEW_POOL, "[5]", NEW_POOL_SPEC)).await?;
    guide.scale::<KafkaNodePool>(POOL, 2).await?;
    let (remove, add) = (AutoRebalanceMode::RemoveBrokers, AutoRebalanceMode::AddBrokers);
    let queue: [(_, &[i32]); 2] = [(remove, &[2]), (add, &[5])];
    until_queued(guide, "both are queued: first who goes is emptied, then who comes is filled", &queue).await?;
    follow(guide, remove).await?;
    gone(guide, &[2]).await?;
    idle(guide, "then it was the other's turn, and the operator rests again").await?;

    let told = guide.transitions().await?;
    let turn = |state: &str| told.iter().skip(seen).position(|note| note.contains(&format!("to {state}")));
    let (down, up) = (turn("RebalanceOnScaleDown of brokers [2]"), turn("RebalanceOnScaleUp to brokers [5]"));
    guide.promise(down.is_some() && up.is_some() && down < up, "the events tell it in this order")?;
    guide.until_ready().await?;
    guide
        .until("broker 5 has what broker 2 had", async |guide| {
            let held = Placement::look(&guide.kafka).await?.held_by(&[5]);
            Ok(Standing::reached_if(held > 0, "it holds nothing"))
        })
        .await?;
    guide.until_whole().await?;
    guide.picture().await?;
    Ok(())
}
