use std::{
    future::ready,
    sync::atomic::{AtomicUsize, Ordering},
};

use super::*;
use crate::proposals::scene::{Scene, request};

const URL: &str = "rebalance?goals=ReplicaDistributionGoal&skip_hard_goal_check=true";

fn scene() -> Scene {
    Scene::draw("b0 a: t0* t1* t2* t3*\nb1 b:\nb2 c:")
}

fn planner(scene: &Scene) -> Planner {
    Planner::new(Arc::new(scene.settings.clone()), Arc::new(scene.capacities.clone()))
}

async fn propose(planner: &Planner, scene: &Scene, url: &str) -> Answer {
    let known = Arc::new(scene.known());
    planner.propose(&request(url), &scene.history, &Steps::default(), |_| ready(Ok(known.clone()))).await
}

#[tokio::test]
async fn equal_requests_share_a_plan_as_long_as_nothing_else_is_known() {
    let mut scene = scene();
    let planner = planner(&scene);
    let (one, other) = tokio::join!(propose(&planner, &scene, URL), propose(&planner, &scene, URL));
    let first = one.unwrap();
    assert!(Arc::ptr_eq(&first, &other.unwrap()));
    let verbose = propose(&planner, &scene, &format!("{URL}&verbose=true&replication_throttle=9")).await.unwrap();
    assert!(Arc::ptr_eq(&first, &verbose), "how it is told and how fast it runs makes no other plan");
    scene.generation += 1;
    let later = propose(&planner, &scene, URL).await.unwrap();
    assert!(!Arc::ptr_eq(&first, &later));
    assert_eq!((first.id.as_str(), later.generation), (later.id.as_str(), 2));
}

#[tokio::test]
async fn a_plain_request_hits_the_cache_unless_it_asks_not_to() {
    let scene = scene();
    let planner = planner(&scene);
    propose(&planner, &scene, URL).await.unwrap();
    assert!(!planner.is_up_to_date(scene.generation), "that was a plan for goals of somebody's own");
    let plain = propose(&planner, &scene, "proposals").await.unwrap();
    assert!(planner.is_up_to_date(scene.generation) && !planner.is_up_to_date(scene.generation + 1));
    assert!(Arc::ptr_eq(&plain, &propose(&planner, &scene, "rebalance").await.unwrap()));
    let anew = propose(&planner, &scene, "rebalance?ignore_proposal_cache=true").await.unwrap();
    assert!(!Arc::ptr_eq(&plain, &anew) && plain.id == anew.id);
    assert!(Arc::ptr_eq(&anew, &propose(&planner, &scene, "rebalance").await.unwrap()));
}

#[tokio::test]
async fn a_plan_is_found_by_its_name_for_the_operation_it_was_made_for() {
    let scene = scene();
    let planner = planner(&scene);
    let made = propose(&planner, &scene, URL).await.unwrap();
    let by_id = |id: &str, url: &str| planner.by_id(id, &request(url), &scene.history, &scene.known());
    assert!(Arc::ptr_eq(&made, &by_id(&made.id, URL).unwrap()));
    let said = |id: &str, url: &str| by_id(id, url).map(|_| ()).unwrap_err().to_string();
    let unknown = said("abc", URL);
    assert!(unknown.ends_with("as it was approved (abc): it is not known here, or no longer"), "{unknown}");
    let other = said(&made.id, "remove_broker?brokerid=2");
    assert!(other.ends_with("it was made for another operation"), "{other}");
}

#[tokio::test]
async fn only_so_many_plans_are_kept() {
    let scene = scene();
    let planner = planner(&scene);
    let made = propose(&planner, &scene, URL).await.unwrap();
    for number in 0..KEPT {
        let mut other = (*made).clone();
        other.id = format!("p{number}");
        planner.keep(&Arc::new(other));
    }
    let by_id = |id: &str| planner.by_id(id, &request(URL), &scene.history, &scene.known());
    assert!(by_id(&made.id).is_err() && by_id("p0").is_ok() && by_id("p63").is_ok());
}

#[tokio::test]
async fn of_large_plans_only_some_are_cached() {
    let scene = scene();
    let planner = planner(&scene);
    let ahead = propose(&planner, &scene, "proposals").await.unwrap();
    let small = propose(&planner, &scene, URL).await.unwrap();
    let mut large = (*small).clone();
    large.outcome.plan.changes = vec![small.outcome.plan.changes[0].clone(); KEPT_CHANGES / 3];
    let large = Arc::new(large);
    for number in 0..5 {
        let answer = planner.cached(scene.generation, format!("large {number}"), false, false);
        answer.set(Ok(large.clone())).unwrap();
        planner.keep(&large);
    }
    let cached: Vec<String> = planner.memory().cached.iter().map(|cached| cached.key.clone()).collect();
    assert_eq!(cached[cached.len() - 2..], ["large 3", "large 4"]);
    assert!(!cached.contains(&"large 1".to_owned()), "{cached:?}");
    assert!(planner.is_up_to_date(scene.generation), "the one that was made ahead is there");
    assert!(Arc::ptr_eq(&ahead, &propose(&planner, &scene, "proposals").await.unwrap()));
    // One that is more than all others together is there as long as it is the newest.
    let mut huge = (*small).clone();
    huge.outcome.plan.changes = vec![small.outcome.plan.changes[0].clone(); KEPT_CHANGES + 1];
    let huge = Arc::new(huge);
    planner.cached(scene.generation, "huge".to_owned(), false, false).set(Ok(huge.clone())).unwrap();
    planner.keep(&huge);
    let cached: Vec<String> = planner.memory().cached.iter().map(|cached| cached.key.clone()).collect();
    assert_eq!((cached.len(), cached[1].as_str()), (2, "huge"));
}

#[tokio::test]
async fn what_is_wrong_with_a_request_is_said_before_anything_is_known() {
    let scene = scene();
    let planner = planner(&scene);
    let asked = AtomicUsize::new(0);
    let nothing = |_| {
        asked.fetch_add(1, Ordering::Relaxed);
        ready(Err(NotEnough::NoWindow { now: 5, newest: 0, oldest: 0 }))
    };
    let steps = Steps::default();
    let said = |answer: Answer| answer.map(|_| ()).unwrap_err().to_string();
    let unknown = said(planner.propose(&request("proposals?goals=Nor"), &scene.history, &steps, nothing).await);
    assert!(unknown.contains("Goals [Nor] are not supported"), "{unknown}");
    assert_eq!(asked.load(Ordering::Relaxed), 0);
    let early = said(planner.propose(&request("rebalance"), &scene.history, &steps, nothing).await);
    let text = "NotEnoughValidWindowsException: There is no window available in range [-1, 5] (index [1, -1]). \
                Window index (current: 0, oldest: 0).";
    assert!(early.ends_with(text), "{early}");
}

#[tokio::test]
async fn more_is_asked_of_what_is_known_by_goals_that_need_it() {
    let scene = scene();
    let planner = planner(&scene);
    let known = Arc::new(scene.known());
    let picky = |requirement: Requirement| {
        let wanted = requirement.windows;
        ready(if requirement.ratio > 0.0 {
            Err(NotEnough::TooFew { valid: 0, wanted, ratio: requirement.ratio, now: 5 })
        } else {
            Ok(known.clone())
        })
    };
    let steps = Steps::default();
    let said = planner
        .propose(&request("rebalance"), &scene.history, &steps, picky)
        .await
        .map(|_| ())
        .unwrap_err()
        .to_string();
    assert!(said.contains("There are only 0 valid windows when aggregating in range [-1, 5]"), "{said}");
    assert!(planner.propose(&request("proposals?goals=RackAwareGoal"), &scene.history, &steps, picky).await.is_ok());
}

#[tokio::test]
async fn a_failure_is_shared_too() {
    let mut scene = scene();
    scene.capacities.listed.clear();
    let planner = planner(&scene);
    let (one, other) = tokio::join!(propose(&planner, &scene, URL), propose(&planner, &scene, URL));
    assert_eq!(one.map(|_| ()).unwrap_err(), other.map(|_| ()).unwrap_err());
}

#[tokio::test]
async fn a_caller_that_goes_away_leaves_nobody_waiting() {
    let scene = scene();
    let planner = planner(&scene);
    tokio::select! {
        biased;
        _ = propose(&planner, &scene, URL) => panic!("planning takes a moment"),
        () = std::future::ready(()) => {}
    }
    assert!(propose(&planner, &scene, URL).await.is_ok());
}

#[tokio::test]
async fn how_far_a_plan_is_is_told_step_by_step() {
    let (scene, steps) = (scene(), Steps::default());
    let (planner, known) = (planner(&scene), Arc::new(scene.known()));
    planner.propose(&request(URL), &scene.history, &steps, |_| ready(Ok(known.clone()))).await.unwrap();
    let told = steps.body("POST /rebalance".to_owned());
    let names: Vec<&str> = told.progress[0].operation_progress.iter().map(|step| step.step.as_str()).collect();
    assert_eq!(names.len(), 3, "{names:?}");
    assert!(names[0].contains("AGGREGATING_METRICS"), "{names:?}");
    assert!(names[1].contains("GENERATING_CLUSTER_MODEL"), "{names:?}");
    assert!(names[2].contains("OPTIMIZING") && names[2].contains("ReplicaDistributionGoal"), "{names:?}");
    // Who finds a plan that is there waits for nothing else.
    let again = Steps::default();
    planner.propose(&request(URL), &scene.history, &again, |_| ready(Ok(known.clone()))).await.unwrap();
    assert_eq!(again.body(String::new()).progress[0].operation_progress.len(), 1);
}
