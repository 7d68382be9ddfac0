//! What is to be done about a KafkaRebalance. Whoever does it decides nothing.

use std::time::Duration;

use evenkeel_api::KafkaRebalanceStatus;
use evenkeel_api::annotations::Ask;
use k8s_openapi::api::core::v1::ConfigMap;

use super::hear::Call;

/// What to do, field by field, in this order. If one step fails, those after it are not taken: the next
/// observation finds what was done, and the decision about it is right again. Only a ConfigMap that is
/// [refused](super::FoundConfigMap::Refused) holds up nothing: it is decided anew without it, at once.
///
/// 1. add the [finalizer](Self::finalizer); 2. [forget](Self::forget) an approval; 3. write the
///    [ConfigMap](Self::config_map); 4. write the [status](Self::status); 5. forget any other command;
///    6. remove the finalizer; 7. publish the [events](Self::events); 8. take the [next](Self::next) step. If that
///    begins something and nothing was written, the server is asked first whether the resource is
///    still the one that was decided about.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// What to do with the finalizer `strimzi.io/rebalance`.
    pub finalizer: Finalizer,
    /// The annotation `strimzi.io/rebalance`, if it has been heard.
    pub forget: Option<Forget>,
    /// The ConfigMap to write, whole. None: it stays as it is, also if it is not there.
    pub config_map: Option<ConfigMap>,
    /// The status to write, whole. None: nothing has changed.
    pub status: Option<KafkaRebalanceStatus>,
    /// What to tell people.
    pub events: Vec<Event>,
    /// How it goes on.
    pub next: Next,
}

impl Decision {
    /// Do nothing, and wait until something changes.
    pub fn nothing() -> Self {
        Self {
            finalizer: Finalizer::Leave,
            forget: None,
            config_map: None,
            status: None,
            events: Vec::new(),
            next: Next::Rest,
        }
    }

    /// Whether data moves after it, so that it must rest on nothing old.
    pub(super) fn begins_something(&self) -> bool {
        matches!(&self.next, Next::Call(call) if matches!(**call, Call::Submit(_)))
    }

    /// Ask the engine something that changes nothing, and record nothing before.
    pub(super) fn ask(call: Call) -> Self {
        Self { next: Next::Call(Box::new(call)), ..Self::nothing() }
    }
}

/// What to do with our finalizer. Others on the resource are none of our business.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finalizer {
    /// It is as it should be.
    Leave,
    /// Add it, before anything else.
    Add,
    /// Remove it, after everything else is recorded.
    Remove,
}

/// A command that was heard. It is removed only if it still has this value: the user may have written
/// another since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forget {
    /// The value that was heard.
    pub ask: Ask,
    /// When to remove it.
    pub order: Order,
}

/// When a command is removed, for the case that the process dies between the two writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// An approval: by then the run can be found in the engine, and an approval that outlives the status
    /// could set off a second one.
    BeforeStatus,
    /// Any other: repeated it does no harm, lost it would.
    AfterStatus,
}

/// How it goes on.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// Make this call, hand the reply to [`Heard`](super::Heard), and decide again.
    Call(Box<Call>),
    /// Observe everything anew, and decide again at once.
    Again,
    /// The same, after this time at the latest.
    After(Duration),
    /// Nothing will change by itself: wait for a watch.
    Rest,
}

/// Something to tell people, as a Kubernetes Event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Whether it is bad news.
    pub kind: EventKind,
    /// In one word.
    pub reason: String,
    /// In a sentence.
    pub note: String,
}

/// Whether an event is bad news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// It goes as wanted.
    Normal,
    /// It does not.
    Warning,
}
