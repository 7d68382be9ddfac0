//! All of the machine at once: every state that a tiny world can reach is visited, with crashes
//! between any two writes, and what must never happen is looked for in each of them.
//!
//! `world` is a cluster of a permanent broker and one or two that come and go, the operator's writes,
//! a KafkaRebalance that succeeds, fails or is interfered with as it pleases, and users. `explore`
//! visits it.

mod explore;
mod world;
