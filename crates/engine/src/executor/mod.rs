//! Carries a plan out: moves between brokers, then between disks, then leadership.
//!
//! [`Order`] says what is to be done and [`Execution`] where it stands. [`Execution::step`] looks at
//! the cluster ([`Sight`]) and says what to do next ([`Action`]); whoever does it decides nothing.
//! Completion is always seen in the cluster, never remembered from an answer, so a process that
//! dies anywhere goes on from the last record of its stages: a move that is done is seen to be done.
//!
//! ```text
//!             submitted            seen in the cluster
//!   Pending ------------> InProgress ---------------> Ended(Completed)
//!      |                      |
//!      | stopped, or its      | stopped, or a target died: cancelled
//!      | ground is gone       v
//!      |                  Aborting --- old order seen again ---> Ended(Dead)
//!      +-------------------------------------------------------> Ended(Aborted)
//! ```

mod care;
mod eyes;
mod hands;
mod leftover;
mod machine;
mod order;
mod progress;
mod runner;
pub mod service;
mod sight;
mod slow;
mod state;
mod strategy;
mod task;
mod throttle;

#[cfg(test)]
mod tests;

pub use care::Hold;
pub use leftover::Leftover;
pub use machine::{Action, Dirs, Ending, Execution, Rates, Step, Throttling};
pub use order::{Adjustment, Baseline, DirMove, Limits, Millis, Move, Order};
pub use progress::{Counts, Progress, Share};
pub use runner::{Report, Runner};
pub use service::Executor;
pub use sight::{DirSight, PartitionSight, Sight};
pub use slow::Slowness;
pub use state::{Standing, state};
pub use strategy::Strategy;
pub use task::{End, Kind, Stage, Task, Why};
pub use throttle::{List, Listing, Relisting, Throttle};
