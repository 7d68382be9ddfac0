//! What of a leader's load it would carry as a follower too, and what goes with leadership.

use std::cmp::Ordering;

use super::types::Resources;
use super::{CpuWeights, LeadLoad, Load, Resource};

/// By how much of the leader's CPU followers may use more or less and yet be meant to use the same: as much as is lost where
/// numbers are written down with three digits.
const ROUNDING: f32 = 1e-3;

/// The CPU that a leader would use as a follower, and what goes with leadership, beside replicas that follow.
///
/// What its traffic causes is reckoned. Where followers take in and store what their leader does, and all use as much CPU as that
/// but for a rounding, it is what they say: somebody reckoned the same with other numbers. Else that rounding alone would
/// keep the replicas from standing for each other in a list of brokers.
pub(super) fn split(
    load: Load,
    followers: impl Iterator<Item = Load>,
    weights: CpuWeights,
    unknown: Resources,
) -> (f32, LeadLoad) {
    let (usual, lead) = split_by_traffic(load, weights, unknown);
    let mut told = None;
    for follower in followers {
        let is_alike = (follower.nw_in, follower.nw_out, follower.disk) == (load.nw_in, 0.0, load.disk);
        if !is_alike || *told.get_or_insert(follower.cpu) != follower.cpu {
            return (usual, lead);
        }
    }
    match told {
        Some(following) if following != usual && (following - usual).abs() <= ROUNDING * load.cpu => {
            (following, LeadLoad { cpu: load.cpu - following, ..lead })
        }
        _ => (usual, lead),
    }
}

/// The same by what the leader's traffic causes. The sum of both is again what was measured, to the last bit: a cluster that is
/// written down and read again must be the same one. (Where followers tell, the sum may be the next number; then both parts
/// are written down.)
pub(super) fn split_by_traffic(load: Load, weights: CpuWeights, unknown: Resources) -> (f32, LeadLoad) {
    // Where nobody knows what comes in, CPU is split as if nothing else caused it: followers do use some.
    let traffic = if unknown.contains(Resource::NwIn) { Load { nw_in: 1.0, nw_out: 0.0, ..load } } else { load };
    let following = weights.follower_cpu(traffic);
    let leading = load.cpu - following;
    // The difference was rounded by at most half a unit in the last place, so the sum is either
    // right or lies exactly between two numbers; then the least nudge of the smaller part decides.
    let sum = following + leading;
    let following = match sum.partial_cmp(&load.cpu) {
        Some(Ordering::Greater) => following.next_down(),
        Some(Ordering::Less) => following.next_up(),
        _ => following,
    };
    (following, LeadLoad { cpu: leading, nw_out: load.nw_out })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn followers_use_some_cpu_though_nobody_knows_what_comes_in() {
        let leading = |load: Load, unknown: Resources| split_by_traffic(load, CpuWeights::default(), unknown).1.cpu;
        let load = Load { cpu: 7.0, nw_in: 0.0, nw_out: 10.0, disk: 1.0 };
        // Nothing comes in: all of it is the leader's. Not known: 0.15 of 0.7 is what followers use.
        assert_eq!(leading(load, Resources::NONE), 7.0);
        assert_eq!(leading(load, Resources::NONE.with(Resource::NwIn)), 5.5);
    }

    #[test]
    fn followers_tell_what_following_costs_to_the_last_digits() {
        let usual = |load: Load| split_by_traffic(load, CpuWeights::default(), Resources::NONE);
        let beside = |load: Load, cpus: &[f32]| {
            let followers = cpus.iter().map(|cpu| Load { cpu: *cpu, nw_out: 0.0, ..load });
            split(load, followers, CpuWeights::default(), Resources::NONE)
        };
        for number in 1..1_000_u16 {
            let part = |nth: u16| f32::from(number.wrapping_mul(nth)) / 7.0;
            let load = Load { cpu: part(31), nw_in: part(57), nw_out: part(91), disk: 1.0 };
            let reckoned = usual(load).0;
            for told in [reckoned.next_up(), reckoned.next_down(), reckoned + 9e-4 * load.cpu] {
                let (following, lead) = beside(load, &[told, told]);
                let rounding = (following + lead.cpu - load.cpu).abs();
                assert!(rounding <= load.cpu * f32::EPSILON, "{rounding} of {load:?}");
                assert_eq!((following, lead.nw_out), (told, load.nw_out), "{load:?}");
            }
            assert_eq!(beside(load, &[reckoned.next_up(), reckoned]), usual(load), "they do not agree");
            assert_eq!(beside(load, &[reckoned + 2e-3 * load.cpu]), usual(load), "they use another amount");
            assert_eq!(beside(load, &[]), usual(load), "nobody tells");
            let follower = Load { cpu: reckoned.next_up(), nw_out: 0.0, ..load };
            let others =
                [Load { disk: 2.0, ..follower }, Load { nw_in: 0.5, ..follower }, Load { nw_out: 1.0, ..follower }];
            for other in others {
                let split = split(load, [other].into_iter(), CpuWeights::default(), Resources::NONE);
                assert_eq!(split, usual(load), "{other:?} is another load");
            }
        }
    }
}
