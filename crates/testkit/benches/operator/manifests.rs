//! What is applied.

use serde_json::{Value, json};

/// How load is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Watched {
    /// By a reporter in the brokers: whatever is asked for can be planned soon, and is done as in production.
    Closely,
    /// From outside, and seldom: a hundred engines that measure all the time would leave nothing of the machine to whom is
    /// measured here.
    Seldom,
}

impl Watched {
    /// Seconds between samples; a window is twice as long.
    fn every(self) -> u64 {
        match self {
            Self::Closely => 5,
            Self::Seldom => 20,
        }
    }
}

/// Goals that a small simulated cluster can be judged by.
pub(crate) const GOALS: &str = "RackAwareGoal,ReplicaCapacityGoal,DiskCapacityGoal,ReplicaDistributionGoal";
/// The template of automatic rebalances.
pub(crate) const TEMPLATE: &str = "usual";

/// A Kafka whose data moves when brokers come and go, and when load gets uneven.
pub(crate) fn kafka(name: &str, watched: Watched) -> Value {
    let every = watched.every();
    let modes = ["add-brokers", "remove-brokers", "imbalance"];
    let modes = modes.map(|mode| json!({"mode": mode, "template": {"name": TEMPLATE}}));
    json!({
        "apiVersion": "kafka.strimzi.io/v1",
        "kind": "Kafka",
        "metadata": {"name": name},
        "spec": {
            "kafka": {
                "version": "4.3.1",
                "listeners": [{"name": "plain", "port": 9092, "type": "internal", "tls": false}],
                "rack": {"topologyKey": "topology.kubernetes.io/zone"},
                "config": {
                    "default.replication.factor": 3,
                    "min.insync.replicas": 2,
                    "cruise.control.metrics.reporter.metrics.reporting.interval.ms": every * 1_000,
                },
            },
            "cruiseControl": {
                "autoRebalance": modes,
                "config": {
                    "evenkeel.metrics.reporter": watched == Watched::Closely,
                    "metric.sampling.interval.ms": every * 1_000,
                    "partition.metrics.window.ms": every * 2_000,
                    "broker.metrics.window.ms": every * 2_000,
                    "num.partition.metrics.windows": 1,
                    "num.concurrent.partition.movements.per.broker": 40,
                    // Whatever this bench calls an anomaly is one; the engine itself finds none in that time.
                    "anomaly.detection.goals": GOALS,
                    "anomaly.detection.interval.ms": 3_600_000,
                },
            },
        },
    })
}

pub(crate) fn pool(cluster: &str, role: &str, replicas: i32, ids: &str) -> Value {
    json!({
        "apiVersion": "kafka.strimzi.io/v1",
        "kind": "KafkaNodePool",
        "metadata": {
            "name": pool_name(cluster, role),
            "labels": {"strimzi.io/cluster": cluster},
            "annotations": {"strimzi.io/next-node-ids": ids},
        },
        "spec": {"replicas": replicas, "roles": [role], "storage": {"type": "ephemeral"}},
    })
}

pub(crate) fn pool_name(cluster: &str, role: &str) -> String {
    format!("{cluster}-{role}s")
}

/// The template, or a rebalance that somebody asks for.
pub(crate) fn rebalance(name: &str, cluster: Option<&str>) -> Value {
    let goals: Vec<&str> = GOALS.split(',').collect();
    let metadata = match cluster {
        Some(cluster) => json!({"name": name, "labels": {"strimzi.io/cluster": cluster}}),
        None => json!({"name": name, "annotations": {"strimzi.io/rebalance-template": "true"}}),
    };
    json!({
        "apiVersion": "kafka.strimzi.io/v1",
        "kind": "KafkaRebalance",
        "metadata": metadata,
        "spec": {"goals": goals, "skipHardGoalCheck": true},
    })
}
