//! Where time and chance enter the server, and nowhere else.

use std::fmt;
use std::sync::Mutex;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use crate::api::Moment;

/// A source of [`Moment`]s.
pub trait Moments: fmt::Debug + Send + Sync + 'static {
    /// Wall-clock time.
    fn now(&self) -> Timestamp;

    /// Random bits, never the same twice. Drawn for writes only, so that reading does not change what a seed brings.
    fn entropy(&self) -> u128;

    /// Both, for a write.
    fn moment(&self) -> Moment {
        Moment { now: self.now(), entropy: self.entropy() }
    }
}

/// The machine's clock and the operating system's randomness.
#[derive(Debug, Clone, Copy, Default)]
pub struct Real;

impl Moments for Real {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn entropy(&self) -> u128 {
        let mut bytes = [0; 16];
        random(&mut bytes);
        u128::from_le_bytes(bytes)
    }
}

/// Fills `bytes` from the operating system.
pub(crate) fn random(bytes: &mut [u8]) {
    let filled = rustls::crypto::ring::default_provider().secure_random.fill(bytes);
    // A machine without randomness cannot make keys or uids; there is nothing sensible to go on with.
    filled.expect("the operating system gives random bytes");
}

/// A clock that follows tokio's, so that it stands still and jumps under paused time, and chance from a seed.
#[derive(Debug)]
pub struct Simulated {
    start: Timestamp,
    origin: Instant,
    chance: Mutex<u64>,
}

impl Simulated {
    /// Starts now, at the wall-clock time `start`. Must be called inside a tokio runtime.
    pub fn new(start: Timestamp, seed: u64) -> Self {
        Self { start, origin: Instant::now(), chance: Mutex::new(seed) }
    }
}

impl Moments for Simulated {
    fn now(&self) -> Timestamp {
        let passed = SignedDuration::try_from(self.origin.elapsed()).unwrap_or(SignedDuration::MAX);
        self.start.checked_add(passed).unwrap_or(Timestamp::MAX)
    }

    fn entropy(&self) -> u128 {
        let mut state = self.chance.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let high = u128::from(split_mix(&mut state));
        high << 64 | u128::from(split_mix(&mut state))
    }
}

/// One step of SplitMix64: small, well mixed, and a permutation, so it does not repeat.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn simulated_time_follows_tokios_and_a_seed_repeats() {
        let (one, two) = (Simulated::new(Timestamp::UNIX_EPOCH, 7), Simulated::new(Timestamp::UNIX_EPOCH, 7));
        assert_eq!(one.moment().now, Timestamp::UNIX_EPOCH);
        let (second, first_of_two) = (one.moment().entropy, two.moment().entropy);
        assert_eq!(second, two.moment().entropy);
        assert_ne!(second, first_of_two);
        tokio::time::sleep(Duration::from_secs(3600)).await;
        assert_eq!(one.moment().now.as_second(), 3600);
    }

    #[test]
    fn real_chance_does_not_repeat() {
        assert_ne!(Real.moment().entropy, Real.moment().entropy);
    }
}
