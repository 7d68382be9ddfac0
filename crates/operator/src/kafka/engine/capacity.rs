//! `capacity.json`: what brokers can carry.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_api::{Reason, kafka::BrokerCapacityOverride, workload::Resources};
use serde_json::{Value, json};

use super::Wanted;
use crate::{
    auto_rebalance::guards::bytes_per_second,
    kafka::{
        model::{Model, Node},
        problem::{Problem, Remark},
        quantity,
        storage::{Disk, DiskKind},
    },
};

/// KiB/s where nobody said anything.
const NETWORK: u64 = 10_000;
/// MiB of a disk without a limit.
const UNLIMITED_DISK: u128 = 100_000;
const MIB: u128 = 1 << 20;
const FIELD: &str = "spec.cruiseControl.brokerCapacity";

/// What brokers can carry.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Capacities {
    /// By broker.
    pub brokers: BTreeMap<i32, Capacity>,
    /// What is worth saying about it.
    pub remarks: Vec<Remark>,
}

/// What one broker can carry.
#[derive(Clone, Debug, PartialEq)]
pub struct Capacity {
    /// As it stands in the file: MiB, by log directory where there may be several.
    pub disk: Value,
    /// Thousandths of a core.
    pub cpu: u128,
    /// KiB/s in, if the user said.
    pub network_in: Option<u64>,
    /// KiB/s out, if the user said.
    pub network_out: Option<u64>,
}

/// What the brokers of this cluster can carry; all that is wrong with what the user said, if anything is.
pub fn capacities(model: &Model, wanted: &Wanted) -> Result<Capacities, Vec<Problem>> {
    let mut found = Capacities::default();
    let mut problems = Vec::new();
    let common = wanted.spec.broker_capacity.clone().unwrap_or_default();
    let overrides = common.overrides.unwrap_or_default();
    let general = BrokerCapacityOverride {
        cpu: common.cpu,
        inbound_network: common.inbound_network,
        outbound_network: common.outbound_network,
        ..BrokerCapacityOverride::default()
    };
    let mut reader = Reader { problems: &mut problems };
    let general = reader.stated(&general, FIELD);
    let mut own: BTreeMap<i32, Stated> = BTreeMap::new();
    let brokers: BTreeSet<i32> = model.brokers().map(|node| node.id).collect();
    for (n, entry) in overrides.iter().enumerate() {
        let path = format!("{FIELD}.overrides[{n}]");
        let stated = reader.stated(entry, &path);
        for broker in entry.brokers.iter().flatten() {
            if !brokers.contains(broker) {
                found.warn(format!("{path}.brokers: there is no broker {broker}: it is ignored"));
            } else if own.contains_key(broker) {
                found.warn(format!("{path}.brokers: broker {broker} is listed before: the first entry counts"));
            } else {
                own.insert(*broker, stated);
            }
        }
    }
    for node in model.brokers() {
        let special = own.get(&node.id).copied().unwrap_or_default();
        let capacity = Capacity {
            disk: disk(model, node),
            cpu: special.cpu.or(general.cpu).or_else(|| cpu_of(model, node)).unwrap_or(1_000),
            network_in: special.network_in.or(general.network_in),
            network_out: special.network_out.or(general.network_out),
        };
        found.brokers.insert(node.id, capacity);
    }
    if problems.is_empty() { Ok(found) } else { Err(problems) }
}

/// What somebody said.
#[derive(Clone, Copy, Default)]
struct Stated {
    cpu: Option<u128>,
    network_in: Option<u64>,
    network_out: Option<u64>,
}

struct Reader<'a> {
    problems: &'a mut Vec<Problem>,
}

impl Reader<'_> {
    fn stated(&mut self, entry: &BrokerCapacityOverride, path: &str) -> Stated {
        Stated {
            cpu: self.read(entry.cpu.as_ref(), &format!("{path}.cpu"), "cores such as `1.5` or `1500m`", |text| {
                quantity::milli(text).filter(|milli| *milli > 0)
            }),
            network_in: self.rate(entry.inbound_network.as_ref(), &format!("{path}.inboundNetwork")),
            network_out: self.rate(entry.outbound_network.as_ref(), &format!("{path}.outboundNetwork")),
        }
    }

    /// KiB/s. A trickle is still something: the file takes no zero.
    fn rate(&mut self, text: Option<&String>, path: &str) -> Option<u64> {
        self.read(text, path, "a rate such as `10000KiB/s`", |text| {
            let bytes = u64::try_from(bytes_per_second(text)?).ok()?;
            Some((bytes / 1024).max(1))
        })
    }

    fn read<T>(
        &mut self,
        text: Option<&String>,
        path: &str,
        expected: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let text = text?;
        let read = parse(text);
        if read.is_none() {
            self.problems.push(Problem::of_kafka(path, format!("`{text}` is no capacity: write {expected}")));
        }
        read
    }
}

fn disk(model: &Model, node: &Node) -> Value {
    let disks = &model.pools[&node.pool].disks;
    let size = |disk: &Disk| mebibytes(disk).to_string();
    if disks.jbod {
        let dirs = disks.disks.iter().map(|disk| (disks.log_dir(disk, node.id), Value::String(size(disk))));
        Value::Object(dirs.collect())
    } else {
        Value::String(size(&disks.disks[0]))
    }
}

fn mebibytes(disk: &Disk) -> u128 {
    let text = match &disk.kind {
        DiskKind::Ephemeral { limit } => limit.as_ref(),
        DiskKind::Claim { size, .. } => Some(size),
    };
    text.and_then(|text| quantity::bytes(text)).map_or(UNLIMITED_DISK, |bytes| (bytes / MIB).max(1))
}

/// What the pool's containers are given.
fn cpu_of(model: &Model, node: &Node) -> Option<u128> {
    let resources: &Resources = model.pools[&node.pool].resources.as_ref()?;
    let cpu = |side: &Option<BTreeMap<String, _>>| -> Option<u128> {
        let amount: &k8s_openapi::apimachinery::pkg::api::resource::Quantity = side.as_ref()?.get("cpu")?;
        quantity::milli(&amount.0).filter(|milli| *milli > 0)
    };
    cpu(&resources.requests).or_else(|| cpu(&resources.limits))
}

impl Capacities {
    fn warn(&mut self, text: String) {
        self.remarks.push(Remark::of_kafka(Reason::InvalidResourceException, text));
    }

    /// The file.
    pub fn json(&self) -> String {
        let entries: Vec<Value> = self
            .brokers
            .iter()
            .map(|(id, capacity)| {
                json!({
                    "brokerId": id,
                    "capacity": {
                        "DISK": capacity.disk,
                        "CPU": {"num.cores": cores(capacity.cpu)},
                        "NW_IN": capacity.network_in.unwrap_or(NETWORK).to_string(),
                        "NW_OUT": capacity.network_out.unwrap_or(NETWORK).to_string(),
                    },
                    "doc": format!("Capacity for Broker {id}"),
                })
            })
            .collect();
        // A value always has a text.
        serde_json::to_string_pretty(&json!({"brokerCapacities": entries})).unwrap_or_default() + "\n"
    }
}

/// `1500` thousandths are `1.5`, and one is `1.0`.
fn cores(milli: u128) -> String {
    let text = format!("{}.{:03}", milli / 1000, milli % 1000);
    let short = text.trim_end_matches('0');
    if short.ends_with('.') { format!("{short}0") } else { short.to_owned() }
}
