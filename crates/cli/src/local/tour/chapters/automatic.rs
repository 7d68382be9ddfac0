//! Rebalances that the operator makes by itself: when they have begun, how they end, what is queued behind them.

use std::io::Write;

use evenkeel_api::KafkaRebalance;
use evenkeel_api::kafka::{AutoRebalanceMode, AutoRebalanceState, AutoRebalanceStatus};
use evenkeel_api::rebalance::RebalanceState;
use evenkeel_operator::auto_rebalance::state::state_of;
use kube::ResourceExt;
use kube::api::ListParams;

use super::super::guide::{Guide, Standing};
use super::super::seen::told;

/// What automatic rebalancing says of itself, if it is on.
async fn status<W: Write>(guide: &Guide<W>) -> anyhow::Result<Option<AutoRebalanceStatus>> {
    Ok(guide.kafka_resource().await?.status.and_then(|status| status.auto_rebalance))
}

/// Waits until automatic rebalancing has nothing to do.
pub(super) async fn idle<W: Write>(guide: &mut Guide<W>, promise: &str) -> anyhow::Result<()> {
    guide
        .until(promise, async |guide| {
            let Some(status) = status(guide).await? else {
                return Ok(Standing::Not("it does not rebalance by itself yet".into(), None));
            };
            // Goals that nothing can mend are listed too, and nobody waits for them.
            let queued = status.modes.iter().any(|it| it.mode != AutoRebalanceMode::Imbalance);
            let resting = status.state == AutoRebalanceState::Idle && !queued;
            Ok(Standing::reached_if(resting, queue(&status)))
        })
        .await
}

/// Waits until this is what runs and what waits, in this order, and shows it.
pub(super) async fn until_queued<W: Write>(
    guide: &mut Guide<W>,
    promise: &str,
    wanted: &[(AutoRebalanceMode, &[i32])],
) -> anyhow::Result<()> {
    let mut shown = String::new();
    guide
        .until(promise, async |guide| {
            let Some(status) = status(guide).await? else { return Ok(Standing::Never("it is switched off".into())) };
            let found = status.modes.iter().map(|it| (it.mode, it.brokers.as_slice()));
            let runs = wanted.first().is_some_and(|(mode, _)| status.state == state_of(*mode));
            let queued = found.eq(wanted.iter().copied());
            shown = queue(&status);
            Ok(Standing::reached_if(runs && queued, shown.as_str()))
        })
        .await?;
    Ok(guide.print(&shown)?)
}

/// What is done, and what is queued, in one line.
fn queue(status: &AutoRebalanceStatus) -> String {
    let modes = status.modes.iter().map(|it| format!("{} {:?}", it.mode, it.brokers)).collect::<Vec<_>>();
    let queued = if modes.is_empty() { "nothing queued".to_owned() } else { modes.join(", then ") };
    format!("{:?}: {queued}", status.state)
}

/// Waits until the rebalance of a mode runs, and follows it to its end.
pub(super) async fn follow<W: Write>(guide: &mut Guide<W>, mode: AutoRebalanceMode) -> anyhow::Result<()> {
    let begun = until_begun(guide, mode).await?;
    follow_begun(guide, &begun).await
}

/// A rebalance that was made.
pub(super) struct Begun {
    mode: AutoRebalanceMode,
    pub(super) name: String,
    uid: Option<String>,
}

/// Waits until there is a rebalance of a mode.
pub(super) async fn until_begun<W: Write>(guide: &mut Guide<W>, mode: AutoRebalanceMode) -> anyhow::Result<Begun> {
    let prefix = format!("{}-auto-rebalancing-{mode}", guide.cluster);
    let mut found = None;
    guide
        .until("a rebalance was made for it", async |guide| {
            let status = status(guide).await?;
            let begun = status.as_ref().is_some_and(|it| it.state == state_of(mode));
            let all = guide.api::<KafkaRebalance>().list(&ListParams::default()).await?;
            found = all.into_iter().find(|it| it.name_any().starts_with(&prefix));
            let text = status.as_ref().map(queue).unwrap_or_default();
            Ok(Standing::reached_if(begun && found.is_some(), text))
        })
        .await?;
    let (name, uid) = found.map(|it| (it.name_any(), it.uid())).unwrap_or_default();
    guide.print(&format!("kafkarebalance/{name}"))?;
    Ok(Begun { mode, name, uid })
}

/// Follows a rebalance to its end. The resource goes when it is done, and what it was last seen as tells how it ended. A
/// drain that failed is tried again by the operator, and is waited for; of any other there is only this one.
pub(super) async fn follow_begun<W: Write>(guide: &mut Guide<W>, begun: &Begun) -> anyhow::Result<()> {
    let is_drain = begun.mode == AutoRebalanceMode::RemoveBrokers;
    let mut trouble = None;
    guide
        .until("it ran to its end", async |guide| {
            let Some(found) = guide.rebalance(&begun.name).await? else {
                return Ok(trouble.clone().map_or(Standing::Reached, |text| Standing::Not(text, None)));
            };
            if !is_drain && found.uid() != begun.uid {
                return Ok(Standing::Never("another one was made in its place".into()));
            }
            match found.state() {
                RebalanceState::Ready => return Ok(Standing::Reached),
                RebalanceState::Stopped | RebalanceState::NotReady if !is_drain => {
                    return Ok(Standing::Never(told(&found)));
                }
                RebalanceState::Stopped | RebalanceState::NotReady => trouble = Some(told(&found)),
                _ => trouble = None,
            }
            Ok(Standing::Not(told(&found), guide.progress(&begun.name).await?))
        })
        .await
}
