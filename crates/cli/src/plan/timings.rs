//! How long the parts of a plan took, and the most memory the process had.

use std::time::{Duration, Instant};

/// Measures what happens between one call and the next.
pub(super) struct Clock {
    last: Instant,
    laps: Vec<(&'static str, Duration)>,
    /// Taken before anything is printed: a long answer is not what planning needs.
    peak_kilobytes: Option<u64>,
}

impl Clock {
    pub(super) fn start() -> Clock {
        Clock { last: Instant::now(), laps: Vec::new(), peak_kilobytes: None }
    }

    /// Says what the time since the last call went into.
    pub(super) fn lap(&mut self, part: &'static str) {
        let now = Instant::now();
        self.laps.push((part, now - self.last));
        if part != "write" {
            let status = std::fs::read_to_string("/proc/self/status");
            self.peak_kilobytes = status.ok().and_then(|status| peak(&status));
        }
        self.last = Instant::now();
    }

    /// One line of `name=value`, times in milliseconds and memory in KiB.
    pub(super) fn report(&self) -> String {
        let mut words: Vec<String> =
            self.laps.iter().map(|(part, took)| format!("{part}Ms={:.3}", took.as_secs_f64() * 1e3)).collect();
        words.extend(self.peak_kilobytes.map(|peak| format!("peakKiB={peak}")));
        words.join(" ")
    }
}

/// The line `VmHWM:    123 kB` of Linux's account of a process.
fn peak(status: &str) -> Option<u64> {
    status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.trim().strip_suffix(" kB")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_found_where_linux_says_it() {
        assert_eq!(peak("Name:\tevenkeel\nVmHWM:\t   10240 kB\nVmRSS:\t 9000 kB\n"), Some(10_240));
        assert_eq!(peak("Name:\tevenkeel\n"), None);
    }
}
