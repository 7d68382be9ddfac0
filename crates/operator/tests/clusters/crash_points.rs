//! The moments at which a crash of the operator has been seen to lose something elsewhere, one by one: it dies right
//! there, and the next one brings everything to the end that it would have had.

use std::collections::BTreeSet;
use std::time::Duration;

use evenkeel_api::KafkaRebalance;
use evenkeel_sim::cluster::NewTopic;
use evenkeel_sim::{BrokerId, TopicPartition};
use http::Method;
use kube::api::DeleteParams;
use serde_json::json;
use tokio::time::sleep;

use crate::play::{ADD, PARTITIONS, Play, mode, operator, scaling, violations};
use crate::stage::{Moment, a_while, patch};

const NEW: i32 = 3;

/// Nobody looks after the cluster any more.
async fn leave(play: &mut Play) {
    play.operator.abort();
    let _ = (&mut play.operator).await;
}

fn return_to(play: &mut Play) {
    play.operator = tokio::spawn(operator(play.stage.context.clone(), play.machines.clone(), play.room.clone()));
}

/// A write at which an operator dies, just before it or just after.
struct Last(Moment, Method, &'static str);

/// Lets something happen before the eyes of an operator that dies at a write, and the next one takes over.
async fn seen_by_a_mortal(play: &mut Play, Last(moment, method, path): Last, deed: impl AsyncFnOnce(&Play)) {
    leave(play).await;
    let (client, died) = play.stage.mortal_at(moment, method.clone(), path);
    let mut context = play.stage.context.clone();
    context.client = client;
    let mortal = tokio::spawn(operator(context, play.machines.clone(), play.room.clone()));
    deed(&*play).await;
    let has_died = tokio::time::timeout(Duration::from_secs(600), died.notified()).await;
    assert!(has_died.is_ok(), "it never writes {method} {path}");
    mortal.abort();
    let _ = mortal.await;
    return_to(play);
}

/// So many brokers, all of which hold data, and nothing left to do.
async fn check_end(play: &Play, replicas: i32) {
    let all: BTreeSet<i32> = (0..replicas).collect();
    play.until("its end", async |play| {
        play.brokers().await.len() == replicas as usize && play.holders() == all && play.is_settled().await
    })
    .await;
    a_while().await;
    assert!(play.is_settled().await && play.holders() == all);
}

/// The new broker gets its data, once, though the operator dies at a write on the way.
async fn grows_although(moment: Moment, method: Method, path: &'static str) {
    let mut play = Play::with(NEW, scaling()).await;
    seen_by_a_mortal(&mut play, Last(moment, method, path), async |play| play.scale(NEW + 1).await).await;
    check_end(&play, NEW + 1).await;
}

/// Load drifts, and is spread, once, though the operator dies at a write on the way.
async fn evens_out_although(moment: Moment, method: Method, path: &'static str) {
    let engine = json!({
        "autoRebalance": [mode("imbalance")],
        "config": {"anomaly.detection.goals": "ReplicaDistributionGoal"},
    });
    let mut play = Play::with(NEW, engine).await;
    seen_by_a_mortal(&mut play, Last(moment, method, path), async |play| drift(play)).await;
    let is_done = async |play: &Play| is_spread(play) && play.is_settled().await && violations(play).await.is_empty();
    play.until("its end", &is_done).await;
    // Longer than a pause between two: what was only half forgotten would be mended once more.
    sleep(Duration::from_secs(900)).await;
    assert!(is_done(&play).await);
    let ended = play.told().await.iter().filter(|it| it.ends_with("to Idle")).count();
    assert_eq!(ended, 1, "{:?}", play.told().await);
}

const DRIFT: &str = "drift";

/// A topic is made that lies on two brokers only.
fn drift(play: &Play) {
    play.machines.world().with(|cluster| {
        let lists: Vec<&[i32]> =
            (0..PARTITIONS).map(|number| if number % 2 == 0 { &[0, 1][..] } else { &[1, 0] }).collect();
        cluster.create_topic(&NewTopic::manual(DRIFT, &lists), false).unwrap();
        (0..PARTITIONS).for_each(|number| cluster.fill(&TopicPartition::new(DRIFT, number), 5_000_000));
    });
}

fn is_spread(play: &Play) -> bool {
    let held = play.machines.world().look(|cluster| cluster.replicas_on(BrokerId(2)));
    held.iter().any(|partition| *partition.topic == *DRIFT)
}

/// A cluster whose new broker is just getting its data.
async fn filling() -> Play {
    let play = Play::with(NEW, scaling()).await;
    play.scale(NEW + 1).await;
    play.until("data moves", async |play| play.is_moving(ADD).await).await;
    play
}

#[tokio::test(start_paused = true)]
async fn who_was_added_is_on_record_before_anything_else() {
    grows_although(Moment::After, Method::PUT, "/kafkas/my-cluster/status").await;
}

#[tokio::test(start_paused = true)]
async fn who_was_added_is_not_forgotten_when_the_pool_knows_it() {
    grows_although(Moment::After, Method::PUT, "/kafkanodepools/brokers/status").await;
}

#[tokio::test(start_paused = true)]
async fn who_was_added_is_not_forgotten_while_its_pod_comes_up() {
    grows_although(Moment::After, Method::PATCH, "/strimzipodsets/my-cluster-brokers").await;
}

#[tokio::test(start_paused = true)]
async fn a_rebalance_that_was_made_is_taken_over() {
    grows_although(Moment::After, Method::POST, "/kafkarebalances").await;
}

/// Its finalizer is off, and it is not deleted.
#[tokio::test(start_paused = true)]
async fn a_rebalance_that_was_let_go_is_deleted_later() {
    let delete = "/kafkarebalances/my-cluster-auto-rebalancing-add-brokers";
    grows_although(Moment::Before, Method::DELETE, delete).await;
}

#[tokio::test(start_paused = true)]
async fn a_rebalance_that_was_deleted_is_not_made_again() {
    let delete = "/kafkarebalances/my-cluster-auto-rebalancing-add-brokers";
    grows_although(Moment::After, Method::DELETE, delete).await;
}

/// What was found is on record as what is mended now, and nothing was made yet.
#[tokio::test(start_paused = true)]
async fn what_was_found_is_mended_though_nothing_was_made_for_it_yet() {
    evens_out_although(Moment::Before, Method::POST, "/kafkarebalances").await;
}

/// The rebalance is made first: whoever forgot first what was found would lose it here.
#[tokio::test(start_paused = true)]
async fn what_was_found_is_mended_once_though_it_was_not_forgotten_yet() {
    evens_out_although(Moment::After, Method::POST, "/kafkarebalances").await;
}

#[tokio::test(start_paused = true)]
async fn what_was_found_and_forgotten_is_mended() {
    evens_out_although(Moment::After, Method::PUT, "/configmaps/my-cluster-goal-violation-map").await;
}

/// The new broker is to go again, so what fills it was told to stop; what empties it is not there yet.
#[tokio::test(start_paused = true)]
async fn what_was_told_to_stop_is_followed_by_what_was_to_come_next() {
    let mut play = filling().await;
    let stop = "/kafkarebalances/my-cluster-auto-rebalancing-add-brokers";
    seen_by_a_mortal(&mut play, Last(Moment::After, Method::PATCH, stop), async |play| play.scale(NEW).await).await;
    check_end(&play, NEW).await;
}

#[tokio::test(start_paused = true)]
async fn what_came_to_its_end_while_nobody_looked_is_found_at_its_end() {
    let mut play = filling().await;
    leave(&mut play).await;
    play.until("the engine is done", async |play| {
        let moves = play.machines.world().look(|cluster| cluster.list_reassignments(None).len());
        moves == 0 && play.holders().contains(&NEW)
    })
    .await;
    sleep(Duration::from_secs(600)).await;
    let made = play.rebalance(ADD).await.expect("nobody has deleted it").metadata.uid;
    return_to(&mut play);
    play.until("it is over, or made anew", async |play| {
        play.rebalance(ADD).await.is_none_or(|now| now.metadata.uid != made)
    })
    .await;
    assert!(play.rebalance(ADD).await.is_none(), "it was carried out, and is not carried out again");
    check_end(&play, NEW + 1).await;
}

/// Somebody took the finalizers off by hand.
#[tokio::test(start_paused = true)]
async fn what_was_removed_by_force_while_nobody_looked_is_over() {
    let mut play = filling().await;
    leave(&mut play).await;
    let rebalances = play.stage.api::<KafkaRebalance>();
    patch(&rebalances, ADD, json!({"metadata": {"finalizers": null}})).await;
    rebalances.delete(ADD, &DeleteParams::default()).await.unwrap();
    return_to(&mut play);
    play.until_settled().await;
    a_while().await;
    assert!(play.is_settled().await, "a scale-up is not repeated unasked");
    assert_eq!(play.brokers().await.len(), NEW as usize + 1);
}
