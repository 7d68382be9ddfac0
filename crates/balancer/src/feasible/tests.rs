//! Every way in which a hard goal can be beyond reach, with the words it is told in.

use super::*;
use crate::cluster::Resource;
use crate::cluster::{BrokerState, Cluster, Load};
use crate::fixture::{Small, planned};
use crate::options::{Operation, TopicPattern};
use crate::planner::Refused;
use crate::provision::ProvisionStatus;

fn refusal(cluster: &Cluster, request: &Request, settings: &Settings) -> Infeasible {
    match planned(cluster, request, settings) {
        Err(Refused::Infeasible(infeasible)) => infeasible,
        other => panic!("not refused as infeasible: {other:?}"),
    }
}

/// Why the one goal is refused, with nothing else asked for.
fn reason(small: Small, goal: Goal, settings: &Settings) -> String {
    refusal(&small.cluster(), &Request::rebalance(&[goal]), settings).reason
}

fn min_leaders(topics: &str, least: u32) -> Settings {
    Settings {
        topics_with_min_leaders_per_broker: Some(TopicPattern::new(topics).unwrap()),
        min_topic_leaders_per_broker: least,
        ..Settings::default()
    }
}

#[test]
fn fewer_racks_than_replicas() {
    let mut small = Small::in_racks("aab");
    small.partition("t", 0, &[0, 1, 2], 10.0);
    small.partition("u", 0, &[0, 2], 10.0);
    let cluster = small.cluster();
    let request = Request::rebalance(&[Goal::RackAware]);
    let refused = refusal(&cluster, &request, &Settings::default());
    assert_eq!(
        refused.reason,
        "[RackAwareGoal] Insufficient number of racks to distribute each replica (Current: 2, Needed: 3). Add at least \
         1 rack with brokers."
    );
    assert_eq!(refused.provision.status, ProvisionStatus::UnderProvisioned);
    assert_eq!(refused.provision.recommendation, "[RackAwareGoal] Add at least 1 rack with brokers.");
    // Without the topic that needs three racks, two will do.
    let request = Request { excluded_topics: Some(TopicPattern::new("t").unwrap()), ..request };
    assert!(planned(&cluster, &request, &Settings::default()).is_ok());
}

#[test]
fn a_rack_that_is_removed_is_no_rack() {
    let mut small = Small::in_racks("abc");
    small.partition("t", 0, &[0, 1, 2], 10.0);
    let operation = Operation::RemoveBrokers([BrokerId(2)].into());
    let request = Request { operation, goals: vec![Goal::RackAware], ..Request::default() };
    let refused = refusal(&small.cluster(), &request, &Settings::default());
    assert!(refused.reason.contains("(Current: 2, Needed: 3)"), "{}", refused.reason);
}

#[test]
fn more_load_than_the_brokers_may_carry() {
    let mut small = Small::in_racks("abc");
    for number in 0..5 {
        small.partition("t", number, &[number % 3], 500.0);
    }
    // 2,500 MB; three brokers of 1,000 may carry 80 %, 2,400. 100 are missing: one more of 800 will do.
    assert_eq!(
        reason(small, Goal::DiskCapacity, &Settings::default()),
        "[DiskCapacityGoal] Insufficient capacity for disk (Utilization 2500.00, Allowed Capacity 2400.00, Threshold: \
         0.80). Add at least 1 broker with the same disk capacity (1000.00) as broker-0."
    );
}

#[test]
fn no_number_of_brokers_helps_where_nothing_of_them_may_be_used() {
    let mut small = Small::in_racks("ab");
    small.partition("t", 0, &[0], 10.0);
    let mut settings = Settings::default();
    settings.capacity_thresholds[Resource::Disk as usize] = 0.0;
    let words = "[DiskCapacityGoal] Insufficient capacity for disk (Utilization 10.00, Allowed Capacity 0.00, Threshold: \
                 0.00).";
    assert_eq!(reason(small, Goal::DiskCapacity, &settings), words);
}

#[test]
fn excluded_brokers_carry_nothing_and_restrictions_become_tips() {
    let mut small = Small::in_racks("abcd");
    for number in 0..4 {
        small.partition("t", number, &[number], 600.0);
    }
    small.partition("u", 0, &[3], 10.0);
    let request = Request {
        goals: vec![Goal::DiskCapacity],
        only_immigrants: true,
        destinations: [BrokerId(1)].into(),
        excluded_topics: Some(TopicPattern::new("u").unwrap()),
        excluded_for_leadership: [BrokerId(2)].into(),
        excluded_for_replica_moves: [BrokerId(0), BrokerId(3)].into(),
        ..Request::default()
    };
    // 2,410 MB on brokers 1 and 2 that may carry 1,600; 810 are missing, two brokers of 800.
    let refused = refusal(&small.cluster(), &request, &Settings::default());
    assert!(refused.reason.ends_with("as broker-1.") && refused.tips.len() == 5, "{refused:?}");
    assert_eq!(
        refused.to_string(),
        "[DiskCapacityGoal] Insufficient capacity for disk (Utilization 2410.00, Allowed Capacity 1600.00, Threshold: \
         0.80). Add at least 2 brokers with the same disk capacity (1000.00) as broker-1. || Tips: [1] The optimization \
         is limited to replicas to be added to/removed from brokers. Potential mitigation: First, rebalance the cluster \
         using REBALANCE endpoint with a superset of hard-goals defined via hard.goals config. [2] The destination \
         brokers are limited to [1]. Potential mitigation: Relax the constraint on destination brokers using \
         destination_broker_ids parameter. [3] The following brokers are excluded from replica moves [0, 3]. Potential \
         mitigation: Drop excluded brokers using ADMIN endpoint. [4] The following brokers are excluded from leadership \
         moves [2]. Potential mitigation: Drop brokers from exclusion for leadership move using ADMIN endpoint. [5] \
         There are 1 topics excluded from replica move. Potential mitigation: Remove selected topics from exclusion \
         using excluded_topics parameter. Then, re-run your original request."
    );
}

#[test]
fn more_replicas_than_places() {
    let settings = Settings { max_replicas_per_broker: 2, ..Settings::default() };
    let mut small = Small::in_racks("ab");
    for number in 0..7 {
        small.partition("t", number, &[0], 1.0);
    }
    // Seven replicas, two to a broker: four brokers, two more than there are.
    assert_eq!(
        reason(small, Goal::ReplicaCapacity, &settings),
        "[ReplicaCapacityGoal] Total replicas in cluster: 7 exceeds the maximum allowed replicas in cluster: 4 (Alive \
         brokers: 2, Allowed number of replicas per broker: 2). Add at least 2 brokers."
    );
}

#[test]
fn more_excluded_replicas_than_places_on_a_broker() {
    let settings = Settings { max_replicas_per_broker: 2, ..Settings::default() };
    let mut small = Small::in_racks("ab");
    for number in 0..3 {
        small.partition("t", number, &[0], 1.0);
    }
    let excluded_topics = Some(TopicPattern::new("t").unwrap());
    let request = Request { goals: vec![Goal::ReplicaCapacity], excluded_topics, ..Request::default() };
    let refused = refusal(&small.cluster(), &request, &settings);
    let words = "[ReplicaCapacityGoal] Replicas of excluded topics in broker: 3 exceeds the maximum allowed number of \
                 replicas per broker: 2. || Tips: [1] There are 1 topics";
    assert!(refused.to_string().starts_with(words), "{refused}");
}

#[test]
fn a_broker_that_cannot_give_its_replicas_away() {
    let settings = Settings { max_replicas_per_broker: 2, ..Settings::default() };
    let mut small = Small::in_racks("ab");
    for number in 0..3 {
        small.partition("t", number, &[0], 1.0);
    }
    // Four places for three replicas, but only broker 0 may receive any.
    let request =
        Request { goals: vec![Goal::ReplicaCapacity], destinations: [BrokerId(0)].into(), ..Request::default() };
    let refused = refusal(&small.cluster(), &request, &settings);
    let words = "[ReplicaCapacityGoal] Replica count (3) in broker 0 exceeds the maximum allowed number of replicas per \
                 broker: 2. Add at least 1 broker. A broker could take t-0. || Tips: [1] The destination brokers are \
                 limited to [0].";
    assert!(refused.to_string().starts_with(words), "{refused}");
}

#[test]
fn a_replica_that_no_broker_can_carry() {
    let mut small = Small::in_racks("ab");
    small.partition("t", 0, &[1], 900.0);
    // 900 of 1,600 in all, yet no broker may carry more than 800.
    assert_eq!(
        reason(small, Goal::DiskCapacity, &Settings::default()),
        "[DiskCapacityGoal] Utilization (900.00) of broker 1 violated capacity limit (800.00) for resource disk. Add at \
         least 1 broker for disk. A broker with a disk capacity of more than 1125.00 could take t-0 (900.00)."
    );
}

/// `u` fits on the two large ones only, and with `t` or `v` beside it; then one of the two is left over.
#[test]
fn a_remedy_names_the_partition_the_racks_that_are_taken_and_the_capacity_that_is_needed() {
    let mut small = Small::in_racks("ab");
    small.broker(2, 'c', "host2", BrokerState::Alive, [100.0, 1000.0, 1000.0, 500.0]);
    small.partition("t", 0, &[0, 1], 300.0);
    small.partition("u", 0, &[0, 1], 450.0);
    small.partition("v", 0, &[0, 2], 110.0);
    let request = Request::rebalance(&[Goal::RackAware, Goal::DiskCapacity]);
    let refused = refusal(&small.cluster(), &request, &Settings::default());
    assert_eq!(
        refused.reason,
        "[DiskCapacityGoal] Utilization (860.00) of broker 0 violated capacity limit (800.00) for resource disk. Add at \
         least 1 broker for disk. A broker in a rack other than [c] with a disk capacity of more than 137.50 could take \
         v-0 (110.00)."
    );
    assert_eq!(refused.provision.recommendation, "[DiskCapacityGoal] Add at least 1 broker for disk.");
}

#[test]
fn brokers_on_one_host_share_its_network() {
    let mut small = Small::in_racks("a");
    for id in 1..3 {
        small.broker(id, 'b', "shared", BrokerState::Alive, [100.0, 1000.0, 1000.0, 1000.0]);
    }
    small.loaded("t", 0, &[1], Load { nw_in: 900.0, ..Load::default() });
    small.loaded("t", 1, &[2], Load { nw_in: 900.0, ..Load::default() });
    let cluster = small.cluster();
    let request = Request {
        goals: vec![Goal::NetworkInboundCapacity],
        excluded_topics: Some(TopicPattern::new("t").unwrap()),
        ..Request::default()
    };
    // 1,800 of 2,400 in all. Brokers 1 and 2 may take 800 each, their host 1,600, and it has 1,800.
    let refused = refusal(&cluster, &request, &Settings::default());
    let words = "[NetworkInboundCapacityGoal] Utilization (1800.00) of host shared violated capacity limit (1600.00) \
                 for resource networkInbound. Add at least 1 broker for networkInbound. None of the replicas on it may \
                 move.";
    assert!(refused.to_string().starts_with(words), "{refused}");
}

#[test]
fn a_host_carries_what_one_of_its_brokers_alone_could_not() {
    let mut small = Small::in_racks("a");
    for id in 1..3 {
        small.broker(id, 'b', "shared", BrokerState::Alive, [100.0, 1000.0, 1000.0, 1000.0]);
    }
    small.loaded("t", 0, &[1], Load { nw_in: 900.0, ..Load::default() });
    // Broker 1 alone would be over 800, but its host may take 1,600.
    let request = Request::rebalance(&[Goal::NetworkInboundCapacity]);
    assert!(planned(&small.cluster(), &request, &Settings::default()).is_ok());
}

#[test]
fn rack_mates_that_may_not_move() {
    let mut small = Small::in_racks("aab");
    small.partition("t", 0, &[0, 1], 10.0);
    let request = Request { goals: vec![Goal::RackAware], destinations: [BrokerId(1)].into(), ..Request::default() };
    let refused = refusal(&small.cluster(), &request, &Settings::default());
    let words = "[RackAwareGoal] Partition t-0 is not rack-aware. Leader (0) and follower brokers ([1]). Add at least 1 \
                 broker to a rack other than [a]. || Tips: [1] The destination brokers are limited to [1].";
    assert!(refused.to_string().starts_with(words), "{refused}");
}

#[test]
fn only_a_new_broker_could_part_rack_mates_and_it_is_in_their_rack() {
    let mut small = Small::in_racks("abb");
    small.broker(3, 'b', "host3", BrokerState::New, [100.0, 1000.0, 1000.0, 1000.0]);
    small.partition("t", 0, &[1, 2], 10.0);
    let refused = refusal(&small.cluster(), &Request::rebalance(&[Goal::RackAware]), &Settings::default());
    let words = "[RackAwareGoal] Partition t-0 is not rack-aware. Leader (1) and follower brokers ([2]). Add at least 1 \
                 broker to a rack other than [b], besides those that are new. || Tips: [1] While there are new brokers, \
                 replicas move to these only.";
    assert!(refused.to_string().starts_with(words), "{refused}");
    // Broker 0 would do, so nothing is too small.
    assert_eq!(refused.provision, Provision::default());
}

/// One broker was added; who reads "add one" takes that one for it.
#[test]
fn an_addition_that_does_not_help_asks_for_more_than_is_added() {
    let refused = |added: &[i32]| {
        let mut small = Small::in_racks("abc");
        let operation = Operation::AddBrokers(added.iter().copied().map(BrokerId).collect());
        let new = added.iter().copied();
        new.for_each(|id| small.broker(id, 'd', &format!("host{id}"), BrokerState::Alive, [1000.0; Resource::COUNT]));
        (0..2).for_each(|number| small.partition("t", number, &[0, 1, 2], 500.0));
        let request = Request { operation, goals: vec![Goal::DiskCapacity], ..Request::default() };
        planned(&small.cluster(), &request, &Settings::default())
    };
    let Err(Refused::Infeasible(refused_with_one)) = refused(&[7]) else { panic!("one is not enough") };
    let words = "[DiskCapacityGoal] Add at least 1 broker for disk, besides those that are new.";
    assert_eq!(refused_with_one.provision.recommendation, words);
    assert_eq!(refused_with_one.provision.status, ProvisionStatus::UnderProvisioned);
    assert!(refused(&[7, 8, 9]).is_ok(), "that many help");
}

#[test]
fn replicas_that_cannot_spread_over_racks() {
    let mut small = Small::in_racks("aab");
    small.partition("t", 0, &[0, 1], 10.0);
    let goals = vec![Goal::RackAwareDistribution];
    let request = Request { goals, destinations: [BrokerId(1)].into(), ..Request::default() };
    let refused = refusal(&small.cluster(), &request, &Settings::default());
    // Two replicas over two racks are one each; rack a has both, b none.
    let words = "[RackAwareDistributionGoal] Partition t-0 is not rack-aware. Brokers ([0, 1]) and replicas per rack \
                 ({a=2}). Add at least 1 broker to a rack other than [a]. || Tips: [1]";
    assert!(refused.to_string().starts_with(words), "{refused}");
}

#[test]
fn fewer_leaders_than_brokers_need() {
    let mut small = Small::in_racks("abc");
    small.partition("t", 0, &[0], 1.0);
    small.partition("t", 1, &[1], 1.0);
    // Three brokers, two leaders each: six.
    assert_eq!(
        reason(small, Goal::MinTopicLeadersPerBroker, &min_leaders("t", 2)),
        "[MinTopicLeadersPerBrokerGoal] Cannot distribute 2 leaders over 3 broker(s) with minimum required per broker \
         leader count 2 for topic t. Add at least the minimum number of partitions so that the topic regex t has 6 \
         partitions."
    );
}

#[test]
fn topics_that_need_leaders_everywhere_cannot_be_excluded() {
    let mut small = Small::in_racks("a");
    small.partition("t", 0, &[0], 1.0);
    let excluded_topics = Some(TopicPattern::new("t").unwrap());
    let request = Request { goals: vec![Goal::MinTopicLeadersPerBroker], excluded_topics, ..Request::default() };
    let refused = refusal(&small.cluster(), &request, &min_leaders("t", 1));
    let words = "[MinTopicLeadersPerBrokerGoal] Topics that must have a minimum number of leaders per broker cannot be \
                 excluded. This error implies a config error. Topics should not be excluded=[t] (see \
                 topics.with.min.leaders.per.broker). || Tips: [1]";
    assert!(refused.to_string().starts_with(words), "{refused}");
}

#[test]
fn a_broker_that_can_get_no_leader() {
    let mut small = Small::in_racks("ab");
    small.partition("t", 0, &[0], 1.0);
    small.partition("t", 1, &[0], 1.0);
    let goals = vec![Goal::MinTopicLeadersPerBroker];
    let request = Request { goals, destinations: [BrokerId(0)].into(), ..Request::default() };
    let refused = refusal(&small.cluster(), &request, &min_leaders("t", 1));
    let words = "[MinTopicLeadersPerBrokerGoal] Broker 1 has insufficient per-broker leaders for topic t (required: 1 \
                 current: 0). Broker 1 would have to be able to lead 1 more of t. || Tips: [1] The destination brokers \
                 are limited to [0].";
    assert!(refused.to_string().starts_with(words), "{refused}");
}

#[test]
fn an_offline_replica_that_has_nowhere_to_go() {
    let mut small = Small::in_racks("a");
    small.broker(1, 'b', "host1", BrokerState::Dead, [0.0; Resource::COUNT]);
    small.partition("t", 0, &[0, 1], 10.0);
    // The only broker that is alive has the other replica already.
    assert_eq!(
        reason(small, Goal::ReplicaDistribution, &Settings::default()),
        "[ReplicaDistributionGoal] Cannot remove offline replicas from broker 1. Add at least 1 broker. A broker could \
         take t-0."
    );
}

#[test]
fn what_can_be_mended_is_not_refused() {
    let mut small = Small::in_racks("aab");
    small.partition("t", 0, &[0, 1], 100.0);
    small.partition("t", 1, &[0], 750.0);
    // Rack a has both replicas of t-0, and broker 0 has 850 of 800 MB.
    let request = Request::rebalance(&[Goal::RackAware, Goal::DiskCapacity]);
    let outcome = planned(&small.cluster(), &request, &Settings::default()).unwrap();
    assert!(outcome.verdicts.iter().all(|verdict| verdict.miss.1 == 0.0), "{:?}", outcome.verdicts);
}
