//! The work itself, round by round.

use std::{sync::Arc, time::Duration};

use evenkeel_kafka::{Client, Error, Remedy, topic::Gaps};
use tokio::time::{Instant, sleep_until, timeout};

use super::shared::{Phase, Shared};
use crate::{
    aside::aside,
    clock::WallClock,
    config::{capacity::Capacities, settings},
    monitor::{
        sample::PartitionSample,
        sources::{Sampled, Scene, Source, source},
        store::Store,
    },
    said::chain,
};

/// Time between the halves of a first sample, whatever the interval: a plan should not have to wait for it.
const HALVES: Duration = Duration::from_secs(5);
/// The first pause when Kafka cannot be reached, and the longest.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(30)];
/// So long it may take to keep samples, or an interval if that is longer: the next are not to wait for these.
const KEPT_WITHIN: Duration = Duration::from_secs(5);
/// So long all that was kept is waited for. Then what can be read has to do: a broker that is down may have some of it, and
/// be down for days.
const WHOLE_WITHIN: Duration = Duration::from_secs(60);
/// Kept samples that are taken in at once.
const KEPT_AT_ONCE: usize = 10_000;

#[derive(Debug)]
pub(super) struct Rounds {
    shared: Arc<Shared>,
    settings: settings::Monitor,
    clock: WallClock,
    source: Box<dyn Source>,
    store: Store,
    failures: u32,
}

impl Rounds {
    pub(super) fn new(
        shared: Arc<Shared>,
        client: Client,
        settings: settings::Monitor,
        capacities: Arc<Capacities>,
        clock: WallClock,
    ) -> Self {
        let store = Store::new(client.clone(), &settings);
        let source = source(client, clock, capacities, &settings);
        Rounds { shared, settings, clock, source, store, failures: 0 }
    }

    /// Works until nobody wants it any more.
    pub(super) async fn run(mut self) {
        if !self.settings.skip_loading {
            self.load().await;
        }
        let interval = Duration::from_millis(self.settings.interval.unsigned_abs());
        loop {
            let began = Instant::now();
            let next = match self.round().await {
                Ok(half) => {
                    self.well();
                    began + if half { HALVES.min(interval) } else { interval }
                }
                Err(error) => Instant::now() + self.fail(&error).min(interval),
            };
            self.set(Phase::Waiting);
            tokio::select! {
                () = sleep_until(next) => {}
                () = self.shared.bell.notified() => {}
            }
        }
    }

    /// Looks, and unless it is paused takes samples and keeps them. Tells whether that was half a sample.
    async fn round(&mut self) -> Result<bool, Error> {
        if self.shared.told().paused {
            self.shared.look_for_sizes().await?;
            return Ok(false);
        }
        self.set(Phase::Sampling);
        let began = Instant::now();
        let sampled = self.fetch().await;
        match &sampled {
            Ok(_) => self.shared.told().fetches.well.took(began.elapsed()),
            Err(_) => self.shared.told().fetches.failed += 1,
        }
        let sampled = Arc::new(sampled?);
        let (shared, taken) = (Arc::clone(&self.shared), Arc::clone(&sampled));
        aside(move || shared.take(&taken.partitions)).await;
        let interval = Duration::from_millis(self.settings.interval.unsigned_abs());
        let kept = timeout(interval.max(KEPT_WITHIN), self.store.write(&sampled.partitions, &sampled.brokers)).await;
        let error = match kept {
            Ok(Ok(())) => return Ok(sampled.half),
            Ok(Err(error)) => chain(&error),
            Err(_) => "it takes too long".to_owned(),
        };
        tracing::warn!(error, "these samples are not kept");
        Ok(sampled.half)
    }

    async fn fetch(&mut self) -> Result<Sampled, Error> {
        let (sighting, sizes) = self.shared.look_for_sizes().await?;
        self.source.sample(Scene { sighting: &sighting, sizes: &sizes }).await
    }

    /// Loads what was kept, however long it takes to reach Kafka.
    async fn load(&mut self) {
        let began = Instant::now();
        loop {
            let gaps = if began.elapsed() < WHOLE_WITHIN { Gaps::Refuse } else { Gaps::Tell };
            match self.load_once(gaps).await {
                Ok(()) => return,
                Err(error @ (Error::Refused { .. } | Error::Records { .. } | Error::Shortened { .. }))
                    if gaps == Gaps::Tell || error.remedy() == Remedy::AskUser =>
                {
                    let error = chain(&error);
                    tracing::warn!(error, "stored samples cannot be loaded; going on without them");
                    return;
                }
                Err(error) => {
                    let pause = self.fail(&error);
                    tokio::time::sleep(pause).await;
                }
            }
        }
    }

    async fn load_once(&mut self, gaps: Gaps) -> Result<(), Error> {
        let now = self.clock.now();
        // Complete windows, and the one being filled.
        let reach = self.settings.windows.reach().saturating_add(self.settings.windows.length);
        let since = now.saturating_sub(reach).max(0);
        let mut some: Vec<PartitionSample> = Vec::with_capacity(KEPT_AT_ONCE);
        let mut latest = since;
        let shared = &self.shared;
        // An earlier attempt may have come half way.
        shared.begin_anew();
        let load = self.store.load(since, gaps, |sample| {
            latest = latest.max(sample.time);
            some.push(sample);
            if some.len() == KEPT_AT_ONCE {
                shared.take_kept(&mut some);
                let share = (latest - since) as f64 / (now - since).max(1) as f64;
                shared.told().phase = Phase::Loading(share.clamp(0.0, 1.0));
            }
        });
        load.await?;
        shared.take(&some);
        Ok(())
    }

    fn set(&self, phase: Phase) {
        self.shared.told().phase = phase;
    }

    fn well(&mut self) {
        self.failures = 0;
        if let Some(trouble) = self.shared.told().trouble.take() {
            tracing::info!(trouble, "over");
        }
    }

    /// Says why nothing is new, and how long to wait.
    fn fail(&mut self, error: &Error) -> Duration {
        let error = chain(error);
        tracing::warn!(error, "loads are not known at the moment");
        self.shared.told().trouble = Some(error);
        let [first, longest] = PAUSES;
        let pause = first.saturating_mul(1 << self.failures.min(16)).min(longest);
        self.failures += 1;
        pause
    }
}
