//! All of the machine at once: every state that a tiny world can reach is visited, with crashes
//! between any two writes, and what must never happen is looked for in each of them.
//!
//! `world` is a cluster of a permanent broker and one or two that come and go, and the operator's looks and
//! writes; `run` is a generated KafkaRebalance that succeeds, fails or is interfered with as it pleases;
//! `memory` is what the operator remembers of all this; `others` are users and what else befalls it. `explore`
//! visits it: a few kinds of trouble at a time in every order, and all of them together in orders that seeds choose.

mod explore;
mod memory;
mod others;
mod picture;
mod run;
mod world;
