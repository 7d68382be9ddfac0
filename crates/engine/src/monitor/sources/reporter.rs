//! From the topic that the reporter plug-in on each broker writes to.

use std::collections::BTreeMap;

use evenkeel_kafka::{
    Error,
    calls::offsets::Isolation,
    topic::{Gaps, Start, TopicReader, Until},
};

use super::{Ground, Sampled, Sampling, Scene, Source};
use crate::{
    monitor::{
        broker_sample::BrokerSample,
        derive::{Leaders, derive},
        raw::RawMetric,
        told::Told,
    },
    watch::Sighting,
};

/// How far back the first read goes, at least: brokers report once a minute.
const FIRST_READ: i64 = 120_000;
/// What was written so many intervals ago says nothing about the present.
const STALE_AFTER: i64 = 3;

/// Reads on where it ended.
#[derive(Debug)]
pub(super) struct Reporter {
    ground: Ground,
    /// Where each partition goes on, and when that was found out.
    next: Option<(BTreeMap<i32, i64>, i64)>,
}

impl Reporter {
    pub(super) fn new(ground: Ground) -> Self {
        Reporter { ground, next: None }
    }

    /// Whether there is such a topic.
    pub(super) fn is_there(&self, sighting: &Sighting) -> bool {
        sighting.view.partitions.contains_key(&evenkeel_kafka::TopicPartition::new(&self.ground.topic, 0))
    }

    async fn take(&mut self, scene: Scene<'_>) -> Result<Sampled, Error> {
        if !self.is_there(scene.sighting) {
            tracing::warn!(topic = self.ground.topic, "there is no such topic: no broker has reported yet");
            return Ok(Sampled::default());
        }
        let (told, latest) = self.read().await?;
        Ok(latest.map(|time| sampled(told, time, scene.sighting, &self.ground)).unwrap_or_default())
    }

    /// What was written since it was read last, and when the latest of it was; nobody can have measured in the future.
    async fn read(&mut self) -> Result<(Told, Option<i64>), Error> {
        let now = self.ground.clock.now();
        let interval = self.ground.interval;
        // Whatever goes wrong on the way, the next read does not go on from an old place.
        let start = match self.next.take() {
            Some((offsets, read_at)) if now - read_at <= STALE_AFTER * interval => Start::Offsets(offsets),
            _ => Start::AtOrAfter(now - interval.max(FIRST_READ)),
        };
        let (client, topic) = (self.ground.client.clone(), &self.ground.topic);
        // The topic may have a single replica of each partition: a broker that dies takes some of the metrics along, and
        // must not take all of them.
        let mut reader =
            TopicReader::open_with(client, topic, &start, Until::End, Isolation::Uncommitted, Gaps::Tell).await?;
        let (mut told, mut latest) = (Told::default(), None);
        let mut unreadable = 0_u64;
        while let Some(records) = reader.next().await? {
            for record in records {
                match record.stored.record.value.as_deref().map(RawMetric::read) {
                    Some(Ok(metric)) => {
                        told.hear(&metric);
                        latest = latest.max(Some(metric.time).filter(|time| *time <= self.ground.clock.now()));
                    }
                    Some(Err(error)) => {
                        unreadable += 1;
                        tracing::debug!(%error, "a record of the reporter's topic cannot be read");
                    }
                    None => {}
                }
            }
        }
        if unreadable > 0 {
            tracing::warn!(unreadable, topic, "some records cannot be read");
        }
        if !reader.gaps().is_empty() {
            let partitions: Vec<i32> = reader.gaps().keys().copied().collect();
            tracing::warn!(?partitions, topic, "nobody can be asked for these partitions of the reporters' topic");
        }
        let positions = reader.positions();
        if let Some(error) = reader.nothing_read() {
            return Err(error);
        }
        self.next = Some((positions, now));
        Ok((told, latest))
    }
}

impl Source for Reporter {
    fn sample<'a>(&'a mut self, scene: Scene<'a>) -> Sampling<'a> {
        Box::pin(self.take(scene))
    }
}

/// Samples out of what brokers told, dated by the latest of it.
fn sampled(told: Told, time: i64, sighting: &Sighting, ground: &Ground) -> Sampled {
    let leading = sighting.view.partitions.iter().filter_map(|(name, seen)| Some((name, seen.leader?)));
    let cores = sighting.view.brokers.keys().filter_map(|id| Some((*id, ground.capacities.of(*id)?.0.cores)));
    let leaders = Leaders { of: leading.collect(), cores: cores.collect() };
    let derived = derive(told, &leaders, ground.weights, time);
    if !derived.silent.is_empty() {
        tracing::info!(brokers = ?derived.silent, "brokers told too little to be believed");
    }
    let brokers = derived.brokers.iter().filter_map(|(id, told)| {
        let host = sighting.view.brokers.get(id).map_or("", |broker| broker.host.as_str());
        BrokerSample::of(*id, host, time, told, derived.held.get(id).copied().unwrap_or(0.0))
    });
    let brokers = brokers.collect();
    Sampled { partitions: derived.partitions, brokers, half: false }
}
