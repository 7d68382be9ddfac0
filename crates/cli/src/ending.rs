//! When a program that runs until it is told to stop is told so: by a signal, or by nobody reading what it prints.

use std::io;
use std::os::fd::AsFd;

use tokio::io::Interest;
use tokio::net::unix::pipe;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that end it in good order.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// The terminal is gone; nothing if whoever started us said that this does not matter.
    hangup: Option<Signal>,
}

impl Signals {
    /// Listens from now on; made before anything is started, so that none is missed.
    pub(crate) fn listen() -> io::Result<Self> {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let hangup = if ignores_hangup(&status) { None } else { Some(signal(SignalKind::hangup())?) };
        let (interrupt, terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        Ok(Self { interrupt, terminate, hangup })
    }

    /// Waits for one of them.
    pub(crate) async fn one(&mut self) {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = hangup => {}
        }
    }
}

/// Whether `nohup` or the like started us: Linux tells which signals a process ignores as a mask, the first signal,
/// which is SIGHUP, in its last bit.
fn ignores_hangup(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 != 0)
}

/// Waits until nobody can read standard output any more, as after `head`. That never comes where it cannot be told, as
/// with a file.
pub(crate) async fn reader_gone() {
    let watched = io::stdout().as_fd().try_clone_to_owned();
    // Unchecked, because it is never written to: that it blocks, or is a terminal and no pipe, does not matter.
    let watched = watched.and_then(pipe::Sender::from_owned_fd_unchecked);
    let gone = match &watched {
        Ok(output) => output.ready(Interest::ERROR).await.is_ok(),
        Err(_) => false,
    };
    if !gone {
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hangup_is_ignored_where_the_starter_said_so() {
        assert!(ignores_hangup("Name:\tevenkeel\nSigIgn:\t0000000000001001\n"));
        assert!(!ignores_hangup("Name:\tevenkeel\nSigIgn:\t0000000000001000\n"));
        assert!(!ignores_hangup(""));
    }
}
