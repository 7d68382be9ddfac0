//! Telling people, and other programs, what is wrong.
//!
//! [`messages`] is pure: what exactly is sent to whom. [`post`] sends it, [`configmap`] keeps the ConfigMap that
//! an operator reads. [`Courier`] stands between them and the detectors, so that a slow receiver never holds up
//! a look at the cluster. Addresses and keys are secrets: they are in no log and in no error.

use std::{future::Future, time::Duration};

use bytes::Bytes;
use evenkeel_balancer::goal::Goal;
use http_body_util::Full;
use tokio::sync::mpsc;
use tower::{BoxError, Service};
use uuid::Uuid;

pub mod configmap;
mod error;
pub mod messages;
pub mod post;
#[cfg(test)]
pub(crate) mod tests;

pub use error::Error;

use self::{configmap::ViolationMap, messages::Channel, post::Post};
use crate::detect::{Finding, Millis, words::date};

/// Something that people should hear of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alert {
    /// The anomaly's name.
    pub id: Uuid,
    /// When it was found.
    pub detected: Millis,
    /// What is wrong.
    pub finding: Finding,
    /// The same in words.
    pub words: String,
    /// When it is mended, if it is mended without asking.
    pub mends_at: Option<Millis>,
    /// Whether it is being mended right now.
    pub fixing: bool,
}

impl Alert {
    /// The whole message.
    pub fn text(&self) -> String {
        let healing = match self.mends_at {
            Some(at) => format!("start time {}", date(at)),
            None => "is disabled".to_owned(),
        };
        let triggered = if self.fixing { "\nSelf-healing has been triggered." } else { "" };
        format!("{} detected {}. Self healing {healing}.{triggered}", self.finding.kind().name(), self.words)
    }
}

/// What the courier carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// People should hear of it.
    Alert(Alert),
    /// Goals were judged.
    Judged(Judgement),
}

/// What came of judging the goals, perhaps nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// The anomaly's name, if there is one.
    pub id: Uuid,
    /// Goals that moves can mend.
    pub fixable: Vec<Goal>,
    /// Goals that they cannot.
    pub unfixable: Vec<Goal>,
}

/// Where notices go.
#[derive(Debug, Clone, Default)]
pub struct Outlets {
    /// Who gets alerts.
    pub channels: Vec<Channel>,
    /// Where judgements are shown.
    pub map: Option<ViolationMap>,
    /// The name of this machine, for those who want to know who speaks.
    pub host: String,
}

/// Takes notices to where they go: alerts one after the other, and judgements one after the other. Neither waits for the
/// other, for an operator acts on the map, and people who get alerts may be slow to take them.
#[derive(Debug, Clone)]
pub struct Courier {
    alerts: Option<mpsc::Sender<Alert>>,
    judgements: Option<mpsc::Sender<Judgement>>,
}

/// Notices of a kind that may wait. More are dropped: whoever does not listen for so long has other troubles.
const WAITING: usize = 64;
/// How often a map is tried to be written, and the first pause between; each further one is twice as long.
const MAP_TRIES: u32 = 6;
const MAP_PAUSE: Duration = Duration::from_secs(1);
/// How long one try may take.
const MAP_WITHIN: Duration = Duration::from_secs(30);

impl Courier {
    /// One who tells nobody.
    pub fn silent() -> Courier {
        Courier { alerts: None, judgements: None }
    }

    /// Begins to carry. It ends when all clones are gone and everything is delivered.
    pub fn start<S, B>(outlets: Outlets, post: Post<S>) -> Courier
    where
        S: Service<http::Request<Full<Bytes>>, Response = http::Response<B>> + Clone + Send + Sync + 'static,
        S::Future: Send,
        S::Error: Into<BoxError>,
        B: Send,
    {
        let Outlets { channels, map, host } = outlets;
        let alerts = (!channels.is_empty()).then(|| {
            let (alerts, mut incoming) = mpsc::channel(WAITING);
            tokio::spawn(async move {
                while let Some(alert) = incoming.recv().await {
                    tell_all(&channels, &alert, &host, &post).await;
                }
            });
            alerts
        });
        let judgements = map.map(|map| {
            let (judgements, mut incoming) = mpsc::channel(WAITING);
            tokio::spawn(async move {
                while let Some(judgement) = incoming.recv().await {
                    show(&map, &judgement).await;
                }
            });
            judgements
        });
        Courier { alerts, judgements }
    }

    /// Hands a notice over. Never waits.
    pub fn tell(&self, notice: Notice) {
        let taken = match notice {
            Notice::Alert(alert) => hand_over(self.alerts.as_ref(), alert),
            Notice::Judged(judgement) => hand_over(self.judgements.as_ref(), judgement),
        };
        if !taken {
            tracing::warn!("a notice is dropped: {WAITING} others wait to be delivered");
        }
    }
}

/// Whether there was room for it, or nobody who wants it.
fn hand_over<T>(to: Option<&mpsc::Sender<T>>, what: T) -> bool {
    to.is_none_or(|to| to.try_send(what).is_ok())
}

async fn tell_all<S, B>(channels: &[Channel], alert: &Alert, host: &str, post: &Post<S>)
where
    S: Service<http::Request<Full<Bytes>>, Response = http::Response<B>> + Clone,
    S::Error: Into<BoxError>,
{
    for channel in channels {
        for letter in messages::letters(channel, alert, host) {
            if let Err(error) = post.send(&letter).await {
                let cause = error.cause();
                tracing::warn!(receiver = channel.name(), %error, cause, remedy = error.remedy(), "not delivered");
                // The next one would wait as long for the same answer, and hold up everybody else.
                break;
            }
        }
    }
}

async fn show(map: &ViolationMap, judgement: &Judgement) {
    let Judgement { id, fixable, unfixable } = judgement;
    let record = || async {
        let recorded = tokio::time::timeout(MAP_WITHIN, map.record(*id, fixable, unfixable)).await;
        recorded.unwrap_or(Err(Error::TimedOut(MAP_WITHIN)))
    };
    if let Err(error) = persistently(record).await {
        let cause = error.cause();
        tracing::warn!(map = map.name(), %error, cause, remedy = error.remedy(), "violated goals are not shown");
    }
}

async fn persistently<F: Future<Output = Result<(), Error>>>(attempt: impl Fn() -> F) -> Result<(), Error> {
    let mut pause = MAP_PAUSE;
    for _ in 1..MAP_TRIES {
        match attempt().await {
            Err(error) if error.may_pass() => tokio::time::sleep(pause).await,
            settled => return settled,
        }
        pause *= 2;
    }
    attempt().await
}
