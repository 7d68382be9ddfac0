//! Hours of a cluster's life in moments: what the loop finds, tells, mends, and leaves alone.

use evenkeel_balancer::cluster::{
    BrokerId, BrokerSpec, BrokerState, Cluster, ClusterBuilder, Load, ReplicaSpec, Resource,
};
use evenkeel_kafka::login::Secret;
use evenkeel_rest::Request;
use serde_json::Value;
use tokio::sync::mpsc;

use super::*;
use crate::{
    config::{properties::Properties, settings::Settings as AllSettings},
    detect::failures::Sight,
    journal::History,
    notify::{
        Courier, Outlets,
        messages::Channel,
        post::{Patience, Post},
        tests::{Got, receiver},
    },
};

const MINUTE: i64 = 60_000;
const BEGAN: i64 = 1_000_000_000_000;

/// What the model shows.
#[derive(Clone, Copy)]
enum Picture {
    /// All is well.
    Well,
    /// Two replicas share a rack, and need not.
    Mendable,
    /// Two replicas share the only rack.
    Hopeless,
    /// Too little is known.
    Unknown,
}

fn model(picture: Picture) -> Result<Cluster, Unready> {
    let racks = match picture {
        Picture::Well => "ab",
        Picture::Mendable => "aab",
        Picture::Hopeless => "aa",
        Picture::Unknown => return Err(Unready::Incomplete("no window".to_owned())),
    };
    let mut builder = ClusterBuilder::new();
    for (id, rack) in (0..).zip(racks.chars()) {
        let (rack, host, capacity) = (rack.to_string(), format!("h{id}"), [1_000.0; Resource::COUNT]);
        let state = BrokerState::Alive;
        builder.broker(BrokerSpec { id: BrokerId(id), rack, host, state, capacity, disks: Vec::new() }).unwrap();
    }
    let replica = |id| ReplicaSpec { broker: BrokerId(id), disk: None, load: Load::default(), offline: false };
    builder.partition("t", 0, 0, &[replica(0), replica(1)]).unwrap();
    Ok(builder.build().unwrap())
}

fn sight(missing: &[i32]) -> Sight {
    let up = (0..5).filter(|id| !missing.contains(id)).collect();
    Sight { up, missing: missing.iter().copied().collect(), failed_dirs: BTreeMap::new() }
}

/// Everything around the loop.
struct Stage {
    generations: watch::Sender<u64>,
    executing: Arc<watch::Sender<bool>>,
    sight: Arc<Mutex<Option<Sight>>>,
    picture: Arc<Mutex<Picture>>,
    /// What a repair is answered with.
    outcome: Arc<Mutex<Outcome>>,
    /// Minutes and requests.
    repairs: Arc<Mutex<Vec<(i64, String)>>>,
    judged: Arc<Mutex<u32>>,
    got: Got,
    detectors: Detectors,
}

impl Stage {
    fn new(properties: &str, missed: &[(i32, Millis)]) -> Stage {
        let text = format!("bootstrap.servers=x:1\n{properties}");
        let settings = AllSettings::read(&Properties::read(&text, |_| None).unwrap()).unwrap().settings;
        let clock = WallClock::starting_at(BEGAN);
        let (generations, seen_generations) = watch::channel(1);
        let (executing, seen_executing) = watch::channel(false);
        let executing = Arc::new(executing);
        let (sent, mut incoming) = mpsc::channel::<Repair>(1);
        let shared_sight = Arc::new(Mutex::new(Some(sight(&[]))));
        let picture = Arc::new(Mutex::new(Picture::Well));
        let outcome = Arc::new(Mutex::new(Outcome::Started("the plan".to_owned())));
        let repairs = Arc::new(Mutex::new(Vec::new()));
        let judged = Arc::new(Mutex::new(0));
        let (got, service) = receiver(&[]);
        let channels = match settings.detectors.healing.manner {
            Manner::Indifferent => Vec::new(),
            _ => vec![Channel::Webhook { url: Secret::new("http://x/") }],
        };
        let outlets = Outlets { channels, map: None, host: String::new() };
        let mut last = 0;
        let inputs = Inputs {
            generations: seen_generations,
            executing: seen_executing,
            sight: Box::new({
                let shared = Arc::clone(&shared_sight);
                move || shared.lock().unwrap().clone()
            }),
            model: Arc::new({
                let (picture, judged) = (Arc::clone(&picture), Arc::clone(&judged));
                move || {
                    *judged.lock().unwrap() += 1;
                    model(*picture.lock().unwrap())
                }
            }),
            history: Box::new(History::default),
            ids: Box::new(move || {
                last += 1;
                Uuid::from_u128(last)
            }),
            missed: missed.iter().copied().collect(),
            repairs: sent,
            courier: Courier::start(outlets, Post::new(service, Patience::default())),
            clock,
        };
        tokio::spawn({
            let (repairs, outcome, executing) = (Arc::clone(&repairs), Arc::clone(&outcome), Arc::clone(&executing));
            async move {
                while let Some(repair) = incoming.recv().await {
                    let brokers = match &repair.request {
                        Request::RemoveBroker(request) => format!(" {:?}", request.brokerid),
                        _ => String::new(),
                    };
                    let request = format!("{}{brokers}", repair.request.endpoint().name());
                    repairs.lock().unwrap().push(((clock.now() - BEGAN) / MINUTE, request));
                    let outcome = outcome.lock().unwrap().clone();
                    executing.send_replace(matches!(outcome, Outcome::Started(_)));
                    repair.reply.send(outcome).unwrap();
                }
            }
        });
        let detectors = Detectors::start(settings.detectors, settings.goals, inputs);
        let sight = shared_sight;
        Stage { generations, executing, sight, picture, outcome, repairs, judged, got, detectors }
    }

    /// Something else is seen and known.
    fn becomes(&self, missing: &[i32], picture: Picture) {
        *self.sight.lock().unwrap() = Some(sight(missing));
        *self.picture.lock().unwrap() = picture;
        self.generations.send_modify(|generation| *generation += 1);
    }

    fn repairs(&self) -> Vec<(i64, String)> {
        self.repairs.lock().unwrap().clone()
    }

    /// The texts of alerts.
    fn alerts(&self) -> Vec<String> {
        let text = |body: &str| serde_json::from_str::<Value>(body).unwrap()["text"].as_str().unwrap().to_owned();
        self.got.lock().unwrap().iter().map(|(_, _, body)| text(body)).collect()
    }

    /// The statuses of broker failures and goal violations, the oldest first.
    fn statuses(&self) -> (Vec<Status>, Vec<Status>) {
        let state = self.detectors.state();
        (
            state.recent_broker_failures.iter().map(|it| it.status).collect(),
            state.recent_goal_violations.iter().map(|it| it.status).collect(),
        )
    }
}

async fn minutes(number: u64) {
    tokio::time::sleep(Duration::from_secs(60 * number)).await;
}

/// Brokers are looked for every seven minutes, so that neither of their times is a multiple of it.
const HEALING: &str = "anomaly.notifier.class=SelfHealingNotifier\nself.healing.enabled=true\n\
                       broker.failure.detection.interval.ms=420000";
const TELLING: &str = "anomaly.notifier.class=SelfHealingNotifier";

#[tokio::test(start_paused = true)]
async fn a_missing_broker_is_told_after_its_time_and_emptied_after_its_own() {
    let stage = Stage::new(HEALING, &[]);
    minutes(1).await;
    assert_eq!(stage.statuses(), (vec![], vec![]));
    stage.becomes(&[3], Picture::Well);
    minutes(1).await;
    assert_eq!(stage.statuses().0, [Status::CheckWithDelay]);
    assert_eq!(*stage.detectors.missing_brokers().borrow(), [(3, BEGAN + MINUTE)].into());
    minutes(13).await;
    assert_eq!(stage.alerts(), [""; 0]);
    minutes(2).await;
    let told = stage.alerts();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("BROKER_FAILURE detected {Fixable broker failures detected: {Broker 3 failed at"));
    assert!(told[0].ends_with("Self healing start time 2001-09-09T02:17:40Z."), "{told:?}");
    minutes(13).await;
    assert_eq!(stage.repairs(), []);
    minutes(2).await;
    assert_eq!(stage.repairs(), [(31, "remove_broker {3}".to_owned())]);
    assert!(stage.alerts()[1].ends_with("Self-healing has been triggered."));
    let state = stage.detectors.state();
    let last = state.recent_broker_failures.last().unwrap();
    assert_eq!((last.status, last.optimization_result.as_deref()), (Status::FixStarted, Some("the plan")));
    assert_eq!(state.ongoing_self_healing_anomaly, Some(last.anomaly_id.clone()));
    assert_eq!((state.metrics.num_self_healing_started, state.metrics.ongoing_anomaly_duration_ms), (1, 0));

    // While it goes on the broker stays missing, and nothing more is done about it.
    minutes(60).await;
    assert_eq!((stage.repairs().len(), stage.alerts().len()), (1, 2));
    assert_eq!(stage.statuses().0.last(), Some(&Status::CheckWithDelay));
    stage.becomes(&[], Picture::Well);
    stage.executing.send_replace(false);
    minutes(60).await;
    let state = stage.detectors.state();
    assert_eq!((stage.repairs().len(), state.ongoing_self_healing_anomaly), (1, None));
    assert_eq!(*stage.detectors.missing_brokers().borrow(), BTreeMap::new());
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_comes_back_in_time_is_left_alone() {
    let stage = Stage::new(HEALING, &[]);
    stage.becomes(&[3], Picture::Well);
    minutes(29).await;
    assert_eq!(stage.alerts().len(), 1);
    stage.becomes(&[], Picture::Well);
    minutes(120).await;
    assert_eq!(stage.repairs(), []);
    assert_eq!(stage.detectors.state().metrics.ongoing_anomaly_duration_ms, 0);
    // When it goes once more its time begins anew.
    stage.becomes(&[3], Picture::Well);
    minutes(29).await;
    assert_eq!((stage.repairs().len(), stage.alerts().len()), (0, 2));
}

#[tokio::test(start_paused = true)]
async fn a_restart_does_not_begin_a_broker_s_time_anew() {
    let stage = Stage::new(HEALING, &[(3, BEGAN - 20 * MINUTE)]);
    *stage.sight.lock().unwrap() = Some(sight(&[3]));
    minutes(11).await;
    assert_eq!(stage.repairs(), [(10, "remove_broker {3}".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn too_many_missing_brokers_are_told_and_left_to_people() {
    let stage = Stage::new(HEALING, &[]);
    stage.becomes(&[1, 2, 3], Picture::Well);
    minutes(120).await;
    assert_eq!(stage.repairs(), []);
    assert_eq!(stage.statuses().0.last(), Some(&Status::Ignored));
    assert!(stage.alerts()[0].contains("{Unfixable broker failures detected"));
}

#[tokio::test(start_paused = true)]
async fn goals_are_judged_when_something_changed_and_never_while_moves_are_made() {
    let stage = Stage::new(TELLING, &[]);
    *stage.picture.lock().unwrap() = Picture::Mendable;
    minutes(60).await;
    assert_eq!((*stage.judged.lock().unwrap(), stage.statuses().1), (1, vec![Status::Ignored]));
    assert!((stage.detectors.state().balancedness_score.0 - 71.3).abs() < 0.1);
    stage.becomes(&[], Picture::Mendable);
    minutes(60).await;
    assert_eq!(stage.statuses().1.len(), 2);
    stage.executing.send_replace(true);
    minutes(1).await;
    stage.becomes(&[], Picture::Well);
    minutes(60).await;
    assert_eq!(*stage.judged.lock().unwrap(), 2);
    stage.executing.send_replace(false);
    minutes(1).await;
    assert_eq!(*stage.judged.lock().unwrap(), 3);
    assert_eq!((stage.statuses().1.len(), stage.detectors.state().balancedness_score.0), (2, 100.0));
    assert_eq!((stage.alerts().len(), stage.repairs().len()), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_judged_is_judged_as_soon_as_it_can() {
    let stage = Stage::new(TELLING, &[]);
    *stage.picture.lock().unwrap() = Picture::Unknown;
    minutes(30).await;
    assert_eq!((*stage.judged.lock().unwrap(), stage.detectors.state().balancedness_score.0), (1, 100.0));
    stage.becomes(&[], Picture::Hopeless);
    minutes(1).await;
    let state = stage.detectors.state();
    assert_eq!(state.recent_goal_violations[0].what.unfixable_violated_goals, ["RackAwareGoal"]);
    assert!(stage.detectors.has_unfixable_goals());
    assert_eq!(stage.detectors.provision().status.name(), "UNDER_PROVISIONED");
}

#[tokio::test(start_paused = true)]
async fn violated_goals_are_mended_if_the_switch_is_on_and_all_of_them_can_be() {
    let stage = Stage::new(TELLING, &[]);
    stage.becomes(&[], Picture::Mendable);
    minutes(5).await;
    assert_eq!(stage.repairs(), []);
    assert_eq!(stage.detectors.switch(AnomalyType::GoalViolation, true), (false, true));
    assert_eq!(stage.detectors.switch(AnomalyType::GoalViolation, true), (true, true));
    stage.becomes(&[], Picture::Hopeless);
    minutes(5).await;
    assert_eq!(stage.repairs(), []);
    stage.becomes(&[], Picture::Mendable);
    minutes(5).await;
    assert_eq!(stage.repairs().iter().map(|(_, what)| what.as_str()).collect::<Vec<_>>(), ["rebalance"]);
    assert_eq!(stage.statuses().1, [Status::Ignored, Status::Ignored, Status::FixStarted]);
}

#[tokio::test(start_paused = true)]
async fn a_fix_that_cannot_begin_is_said_and_tried_again_when_it_is_found_again() {
    for (outcome, status, failed) in [
        (Outcome::Refused("busy".to_owned()), Status::FixFailedToStart, 1),
        (Outcome::NothingToDo, Status::FixFailedToStart, 1),
        (Outcome::NotReady(Unready::Loading), Status::LoadMonitorNotReady, 0),
        (Outcome::NotReady(Unready::Incomplete(String::new())), Status::CompletenessNotReady, 0),
    ] {
        let stage = Stage::new(HEALING, &[]);
        *stage.outcome.lock().unwrap() = outcome;
        stage.becomes(&[], Picture::Mendable);
        minutes(5).await;
        assert_eq!(stage.statuses().1, [status]);
        assert_eq!(stage.detectors.state().metrics.num_self_healing_failed_to_start, failed);
        *stage.outcome.lock().unwrap() = Outcome::Started(String::new());
        stage.becomes(&[], Picture::Mendable);
        minutes(5).await;
        assert_eq!(stage.statuses().1, [status, Status::FixStarted]);
    }
}

#[tokio::test(start_paused = true)]
async fn who_never_mends_cannot_be_made_to() {
    let strimzi = "anomaly.notifier.class=StrimziCruiseControlNotifier\nevenkeel.cluster.name=my\n\
                   self.healing.enabled=true";
    for (class, alerts) in [("self.healing.enabled=true", 0), (strimzi, 1)] {
        let stage = Stage::new(class, &[]);
        assert_eq!(stage.detectors.switch(AnomalyType::GoalViolation, true), (false, false));
        stage.becomes(&[3], Picture::Mendable);
        minutes(120).await;
        assert_eq!((stage.repairs().len(), stage.alerts().len()), (0, alerts), "{class}");
        assert!(stage.detectors.state().self_healing_enabled.is_empty());
        assert!(stage.statuses().0.iter().chain(&stage.statuses().1).all(|status| *status == Status::Ignored));
    }
}

#[tokio::test(start_paused = true)]
async fn failed_disks_are_mended_once_and_brokers_come_first() {
    let stage = Stage::new(HEALING, &[]);
    let failed = |missing: &[i32]| Sight { failed_dirs: [(1, ["/a".to_owned()].into())].into(), ..sight(missing) };
    *stage.sight.lock().unwrap() = Some(failed(&[3]));
    stage.generations.send_modify(|generation| *generation += 1);
    minutes(10).await;
    assert_eq!(stage.detectors.state().recent_disk_failures, []);
    *stage.sight.lock().unwrap() = Some(failed(&[]));
    stage.generations.send_modify(|generation| *generation += 1);
    minutes(10).await;
    assert_eq!(stage.repairs().iter().map(|(_, what)| what.as_str()).collect::<Vec<_>>(), ["fix_offline_replicas"]);
    let disks = stage.detectors.state().recent_disk_failures;
    assert_eq!(disks[0].status, Status::FixStarted);
    assert_eq!(disks.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn that_the_loop_has_failed_can_be_told() {
    let stage = Stage::new("", &[]);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(stage.detectors.is_at_work());
    let sight = Arc::clone(&stage.sight);
    // Whoever looks next finds the lock of somebody who panicked.
    let fault = std::thread::spawn(move || {
        let _held = sight.lock();
        panic!("a fault of ours")
    });
    fault.join().unwrap_err();
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    assert!(!stage.detectors.is_at_work());
}
