//! Values that are one of a few names. Names are read in any case and written as the original writes them.

/// Declares an enum whose variants have names at the border.
macro_rules! choice {
    (
        $(#[$meta:meta])*
        pub enum $name:ident { $( $(#[$variant_meta:meta])* $variant:ident = $wire:literal, )+ }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        pub enum $name { $( $(#[$variant_meta])* #[serde(rename = $wire)] $variant, )+ }

        impl $name {
            /// All of them, in the order in which error texts list them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name at the border.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $wire,)+ }
            }

            /// The one of this name, in any case.
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|it| it.name().eq_ignore_ascii_case(name))
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

pub(crate) use choice;

choice! {
    /// Which loads a plan is made from when some are incomplete.
    pub enum DataFrom {
        /// Windows that are complete for the goals asked for, at least one.
        ValidWindows = "VALID_WINDOWS",
        /// All windows, with whatever partitions are in them.
        ValidPartitions = "VALID_PARTITIONS",
    }
}

choice! {
    /// What `partition_load` sorts by.
    pub enum Resource {
        /// Processor.
        Cpu = "CPU",
        /// Bytes on disk.
        Disk = "DISK",
        /// Bytes in.
        NetworkIn = "NW_IN",
        /// Bytes out.
        NetworkOut = "NW_OUT",
    }
}

choice! {
    /// A part of the answer of `state`.
    pub enum Substate {
        /// What can be planned.
        Analyzer = "ANALYZER",
        /// What is known of the loads.
        Monitor = "MONITOR",
        /// What is being carried out.
        Executor = "EXECUTOR",
        /// What is wrong with the cluster.
        AnomalyDetector = "ANOMALY_DETECTOR",
    }
}

choice! {
    /// What can be wrong with a cluster, the most urgent first.
    pub enum AnomalyType {
        /// A broker is gone.
        BrokerFailure = "BROKER_FAILURE",
        /// Somebody announced maintenance.
        MaintenanceEvent = "MAINTENANCE_EVENT",
        /// A disk is gone.
        DiskFailure = "DISK_FAILURE",
        /// A broker behaves unlike itself or its peers.
        MetricAnomaly = "METRIC_ANOMALY",
        /// A goal does not hold.
        GoalViolation = "GOAL_VIOLATION",
        /// A topic is not as wanted.
        TopicAnomaly = "TOPIC_ANOMALY",
    }
}

choice! {
    /// What the concurrency adjuster of the original adjusts.
    pub enum AdjusterType {
        /// Moves between brokers.
        InterBrokerReplica = "INTER_BROKER_REPLICA",
        /// Moves between the disks of a broker.
        IntraBrokerReplica = "INTRA_BROKER_REPLICA",
        /// Leadership moves in the cluster.
        LeadershipCluster = "LEADERSHIP_CLUSTER",
        /// Leadership moves of a broker.
        LeadershipBroker = "LEADERSHIP_BROKER",
    }
}

choice! {
    /// Where a user task stands.
    pub enum TaskStatus {
        /// Being computed.
        Active = "Active",
        /// Its moves are being made.
        InExecution = "InExecution",
        /// Over, as wanted.
        Completed = "Completed",
        /// Failed, or stopped.
        CompletedWithError = "CompletedWithError",
    }
}
