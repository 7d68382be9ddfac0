use evenkeel_balancer::cluster::BrokerId;

use super::scene::{Scene, named};
use crate::{model::PartitionView, proposals::fits};

const URL: &str = "remove_broker?brokerid=0&goals=ReplicaDistributionGoal&skip_hard_goal_check=true";

/// Broker 0 is emptied: `t-0` goes to 2, the only one that has none of it.
fn scene() -> Scene {
    Scene::draw("b0 a: t0*\nb1 b: t0\nb2 c: u0*")
}

/// What is said once the cluster has changed.
fn said(change: impl FnOnce(&mut Scene)) -> Result<(), String> {
    let mut scene = scene();
    let made = scene.propose(URL).unwrap();
    let targets: Vec<BrokerId> = made.outcome.plan.changes[0].added().collect();
    assert_eq!(targets, [BrokerId(2)]);
    change(&mut scene);
    fits(&made, &scene.sighting.view).map_err(|changed| changed.to_string())
}

#[test]
fn a_plan_fits_as_long_as_what_it_moves_and_where_to_is_as_it_was() {
    assert_eq!(said(|_| {}), Ok(()));
    assert_eq!(said(|scene| scene.partition("t0").replicas.reverse()), Ok(()), "the order does not matter");
    assert_eq!(said(|scene| scene.partition("u0").replicas = vec![1]), Ok(()), "nor what does not move");
    assert_eq!(said(|scene| scene.broker(0).up = false), Ok(()), "nor who is left");
    assert_eq!(
        said(|scene| drop(scene.sighting.view.partitions.insert(named("v0"), PartitionView::default()))),
        Ok(())
    );
}

#[test]
fn what_has_changed_is_said() {
    let lies = "partition t-0 lay on brokers {0, 1} and now lies on {0, 2}";
    assert_eq!(said(|scene| scene.partition("t0").replicas = vec![0, 2]), Err(lies.to_owned()));
    let moving = "partition t-0 is being copied to broker 2";
    assert_eq!(said(|scene| scene.partition("t0").adding = vec![2]), Err(moving.to_owned()));
    let gone = said(|scene| drop(scene.sighting.view.partitions.remove(&named("t0"))));
    assert_eq!(gone, Err("partition t-0 is gone".to_owned()));
    assert_eq!(said(|scene| scene.broker(2).up = false), Err("broker 2 is down".to_owned()));
    let gone = said(|scene| drop(scene.sighting.view.brokers.remove(&2)));
    assert_eq!(gone, Err("broker 2 is gone".to_owned()));
    let both = said(|scene| {
        scene.broker(2).up = false;
        scene.partition("t0").replicas = vec![0, 2];
    });
    assert_eq!(both, Err(format!("broker 2 is down; {lies}")));
}

#[test]
fn a_directory_that_has_failed_takes_nothing() {
    let mut scene = Scene::draw("b0 a: t0*@/d0 t1*@/d1\nb1 b:").with_dirs();
    let made = scene.propose("remove_disks?brokerid_and_logdirs=0-/d0").unwrap();
    assert_eq!(fits(&made, &scene.sighting.view), Ok(()));
    scene.broker(0).failed_dirs.insert("/d1".to_owned());
    let changed = fits(&made, &scene.sighting.view).unwrap_err();
    assert_eq!(changed.to_string(), "log directory /d1 of broker 0 has failed");
}

#[test]
fn a_new_leader_has_to_be_up() {
    let mut scene = Scene::draw("b0 a: t0*\nb1 b: t0");
    let made = scene.propose("demote_broker?brokerid=0").unwrap();
    scene.broker(1).up = false;
    assert_eq!(fits(&made, &scene.sighting.view).unwrap_err().to_string(), "broker 1 is down");
}

#[test]
fn much_that_has_changed_is_counted() {
    let mut scene = Scene::draw("b0 a: t0* t1* t2* t3* t4*\nb1 b: t0 t1 t2 t3 t4");
    let made = scene.propose("demote_broker?brokerid=0").unwrap();
    scene.sighting.view.partitions.clear();
    let said = fits(&made, &scene.sighting.view).unwrap_err().to_string();
    assert_eq!(said, "partition t-0 is gone; partition t-1 is gone; partition t-2 is gone; and 2 more");
}

#[test]
fn nothing_may_have_come_to_a_broker_that_is_to_be_emptied() {
    let come = "partition u-0 has come to broker 0";
    assert_eq!(said(|scene| scene.partition("u0").replicas = vec![2, 0]), Err(come.to_owned()));
    // A copy that is still on its way would be forgotten there.
    assert_eq!(said(|scene| scene.partition("u0").adding = vec![0]), Err(come.to_owned()));
    let unmoved = "remove_broker?brokerid=1&goals=ReplicaDistributionGoal&skip_hard_goal_check=true";
    let mut scene = Scene::draw("b0 a: t0*\nb1 b: u0*\nb2 c:");
    // That of a copy on its way to a broker which is to be emptied no plan is made is known; that it has come is not.
    scene.partition("t0").adding = vec![1];
    let made = scene.propose(unmoved).unwrap();
    assert_eq!(made.outcome.plan.changes.len(), 1);
    assert_eq!(fits(&made, &scene.sighting.view).unwrap_err().to_string(), "partition t-0 has come to broker 1");
}

/// The plan leaves them alone, because they leave by themselves: then they must have.
#[test]
fn what_was_on_its_way_off_a_broker_that_is_to_be_emptied_is_not_forgotten_there() {
    let mut scene = Scene::draw("b0 a: t0*\nb1 b:\nb2 c:");
    scene.partition("t0").adding = vec![1];
    let made = scene.propose(URL).unwrap();
    assert_eq!(made.outcome.plan.changes, []);
    scene.partition("t0").adding.clear();
    let said = fits(&made, &scene.sighting.view).unwrap_err().to_string();
    assert_eq!(said, "partition t-0 has come to broker 0; partition t-0 was being copied to broker 1 and no longer is");
    scene.partition("t0").replicas = vec![1];
    assert_eq!(fits(&made, &scene.sighting.view), Ok(()));
}

#[test]
fn what_a_budget_leaves_on_a_broker_that_is_to_be_emptied_may_lie_there() {
    let scene = Scene::draw("b0 a: t0* t1*\nb1 b:\nb2 c:");
    let made = scene.propose(&format!("{URL}&max_data_to_move_mb=100")).unwrap();
    assert_eq!(made.outcome.plan.changes.len(), 1);
    assert_eq!(fits(&made, &scene.sighting.view), Ok(()));
}

#[test]
fn copies_that_a_plan_counts_on_have_come_or_still_come() {
    let adding = "add_broker?brokerid=2&goals=ReplicaDistributionGoal&skip_hard_goal_check=true";
    let mut scene = Scene::draw("b0 a: t0* t1* t2* t3* t4* t5*\nb1 b: u0* u1* u2* u3* u4* u5*\nb2 c:");
    assert!(!scene.plan(adding).is_empty());
    // Somebody else fills it already, so there is nothing left to do.
    for name in ["t0", "t1", "u0", "u1"] {
        scene.partition(name).adding = vec![2];
    }
    let made = scene.propose(adding).unwrap();
    assert_eq!(made.outcome.plan.changes.len(), 0);
    assert_eq!(fits(&made, &scene.sighting.view), Ok(()), "they still come");
    *scene.partition("t0") = PartitionView { replicas: vec![2], leader: Some(2), ..PartitionView::default() };
    assert_eq!(fits(&made, &scene.sighting.view), Ok(()), "one has come");
    scene.sighting.view.partitions.remove(&named("t1"));
    assert_eq!(fits(&made, &scene.sighting.view), Ok(()), "one is not needed any more");
    scene.partition("u0").adding.clear();
    let said = fits(&made, &scene.sighting.view).unwrap_err().to_string();
    assert_eq!(said, "partition u-0 was being copied to broker 2 and no longer is");
}
