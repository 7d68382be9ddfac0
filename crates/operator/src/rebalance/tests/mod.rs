//! The machine as a whole: example by example, and all of it.

mod answers;
mod defects;
mod deletion;
mod environment;
mod explore;
mod life_cycle;
mod loads;
mod pair;
mod picture;
mod requests;
pub(super) mod scene;
mod table;
mod world;
