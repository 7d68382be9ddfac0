//! What a bench has measured, and what it was to be.

use super::{Measurement, Report};

/// Numbers, some of them with an aim.
#[derive(Debug, Default)]
pub struct Numbers {
    measured: Vec<Measurement>,
    aims: Vec<Measurement>,
}

impl Numbers {
    /// One that nothing was aimed at.
    pub fn add(&mut self, measured: Measurement) {
        self.measured.push(measured);
    }

    /// One that was to be this.
    pub fn aimed(&mut self, measured: Measurement, aim: f64) {
        self.aims.push(Measurement { value: aim, ..measured.clone() });
        self.measured.push(measured);
    }

    /// All of them, the aims beside them.
    pub fn report(&self) -> Report {
        Report::beside("aim", &self.measured, &self.aims)
    }
}
