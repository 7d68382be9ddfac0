//! One reconciliation: look, decide, write, ask, and decide again, until there is nothing left to do at once.

use std::time::Duration;

use evenkeel_api::KafkaRebalance;
use tokio::time::Instant;

use super::Shell;
use super::ask::Line;
use super::carry::{Carried, carry_out};
use super::observe::{Sight, Versions, observe};
use crate::error::{Error, Remedy};
use crate::kept;
use crate::rebalance::{FoundConfigMap, Next, decide, progress};

/// So many decisions lead to no other, however unlucky: a controller that makes more of them runs in a circle.
const MOST_ROUNDS: usize = 60;

/// When to come back at the latest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Back {
    After(Duration),
    /// It is gone.
    Never,
}

/// What the last reconciliation of a resource left behind. Our own writes come back to us as watch events; whoever
/// finds everything as it was left has nothing to do before its time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Left {
    /// A hash of the [`Versions`]: all others of its cluster are in them, and a thousand times that is not kept.
    versions: u64,
    due: Instant,
}

impl Left {
    /// How long nothing is to be done, if everything is still as it was left.
    pub(super) fn rests(&self, now: &Versions) -> Option<Duration> {
        let rest = self.due.saturating_duration_since(Instant::now());
        (self.versions == kept::hash(now) && !rest.is_zero()).then_some(rest)
    }

    /// Whether its time has come.
    pub(super) fn is_due(&self) -> bool {
        self.due <= Instant::now()
    }
}

/// Brings a resource as far as it can be brought now. Also what was left, if there is anything left.
pub(super) async fn reconcile(
    shell: &Shell,
    namespace: &str,
    name: &str,
    before: Option<&Left>,
) -> Result<(Back, Option<Left>), Error> {
    let look = || observe(&shell.context, &shell.rebalances, namespace, name);
    let Some(mut sight) = look().await? else { return Ok((Back::Never, None)) };
    if let Some(left) = before
        && let Some(rest) = left.rests(&sight.versions)
    {
        return Ok((Back::After(rest), Some(*left)));
    }
    for _ in 0..MOST_ROUNDS {
        let anew = match step(shell, &mut sight).await {
            Ok(Step::Heard) => false,
            Ok(Step::Again) => true,
            Ok(Step::Rest(pause)) => {
                let left = Left { versions: kept::hash(&sight.versions), due: Instant::now() + pause };
                return Ok((Back::After(pause), Some(left)));
            }
            Err(error) if error.remedy() == Remedy::LookAgain => {
                tracing::debug!(%error, namespace, name, "somebody else wrote; looking again");
                true
            }
            Err(error) => return Err(error),
        };
        if anew {
            let Some(seen) = look().await? else { return Ok((Back::Never, None)) };
            sight = seen;
        }
    }
    Err(Error::Endless { rounds: MOST_ROUNDS })
}

/// What one decision led to.
enum Step {
    /// There is something more to decide with: from the engine, or a refusal.
    Heard,
    /// Something has changed: everything is to be looked at anew.
    Again,
    /// Nothing is left to do for so long.
    Rest(Duration),
}

async fn step(shell: &Shell, sight: &mut Sight) -> Result<Step, Error> {
    sight.seen.now = shell.context.clock.now();
    let decision = decide(&sight.seen);
    let before = (sight.seen.resource.clone(), percent(&sight.seen.config_map));
    if carry_out(&shell.context, sight, &decision).await? == Carried::UpToTheConfigMap {
        return Ok(Step::Heard);
    }
    report(shell, &before.0, before.1, sight);
    Ok(match decision.next {
        Next::Call(call) => {
            let is_ours = sight.seen.engine().is_some_and(|engine| engine.is_ours);
            let line = Line::open(&shell.context, sight.access.as_ref(), is_ours, &shell.context.figures).await;
            line.ask(*call, &mut sight.seen.heard).await;
            Step::Heard
        }
        Next::Again => Step::Again,
        Next::After(pause) => Step::Rest(pause),
        Next::Rest => Step::Rest(shell.context.settings.reconciliation_interval),
    })
}

fn percent(config_map: &FoundConfigMap) -> u64 {
    let written = config_map.data().and_then(progress::last_percent);
    written.and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn report(shell: &Shell, before: &KafkaRebalance, percent_before: u64, sight: &Sight) {
    let after = &sight.seen.resource;
    if before.state() == after.state() {
        return;
    }
    let metadata = &after.metadata;
    tracing::info!(
        namespace = metadata.namespace.as_deref(),
        name = metadata.name.as_deref(),
        "{} -> {}",
        before.state(),
        after.state()
    );
    let percent = percent(&sight.seen.config_map).max(percent_before);
    shell.context.figures.moved_on(before, after, percent, sight.seen.now);
}
