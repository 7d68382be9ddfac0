use evenkeel_balancer::{cluster::BrokerId, goal::Goal, options::Operation};

use super::scene::{Scene, past};
use crate::monitor::{sample::Metric, windows::Requirement};

const HARD: &str = "RackAwareGoal,MinTopicLeadersPerBrokerGoal,ReplicaCapacityGoal,DiskCapacityGoal,\
                    NetworkInboundCapacityGoal,NetworkOutboundCapacityGoal,CpuCapacityGoal";
const WRAPPED: &str = "com.linkedin.kafka.cruisecontrol.exception.KafkaCruiseControlException: \
                       java.lang.IllegalArgumentException: ";

fn scene() -> Scene {
    Scene::draw("b0 a: t0* t1*\nb1 b: t0 t1\nb2 c:\nb3 d down:")
}

#[test]
fn a_plain_request_asks_for_the_default_goals() {
    let ask = scene().ask("rebalance").unwrap();
    assert_eq!((&ask.request.operation, &ask.request.goals[..]), (&Operation::Rebalance, &Goal::DEFAULT[..]));
    assert_eq!(ask.requirement, Requirement { windows: 1, ratio: 0.995 });
    assert!(ask.purpose.may_estimate && !ask.purpose.tells_dirs_apart && ask.dropped.is_empty());
}

#[test]
fn what_has_the_same_answer_has_the_same_key() {
    let key = |url: &str| scene().ask(url).unwrap().key();
    let plain = key("proposals");
    for same in [
        "rebalance",
        "rebalance?dryrun=false&replication_throttle=5",
        "proposals?verbose=true",
        "proposals?fast_mode=false",
    ] {
        assert_eq!(key(same), plain, "{same}");
    }
    for other in [
        "proposals?goals=RackAwareGoal",
        "proposals?excluded_topics=t",
        "proposals?max_data_to_move_mb=5",
        "proposals?destination_broker_ids=2",
        "proposals?data_from=VALID_PARTITIONS",
        "proposals?allow_capacity_estimation=false",
        "fix_offline_replicas",
    ] {
        assert_ne!(key(other), plain, "{other}");
    }
}

#[test]
fn goals_go_by_short_and_by_full_name_in_any_case_and_count_once() {
    let full = "com.linkedin.kafka.cruisecontrol.analyzer.goals.DiskCapacityGoal";
    let ask = scene().ask(&format!("proposals?goals=rackawaregoal,{full},RackAwareGoal")).unwrap();
    assert_eq!(ask.request.goals, [Goal::RackAware, Goal::DiskCapacity]);
}

#[test]
fn goals_that_nobody_knows_are_refused_with_those_that_are_known() {
    let text = "java.lang.IllegalArgumentException: Goals [NoSuchGoal, Nor] are not supported. \
                Supported: [CpuCapacityGoal, CpuUsageDistributionGoal, DiskCapacityGoal, DiskUsageDistributionGoal, \
                IntraBrokerDiskCapacityGoal, IntraBrokerDiskUsageDistributionGoal, ";
    let said = scene().failure("proposals?goals=NoSuchGoal,RackAwareGoal,Nor");
    assert!(said.starts_with(text), "{said}");
    let said = scene().failure("rebalance?goals=NoSuchGoal&skip_hard_goal_check=true");
    assert!(said.starts_with(&format!("{WRAPPED}Goals [NoSuchGoal] are not supported.")), "{said}");
    // Known to us, but not to this engine.
    let few = scene().with_settings("goals=RackAwareGoal,DiskCapacityGoal\ndefault.goals=RackAwareGoal");
    assert!(few.failure("proposals?goals=CpuCapacityGoal").contains("Goals [CpuCapacityGoal] are not supported"));
    let said = scene().failure("proposals?kafka_assigner=true&exclude_recently_removed_brokers=false");
    assert!(said.contains("Goals [KafkaAssignerEvenRackAwareGoal, KafkaAssignerDiskUsageDistributionGoal] are not"));
}

#[test]
fn hard_goals_may_be_missing_only_on_demand() {
    let said = scene().failure("rebalance?goals=ReplicaDistributionGoal,DiskCapacityGoal");
    let text = "Missing hard goals [RackAwareGoal, MinTopicLeadersPerBrokerGoal, ReplicaCapacityGoal, \
                NetworkInboundCapacityGoal, NetworkOutboundCapacityGoal, CpuCapacityGoal] in the provided goals: \
                [ReplicaDistributionGoal, DiskCapacityGoal]. Add skip_hard_goal_check=true parameter to ignore this \
                sanity check.";
    assert_eq!(said, format!("{WRAPPED}{text}"));
    assert!(scene().failure("add_broker?brokerid=2&goals=RackAwareGoal").contains("Missing hard goals"));
    for fine in [
        "proposals?goals=ReplicaDistributionGoal",
        "rebalance?goals=ReplicaDistributionGoal&skip_hard_goal_check=true",
        "rebalance?goals=PreferredLeaderElectionGoal",
        &format!("rebalance?goals={HARD}"),
    ] {
        assert!(scene().ask(fine).is_ok(), "{fine}");
    }
}

#[test]
fn goals_of_what_is_not_measured_leave_every_list() {
    let blind = scene().without(&[Metric::Cpu, Metric::LeaderBytesOut]);
    let plain = blind.ask("rebalance").unwrap();
    assert_eq!(plain.request.goals.len(), Goal::DEFAULT.len() - 5);
    assert!(plain.dropped.is_empty(), "nobody asked for them");
    // Two hard goals are not missed, and of those that are named one is dropped and said so.
    let hard =
        "RackAwareGoal,MinTopicLeadersPerBrokerGoal,ReplicaCapacityGoal,DiskCapacityGoal,NetworkInboundCapacityGoal";
    let named = blind.ask(&format!("rebalance?goals={hard},CpuUsageDistributionGoal")).unwrap();
    assert_eq!((named.request.goals.len(), &named.dropped[..]), (5, &[Goal::CpuUsageDistribution][..]));
    let result = blind.result(&format!("rebalance?goals={hard},CpuUsageDistributionGoal"));
    assert_eq!(result.summary.unmeasured_goals, ["CpuUsageDistributionGoal"]);
    let said = blind.failure("proposals?goals=CpuCapacityGoal,PotentialNwOutGoal");
    assert_eq!(
        said,
        format!(
            "{WRAPPED}None of the goals [CpuCapacityGoal, PotentialNwOutGoal] can be pursued: nobody measures \
             [cpu, networkOutbound]."
        )
    );
}

#[test]
fn brokers_that_are_named_have_to_be_there() {
    let missing = |ids: &str| format!("{WRAPPED}Broker {ids} does not exist.");
    for (url, ids) in [
        ("add_broker?brokerid=2,77", "[77]"),
        ("add_broker?brokerid=3", "[3]"),
        ("demote_broker?brokerid=3", "[3]"),
        ("demote_broker?brokerid_and_logdirs=77-/d0", "[77]"),
        ("remove_broker?brokerid=77", "77"),
        ("remove_broker?brokerid=2&destination_broker_ids=3", "[3]"),
        ("rebalance?destination_broker_ids=77,78", "[77, 78]"),
        ("remove_disks?brokerid_and_logdirs=77-/d0", "[77]"),
    ] {
        assert_eq!(scene().failure(url), missing(ids), "{url}");
    }
    assert!(scene().ask("remove_broker?brokerid=3").is_ok(), "what is down can be removed");
}

#[test]
fn brokers_removed_or_demoted_of_late_are_left_alone() {
    let mut scene = scene();
    (scene.history.removed, scene.history.demoted) = (past(&[2, 9]), past(&[1]));
    let excluded = |url: &str| {
        let request = scene.ask(url).unwrap().request;
        let ids = |ids: std::collections::BTreeSet<BrokerId>| ids.into_iter().map(|id| id.0).collect::<Vec<_>>();
        (ids(request.excluded_for_replica_moves), ids(request.excluded_for_leadership))
    };
    assert_eq!(excluded("rebalance"), (vec![2], vec![]), "9 is long gone");
    assert_eq!(excluded("rebalance?exclude_recently_removed_brokers=false"), (vec![], vec![]));
    assert_eq!(excluded("rebalance?exclude_recently_demoted_brokers=true"), (vec![2], vec![1]));
    assert_eq!(excluded("add_broker?brokerid=2"), (vec![], vec![]), "it is welcome again");
    assert_eq!(excluded("demote_broker?brokerid=0&exclude_recently_demoted_brokers=true"), (vec![], vec![1]));
    let summary = scene.result("rebalance?exclude_recently_demoted_brokers=true").summary;
    assert_eq!(
        (summary.excluded_brokers_for_replica_move, summary.excluded_brokers_for_leadership),
        (vec![2], vec![1])
    );
}

#[test]
fn goals_say_what_has_to_be_known_and_callers_may_ask_for_less() {
    let requirement = |url: &str| {
        let Requirement { windows, ratio } =
            scene().with_settings("num.partition.metrics.windows=28").ask(url).unwrap().requirement;
        (windows, ratio)
    };
    assert_eq!(requirement("proposals?goals=RackAwareGoal,ReplicaDistributionGoal"), (1, 0.0));
    assert_eq!(requirement("proposals?goals=RackAwareGoal,CpuUsageDistributionGoal"), (1, 0.995));
    assert_eq!(requirement("proposals?goals=CpuUsageDistributionGoal&data_from=VALID_PARTITIONS"), (2, 0.0));
    assert_eq!(requirement("demote_broker?brokerid=0"), (1, 0.0));
    assert_eq!(requirement("remove_disks"), (1, 0.995));
}

#[test]
fn topics_are_excluded_by_the_caller_or_by_the_settings() {
    let scene = scene().with_settings("topics.excluded.from.partition.movement=t");
    let excluded = |url: &str| scene.propose(url).unwrap().excluded_topics;
    assert_eq!(excluded("rebalance"), ["t"]);
    assert_eq!(excluded("rebalance?excluded_topics=u.*"), [""; 0]);
    // Patterns may look ahead, as Java's do.
    assert_eq!(excluded("rebalance?excluded_topics=(?!u).*"), ["t"]);
    assert_eq!(excluded("rebalance?excluded_topics=(?!t).*"), [""; 0]);
    let said = scene.failure("rebalance?excluded_topics=%5CQt%5CE");
    assert!(said.contains("The pattern of topics cannot be used"), "{said}");
}
