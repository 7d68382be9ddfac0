//! How much of everything.

use std::time::Duration;

use serde::Serialize;

/// The same for both servers.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Sizes {
    /// How often each server is started for the median.
    pub(crate) starts: usize,
    /// How many write at the same time, each over a connection of its own.
    pub(crate) clients: usize,
    /// Objects that are created, patched and listed.
    pub(crate) objects: usize,
    /// How often all of them are listed, one list after the other.
    pub(crate) lists: usize,
    /// Watches that are open at the same time, each over a connection of its own.
    pub(crate) watchers: usize,
    /// Writes that all of them must see.
    pub(crate) rounds: usize,
    /// Objects in the server when its memory is read.
    pub(crate) stored: usize,
    /// How long it may put its memory in order before that.
    pub(crate) rest: Duration,
}

impl Sizes {
    pub(crate) const FULL: Self = Self {
        starts: 3,
        clients: 16,
        objects: 10_000,
        lists: 20,
        watchers: 1_000,
        rounds: 100,
        stored: 50_000,
        rest: Duration::from_secs(15),
    };

    pub(crate) const QUICK: Self = Self {
        starts: 2,
        clients: 16,
        objects: 1_000,
        lists: 5,
        watchers: 100,
        rounds: 10,
        stored: 2_000,
        rest: Duration::from_secs(1),
    };
}
