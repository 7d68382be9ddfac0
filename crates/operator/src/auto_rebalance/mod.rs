//! Automatic rebalancing: when brokers come, before brokers go, and when load has drifted.
//!
//! ```text
//!                 R             R: brokers to empty         A: brokers added
//!        ┌──────────────▶ RebalanceOnScaleDown ───┐
//!        │                   ▲      ▲             │ done, A queued
//!        │     R: stop first │      │ done, R     ▼
//!      Idle ───────────────▶ RebalanceOnScaleUp ◀─┤
//!        │  A                       │ done, A     │
//!        └──────────────▶ RebalanceOnImbalance ───┘
//!           violated goals
//!      from every state: done, failed, stopped, missing ──▶ Idle, if nothing is queued
//! ```
//!
//! [`decide()`] looks at everything once and says what to record, what to do and what to tell. It has no
//! clock and talks to nobody. `operator::kafka` calls it last, writes the [`Decision`] in its order
//! and is brought back by watches, so nothing here waits: where something has to pass first, the
//! decision is to do nothing, and to say why.
//!
//! | module | what |
//! |---|---|
//! | [`observe`], [`settings`] | what is looked at |
//! | [`state`], [`tracker`] | what is remembered: the status, and what does not belong there |
//! | [`brokers`] | which brokers come and go |
//! | [`recipe`], [`template`] | the resources that are made, and what from |
//! | [`generated`] | what is read from them |
//! | [`imbalance`], [`poll`] | violated goals |
//! | [`guards`], [`windows`] | not too often, not at the wrong hour |
//! | [`mod@decide`] | the machine |
//! | [`mod@explain`] | the same for people: why it did, or did not |

pub mod brokers;
pub mod decide;
pub mod explain;
pub mod generated;
pub mod guards;
pub mod imbalance;
#[cfg(test)]
mod model;
pub mod observe;
pub mod poll;
pub mod recipe;
pub mod settings;
pub mod state;
pub mod template;
pub mod tracker;
pub mod windows;

pub use brokers::{BrokersSeen, Check, removal_is_held};
pub use decide::{Act, Decision, Event, TrackerWrite, decide};
pub(crate) use decide::{executor_matters, while_refused};
pub use explain::explain;
pub(crate) use generated::held_for;
pub use generated::{Generated, StopReason};
pub use observe::{Brake, Engine, Manual, Observation, sort_rebalances, strangers};
pub(crate) use observe::{remembers, spoken_of};
pub use recipe::Cluster;
pub(crate) use recipe::is_named_like_ours;
pub use settings::Configured;
pub use state::{Brokers, remember_added};
