//! One run of one container, from its launch to its end.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::mpsc;

use super::program::{Exit, LaunchError, Process, Stop};

/// How long a process that was told to end at once may take before it is dropped.
const LAST_MOMENT: Duration = Duration::from_secs(1);

/// What a run tells about itself.
#[derive(Debug)]
pub(super) enum Happened {
    /// It did not start.
    Failed(LaunchError),
    /// It runs, with these real ports.
    Started(BTreeMap<u16, u16>),
    /// Whether it serves.
    Serves(bool),
    /// It has ended.
    Ended(Exit),
}

/// Where a run tells it: the container, and what happened.
pub(super) type Tell = mpsc::Sender<(String, Happened)>;

/// Follows a run to its end. The last word is always that it failed to start or has ended.
pub(super) async fn supervise(
    container: String,
    launch: impl Future<Output = Result<Process, LaunchError>>,
    mut stop: mpsc::UnboundedReceiver<Stop>,
    tell: Tell,
) {
    let followed = AssertUnwindSafe(follow(&container, launch, &mut stop, &tell)).catch_unwind().await;
    let last = followed.unwrap_or_else(|_| {
        tracing::error!(container, "a program panicked");
        Happened::Ended(Exit::failure("the program panicked"))
    });
    // Nobody listens any more if the pod's worker is gone, and then it does not matter.
    tell.send((container, last)).await.ok();
}

async fn follow(
    container: &str,
    launch: impl Future<Output = Result<Process, LaunchError>>,
    stop: &mut mpsc::UnboundedReceiver<Stop>,
    tell: &Tell,
) -> Happened {
    let say = |what| tell.send((container.to_owned(), what)).map(drop);
    let launched = tokio::select! {
        biased;
        launched = launch => launched,
        // There is nothing to be polite to yet.
        Some(_) = stop.recv() => return Happened::Ended(Exit::killed()),
    };
    let mut process = match launched {
        Ok(process) => process,
        Err(error) => return Happened::Failed(error),
    };
    say(Happened::Started(process.ports.clone())).await;
    let serves = *process.ready.borrow_and_update();
    say(Happened::Serves(serves)).await;
    let mut may_change = true;
    loop {
        tokio::select! {
            biased;
            exit = &mut process.ended => return Happened::Ended(exit),
            Some(how) = stop.recv() => {
                (process.stop)(how);
                if how == Stop::Now {
                    return Happened::Ended(last_moment(process.ended).await);
                }
            }
            changed = process.ready.changed(), if may_change => match changed {
                Ok(()) => {
                    let serves = *process.ready.borrow_and_update();
                    say(Happened::Serves(serves)).await;
                }
                Err(_) => may_change = false,
            },
        }
    }
}

async fn last_moment(ended: BoxFuture<'static, Exit>) -> Exit {
    tokio::time::timeout(LAST_MOMENT, ended).await.unwrap_or_else(|_| Exit::killed())
}
