//! `brokerLoad.json`: what each broker has to do before and after a proposal, joined on the brokers of both
//! sides, for a broker may come or go with it.

use std::collections::BTreeMap;

use evenkeel_rest::body::{BrokerLoad, OptimizationResult};
use serde::Serialize;

/// The loads of a plan as JSON text. None if it has none.
pub(super) fn json(result: &OptimizationResult) -> Option<String> {
    let mut brokers: BTreeMap<i32, [Option<&BrokerLoad>; 2]> = BTreeMap::new();
    for broker in result.load_before_optimization.iter().flat_map(|load| &load.brokers) {
        brokers.entry(broker.broker).or_default()[0] = Some(broker);
    }
    for broker in &result.load_after_optimization.brokers {
        brokers.entry(broker.broker).or_default()[1] = Some(broker);
    }
    if brokers.is_empty() {
        return None;
    }
    let loads: BTreeMap<i32, Loads> = brokers.into_iter().map(|(id, sides)| (id, Loads::of(sides))).collect();
    // A ConfigMap holds a megabyte, which so many brokers fill with blanks alone.
    const MANY: usize = 400;
    if loads.len() > MANY { serde_json::to_string(&loads).ok() } else { serde_json::to_string_pretty(&loads).ok() }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Loads {
    leaders: Figure<i64>,
    replicas: Figure<i64>,
    cpu_percentage: Figure<f64>,
    disk_used_percentage: Figure<f64>,
    #[serde(rename = "diskUsedMB")]
    disk_used_mb: Figure<f64>,
    #[serde(rename = "networkOutRateKB")]
    network_out_rate_kb: Figure<f64>,
    #[serde(rename = "leaderNetworkInRateKB")]
    leader_network_in_rate_kb: Figure<f64>,
    #[serde(rename = "followerNetworkInRateKB")]
    follower_network_in_rate_kb: Figure<f64>,
    #[serde(rename = "potentialMaxNetworkOutRateKB")]
    potential_max_network_out_rate_kb: Figure<f64>,
}

/// One figure. A side that is not there, or is not a number, is left out, and so is the difference then.
#[derive(Serialize)]
struct Figure<T> {
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<T>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<T>,
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<T>,
}

impl Loads {
    fn of(sides: [Option<&BrokerLoad>; 2]) -> Self {
        Self {
            leaders: count(sides, |broker| broker.leaders),
            replicas: count(sides, |broker| broker.replicas),
            cpu_percentage: measure(sides, |broker| broker.cpu_pct.0),
            disk_used_percentage: measure(sides, |broker| broker.disk_pct.0),
            disk_used_mb: measure(sides, |broker| broker.disk_mb.0),
            network_out_rate_kb: measure(sides, |broker| broker.nw_out_rate.0),
            leader_network_in_rate_kb: measure(sides, |broker| broker.leader_nw_in_rate.0),
            follower_network_in_rate_kb: measure(sides, |broker| broker.follower_nw_in_rate.0),
            potential_max_network_out_rate_kb: measure(sides, |broker| broker.pnw_out_rate.0),
        }
    }
}

fn count(sides: [Option<&BrokerLoad>; 2], of: impl Fn(&BrokerLoad) -> u64) -> Figure<i64> {
    let [before, after] = sides.map(|side| side.and_then(|broker| i64::try_from(of(broker)).ok()));
    Figure { before, after, diff: before.zip(after).map(|(before, after)| after - before) }
}

fn measure(sides: [Option<&BrokerLoad>; 2], of: impl Fn(&BrokerLoad) -> f64) -> Figure<f64> {
    let [before, after] = sides.map(|side| side.map(&of).filter(|value| value.is_finite()));
    Figure { before, after, diff: before.zip(after).map(|(before, after)| after - before) }
}

#[cfg(test)]
mod tests {
    use evenkeel_rest::body::{ClusterLoad, Summary};
    use serde_json::{Value, json};

    use super::super::tests::scene::broker;
    use super::*;

    fn plan(before: Option<Vec<BrokerLoad>>, after: Vec<BrokerLoad>) -> OptimizationResult {
        OptimizationResult {
            summary: Summary::default(),
            proposals: None,
            load_before_optimization: before.map(|brokers| ClusterLoad { brokers, hosts: vec![] }),
            goal_summary: vec![],
            load_after_optimization: ClusterLoad { brokers: after, hosts: vec![] },
            version: Default::default(),
        }
    }

    fn read(plan: &OptimizationResult) -> Value {
        serde_json::from_str(&json(plan).unwrap()).unwrap()
    }

    #[test]
    fn both_sides_are_joined_by_id_in_any_order() {
        let loads =
            read(&plan(Some(vec![broker(10, 5, 1.5), broker(2, 1, 1.0)]), vec![broker(2, 4, 3.0), broker(10, 2, 0.5)]));
        assert_eq!(loads["2"]["leaders"], json!({"before": 1, "after": 4, "diff": 3}));
        assert_eq!(loads["10"]["leaders"], json!({"before": 5, "after": 2, "diff": -3}));
        assert_eq!(loads["10"]["diskUsedMB"], json!({"before": 1.5, "after": 0.5, "diff": -1.0}));
    }

    #[test]
    fn a_broker_on_one_side_only_has_that_side() {
        let loads = read(&plan(Some(vec![broker(0, 5, 1.0)]), vec![broker(1, 2, 1.0)]));
        assert_eq!(loads["0"]["leaders"], json!({"before": 5}));
        assert_eq!(loads["1"]["leaders"], json!({"after": 2}));
        let loads = read(&plan(None, vec![broker(1, 2, 1.0)]));
        assert_eq!(loads["1"]["replicas"], json!({"after": 9}));
    }

    #[test]
    fn what_is_not_a_number_is_left_out() {
        let loads = read(&plan(Some(vec![broker(0, 5, 1.0)]), vec![broker(0, 5, 1.0)]));
        assert_eq!(loads["0"]["diskUsedPercentage"], json!({}));
        assert_eq!(json(&plan(None, vec![])), None);
    }

    #[test]
    fn the_loads_of_very_many_brokers_fit_into_a_config_map() {
        let many = || (0..1_500).map(|id| broker(id, 1_000, 123_456.789)).collect::<Vec<_>>();
        assert!(json(&plan(Some(many()), many())).unwrap().len() < 1_000_000);
    }

    #[test]
    fn counts_come_first_and_brokers_in_the_order_of_their_ids() {
        let text = json(&plan(None, vec![broker(10, 2, 1.0), broker(2, 2, 1.0)])).unwrap();
        assert!(text.find("\"2\"").unwrap() < text.find("\"10\"").unwrap());
        assert!(text.find("replicas").unwrap() < text.find("cpuPercentage").unwrap());
    }
}
