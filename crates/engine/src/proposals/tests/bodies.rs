use std::collections::BTreeSet;

use evenkeel_balancer::cluster::CpuWeights;
use evenkeel_kafka::TopicPartition;
use evenkeel_rest::{Request, body::Body, parameter};
use serde_json::Value;

use super::scene::{Scene, request};
use crate::{
    model::{self, Purpose},
    monitor::{sample::Metric, windows::Requirement},
    proposals::{load, loads::broker_loads, partition_load, partition_requirement},
};

/// Where which kind of value stands: `.summary.dataToMoveMB number`. Entries of a list are all alike.
fn shape(value: &Value) -> BTreeSet<String> {
    fn walk(at: &str, value: &Value, into: &mut BTreeSet<String>) {
        match value {
            Value::Object(entries) => entries.iter().for_each(|(key, value)| walk(&format!("{at}.{key}"), value, into)),
            Value::Array(entries) => {
                into.insert(format!("{at} list"));
                entries.iter().for_each(|value| walk(&format!("{at}[]"), value, into));
            }
            Value::Null => drop(into.insert(format!("{at} null"))),
            Value::Bool(_) => drop(into.insert(format!("{at} flag"))),
            Value::Number(_) => drop(into.insert(format!("{at} number"))),
            Value::String(_) => drop(into.insert(format!("{at} text"))),
        }
    }
    let mut into = BTreeSet::new();
    walk("", value, &mut into);
    into
}

fn shape_of(body: &impl Body) -> BTreeSet<String> {
    shape(&serde_json::from_str(&body.json()).unwrap())
}

/// The original's keys with numbers of our own, and ours beside them.
fn expected(verbose: bool, disks: bool) -> Value {
    let disk = r#""DiskState":{"/d0":{"NumReplicas":1,"DiskMB":1.5,"NumLeaderReplicas":1,"DiskPct":0.1},
                               "/d1":{"NumReplicas":1,"DiskMB":1.5,"NumLeaderReplicas":1,"DiskPct":0.1}},"#;
    let carried = r#""FollowerNwInRate":0.1,"NwOutRate":0.1,"NumCore":2.0,"Host":"h","CpuPct":1.0,"Replicas":3,
        "NetworkInCapacity":10.0,"Rack":"a","Leaders":1,"DiskCapacityMB":40.0,"DiskMB":1.0,"PnwOutRate":0.1,
        "NetworkOutCapacity":10.0,"LeaderNwInRate":0.1,"DiskPct":0.1"#;
    let disk = if disks { disk } else { "" };
    let load =
        format!(r#"{{"brokers":[{{{disk}"BrokerState":"ALIVE","Broker":0,{carried}}}],"hosts":[{{{carried}}}]}}"#);
    let statistic = r#"{"disk":1.0,"replicas":1,"leaderReplicas":1,"cpu":0.1,"networkOutbound":0.1,"networkInbound":0.1,
        "topicReplicas":1,"potentialNwOut":0.1}"#;
    let extra = format!(
        r#""proposals":[{{"oldLeader":1,"oldReplicas":[1],"topicPartition":{{"hash":-5,"partition":0,"topic":"t"}},
        "newReplicas":[2],"goal":"RackAwareGoal","bytes":5}}],"loadBeforeOptimization":{load},"#
    );
    let text = format!(
        r#"{{"summary":{{"numIntraBrokerReplicaMovements":0,"numReplicaMovements":9,"onDemandBalancednessScoreAfter":88.0,
        "intraBrokerDataToMoveMB":0,"monitoredPartitionsPercentage":100.0,"provisionRecommendation":"",
        "excludedBrokersForReplicaMove":[],"excludedBrokersForLeadership":[],"provisionStatus":"RIGHT_SIZED",
        "onDemandBalancednessScoreBefore":60.5,"recentWindows":3,"dataToMoveMB":34,"excludedTopics":[],
        "numLeaderMovements":2,"proposalId":"ab"{}}},{}
        "goalSummary":[{{"clusterModelStats":{{"statistics":{{"AVG":{statistic},"STD":{statistic},"MIN":{statistic},
        "MAX":{statistic}}},"metadata":{{"topics":7,"replicas":50,"brokers":4}}}},"optimizationTimeMs":1,
        "status":"FIXED","goal":"RackAwareGoal"}}],"loadAfterOptimization":{load},"version":1}}"#,
        if disks { "" } else { r#","estimatedMinutes":0.5"# },
        if verbose { &extra } else { "" },
    );
    serde_json::from_str(&text).unwrap()
}

fn scene() -> Scene {
    Scene::draw("b0 a: t0*@/d0 t1*@/d0 t2*@/d0\nb1 b: t3*@/d1")
}

#[test]
fn a_result_has_the_original_s_keys_and_ours() {
    let url = "rebalance?goals=ReplicaDistributionGoal&skip_hard_goal_check=true";
    let scene = || Scene::draw("b0 a: t0*@/d0 t1*@/d0 t2*@/d0 t3*@/d0 t4*@/d0\nb1 b: t5*@/d1");
    assert_eq!(shape_of(&scene().result(url)), shape(&expected(false, false)));
    assert_eq!(shape_of(&scene().result(&format!("{url}&verbose=true"))), shape(&expected(true, false)));
    let disks = scene().with_dirs().result("rebalance?rebalance_disk=true&verbose=true");
    assert_eq!(shape_of(&disks), shape(&expected(true, true)));
}

#[test]
fn every_goal_is_in_the_summary_in_order_and_sees_the_cluster_that_comes_of_it() {
    // What lies on b0 and b1: 200 MB with two leaders, 100 MB without.
    let scene = Scene::draw("b0 a: t0* t1*\nb1 b: t0");
    let result = scene.result("proposals?goals=RackAwareGoal,ReplicaCapacityGoal");
    let goals: Vec<&str> = result.goal_summary.iter().map(|goal| goal.goal.as_str()).collect();
    assert_eq!(goals, ["RackAwareGoal", "ReplicaCapacityGoal"]);
    let stats = serde_json::to_value(&result.goal_summary[0].cluster_model_stats).unwrap();
    let row = |row: &str| {
        ["disk", "replicas", "leaderReplicas", "topicReplicas", "networkInbound", "networkOutbound", "potentialNwOut"]
            .map(|key| stats["statistics"][row][key].as_f64().unwrap())
    };
    // What comes in goes out to the one follower, of `t0`.
    assert_eq!(row("AVG"), [150.0, 1.5, 1.0, 1.5, 15.0, 15.0, 25.0]);
    assert_eq!(row("STD"), [50.0, 0.5, 1.0, 0.5, 5.0, 15.0, 5.0]);
    assert_eq!(row("MIN"), [100.0, 1.0, 0.0, 1.0, 10.0, 0.0, 20.0]);
    assert_eq!(row("MAX"), [200.0, 2.0, 2.0, 2.0, 20.0, 30.0, 30.0]);
    assert_eq!(stats["metadata"], serde_json::json!({"topics": 1, "replicas": 3, "brokers": 2}));
    let brokers = serde_json::to_value(&result.load_after_optimization.brokers).unwrap();
    let of = |id: usize| {
        ["LeaderNwInRate", "FollowerNwInRate", "NwOutRate", "PnwOutRate", "CpuPct", "DiskMB", "DiskPct", "NumCore"]
            .map(|key| (brokers[id][key].as_f64().unwrap() * 1e4).round() / 1e4)
    };
    assert_eq!(of(0), [20.0, 0.0, 30.0, 30.0, 0.5, 200.0, 2.0, 4.0]);
    // A follower needs 0.15 of what its leader does.
    assert_eq!(of(1), [0.0, 10.0, 0.0, 20.0, 0.0375, 100.0, 1.0, 4.0]);
}

#[test]
fn loads_are_those_that_the_balancer_plans_by() {
    let scene = Scene::draw("b0 a: t0* t1 u0\nb1 b: t0 t1* u1*\nb2 c: u0* u1 t2*").with_size("u1", 333.3);
    let made = scene.propose("proposals").unwrap();
    let cluster = model::build(
        &scene.sighting.view,
        &scene.aggregate(),
        &scene.capacities,
        CpuWeights::default(),
        &Purpose::default(),
    );
    for (ours, planned) in broker_loads(&cluster.unwrap()).iter().zip(&made.outcome.before) {
        assert_eq!((ours.replicas, ours.leaders), (planned.replicas, planned.leaders));
        let numbers = |load: &evenkeel_balancer::planner::BrokerLoad| {
            let rest = [load.potential_out, load.leader_in];
            load.resources.into_iter().chain(rest).map(|number| (number * 1e3).round()).collect::<Vec<_>>()
        };
        assert_eq!(numbers(ours), numbers(planned));
    }
}

fn told(scene: &Scene, url: &str, measured: bool) -> Result<Value, String> {
    let Request::Load(asked) = request(url) else { panic!("no request for loads") };
    let loads = scene.aggregate();
    let loads = measured.then_some(&loads);
    let body = load(&asked, &scene.sighting.view, loads, &scene.capacities, CpuWeights::default());
    body.map(|body| serde_json::from_str(&body.json()).unwrap()).map_err(|failure| failure.to_string())
}

#[test]
fn load_tells_of_brokers_hosts_and_disks() {
    let whole = told(&scene(), "load", true).unwrap();
    let mut wanted = expected(false, false)["loadAfterOptimization"].clone();
    wanted["version"] = 1.into();
    assert_eq!(shape(&whole), shape(&wanted));
    assert_eq!(whole["brokers"][0]["DiskMB"], 300.0);
    assert_eq!(whole["hosts"][1]["Host"], "h1");
    let disks = told(&scene().with_dirs(), "load?populate_disk_info=true", true).unwrap();
    assert_eq!(disks["brokers"][0]["DiskState"]["/d0"]["DiskMB"], 300.0);
    assert_eq!(disks["brokers"][0]["DiskState"]["/d1"]["NumReplicas"], 0);
    let said = told(&scene(), "load?populate_disk_info=true", true).unwrap_err();
    assert!(said.ends_with("The log directories of the brokers are not known one by one."), "{said}");
    let capacities = told(&scene(), "load?capacity_only=true", false).unwrap();
    assert_eq!((&capacities["brokers"][0]["DiskMB"], &capacities["brokers"][0]["NumCore"]), (&0.0.into(), &4.0.into()));
}

#[test]
fn what_nobody_measures_is_minus_one_and_never_nothing() {
    let blind = scene().without(&[Metric::Cpu, Metric::LeaderBytesOut]);
    let whole = told(&blind, "load", true).unwrap();
    for place in ["brokers", "hosts"] {
        let first = &whole[place][0];
        for key in ["CpuPct", "NwOutRate", "PnwOutRate"] {
            assert_eq!(first[key], -1.0, "{place} {key}");
        }
        assert_eq!((&first["LeaderNwInRate"], &first["DiskMB"]), (&30.0.into(), &300.0.into()));
    }
    let result = blind.result("proposals?goals=RackAwareGoal");
    let stats = &result.goal_summary[0].cluster_model_stats.statistics;
    assert_eq!((stats.avg.cpu.0, stats.max.network_outbound.0, stats.std.potential_nw_out.0), (-1.0, -1.0, -1.0));
}

#[test]
fn partition_load_tells_of_the_heaviest_that_are_asked_for() {
    let scene = Scene::draw("b0 a: t0* t1* u0*\nb1 b: t0 t1\nb2 c: u0").with_size("t1", 300.0).with_size("u0", 200.0);
    let records = |url: &str| {
        let Request::PartitionLoad(asked) = request(url) else { panic!("no request for loads of partitions") };
        let body: Value =
            serde_json::from_str(&partition_load(&asked, &scene.sighting.view, &scene.loads).unwrap().json()).unwrap();
        let name = |record: &Value| format!("{}{}", record["topic"].as_str().unwrap(), record["partition"]);
        let names: Vec<String> = body["records"].as_array().unwrap().iter().map(name).collect();
        (names, body)
    };
    let names = |url: &str| records(url).0;
    assert_eq!(names("partition_load"), ["t1", "u0", "t0"]);
    assert_eq!(names("partition_load?resource=cpu&entries=2"), ["t0", "t1"], "equal ones go by name");
    assert_eq!(names("partition_load?topic=t"), ["t1", "t0"]);
    assert_eq!(names("partition_load?partition=1-5"), ["t1"]);
    assert_eq!(names("partition_load?brokerid=2"), ["u0"]);
    let (_, body) = records("partition_load?entries=1&max_load=true");
    let wanted = r#"{"records":[{"networkInbound":10.0,"msg_in":5.0,"leader":0,"followers":[1],"partition":1,"disk":300.0,
        "networkOutbound":20.0,"topic":"t","cpu":1.0}],"version":1}"#;
    assert_eq!(body, serde_json::from_str::<Value>(wanted).unwrap());
    let Request::PartitionLoad(asked) = request("partition_load?min_valid_partition_ratio=0.5") else { panic!() };
    let requirement = partition_requirement(&asked, &scene.settings.monitor);
    assert_eq!(requirement, Requirement { windows: 1, ratio: 0.5 });
}

/// Neither a topic that is meant nor one that is not, so there is no answer.
#[test]
fn partition_load_refuses_a_pattern_that_takes_too_long() {
    let scene = Scene::draw("b0 a: t0* u0*\nb1 b: t0");
    let (_, values) = scene.loads.first_key_value().unwrap();
    let loads = [(TopicPartition::new("a".repeat(249), 0), *values)].into();
    let Request::PartitionLoad(mut asked) = request("partition_load") else {
        panic!("no request for loads of partitions")
    };
    asked.topic = Some(parameter::TopicPattern::new("(?!b)((a*)*)*\\2c").unwrap());
    let refused = partition_load(&asked, &scene.sighting.view, &loads).unwrap_err();
    assert!(refused.to_string().contains("takes too many steps on topic aaa"), "{refused}");
}
