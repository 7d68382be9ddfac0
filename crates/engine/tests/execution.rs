//! Runs carried out over the wire on simulated brokers, under paused time, by processes that die.

use std::{
    collections::BTreeSet,
    future::Future,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use evenkeel_engine::{
    clock::WallClock,
    executor::{Adjustment, Baseline, Ending, Execution, Limits, Move, Order, Report, Runner, Strategy},
    journal::{Journal, Run},
};
use evenkeel_kafka::{BrokerId, Client, Error, Settings, TopicPartition};
use evenkeel_sim::{
    Cluster, Options,
    cluster::{BrokerSpec, Fault, NewTopic, Registration, Resource},
    serve::{Pipes, World},
};
use tokio::sync::watch;
use uuid::Uuid;

const MB: u64 = 1_000_000;

/// Twelve partitions of 20 MB on brokers 0 and 1; each gives a replica or its lead to 2 or 3.
fn moves() -> Vec<Move> {
    let ids = |ids: [i32; 2]| ids.map(BrokerId).to_vec();
    let lists = |number: i32| match number % 4 {
        0 => ([0, 1], [2, 3]),
        1 => ([1, 0], [3, 0]),
        2 => ([0, 1], [1, 0]),
        _ => ([1, 0], [1, 2]),
    };
    (0..12)
        .map(|number| {
            let (old, new) = lists(number);
            Move {
                partition: TopicPartition::new("orders", number),
                old: ids(old),
                new: ids(new),
                old_leader: BrokerId(old[0]),
                dirs: Vec::new(),
                bytes: 20 * MB,
            }
        })
        .collect()
}

fn run() -> Run {
    Run {
        id: Uuid::from_u128(1),
        task: None,
        reason: "a test".to_owned(),
        proposal: "p".to_owned(),
        order: Order {
            moves: moves(),
            limits: Limits {
                per_broker: 3,
                in_cluster: 4,
                dirs_per_broker: 2,
                leaders_in_cluster: 1_000,
                leaders_per_broker: 250,
                spared: BTreeSet::new(),
            },
            strategies: vec![Strategy::Base],
            throttle: Some(20 * MB),
            baseline: Baseline { up: (0..4).map(BrokerId).collect(), short: BTreeSet::new() },
            emptied: BTreeSet::new(),
            repairs: false,
            stops_others: true,
            gives_up_after: None,
            leader_patience: 180_000,
        },
    }
}

struct Stage {
    world: World,
    pipes: Pipes,
}

impl Stage {
    fn new() -> Stage {
        let options = Options { session_timeout: 2_000, ..Options::default() };
        let mut cluster = Cluster::new(options, (0..4).map(BrokerSpec::new));
        let lists: Vec<Vec<i32>> = moves().iter().map(|mv| mv.old.iter().map(|id| id.0).collect()).collect();
        let lists: Vec<&[i32]> = lists.iter().map(Vec::as_slice).collect();
        cluster.create_topic(&NewTopic::manual("orders", &lists), false).unwrap();
        for number in 0..lists.len() as i32 {
            cluster.fill(&evenkeel_sim::TopicPartition::new("orders", number), 20 * MB);
        }
        cluster.tick(1_000);
        let world = World::new(cluster);
        Stage { pipes: Pipes::new(world.clone()), world }
    }

    fn client(&self) -> Client {
        let bootstrap = (0..4).map(|id| self.pipes.address(evenkeel_sim::BrokerId(id))).collect();
        Client::new(Arc::new(self.pipes.connector()), Settings::new(bootstrap))
    }

    /// One life of the engine: what the journal holds is carried on, or else `fresh` is begun.
    async fn live(
        &self,
        fresh: Option<Run>,
        stop: watch::Receiver<bool>,
        report: watch::Sender<Report>,
    ) -> Result<Option<Ending>, Error> {
        let client = self.client();
        let (journal, recovered) = Journal::open(client.clone()).await?;
        let (run, execution) = match (recovered.run, fresh) {
            (Some(found), _) => found,
            (None, Some(run)) => {
                journal.append(run.begun()).await?;
                let execution = Execution::new(run.order.clone());
                (run, execution)
            }
            (None, None) => return Ok(None),
        };
        let clock = WallClock::starting_at(self.world.look(|cluster| cluster.wall_clock()));
        let adjust = watch::channel(Adjustment::default()).1;
        let runner = Runner { client, journal, clock, stop, adjust, task: None, report };
        runner.carry_out(&run, execution).await.map(Some)
    }

    fn registrations(&self) -> Vec<Registration> {
        self.world
            .look(|cluster| (0..12).map(|number| cluster.registration("orders", number).unwrap().clone()).collect())
    }

    /// Everything is as planned, nothing moves, and nothing is held back.
    fn assert_done(&self, what: &str) {
        for (mv, record) in moves().iter().zip(self.registrations()) {
            let replicas: Vec<BrokerId> = record.replicas.iter().map(|id| BrokerId(id.0)).collect();
            assert_eq!(replicas, mv.new, "{what}: {}", mv.partition);
            assert_eq!(record.leader.map(|id| BrokerId(id.0)), mv.new.first().copied(), "{what}: {}", mv.partition);
        }
        self.assert_at_rest(what);
    }

    fn assert_at_rest(&self, what: &str) {
        self.world.look(|cluster| {
            assert_eq!(cluster.list_reassignments(None), [], "{what}");
            let ids = || (0..4).map(evenkeel_sim::BrokerId);
            let brokers = ids().map(|id| (id, Resource::Broker(id)));
            let topic = (evenkeel_sim::BrokerId(0), Resource::Topic("orders".to_owned()));
            for (asked, resource) in brokers.chain([topic]) {
                let settings = cluster.describe_configs(asked, &resource).unwrap();
                let left: Vec<_> = settings.iter().filter(|it| it.name.contains("throttled.")).collect();
                let set =
                    |it: &&&evenkeel_sim::cluster::ConfigEntry| it.value.as_deref().is_some_and(|it| !it.is_empty());
                assert_eq!(left.iter().filter(set).count(), 0, "{what}: {left:?}");
            }
        });
    }
}

fn nobody() -> (watch::Receiver<bool>, watch::Sender<Report>) {
    (watch::channel(false).1, watch::channel(Report::default()).0)
}

/// A process that dies in the middle of something: after so many times of being woken.
struct Mortal<'a, T> {
    wakes_left: usize,
    life: Pin<&'a mut dyn Future<Output = T>>,
}

impl<T> Future for Mortal<'_, T> {
    type Output = Option<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        if self.wakes_left == 0 {
            return Poll::Ready(None);
        }
        self.wakes_left -= 1;
        self.life.as_mut().poll(context).map(Some)
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_comes_to_its_end_and_leaves_nothing_behind() {
    let stage = Stage::new();
    let (stop, report) = nobody();
    let mut seen = report.subscribe();
    let ending = stage.live(Some(run()), stop, report).await.unwrap();
    assert_eq!(ending, Some(Ending::Completed));
    stage.assert_done("a quiet life");
    let last = seen.borrow_and_update().clone();
    assert_eq!((last.phase, last.progress.replicas.completed), (None, 12));
    assert_eq!((last.progress.bytes_done, last.progress.bytes_total), (12 * 20 * MB, 12 * 20 * MB));
    // The next life finds nothing to do.
    let (stop, report) = nobody();
    assert_eq!(stage.live(None, stop, report).await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn a_process_may_die_in_the_middle_of_anything() {
    let mut deaths = 0;
    for wakes in 1.. {
        let stage = Stage::new();
        let (stop, report) = nobody();
        let outcome = {
            let life = pin!(stage.live(Some(run()), stop, report));
            Mortal { wakes_left: wakes, life }.await
        };
        let Some(ended) = outcome else {
            let (stop, report) = nobody();
            // It may have died before anything was on record; then whoever asked asks again.
            let ending = stage.live(Some(run()), stop, report).await.unwrap();
            assert_eq!(ending, Some(Ending::Completed), "died after {wakes} wakes");
            stage.assert_done(&format!("died after {wakes} wakes"));
            deaths += 1;
            continue;
        };
        assert_eq!(ended.unwrap(), Some(Ending::Completed));
        break;
    }
    assert!(deaths > 100, "only {deaths} deaths");
}

#[tokio::test(start_paused = true)]
async fn a_stop_brings_everything_back() {
    let stage = Stage::new();
    let (ask, stop) = watch::channel(false);
    let before = stage.registrations();
    let life = stage.live(Some(run()), stop, watch::channel(Report::default()).0);
    let asking = async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_ne!(stage.world.look(|cluster| cluster.list_reassignments(None)), []);
        ask.send(true).unwrap();
    };
    let (ending, ()) = tokio::join!(life, asking);
    assert_eq!(ending.unwrap(), Some(Ending::Stopped));
    for (mv, (before, after)) in moves().iter().zip(before.iter().zip(stage.registrations())) {
        let replicas: Vec<BrokerId> = after.replicas.iter().map(|id| BrokerId(id.0)).collect();
        assert!(after.replicas == before.replicas || replicas == mv.new, "{}: {replicas:?}", mv.partition);
    }
    stage.assert_at_rest("stopped");
}

#[tokio::test(start_paused = true)]
async fn a_newer_engine_shuts_the_older_one_out() {
    let stage = Stage::new();
    let (stop, report) = nobody();
    let older = stage.live(Some(run()), stop, report);
    let newer = async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        let (stop, report) = nobody();
        stage.live(None, stop, report).await
    };
    let (older, newer) = tokio::join!(older, newer);
    assert!(matches!(older, Err(Error::Fenced { .. })), "{older:?}");
    assert_eq!(newer.unwrap(), Some(Ending::Completed));
    stage.assert_done("taken over");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_cannot_be_reached_is_waited_for() {
    let stage = Stage::new();
    let (stop, report) = nobody();
    let mut seen = report.subscribe();
    let life = stage.live(Some(run()), stop, report);
    let night = async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        let all = || (0..4).map(evenkeel_sim::BrokerId);
        stage.world.with(|cluster| all().for_each(|id| cluster.suffer(&Fault::CutLink(id))));
        seen.wait_for(|report| report.trouble.is_some()).await.unwrap();
        tokio::time::sleep(Duration::from_secs(600)).await;
        stage.world.with(|cluster| all().for_each(|id| cluster.suffer(&Fault::MendedLink(id))));
        seen.wait_for(|report| report.trouble.is_none()).await.unwrap();
    };
    let (ending, ()) = tokio::join!(life, night);
    // Targets that were gone took their moves back; the rest came true.
    assert!(matches!(ending.unwrap(), Some(Ending::Completed | Ending::Incomplete)));
    stage.assert_at_rest("after the night");
}
