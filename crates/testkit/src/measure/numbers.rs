//! What a bench has measured, and what it was to be. Each number is told when it is there: who waits for a long bench, or ends
//! it, has seen what it got so far.

use super::{Measurement, Report};

/// Numbers, some of them with an aim.
#[derive(Debug, Default)]
pub struct Numbers {
    measured: Vec<Measurement>,
    aims: Vec<Measurement>,
}

impl Numbers {
    /// One that nothing was aimed at.
    #[allow(clippy::print_stderr, reason = "a bench talks to the terminal it was started from")]
    pub fn add(&mut self, measured: Measurement) {
        eprintln!("         {measured}");
        self.measured.push(measured);
    }

    /// One that was to be this.
    pub fn aimed(&mut self, measured: Measurement, aim: f64) {
        self.aims.push(Measurement { value: aim, ..measured.clone() });
        self.add(measured);
    }

    /// All of them, the aims beside them.
    pub fn report(&self) -> Report {
        Report::beside("aim", &self.measured, &self.aims)
    }
}
