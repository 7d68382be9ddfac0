//! The goal whose measure a plan itself changes: how much leaders take in.
//!
//! Brokers are measured by the mean over all of them. Where the replicas of a partition differ, that mean depends on who
//! leads; and it has to be the mean of the cluster that the plan leads to, or planning again on the result would find
//! something to do. So this goal alone is made anew while a plan is in the making.

use super::{Aim, Aims, Limit, Rise};
use crate::cluster::{Resource, Seat};
use crate::gauges::Gauge;
use crate::goal::Goal;
use crate::rules::Rules;
use crate::settings::Settings;
use crate::state::State;

/// Totals that differ by less, relatively, are the same: sums depend a little on how they came about.
const ROUNDING: f64 = 1e-9;

/// What the goal is made of.
#[derive(Debug)]
pub(super) struct LeaderIn {
    band: usize,
    /// What all leaders together took in when the limits were made.
    total: f64,
    /// How many brokers share it.
    brokers: f64,
    /// How far above the mean a broker may be, as a factor.
    threshold: f64,
    /// What each broker that is alive may take in whatever the mean is.
    idle: Vec<(Seat, f64)>,
}

impl Aims {
    pub(super) fn add_leader_in(&mut self, state: &State<'_>, settings: &Settings, rules: &Rules, brokers: f64) -> Aim {
        let band = self.next_band();
        let idle = settings.low_utilization_thresholds[Resource::NwIn as usize];
        let alive = (0..).zip(state.cluster.brokers()).filter(|(seat, _)| rules.is_alive(*seat));
        let leader_in = LeaderIn {
            band,
            total: total(state),
            brokers,
            threshold: settings.balance_thresholds[Resource::NwIn as usize],
            idle: alive.map(|(seat, broker)| (seat, idle * broker.capacity[Resource::NwIn as usize])).collect(),
        };
        self.measure(&leader_in);
        self.leader_in = Some(leader_in);
        Aim::Band { gauge: Gauge::LeaderIn, band, rise: Rise::Traded }
    }

    /// The place of the goal, if it is in force.
    pub(crate) fn leader_in_goal(&self) -> Option<usize> {
        self.goals.iter().position(|goal| *goal == Goal::LeaderBytesInDistribution)
    }

    /// Measures by what leaders take in now; says whether that is another amount than before.
    pub(crate) fn renew_leader_in(&mut self, state: &State<'_>) -> bool {
        let Some(mut leader_in) = self.leader_in.take() else { return false };
        let now = total(state);
        let differs = (now - leader_in.total).abs() > ROUNDING * now;
        if differs {
            leader_in.total = now;
            self.measure(&leader_in);
        }
        self.leader_in = Some(leader_in);
        differs
    }

    fn measure(&mut self, leader_in: &LeaderIn) {
        let (mean, threshold) = (leader_in.total / leader_in.brokers, leader_in.threshold);
        for (seat, idle) in &leader_in.idle {
            let seat = usize::from(*seat);
            self.limits[seat * self.bands + leader_in.band] = Limit::new(0.0, (mean * threshold).max(*idle), mean);
            // No other goal pulls this gauge.
            self.pulls[seat][Gauge::LeaderIn as usize] = 0.0;
            self.pull(seat, Gauge::LeaderIn, mean, mean * (threshold - 1.0), true);
        }
    }
}

fn total(state: &State<'_>) -> f64 {
    state.all_levels().iter().map(|levels| levels[Gauge::LeaderIn as usize]).sum()
}
