//! The tables of `load` and `partition_load`.

use std::fmt::Write;

use super::{list, longest};
use crate::body::{BrokerLoad, ClusterLoad, DiskFigure, Load, PartitionLoad};
use crate::json::{Double, java_double};

impl Load {
    /// As text.
    pub fn text(&self) -> String {
        table(&self.brokers)
    }
}

impl ClusterLoad {
    /// As text.
    pub fn text(&self) -> String {
        table(&self.brokers)
    }
}

fn table(brokers: &[BrokerLoad]) -> String {
    let host = longest(brokers.iter().map(|broker| broker.host.as_str()), 4);
    let rack = longest(brokers.iter().map(|broker| broker.rack.as_str()), 4) + 5;
    let dirs = || brokers.iter().filter_map(|broker| broker.disk_state.as_ref()).flat_map(|disks| disks.keys());
    // The column of log directories is there only if they are.
    let (logdir, logdir_title) =
        if dirs().next().is_some() { (longest(dirs().map(String::as_str), 0) + 10, "LOGDIR") } else { (1, "") };
    let mut out = String::from("\n\n");
    let _ = writeln!(
        out,
        "{:>host$}{:>15}{:>w_rack$}{logdir_title:>logdir$}{:>20}{:>26}{:>20}{:>15}{:>25}{:>25}{:>25}{:>25}{:>20}{:>20}{:>20}",
        "HOST",
        "BROKER",
        "RACK",
        "DISK_CAP(MB)",
        "DISK(MB)/_(%)_",
        "CORE_NUM",
        "CPU(%)",
        "NW_IN_CAP(KB/s)",
        "LEADER_NW_IN(KB/s)",
        "FOLLOWER_NW_IN(KB/s)",
        "NW_OUT_CAP(KB/s)",
        "NW_OUT(KB/s)",
        "PNW_OUT(KB/s)",
        "LEADERS/REPLICAS",
        w_rack = rack + 1,
    );
    for broker in brokers {
        let _ = writeln!(
            out,
            "{:>host$},{:>14},{:>rack$},{:>w_capacity$.3},{:>19.3}/{:05.2},{:>19},{:>14.3},{:>24.3},{:>24.3},{:>24.3},{:>24.3},{:>19.3},{:>19.3},{:>14}/{}",
            broker.host,
            broker.broker,
            broker.rack,
            broker.disk_capacity_mb.0,
            broker.disk_mb.0,
            broker.disk_pct.0,
            cores(broker.num_core),
            broker.cpu_pct.0,
            broker.network_in_capacity.0,
            broker.leader_nw_in_rate.0,
            broker.follower_nw_in_rate.0,
            broker.network_out_capacity.0,
            broker.nw_out_rate.0,
            broker.pnw_out_rate.0,
            broker.leaders,
            broker.replicas,
            w_capacity = 19 + logdir,
        );
        for (dir, disk) in broker.disk_state.iter().flatten() {
            let _ = writeln!(
                out,
                "{dir:>w_dir$},{}/{},{:>119}/{}",
                figure(disk.disk_mb, |mb| format!("{mb:>19.3}"), 19),
                figure(disk.disk_pct, |pct| format!("{pct:05.2}"), 5),
                disk.num_leader_replicas,
                disk.num_replicas,
                w_dir = host + 15 + rack + 1 + logdir,
            );
        }
    }
    out
}

/// Whole cores without a point.
fn cores(number: Double) -> String {
    if number.0.fract() == 0.0 { format!("{:.0}", number.0) } else { java_double(number.0) }
}

fn figure(figure: DiskFigure, number: impl Fn(f64) -> String, width: usize) -> String {
    match figure {
        DiskFigure::Of(value) => number(value.0),
        DiskFigure::Dead(_) => format!("{:>width$}", "DEAD"),
    }
}

impl PartitionLoad {
    /// As text.
    pub fn text(&self) -> String {
        let names: Vec<String> =
            self.records.iter().map(|record| format!("{}-{}", record.topic, record.partition)).collect();
        let name = longest(names.iter().map(String::as_str), 20) + 5;
        let mut out = format!(
            "{:>name$}{:>10}{:>30}{:>20}{:>20}{:>20}{:>20}{:>20}\n",
            "PARTITION",
            "LEADER",
            "FOLLOWERS",
            "CPU (%_CORES)",
            "DISK (MB)",
            "NW_IN (KB/s)",
            "NW_OUT (KB/s)",
            "MSG_IN (#/s)"
        );
        for (partition, record) in names.iter().zip(&self.records) {
            let _ = writeln!(
                out,
                "{partition:>name$}{:>10}{:>30}{:>19.6}{:>19.3}{:>19.3}{:>19.3}{:>19.3}",
                record.leader,
                list(&record.followers),
                record.cpu.0,
                record.disk.0,
                record.network_inbound.0,
                record.network_outbound.0,
                record.msg_in.0
            );
        }
        out
    }
}
