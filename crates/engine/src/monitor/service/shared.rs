//! What the work and the handles share: the windows behind one lock, small things behind another, so
//! that a question about the state never waits for an aggregation.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use evenkeel_balancer::cluster::Resources;
use evenkeel_kafka::{Client, Error, TopicPartition};
use tokio::{
    sync::{Mutex as Turn, Notify, watch},
    time::Instant,
};

use super::{Fetches, Known};
use crate::{
    aside::aside,
    clock::WallClock,
    config::{capacity::Capacities, settings},
    model::unmeasured,
    monitor::{
        sample::{PartitionSample, Values},
        windows::{Coverage, Layout, NotEnough, Requirement, Windows},
    },
    watch::{Dirs, Sighting, Sizes, Watcher},
};

/// Clocks of brokers, and of engines before this one, may be ahead of ours by so much, in milliseconds.
const AHEAD: i64 = 60_000;

#[derive(Debug)]
pub(super) struct Shared {
    clock: WallClock,
    valid_ratio: f64,
    layout: Layout,
    /// Who looks, looks alone; and who only wants to know what lies where does not wait for sizes.
    watcher: Turn<Watcher>,
    size_watcher: Turn<Watcher>,
    data: Mutex<Data>,
    told: Mutex<Told>,
    pub(super) changes: watch::Sender<u64>,
    /// Rung when it is paused or resumed.
    pub(super) bell: Notify,
}

/// What plans are made on.
#[derive(Debug)]
struct Data {
    windows: Windows,
    /// Which windows the generation was made of.
    counted: u64,
    generation: u64,
    coverage: Coverage,
    /// What was asked for in this generation, by how many windows it uses.
    known: BTreeMap<usize, Arc<Known>>,
}

/// What is told at once.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) sighting: Option<Arc<Sighting>>,
    /// When the look behind it began.
    began: Option<Instant>,
    pub(super) phase: Phase,
    pub(super) paused: bool,
    pub(super) retired: bool,
    pub(super) reason: Option<String>,
    pub(super) trouble: Option<String>,
    pub(super) figures: Figures,
    pub(super) fetches: Fetches,
}

/// What the work is at.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Phase {
    /// This share of what was kept is loaded.
    Loading(f64),
    Sampling,
    Waiting,
}

impl Default for Phase {
    fn default() -> Self {
        Phase::Loading(0.0)
    }
}

/// Numbers about the windows.
#[derive(Debug, Default)]
pub(super) struct Figures {
    /// Windows that plans can be made on.
    pub(super) usable: usize,
    /// Partitions that are valid in them.
    pub(super) valid: usize,
    /// Of those, the ones with something stretched.
    pub(super) stretched: usize,
    pub(super) by_window: Vec<(i64, f64)>,
    coverage: Coverage,
    /// What nobody measures.
    unmeasured: Resources,
}

impl Shared {
    pub(super) fn new(
        client: Client,
        settings: &settings::Monitor,
        capacities: Arc<Capacities>,
        clock: WallClock,
    ) -> Self {
        Shared {
            clock,
            valid_ratio: settings.valid_ratio,
            layout: settings.windows,
            watcher: Turn::new(Watcher::new(client.clone(), clock, Arc::clone(&capacities))),
            size_watcher: Turn::new(Watcher::new(client, clock, capacities)),
            data: Mutex::new(Data {
                windows: Windows::new(settings.windows),
                counted: 0,
                generation: 0,
                coverage: Coverage::default(),
                known: BTreeMap::new(),
            }),
            told: Mutex::default(),
            changes: watch::channel(0).0,
            bell: Notify::new(),
        }
    }

    pub(super) fn told(&self) -> MutexGuard<'_, Told> {
        lock(&self.told)
    }

    pub(super) fn sighting(&self) -> Option<Arc<Sighting>> {
        self.told().sighting.clone()
    }

    pub(super) fn set_paused(&self, paused: bool, reason: &str) {
        {
            let mut told = self.told();
            told.paused = paused;
            told.reason = Some(reason.to_owned());
        }
        self.bell.notify_one();
    }

    /// A look of which the begin is not before now.
    pub(super) async fn look_now(self: &Arc<Self>) -> Result<Arc<Sighting>, Error> {
        let asked = Instant::now();
        let mut watcher = self.watcher.lock().await;
        let seen = {
            let told = self.told();
            told.sighting.clone().filter(|_| told.began.is_some_and(|began| began > asked))
        };
        match seen {
            Some(seen) => Ok(seen),
            None => Ok(self.look(&mut watcher, Dirs::WhereTheyMatter).await?.0),
        }
    }

    /// A look for which everybody is asked for sizes.
    pub(super) async fn look_for_sizes(self: &Arc<Self>) -> Result<(Arc<Sighting>, Sizes), Error> {
        let mut watcher = self.size_watcher.lock().await;
        self.look(&mut watcher, Dirs::All).await
    }

    async fn look(self: &Arc<Self>, watcher: &mut Watcher, dirs: Dirs) -> Result<(Arc<Sighting>, Sizes), Error> {
        let began = Instant::now();
        let before = self.sighting();
        let (sighting, sizes) = watcher.look(dirs, before.as_deref()).await?;
        let sighting = Arc::new(sighting);
        let (shared, seen) = (Arc::clone(self), Arc::clone(&sighting));
        aside(move || shared.seen(&seen, began)).await;
        Ok((sighting, sizes))
    }

    /// Takes a look in. Of many partitions that takes a moment, as [`Shared::take`] does.
    fn seen(&self, sighting: &Arc<Sighting>, began: Instant) {
        let (taken, mut data) = (Instant::now(), lock(&self.data));
        // Somebody may have begun later and come back sooner.
        if self.told().began.is_some_and(|newer| newer > began) {
            return;
        }
        let is_new = self.sighting().is_none_or(|before| before.view != sighting.view);
        if is_new {
            data.windows.retain(|partition| sighting.view.partitions.contains_key(partition));
        }
        {
            let mut told = self.told();
            told.sighting = Some(Arc::clone(sighting));
            told.began = Some(began);
        }
        // Loads and all, so that one picture of the cluster is in memory and not two.
        for known in data.known.values_mut() {
            *known = Arc::new(Known { sighting: Arc::clone(sighting), ..(**known).clone() });
        }
        self.count(&mut data, is_new);
        tracing::debug!(is_new, ms = taken.elapsed().as_millis(), "took a look in");
    }

    /// Takes samples in.
    pub(super) fn take(&self, partitions: &[PartitionSample]) {
        let mut data = lock(&self.data);
        self.add(&mut data, partitions);
        self.count(&mut data, false);
    }

    /// Forgets what was loaded so far.
    pub(super) fn begin_anew(&self) {
        let mut data = lock(&self.data);
        data.windows = Windows::new(self.layout);
    }

    /// Takes samples in that were kept; whoever loads counts at the end.
    pub(super) fn take_kept(&self, some: &mut Vec<PartitionSample>) {
        let mut data = lock(&self.data);
        self.add(&mut data, some);
        some.clear();
    }

    /// One sample of tomorrow would make everything of today too old: such are left out.
    fn add(&self, data: &mut Data, samples: &[PartitionSample]) {
        let latest = self.clock.now().saturating_add(AHEAD);
        let (mut left_out, mut furthest) = (0_u64, 0);
        for sample in samples {
            if sample.time <= latest {
                data.windows.add(sample);
            } else {
                left_out += 1;
                furthest = sample.time.max(furthest);
            }
        }
        if left_out > 0 {
            tracing::warn!(samples = left_out, until = furthest, "samples from the future are left out");
        }
    }

    /// A new generation, if something has changed.
    fn count(&self, data: &mut Data, is_new: bool) {
        if !is_new && data.counted == data.windows.generation() {
            return;
        }
        let Some(sighting) = self.sighting() else { return };
        data.counted = data.windows.generation();
        data.generation += 1;
        data.known.clear();
        data.coverage = data.windows.coverage(sighting.view.partitions.keys());
        let usable = data.coverage.usable(self.valid_ratio);
        // Without a usable window the newest one still tells how far it is.
        let (valid, stretched) = data.coverage.valid(usable.max(1));
        let unmeasured = unmeasured(|metric| data.windows.is_measured(metric));
        let (by_window, coverage) = (data.coverage.by_window().collect(), data.coverage.clone());
        self.told().figures = Figures { usable, valid, stretched, by_window, coverage, unmeasured };
        self.changes.send_replace(data.generation);
    }

    /// Whether enough is known, and what nobody measures; nothing is put together for that.
    pub(super) fn is_known(&self, requirement: Requirement) -> Option<Resources> {
        let told = self.told();
        told.sighting.as_ref()?;
        told.figures.coverage.accepted(requirement, self.clock.now()).ok()?;
        Some(told.figures.unmeasured)
    }

    pub(super) fn peaks(&self, known: &Known) -> BTreeMap<TopicPartition, Values> {
        lock(&self.data).windows.peaks(known.sighting.view.partitions.keys(), &known.loads.windows)
    }

    pub(super) fn known(&self, requirement: Requirement) -> Result<Arc<Known>, NotEnough> {
        let now = self.clock.now();
        let mut data = lock(&self.data);
        let Some(sighting) = self.sighting() else {
            return Err(NotEnough::NoWindow { now, newest: 0, oldest: 1 });
        };
        let accepted = data.coverage.accepted(requirement, now)?;
        if let Some(known) = data.known.get(&accepted) {
            return Ok(Arc::clone(known));
        }
        let began = Instant::now();
        let loads = data.windows.aggregate_over(sighting.view.partitions.keys(), &data.coverage, accepted);
        let (partitions, ms) = (loads.loads.len(), began.elapsed().as_millis());
        tracing::debug!(partitions, windows = accepted, ms, "put loads together");
        let unmeasured = self.told().figures.unmeasured;
        let known = Arc::new(Known { sighting, loads: Arc::new(loads), unmeasured, generation: data.generation });
        data.known.insert(accepted, Arc::clone(&known));
        Ok(known)
    }
}

/// What is behind a lock is whole between two holders, even if one of them panicked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
