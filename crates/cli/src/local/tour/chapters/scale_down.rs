//! Chapter 5: brokers are to go. They are emptied first, and removed only then.

use std::io::Write;

use evenkeel_api::KafkaNodePool;
use evenkeel_api::kafka::AutoRebalanceMode;

use super::super::guide::Guide;
use super::automatic::{follow, idle};
use super::{POOL, gone};

pub(crate) async fn play<W: Write>(guide: &mut Guide<W>) -> anyhow::Result<()> {
    guide.tell("And two less. The same wish was refused in chapter 1; now somebody is there to empty them.")?;
    guide.scale::<KafkaNodePool>(POOL, 3).await?;
    follow(guide, AutoRebalanceMode::RemoveBrokers).await?;
    gone(guide, &[3, 4]).await?;
    idle(guide, "and the operator rests again").await?;
    guide.until_ready().await?;
    guide.until_whole().await?;
    guide.picture().await?;
    Ok(())
}
