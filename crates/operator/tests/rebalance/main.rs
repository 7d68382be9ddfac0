//! KafkaRebalances from beginning to end: the embedded API server, the real controller, the real engine on simulated
//! brokers, under paused time.

#![allow(unreachable_pub, reason = "a test binary has no outside")]

mod cluster;
mod commands;
mod crashes;
mod deletion;
#[path = "../clusters/rights.rs"]
mod rights;
mod seams;
mod stage;
mod stories;
mod trouble;
