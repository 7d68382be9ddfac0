//! From outside: sizes that brokers tell of their directories, offsets that leaders tell of their
//! logs, and how both changed since the last look.

use std::collections::BTreeMap;

use evenkeel_kafka::{
    Client, Error, TopicPartition,
    calls::offsets::{Isolation, Place},
};
use futures::{StreamExt, stream};
use tokio::time::{Duration, timeout};

use super::{Ground, Sampled, Sampling, Scene, Source};
use crate::monitor::zero_touch::{Look, Seen, between};

/// A look older than so many intervals says nothing about the present.
const STALE_AFTER: i64 = 3;
/// How long one leader may take to tell of its logs: one that is down holds nobody else up.
const PATIENCE: Duration = Duration::from_secs(10);
/// Leaders asked at the same time.
const AT_ONCE: usize = 8;

/// Looks, and remembers the last look.
#[derive(Debug)]
pub(super) struct Outside {
    ground: Ground,
    before: Option<Look>,
}

impl Outside {
    pub(super) fn new(ground: Ground) -> Self {
        Outside { ground, before: None }
    }

    async fn take(&mut self, scene: Scene<'_>) -> Result<Sampled, Error> {
        let led = led(scene);
        let client = &self.ground.client;
        let asked: Vec<_> = led.into_iter().map(|(leader, partitions)| ask(client, leader, partitions)).collect();
        let leaders = asked.len();
        let mut answers = stream::iter(asked).buffer_unordered(AT_ONCE);
        let mut look = Look { time: scene.sizes.at, partitions: BTreeMap::new() };
        let mut failed = None;
        let mut answered = 0;
        while let Some(answer) = answers.next().await {
            match answer {
                Ok(offsets) => {
                    answered += 1;
                    look.partitions.extend(offsets.into_iter().filter_map(|(partition, ends)| {
                        let seen = seen(scene, &partition, ends)?;
                        Some((partition, seen))
                    }));
                }
                Err(error) => failed = error.or(failed),
            }
        }
        drop(answers);
        // Of no leader at all: the cluster is out of reach, and this was no look.
        if let (0, 1.., Some(error)) = (answered, leaders, failed) {
            return Err(error);
        }
        Ok(self.compare(look))
    }

    /// Samples, if there is something to compare with.
    fn compare(&mut self, look: Look) -> Sampled {
        let fresh = |before: &Look| look.time - before.time <= STALE_AFTER * self.ground.interval;
        let before = self.before.take().filter(fresh);
        let sampled = match &before {
            Some(before) => Sampled { partitions: between(before, &look), ..Sampled::default() },
            None => Sampled { half: true, ..Sampled::default() },
        };
        self.before = Some(look);
        sampled
    }
}

impl Source for Outside {
    fn sample<'a>(&'a mut self, scene: Scene<'a>) -> Sampling<'a> {
        Box::pin(self.take(scene))
    }
}

/// Partitions by leader, as far as their size there is known.
fn led(scene: Scene<'_>) -> BTreeMap<i32, Vec<TopicPartition>> {
    let mut led: BTreeMap<i32, Vec<TopicPartition>> = BTreeMap::new();
    for partition in scene.sizes.of.keys() {
        let leader = scene.sighting.view.partitions.get(partition).and_then(|seen| seen.leader);
        if let Some(leader) = leader {
            led.entry(leader).or_default().push(partition.clone());
        }
    }
    led
}

fn seen(scene: Scene<'_>, partition: &TopicPartition, (begins, ends): (i64, i64)) -> Option<Seen> {
    let view = scene.sighting.view.partitions.get(partition)?;
    Some(Seen {
        leader: view.leader?,
        followers: view.replicas.len().saturating_sub(1),
        bytes: *scene.sizes.of.get(partition)?,
        begins,
        ends,
    })
}

/// Where logs begin and end; an error without a cause is one that took too long.
type Ends = Result<Vec<(TopicPartition, (i64, i64))>, Option<Error>>;

async fn ask(client: &Client, leader: i32, partitions: Vec<TopicPartition>) -> Ends {
    let asking = async {
        let mut places: BTreeMap<TopicPartition, Place> =
            partitions.into_iter().map(|partition| (partition, Place::Earliest)).collect();
        let begins = client.list_offsets(&places, Isolation::Uncommitted).await?;
        places.values_mut().for_each(|place| *place = Place::Latest);
        let mut ends = client.list_offsets(&places, Isolation::Uncommitted).await?;
        let both = begins.into_iter().filter_map(|(partition, begins)| {
            let ends = ends.remove(&partition)?.ok()??;
            Some((partition, (begins.ok()??, ends)))
        });
        Ok(both.collect())
    };
    let answer = timeout(PATIENCE, asking).await;
    let failed = match answer {
        Ok(Ok(offsets)) => return Ok(offsets),
        Ok(Err(error)) => Some(error),
        Err(_) => None,
    };
    tracing::debug!(leader, error = ?failed, "a broker did not tell where its logs end");
    Err(failed)
}
