//! What the balancer promises, on clusters drawn as text, on known clusters and on random ones.

mod canonical;
mod check;
mod eligibility;
mod exhaustive;
mod hard_goals;
mod hosts;
mod inspect;
mod known_clusters;
mod leaders_traffic;
mod lost_data;
mod lost_disks;
mod packing;
mod picture;
mod properties;
mod racks;
mod random;
mod reasons;
mod restrictions;
mod soft_goals;
mod steady;
mod unknown_disks;
