//! A monitor that watches simulated brokers over the wire, under paused time.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use bytes::Bytes;
use evenkeel_engine::{
    clock::WallClock,
    config::{capacity::Capacities, properties::Properties, settings::Settings},
    monitor::{
        Monitor,
        record::record,
        sample::{Metric, Values},
        windows::{NotEnough, Requirement},
    },
    watch,
};
use evenkeel_kafka::{
    Client, TopicPartition,
    calls::offsets::Isolation,
    topic::{Start, TopicReader, Until},
};
use evenkeel_rest::body::state::{MonitorPhase, MonitorState};
use evenkeel_sim::{
    BrokerId, Cluster, Options,
    cluster::{BrokerSpec, Fault, NewTopic, Reporter},
    serve::{Pipes, World},
    traffic::Load,
};

const ALL: Requirement = Requirement { windows: 1, ratio: 1.0 };
const MOST: Requirement = Requirement { windows: 1, ratio: 0.9 };

/// Three brokers; `orders` has four partitions of 1 MB/s in and 2 MB/s out each, `audit.log` one of 100 kB/s.
struct Stage {
    world: World,
    pipes: Pipes,
}

impl Stage {
    fn new(reporter: Option<Reporter>) -> Stage {
        let options = Options { reporter, session_timeout: 2_000, ..Options::default() };
        let mut cluster = Cluster::new(options, (0..3).map(|id| BrokerSpec::new(id).with_dirs(["/a", "/b"])));
        let orders: [&[i32]; 4] = [&[0, 1], &[1, 2], &[2, 0], &[0, 2]];
        let load = Load { fan_out: 2.0, ..Load::steady(4e6) };
        cluster.create_topic(&NewTopic::manual("orders", &orders).loaded(load, 60_000), false).unwrap();
        let audit = NewTopic::manual("audit.log", &[&[1, 0]]).loaded(Load::steady(1e5), 60_000);
        cluster.create_topic(&audit.config("min.insync.replicas", "2"), false).unwrap();
        cluster.tick(1_000);
        let world = World::new(cluster);
        Stage { pipes: Pipes::new(world.clone()), world }
    }

    fn client(&self) -> Client {
        let bootstrap = (0..3).map(|id| self.pipes.address(BrokerId(id))).collect();
        Client::new(Arc::new(self.pipes.connector()), evenkeel_kafka::Settings::new(bootstrap))
    }

    fn clock(&self) -> WallClock {
        WallClock::starting_at(self.world.look(|cluster| cluster.wall_clock()))
    }

    /// One life of a monitor, with few partitions in its stores.
    fn monitor(&self, more: &str) -> Monitor {
        self.monitor_by(more, self.clock())
    }

    fn monitor_by(&self, more: &str, clock: WallClock) -> Monitor {
        let text = format!(
            "bootstrap.servers=sim:9000\ncapacity.config.file=given\npartition.metrics.window.ms=300000\n\
             num.partition.metrics.windows=3\npartition.sample.store.topic.partition.count=2\nbroker.sample.store.topic.partition.count=2\n\
             min.samples.per.partition.metrics.window=1\n{more}"
        );
        let settings = Settings::read(&Properties::read(&text, |_| None).unwrap()).unwrap().settings;
        let capacity = r#"{"DISK":{"/a":"1000000","/b":"1000000"},"CPU":{"num.cores":"8"},"NW_IN":"1","NW_OUT":"1"}"#;
        let capacities = format!(r#"{{"brokerCapacities":[{{"brokerId":"-1","capacity":{capacity}}}]}}"#);
        let capacities = Arc::new(Capacities::read(&capacities).unwrap());
        Monitor::start(self.client(), settings.monitor, capacities, clock)
    }

    fn suffer(&self, fault: Fault) {
        self.world.with(|cluster| cluster.suffer(&fault));
    }

    /// The values that are in a topic.
    async fn kept(&self, topic: &str) -> Vec<Bytes> {
        let (client, isolation) = (self.client(), Isolation::Uncommitted);
        let mut reader = TopicReader::open(client, topic, &Start::Earliest, Until::End, isolation).await.unwrap();
        let mut values = Vec::new();
        while let Some(records) = reader.next().await.unwrap() {
            values.extend(records.into_iter().filter_map(|record| record.stored.record.value));
        }
        values
    }
}

fn orders(number: i32) -> TopicPartition {
    TopicPartition::new("orders", number)
}

async fn seconds(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

/// Waits until something holds, for as long as ten simulated hours.
async fn until(monitor: &Monitor, what: &str, holds: impl Fn(&Monitor) -> bool) {
    for _ in 0..36_000 {
        if holds(monitor) {
            return;
        }
        seconds(1).await;
    }
    panic!("never: {what}; {:?}", monitor.state(true));
}

fn close(value: Option<f64>, to: f64) -> bool {
    value.is_some_and(|value| (value - to).abs() <= 0.05 * to)
}

fn load(monitor: &Monitor, partition: &TopicPartition) -> Values {
    monitor.known(MOST).unwrap().loads.loads[partition]
}

fn figures(state: &MonitorState) -> (u64, u64, u64) {
    let figures = state.figures.as_ref().unwrap();
    (figures.num_monitored_windows, figures.num_valid_partitions, figures.num_total_partitions)
}

#[tokio::test(start_paused = true)]
async fn a_look_sees_brokers_partitions_directories_and_who_is_in_sync() {
    let stage = Stage::new(None);
    seconds(1).await;
    let seen = watch::look(&stage.client(), &stage.clock()).await.unwrap();
    assert_eq!(seen.up().collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(seen.view.partitions[&orders(1)].replicas, [1, 2]);
    assert_eq!(seen.view.partitions[&orders(1)].leader, Some(1));
    assert_eq!((seen.in_sync(&orders(1)), seen.lagging.len()), (vec![1, 2], 0));
    assert_eq!((seen.min_in_sync("audit.log"), seen.min_in_sync("orders")), (2, 1));
    assert_eq!(seen.dirs[&0].keys().collect::<Vec<_>>(), ["/a", "/b"]);
    assert!(seen.controller.is_some() && seen.silent.is_empty());

    stage.suffer(Fault::FailedDir(BrokerId(0), 0));
    stage.suffer(Fault::Crash(BrokerId(2)));
    seconds(10).await;
    let seen = watch::look(&stage.client(), &stage.clock()).await.unwrap();
    assert_eq!(seen.up().collect::<Vec<_>>(), [0, 1]);
    assert_eq!(seen.view.brokers[&0].failed_dirs, BTreeSet::from(["/a".to_owned()]));
    assert_eq!(seen.lagging[&orders(1)], [2]);
    assert!(seen.view.partitions[&orders(1)].offline.contains(&2));
}

#[tokio::test(start_paused = true)]
async fn without_a_reporter_two_looks_make_a_complete_window_within_a_minute() {
    let stage = Stage::new(None);
    let monitor = stage.monitor("");
    assert_eq!(monitor.state(false).state, MonitorPhase::Loading);
    assert!(matches!(monitor.known(ALL), Err(NotEnough::NoWindow { .. })));
    let began = tokio::time::Instant::now();
    until(&monitor, "a window", |monitor| monitor.known(ALL).is_ok()).await;
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());

    let values = load(&monitor, &orders(0));
    assert!(close(values.get(Metric::LeaderBytesIn), 1e6), "{values:?}");
    assert!(close(values.get(Metric::MessagesIn), 1e3), "{values:?}");
    assert!(close(values.get(Metric::ReplicationBytesOut), 1e6), "{values:?}");
    assert!(values.get(Metric::Disk).unwrap() > 60e6, "{values:?}");
    assert_eq!((values.get(Metric::Cpu), values.get(Metric::LeaderBytesOut)), (None, None), "unknown, not 0");
    assert!(close(load(&monitor, &TopicPartition::new("audit.log", 0)).get(Metric::LeaderBytesIn), 1e5));

    let state = monitor.state(true);
    // With the two of each store.
    assert_eq!(figures(&state), (1, 9, 9));
    assert_eq!(state.figures.as_ref().unwrap().monitored_windows.as_ref().unwrap().len(), 1);
    let known = monitor.known(ALL).unwrap();
    assert!(Arc::ptr_eq(&known, &monitor.known(MOST).unwrap()), "one generation, one answer");
    assert_eq!(known.generation, monitor.generation());
    assert_eq!(
        known.sighting.view.brokers[&0].dirs.len(),
        known.sighting.view.partitions.values().filter(|seen| seen.replicas.contains(&0)).count(),
        "directories matter here"
    );
}

#[tokio::test(start_paused = true)]
async fn reporters_tell_of_processors_and_consumers() {
    let stage = Stage::new(Some(Reporter { interval: 20_000, ..Reporter::default() }));
    let monitor = stage.monitor("metric.sampling.interval.ms=20000");
    let cpu = |monitor: &Monitor| {
        monitor
            .known(MOST)
            .is_ok_and(|known| known.loads.loads.get(&orders(0)).is_some_and(|it| it.get(Metric::Cpu).is_some()))
    };
    until(&monitor, "the processor's share", cpu).await;
    let values = load(&monitor, &orders(0));
    assert!(close(values.get(Metric::LeaderBytesIn), 1e6), "{values:?}");
    assert!(close(values.get(Metric::LeaderBytesOut), 2e6), "{values:?}");
    // What brokers did is kept as well, for the original: bytes in are the second number after the host.
    let kept = stage.kept("__KafkaCruiseControlModelTrainingSamples").await;
    let broker = |value: &[u8]| i32::from_be_bytes(value[1..5].try_into().unwrap());
    let bytes_in = |value: &[u8]| {
        let at = 7 + usize::from(value[6]) + 8;
        f64::from_be_bytes(value[at..at + 8].try_into().unwrap())
    };
    assert_eq!(kept.iter().map(|value| broker(value)).collect::<BTreeSet<_>>(), BTreeSet::from([0, 1, 2]));
    let of_0 = kept.iter().filter(|value| broker(value) == 0).map(|value| bytes_in(value)).next_back();
    assert!(close(of_0, 2e6 / 1024.0), "two leaders, in KB: {of_0:?}");

    // They fall silent, and their topic goes: from outside, then.
    stage.suffer(Fault::TopicDeleted("__CruiseControlMetrics".to_owned()));
    let generation = monitor.generation();
    until(&monitor, "another generation", |monitor| monitor.generation() != generation).await;
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_dies_with_part_of_the_reporters_topic_leaves_the_rest() {
    let stage = Stage::new(Some(Reporter { interval: 20_000, partitions: 6, factor: 1, ..Reporter::default() }));
    let monitor =
        stage.monitor("metric.sampling.interval.ms=20000\nmetric.sampler.class=CruiseControlMetricsReporterSampler");
    until(&monitor, "a window", |monitor| monitor.known(MOST).is_ok()).await;
    stage.suffer(Fault::Crash(BrokerId(2)));
    let down = |monitor: &Monitor| monitor.sighting().is_some_and(|seen| !seen.view.brokers[&2].up);
    until(&monitor, "the broker to be seen down", down).await;
    let generation = monitor.generation();
    until(&monitor, "more samples", |monitor| monitor.generation() > generation + 3).await;
    assert_eq!(monitor.trouble(), None);
    // With all of them gone there is nothing to go by, and that is said.
    stage.suffer(Fault::Crash(BrokerId(0)));
    stage.suffer(Fault::Crash(BrokerId(1)));
    until(&monitor, "trouble", |monitor| monitor.trouble().is_some()).await;
}

#[tokio::test(start_paused = true)]
async fn only_the_reporter_will_do_if_so_set() {
    let stage = Stage::new(None);
    let monitor = stage.monitor("metric.sampler.class=CruiseControlMetricsReporterSampler");
    seconds(900).await;
    assert!(matches!(monitor.known(ALL), Err(NotEnough::NoWindow { .. })));
    assert_eq!((monitor.state(false).state, monitor.trouble()), (MonitorPhase::Running, None));
}

#[tokio::test(start_paused = true)]
async fn a_restart_has_its_windows_back() {
    let stage = Stage::new(None);
    let first = stage.monitor("");
    until(&first, "two windows", |monitor| figures(&monitor.state(false)).0 >= 2).await;
    let windows = first.known(ALL).unwrap().loads.windows.clone();
    drop(first);

    let second = stage.monitor("");
    until(&second, "a look", Monitor::is_ready).await;
    let known = second.known(ALL).unwrap();
    assert_eq!(known.loads.windows[known.loads.windows.len() - windows.len()..], windows);
    assert!(close(known.loads.loads[&orders(0)].get(Metric::LeaderBytesIn), 1e6));
    drop(second);

    let forgetful = stage.monitor("skip.loading.samples=true");
    until(&forgetful, "a look", |monitor| monitor.sighting().is_some()).await;
    assert!(forgetful.known(ALL).is_err());
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_is_down_does_not_take_all_that_was_kept_along() {
    let stage = Stage::new(None);
    // Samples of every other partition lie on broker 1 alone.
    let kept = NewTopic::manual("__KafkaCruiseControlPartitionMetricSamples", &[&[0], &[1]]);
    stage.world.with(|cluster| cluster.create_topic(&kept, false)).unwrap();
    let first = stage.monitor("");
    until(&first, "two windows", |monitor| figures(&monitor.state(false)).0 >= 2).await;
    drop(first);
    stage.suffer(Fault::Crash(BrokerId(1)));
    seconds(10).await;
    // Nobody reports: whatever is known is from before.
    let second = stage.monitor("metric.sampler.class=CruiseControlMetricsReporterSampler");
    until(&second, "a look", Monitor::is_ready).await;
    let known = second.known(Requirement::LEAST).unwrap();
    let of_orders = (0..4).filter(|number| known.loads.loads.contains_key(&orders(*number))).count();
    assert_eq!(of_orders, 2, "{:?}", known.loads.loads.keys());
}

#[tokio::test(start_paused = true)]
async fn samples_of_tomorrow_blind_nobody() {
    let stage = Stage::new(None);
    let tomorrow = stage.world.look(|cluster| cluster.wall_clock()) + 86_400_000;
    let ahead = stage.monitor_by("", WallClock::starting_at(tomorrow));
    until(&ahead, "a window", |monitor| monitor.known(ALL).is_ok()).await;
    drop(ahead);
    let monitor = stage.monitor("");
    until(&monitor, "a window of today", |monitor| monitor.known(ALL).is_ok()).await;
    let windows = monitor.known(ALL).unwrap().loads.windows.clone();
    assert!(windows.iter().all(|end| *end < tomorrow - 3_600_000), "{windows:?}");
}

#[tokio::test(start_paused = true)]
async fn a_pause_takes_no_samples_and_says_why() {
    let stage = Stage::new(None);
    let monitor = stage.monitor("");
    until(&monitor, "a window", |monitor| monitor.known(ALL).is_ok()).await;
    assert_eq!(monitor.state(false).reason_of_latest_pause_or_resume.as_deref(), Some("N/A"));

    monitor.pause("a change of disks");
    seconds(120).await;
    let state = monitor.state(false);
    assert_eq!(state.state, MonitorPhase::Paused);
    assert_eq!(state.reason_of_latest_pause_or_resume.as_deref(), Some("a change of disks"));
    let (generation, seen) = (monitor.generation(), monitor.sighting().unwrap().at);
    seconds(600).await;
    assert_eq!(monitor.generation(), generation, "nothing new is known");
    assert!(monitor.sighting().unwrap().at > seen, "the cluster is watched all the same");

    monitor.resume("done");
    until(&monitor, "another generation", |monitor| monitor.generation() != generation).await;
    until(&monitor, "to wait for the next round", |it| it.state(false).state == MonitorPhase::Running).await;
    assert_eq!(monitor.state(false).reason_of_latest_pause_or_resume.as_deref(), Some("done"));
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_goes_takes_nothing_else_along() {
    let stage = Stage::new(None);
    let monitor = stage.monitor("");
    until(&monitor, "a window", |monitor| monitor.known(ALL).is_ok()).await;
    // Its link is cut, and nobody knows it yet.
    stage.suffer(Fault::CutLink(BrokerId(2)));
    let down = |monitor: &Monitor| monitor.sighting().is_some_and(|seen| !seen.view.brokers[&2].up);
    until(&monitor, "the broker to be seen down", down).await;
    let generation = monitor.generation();
    until(&monitor, "another generation", |monitor| monitor.generation() > generation + 2).await;
    let seen = monitor.sighting().unwrap();
    assert_eq!(seen.view.partitions[&orders(2)].leader, Some(0));
    assert_eq!(seen.lagging[&orders(2)], [2]);
    // The rest is known as before, and so is what others took over.
    assert!(close(load(&monitor, &orders(0)).get(Metric::LeaderBytesIn), 1e6));
    assert!(close(load(&monitor, &orders(2)).get(Metric::LeaderBytesIn), 1e6));

    stage.suffer(Fault::MendedLink(BrokerId(2)));
    until(&monitor, "the broker to be back", |it| it.sighting().is_some_and(|seen| seen.view.brokers[&2].up)).await;
}

#[tokio::test(start_paused = true)]
async fn who_wants_to_know_what_lies_where_does_not_wait_for_sizes() {
    // The client asks any broker what lies where, and may meet the silent one, which takes longer than sizes do. Not every
    // time, though: whoever waited for sizes would wait every time.
    let mut soonest = Duration::MAX;
    for _ in 0..12 {
        let stage = Stage::new(None);
        let monitor = stage.monitor("");
        until(&monitor, "a window", |monitor| monitor.known(ALL).is_ok()).await;
        // Everybody is asked for sizes, and one does not answer.
        stage.suffer(Fault::CutLink(BrokerId(2)));
        monitor.resume("at once");
        tokio::time::sleep(Duration::from_millis(100)).await;
        let began = tokio::time::Instant::now();
        monitor.look_now().await.unwrap();
        soonest = soonest.min(began.elapsed());
    }
    assert!(soonest < Duration::from_secs(4), "{soonest:?}");
}

#[tokio::test(start_paused = true)]
async fn kafka_out_of_reach_is_waited_for() {
    let stage = Stage::new(None);
    let all = || (0..3).map(BrokerId);
    all().for_each(|id| stage.suffer(Fault::CutLink(id)));
    let monitor = stage.monitor("");
    until(&monitor, "trouble", |monitor| monitor.trouble().is_some()).await;
    assert!(!monitor.is_ready());
    assert!(monitor.look_now().await.is_err());
    seconds(600).await;
    all().for_each(|id| stage.suffer(Fault::MendedLink(id)));
    until(&monitor, "a window", |monitor| monitor.known(ALL).is_ok()).await;
    assert!(monitor.is_ready());

    // And once more in the middle of it.
    all().for_each(|id| stage.suffer(Fault::CutLink(id)));
    until(&monitor, "trouble", |monitor| monitor.trouble().is_some()).await;
    assert!(monitor.known(ALL).is_ok(), "what was known is known");
    all().for_each(|id| stage.suffer(Fault::MendedLink(id)));
    until(&monitor, "no trouble", |monitor| monitor.trouble().is_none()).await;
}

#[tokio::test(start_paused = true)]
async fn a_topic_that_goes_leaves_the_windows_and_a_fresh_look_sees_it() {
    let stage = Stage::new(None);
    let monitor = stage.monitor("");
    until(&monitor, "a window", |monitor| monitor.known(ALL).is_ok()).await;
    let mut changes = monitor.changed();
    changes.mark_unchanged();
    stage.suffer(Fault::TopicDeleted("audit.log".to_owned()));
    seconds(2).await;
    let seen = monitor.look_now().await.unwrap();
    assert!(!seen.view.partitions.contains_key(&TopicPartition::new("audit.log", 0)));
    assert!(changes.has_changed().unwrap());
    assert!(Arc::ptr_eq(&seen, &monitor.sighting().unwrap()));
    assert_eq!(figures(&monitor.state(false)), (1, 8, 8));
    assert_eq!(monitor.known(ALL).unwrap().loads.loads.len(), 8);
}

#[tokio::test(start_paused = true)]
async fn a_recording_needs_no_engine_and_writes_nothing() {
    let stage = Stage::new(None);
    seconds(1).await;
    let apart = Duration::from_secs(10);
    let recorded = record(stage.client(), stage.clock(), Arc::default(), "__CruiseControlMetrics", apart).await;
    let (sighting, loads) = recorded.unwrap();
    assert_eq!((sighting.view.partitions.len(), loads.loads.len()), (5, 5));
    assert!(close(loads.loads[&orders(3)].get(Metric::LeaderBytesIn), 1e6));
}
