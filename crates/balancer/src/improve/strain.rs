//! Strain: how ill at ease brokers are with what they carry, and how an action changes that.
//!
//! Each gauge strains with the square of its deviation from the target, lightly well inside the band and heavily from
//! near its edge on. Strain guides the search; it never decides what is allowed. It is asked for millions of times, so
//! what each broker brings to the question is kept ready, and gauges are taken without a branch and added up in
//! pairs, which lets the compiler take several at once.

use super::Search;
use crate::aims::Aims;
use crate::cluster::Seat;
use crate::gauges::{GAUGES, Levels};
use crate::state::{Effect, State};

/// A broker as it stands.
#[derive(Debug)]
pub(super) struct Ease {
    /// From the target, in half widths of the band.
    deviation: Levels,
    /// One over half the width of the band.
    pulls: Levels,
    unease: f64,
}

impl Ease {
    pub(super) fn of(aims: &Aims, state: &State<'_>, seat: Seat) -> Ease {
        let (levels, targets, pulls) = (state.levels(seat), aims.target(seat), *aims.pulls(seat));
        let deviation: Levels = std::array::from_fn(|gauge| (levels[gauge] - targets[gauge]) * pulls[gauge]);
        Ease { deviation, pulls, unease: sum(deviation.map(unease)) }
    }

    fn strain(&self, change: &Levels) -> f64 {
        let after = |gauge: usize| unease(self.deviation[gauge] + change[gauge] * self.pulls[gauge]);
        sum(std::array::from_fn(after)) - self.unease
    }
}

impl Search<'_, '_> {
    /// How much less at ease the broker would be after `change`.
    pub(super) fn strain(&self, seat: Seat, change: &Levels) -> f64 {
        self.eases[usize::from(seat)].strain(change)
    }

    /// The same for both brokers that an action touches.
    pub(super) fn strain_of(&self, effect: &Effect) -> f64 {
        self.strain(effect.from, &effect.on_from) + self.strain(effect.to, &effect.on_to)
    }

    /// How much an exchange changes the broker that gives, for better or worse.
    pub(super) fn unlikeness(&self, effect: &Effect) -> f64 {
        let pulls = &self.eases[usize::from(effect.from)].pulls;
        // Not `powi`, whose precision is not specified: plans are the same on any machine.
        let square = |number: f64| number * number;
        sum(std::array::from_fn(|gauge| square(pulls[gauge] * effect.on_from[gauge])))
    }
}

/// How a deviation, in half widths of the band, strains.
fn unease(deviation: f64) -> f64 {
    /// Where the edge begins to be felt: moves take a gauge a little way inside, not to the middle.
    const EDGE: f64 = 0.8;
    const INSIDE: f64 = 0.05;
    let beyond = deviation.abs() - EDGE;
    let beyond = if beyond > 0.0 { beyond } else { 0.0 };
    INSIDE * deviation * deviation + beyond * beyond
}

fn sum(terms: Levels) -> f64 {
    const HALF: usize = GAUGES / 2;
    let pairs: [f64; HALF] = std::array::from_fn(|gauge| terms[gauge] + terms[gauge + HALF]);
    (pairs[0] + pairs[2]) + (pairs[1] + pairs[3])
}
