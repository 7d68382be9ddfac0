//! Small clusters for tests, written as numbers that can be added up by hand.

use crate::cluster::{BrokerId, BrokerSpec, BrokerState, Cluster, ClusterBuilder, Load, ReplicaSpec, Resource};

/// A cluster in the making: brokers first, then partitions.
pub(crate) struct Small {
    builder: ClusterBuilder,
}

impl Small {
    /// Brokers 0, 1, …, one for each letter, in the rack of that letter, each on its own host, each with
    /// a capacity of 100 % CPU, 1,000 KB/s in, 1,000 KB/s out and 1,000 MB.
    pub(crate) fn in_racks(racks: &str) -> Small {
        let mut small = Small { builder: ClusterBuilder::new() };
        for (id, rack) in (0..).zip(racks.chars()) {
            small.broker(id, rack, &format!("host{id}"), BrokerState::Alive, [100.0, 1000.0, 1000.0, 1000.0]);
        }
        small
    }

    /// One more broker.
    pub(crate) fn broker(
        &mut self,
        id: i32,
        rack: char,
        host: &str,
        state: BrokerState,
        capacity: [f64; Resource::COUNT],
    ) {
        let (rack, host) = (rack.to_string(), host.to_owned());
        self.builder.broker(BrokerSpec { id: BrokerId(id), rack, host, state, capacity, disks: Vec::new() }).unwrap();
    }

    /// A partition on these brokers, the first of which leads, with so many MB and no other load.
    pub(crate) fn partition(&mut self, topic: &str, number: i32, brokers: &[i32], megabytes: f32) {
        self.loaded(topic, number, brokers, Load { disk: megabytes, ..Load::default() });
    }

    /// A partition whose leader carries `load`; followers carry what of it followers do.
    pub(crate) fn loaded(&mut self, topic: &str, number: i32, brokers: &[i32], load: Load) {
        let replicas: Vec<ReplicaSpec> = (0..)
            .zip(brokers)
            .map(|(position, id): (usize, _)| {
                let load = if position == 0 { load } else { Load { nw_out: 0.0, cpu: 0.0, ..load } };
                ReplicaSpec { broker: BrokerId(*id), disk: None, load, offline: false }
            })
            .collect();
        self.builder.partition(topic, number, 0, &replicas).unwrap();
    }

    /// The cluster.
    pub(crate) fn cluster(self) -> Cluster {
        self.builder.build().unwrap()
    }
}
