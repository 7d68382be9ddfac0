//! `java.util.Random`, by its published recurrence: the clusters that others measured were drawn with it.

const MULTIPLIER: u64 = 0x5_DEEC_E66D;
const INCREMENT: u64 = 0xB;
const MASK: u64 = (1 << 48) - 1;

/// A linear congruential generator of 48 bits, of which the upper ones are handed out.
#[derive(Debug, Clone)]
pub(super) struct JavaRandom {
    state: u64,
}

impl JavaRandom {
    pub(super) fn new(seed: i64) -> Self {
        JavaRandom { state: (seed as u64 ^ MULTIPLIER) & MASK }
    }

    /// The next `bits` bits, at most 32.
    fn next(&mut self, bits: u32) -> u32 {
        self.state = self.state.wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT) & MASK;
        (self.state >> (48 - bits)) as u32
    }

    /// A number below `bound`, which is positive and below 2^31.
    pub(super) fn below(&mut self, bound: u32) -> u32 {
        debug_assert!(bound > 0 && bound <= i32::MAX as u32);
        let mut bits = self.next(31);
        if bound.is_power_of_two() {
            return ((u64::from(bound) * u64::from(bits)) >> 31) as u32;
        }
        // Numbers of the last, incomplete stretch would make small results likelier; they are drawn again.
        loop {
            let result = bits % bound;
            if bits - result + (bound - 1) <= i32::MAX as u32 {
                return result;
            }
            bits = self.next(31);
        }
    }

    /// A number from `min` to `max`, both included, as the first of a fresh generator.
    pub(super) fn first_between(min: u32, max: u32, seed: i64) -> u32 {
        JavaRandom::new(seed).below(max - min + 1) + min
    }

    /// A number from 0 to 1, 1 excluded.
    fn unit(&mut self) -> f64 {
        let upper = u64::from(self.next(26));
        let lower = u64::from(self.next(27));
        ((upper << 27) + lower) as f64 / (1u64 << 53) as f64
    }

    /// A number of the exponential distribution with this mean.
    pub(super) fn exponential(&mut self, mean: f64) -> f64 {
        // Not the platform's logarithm: that one differs from system to system in the last bit.
        -mean * libm::log(1.0 - self.unit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Every expected number here was printed by a program on a JDK.

    fn drawn<const N: usize>(seed: i64, bound: u32) -> [u32; N] {
        let mut random = JavaRandom::new(seed);
        [(); N].map(|()| random.below(bound))
    }

    #[test]
    fn whole_numbers_are_those_of_java() {
        assert_eq!(drawn(42, 10), [0, 3, 8, 4, 0]);
        assert_eq!(drawn(1 << 40 | 7, 100), [60, 56, 85]);
        let mut random = JavaRandom::new(42);
        assert_eq!([(); 2].map(|()| random.next(32) as i32), [-1_170_105_035, 234_785_527]);
        assert_eq!(JavaRandom::new(-1).next(32) as i32, 1_155_099_827);
    }

    #[test]
    fn a_power_of_two_takes_the_upper_bits() {
        assert_eq!(drawn(42, 16), [11, 0, 10, 0, 4]);
    }

    #[test]
    fn a_large_bound_draws_again() {
        assert_eq!(drawn(42, (1 << 30) + 1), [117_392_763, 102_948_884, 662_969_970, 595_021_505, 196_118_093]);
    }

    #[test]
    fn fractions_are_those_of_java() {
        let mut random = JavaRandom::new(0);
        assert_eq!([(); 2].map(|()| random.unit()), [0.730_967_787_376_657, 0.240_536_415_671_485_87]);
    }
}
