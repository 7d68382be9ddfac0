//! Processor time while something is measured. On a machine that both share, the client's part is half of the story: a
//! row cannot get faster than the client that asks for it.

use std::{process, time::Duration};

use anyhow::Result;
use evenkeel_testkit::measure::{Cost, Measurement, Unit};

use crate::contestant::Running;

/// Runs from its making until it is read.
pub(crate) struct Meter<'server> {
    server: &'server Running,
    before: Spent,
}

/// Processor time of both sides.
struct Spent {
    server: Duration,
    client: Duration,
}

impl<'server> Meter<'server> {
    pub(crate) fn start(server: &'server Running) -> Result<Self> {
        Ok(Self { server, before: Spent::by_now(server)? })
    }

    /// What each side spent on one of `count` equal things.
    pub(crate) fn read(self, what: &str, unit: Unit, count: usize) -> Result<[Measurement; 2]> {
        let now = Spent::by_now(self.server)?;
        let sides = [
            ("server", now.server.saturating_sub(self.before.server)),
            ("client", now.client.saturating_sub(self.before.client)),
        ];
        Ok(sides
            .map(|(side, spent)| Measurement::time(format!("{what}, {side} CPU"), unit, spent.div_f64(count as f64))))
    }
}

impl Spent {
    fn by_now(server: &Running) -> Result<Self> {
        Ok(Self { server: server.cost()?.cpu, client: Cost::of(process::id())?.cpu })
    }
}
