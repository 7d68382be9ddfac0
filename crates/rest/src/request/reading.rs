//! Requests that only look.

use std::collections::BTreeSet;

use super::Consistent;
use crate::parameter::{
    BrokerIds, Endpoints, Entries, Flag, Millis, Names, Partitions, Pattern, Ratio, Resource, ResourceName, Substates,
    TaskIds, TaskStatuses, Text, Time, parameters,
};

/// As many as there are.
const ALL_ENTRIES: u32 = i32::MAX as u32;

parameters! {
    /// `load`: how much each broker has to do.
    pub struct Load {
        optional {
            /// Accepted, without effect: what is known now is answered.
            start: Millis,
            /// Accepted, without effect: what is known now is answered.
            end: Millis,
            /// Accepted, without effect; not together with `end`.
            time: Time,
            /// Whether brokers without a capacity of their own may have the default one; `true` if not given.
            allow_capacity_estimation: Flag,
            /// Also by disk; `false` if not given.
            populate_disk_info: Flag,
            /// Why.
            reason: Text,
        }
        defaults {
            /// Only capacities; not together with any of the above.
            capacity_only: Flag = false,
        }
    }
}

parameters! {
    /// `partition_load`: how much each partition makes its leader do, the heaviest first.
    pub struct PartitionLoad {
        optional {
            /// Accepted, without effect: what is known now is answered.
            start: Millis,
            /// Accepted, without effect: what is known now is answered.
            end: Millis,
            /// Only topics of these names.
            topic: Pattern,
            /// Only partitions of these numbers.
            partition: Partitions,
            /// How many of all partitions have to be known.
            min_valid_partition_ratio: Ratio,
            /// Why.
            reason: Text,
        }
        defaults {
            /// What to sort by.
            resource: ResourceName = Resource::Disk,
            /// How many to show.
            entries: Entries = ALL_ENTRIES,
            /// Whether brokers without a capacity of their own may have the default one.
            allow_capacity_estimation: Flag = true,
            /// The highest window instead of what is expected.
            max_load: Flag = false,
            /// Accepted, without effect: averages are shown anyway (of disks the newest size).
            avg_load: Flag = false,
            /// Only partitions with a replica on these; none means all.
            brokerid: BrokerIds = BTreeSet::new(),
        }
    }
}

parameters! {
    /// `state`: how the parts of the engine are.
    pub struct State {
        optional {
            /// Why.
            reason: Text,
        }
        defaults {
            /// Which parts; none means all.
            substates: Substates = BTreeSet::new(),
            /// In more detail.
            verbose: Flag = false,
            /// In the text form in even more detail.
            super_verbose: Flag = false,
            /// Not in the original: also how far each broker is.
            broker_progress: Flag = false,
        }
    }
}

parameters! {
    /// `kafka_cluster_state`: what Kafka says.
    pub struct KafkaClusterState {
        optional {
            /// Only topics of these names.
            topic: Pattern,
            /// Why.
            reason: Text,
        }
        defaults {
            /// Also partitions that nothing is wrong with.
            verbose: Flag = false,
        }
    }
}

parameters! {
    /// `user_tasks`: who asked for what, and how it stands.
    pub struct UserTasks {
        optional {
            /// Why.
            reason: Text,
        }
        defaults {
            /// Only these; none means all.
            user_task_ids: TaskIds = BTreeSet::new(),
            /// Only those of these clients; none means all.
            client_ids: Names = Vec::new(),
            /// Only those of these endpoints; none means all.
            endpoints: Endpoints = BTreeSet::new(),
            /// Only those that stand so; none means all.
            types: TaskStatuses = BTreeSet::new(),
            /// How many to show.
            entries: Entries = ALL_ENTRIES,
            /// Also what was answered.
            fetch_completed_task: Flag = false,
        }
    }
}

parameters! {
    /// `permissions`: what the caller may do.
    pub struct Permissions {
        optional {
            /// Why.
            reason: Text,
        }
    }
}

impl Load {
    /// Whether brokers without a capacity of their own may have the default one.
    pub fn allows_capacity_estimation(&self) -> bool {
        self.allow_capacity_estimation.unwrap_or(true)
    }

    /// Whether the answer is also by disk.
    pub fn populates_disk_info(&self) -> bool {
        self.populate_disk_info.unwrap_or(false)
    }
}

impl Consistent for Load {
    fn contradiction(&self) -> Option<String> {
        if self.time.is_some() && self.end.is_some() {
            let what = "Parameter time and parameter end are mutually exclusive and should not be specified in the same request.";
            return Some(what.to_owned());
        }
        let given = [
            ("time", self.time.is_some()),
            ("start", self.start.is_some()),
            ("end", self.end.is_some()),
            ("allow_capacity_estimation", self.allow_capacity_estimation.is_some()),
            ("populate_disk_info", self.populate_disk_info.is_some()),
        ];
        if let (true, Some((name, _))) = (self.capacity_only, given.iter().find(|(_, given)| *given)) {
            return Some(format!(
                "Cannot set capacity_only parameter to true when explicitly specifying {name} in the request."
            ));
        }
        time_range(self.start, self.end)
    }
}

impl Consistent for PartitionLoad {
    fn contradiction(&self) -> Option<String> {
        if self.max_load && self.avg_load {
            let what = "Parameters to ask for max and avg load are mutually exclusive to each other.";
            return Some(what.to_owned());
        }
        time_range(self.start, self.end)
    }
}

impl Consistent for State {}
impl Consistent for KafkaClusterState {}
impl Consistent for UserTasks {}
impl Consistent for Permissions {}

fn time_range(start: Option<i64>, end: Option<i64>) -> Option<String> {
    let (start, end) = (start?, end?);
    (start >= end)
        .then(|| format!("Invalid time range. Start time must be smaller than end time. Got: [{start}, {end}]"))
}
