//! `load`, and the loads before and after an optimisation.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::json::{Double, Version};
use crate::parameter::choice;

/// The answer of `load`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// By broker, in the order of their ids.
    pub brokers: Vec<BrokerLoad>,
    /// By host, in the order of their names.
    pub hosts: Vec<HostLoad>,
    /// Always 1.
    pub version: Version,
}

/// The same inside an optimisation's result, where it has no version.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClusterLoad {
    /// By broker, in the order of their ids.
    pub brokers: Vec<BrokerLoad>,
    /// By host, in the order of their names.
    #[serde(default)]
    pub hosts: Vec<HostLoad>,
}

impl From<ClusterLoad> for Load {
    fn from(load: ClusterLoad) -> Self {
        Self { brokers: load.brokers, hosts: load.hosts, version: Version }
    }
}

choice! {
    /// How a broker is.
    pub enum BrokerState {
        /// There.
        Alive = "ALIVE",
        /// Not there, but it has replicas.
        Dead = "DEAD",
        /// There, and being filled.
        New = "NEW",
        /// There, and not to lead.
        Demoted = "DEMOTED",
        /// There, but not all of its disks.
        BadDisks = "BAD_DISKS",
    }
}

/// What a broker has to do, and could.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BrokerLoad {
    /// KB/s that it reads as a follower.
    #[serde(rename = "FollowerNwInRate")]
    pub follower_nw_in_rate: Double,
    /// How it is.
    #[serde(rename = "BrokerState")]
    pub broker_state: BrokerState,
    /// Its id.
    #[serde(rename = "Broker")]
    pub broker: i32,
    /// KB/s that it sends.
    #[serde(rename = "NwOutRate")]
    pub nw_out_rate: Double,
    /// By log directory, if asked for.
    #[serde(rename = "DiskState", default, skip_serializing_if = "Option::is_none")]
    pub disk_state: Option<BTreeMap<String, DiskLoad>>,
    /// Cores.
    #[serde(rename = "NumCore")]
    pub num_core: Double,
    /// Where it runs.
    #[serde(rename = "Host")]
    pub host: String,
    /// Of its cores, in percent.
    #[serde(rename = "CpuPct")]
    pub cpu_pct: Double,
    /// Replicas on it.
    #[serde(rename = "Replicas")]
    pub replicas: u64,
    /// KB/s that it could receive.
    #[serde(rename = "NetworkInCapacity")]
    pub network_in_capacity: Double,
    /// Where it stands.
    #[serde(rename = "Rack")]
    pub rack: String,
    /// Replicas on it that lead.
    #[serde(rename = "Leaders")]
    pub leaders: u64,
    /// MB that fit on it.
    #[serde(rename = "DiskCapacityMB")]
    pub disk_capacity_mb: Double,
    /// MB on it.
    #[serde(rename = "DiskMB")]
    pub disk_mb: Double,
    /// KB/s that it would send if it led everything it has.
    #[serde(rename = "PnwOutRate")]
    pub pnw_out_rate: Double,
    /// KB/s that it could send.
    #[serde(rename = "NetworkOutCapacity")]
    pub network_out_capacity: Double,
    /// KB/s that it receives as a leader.
    #[serde(rename = "LeaderNwInRate")]
    pub leader_nw_in_rate: Double,
    /// Of its disks, in percent; -1 without capacity.
    #[serde(rename = "DiskPct")]
    pub disk_pct: Double,
}

/// The sums over the brokers of a host, percentages too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the same as in BrokerLoad")]
pub struct HostLoad {
    #[serde(rename = "FollowerNwInRate")]
    pub follower_nw_in_rate: Double,
    #[serde(rename = "NwOutRate")]
    pub nw_out_rate: Double,
    #[serde(rename = "NumCore")]
    pub num_core: Double,
    #[serde(rename = "Host")]
    pub host: String,
    #[serde(rename = "CpuPct")]
    pub cpu_pct: Double,
    #[serde(rename = "Replicas")]
    pub replicas: u64,
    #[serde(rename = "NetworkInCapacity")]
    pub network_in_capacity: Double,
    #[serde(rename = "Rack")]
    pub rack: String,
    #[serde(rename = "Leaders")]
    pub leaders: u64,
    #[serde(rename = "DiskCapacityMB")]
    pub disk_capacity_mb: Double,
    #[serde(rename = "DiskMB")]
    pub disk_mb: Double,
    #[serde(rename = "PnwOutRate")]
    pub pnw_out_rate: Double,
    #[serde(rename = "NetworkOutCapacity")]
    pub network_out_capacity: Double,
    #[serde(rename = "LeaderNwInRate")]
    pub leader_nw_in_rate: Double,
    #[serde(rename = "DiskPct")]
    pub disk_pct: Double,
}

impl HostLoad {
    /// The hosts of these brokers, in the order of their names. Capacities are sums as well.
    pub fn of(brokers: &[BrokerLoad]) -> Vec<Self> {
        let mut hosts: BTreeMap<&str, Self> = BTreeMap::new();
        for broker in brokers {
            match hosts.get_mut(broker.host.as_str()) {
                Some(host) => host.add(broker),
                None => {
                    hosts.insert(&broker.host, Self::from(broker));
                }
            }
        }
        hosts.into_values().collect()
    }

    fn add(&mut self, broker: &BrokerLoad) {
        self.follower_nw_in_rate.0 += broker.follower_nw_in_rate.0;
        self.nw_out_rate.0 += broker.nw_out_rate.0;
        self.num_core.0 += broker.num_core.0;
        self.cpu_pct.0 += broker.cpu_pct.0;
        self.replicas += broker.replicas;
        self.network_in_capacity.0 += broker.network_in_capacity.0;
        self.leaders += broker.leaders;
        self.disk_capacity_mb.0 += broker.disk_capacity_mb.0;
        self.disk_mb.0 += broker.disk_mb.0;
        self.pnw_out_rate.0 += broker.pnw_out_rate.0;
        self.network_out_capacity.0 += broker.network_out_capacity.0;
        self.leader_nw_in_rate.0 += broker.leader_nw_in_rate.0;
        self.disk_pct.0 += broker.disk_pct.0;
    }
}

impl From<&BrokerLoad> for HostLoad {
    fn from(broker: &BrokerLoad) -> Self {
        Self {
            follower_nw_in_rate: broker.follower_nw_in_rate,
            nw_out_rate: broker.nw_out_rate,
            num_core: broker.num_core,
            host: broker.host.clone(),
            cpu_pct: broker.cpu_pct,
            replicas: broker.replicas,
            network_in_capacity: broker.network_in_capacity,
            rack: broker.rack.clone(),
            leaders: broker.leaders,
            disk_capacity_mb: broker.disk_capacity_mb,
            disk_mb: broker.disk_mb,
            pnw_out_rate: broker.pnw_out_rate,
            network_out_capacity: broker.network_out_capacity,
            leader_nw_in_rate: broker.leader_nw_in_rate,
            disk_pct: broker.disk_pct,
        }
    }
}

/// What lies on one disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DiskLoad {
    /// Replicas on it.
    #[serde(rename = "NumReplicas")]
    pub num_replicas: u64,
    /// MB on it.
    #[serde(rename = "DiskMB")]
    pub disk_mb: DiskFigure,
    /// Replicas on it that lead.
    #[serde(rename = "NumLeaderReplicas")]
    pub num_leader_replicas: u64,
    /// Of the disk, in percent.
    #[serde(rename = "DiskPct")]
    pub disk_pct: DiskFigure,
}

/// A number, or a word where there can be none.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum DiskFigure {
    /// The disk is there.
    Of(Double),
    /// It is not, or shall not be.
    Dead(Dead),
}

impl DiskFigure {
    /// Of a disk that is dead.
    pub const DEAD: Self = Self::Dead(Dead::Dead);
}

/// The word for a disk that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Dead {
    /// The only one.
    #[serde(rename = "DEAD")]
    Dead,
}
