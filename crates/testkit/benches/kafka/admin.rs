//! Round trips of an administrator to a real broker: ours, and those of kafka-python in the same run.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use evenkeel_kafka::{
    Client, TopicPartition,
    calls::{
        configs::{Change, Resource},
        offsets::{Isolation, Place},
        topics::{Layout, NewTopic, Which},
    },
};
use evenkeel_testkit::{
    kafka_client,
    measure::{Measurement, Report, Spread, Unit},
    real_kafka::{Cluster, Listener},
};

use crate::{metrics::client, sizes::Sizes};

const TOPIC: &str = "round-trips";
const OTHERS: usize = 50;
const RETENTION: &str = "retention.ms";
/// Before anything is timed: connections, and a JVM that has seen the calls.
const WARM_UP: usize = 20;

/// Both clients, one after the other, each alone.
pub(crate) async fn measure(cluster: &Cluster, sizes: &Sizes) -> Result<Report> {
    let bootstrap = cluster.bootstrap(Listener::Plaintext);
    let client = client(&bootstrap)?;
    make_topics(&client).await?;
    let theirs = python(&bootstrap, sizes).await?;
    let ours = ours(&client, sizes).await?;
    Ok(Report::beside("kafka-python", &ours, &theirs))
}

async fn make_topics(client: &Client) -> Result<()> {
    let new = |name: String| NewTopic {
        name,
        layout: Layout::Automatic { partitions: Some(4), replication_factor: Some(2) },
        configs: BTreeMap::new(),
    };
    let topics: Vec<_> = (0..OTHERS).map(|n| format!("other-{n}")).chain([TOPIC.to_owned()]).map(new).collect();
    for (name, made) in client.create_topics(&topics, false).await.whole()? {
        made.with_context(|| format!("could not make {name}"))?;
    }
    // Whoever is asked first may not have heard of all of them yet.
    loop {
        let known = client.topics(Which::All).await?;
        if topics.iter().all(|topic| known.get(&topic.name).is_some_and(Result::is_ok)) {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn ours(client: &Client, sizes: &Sizes) -> Result<Vec<Measurement>> {
    let topic = Resource::Topic(TOPIC.to_owned());
    let first = TopicPartition::new(TOPIC, 0);
    let mut measured = Vec::new();
    let mut add = |what: &str, times: Vec<Duration>| summary(what, times).map(|rows| measured.extend(rows));

    add(
        "describe the cluster",
        timed(sizes, async |_| Ok(client.describe_cluster().await?.brokers.len() == 3)).await?,
    )?;
    add(
        "describe a topic",
        timed(sizes, async |_| {
            let found = client.topics(Which::Named(&[TOPIC.to_owned()])).await?;
            Ok(found[TOPIC].as_ref().is_ok_and(|topic| topic.partitions.len() == 4))
        })
        .await?,
    )?;
    add("describe all topics", timed(sizes, async |_| Ok(client.topics(Which::All).await?.len() > OTHERS)).await?)?;
    add(
        "describe a topic's settings",
        timed(sizes, async |_| {
            let found = client.describe_configs(std::slice::from_ref(&topic), None).await.whole()?;
            Ok(found[&topic].as_ref().is_ok_and(|settings| settings.contains_key(RETENTION)))
        })
        .await?,
    )?;
    add(
        "alter a topic's setting",
        timed(sizes, async |n| {
            let change = BTreeMap::from([(RETENTION.to_owned(), Change::Set((3_600_000 + n).to_string()))]);
            let answers = client.alter_configs(&BTreeMap::from([(topic.clone(), change)]), false).await.whole()?;
            Ok(answers[&topic].is_ok())
        })
        .await?,
    )?;
    add("list reassignments", timed(sizes, async |_| Ok(client.list_reassignments(None).await?.is_empty())).await?)?;
    add(
        "find the end of a partition",
        timed(sizes, async |_| {
            let places = BTreeMap::from([(first.clone(), Place::Latest)]);
            let found = client.list_offsets(&places, Isolation::Uncommitted).await?;
            Ok(found[&first] == Ok(Some(0)))
        })
        .await?,
    )?;
    Ok(measured)
}

/// How long round trips take; each says whether its answer is as it should be.
async fn timed(sizes: &Sizes, trip: impl AsyncFn(usize) -> Result<bool>) -> Result<Vec<Duration>> {
    let mut times = Vec::with_capacity(sizes.round_trips);
    for n in 0..WARM_UP + sizes.round_trips {
        let began = Instant::now();
        ensure!(trip(n).await?, "an answer is not as it should be");
        if n >= WARM_UP {
            times.push(began.elapsed());
        }
    }
    Ok(times)
}

/// The same trips by the same names; see the program.
async fn python(bootstrap: &str, sizes: &Sizes) -> Result<Vec<Measurement>> {
    let (warm_up, count) = (WARM_UP.to_string(), sizes.round_trips.to_string());
    let said = kafka_client::run("round_trips.py", &[bootstrap, TOPIC, &warm_up, &count]).await?;
    let trips: BTreeMap<String, Vec<f64>> = serde_json::from_str(&said).context("it said something else")?;
    let mut measured = Vec::new();
    for (what, seconds) in trips {
        measured.extend(summary(&what, seconds.into_iter().map(Duration::from_secs_f64).collect())?);
    }
    Ok(measured)
}

fn summary(what: &str, times: Vec<Duration>) -> Result<[Measurement; 2]> {
    let spread = Spread::of(times).context("no trip was timed")?;
    let row =
        |percent| Measurement::time(format!("{what}, p{percent}"), Unit::Milliseconds, spread.percentile(percent));
    Ok([row(50), row(99)])
}
