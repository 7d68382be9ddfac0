//! Plans on request: what is asked for, the plan, what is said about it, and whether it still fits. Pure.
//!
//! ```text
//! rest::Request --ask--> Ask --make, on what is Known--> Proposal --result--> body
//!                                                           |------fits, with a fresh look
//!                                                           '------order--> what the executor carries out
//! ```
//!
//! A resource that nobody measured is unknown, not 0: its goals are not among the default and the
//! hard ones, a request that names them runs without them and its summary says which, and bodies
//! say -1, as the original does of a share of nothing. A [`Proposal`] keeps the plan and what is
//! said about brokers, but not the cluster it was made from, so that many can be kept.

mod ask;
mod disks;
mod figures;
mod fits;
mod goals;
mod known;
mod loads;
mod order;
mod proposal;
mod result;
#[cfg(test)]
mod tests;

pub(crate) use ask::decided;
pub use ask::{Ask, ask};
pub use fits::{Changed, fits};
pub use goals::{Wanted, requirement, wanted};
pub use known::not_enough;
pub use loads::{load, partition_load, partition_requirement};
pub use order::order;
pub use proposal::{Proposal, make};
pub use result::result;

#[cfg(test)]
pub(crate) use tests::scene;
