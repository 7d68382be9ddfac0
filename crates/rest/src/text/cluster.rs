//! `kafka_cluster_state` as text.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::{list, longest};
use crate::body::{BrokersState, ClusterState, PartitionEntry, PartitionsState};

impl ClusterState {
    /// As text.
    pub fn text(&self) -> String {
        let mut out = self.brokers.text();
        out.push('\n');
        out.push_str(&self.partitions.text());
        out
    }
}

impl BrokersState {
    fn text(&self) -> String {
        let it = &self.summary;
        let mut out = format!(
            "Summary: The cluster has {} brokers, {} replicas, {} leaders, and {} topics with avg replication factor: {:.2}. \
             [Leaders/Replicas per broker] avg: {:.2}/{:.2} max: {}/{} std: {:.2}/{:.2}\n\nBrokers:\n",
            it.brokers,
            it.replicas,
            it.leaders,
            it.topics,
            it.avg_replication_factor.0,
            it.avg_leaders_per_broker.0,
            it.avg_replicas_per_broker.0,
            it.max_leaders_per_broker,
            it.max_replicas_per_broker,
            it.std_leaders_per_broker.0,
            it.std_replicas_per_broker.0
        );
        let _ = writeln!(
            out,
            "{:>20}{:>20}{:>20}{:>20}{:>20}{:>20}{:>20}",
            "BROKER", "LEADER(S)", "REPLICAS", "OUT-OF-SYNC", "OFFLINE", "IS_CONTROLLER", "BROKER_SET"
        );
        for (broker, replicas) in &self.replica_count_by_broker_id {
            let _ = writeln!(
                out,
                "{broker:>20}{:>20}{replicas:>20}{:>20}{:>20}{:>20}{:>20}",
                count(&self.leader_count_by_broker_id, broker),
                count(&self.out_of_sync_count_by_broker_id, broker),
                count(&self.offline_replica_count_by_broker_id, broker),
                self.is_controller.get(broker).copied().unwrap_or(false),
                self.broker_set_by_broker_id.get(broker).map_or("null", String::as_str)
            );
        }
        out.push_str("\nLogDirs of brokers with replicas:\n");
        let dirs: Vec<(i32, String, String)> = self
            .online_log_dirs_by_broker_id
            .iter()
            .map(|(broker, online)| {
                let offline = self.offline_log_dirs_by_broker_id.get(broker);
                (*broker, list(online), list(offline.into_iter().flatten()))
            })
            .collect();
        let online_width = longest(dirs.iter().map(|(_, online, _)| online.as_str()), 0) + 14;
        let offline_width = longest(dirs.iter().map(|(_, _, offline)| offline.as_str()), 0) + 15;
        let _ =
            writeln!(out, "{:>20}{:>online_width$}{:>offline_width$}", "BROKER", "ONLINE-LOGDIRS", "OFFLINE-LOGDIRS");
        for (broker, online, offline) in dirs {
            let _ = writeln!(out, "{broker:>20}{online:>online_width$}{offline:>offline_width$}");
        }
        out
    }
}

fn count(counts: &BTreeMap<i32, u64>, broker: &i32) -> u64 {
    counts.get(broker).copied().unwrap_or(0)
}

impl PartitionsState {
    fn text(&self) -> String {
        let title = match self.other {
            Some(_) => "All Partitions in the Cluster (verbose):",
            None => "Under Replicated, Offline, and Under MinIsr Partitions:",
        };
        let sections: [(&str, Option<&[PartitionEntry]>); 5] = [
            ("Offline Partitions:", Some(&self.offline)),
            ("Partitions with Offline Replicas:", Some(&self.with_offline_replicas)),
            ("Under Replicated Partitions:", Some(&self.urp)),
            ("Under MinIsr Partitions:", Some(&self.under_min_isr)),
            ("Other Partitions:", self.other.as_deref()),
        ];
        let all = || sections.iter().filter_map(|(_, entries)| *entries).flatten();
        let topic = longest(all().map(|entry| entry.topic.as_str()), 20) + 5;
        let mut out = format!("{title}\n");
        let _ = writeln!(
            out,
            "{:>topic$}{:>10}{:>10}{:>30}{:>30}{:>25}{:>25}{:>10}",
            "TOPIC", "PARTITION", "LEADER", "REPLICAS", "IN-SYNC", "OUT-OF-SYNC", "OFFLINE", "MIN-ISR"
        );
        for (name, entries) in sections {
            let Some(entries) = entries else { continue };
            out.push_str(name);
            out.push('\n');
            for entry in entries {
                let _ = writeln!(
                    out,
                    "{:>topic$}{:>10}{:>10}{:>30}{:>30}{:>25}{:>25}{:>10}",
                    entry.topic,
                    entry.partition,
                    entry.leader,
                    list(&entry.replicas),
                    list(&entry.in_sync),
                    list(&entry.out_of_sync),
                    list(&entry.offline),
                    entry.min_isr
                );
            }
        }
        out
    }
}
