//! Turning the goals of a request into numbers for one cluster: the band of each broker, the share
//! it ought to carry, the counts per topic.

use super::hosts::{Hosts, Reach};
use super::{Aim, Aims, Limit, Rise, Role};
use crate::cluster::{Cluster, Part, Resource, Seat, Slot};
use crate::gauges::{GAUGES, Gauge, Levels};
use crate::goal::Goal;
use crate::provision::racks;
use crate::rules::Rules;
use crate::settings::Settings;
use crate::state::State;

impl Aims {
    pub(crate) fn compile(state: &State<'_>, goals: &[Goal], settings: &Settings, rules: &Rules) -> Aims {
        let cluster = state.cluster;
        let seats = cluster.brokers().len();
        let counted = rules.counted.iter().filter(|counted| **counted).count() as f64;
        let totals = totals(state);
        let is_band = |goal: &&Goal| band_of(**goal).is_some() || **goal == Goal::LeaderBytesInDistribution;
        let bands = goals.iter().filter(is_band).count();
        let role = |seat: Seat| match (rules.is_alive(seat), rules.counted[usize::from(seat)]) {
            (false, _) => Role::Emptied,
            (true, false) => Role::Keeper,
            (true, true) => Role::Taker { leads: rules.takes_leaders(seat) },
        };
        let mut aims = Aims {
            goals: goals.to_vec(),
            aims: Vec::with_capacity(goals.len()),
            bands,
            limits: vec![Limit::FREE; bands * seats],
            hosts: Hosts::shared(cluster, rules, bands),
            targets: vec![[0.0; GAUGES]; seats],
            pulls: vec![[0.0; GAUGES]; seats],
            topic_bands: topic_bands(cluster, settings, counted, rules),
            watch_topics: goals.contains(&Goal::TopicReplicaDistribution),
            min_leaders: min_leaders(cluster, settings, rules),
            racks: cluster.brokers().iter().map(|broker| broker.rack as u16).collect(),
            live_racks: racks(cluster, |seat| rules.counted[usize::from(seat)]),
            roles: (0..seats as Seat).map(role).collect(),
            passed_over: passed_over(state, goals, rules),
            leader_in: None,
        };
        for goal in goals {
            let aim = match goal {
                Goal::RackAware => Aim::Racks,
                Goal::RackAwareDistribution => Aim::EvenRacks,
                Goal::TopicReplicaDistribution => Aim::TopicReplicas,
                Goal::MinTopicLeadersPerBroker => Aim::TopicLeaders,
                Goal::PreferredLeaderElection => Aim::PreferredLeaders,
                Goal::LeaderBytesInDistribution => aims.add_leader_in(state, settings, rules, counted),
                Goal::IntraBrokerDiskCapacity | Goal::IntraBrokerDiskUsageDistribution => {
                    unreachable!("goals inside brokers are not compiled here")
                }
                _ => aims.add_band(*goal, cluster, settings, rules, &totals, counted),
            };
            aims.aims.push(aim);
        }
        aims
    }

    fn add_band(
        &mut self,
        goal: Goal,
        cluster: &Cluster,
        settings: &Settings,
        rules: &Rules,
        totals: &Levels,
        counted: f64,
    ) -> Aim {
        let (gauge, kind) = band_of(goal).unwrap_or((Gauge::Replicas, Kind::Count));
        let band = self.next_band();
        let total = totals[gauge as usize];
        let capacity_of = |seat: usize, resource: Resource| cluster.brokers()[seat].capacity[resource as usize];
        let whole = |resource: Resource| -> f64 {
            (0..rules.counted.len()).filter(|seat| rules.counted[*seat]).map(|seat| capacity_of(seat, resource)).sum()
        };
        for seat in 0..rules.counted.len() {
            if !rules.is_alive(seat as Seat) {
                continue;
            }
            let (limit, share, half) = match kind {
                Kind::Count => {
                    let threshold = match gauge {
                        Gauge::Leaders => settings.leader_replica_count_balance_threshold,
                        _ => settings.replica_count_balance_threshold,
                    };
                    let (mean, width) = (total / counted, settings.half_width(threshold));
                    let (low, high) = ((mean * (1.0 - width)).floor(), (mean * (1.0 + width)).ceil());
                    (Limit::new(low, high, mean), mean, mean * width)
                }
                Kind::MostReplicas => {
                    let most = settings.max_replicas_per_broker as f64;
                    (Limit::new(0.0, most, most), total / counted, most)
                }
                Kind::Capacity(resource) => {
                    let capacity = capacity_of(seat, resource);
                    let high = capacity * settings.capacity_thresholds[resource as usize];
                    let limit =
                        if gauge == Gauge::of(resource) { Limit::below(high) } else { Limit::new(0.0, high, high) };
                    (limit, total / whole(resource) * capacity, high)
                }
                Kind::Usage(resource) => {
                    let capacity = capacity_of(seat, resource);
                    let mean = total / whole(resource);
                    let width = settings.half_width(settings.balance_thresholds[resource as usize]);
                    let idle = settings.low_utilization_thresholds[resource as usize];
                    let (low, high) = if mean <= idle {
                        (0.0, (mean * (1.0 + width)).max(idle * IDLE_MARGIN))
                    } else {
                        (mean * (1.0 - width), mean * (1.0 + width))
                    };
                    let share = mean * capacity;
                    (Limit::new(low * capacity, high * capacity, share), share, share * width)
                }
            };
            // Brokers that get no replicas are free to lose what they have. No part of the whole is meant for them, so
            // that others fill up from them first of all.
            let limit = if rules.counted[seat] { limit } else { Limit { low: 0.0, ..limit } };
            let share = if rules.counted[seat] || rules.may_gain(seat as Seat) { share } else { 0.0 };
            self.limits[seat * self.bands + band] = limit;
            self.pull(seat, gauge, share, half, matches!(kind, Kind::Count | Kind::Usage(_)));
        }
        let reach = kind.reach(gauge);
        if let Some(hosts) = self.hosts.as_mut().filter(|_| reach != Reach::Broker) {
            hosts.add_band(band, reach, &mut self.limits);
        }
        let rise = match kind {
            Kind::Capacity(resource) if gauge == Gauge::of(resource) => Rise::BarredToLeaders,
            Kind::Capacity(_) | Kind::MostReplicas => Rise::Barred,
            Kind::Count | Kind::Usage(_) => Rise::Traded,
        };
        Aim::Band { gauge, band, rise }
    }

    /// The number of the band that comes after those there are.
    pub(super) fn next_band(&self) -> usize {
        self.aims.iter().filter(|aim| matches!(aim, Aim::Band { .. })).count()
    }

    /// Lets deviations of the gauge strain the broker, as much as `half` of the share is wide.
    pub(super) fn pull(&mut self, seat: usize, gauge: Gauge, share: f64, half: f64, is_distribution: bool) {
        let gauge = gauge as usize;
        self.targets[seat][gauge] = share;
        let half = half.max(share * 0.01);
        let pull = if half > 0.0 { 1.0 / half } else { 0.0 };
        // Goals that only ask for room pull a little, so that the emptier broker is preferred.
        let pull = if is_distribution { pull } else { pull * 0.1 };
        self.pulls[seat][gauge] = self.pulls[seat][gauge].max(pull);
    }
}

/// A fraction of the idle threshold that an idle cluster's brokers may reach.
const IDLE_MARGIN: f64 = 0.9;

/// Which shape of band a goal is.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Count,
    MostReplicas,
    Capacity(Resource),
    Usage(Resource),
}

impl Kind {
    /// Whether a broker's host has a say. What leaders might send is a matter of brokers.
    fn reach(self, gauge: Gauge) -> Reach {
        match self {
            Kind::Capacity(Resource::Cpu) => Reach::Both,
            Kind::Capacity(resource) if resource.is_shared_by_host() && gauge == Gauge::of(resource) => Reach::Host,
            Kind::Usage(resource) if resource.is_shared_by_host() => Reach::Either,
            _ => Reach::Broker,
        }
    }
}

fn band_of(goal: Goal) -> Option<(Gauge, Kind)> {
    let capacity = |resource| (Gauge::of(resource), Kind::Capacity(resource));
    let usage = |resource| (Gauge::of(resource), Kind::Usage(resource));
    Some(match goal {
        Goal::ReplicaCapacity => (Gauge::Replicas, Kind::MostReplicas),
        Goal::DiskCapacity => capacity(Resource::Disk),
        Goal::NetworkInboundCapacity => capacity(Resource::NwIn),
        Goal::NetworkOutboundCapacity => capacity(Resource::NwOut),
        Goal::CpuCapacity => capacity(Resource::Cpu),
        Goal::ReplicaDistribution => (Gauge::Replicas, Kind::Count),
        Goal::PotentialNwOut => (Gauge::PotentialOut, Kind::Capacity(Resource::NwOut)),
        Goal::DiskUsageDistribution => usage(Resource::Disk),
        Goal::NetworkInboundUsageDistribution => usage(Resource::NwIn),
        Goal::NetworkOutboundUsageDistribution => usage(Resource::NwOut),
        Goal::CpuUsageDistribution => usage(Resource::Cpu),
        Goal::LeaderReplicaDistribution => (Gauge::Leaders, Kind::Count),
        _ => return None,
    })
}

/// The whole cluster's gauges, brokers that are to be emptied included.
fn totals(state: &State<'_>) -> Levels {
    let mut totals = [0.0; GAUGES];
    for levels in state.all_levels() {
        for (total, level) in totals.iter_mut().zip(levels) {
            *total += level;
        }
    }
    totals
}

fn topic_bands(cluster: &Cluster, settings: &Settings, counted: f64, rules: &Rules) -> Vec<(u32, u32)> {
    (0..cluster.topics().len() as u32)
        .map(|topic| {
            if rules.is_excluded(topic) {
                return (0, u32::MAX);
            }
            let parts = cluster.topic_parts(topic);
            let replicas: usize = if parts.is_empty() {
                0
            } else {
                (cluster.slots(parts.end - 1).end - cluster.slots(parts.start).start) as usize
            };
            settings.topic_band(replicas as f64 / counted)
        })
        .collect()
}

fn min_leaders(cluster: &Cluster, settings: &Settings, rules: &Rules) -> Vec<u32> {
    let brokers = (0..rules.counted.len() as Seat)
        .filter(|seat| rules.counted[usize::from(*seat)] && rules.takes_leaders(*seat))
        .count();
    let wanted = settings.topics_with_min_leaders_per_broker.as_ref();
    cluster
        .topics()
        .iter()
        .enumerate()
        .map(|(topic, name)| match wanted {
            Some(wanted) if wanted.matches(name) => match settings.min_topic_leaders_per_broker {
                0 => (cluster.topic_parts(topic as u32).len() / brokers.max(1)) as u32,
                least => least,
            },
            _ => 0,
        })
        .collect()
}

/// The partitions whose leader comes after another replica in the list that may lead, and the first of those; none if
/// nobody asks.
fn passed_over(state: &State<'_>, goals: &[Goal], rules: &Rules) -> Vec<(Part, Slot)> {
    if !goals.contains(&Goal::PreferredLeaderElection) {
        return Vec::new();
    }
    let leads_instead = |part: Part| {
        let (slots, leader) = (state.cluster.slots(part), state.leader(part));
        // Whoever is offline does not lead, whatever its place.
        let mut before = if rules.must_move(state, leader) { slots } else { slots.start..leader };
        before.find(|slot| rules.may_lead(state, *slot)).map(|slot| (part, slot))
    };
    (0..state.cluster.partition_count() as Part).filter_map(leads_instead).collect()
}
