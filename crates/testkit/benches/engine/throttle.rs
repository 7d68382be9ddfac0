//! How much of the bandwidth that is allowed a throttled execution uses, in simulated time: an engine inside this process,
//! over pipes.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use axum::Router;
use evenkeel_engine::{
    clock::WallClock,
    config::{capacity::Capacities, properties::Properties, settings::Settings},
    engine::{Engine, Parts, Running},
    notify::Courier,
    serve::router,
};
use evenkeel_kafka::Client as Kafka;
use evenkeel_rest::{Answer, client::Client, request::Rebalance};
use evenkeel_sim::{
    BrokerId, Cluster, Options, TopicPartition,
    cluster::{BrokerSpec, NewTopic},
    serve::{Pipes, World},
};
use evenkeel_testkit::measure::{Measurement, Numbers, Unit, grouped};
use tokio::time::{Instant, sleep};

use crate::{sizes::Sizes, step};

/// Bytes per second on each broker, in and out.
const ALLOWED: u64 = 50_000_000;
const SIZE: u64 = 100_000_000;
const BROKERS: i32 = 6;
const TOPIC: &str = "freight";
const PATIENCE: Duration = Duration::from_secs(86_400);
const LOOK_AGAIN: Duration = Duration::from_millis(50);
const PROPERTIES: &str = "bootstrap.servers=sim:9000\n\
                          metric.sampling.interval.ms=5000\n\
                          partition.metrics.window.ms=10000\n\
                          min.samples.per.partition.metrics.window=1\n\
                          default.replication.throttle=50000000\n";
const CAPACITIES: &str = r#"{"brokerCapacities": [{"brokerId": "-1", "capacity":
    {"DISK": "953674", "CPU": {"num.cores": "8"}, "NW_IN": "122070", "NW_OUT": "122070"}}]}"#;

pub(crate) fn measure(sizes: &Sizes, numbers: &mut Numbers) -> Result<()> {
    step("throttle");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build()?;
    runtime.block_on(async {
        let share = share(sizes.throttled).await?;
        let what = format!("bandwidth used of what is allowed, {} partitions", grouped(sizes.throttled));
        numbers.aimed(Measurement::new(what, Unit::Percent, share * 100.0), 95.0);
        Ok(())
    })
}

/// The time that the fullest pipe needs at least, as a part of the time that it took.
async fn share(partitions: i32) -> Result<f64> {
    let world = world(partitions)?;
    let pipes = Pipes::new(world.clone());
    let (client, _running) = engine(&world, &pipes)?;
    let mut asked = Rebalance::default();
    asked.goal_options.goals = ["ReplicaDistributionGoal", "LeaderReplicaDistributionGoal"].map(str::to_owned).into();
    asked.execution.skip_hard_goal_check = true;
    asked.execution.run.dryrun = false;
    let deadline = Instant::now() + PATIENCE;
    let before = layout(&world, partitions);
    loop {
        match client.ask_and_wait(&asked, PATIENCE, LOOK_AGAIN).await.answer {
            Answer::Ready(_) => break,
            other if Instant::now() > deadline => bail!("{other:?}"),
            _ => sleep(Duration::from_secs(1)).await,
        }
    }
    world.until(|cluster| !cluster.list_reassignments(None).is_empty()).await;
    let began = Instant::now();
    world.until(|cluster| cluster.list_reassignments(None).is_empty()).await;
    let mut took = began.elapsed();
    // Between two steps nothing may be under way though it is not over.
    loop {
        let more = async { world.until(|cluster| !cluster.list_reassignments(None).is_empty()).await };
        if tokio::time::timeout(Duration::from_secs(60), more).await.is_err() {
            break;
        }
        world.until(|cluster| cluster.list_reassignments(None).is_empty()).await;
        took = began.elapsed();
    }
    let fullest = fullest(&before, &layout(&world, partitions));
    ensure!(fullest > 0, "nothing was moved");
    Ok(fullest as f64 / ALLOWED as f64 / took.as_secs_f64())
}

/// Two replicas of everything, on the first half of the brokers.
fn world(partitions: i32) -> Result<World> {
    let mut cluster = Cluster::new(Options::default(), (0..BROKERS).map(BrokerSpec::new));
    let half = BROKERS / 2;
    let lists: Vec<Vec<i32>> = (0..partitions).map(|n| vec![n % half, (n + 1) % half]).collect();
    let lists: Vec<&[i32]> = lists.iter().map(Vec::as_slice).collect();
    cluster.create_topic(&NewTopic::manual(TOPIC, &lists), false).map_err(|refusal| anyhow::anyhow!("{refusal:?}"))?;
    (0..partitions).for_each(|n| cluster.fill(&TopicPartition::new(TOPIC, n), SIZE));
    cluster.tick(1_000);
    Ok(World::new(cluster))
}

fn engine(world: &World, pipes: &Pipes) -> Result<(Client<Router>, Running)> {
    let bootstrap = (0..BROKERS).map(|id| pipes.address(BrokerId(id))).collect();
    let settings = Settings::read(&Properties::read(PROPERTIES, |_| None)?);
    let settings = settings.map_err(|wrong| anyhow::anyhow!("{wrong:?}"))?.settings;
    let parts = Parts {
        client: Kafka::new(Arc::new(pipes.connector()), evenkeel_kafka::Settings::new(bootstrap)),
        settings: Arc::new(settings),
        capacities: Arc::new(Capacities::read(CAPACITIES)?),
        courier: Courier::silent(),
        clock: WallClock::starting_at(world.look(|cluster| cluster.wall_clock())),
    };
    let running = Engine::start(parts).ok().context("an engine")?;
    let client = Client::new(router(running.door()), "http://engine:9090/kafkacruisecontrol".parse()?);
    Ok((client, running))
}

/// Who leads each partition, and who has it.
fn layout(world: &World, partitions: i32) -> BTreeMap<i32, (Option<BrokerId>, Vec<BrokerId>)> {
    world.look(|cluster| {
        let found = |n| cluster.registration(TOPIC, n).map(|it| (n, (it.leader, it.replicas.clone())));
        (0..partitions).filter_map(found).collect()
    })
}

/// The most bytes that any broker had to send, or to receive.
fn fullest(
    before: &BTreeMap<i32, (Option<BrokerId>, Vec<BrokerId>)>,
    after: &BTreeMap<i32, (Option<BrokerId>, Vec<BrokerId>)>,
) -> u64 {
    let mut pipes: BTreeMap<(BrokerId, &str), u64> = BTreeMap::new();
    for (n, (_, new)) in after {
        let Some((leader, old)) = before.get(n) else { continue };
        for added in new.iter().filter(|id| !old.contains(id)) {
            *pipes.entry((*added, "in")).or_default() += SIZE;
            leader.iter().for_each(|leader| *pipes.entry((*leader, "out")).or_default() += SIZE);
        }
    }
    pipes.values().copied().max().unwrap_or(0)
}
