//! What benches share: times as percentiles, what a process costs, and a table of two contestants.

mod machine;
mod numbers;
mod process;
mod report;
mod run;
mod spread;

pub use machine::{cores, load_average};
pub use numbers::Numbers;
pub use process::{Cost, Memory, peak_of};
pub use report::{Measurement, Report, Unit, grouped};
pub use run::{Options, Run};
pub use spread::Spread;
