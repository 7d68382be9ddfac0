//! Wishes that change while a rebalance is under way: what runs follows them.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use evenkeel_api::kafka::AutoRebalanceState;
use evenkeel_api::rebalance::RebalanceState;
use evenkeel_api::{Kafka, KafkaNodePool, StrimziPodSet};
use evenkeel_sim::cluster::{NewTopic, Resource};
use evenkeel_sim::{BrokerId, Cluster};
use http::{Method, Request};
use kube::{Api, Client};
use serde_json::json;
use tokio::time::{Instant, sleep};
use tower::{ServiceExt, service_fn};

use crate::play::{ADD, Play, REMOVE, operator, scaling};
use crate::scene::pool;
use crate::stage::{CLUSTER, NAMESPACE, a_while, create, patch};

async fn is_about(play: &Play, name: &str, brokers: &[i32]) -> bool {
    play.rebalance(name).await.is_some_and(|it| it.spec.brokers.as_deref() == Some(brokers))
}

/// Whether a broker takes nothing new.
fn is_cordoned(play: &Play, id: i32) -> bool {
    let told = |cluster: &mut Cluster| {
        let told = cluster.describe_configs(BrokerId(id), &Resource::Broker(BrokerId(id))).unwrap();
        let mut told = told.into_iter().filter(|it| it.name == "cordoned.log.dirs" && it.source.number() == 2);
        told.any(|it| it.value.is_some_and(|dirs| !dirs.is_empty()))
    };
    play.machines.world().look(told)
}

async fn annotate(play: &Play, notes: serde_json::Value) {
    patch(&play.stage.api::<Kafka>(), CLUSTER, json!({"metadata": {"annotations": notes}})).await;
}

#[tokio::test(start_paused = true)]
async fn brokers_that_come_meanwhile_join_what_runs() {
    let play = Play::with(3, scaling()).await;
    play.scale(4).await;
    play.until("data moves", async |play| play.is_moving(ADD).await).await;
    let first = play.rebalance(ADD).await.unwrap().metadata.uid;
    play.scale(5).await;
    play.until("it is about both", async |play| is_about(play, ADD, &[3, 4]).await).await;
    assert_eq!(play.rebalance(ADD).await.unwrap().metadata.uid, first, "it is the same one");
    play.until_settled().await;
    assert_eq!(play.holders(), BTreeSet::from([0, 1, 2, 3, 4]));
}

#[tokio::test(start_paused = true)]
async fn a_drain_is_about_whoever_is_to_go_now() {
    let play = Play::placed(5, scaling(), &[0, 1, 2, 3, 4]).await;
    play.scale(4).await;
    play.until("data moves", async |play| play.is_moving(REMOVE).await).await;
    assert!(is_about(&play, REMOVE, &[4]).await);
    play.scale(3).await;
    play.until("it is about both", async |play| is_about(play, REMOVE, &[3, 4]).await).await;
    play.until("they go", async |play| play.brokers().await.len() == 3).await;
    play.until_settled().await;
    assert_eq!(play.holders(), BTreeSet::from([0, 1, 2]));
}

#[tokio::test(start_paused = true)]
async fn whoever_came_and_is_to_go_again_gets_nothing() {
    let play = Play::with(3, scaling()).await;
    play.scale(4).await;
    play.until("data moves", async |play| play.is_moving(ADD).await).await;
    play.scale(3).await;
    play.until("it goes", async |play| play.brokers().await.len() == 3).await;
    play.until_settled().await;
    assert_eq!(play.holders(), BTreeSet::from([0, 1, 2]));
    let told = play.told().await;
    assert!(!told.last().unwrap().contains("ScaleUp to brokers [3]"), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn whoever_came_waits_while_another_is_emptied_and_then_gets_its_data() {
    let play = Play::with(3, scaling()).await;
    play.scale(4).await;
    play.until("data moves", async |play| play.is_moving(ADD).await).await;
    // Broker 1 is to go, not the one that came.
    let wish = json!({"metadata": {"annotations": {"strimzi.io/remove-node-ids": "[1]"}}, "spec": {"replicas": 3}});
    patch(&play.stage.api::<KafkaNodePool>(), "brokers", wish).await;
    play.until("the drain runs", async |play| play.is_moving(REMOVE).await).await;
    assert!(play.rebalance(ADD).await.is_none(), "never two at once");
    let auto = play.status().await.auto_rebalance.unwrap();
    let queued: Vec<_> = auto.modes.iter().map(|it| (it.mode.to_string(), it.brokers.clone())).collect();
    assert_eq!(queued, [("remove-brokers".to_owned(), vec![1]), ("add-brokers".to_owned(), vec![3])]);
    play.until_settled().await;
    assert_eq!(play.holders(), BTreeSet::from([0, 2, 3]));
    let told = play.told().await.join("; ");
    assert!(told.contains("to RebalanceOnScaleUp to brokers [3]"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn a_drain_that_is_called_off_stops_and_its_brokers_take_data_again() {
    let play = Play::placed(4, scaling(), &[0, 1, 2, 3]).await;
    play.scale(3).await;
    play.until("data moves", async |play| play.is_moving(REMOVE).await).await;
    assert!(is_cordoned(&play, 3));
    play.scale(4).await;
    play.until_settled().await;
    play.until("it may take data again", async |play| !is_cordoned(play, 3)).await;
    assert_eq!(play.brokers().await.len(), 4);
    assert!(play.holders().contains(&3), "it was stopped before all was moved: {:?}", play.holders());
    assert_eq!(play.warning("AutoRebalanceFailed").await, None, "nothing failed");
    sleep(Duration::from_secs(120)).await;
    assert!(play.is_settled().await, "and nothing begins again");
}

#[tokio::test(start_paused = true)]
async fn topics_that_are_made_during_a_drain_do_not_land_on_who_goes() {
    let play = Play::placed(4, scaling(), &[0, 1, 2, 3]).await;
    play.scale(3).await;
    play.until("data moves", async |play| play.is_moving(REMOVE).await).await;
    for number in 0..5 {
        let topic = NewTopic::new(&format!("late-{number}"), 4, 2);
        play.machines.world().with(|cluster| cluster.create_topic(&topic, false).unwrap());
        sleep(Duration::from_secs(2)).await;
    }
    let on_3 = |cluster: &mut Cluster| {
        let parts = (0..5).flat_map(|number| (0..4).map(move |part| (format!("late-{number}"), part)));
        let held = |(topic, part): &(String, i32)| {
            cluster.registration(topic, *part).unwrap().replicas.iter().any(|id| id.0 == 3)
        };
        parts.filter(held).count()
    };
    play.until("it goes", async |play| {
        let gone = play.brokers().await.len() == 3;
        assert!(!gone || play.machines.world().look(on_3) == 0, "it went with data of new topics");
        gone
    })
    .await;
    play.until_settled().await;
}

/// Told by hand that there is nothing to check, the broker goes at once, with whatever it holds.
#[tokio::test(start_paused = true)]
async fn whoever_wants_no_check_gets_none() {
    let play = Play::placed(4, scaling(), &[0, 1, 2, 3]).await;
    annotate(&play, json!({"strimzi.io/skip-broker-scaledown-check": "true"})).await;
    a_while().await;
    play.scale(3).await;
    play.until("it goes", async |play| play.brokers().await.len() == 3).await;
    assert!(play.holders().contains(&3), "nobody has moved its data");
    assert!(play.rebalance(REMOVE).await.is_none());
    let told = crate::scene::events(&play.stage, "NodesRemoved").await;
    assert!(told.iter().any(|it| it.contains("nobody looked whether they hold data")), "{told:?}");
}

/// Controllers cannot be scaled, which is said; a pool without brokers in it has nothing to be emptied.
#[tokio::test(start_paused = true)]
async fn a_pool_of_controllers_that_is_to_shrink_holds_up_no_drain_once_it_is_asked_back() {
    let play = Play::placed(4, scaling(), &[0, 1, 2, 3]).await;
    let pools = play.stage.api::<KafkaNodePool>();
    patch(&pools, "controllers", json!({"spec": {"replicas": 0}})).await;
    play.scale(3).await;
    play.until("it is refused", async |play| play.warning("InvalidResourceException").await.is_some()).await;
    a_while().await;
    assert_eq!(play.brokers().await.len(), 4, "nothing is done by halves");
    assert!(play.rebalance(REMOVE).await.is_none());
    patch(&pools, "controllers", json!({"spec": {"replicas": 1}})).await;
    play.until("the drained one goes", async |play| play.brokers().await.len() == 3).await;
    play.until_settled().await;
}

/// What a user asks for can be had no sooner than this.
#[tokio::test(start_paused = true)]
async fn a_drained_broker_goes_within_three_seconds_and_the_machine_moves_on_within_one() {
    let play = Play::placed(4, scaling(), &[0, 1, 2, 3]).await;
    play.scale(3).await;
    play.until("data moves", async |play| play.is_moving(REMOVE).await).await;
    let holds = || play.machines.world().look(|cluster| !cluster.replicas_on(BrokerId(3)).is_empty());
    while holds() {
        sleep(Duration::from_millis(50)).await;
    }
    let emptied = Instant::now();
    while play.is_moving(REMOVE).await {
        sleep(Duration::from_millis(50)).await;
    }
    let ended = Instant::now();
    while play.state().await != Some(AutoRebalanceState::Idle) {
        sleep(Duration::from_millis(50)).await;
    }
    assert!(ended.elapsed() < Duration::from_secs(1), "Idle after {:?}", ended.elapsed());
    while play.brokers().await.len() > 3 {
        sleep(Duration::from_millis(50)).await;
    }
    assert!(emptied.elapsed() < Duration::from_secs(3), "gone after {:?}", emptied.elapsed());
}

/// Somebody else writes a pod set between the look and the write that takes a pod from it: then it is looked at again first.
#[tokio::test(start_paused = true)]
async fn a_broker_is_not_taken_away_by_an_old_look() {
    let mut play = Play::with(4, scaling()).await;
    play.operator.abort();
    let _ = (&mut play.operator).await;
    let (server, others, answers) = (play.stage.server(), play.stage.client.clone(), Arc::new(Mutex::new(Vec::new())));
    let told = Arc::clone(&answers);
    let service = service_fn(move |request: Request<kube::client::Body>| {
        let (server, others, told) = (server.clone(), others.clone(), Arc::clone(&told));
        async move {
            let shrinks = request.method() == Method::PATCH
                && request.uri().path().ends_with("/my-cluster-brokers")
                && request.uri().path().contains("/strimzipodsets/");
            if shrinks && told.lock().unwrap().is_empty() {
                let sets = Api::<StrimziPodSet>::namespaced(others, NAMESPACE);
                patch(&sets, "my-cluster-brokers", json!({"metadata": {"annotations": {"touched": "true"}}})).await;
            }
            let answer = server.oneshot(request).await;
            if shrinks {
                told.lock().unwrap().extend(answer.iter().map(|answer| answer.status().as_u16()));
            }
            answer
        }
    });
    let mut context = play.stage.context.clone();
    context.client = Client::new(service, "default");
    let _operator = tokio::spawn(operator(context, play.machines.clone(), play.room.clone()));
    a_while().await;
    assert!(answers.lock().unwrap().is_empty(), "nothing is written at rest");
    play.scale(3).await;
    play.until("it goes", async |play| play.brokers().await.len() == 3).await;
    assert_eq!(answers.lock().unwrap()[..2], [409, 200]);
    play.until_settled().await;
}

#[tokio::test(start_paused = true)]
async fn the_brake_stops_what_runs_and_its_end_lets_it_begin_again() {
    let play = Play::placed(4, scaling(), &[0, 1, 2, 3]).await;
    play.scale(3).await;
    play.until("data moves", async |play| play.is_moving(REMOVE).await).await;
    annotate(&play, json!({"evenkeel.io/auto-rebalance": "off"})).await;
    play.until("it has stopped", async |play| play.rebalance(REMOVE).await.is_none()).await;
    sleep(Duration::from_secs(120)).await;
    assert!(play.warning("AutoRebalanceHeld").await.is_some());
    assert_eq!(play.brokers().await.len(), 4, "it still holds data");
    // Whoever follows knows of it.
    play.operator.abort();
    let context = play.stage.context.clone();
    let _next = tokio::spawn(operator(context, play.machines.clone(), play.room.clone()));
    sleep(Duration::from_secs(30)).await;
    assert!(play.rebalance(REMOVE).await.is_none());
    annotate(&play, json!({"evenkeel.io/auto-rebalance": null})).await;
    play.until("it goes", async |play| play.brokers().await.len() == 3).await;
    play.until_settled().await;
    assert_eq!(play.holders(), BTreeSet::from([0, 1, 2]));
}

#[tokio::test(start_paused = true)]
async fn the_brake_works_while_the_spec_is_refused() {
    let play = Play::placed(4, scaling(), &[0, 1, 2, 3]).await;
    play.scale(3).await;
    play.until("data moves", async |play| play.is_moving(REMOVE).await).await;
    let refused = json!({"spec": {"kafka": {"config": {"default.replication.factor": 9}}}});
    patch(&play.stage.api::<Kafka>(), CLUSTER, refused).await;
    play.until("it is refused", async |play| play.status().await.conditions.iter().any(|it| it.type_ == "NotReady"))
        .await;
    sleep(Duration::from_secs(5)).await;
    assert!(play.is_moving(REMOVE).await, "what was begun goes on");
    annotate(&play, json!({"evenkeel.io/auto-rebalance": "off"})).await;
    play.until("it has stopped", async |play| !play.is_moving(REMOVE).await).await;
    assert_eq!(play.rebalance(REMOVE).await.expect("a record of it").state(), RebalanceState::Stopped);
    assert_eq!(play.brokers().await.len(), 4, "it still holds data");
}

/// What has more replicas than brokers that would be left goes nowhere: nothing is moved for it, and others are not held up.
#[tokio::test(start_paused = true)]
async fn a_scale_down_below_the_replicas_of_a_topic_is_said_and_nothing_is_emptied_for_it() {
    let play = Play::with(3, scaling()).await;
    play.machines
        .world()
        .with(|cluster| cluster.create_topic(&NewTopic::manual("wide", &[&[0, 1, 2]]), false).unwrap());
    a_while().await;
    play.scale(2).await;
    play.until("it is said", async |play| {
        play.warning("ScaleDownPreventionCheck").await.is_some_and(|it| it.contains("wide-0 has 3 replicas"))
    })
    .await;
    create(&play.stage.api::<KafkaNodePool>(), pool("more", 1, &["broker"], json!({}))).await;
    play.until("now there is room for it", async |play| play.rebalance(REMOVE).await.is_some()).await;
    play.until("it goes", async |play| play.brokers().await.len() == 3).await;
    play.until_settled().await;
    assert_eq!(play.holders(), BTreeSet::from([0, 1, 3]));
}
