//! The independent checker, one forbidden thing at a time: the plans here are written by hand.

use std::collections::BTreeSet;

use evenkeel_balancer::cluster::{BrokerId, DiskSpec, DiskState};
use evenkeel_balancer::goal::Goal;
use evenkeel_balancer::inspect::inspect;
use evenkeel_balancer::options::{Budget, Operation, Request, TopicPattern};
use evenkeel_balancer::plan::{Change, DiskChange, Plan, Undone};
use expect_test::{Expect, expect};

use crate::check::ids;
use crate::picture::Picture;

/// Each partition weighs 10 MB.
const FOUR: &str = "rack a: b0[t0* u0 ] b1[t0 u0*]
                    rack b: b2[] b3[]";

fn brokers(ids: &[i32]) -> Vec<BrokerId> {
    ids.iter().copied().map(BrokerId).collect()
}

/// A change whose leader is the first of each list and whose moves and bytes are right.
fn change(topic: &str, old: &[i32], new: &[i32]) -> Change {
    let gone = old.iter().filter(|broker| !new.contains(broker));
    let added = new.iter().filter(|broker| !old.contains(broker));
    let change = Change {
        topic: topic.to_owned(),
        partition: 0,
        old_replicas: brokers(old),
        new_replicas: brokers(new),
        moves: gone.clone().zip(added).map(|(from, to)| (BrokerId(*from), BrokerId(*to))).collect(),
        old_leader: BrokerId(old[0]),
        new_leader: BrokerId(new[0]),
        disks: Vec::new(),
        megabytes: 0.0,
        disk_megabytes: 0.0,
        reasons: Vec::new(),
    };
    Change { megabytes: 10.0 * gone.count() as f64, ..change }
}

fn findings(picture: &Picture, request: &Request, changes: Vec<Change>) -> String {
    let found = inspect(&picture.build(), request, &Plan { changes, undone: Undone::default() });
    found.iter().map(|finding| format!("{finding}\n")).collect()
}

fn check(picture: &str, request: &Request, changes: &[Change], expected: Expect) {
    expected.assert_eq(&findings(&Picture::parse(picture), request, changes.to_vec()));
}

#[test]
fn a_sound_plan_has_no_findings() {
    let plan = [change("t", &[0, 1], &[2, 1]), change("u", &[0, 1], &[0, 1])];
    let plan = [plan[0].clone(), Change { old_leader: BrokerId(1), ..plan[1].clone() }];
    let text = format!("{FOUR}\norder u0: b0 b1");
    check(&text, &Request::default(), &plan, expect![""]);
}

#[test]
fn a_plan_fits_the_cluster_it_was_made_for() {
    let plan = [
        change("nobody", &[0, 1], &[2, 1]),
        change("t", &[1, 0], &[2, 1]),
        change("u", &[1, 0], &[1, 2]),
        change("u", &[1, 0], &[1, 3]),
    ];
    check(
        FOUR,
        &Request::default(),
        &plan,
        expect![[r#"
        nobody-0: there is no such partition
        t-0: is not as the plan says it was found
        u-0: is listed twice
    "#]],
    );
}

#[test]
fn a_partition_keeps_its_factor_and_its_replicas_apart() {
    let few = [change("t", &[0, 1], &[0]), change("u", &[1, 0], &[1, 0, 2])];
    check(
        FOUR,
        &Request::default(),
        &few,
        expect![[r#"
        t-0: 2 replicas become 1
        u-0: 2 replicas become 3
    "#]],
    );
    let odd = [change("t", &[0, 1], &[2, 2]), change("u", &[1, 0], &[1, 9])];
    check(
        FOUR,
        &Request::default(),
        &odd,
        expect![[r#"
        t-0: two replicas on broker 2
        u-0: there is no broker 9
    "#]],
    );
    check(
        FOUR,
        &Request::default(),
        &[change("t", &[0, 1], &[0, 1])],
        expect![[r#"
        t-0: changes nothing
    "#]],
    );
}

#[test]
fn the_leader_comes_first() {
    let late = Change { new_leader: BrokerId(1), ..change("t", &[0, 1], &[2, 1]) };
    let absent = Change { new_leader: BrokerId(3), ..change("u", &[1, 0], &[1, 2]) };
    check(
        FOUR,
        &Request::default(),
        &[late, absent],
        expect![[r#"
        t-0: the leader, broker 1, is not the first of the list
        u-0: the leader, broker 3, is not the first of the list
    "#]],
    );
}

#[test]
fn moves_lead_from_the_old_list_to_the_new() {
    let right = change("t", &[0, 1], &[2, 3]);
    let wrong = |moves: &[(i32, i32)]| {
        let moves = moves.iter().map(|(from, to)| (BrokerId(*from), BrokerId(*to))).collect();
        let change = Change { moves, ..right.clone() };
        findings(&Picture::parse(FOUR), &Request::default(), vec![change])
    };
    for either_way in [[(0, 2), (1, 3)], [(0, 3), (1, 2)]] {
        assert_eq!(wrong(&either_way), "");
    }
    let told = "t-0: the moves told are not from the brokers that lose a replica to those that get one\n";
    let none_one_too_few_twice_and_elsewhere: [&[(i32, i32)]; 5] =
        [&[], &[(0, 2)], &[(0, 2), (0, 3)], &[(0, 2), (1, 2)], &[(0, 2), (1, 0)]];
    for moves in none_one_too_few_twice_and_elsewhere {
        assert_eq!(wrong(moves), told, "{moves:?}");
    }
}

#[test]
fn nothing_moves_onto_a_broker_that_may_not_have_it() {
    let plan = [change("t", &[0, 1], &[0, 2])];
    let dead = FOUR.replace("b2[]", "b2[] dead");
    check(
        &dead,
        &Request::default(),
        &plan,
        expect![[r#"
        t-0: broker 2 gets a replica, but it is dead
    "#]],
    );
    let removed = Request { operation: Operation::RemoveBrokers(ids(&[2])), ..Request::default() };
    check(
        FOUR,
        &removed,
        &plan,
        expect![[r#"
        t-0: broker 2 gets a replica, but it is dead
    "#]],
    );
    let excluded = Request { excluded_for_replica_moves: ids(&[2]), ..Request::default() };
    check(
        FOUR,
        &excluded,
        &plan,
        expect![[r#"
        t-0: broker 2 gets a replica, but it is excluded for replica moves
    "#]],
    );
    let named = Request { destinations: ids(&[3]), ..Request::default() };
    check(
        FOUR,
        &named,
        &plan,
        expect![[r#"
        t-0: broker 2 gets a replica, but it is not among the destinations
    "#]],
    );
    let added = Request { operation: Operation::AddBrokers(ids(&[3])), ..Request::default() };
    check(
        FOUR,
        &added,
        &plan,
        expect![[r#"
        t-0: broker 2 gets a replica, but only new brokers may
    "#]],
    );
    // Destinations by name override both.
    let named = Request { destinations: ids(&[2]), excluded_for_replica_moves: ids(&[2]), ..added };
    check(FOUR, &named, &plan, expect![""]);
}

#[test]
fn nobody_leads_who_may_not() {
    let plan = [change("t", &[0, 1], &[1, 0])];
    let excluded = Request { excluded_for_leadership: ids(&[1]), ..Request::default() };
    check(
        FOUR,
        &excluded,
        &plan,
        expect![[r#"
        t-0: broker 1 gets leadership, but it is excluded for leadership
    "#]],
    );
    // A leader that moves is a new leader where it arrives.
    check(FOUR, &excluded, &[change("u", &[1, 0], &[2, 0])], expect![""]);
    let excluded = Request { excluded_for_leadership: ids(&[2]), ..Request::default() };
    check(
        FOUR,
        &excluded,
        &[change("u", &[1, 0], &[2, 0])],
        expect![[r#"
        u-0: broker 2 gets leadership, but it is excluded for leadership
    "#]],
    );
    let demoted = Request { operation: Operation::DemoteBrokers(ids(&[1])), ..Request::default() };
    check(
        FOUR,
        &demoted,
        &plan,
        expect![[r#"
        t-0: broker 1 gets leadership, but it is demoted
    "#]],
    );
    let added = Request { operation: Operation::AddBrokers(ids(&[3])), ..Request::default() };
    check(
        FOUR,
        &added,
        &plan,
        expect![[r#"
        t-0: broker 1 gets leadership, but only new brokers may
    "#]],
    );
    let offline = FOUR.replace("b1[t0", "b1[t0!");
    check(
        &offline,
        &Request::default(),
        &plan,
        expect![[r#"
        t-0: broker 1 gets leadership, but its replica is offline
        t-0: the offline replica on broker 1 stays, although broker 2 could take it
    "#]],
    );
}

#[test]
fn what_must_stay_stays() {
    let plan = [change("t", &[0, 1], &[2, 1])];
    // A pattern counts only if it matches the whole name.
    let excluded =
        |pattern| Request { excluded_topics: Some(TopicPattern::new(pattern).unwrap()), ..Request::default() };
    check(&FOUR.replace("t0", "tt0"), &excluded("t"), &[change("tt", &[0, 1], &[2, 1])], expect![""]);
    check(
        FOUR,
        &excluded("x|t"),
        &plan,
        expect![[r#"
        t-0: broker 2 gets leadership, but the topic is excluded
        t-0: the replica on broker 0 serves and leaves, but the topic is excluded
    "#]],
    );
    check(&FOUR.replace("b0[t0*", "b0[t0*!"), &excluded("x|t"), &plan, expect![""]);
    let moving = format!("{FOUR}\nmoving t0 -> b3");
    check(
        &moving,
        &Request::default(),
        &plan,
        expect![[r#"
        t-0: broker 2 gets leadership, but the partition is being reassigned already
        t-0: the replica on broker 0 serves and leaves, but the partition is being reassigned already
    "#]],
    );
    let immigrants = Request { only_immigrants: true, ..Request::default() };
    check(
        FOUR,
        &immigrants,
        &plan,
        expect![[r#"
            t-0: broker 2 gets leadership, but only immigrant replicas may move
            t-0: the replica on broker 0 serves and leaves, but only immigrant replicas may move
        "#]],
    );
}

#[test]
fn nothing_is_left_offline_that_could_be_saved() {
    let dead = "rack a: b0[t0* u0 ] dead b1[t0 u0*]
                rack b: b2[] b3[]";
    check(
        dead,
        &Request::default(),
        &[change("t", &[0, 1], &[1, 0])],
        expect![[r#"
        t-0: the offline replica on broker 0 stays, although broker 2 could take it
        u-0: the offline replica on broker 0 stays, although broker 2 could take it
    "#]],
    );
    // Unless there was no money for it, or nowhere to go.
    let poor = Request { budget: Budget { megabytes: Some(10.0), moves: None }, ..Request::default() };
    check(dead, &poor, &[change("t", &[0, 1], &[1, 2])], expect![""]);
    let nowhere = Request { excluded_for_replica_moves: ids(&[2, 3]), ..Request::default() };
    check(dead, &nowhere, &[], expect![""]);
}

#[test]
fn what_is_being_replaced_is_not_replaced_once_more() {
    let moving = "rack a: b0[t0*] dead b1[t0]
                  rack b: b2[] b3[]
                  moving t0 -> b3";
    check(moving, &Request::default(), &[], expect![""]);
    check(
        moving,
        &Request::default(),
        &[change("t", &[0, 1], &[1, 2])],
        expect![[r#"
            t-0: broker 1 gets leadership, but the partition is being reassigned already
            t-0: the replica on broker 0 leaves for another broker than the one that a copy is on its way to
        "#]],
    );
    // A copy that goes nowhere replaces nothing.
    let lost = moving.replace("b3[]", "b3[] dead");
    check(&lost, &Request::default(), &[change("t", &[0, 1], &[1, 2])], expect![""]);
    check(
        &lost,
        &Request::default(),
        &[],
        expect![[r#"
            t-0: the offline replica on broker 0 stays, although broker 2 could take it
        "#]],
    );
}

#[test]
fn bytes_add_up() {
    let wrong = Change { megabytes: 20.0, disk_megabytes: 1.0, ..change("t", &[0, 1], &[2, 1]) };
    check(
        FOUR,
        &Request::default(),
        &[wrong],
        expect![[r#"
        t-0: 20 MB between brokers are told, 10 MB are counted
        t-0: 1 MB between disks are told, 0 MB are counted
    "#]],
    );
    let nonsense = Change { megabytes: f64::NAN, ..change("t", &[0, 1], &[2, 1]) };
    check(
        FOUR,
        &Request::default(),
        &[nonsense],
        expect![[r#"
        t-0: NaN MB between brokers are told, 10 MB are counted
    "#]],
    );
}

#[test]
fn budgets_are_kept() {
    let plan = [change("t", &[0, 1], &[2, 1]), change("u", &[1, 0], &[2, 0])];
    let budget = Budget { megabytes: Some(19.0), moves: Some(1) };
    check(
        FOUR,
        &Request { budget, ..Request::default() },
        &plan,
        expect![[r#"
        the plan: 2 changes, the budget allows 1
        the plan: 20 MB, the budget allows 19
    "#]],
    );
}

#[test]
fn disks_are_there_and_serve() {
    let mut picture = Picture::parse(FOUR);
    let disk = |name: &str, state| DiskSpec { name: name.to_owned(), capacity: 100.0, state };
    picture.brokers.get_mut(&2).unwrap().disks = vec![disk("/a", DiskState::Alive), disk("/b", DiskState::Dead)];
    let onto = |to: &str, from: &str| {
        let disks = vec![DiskChange { broker: BrokerId(2), from: from.to_owned(), to: to.to_owned() }];
        vec![Change { disks, ..change("t", &[0, 1], &[2, 1]) }]
    };
    let request = Request::default();
    assert_eq!(findings(&picture, &request, onto("/a", "")), "");
    expect![[r#"
        t-0: disk `/b` of broker 2 gets a replica and does not serve
    "#]]
    .assert_eq(&findings(&picture, &request, onto("/b", "")));
    expect![[r#"
        t-0: disk `/c` of broker 2 is not listed
    "#]]
    .assert_eq(&findings(&picture, &request, onto("/c", "")));
    expect![[r#"
        t-0: disk `/x` of broker 2 does not hold the replica
    "#]]
    .assert_eq(&findings(&picture, &request, onto("/a", "/x")));
    let removal = Operation::RemoveDisks(BTreeSet::from([(BrokerId(2), "/a".to_owned())]));
    let request = Request { operation: removal, ..request };
    expect![[r#"
        t-0: broker 2 gets a replica, but nothing is to be copied between brokers
        t-0: disk `/a` of broker 2 gets a replica and does not serve
    "#]]
    .assert_eq(&findings(&picture, &request, onto("/a", "")));
}

#[test]
fn operations_that_copy_nothing_between_brokers_move_nothing_there() {
    let moved = [change("t", &[0, 1], &[2, 1])];
    let said = "t-0: broker 2 gets a replica, but nothing is to be copied between brokers\n";
    let disks = BTreeSet::from([(BrokerId(0), "a".to_owned())]);
    for operation in [Operation::DemoteBrokers(ids(&[0])), Operation::RebalanceDisks, Operation::RemoveDisks(disks)] {
        let request = Request { operation, ..Request::default() };
        assert_eq!(findings(&Picture::parse(FOUR), &request, moved.to_vec()), said, "{request:?}");
    }
    let elects = Request::rebalance(&[Goal::PreferredLeaderElection]);
    assert_eq!(findings(&Picture::parse(FOUR), &elects, moved.to_vec()), said);
}

#[test]
fn leadership_of_what_is_in_its_place_stays_if_only_immigrants_move() {
    let immigrants = Request { only_immigrants: true, ..Request::default() };
    check(
        FOUR,
        &immigrants,
        &[change("t", &[0, 1], &[1, 0])],
        expect![[r#"
        t-0: broker 1 gets leadership, but only immigrant replicas may move
    "#]],
    );
    // Whoever is left takes over from a leader that is offline.
    check("rack a: b0[t0*!] b1[t0]", &immigrants, &[change("t", &[0, 1], &[1, 0])], expect![""]);
}

#[test]
fn a_replica_changes_disks_once() {
    let picture = Picture::parse("rack a: b0[t0*]\ndisks b0: 100 100 100\non t0@b0: 0");
    let to = |name: &str| DiskChange { broker: BrokerId(0), from: "d0".to_owned(), to: name.to_owned() };
    let twice = Change { disks: vec![to("d1"), to("d2")], disk_megabytes: 10.0, ..change("t", &[0], &[0]) };
    let request = Request { operation: Operation::RebalanceDisks, ..Request::default() };
    expect![[r#"
        t-0: disk `d2` of broker 0 is the second one for the same replica
    "#]]
    .assert_eq(&findings(&picture, &request, vec![twice]));
}

#[test]
fn removed_disks_end_empty() {
    let picture = Picture::parse("rack a: b0[t0* u0*]\ndisks b0: 100 100\non t0@b0: 0\non u0@b0: 1");
    let removal = Operation::RemoveDisks(BTreeSet::from([(BrokerId(0), "d0".to_owned())]));
    let request = Request { operation: removal, ..Request::default() };
    let disks = vec![DiskChange { broker: BrokerId(0), from: "d0".to_owned(), to: "d1".to_owned() }];
    let left = Change { disks, disk_megabytes: 10.0, ..change("t", &[0], &[0]) };
    assert_eq!(findings(&picture, &request, vec![left]), "");
    expect![[r#"
        t-0: disk `d0` of broker 0 is to be removed and keeps the replica
    "#]]
    .assert_eq(&findings(&picture, &request, Vec::new()));
    // A budget may not be enough for it.
    let budget = Budget { moves: Some(0), megabytes: None };
    assert_eq!(findings(&picture, &Request { budget, ..request }, Vec::new()), "");
}
