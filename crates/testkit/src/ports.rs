//! Ports for servers that must be told theirs before they start.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    net::TcpListener,
    ops::Range,
};

use anyhow::{Context, Result};

/// Below the ports that systems hand out to connections: a server that is down for a moment finds its port free when it
/// comes back.
const LASTING: Range<u16> = 20_000..32_000;

/// Ports for servers, all different, also for those that stop and start again.
///
/// The search begins anywhere, or two test processes would choose the same ones.
pub(crate) fn lasting_ports<const N: usize>() -> Result<[u16; N]> {
    let length = LASTING.end - LASTING.start;
    let first = u16::try_from(RandomState::new().build_hasher().finish() % u64::from(length))?;
    let mut candidates = (0..length).map(|step| LASTING.start + (first + step) % length);
    let mut ports = [0; N];
    let mut held = Vec::with_capacity(N);
    for port in &mut ports {
        let (listener, free) = candidates
            .find_map(|candidate| Some((TcpListener::bind(("127.0.0.1", candidate)).ok()?, candidate)))
            .context("no free port below those of connections")?;
        *port = free;
        held.push(listener);
    }
    Ok(ports)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_free_different_and_where_they_should_be() {
        let ports: [u16; 4] = lasting_ports().unwrap();
        for (n, port) in ports.iter().enumerate() {
            assert!(LASTING.contains(port));
            assert!(!ports[..n].contains(port));
        }
    }
}
