//! Hours of a cluster's life with an engine beside it, under paused time, told in a few lines: the cluster is asked how it
//! is, not the engine.

use std::{collections::BTreeMap, fmt::Write as _, time::Duration};

use evenkeel_rest::{
    Answer,
    body::state::Phase,
    client::Asks,
    request::{self, FixOfflineReplicas},
};
use evenkeel_sim::{
    BrokerId, Options,
    cluster::{BrokerSpec, Fault, NewTopic, Reassignment},
    traffic::Load,
};
use expect_test::expect;

use crate::lives::{Life, PATIENCE, adding, executing, removing, spread};
use crate::stage::{Stage, moves};

/// It is looked at every other minute: there are many in a few hours.
const SETTINGS: &str = "default.replication.throttle=50000000\nmetric.sampling.interval.ms=120000\n\
                        partition.metrics.window.ms=240000\n";

/// A stage, an engine that is replaced now and then, and what there is to tell.
struct Story {
    stage: Stage,
    settings: String,
    life: Option<Life>,
    began: tokio::time::Instant,
    told: String,
}

impl Story {
    /// Six brokers in three racks, two disks each; all there is lies on the first three. Further settings of the engine.
    async fn begin(more: &str) -> Story {
        let brokers = (0..6).map(broker);
        let stage = Stage::with(Options { session_timeout: 9_000, ..Options::default() }, brokers, moves());
        let lists: [&[i32]; 6] = [&[0, 1, 2], &[1, 2, 0], &[2, 0, 1], &[0, 2, 1], &[1, 0, 2], &[2, 1, 0]];
        let clicks = NewTopic::manual("clicks", &lists).loaded(Load::steady(600_000.0), 600_000);
        stage.world.with(|cluster| cluster.create_topic(&clicks, false)).unwrap();
        let (settings, began) = (format!("{SETTINGS}{more}"), tokio::time::Instant::now());
        let mut story = Story { stage, settings, life: None, began, told: String::new() };
        story.restart("an engine is started").await;
        story
    }

    fn life(&self) -> &Life {
        self.life.as_ref().expect("it lives")
    }

    async fn restart(&mut self, what: &str) {
        // The old one first: there is never more than one.
        self.life = None;
        self.life = Some(self.stage.engine_with(&self.settings));
        self.life().proposed(&spread()).await;
        self.tell(what);
    }

    async fn at_hour(&self, hour: u64) {
        tokio::time::sleep_until(self.began + Duration::from_secs(3_600 * hour)).await;
    }

    fn suffer(&self, fault: &Fault) {
        self.stage.world.with(|cluster| cluster.suffer(fault));
    }

    /// Has the engine do something, to its end.
    async fn done<R: Asks>(&mut self, what: &str, asked: &R) {
        let reply = self.life().client.ask_and_wait(asked, PATIENCE, Duration::from_secs(1)).await;
        assert!(matches!(reply.answer, Answer::Ready(_)), "{what}: {}", reply.answer.label());
        self.life().until(what, |phase| *phase == Phase::Idle).await;
        self.tell(what);
    }

    /// One line of how the cluster is.
    fn tell(&mut self, what: &str) {
        let hour = self.began.elapsed().as_secs() / 3_600;
        let (held, moving, late) = self.stage.world.look(|cluster| {
            let ids = cluster.broker_ids();
            let held: BTreeMap<i32, usize> = ids.iter().map(|id| (id.0, cluster.replicas_on(*id).len())).collect();
            let late = cluster.topic_status().iter().map(|topic| topic.under_replicated).sum::<usize>();
            (held, cluster.list_reassignments(None).len(), late)
        });
        let holding: Vec<usize> = held.values().copied().filter(|count| *count > 0).collect();
        let apart = holding.iter().max().unwrap_or(&0) - holding.iter().min().unwrap_or(&0);
        let even = if apart <= 4 { "evenly" } else { "unevenly" };
        let empty: Vec<i32> = held.iter().filter(|(_, count)| **count == 0).map(|(id, _)| *id).collect();
        let _ = writeln!(
            self.told,
            "hour {hour:>2}  {what}: {even} on {} brokers, empty {empty:?}, moving {moving}, late {late}",
            holding.len()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn hours_with_a_crash_a_return_and_a_farewell() {
    let mut story = Story::begin("").await;
    story.at_hour(1).await;
    story.done("it is spread", &executing(None)).await;

    story.at_hour(2).await;
    story.suffer(&Fault::Crash(BrokerId(2)));
    tokio::time::sleep(Duration::from_secs(120)).await;
    story.tell("broker 2 has crashed");
    story.done("its replicas are made elsewhere", &mending()).await;

    story.at_hour(3).await;
    story.suffer(&Fault::Return(BrokerId(2)));
    tokio::time::sleep(Duration::from_secs(120)).await;
    story.done("broker 2 is back and filled again", &adding(&[2])).await;

    story.at_hour(4).await;
    story.done("broker 5 is emptied", &removing(5)).await;
    story.restart("another engine takes over").await;
    let Answer::Ready(state) = story.life().client.ask(&request::State::default()).await.answer else {
        panic!("no state")
    };
    assert_eq!(state.executor_state.unwrap().recently_removed_brokers, [5]);

    story.at_hour(6).await;
    story.tell("two hours later");
    expect![[r#"
        hour  0  an engine is started: unevenly on 6 brokers, empty [], moving 0, late 0
        hour  1  it is spread: evenly on 6 brokers, empty [], moving 0, late 0
        hour  2  broker 2 has crashed: evenly on 6 brokers, empty [], moving 0, late 9
        hour  2  its replicas are made elsewhere: evenly on 5 brokers, empty [2], moving 0, late 0
        hour  3  broker 2 is back and filled again: evenly on 6 brokers, empty [], moving 0, late 0
        hour  4  broker 5 is emptied: evenly on 5 brokers, empty [5], moving 0, late 0
        hour  4  another engine takes over: evenly on 5 brokers, empty [5], moving 0, late 0
        hour  6  two hours later: evenly on 5 brokers, empty [5], moving 0, late 0
    "#]]
    .assert_eq(&story.told);
}

/// Somebody sleeps, and the engine is told to mend what breaks.
#[tokio::test(start_paused = true)]
async fn a_night_in_which_nobody_is_awake() {
    let healing = "anomaly.notifier.class=com.linkedin.kafka.cruisecontrol.detector.notifier.SelfHealingNotifier\n\
                   self.healing.broker.failure.enabled=true\nself.healing.disk.failure.enabled=true\n";
    let mut story = Story::begin(healing).await;
    story.done("it is spread", &executing(None)).await;

    story.at_hour(1).await;
    story.suffer(&Fault::Crash(BrokerId(4)));
    tokio::time::sleep(Duration::from_secs(600)).await;
    story.tell("broker 4 has been gone for ten minutes");
    tokio::time::sleep(Duration::from_secs(600)).await;
    // Another engine does not begin to count anew.
    story.restart("another engine takes over").await;
    tokio::time::sleep(Duration::from_secs(1_500)).await;
    story.tell("broker 4 was given up after half an hour");

    story.at_hour(3).await;
    story.suffer(&Fault::FailedDir(BrokerId(2), 0));
    story.at_hour(4).await;
    story.tell("broker 2 has lost a disk, and what was on it is elsewhere");

    story.at_hour(5).await;
    story.suffer(&Fault::Return(BrokerId(4)));
    story.at_hour(6).await;
    story.tell("broker 4 is back, and nobody has asked for anything");
    story.done("it is spread, and broker 4 is left alone, for it was given up", &executing(None)).await;
    expect![[r#"
        hour  0  an engine is started: unevenly on 6 brokers, empty [], moving 0, late 0
        hour  0  it is spread: evenly on 6 brokers, empty [], moving 0, late 0
        hour  1  broker 4 has been gone for ten minutes: evenly on 6 brokers, empty [], moving 0, late 8
        hour  1  another engine takes over: evenly on 6 brokers, empty [], moving 0, late 8
        hour  1  broker 4 was given up after half an hour: evenly on 5 brokers, empty [4], moving 0, late 0
        hour  4  broker 2 has lost a disk, and what was on it is elsewhere: unevenly on 5 brokers, empty [4], moving 0, late 0
        hour  6  broker 4 is back, and nobody has asked for anything: unevenly on 5 brokers, empty [4], moving 0, late 0
        hour  6  it is spread, and broker 4 is left alone, for it was given up: evenly on 5 brokers, empty [4], moving 0, late 0
    "#]]
    .assert_eq(&story.told);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_grows_is_upgraded_meanwhile_and_moved_by_two() {
    let mut story = Story::begin("").await;
    story.done("it is spread", &executing(None)).await;

    story.at_hour(1).await;
    story.stage.world.with(|cluster| [6, 7].into_iter().for_each(|id| cluster.add_broker(broker(id))));
    [6, 7].into_iter().for_each(|id| story.stage.pipes.open(BrokerId(id)));
    tokio::time::sleep(Duration::from_secs(60)).await;
    story.tell("two brokers have come");
    let reply = story.life().client.ask_and_wait(&adding(&[6, 7]), PATIENCE, Duration::from_secs(1)).await;
    assert!(matches!(reply.answer, Answer::Ready(_)), "{}", reply.answer.label());
    story.life().until("it moves", |phase| matches!(phase, Phase::InterBroker(_))).await;
    // One after the other is stopped and started again, while data moves.
    for id in (0..8).map(BrokerId) {
        story.suffer(&Fault::Stop(id));
        tokio::time::sleep(Duration::from_secs(20)).await;
        story.suffer(&Fault::Return(id));
        tokio::time::sleep(Duration::from_secs(40)).await;
    }
    story.life().until("it is over", |phase| *phase == Phase::Idle).await;
    story.tell("they are filled, and all were restarted meanwhile");

    story.at_hour(2).await;
    let parcels = NewTopic::new("parcels", 12, 3).loaded(Load::steady(400_000.0), 0);
    story.suffer(&Fault::TopicCreated(Box::new(parcels)));
    story.at_hour(3).await;
    let clicks = evenkeel_sim::TopicPartition::new("clicks", 0);
    let target = story.stage.world.look(|cluster| {
        let mut replicas = cluster.registration("clicks", 0).unwrap().replicas.clone();
        let free = cluster.broker_ids().into_iter().find(|id| !replicas.contains(id)).unwrap();
        replicas[0] = free;
        replicas
    });
    story.suffer(&Fault::ForeignReassignment(Reassignment { partition: clicks, target: Some(target) }));
    story.done("somebody else has moved something, and broker 0 is emptied", &removing(0)).await;
    story.suffer(&Fault::TopicDeleted("clicks".to_owned()));
    story.at_hour(4).await;
    story.done("a topic is gone, and what is left is spread", &executing(None)).await;
    expect![[r#"
        hour  0  an engine is started: unevenly on 6 brokers, empty [], moving 0, late 0
        hour  0  it is spread: evenly on 6 brokers, empty [], moving 0, late 0
        hour  1  two brokers have come: evenly on 6 brokers, empty [6, 7], moving 0, late 0
        hour  1  they are filled, and all were restarted meanwhile: evenly on 8 brokers, empty [], moving 0, late 0
        hour  3  somebody else has moved something, and broker 0 is emptied: evenly on 7 brokers, empty [0], moving 0, late 0
        hour  4  a topic is gone, and what is left is spread: evenly on 7 brokers, empty [0], moving 0, late 0
    "#]]
    .assert_eq(&story.told);
}

/// One of three racks, with two disks.
fn broker(id: i32) -> BrokerSpec {
    BrokerSpec::new(id).in_rack(["a", "b", "c"][id as usize % 3]).with_dirs(["/data/d0", "/data/d1"])
}

/// What lies on brokers that are gone is made elsewhere.
fn mending() -> FixOfflineReplicas {
    let mut asked = FixOfflineReplicas::default();
    asked.goal_options.goals = spread().goal_options.goals;
    asked.execution.skip_hard_goal_check = true;
    asked.execution.run.dryrun = false;
    asked
}
