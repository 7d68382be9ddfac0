//! The machine that numbers come from. Those from a busy one are about its neighbours, too; whoever reads them must be
//! able to tell.

use std::{fs, thread};

/// Of the last minute, five and fifteen, as the kernel tells it.
pub fn load_average() -> String {
    let told = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let averages: Vec<&str> = told.split_whitespace().take(3).collect();
    if averages.is_empty() { "unknown".to_owned() } else { averages.join(" ") }
}

/// How many threads run at the same time.
pub fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}
