//! Brokers that share a host: its network is one, its processors too, its disks are not.

use evenkeel_balancer::anomaly::detect;
use evenkeel_balancer::cluster::BrokerId;
use evenkeel_balancer::goal::Goal;
use evenkeel_balancer::options::{Operation, Request};
use evenkeel_balancer::planner::{Refused, plan};
use evenkeel_balancer::provision::ProvisionStatus;
use evenkeel_balancer::settings::Settings;
use expect_test::expect;

use crate::check::{check, check_request, check_with};
use crate::picture::Picture;

/// Four brokers of 100 % CPU and 1000 everywhere else, so 800 (70 % of CPU) may be used of each.
const TIGHT: &str = "capacity b0: 100 1000 1000 1000
                     capacity b1: 100 1000 1000 1000
                     capacity b2: 100 1000 1000 1000
                     capacity b3: 100 1000 1000 1000";

fn tight(brokers: &str, loads: &str) -> String {
    let capacities: Vec<&str> =
        TIGHT.lines().filter(|line| brokers.contains(&line.trim()[9..11])).map(str::trim).collect();
    format!("{brokers}\n{}\n{loads}", capacities.join("\n"))
}

#[test]
fn brokers_of_one_host_share_its_network() {
    // 900 on b0 are more than its own 800, but less than the 1600 that the host may carry.
    for (goal, load) in [(Goal::NetworkInboundCapacity, "1 450 10 10"), (Goal::NetworkOutboundCapacity, "1 10 450 10")]
    {
        let shared = tight("rack a: b0@h[t0* t1*] b1@h[]", &format!("load *: {load}"));
        check(
            &shared,
            &[goal],
            expect![[r#"
            nothing to do
        "#]],
        );
    }
    // Disks are not shared.
    let disks = tight("rack a: b0@h[t0* t1*] b1@h[]", "load *: 1 10 10 450");
    check(
        &disks,
        &[Goal::DiskCapacity],
        expect![[r#"
        t0: b0 -> b1: leader b0 -> b1
        DiskCapacityGoal fixed
    "#]],
    );
    // CPU is kept by the host and by each broker.
    let cpu = tight("rack a: b0@h[t0* t1*] b1@h[]", "load *: 40 10 10 10");
    check(
        &cpu,
        &[Goal::CpuCapacity],
        expect![[r#"
        t0: b0 -> b1: leader b0 -> b1
        CpuCapacityGoal fixed
    "#]],
    );
}

/// What leaders might send is a matter of each broker: 900 on b0 are more than its 800, whatever the host may carry.
#[test]
fn traffic_that_could_be_is_not_shared_by_hosts() {
    check(
        &tight("rack a: b0@h[t0* t1*] b1@h[]", "load *: 1 10 450 10"),
        &[Goal::PotentialNwOut],
        expect![[r#"
        t0: b0 -> b1: leader b0 -> b1
        PotentialNwOutGoal fixed
    "#]],
    );
}

#[test]
fn a_dead_broker_lends_its_host_nothing() {
    // Alive, b1 would let the host carry 1600; dead, it leaves the 800 of b0.
    let one_left = tight("rack a: b0@h[t0* t1*] b1@h[] dead b2[]", "load *: 1 450 10 10");
    check(
        &one_left,
        &[Goal::NetworkInboundCapacity],
        expect![[r#"
        t0: b0 -> b2: leader b0 -> b2
        NetworkInboundCapacityGoal fixed
    "#]],
    );
}

#[test]
fn a_full_host_takes_nothing_though_its_broker_has_room() {
    // h carries 1400 of 1600, all on b0. b1 is empty and has room for 400, but h has not.
    let loads = "load *: 1 400 10 10\nload u0: 1 700 10 10\nload u1: 1 700 10 10";
    let full = tight("rack a: b0@h[u0* u1*] b1@h[]\nrack b: b2[t0* t1* t2*] b3[]", loads);
    check(
        &full,
        &[Goal::NetworkInboundCapacity],
        expect![[r#"
        t0: b2 -> b3: leader b2 -> b3
        NetworkInboundCapacityGoal fixed
    "#]],
    );
    // Nor for a goal of lower priority: by count b1 lacks one, but takes it from its own host, and b3 the one of b2.
    let loads = "load *: 1 250 10 10\nload u0: 1 700 10 10\nload u1: 1 700 10 10";
    let full = tight("rack a: b0@h[u0* u1*] b1@h[]\nrack b: b2[t0* t1* t2*] b3[t3*]", loads);
    check(
        &full,
        &[Goal::NetworkInboundCapacity, Goal::ReplicaDistribution],
        expect![[r#"
        t0: b2 -> b3: leader b2 -> b3
        u0: b0 -> b1: leader b0 -> b1
        ReplicaDistributionGoal fixed
    "#]],
    );
}

#[test]
fn within_a_host_its_own_limit_has_no_say() {
    // 1580 of 1600 come into h, and 395 more would be too much. But what b1 gets from b0 is there already.
    let full = tight("rack a: b0@h[t0* t1* t2* t3*] b1@h[]", "load *: 1 395 10 10");
    check(
        &full,
        &[Goal::NetworkInboundCapacity, Goal::ReplicaDistribution],
        expect![[r#"
        t0: b0 -> b1: leader b0 -> b1
        ReplicaDistributionGoal fixed
    "#]],
    );
    // Leadership the same: 1580 of 1600 go out of h, whoever of its brokers sends them.
    let full = tight("rack a: b0@h[t0* t1* t2* t3*] b1@h[t0 t1 t2 t3]", "load *: 1 10 395 10");
    check(
        &full,
        &[Goal::NetworkOutboundCapacity, Goal::LeaderReplicaDistribution],
        expect![[r#"
        t0: leader b0 -> b1
        LeaderReplicaDistributionGoal fixed
    "#]],
    );
    // CPU is a limit of brokers too: b1 has 45 + 4 · 5 of 70, and 10 more would be too much.
    let busy =
        tight("rack a: b0@h[t0* t1* t2* t3*] b1@h[t0 t1 t2 t3 u0*]", "load *: 10 10 10 10\nload u0: 45 10 10 10");
    check(
        &busy,
        &[Goal::CpuCapacity, Goal::LeaderReplicaDistribution],
        expect![[r#"
        LeaderReplicaDistributionGoal violated
    "#]],
    );
}

#[test]
fn leadership_leaves_a_host_that_sends_too_much() {
    // 1800 of 1600 go out of h; b1 on the same host is no way out, b2 is.
    let full = tight("rack a: b0@h[t0* t1* t2* t3*] b1@h[t0 t1]\nrack b: b2[t2 t3]", "load *: 1 10 450 10");
    check(
        &full,
        &[Goal::NetworkOutboundCapacity],
        expect![[r#"
        t2: leader b0 -> b2
        NetworkOutboundCapacityGoal fixed
    "#]],
    );
}

#[test]
fn a_broker_is_in_the_band_if_its_host_is() {
    // Both hosts carry half of all; that b0 and b2 carry nothing of it is nobody's concern.
    let uneven = tight("rack a: b0@h[] b1@h[t0* t1*]\nrack b: b2@i[] b3@i[u0* u1*]", "load *: 10 100 100 100");
    for goal in
        [Goal::NetworkInboundUsageDistribution, Goal::NetworkOutboundUsageDistribution, Goal::CpuUsageDistribution]
    {
        check(
            &uneven,
            &[goal],
            expect![[r#"
            nothing to do
        "#]],
        );
    }
    // Disks are used alike by brokers.
    check(
        &uneven,
        &[Goal::DiskUsageDistribution],
        expect![[r#"
        t0: b1 -> b0: leader b1 -> b0
        u0: b3 -> b2: leader b3 -> b2
        DiskUsageDistributionGoal fixed
    "#]],
    );
    // The hosts are uneven now: 400 and 200 where 273 to 327 would be in the band, and so is each broker that
    // has 136 to 164. One of 100 goes from h to i.
    let uneven = tight("rack a: b0@h[] b1@h[t0* t1* t2* t3*]\nrack b: b2@i[] b3@i[u0* u1*]", "load *: 10 100 100 100");
    check(
        &uneven,
        &[Goal::NetworkInboundUsageDistribution],
        expect![[r#"
        t0: b1 -> b2: leader b1 -> b2
        NetworkInboundUsageDistributionGoal fixed
    "#]],
    );
}

#[test]
fn lost_brokers_of_a_shared_host_are_emptied_within_its_limits() {
    // b2 goes; h has 1500 of 1600, so its 400 fit only on b3.
    let loads = "load *: 1 375 10 10\nload u0: 1 400 10 10";
    let removal = tight("rack a: b0@h[t0* t1*] b1@h[t2* t3*]\nrack b: b2[u0*] b3[]", loads);
    let request = Request {
        operation: Operation::RemoveBrokers([BrokerId(2)].into()),
        ..Request::rebalance(&[Goal::NetworkInboundCapacity])
    };
    check_request(
        &removal,
        &request,
        expect![[r#"
        u0: b2 -> b3: leader b2 -> b3
    "#]],
    );
}

#[test]
fn what_a_host_cannot_carry_is_told_of_the_host() {
    // 1700 of 1600 on h, and nobody else may take any of it: each replica is more than the 800 of b2.
    let full = tight("rack a: b0@h[t0*] b1@h[u0*]\nrack b: b2[]", "load *: 1 850 10 10");
    let cluster = Picture::parse(&full).build();
    let refused = plan(&cluster, &Request::rebalance(&[Goal::NetworkInboundCapacity]), &Settings::default());
    let Err(Refused::Infeasible(infeasible)) = refused else { panic!("{refused:?}") };
    expect![
        "[NetworkInboundCapacityGoal] Utilization (1700.00) of host h violated capacity limit (1600.00) for resource \
         networkInbound. Add at least 1 broker for networkInbound. A broker with a networkInbound capacity of more than \
         1062.50 could take t-0 (850.00)."
    ]
    .assert_eq(&infeasible.reason);
    assert_eq!(infeasible.provision.status, ProvisionStatus::UnderProvisioned);
    let request = Request::rebalance(&[Goal::NetworkInboundCapacity]);
    let violations = detect(&cluster, &request, &Settings::default());
    assert_eq!((violations.fixable, violations.unfixable), (vec![], request.goals.clone()));
    let fixable = tight("rack a: b0@h[t0* t1*] b1@h[u0*]\nrack b: b2[]", "load *: 1 550 10 10");
    let violations = detect(&Picture::parse(&fixable).build(), &request, &Settings::default());
    assert_eq!((violations.fixable, violations.unfixable), (request.goals, vec![]));
}

#[test]
fn an_idle_cluster_has_too_many_brokers_by_what_each_carries_whatever_its_host() {
    let mut settings = Settings::default();
    settings.low_utilization_thresholds[1] = 0.5;
    // 400 of 4000 come in, a tenth; 800 would not idle: one broker of 1000 (800 / 1000 rounded down is 0, and one of
    // four stays for the only replica). b0 alone is above 0.45 · 1000, but h with 400 is below 0.45 · 2000.
    let idle = tight("rack a: b0@h[t0*] b1@h[]\nrack b: b2@i[] b3@i[]", "load *: 1 460 10 10");
    let cluster = Picture::parse(&idle).build();
    let goals = Request::rebalance(&[Goal::NetworkInboundUsageDistribution]);
    let outcome = plan(&cluster, &goals, &settings).unwrap();
    assert!(outcome.plan.changes.is_empty());
    expect![
        "[NetworkInboundUsageDistributionGoal] Remove at least 3 brokers with the same networkInbound capacity \
         (1000.00) as broker-0."
    ]
    .assert_eq(&outcome.provision.recommendation);
    check_with(
        &idle,
        &goals,
        &settings,
        expect![[r#"
        nothing to do
    "#]],
    );
}
