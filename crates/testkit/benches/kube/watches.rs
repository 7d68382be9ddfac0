//! One write, seen by many: from the moment it is sent until each watcher has the event.
//!
//! kube's client speaks HTTP/1.1, so every watch has a connection of its own, at both servers.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use evenkeel_testkit::measure::{Measurement, Spread, Unit, grouped};
use futures::{AsyncBufRead, AsyncBufReadExt, StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use serde::Deserialize;
use serde_json::json;
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{sleep, timeout_at},
};

use crate::{contestant::Running, meter::Meter, objects, sizes::Sizes};

const NAMESPACE: &str = "watched";
/// Handshakes at the same time while the watches are opened; more would only wait for a processor.
const OPENED_AT_ONCE: usize = 32;
/// A watcher that has seen nothing for so long has lost the event.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between rounds, so that each finds the servers at rest.
const PAUSE: Duration = Duration::from_millis(20);

/// An event, as far as it is looked at: decoding all of it would measure the client.
#[derive(Deserialize)]
struct Event<'line> {
    #[serde(rename = "type")]
    kind: &'line str,
    object: EventObject,
}

#[derive(Deserialize)]
struct EventObject {
    #[serde(default)]
    data: EventData,
}

#[derive(Default, Deserialize)]
struct EventData {
    round: Option<String>,
}

/// That one watcher has seen one round.
struct Sighting {
    round: usize,
    at: Instant,
}

/// Opens the watches, then writes round after round and waits until everybody has seen it.
pub(crate) async fn measure(server: &Running, sizes: &Sizes) -> Result<Vec<Measurement>> {
    let writer = server.client().await?;
    let maps = objects::namespace(&writer, NAMESPACE).await?;
    let watched = maps.create(&PostParams::default(), &objects::config_map(0)?).await?;
    let (name, since) = (watched.name_any(), watched.resource_version().context("no resource version")?);

    let (sightings, mut seen) = mpsc::unbounded_channel();
    // Dropping it ends the watchers.
    let mut watchers = open(&server.client().await?, &since, sizes, &sightings).await?;

    let meter = Meter::start(server)?;
    let mut times = Vec::with_capacity(sizes.watchers * sizes.rounds);
    let mut last_ones = Vec::with_capacity(sizes.rounds);
    for round in 0..sizes.rounds {
        sleep(PAUSE).await;
        let started = Instant::now();
        let patch = Patch::Merge(json!({"data": {"round": round.to_string()}}));
        maps.patch(&name, &PatchParams::default(), &patch).await.context("the write failed")?;
        let each = everybody_sees(round, started, sizes.watchers, &mut seen, &mut watchers).await?;
        last_ones.extend(each.iter().max());
        times.extend(each);
    }
    let what = format!("write seen by {} watchers", grouped(sizes.watchers));
    let spent = meter.read(&what, Unit::Milliseconds, sizes.rounds)?;

    let times = Spread::of(times).context("nothing was seen")?;
    let last_ones = Spread::of(last_ones).context("nothing was seen")?;
    let milliseconds = |of: &str, time| Measurement::time(format!("{what}, {of}"), Unit::Milliseconds, time);
    let mut measured = vec![
        milliseconds("p50", times.median()),
        milliseconds("p99", times.percentile(99)),
        milliseconds("last watcher, p50", last_ones.median()),
    ];
    measured.extend(spent);
    Ok(measured)
}

async fn open(
    client: &Client,
    since: &str,
    sizes: &Sizes,
    sightings: &mpsc::UnboundedSender<Sighting>,
) -> Result<JoinSet<Result<()>>> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    let path: Arc<str> = format!("{}?watch=true&resourceVersion={since}", maps.resource_url()).into();
    stream::iter(0..sizes.watchers)
        .map(|_| {
            let path = Arc::clone(&path);
            async move {
                let request = http::Request::get(&*path).body(Vec::new())?;
                client.request_stream(request).await.context("a watch could not be opened")
            }
        })
        .buffer_unordered(OPENED_AT_ONCE)
        .try_fold(JoinSet::new(), |mut watchers, lines| {
            watchers.spawn(watch(lines, sightings.clone()));
            async { Ok(watchers) }
        })
        .await
}

/// Reports each round that comes along; they must come in order and each exactly once.
async fn watch(lines: impl AsyncBufRead + Unpin, sightings: mpsc::UnboundedSender<Sighting>) -> Result<()> {
    let mut lines = lines.lines();
    let mut expected = 0;
    while let Some(line) = lines.try_next().await.context("a watch broke")? {
        let at = Instant::now();
        let event: Event = serde_json::from_str(&line).with_context(|| format!("not an event: {line}"))?;
        ensure!(event.kind == "MODIFIED", "an event that nobody caused: {line}");
        let round = event.object.data.round.as_deref().and_then(|round| round.parse().ok());
        ensure!(round == Some(expected), "round {expected} was to come, and this came: {line}");
        // Nobody listens any more when the measurement is over.
        let _ = sightings.send(Sighting { round: expected, at });
        expected += 1;
    }
    bail!("a watch ended by itself after {expected} rounds")
}

/// How long after `started` each watcher saw the round.
async fn everybody_sees(
    round: usize,
    started: Instant,
    count: usize,
    seen: &mut mpsc::UnboundedReceiver<Sighting>,
    watchers: &mut JoinSet<Result<()>>,
) -> Result<Vec<Duration>> {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    let mut times = Vec::with_capacity(count);
    while times.len() < count {
        let next = async {
            tokio::select! {
                sighting = seen.recv() => sighting.context("no watcher is left"),
                Some(ended) = watchers.join_next() => {
                    ended.context("a watcher was lost")??;
                    bail!("a watcher stopped watching")
                }
            }
        };
        let sighting = timeout_at(deadline, next).await.with_context(|| {
            format!("round {round}: {} of {count} watchers have seen the write after {PATIENCE:?}", times.len())
        })??;
        ensure!(sighting.round == round, "round {} was seen during round {round}", sighting.round);
        times.push(sighting.at - started);
    }
    Ok(times)
}
