use evenkeel_rest::{
    Method, Refusal,
    body::{BrokerLoad, BrokerState, GoalStatus, OptimizationResult, ProvisionStatus},
};

use super::scene::Scene;
use crate::monitor::sample::Metric;

const ONE_GOAL: &str = "goals=ReplicaDistributionGoal&skip_hard_goal_check=true";

fn crowded() -> Scene {
    Scene::draw("b0 a: t0* t1* t2* t3*\nb1 b:\nb2 c:")
}

fn after(result: &OptimizationResult, id: i32) -> &BrokerLoad {
    result.load_after_optimization.brokers.iter().find(|broker| broker.broker == id).unwrap()
}

/// Moves between brokers, their MB, moves inside brokers, their MB, elections.
fn numbers(result: &OptimizationResult) -> [u64; 5] {
    let summary = &result.summary;
    [
        summary.num_replica_movements,
        summary.data_to_move_mb,
        summary.num_intra_broker_replica_movements,
        summary.intra_broker_data_to_move_mb,
        summary.num_leader_movements,
    ]
}

#[test]
fn a_rebalance_spreads_what_lies_on_one_broker() {
    let result = crowded().result(&format!("rebalance?{ONE_GOAL}&verbose=true"));
    assert_eq!(numbers(&result), [2, 200, 0, 0, 0]);
    assert_eq!([0, 1, 2].map(|id| after(&result, id).replicas), [2, 1, 1]);
    assert_eq!(result.goal_summary[0].status, GoalStatus::Fixed);
    assert_eq!((result.summary.recent_windows, result.summary.monitored_partitions_percentage.0), (2, 100.0));
    let proposals = result.proposals.unwrap();
    assert!(proposals.iter().all(|proposal| proposal.goal.as_deref() == Some("ReplicaDistributionGoal")));
    assert!(result.summary.estimated_minutes.unwrap().0 > 0.0);
}

#[test]
fn a_broker_that_is_gone_with_nothing_on_it_keeps_nobody_from_rebalancing() {
    let scene = Scene::draw("b0 a: t0* t1* t2* t3*\nb1 b:\nb2 c:\nb3 d down:");
    let result = scene.result(&format!("rebalance?{ONE_GOAL}"));
    assert_eq!(numbers(&result), [2, 200, 0, 0, 0]);
    assert_eq!(result.load_after_optimization.brokers.len(), 3);
    assert_eq!(numbers(&scene.result(&format!("remove_broker?brokerid=3&{ONE_GOAL}"))), [0; 5]);
}

#[test]
fn only_named_destinations_get_replicas() {
    let result = crowded().result(&format!("rebalance?{ONE_GOAL}&destination_broker_ids=2"));
    assert_eq!(after(&result, 1).replicas, 0);
    assert!(after(&result, 2).replicas > 0);
}

#[test]
fn brokers_that_are_added_get_replicas_and_nobody_else_does() {
    let scene = Scene::draw("b0 a: t0* t1* t2* t3*\nb1 b: t4*\nb2 c:");
    let result = scene.result(&format!("add_broker?brokerid=2&{ONE_GOAL}"));
    assert_eq!(after(&result, 1).replicas, 1);
    assert!(after(&result, 2).replicas > 0);
    assert_eq!(after(&result, 2).broker_state, BrokerState::New);
}

#[test]
fn brokers_that_are_removed_are_empty_then() {
    let scene = Scene::draw("b0 a: t0* t1\nb1 b: t1* t0\nb2 c: t2* t3\nb3 d: t3* t2");
    let result = scene.result("remove_broker?brokerid=2&verbose=true");
    assert_eq!(numbers(&result)[..2], [2, 200]);
    let gone = after(&result, 2);
    assert_eq!((gone.broker_state, gone.replicas, gone.num_core.0, gone.disk_pct.0), (BrokerState::Dead, 0, 0.0, -1.0));
    assert_eq!(result.proposals.unwrap()[0].goal.as_deref(), Some("removed"));
}

#[test]
fn brokers_that_are_demoted_lead_nothing() {
    let scene = Scene::draw("b0 a: t0* t1\nb1 b: t0 t1*");
    assert_eq!(scene.plan("demote_broker?brokerid=0"), ["t-0 [0, 1]>0 -> [1, 0]>1"]);
    let result = scene.result("demote_broker?brokerid=0");
    assert_eq!(numbers(&result), [0, 0, 0, 0, 1]);
    assert_eq!((after(&result, 0).broker_state, after(&result, 0).leaders), (BrokerState::Demoted, 0));
    let summary = &result.summary;
    let scores = (summary.on_demand_balancedness_score_before.0, summary.on_demand_balancedness_score_after.0);
    assert_eq!((scores, summary.provision_status), ((0.0, 100.0), ProvisionStatus::Undecided));
}

#[test]
fn of_a_demoted_directory_only_what_lies_in_it_is_demoted() {
    let scene = Scene::draw("b0 a: t0*@/d0 t1*@/d1\nb1 b: t0@/d0 t1@/d0").with_dirs();
    let url = "demote_broker?brokerid_and_logdirs=0-/d0";
    assert_eq!(scene.plan(url), ["t-0 [0, 1]>0 -> [1, 0]>1"]);
    let result = scene.result(url);
    let broker = after(&result, 0);
    assert_eq!((broker.broker_state, broker.leaders, after(&result, 1).leaders), (BrokerState::Alive, 1, 1));
    let dirs = broker.disk_state.as_ref().unwrap();
    assert_eq!((dirs["/d0"].num_leader_replicas, dirs["/d1"].num_leader_replicas), (0, 1));
    let idle = scene.result("demote_broker?brokerid_and_logdirs=1-/d1");
    assert_eq!((numbers(&idle), idle.goal_summary[0].status), ([0; 5], GoalStatus::NoAction));
    let said = scene.failure("demote_broker?brokerid_and_logdirs=0-/nosuch");
    assert!(said.ends_with("java.lang.IllegalArgumentException: Invalid log dirs provided for broker 0."), "{said}");
}

#[test]
fn what_lies_on_dead_brokers_is_fixed() {
    let scene = Scene::draw("b0 a: t0*\nb1 b down: t0\nb2 c:");
    assert_eq!(scene.plan("fix_offline_replicas"), ["t-0 [0, 1]>0 -> [0, 2]>0"]);
    let result = scene.result("fix_offline_replicas?verbose=true");
    assert_eq!(numbers(&result), [1, 100, 0, 0, 0]);
    assert_eq!(result.proposals.as_ref().unwrap()[0].goal.as_deref(), Some("offline"));
    assert_eq!(after(&result, 1).broker_state, BrokerState::Dead);
    let said = crowded().failure("fix_offline_replicas");
    assert!(
        said.ends_with("java.lang.IllegalStateException: Cluster has no offline replica on brokers [0, 1, 2] to fix.")
    );
}

#[test]
fn disks_that_are_removed_are_empty_then() {
    let scene = Scene::draw("b0 a: t0*@/d0 t1*@/d1 u0@/d0\nb1 b: u0*@/d0").with_dirs();
    let url = "remove_disks?brokerid_and_logdirs=0-/d0";
    assert_eq!(scene.plan(url), ["t-0 [0]>0 -> [0]>0 0:/d0>/d1", "u-0 [1, 0]>1 -> [1, 0]>1 0:/d0>/d1"]);
    let result = scene.result(url);
    assert_eq!(numbers(&result), [0, 0, 2, 200, 0]);
    let dirs = after(&result, 0).disk_state.as_ref().unwrap();
    assert_eq!(serde_json::to_value(&dirs["/d0"]).unwrap()["DiskMB"], "DEAD");
    assert_eq!((dirs["/d0"].num_replicas, dirs["/d1"].num_replicas, dirs["/d1"].num_leader_replicas), (0, 3, 2));
    assert_eq!(result.summary.estimated_minutes, None, "nobody knows how fast disks copy");
    assert_eq!((result.proposals, result.load_before_optimization), (None, None));
    let told = scene.result(&format!("{url}&verbose=true"));
    let moved: Vec<_> = told.proposals.unwrap().into_iter().map(|it| (it.topic_partition.topic, it.bytes)).collect();
    assert_eq!(moved, [("t".to_owned(), Some(100 << 20)), ("u".to_owned(), Some(100 << 20))]);
    assert!(told.load_before_optimization.is_some());
    let said = |url: &str| scene.failure(url);
    assert!(said("remove_disks?brokerid_and_logdirs=0-/nosuch").ends_with("Invalid log dirs provided for broker 0."));
    let all = said("remove_disks?brokerid_and_logdirs=0-/d0,0-/d1");
    assert!(
        all.ends_with("java.lang.IllegalArgumentException: No log dir remaining to move replicas to for broker 0.")
    );
    assert_eq!(numbers(&scene.result("remove_disks")), [0; 5], "none is none, and no error");
}

#[test]
fn no_disk_can_be_removed_where_disks_are_not_told_apart() {
    let scene = Scene::draw("b0 a: t0*\nb1 b: t0");
    let said = scene.propose("remove_disks").unwrap_err();
    let refusal = Refusal::failed(Method::Post, "/remove_disks", &said);
    let text = "Bad POST request '/remove_disks' due to 'the log directories of the brokers are not known one by one'.";
    assert_eq!((refusal.status, refusal.message.as_str()), (400, text));
    // As in the original it is an error of its own where somebody has said which.
    assert!(!scene.propose("remove_disks?brokerid_and_logdirs=0-/d0").unwrap_err().is_bad_request());
}

#[test]
fn disks_are_balanced_inside_their_brokers() {
    let scene = Scene::draw("b0 a: t0*@/d0 t1*@/d0 t2*@/d0 t3*@/d0\nb1 b:");
    let result = scene.clone().with_dirs().result("rebalance?rebalance_disk=true");
    assert_eq!(numbers(&result), [0, 0, 2, 200, 0]);
    let goals: Vec<&str> = result.goal_summary.iter().map(|goal| goal.goal.as_str()).collect();
    assert_eq!(goals, ["IntraBrokerDiskCapacityGoal", "IntraBrokerDiskUsageDistributionGoal"]);
    let said = scene.failure("rebalance?rebalance_disk=true");
    assert!(said.contains("the log directories of the brokers are not known one by one"), "{said}");
}

#[test]
fn excluded_topics_stay_and_are_named() {
    let scene = Scene::draw("b0 a: t0* t1* u0* u1*\nb1 b:");
    let result = scene.result(&format!("rebalance?{ONE_GOAL}&excluded_topics=t&verbose=true"));
    assert_eq!(result.summary.excluded_topics, ["t"]);
    let moved = result.proposals.unwrap();
    assert!(!moved.is_empty() && moved.iter().all(|proposal| proposal.topic_partition.topic == "u"));
}

#[test]
fn of_many_proposals_only_the_biggest_are_told_if_so_many_are_too_many() {
    let scene = Scene::draw("b0 a: t0* t1* t2* t3* u0* u1*\nb1 b:");
    let told = |most: &str| scene.result(&format!("rebalance?{ONE_GOAL}&verbose=true{most}"));
    let all = told("").proposals.unwrap();
    assert!(all.len() >= 2, "{all:?}");
    assert_eq!(told(&format!("&max_proposals={}", all.len())).proposals.as_ref(), Some(&all));
    let fewer = told(&format!("&max_proposals={}", all.len() - 1));
    assert_eq!(fewer.summary, told("").summary, "the plan is the same");
    let mut first = all.clone();
    // They all copy the same, so it is their names that count.
    first.sort_by_key(|it| (it.topic_partition.topic.clone(), it.topic_partition.partition));
    let last = first.pop().unwrap();
    assert_eq!(fewer.proposals.unwrap(), all.into_iter().filter(|it| *it != last).collect::<Vec<_>>());
    assert_eq!(
        scene.result(&format!("rebalance?{ONE_GOAL}&max_proposals=2")).proposals,
        None,
        "only how many, not whether"
    );
}

#[test]
fn a_budget_is_kept_and_what_it_leaves_undone_is_said() {
    let url = format!("rebalance?{ONE_GOAL}&max_data_to_move_mb=150");
    let summary = crowded().result(&url).summary;
    assert_eq!((summary.num_replica_movements, summary.data_to_move_mb), (1, 100));
    let undone = summary.left_undone.unwrap();
    assert_eq!((undone.num_changes, undone.data_to_move_mb), (1, 100));
    assert_eq!(crowded().result(&format!("rebalance?{ONE_GOAL}")).summary.left_undone, None);
    let blind = crowded().without(&[Metric::Disk]);
    assert!(blind.failure(&url).ends_with("max_data_to_move_mb cannot be kept to: nobody measures [disk]."));
    assert_eq!(blind.result(&format!("rebalance?{ONE_GOAL}")).summary.estimated_minutes, None);
}

#[test]
fn a_hard_goal_that_cannot_hold_fails_the_request_in_the_words_of_the_original() {
    let scene = Scene::draw("b0 a: t0*\nb1 a: t0");
    let start = "com.linkedin.kafka.cruisecontrol.exception.OptimizationFailureException: [RackAwareGoal] Insufficient";
    assert!(scene.failure("rebalance").starts_with(start), "{}", scene.failure("rebalance"));
    let mut scene = crowded();
    scene.history.removed = super::scene::past(&[0, 1, 2]);
    assert!(scene.failure("rebalance").ends_with("[RackAwareGoal] All alive brokers are excluded from replica moves."));
}

#[test]
fn capacities_may_be_estimates_unless_the_caller_says_no() {
    let mut scene = crowded();
    let capacity = scene.capacities.listed.remove(&2);
    assert!(scene.failure("rebalance").contains("the capacity of broker 2 is not known"));
    scene.capacities.default = capacity;
    assert!(scene.propose("rebalance").is_ok());
    assert!(
        scene.failure("rebalance?allow_capacity_estimation=false").contains("the capacity of broker 2 is an estimate")
    );
}

#[test]
fn a_plan_has_the_same_name_whenever_it_is_the_same_and_another_when_it_is_not() {
    let id = |scene: &Scene, url: &str| scene.propose(url).unwrap().id;
    let url = format!("rebalance?{ONE_GOAL}");
    let first = id(&crowded(), &url);
    assert_eq!(first.len(), 32);
    assert_eq!(id(&crowded(), &url), first);
    assert_eq!(id(&crowded(), "proposals?goals=ReplicaDistributionGoal&verbose=true"), first);
    assert_eq!(crowded().result(&url).summary.proposal_id.as_deref(), Some(first.as_str()));
    assert_ne!(id(&crowded(), &format!("{url}&destination_broker_ids=2")), first);
    assert_ne!(id(&Scene::draw("b0 a: u0* u1* u2* u3*\nb1 b:\nb2 c:"), &url), first);
}
