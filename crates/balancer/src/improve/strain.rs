//! Strain: how ill at ease brokers are with what they carry, and how an action changes that.
//!
//! Each gauge strains with the square of its deviation from the target, lightly well inside the band and heavily from
//! near its edge on. Strain guides the search; it never decides what is allowed. It is asked for millions of times, so
//! what each broker brings to the question is kept ready, and gauges are taken without a branch and added up in
//! pairs, which lets the compiler take several at once.

use super::Search;
use crate::aims::Aims;
use crate::cluster::{LeadLoad, Seat, SlotLoad};
use crate::gauges::{GAUGES, Gauge, Levels};
use crate::state::{Effect, State};

/// A broker as it stands.
#[derive(Debug)]
pub(super) struct Ease {
    /// From the target, in half widths of the band.
    deviation: Levels,
    /// One over half the width of the band.
    pulls: Levels,
    unease: f64,
    /// How fast unease grows with each gauge.
    slopes: Levels,
}

impl Ease {
    pub(super) fn of(aims: &Aims, state: &State<'_>, seat: Seat) -> Ease {
        let (levels, targets, pulls) = (state.levels(seat), aims.target(seat), *aims.pulls(seat));
        let deviation: Levels = std::array::from_fn(|gauge| (levels[gauge] - targets[gauge]) * pulls[gauge]);
        let slopes = std::array::from_fn(|gauge| slope(deviation[gauge]) * pulls[gauge]);
        Ease { deviation, pulls, unease: sum(deviation.map(unease)), slopes }
    }

    fn strain(&self, change: &Levels) -> f64 {
        let after = |gauge: usize| unease(self.deviation[gauge] + change[gauge] * self.pulls[gauge]);
        sum(std::array::from_fn(after)) - self.unease
    }
}

/// How ease begins to change as something goes from one broker to another. Unease is convex: it falls by less than its
/// slope promises and grows by more, so that this is the most that can come of it.
pub(super) struct Slope {
    /// Per unit of each gauge.
    gains: Levels,
    rounding: f64,
}

impl Slope {
    /// No less than how much more at ease the brokers are once a replica has gone. The same sum as that over
    /// [`replica_levels`](crate::gauges::replica_levels), without writing them down.
    pub(super) fn ease_at_most(&self, slot: SlotLoad, lead: LeadLoad, leads: bool) -> f64 {
        let gain = |gauge: Gauge| self.gains[gauge as usize];
        let [cpu, nw_in, nw_out, disk] = [slot.cpu, slot.nw_in, slot.nw_out, slot.disk].map(f64::from);
        let follows = (gain(Gauge::Cpu) * cpu + gain(Gauge::NwIn) * nw_in)
            + (gain(Gauge::NwOut) * nw_out + gain(Gauge::Disk) * disk)
            + (gain(Gauge::Replicas) + gain(Gauge::PotentialOut) * f64::from(lead.nw_out));
        let leading = gain(Gauge::Cpu) * f64::from(lead.cpu)
            + gain(Gauge::NwOut) * f64::from(lead.nw_out)
            + gain(Gauge::LeaderIn) * nw_in
            + gain(Gauge::Leaders);
        follows + if leads { leading } else { 0.0 } + self.rounding
    }
}

impl Search<'_, '_> {
    /// How much less at ease the broker would be after `change`.
    pub(super) fn strain(&self, seat: Seat, change: &Levels) -> f64 {
        self.eases[usize::from(seat)].strain(change)
    }

    /// How ease begins to change at the brokers given, as something goes from one to the other.
    pub(super) fn slope(&self, (from, to): (Option<Seat>, Option<Seat>)) -> Slope {
        /// What rounding can make of it, relative to what is added up.
        const ROUNDING: f64 = 1e-12;
        let ease = |seat: Option<Seat>| seat.map(|seat| &self.eases[usize::from(seat)]);
        let slope = |ease: Option<&Ease>, gauge: usize| ease.map_or(0.0, |ease| ease.slopes[gauge]);
        let (from, to) = (ease(from), ease(to));
        let gains = std::array::from_fn(|gauge| {
            let (left, taken) = (slope(from, gauge), slope(to, gauge));
            left - taken + ROUNDING * (left.abs() + taken.abs())
        });
        let unease = from.map_or(0.0, |ease| ease.unease) + to.map_or(0.0, |ease| ease.unease);
        Slope { gains, rounding: ROUNDING * unease }
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

/// Where the edge begins to be felt: moves take a gauge a little way inside, not to the middle.
const EDGE: f64 = 0.8;
const INSIDE: f64 = 0.05;

/// How a deviation, in half widths of the band, strains.
fn unease(deviation: f64) -> f64 {
    let beyond = deviation.abs() - EDGE;
    let beyond = if beyond > 0.0 { beyond } else { 0.0 };
    INSIDE * deviation * deviation + beyond * beyond
}

/// How fast that grows.
fn slope(deviation: f64) -> f64 {
    let beyond = deviation.abs() - EDGE;
    let beyond = if beyond > 0.0 { beyond } else { 0.0 };
    2.0 * (INSIDE * deviation + beyond.copysign(deviation))
}

fn sum(terms: Levels) -> f64 {
    const HALF: usize = GAUGES / 2;
    let pairs: [f64; HALF] = std::array::from_fn(|gauge| terms[gauge] + terms[gauge + HALF]);
    (pairs[0] + pairs[2]) + (pairs[1] + pairs[3])
}
