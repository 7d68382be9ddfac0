//! A cluster in numbers, as each goal's summary shows it.
//!
//! Means are over brokers that may get replicas, extremes of loads over those that are alive (of
//! hosts, where brokers of one share the resource), extremes of counts over all.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_balancer::{
    cluster::{Broker, BrokerId, Cluster, Resource},
    plan::Plan,
    planner::BrokerLoad,
};
use evenkeel_rest::{
    body::{ClusterModelStats, ModelMetadata, Statistic, Statistics},
    json::Double,
};

/// What stands for a number that nobody measured.
pub(super) const UNKNOWN: f64 = -1.0;

/// How many replicas of each topic each broker has.
pub(super) struct Census {
    brokers: Vec<BrokerId>,
    topics: usize,
    /// Topic by topic, in each broker by broker.
    counts: Vec<u32>,
}

impl Census {
    /// Once `plan` is carried out on `cluster`.
    pub(super) fn after(cluster: &Cluster, plan: &Plan) -> Census {
        let brokers: Vec<BrokerId> = cluster.brokers().iter().map(|broker| broker.id).collect();
        let topics = cluster.topics();
        let mut census = Census { counts: vec![0; topics.len() * brokers.len()], topics: topics.len(), brokers };
        let mut topic = 0;
        for partition in cluster.partitions() {
            // Partitions come topic by topic.
            while topics[topic] != partition.topic() {
                topic += 1;
            }
            partition.replicas().for_each(|replica| census.add(topic, replica.broker, 1));
        }
        for change in &plan.changes {
            let Ok(topic) = topics.binary_search(&change.topic) else { continue };
            change.old_replicas.iter().for_each(|id| census.add(topic, *id, -1));
            change.new_replicas.iter().for_each(|id| census.add(topic, *id, 1));
        }
        census
    }

    fn add(&mut self, topic: usize, broker: BrokerId, more: i32) {
        if let Ok(seat) = self.brokers.binary_search(&broker) {
            let count = &mut self.counts[topic * self.brokers.len() + seat];
            *count = count.saturating_add_signed(more);
        }
    }
}

/// How one number lies over brokers.
#[derive(Clone, Copy, Default)]
struct Spread {
    mean: f64,
    deviation: f64,
    least: f64,
    most: f64,
}

impl Spread {
    const UNKNOWN: Spread = Spread { mean: UNKNOWN, deviation: UNKNOWN, least: UNKNOWN, most: UNKNOWN };
}

/// The numbers of a cluster whose brokers are those of `cluster` and carry `loads`, in the same order.
pub(super) fn figures(
    cluster: &Cluster,
    loads: &[BrokerLoad],
    census: &Census,
    excluded: &BTreeSet<BrokerId>,
) -> ClusterModelStats {
    let all: Vec<(&Broker, &BrokerLoad)> = cluster.brokers().iter().zip(loads).collect();
    let allowed: Vec<bool> =
        all.iter().map(|(broker, _)| broker.is_alive() && !excluded.contains(&broker.id)).collect();
    let counts = |of: fn(&BrokerLoad) -> u64| {
        let values: Vec<f64> = all.iter().map(|(_, load)| of(load) as f64).collect();
        spread(&values, &vec![1.0; values.len()], &allowed, &values)
    };
    let loaded = |of: &dyn Fn(&BrokerLoad) -> f64, resource: Resource, weighed: bool| {
        if cluster.unknown().contains(resource) {
            return Spread::UNKNOWN;
        }
        let values: Vec<f64> = all.iter().map(|(_, load)| of(load)).collect();
        let weight = |broker: &Broker| if weighed { broker.capacity[resource as usize] } else { 1.0 };
        let weights: Vec<f64> = all.iter().map(|(broker, _)| weight(broker)).collect();
        let living = all.iter().zip(&values).filter(|((broker, _), _)| broker.is_alive());
        let mut extremes: BTreeMap<i64, f64> = BTreeMap::new();
        for ((broker, _), value) in living {
            let shared = resource.is_shared_by_host() && weighed;
            let place = if shared { broker.host as i64 } else { i64::from(broker.id.0) };
            *extremes.entry(place).or_default() += value;
        }
        spread(&values, &weights, &allowed, &extremes.into_values().collect::<Vec<f64>>())
    };
    let resource = |resource: Resource| loaded(&|load| load.resources[resource as usize], resource, true);
    let each = Each {
        disk: resource(Resource::Disk),
        cpu: resource(Resource::Cpu),
        network_outbound: resource(Resource::NwOut),
        network_inbound: resource(Resource::NwIn),
        potential_nw_out: loaded(&|load| load.potential_out, Resource::NwOut, false),
        replicas: counts(|load| load.replicas),
        leader_replicas: counts(|load| load.leaders),
        topic_replicas: of_topics(census, &allowed),
    };
    ClusterModelStats {
        statistics: Statistics {
            avg: each.statistic(|spread| spread.mean, Double),
            std: each.statistic(|spread| spread.deviation, Double),
            min: each.statistic(|spread| spread.least, |count| count as u64),
            max: each.statistic(|spread| spread.most, |count| count as u64),
        },
        metadata: ModelMetadata {
            topics: census.topics as u64,
            replicas: loads.iter().map(|load| load.replicas).sum(),
            brokers: all.len() as u64,
        },
    }
}

/// The spread of everything that is measured or counted.
struct Each {
    disk: Spread,
    cpu: Spread,
    network_outbound: Spread,
    network_inbound: Spread,
    potential_nw_out: Spread,
    replicas: Spread,
    leader_replicas: Spread,
    topic_replicas: Spread,
}

impl Each {
    fn statistic<Count>(&self, of: fn(&Spread) -> f64, count: fn(f64) -> Count) -> Statistic<Count> {
        let number = |spread: &Spread| Double(of(spread));
        Statistic {
            disk: number(&self.disk),
            replicas: count(of(&self.replicas)),
            leader_replicas: count(of(&self.leader_replicas)),
            cpu: number(&self.cpu),
            network_outbound: number(&self.network_outbound),
            network_inbound: number(&self.network_inbound),
            topic_replicas: count(of(&self.topic_replicas)),
            potential_nw_out: number(&self.potential_nw_out),
        }
    }
}

/// `values` are by broker, each to be in proportion to its weight; `extremes` are what the least and the most are among.
fn spread(values: &[f64], weights: &[f64], allowed: &[bool], extremes: &[f64]) -> Spread {
    let count = allowed.iter().filter(|allowed| **allowed).count();
    if count == 0 || extremes.is_empty() {
        return Spread::default();
    }
    let total: f64 = values.iter().sum();
    let counted = || values.iter().zip(weights).zip(allowed).filter(|(_, allowed)| **allowed).map(|(both, _)| both);
    let share = total / counted().map(|(_, weight)| weight).sum::<f64>();
    let squares: f64 = counted().map(|(value, weight)| (value - share * weight).powi(2)).sum();
    Spread {
        mean: total / count as f64,
        deviation: (squares / count as f64).sqrt(),
        least: extremes.iter().copied().fold(f64::INFINITY, f64::min),
        most: extremes.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    }
}

/// Mean and deviation are the means of those of the topics.
fn of_topics(census: &Census, allowed: &[bool]) -> Spread {
    if census.topics == 0 || census.brokers.is_empty() {
        return Spread::default();
    }
    let weights = vec![1.0; census.brokers.len()];
    let mut whole = Spread { least: f64::INFINITY, most: f64::NEG_INFINITY, ..Spread::default() };
    let mut values = Vec::with_capacity(census.brokers.len());
    for topic in census.counts.chunks_exact(census.brokers.len()) {
        values.clear();
        values.extend(topic.iter().map(|count| f64::from(*count)));
        let one = spread(&values, &weights, allowed, &values);
        whole.mean += one.mean / census.topics as f64;
        whole.deviation += one.deviation / census.topics as f64;
        whole.least = whole.least.min(one.least);
        whole.most = whole.most.max(one.most);
    }
    whole
}
