//! What to do about one pod: pure.
//!
//! ```text
//!            launch            it serves
//!  Waiting ----------> Starting ---------> Running
//!     ^  due                |                 |
//!     |  it failed to start |                 | it ended
//!     +<--------------------+                 |
//!     |        restarted after a back-off     v
//!     +<----------------------------------- (ended) ----> Ended, for good
//! ```
//!
//! A pod that is to end has its containers stopped: politely, and at its deadline at once. The first restart of a
//! container is immediate, the next ones wait 10 s, 20 s, 40 s up to 5 min; ten quiet minutes start that over. A start
//! that failed is tried again after 1 s, 2 s, 4 s up to 5 min.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tokio::time::Instant;

use super::program::{Exit, LaunchError, Stop};

/// Longest wait before a restart or another try.
const LONGEST: Duration = Duration::from_secs(300);

/// The wait before the second restart; the first is immediate.
const RESTART: Duration = Duration::from_secs(10);

/// The wait before a start is tried again that has failed.
const RETRY: Duration = Duration::from_secs(1);

/// A container that ran this long is taken for well.
const WELL: Duration = Duration::from_secs(600);

/// How a container stands.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Life {
    /// It does not run, and will not before `due`.
    Waiting {
        /// For the status.
        reason: &'static str,
        /// For the status; may be empty.
        message: String,
        /// When it may be started.
        due: Instant,
    },
    /// It was asked to start.
    Starting,
    /// It runs.
    Running {
        /// Since when.
        since: Time,
        /// Whether it serves.
        ready: bool,
    },
    /// It has ended for good.
    Ended(Ended),
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ended {
    pub(crate) exit: Exit,
    /// When it was started; nothing if it never ran.
    pub(crate) since: Option<Time>,
    pub(crate) at: Time,
}

/// One container of a pod, over all its runs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct State {
    pub(crate) life: Life,
    pub(crate) restarts: u32,
    /// The run before this one.
    pub(crate) last: Option<Ended>,
    /// Ends in a row, each soon after its start.
    crashes: u32,
    /// Failed starts in a row.
    failures: u32,
    began: Instant,
    /// How it was asked to end.
    asked: Option<Stop>,
}

/// Something to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Act {
    /// Start this container.
    Launch(String),
    /// Do this init container's deed.
    Deed(String),
    /// Ask this container to end.
    Stop(String, Stop),
    /// All is over: take the pod out of the API.
    Remove,
    /// All is over, and the pod stays in the API.
    Done,
}

/// Why a pod is to end, and until when it may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ending {
    /// Then it is ended at once.
    pub(crate) deadline: Instant,
    /// Whether it is then taken out of the API: it was deleted, and is still there.
    pub(crate) remove: bool,
}

/// What is known about a pod.
#[derive(Debug)]
pub(crate) struct Seen<'a> {
    pub(crate) pod: &'a Pod,
    pub(crate) containers: &'a BTreeMap<String, State>,
    /// Everything that containers need was found.
    pub(crate) resolved: bool,
    pub(crate) ending: Option<Ending>,
    pub(crate) now: Instant,
}

/// Whether a container is started again after it has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Policy {
    /// Always.
    Always,
    /// If it has failed.
    OnFailure,
    /// Never.
    Never,
}

impl Policy {
    /// The policy of a pod's containers; an init container is not started again once it has done its work.
    pub(crate) fn of(pod: &Pod, init: bool) -> Self {
        match (pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref()), init) {
            (Some("Never"), _) => Self::Never,
            (Some("OnFailure"), _) | (_, true) => Self::OnFailure,
            _ => Self::Always,
        }
    }

    fn restarts(self, exit: &Exit) -> bool {
        match self {
            Self::Always => true,
            Self::OnFailure => exit.code != 0,
            Self::Never => false,
        }
    }
}

/// What to do now, and when to look again at the latest.
pub(crate) fn decide(seen: &Seen<'_>) -> (Vec<Act>, Option<Instant>) {
    match seen.ending {
        Some(ending) => end(seen, ending),
        None => start(seen),
    }
}

fn end(seen: &Seen<'_>, ending: Ending) -> (Vec<Act>, Option<Instant>) {
    let alive = seen.containers.iter().filter(|(_, state)| state.is_alive());
    let alive: Vec<_> = alive.collect();
    if alive.is_empty() {
        return (vec![if ending.remove { Act::Remove } else { Act::Done }], None);
    }
    let how = if seen.now >= ending.deadline { Stop::Now } else { Stop::Politely };
    let unasked = alive.iter().filter(|(_, state)| state.asked < Some(how));
    let acts = unasked.map(|(name, _)| Act::Stop((*name).clone(), how)).collect();
    (acts, (how == Stop::Politely).then_some(ending.deadline))
}

fn start(seen: &Seen<'_>) -> (Vec<Act>, Option<Instant>) {
    let Some(spec) = seen.pod.spec.as_ref().filter(|_| seen.resolved) else { return (Vec::new(), None) };
    for container in spec.init_containers.iter().flatten() {
        match seen.containers.get(&container.name).map(|state| &state.life) {
            Some(Life::Ended(ended)) if ended.exit.code == 0 => (),
            // The first that is not done holds up all others.
            life => return begin(container, life, seen.now, super::rack::is_deed(container)),
        }
    }
    let mut acts = Vec::new();
    let mut wake: Option<Instant> = None;
    for container in &spec.containers {
        let life = seen.containers.get(&container.name).map(|state| &state.life);
        let (more, due) = begin(container, life, seen.now, false);
        acts.extend(more);
        wake = wake.into_iter().chain(due).min();
    }
    (acts, wake)
}

fn begin(container: &Container, life: Option<&Life>, now: Instant, deed: bool) -> (Vec<Act>, Option<Instant>) {
    match life {
        Some(Life::Waiting { due, .. }) if *due > now => (Vec::new(), Some(*due)),
        Some(Life::Waiting { .. }) if deed => (vec![Act::Deed(container.name.clone())], None),
        Some(Life::Waiting { .. }) => (vec![Act::Launch(container.name.clone())], None),
        _ => (Vec::new(), None),
    }
}

impl State {
    /// A container that was not started yet, after `restarts` in an earlier life of the node.
    pub(crate) fn new(restarts: u32, now: Instant) -> Self {
        let life = Life::Waiting { reason: "ContainerCreating", message: String::new(), due: now };
        Self { life, restarts, last: None, crashes: 0, failures: 0, began: now, asked: None }
    }

    /// It runs, or is about to.
    pub(crate) fn is_alive(&self) -> bool {
        matches!(self.life, Life::Starting | Life::Running { .. })
    }

    /// It runs and serves.
    pub(crate) fn is_ready(&self) -> bool {
        matches!(self.life, Life::Running { ready: true, .. })
    }

    /// How many restarts there are with the next start. Tries that fail are none.
    pub(crate) fn restarts_then(&self) -> u32 {
        self.restarts + u32::from(self.last.is_some() && self.failures == 0)
    }

    /// It was asked to start.
    pub(crate) fn starts(&mut self, now: Instant) {
        self.restarts = self.restarts_then();
        (self.life, self.began) = (Life::Starting, now);
    }

    /// It runs.
    pub(crate) fn runs(&mut self, since: Time) {
        self.failures = 0;
        self.life = Life::Running { since, ready: false };
    }

    /// It says whether it serves.
    pub(crate) fn serves(&mut self, now: bool) {
        if let Life::Running { ready, .. } = &mut self.life {
            *ready = now;
        }
    }

    /// It was asked to end.
    pub(crate) fn asked(&mut self, how: Stop) {
        self.asked = self.asked.max(Some(how));
    }

    /// It did not start.
    pub(crate) fn failed(&mut self, error: &LaunchError, now: Instant) {
        let message = chain(error);
        let due = now + ladder(RETRY, self.failures);
        self.failures += 1;
        self.life = Life::Waiting { reason: error.reason(), message, due };
    }

    /// It has ended. `pod` is how the pod is called in messages.
    pub(crate) fn ended(&mut self, exit: Exit, policy: Policy, pod: &str, container: &str, at: Time, now: Instant) {
        let since = match &self.life {
            Life::Running { since, .. } => Some(since.clone()),
            _ => None,
        };
        let ended = Ended { exit, since, at };
        if self.asked.is_some() || !policy.restarts(&ended.exit) {
            self.life = Life::Ended(ended);
            return;
        }
        if now.duration_since(self.began) >= WELL {
            self.crashes = 0;
        }
        let wait = self.crashes.checked_sub(1).map_or(Duration::ZERO, |repeated| ladder(RESTART, repeated));
        self.crashes += 1;
        let message = format!("back-off {}s restarting failed container={container} pod={pod}", wait.as_secs());
        self.last = Some(ended);
        self.life = Life::Waiting { reason: "CrashLoopBackOff", message, due: now + wait };
    }

    /// An init container has done its deed.
    pub(crate) fn done(&mut self, at: Time) {
        self.life = Life::Ended(Ended { exit: Exit::success(), since: Some(at.clone()), at });
    }

    /// How it ended, if it did for good.
    pub(crate) fn end(&self) -> Option<&Ended> {
        match &self.life {
            Life::Ended(ended) => Some(ended),
            _ => None,
        }
    }
}

#[cfg(test)]
impl State {
    /// One that stands like this, for tests.
    pub(super) fn standing(life: Life, restarts: u32, last: Option<Ended>) -> Self {
        Self { life, restarts, last, ..Self::new(0, Instant::now()) }
    }
}

fn ladder(first: Duration, doublings: u32) -> Duration {
    (first * 2u32.pow(doublings.min(10))).min(LONGEST)
}

/// An error with its causes.
fn chain(error: &LaunchError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
