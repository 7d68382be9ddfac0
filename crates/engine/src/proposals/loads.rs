//! What brokers and partitions carry, as bodies tell it.

use std::{cmp::Ordering, collections::BTreeMap};

use evenkeel_balancer::{
    cluster::{Broker, BrokerState, Cluster, CpuWeights, Resource},
    planner::BrokerLoad,
};
use evenkeel_kafka::TopicPartition;
use evenkeel_rest::{
    Failure,
    body::{self, ClusterLoad, HostLoad, PartitionRecord},
    json::Version,
    parameter,
    request::{Load, PartitionLoad},
};

use super::{
    ask::{decided, topics},
    disks::{Disks, disks},
    figures::UNKNOWN,
};
use crate::{
    config::{capacity::Capacities, settings},
    model::{self, NoModel, Purpose, View},
    monitor::{
        sample::{Metric, Values},
        windows::{Aggregate, Requirement},
    },
};

/// The answer of `load`. Without loads, as before the first window, it is about capacities only.
pub fn load(
    request: &Load,
    view: &View,
    loads: Option<&Aggregate>,
    capacities: &Capacities,
    weights: CpuWeights,
) -> Result<body::Load, Failure> {
    let purpose = Purpose {
        may_estimate: request.allows_capacity_estimation(),
        tells_dirs_apart: request.populates_disk_info(),
        ..Purpose::default()
    };
    let nothing = Aggregate { windows: Vec::new(), loads: Default::default(), coverage: 0.0, stretched: 0 };
    let cluster = model::build(view, loads.unwrap_or(&nothing), capacities, weights, &purpose)
        .map_err(|why: NoModel| Failure::illegal_state(why))?;
    if request.populates_disk_info() && !cluster.has_disks() {
        return Err(Failure::illegal_argument("The log directories of the brokers are not known one by one."));
    }
    let disks = request.populates_disk_info().then(|| disks(&cluster));
    let told = cluster_load(&cluster, &broker_loads(&cluster), disks.as_ref(), loads.is_some());
    Ok(body::Load::from(told))
}

/// What has to be known for `partition_load`.
pub fn partition_requirement(request: &PartitionLoad, settings: &settings::Monitor) -> Requirement {
    Requirement { windows: 1, ratio: request.min_valid_partition_ratio.unwrap_or(settings.valid_ratio) }
}

/// The answer of `partition_load`: of those whose load is known, the heaviest first. The loads are those that are expected,
/// or the peaks if the request asks for them. (The mean of all windows is what is expected anyway, but for disks, where
/// the newest counts.)
pub fn partition_load(
    request: &PartitionLoad,
    view: &View,
    loads: &BTreeMap<TopicPartition, Values>,
) -> Result<body::PartitionLoad, Failure> {
    let pattern = request.topic.as_ref().map(topics).transpose()?;
    if let Some(pattern) = &pattern {
        decided(pattern, loads.keys())?;
    }
    let mut records = Vec::new();
    for (partition, values) in loads {
        let Some(seen) = view.partitions.get(partition) else { continue };
        let wanted = pattern.as_ref().is_none_or(|pattern| pattern.matches(&partition.topic))
            && request.partition.is_none_or(|range| range.contains(partition.partition))
            && (request.brokerid.is_empty() || seen.replicas.iter().any(|id| request.brokerid.contains(id)));
        if wanted {
            records.push(record(partition.topic.to_string(), partition.partition, seen, values));
        }
    }
    let weight = |record: &PartitionRecord| match request.resource {
        parameter::Resource::Cpu => record.cpu.0,
        parameter::Resource::Disk => record.disk.0,
        parameter::Resource::NetworkIn => record.network_inbound.0,
        parameter::Resource::NetworkOut => record.network_outbound.0,
    };
    // Equal ones stay in the order of their names.
    records.sort_by(|one, other| weight(other).partial_cmp(&weight(one)).unwrap_or(Ordering::Equal));
    records.truncate(request.entries as usize);
    Ok(body::PartitionLoad { records, version: Version })
}

fn record(topic: String, partition: i32, seen: &model::PartitionView, values: &Values) -> PartitionRecord {
    let load = model::leader_load(values, seen.replicas.len());
    let or_unknown = |metric: Metric, number: f64| values.get(metric).map_or(UNKNOWN, |_| number).into();
    PartitionRecord {
        network_inbound: or_unknown(Metric::LeaderBytesIn, f64::from(load.nw_in)),
        msg_in: values.get(Metric::MessagesIn).unwrap_or(UNKNOWN).into(),
        leader: seen.leader.unwrap_or(-1),
        followers: seen.replicas.iter().copied().filter(|id| Some(*id) != seen.leader).collect(),
        partition,
        disk: or_unknown(Metric::Disk, f64::from(load.disk)),
        network_outbound: or_unknown(Metric::LeaderBytesOut, f64::from(load.nw_out)),
        topic,
        cpu: or_unknown(Metric::Cpu, f64::from(load.cpu)),
    }
}

/// What each broker carries, in the order of their ids.
pub(super) fn broker_loads(cluster: &Cluster) -> Vec<BrokerLoad> {
    let mut loads: Vec<BrokerLoad> = cluster
        .brokers()
        .iter()
        .map(|broker| BrokerLoad {
            broker: broker.id,
            resources: [0.0; Resource::COUNT],
            replicas: 0,
            leaders: 0,
            potential_out: 0.0,
            leader_in: 0.0,
        })
        .collect();
    for partition in cluster.partitions() {
        let leading = f64::from(partition.leading().nw_out);
        for (position, replica) in partition.replicas().enumerate() {
            let Ok(seat) = loads.binary_search_by_key(&replica.broker, |load| load.broker) else { continue };
            let leads = position == partition.leader();
            let load = &mut loads[seat];
            for resource in Resource::ALL {
                load.resources[resource as usize] += f64::from(replica.load.of(resource));
            }
            load.replicas += 1;
            load.potential_out += f64::from(replica.load.nw_out) + if leads { 0.0 } else { leading };
            if leads {
                load.leaders += 1;
                load.leader_in += f64::from(replica.load.nw_in);
            }
        }
    }
    loads
}

/// The loads of the brokers of `cluster`, which come in the same order. Unless anything is measured,
/// nothing is said to be unknown.
pub(super) fn cluster_load(
    cluster: &Cluster,
    loads: &[BrokerLoad],
    disks: Option<&Disks>,
    measured: bool,
) -> ClusterLoad {
    let told = |(broker, load): (&Broker, &BrokerLoad)| {
        let dirs = disks.and_then(|disks| disks.get(&broker.id.0)).cloned();
        body::BrokerLoad { disk_state: dirs, ..broker_load(cluster, broker, load) }
    };
    let mut brokers: Vec<body::BrokerLoad> = cluster.brokers().iter().zip(loads).map(told).collect();
    let mut hosts = HostLoad::of(&brokers);
    if measured {
        for resource in cluster.unknown().iter() {
            brokers.iter_mut().for_each(|broker| unknown_of_broker(broker, resource));
            hosts.iter_mut().for_each(|host| unknown_of_host(host, resource));
        }
    }
    ClusterLoad { brokers, hosts }
}

fn broker_load(cluster: &Cluster, broker: &Broker, load: &BrokerLoad) -> body::BrokerLoad {
    // One that is gone, or is to be, can carry nothing.
    let can = |resource: Resource| if broker.is_alive() { broker.capacity[resource as usize] } else { 0.0 };
    let carries = |resource: Resource| load.resources[resource as usize];
    let percent = |resource: Resource, otherwise: f64| match can(resource) {
        capacity if capacity > 0.0 => 100.0 * carries(resource) / capacity,
        _ => otherwise,
    };
    body::BrokerLoad {
        follower_nw_in_rate: (carries(Resource::NwIn) - load.leader_in).max(0.0).into(),
        broker_state: match broker.state {
            BrokerState::Alive => body::BrokerState::Alive,
            BrokerState::New => body::BrokerState::New,
            BrokerState::Dead => body::BrokerState::Dead,
            BrokerState::Demoted => body::BrokerState::Demoted,
            BrokerState::BadDisks => body::BrokerState::BadDisks,
        },
        broker: broker.id.0,
        nw_out_rate: carries(Resource::NwOut).into(),
        disk_state: None,
        num_core: (can(Resource::Cpu) / 100.0).into(),
        host: model::shown_host(&cluster.hosts()[broker.host], &cluster.racks()[broker.rack]).to_owned(),
        cpu_pct: percent(Resource::Cpu, 0.0).into(),
        replicas: load.replicas,
        network_in_capacity: can(Resource::NwIn).into(),
        rack: cluster.racks()[broker.rack].clone(),
        leaders: load.leaders,
        disk_capacity_mb: can(Resource::Disk).into(),
        disk_mb: carries(Resource::Disk).into(),
        pnw_out_rate: load.potential_out.into(),
        network_out_capacity: can(Resource::NwOut).into(),
        leader_nw_in_rate: load.leader_in.into(),
        disk_pct: percent(Resource::Disk, -1.0).into(),
    }
}

/// Declares what is said of a resource that nobody measured.
macro_rules! unknown {
    ($name:ident, $body:ty) => {
        fn $name(load: &mut $body, resource: Resource) {
            let numbers = match resource {
                Resource::Cpu => vec![&mut load.cpu_pct],
                Resource::NwIn => vec![&mut load.leader_nw_in_rate, &mut load.follower_nw_in_rate],
                Resource::NwOut => vec![&mut load.nw_out_rate, &mut load.pnw_out_rate],
                Resource::Disk => vec![&mut load.disk_mb, &mut load.disk_pct],
            };
            numbers.into_iter().for_each(|number| number.0 = UNKNOWN);
        }
    };
}

unknown!(unknown_of_broker, body::BrokerLoad);
unknown!(unknown_of_host, HostLoad);
