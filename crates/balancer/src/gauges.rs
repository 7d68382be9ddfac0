//! What is counted on each broker, and what one replica or one leadership adds to it.

use crate::cluster::{LeadLoad, Resource, SlotLoad};

/// The numbers every broker-level goal is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gauge {
    Cpu,
    NwIn,
    NwOut,
    Disk,
    /// How many replicas the broker holds.
    Replicas,
    /// How many of them lead.
    Leaders,
    /// Outbound traffic if the broker led every partition it holds.
    PotentialOut,
    /// Inbound traffic of the partitions it leads.
    LeaderIn,
}

/// How many gauges there are.
pub(crate) const GAUGES: usize = 8;

/// One number per gauge: a broker's state, or the change an action makes to it.
pub(crate) type Levels = [f64; GAUGES];

impl Gauge {
    pub(crate) fn of(resource: Resource) -> Gauge {
        match resource {
            Resource::Cpu => Gauge::Cpu,
            Resource::NwIn => Gauge::NwIn,
            Resource::NwOut => Gauge::NwOut,
            Resource::Disk => Gauge::Disk,
        }
    }

    /// Whether handing over leadership changes it.
    pub(crate) fn follows_leadership(self) -> bool {
        matches!(self, Gauge::Cpu | Gauge::NwOut | Gauge::Leaders | Gauge::LeaderIn)
    }
}

/// What a replica adds to the broker that holds it.
pub(crate) fn replica_levels(slot: SlotLoad, lead: LeadLoad, leads: bool) -> Levels {
    let mut levels = [0.0; GAUGES];
    levels[Gauge::Cpu as usize] = f64::from(slot.cpu);
    levels[Gauge::NwIn as usize] = f64::from(slot.nw_in);
    levels[Gauge::NwOut as usize] = f64::from(slot.nw_out);
    levels[Gauge::Disk as usize] = f64::from(slot.disk);
    levels[Gauge::Replicas as usize] = 1.0;
    levels[Gauge::PotentialOut as usize] = f64::from(lead.nw_out);
    if leads {
        let leading = leadership_levels(slot, lead);
        for (level, extra) in levels.iter_mut().zip(leading) {
            *level += extra;
        }
    }
    levels
}

/// What leading adds to what the replica adds anyway.
pub(crate) fn leadership_levels(slot: SlotLoad, lead: LeadLoad) -> Levels {
    let mut levels = [0.0; GAUGES];
    levels[Gauge::Cpu as usize] = f64::from(lead.cpu);
    levels[Gauge::NwOut as usize] = f64::from(lead.nw_out);
    levels[Gauge::Leaders as usize] = 1.0;
    levels[Gauge::LeaderIn as usize] = f64::from(slot.nw_in);
    levels
}

/// The sum.
pub(crate) fn plus(one: Levels, other: Levels) -> Levels {
    std::array::from_fn(|gauge| one[gauge] + other[gauge])
}

/// The difference.
pub(crate) fn minus(one: Levels, other: Levels) -> Levels {
    std::array::from_fn(|gauge| one[gauge] - other[gauge])
}

/// The same change the other way.
pub(crate) fn negated(levels: Levels) -> Levels {
    levels.map(|level| -level)
}
