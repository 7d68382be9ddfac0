//! A quick answer for most actions: the tightest bounds of all bands that judge, per broker and gauge.
//!
//! A broker that stays within its fence harms no band; one that was within and would leave it breaks
//! one. Only brokers that are outside already need every goal to be asked.

use crate::aims::{Aim, Aims};
use crate::cluster::Seat;
use crate::gauges::{GAUGES, Levels};
use crate::state::{Effect, State};

/// What the fences say about an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quick {
    /// Both brokers stay within: no band is harmed.
    Within,
    /// A broker would leave the band of this goal. That the other eases back into it is no excuse: whoever keeps to a
    /// goal of higher priority goes on doing so, as Cruise Control asks of every action.
    Leaves(usize),
    /// A broker is outside already: ask each goal.
    Unsure,
}

#[derive(Debug, Clone, Copy)]
struct Post {
    low: f64,
    high: f64,
    low_goal: u8,
    high_goal: u8,
}

/// The fences of the first so many goals.
#[derive(Debug)]
pub(super) struct Fences {
    posts: Vec<[Post; GAUGES]>,
}

impl Fences {
    pub(super) fn of(aims: &Aims, upto: usize, seats: usize) -> Fences {
        let open = Post { low: f64::NEG_INFINITY, high: f64::INFINITY, low_goal: 0, high_goal: 0 };
        let mut posts = vec![[open; GAUGES]; seats];
        for (index, aim) in aims.aims.iter().enumerate().take(upto) {
            let Aim::Band { gauge, band, .. } = *aim else { continue };
            for (seat, row) in posts.iter_mut().enumerate() {
                let (limit, post) = (aims.limit(band, seat as Seat), &mut row[gauge as usize]);
                if aims.is_shared(band, seat as Seat) {
                    // Its host has a say, and through it other brokers: outside of both, whatever it carries.
                    (post.low, post.high) = (f64::INFINITY, f64::NEG_INFINITY);
                    continue;
                }
                if limit.ceiling < post.high {
                    (post.high, post.high_goal) = (limit.ceiling, index as u8);
                }
                if limit.low > post.low {
                    (post.low, post.low_goal) = (limit.low, index as u8);
                }
            }
        }
        Fences { posts }
    }

    /// Looks at the two brokers the action touches.
    pub(super) fn look(&self, state: &State<'_>, effect: &Effect) -> Quick {
        let one = self.look_at(effect.from, state.levels(effect.from), &effect.on_from);
        if let Quick::Leaves(_) = one {
            return one;
        }
        match self.look_at(effect.to, state.levels(effect.to), &effect.on_to) {
            Quick::Within => one,
            other => other,
        }
    }

    fn look_at(&self, seat: Seat, levels: &Levels, change: &Levels) -> Quick {
        let row = &self.posts[usize::from(seat)];
        let mut answer = Quick::Within;
        for gauge in 0..GAUGES {
            let (post, before) = (&row[gauge], levels[gauge]);
            let after = before + change[gauge];
            // Outside on either side: from too little to too much may be no worse than it was.
            let outside = before > post.high || before < post.low;
            if after > post.high && change[gauge] > 0.0 {
                if outside {
                    answer = Quick::Unsure;
                } else {
                    return Quick::Leaves(usize::from(post.high_goal));
                }
            } else if after < post.low && change[gauge] < 0.0 {
                if outside {
                    answer = Quick::Unsure;
                } else {
                    return Quick::Leaves(usize::from(post.low_goal));
                }
            }
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Small;
    use crate::gauges::Gauge;
    use crate::goal::Goal;
    use crate::options::Request;
    use crate::rules::Rules;
    use crate::settings::Settings;

    /// What the fences of both goals say if broker 0, which has too few bytes, loses some more and broker 1, which has as
    /// many replicas as it should, gets so many more.
    fn look(more_replicas: f64) -> Quick {
        let mut small = Small::in_racks("ab");
        for number in 0..10 {
            small.partition("t", number, &[number % 2], if number % 2 == 0 { 1.0 } else { 10.0 });
        }
        let cluster = small.cluster();
        let rules = Rules::compile(&cluster, &Request::default()).unwrap();
        let state = State::found(&cluster);
        let goals = [Goal::ReplicaDistribution, Goal::DiskUsageDistribution];
        let aims = Aims::compile(&state, &goals, &Settings::default(), &rules);
        let change = |gauge: Gauge, by: f64| {
            let mut levels = [0.0; GAUGES];
            levels[gauge as usize] = by;
            levels
        };
        let (on_from, on_to) = (change(Gauge::Disk, -1.0), change(Gauge::Replicas, more_replicas));
        Fences::of(&aims, goals.len(), 2).look(&state, &Effect { from: 0, to: 1, on_from, on_to })
    }

    #[test]
    fn that_one_broker_is_outside_of_some_band_lets_the_other_out_of_none() {
        assert_eq!(look(0.0), Quick::Unsure);
        assert_eq!(look(4.0), Quick::Leaves(0));
    }
}
