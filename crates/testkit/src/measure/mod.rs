//! What benches share: times as percentiles, what a process costs, and a table of two contestants.

mod process;
mod report;
mod spread;

pub use process::{Cost, Memory};
pub use report::{Measurement, Report, Unit, grouped};
pub use spread::Spread;
