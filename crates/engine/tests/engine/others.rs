//! Executions beside other tools that move partitions: what is theirs is taken back for a plan that is carried out, and for
//! nothing else. On simulated brokers, under paused time.

use std::time::Duration;

use evenkeel_engine::{executor::Move, journal::topic::TOPIC};
use evenkeel_rest::{Answer, body::state::Phase, parameter::TaskStatus};
use evenkeel_sim::cluster::{BrokerSpec, NewTopic};

use crate::lives::{PATIENCE, executing, removing, spread, task};
use crate::stage::{MB, Stage, moves, mv};

#[tokio::test(start_paused = true)]
async fn moves_of_other_tools_are_taken_back_before_an_execution() {
    let stage = Stage::new();
    stage.crawl();
    let life = stage.engine();
    life.proposed(&spread()).await;
    stage.another_tool_moves();
    let moving = || stage.world.look(|cluster| cluster.registration("orders", 11).unwrap().is_moving());
    life.proposed(&spread()).await;
    assert!(moving(), "a dry run stops nobody");
    // Not even one that cannot be.
    let mut wrong = executing(None);
    wrong.goal_options.goals = vec!["NoSuchGoal".to_owned()];
    let refused = life.client.ask_and_wait(&wrong, PATIENCE, Duration::from_secs(1)).await;
    assert!(matches!(refused.answer, Answer::Refused { .. }), "{:?}", refused.answer);
    assert!(moving());
    let unknown = executing(Some("no-such-plan".to_owned()));
    let refused = life.client.ask_and_wait(&unknown, PATIENCE, Duration::from_secs(1)).await;
    assert!(matches!(refused.answer, Answer::ProposalOutdated(_)), "{:?}", refused.answer);
    let refused = life.client.ask_and_wait(&removing(77), PATIENCE, Duration::from_secs(1)).await;
    assert!(matches!(refused.answer, Answer::MissingBroker(_)), "{:?}", refused.answer);
    assert!(moving(), "what is refused takes back nothing");
    let reply = life.client.ask_and_wait(&executing(None), PATIENCE, Duration::from_secs(1)).await;
    assert!(matches!(reply.answer, Answer::Ready(_)), "{:?}", reply.answer);
    let record = stage.registrations().remove(11);
    assert_ne!(record.adding, [2, 3].map(evenkeel_sim::BrokerId), "it still goes where the other tool wants it");
}

#[tokio::test(start_paused = true)]
async fn while_other_tools_move_that_must_not_be_stopped_nothing_is_begun() {
    let stage = Stage::new();
    stage.crawl();
    let life = stage.engine_with("auto.stop.external.agent=false\n");
    life.proposed(&spread()).await;
    stage.another_tool_moves();
    let refused = life.client.ask_and_wait(&executing(None), PATIENCE, Duration::from_secs(1)).await;
    assert!(matches!(refused.answer, Answer::Busy(_)), "{:?}", refused.answer);
    assert_eq!(stage.world.look(|cluster| cluster.list_reassignments(None).len()), 1);
}

/// Brokers that share a rack, so that nothing can be spread over racks.
fn one_rack() -> Stage {
    Stage::on((0..4).map(|id| BrokerSpec::new(id).in_rack("a")), moves(), 2_000)
}

/// So that nothing of the engine's own lies where a test does not want it.
const NO_SAMPLES: &str = "sample.store.class=NoopSampleStore\n";

/// These partitions, and the journal on all brokers but the last.
fn lean(moves: impl Iterator<Item = Move>) -> Stage {
    let stage = Stage::of(moves.collect(), 2_000);
    let journal = NewTopic::manual(TOPIC, &[&[0, 1, 2]]).config("cleanup.policy", "compact");
    stage.world.with(|cluster| cluster.create_topic(&journal, false)).unwrap();
    stage.crawl();
    stage
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_cannot_be_stops_nobody() {
    let stage = one_rack();
    stage.crawl();
    let life = stage.engine();
    life.proposed(&spread()).await;
    stage.another_tool_moves();
    let mut impossible = executing(None);
    impossible.goal_options.goals = vec!["RackAwareGoal".to_owned()];
    let moving = || stage.world.look(|cluster| cluster.registration("orders", 11).unwrap().is_moving());
    let refused = life.client.ask_and_wait(&impossible, PATIENCE, Duration::from_secs(1)).await;
    let Answer::Refused { message, .. } = refused.answer else { panic!("{:?}", refused.answer) };
    assert!(message.contains("OptimizationFailureException: [RackAwareGoal]"), "{message}");
    assert!(moving(), "nothing is taken back for what is refused");
    // Nor what this engine carries out, for one that would take its place.
    let begun = life.begun().await;
    impossible.execution.run.stop_ongoing_execution = true;
    let refused = life.client.ask_and_wait(&impossible, PATIENCE, Duration::from_secs(1)).await;
    assert!(matches!(refused.answer, Answer::Refused { .. }), "{:?}", refused.answer);
    assert!(matches!(life.phase().await, Some(Phase::InterBroker(_))));
    assert_eq!(life.status_of(begun).await, Some(TaskStatus::InExecution));
}

#[tokio::test(start_paused = true)]
async fn where_there_is_nothing_to_do_nobody_is_stopped() {
    let even = |number: i32| {
        let pair = [number % 4, (number + 1) % 4];
        mv(number, pair, pair, 20 * MB)
    };
    let stage = lean((0..12).map(even));
    let life = stage.engine_with(NO_SAMPLES);
    life.proposed(&spread()).await;
    stage.another_tool_moves();
    let reply = life.client.ask_and_wait(&executing(None), PATIENCE, Duration::from_secs(1)).await;
    let Answer::Ready(plan) = &reply.answer else { panic!("{:?}", reply.answer) };
    assert_eq!((plan.summary.num_replica_movements, plan.summary.num_leader_movements), (0, 0));
    assert_eq!(life.status_of(task(&reply)).await, Some(TaskStatus::Completed));
    assert!(stage.registrations()[11].is_moving());
}

#[tokio::test(start_paused = true)]
async fn who_may_not_stop_others_stops_nothing_of_its_own_either() {
    let stage = Stage::new();
    stage.crawl();
    let life = stage.engine_with("auto.stop.external.agent=false\n");
    let begun = life.begun().await;
    stage.world.until(|cluster| !cluster.list_reassignments(None).is_empty()).await;
    stage.another_tool_moves();
    let mut next = executing(None);
    next.execution.run.stop_ongoing_execution = true;
    let refused = life.client.ask_and_wait(&next, PATIENCE, Duration::from_secs(1)).await;
    assert!(matches!(refused.answer, Answer::Busy(_)), "{:?}", refused.answer);
    assert_eq!(life.status_of(begun).await, Some(TaskStatus::InExecution));
}

#[tokio::test(start_paused = true)]
async fn what_comes_to_a_broker_that_is_to_be_emptied_is_taken_back_though_it_is_empty() {
    let lies = |number: i32| {
        let pair = [number % 2, 1 - number % 2];
        mv(number, pair, pair, 20 * MB)
    };
    let stage = lean((0..12).map(lies));
    let life = stage.engine_with(NO_SAMPLES);
    life.proposed(&spread()).await;
    stage.another_tool_moves();
    let mut emptying = removing(3);
    emptying.execution.run.reason = Some("a test".to_owned());
    let reply = life.client.ask_and_wait(&emptying, PATIENCE, Duration::from_secs(1)).await;
    assert!(matches!(reply.answer, Answer::Ready(_)), "{:?}", reply.answer);
    life.until("it is over", |phase| *phase == Phase::Idle).await;
    assert!(!stage.holders().contains(&3) && !stage.registrations()[11].is_moving());
}
