//! What a running process costs, as Linux tells it in `/proc`.

use std::{fs, iter::Sum, ops::Add, time::Duration};

use anyhow::{Context, Result};

/// The kernel counts processor time in these, whatever its own tick is: part of its interface, 100 on every platform
/// that we build for.
const TICKS_PER_SECOND: u64 = 100;

/// What a process has used and holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Processor time since its start, its own and the kernel's on its behalf.
    pub cpu: Duration,
    /// Memory now.
    pub memory: Memory,
}

/// Bytes of physical memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// All that is resident, including its program text and the files it maps.
    pub resident: u64,
    /// The part that is its own and could not be read again from a file: heap and stacks.
    pub anonymous: u64,
}

impl Cost {
    /// What the process costs up to now.
    ///
    /// # Errors
    ///
    /// When there is no such process, or this is not Linux.
    pub fn of(process: u32) -> Result<Self> {
        let read = |file: &str| {
            let path = format!("/proc/{process}/{file}");
            fs::read_to_string(&path).with_context(|| format!("could not read {path}"))
        };
        let cpu = cpu(&read("stat")?).context("could not understand a process's stat")?;
        let memory = memory(&read("status")?).context("could not understand a process's status")?;
        Ok(Self { cpu, memory })
    }
}

/// Does something, and tells how many bytes of physical memory this process needed for it at its highest, beyond what it
/// held before.
///
/// Memory that the allocator has kept from earlier work is not seen when it is used again: measure in a process that
/// has done nothing else.
///
/// # Errors
///
/// When this is not Linux.
pub fn peak_of<T>(work: impl FnOnce() -> T) -> Result<(T, u64)> {
    // Makes the kernel forget the highest value so far.
    fs::write("/proc/self/clear_refs", "5").context("could not reset the peak of memory")?;
    let before = Cost::of(std::process::id())?.memory.resident;
    let done = work();
    let status = fs::read_to_string("/proc/self/status").context("could not read this process's status")?;
    let peak = bytes(&status, "VmHWM").context("could not understand this process's status")?;
    Ok((done, peak.saturating_sub(before)))
}

impl Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let memory = Memory {
            resident: self.memory.resident + other.memory.resident,
            anonymous: self.memory.anonymous + other.memory.anonymous,
        };
        Self { cpu: self.cpu + other.cpu, memory }
    }
}

impl Sum for Cost {
    fn sum<I: Iterator<Item = Self>>(costs: I) -> Self {
        costs.fold(Self::default(), Self::add)
    }
}

fn cpu(stat: &str) -> Option<Duration> {
    // The second field is the program's name in parentheses, and may itself hold spaces and parentheses.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let (user, system): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(Duration::from_millis((user + system) * 1000 / TICKS_PER_SECOND))
}

fn memory(status: &str) -> Option<Memory> {
    Some(Memory { resident: bytes(status, "VmRSS")?, anonymous: bytes(status, "RssAnon")? })
}

fn bytes(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_found_behind_any_name() {
        let stat = "42 (a (b) c) S 1 42 42 0 -1 4194560 900 0 3 0 150 50 0 0 20 0 9 0 100 1000 200";
        assert_eq!(cpu(stat), Some(Duration::from_secs(2)));
        assert_eq!(cpu("42 (cut off) S 1"), None);
    }

    #[test]
    fn memory_is_read_in_bytes() {
        let status = "Name:\tx\nVmHWM:\t  9000 kB\nVmRSS:\t    2048 kB\nRssAnon:\t    1024 kB\nRssFile:\t  1024 kB\n";
        assert_eq!(memory(status), Some(Memory { resident: 2 << 20, anonymous: 1 << 20 }));
        assert_eq!(memory("Name:\tzombie\n"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_has_memory() {
        let cost = Cost::of(std::process::id()).unwrap();
        assert!(cost.memory.resident > 100_000 && cost.memory.anonymous <= cost.memory.resident, "{cost:?}");
        assert!(Cost::of(u32::MAX).is_err());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_peak_is_seen_though_it_is_over() {
        let ((), peak) = peak_of(|| drop(std::hint::black_box(vec![1_u8; 50 << 20]))).unwrap();
        assert!(peak >= 40 << 20, "{peak}");
    }
}
