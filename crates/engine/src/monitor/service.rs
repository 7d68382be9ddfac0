//! The monitor at work: loads what was kept, then looks and takes samples, again and again, whether or
//! not something is being carried out.
//!
//! A handle is cheap to clone and never waits for Kafka, save for [`Monitor::look_now`]. Work ends
//! with the last handle. While Kafka cannot be reached, it is tried again ever more slowly, and
//! [`Monitor::trouble`] says why nothing is new.

mod rounds;
mod shared;

use std::{collections::BTreeMap, sync::Arc};

use evenkeel_balancer::cluster::Resources;
use evenkeel_kafka::{Client, Error, TopicPartition};
use evenkeel_rest::{
    body::state::{MonitorFigures, MonitorPhase, MonitorState},
    json::{Double, Key},
};
use rounds::Rounds;
use shared::{Phase, Shared};
use tokio::{sync::watch, task::JoinHandle};

use super::{
    sample::Values,
    windows::{Aggregate, NotEnough, Requirement},
};
use crate::{
    clock::WallClock,
    config::{capacity::Capacities, settings},
    metrics::Timer,
    watch::Sighting,
};

/// What a plan is made on.
#[derive(Debug, Clone, PartialEq)]
pub struct Known {
    /// Who is there and what lies where.
    pub sighting: Arc<Sighting>,
    /// What it carries.
    pub loads: Arc<Aggregate>,
    /// What nobody measures. What is measured and not known well enough yet is not among it.
    pub unmeasured: Resources,
    /// Of which generation all of it is.
    pub generation: u64,
}

impl Known {
    /// As it is once all copies that are being made are called off.
    #[must_use]
    pub fn without_copies(&self) -> Known {
        let mut seen = Sighting::clone(&self.sighting);
        seen.view = std::mem::take(&mut seen.view).without_copies();
        seen.moving.clear();
        Known { sighting: Arc::new(seen), ..self.clone() }
    }
}

/// How samples were fetched since the process began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fetches {
    /// Well.
    pub well: Timer,
    /// In vain.
    pub failed: u64,
}

/// The handle.
#[derive(Debug, Clone)]
pub struct Monitor {
    shared: Arc<Shared>,
    work: Arc<Work>,
}

/// Ends with the last handle.
#[derive(Debug)]
struct Work(JoinHandle<()>);

impl Drop for Work {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Monitor {
    /// Begins to work. Needs a tokio runtime.
    pub fn start(
        client: Client,
        settings: settings::Monitor,
        capacities: Arc<Capacities>,
        clock: WallClock,
    ) -> Monitor {
        let shared = Arc::new(Shared::new(client.clone(), &settings, Arc::clone(&capacities), clock));
        let rounds = Rounds::new(Arc::clone(&shared), client, settings, capacities, clock);
        Monitor { shared, work: Arc::new(Work(tokio::spawn(rounds.run()))) }
    }

    /// The latest look.
    pub fn sighting(&self) -> Option<Arc<Sighting>> {
        self.shared.sighting()
    }

    /// A fresh look, which is the latest then. Whoever asks while somebody looks gets the look after.
    pub async fn look_now(&self) -> Result<Arc<Sighting>, Error> {
        self.shared.look_now().await
    }

    /// Changes when what is known changes: the windows that plans are made on, or the cluster.
    pub fn generation(&self) -> u64 {
        *self.shared.changes.borrow()
    }

    /// Wakes when the generation changes.
    pub fn changed(&self) -> watch::Receiver<u64> {
        self.shared.changes.subscribe()
    }

    /// Whether enough is known, and if so what nobody measures. Costs nothing.
    pub fn is_known(&self, requirement: Requirement) -> Option<Resources> {
        self.shared.is_known(requirement)
    }

    /// What is known, if it is enough. Asked again within a generation, it costs nothing.
    pub fn known(&self, requirement: Requirement) -> Result<Arc<Known>, NotEnough> {
        self.shared.known(requirement)
    }

    /// The most that each partition has carried in the windows of what is known.
    pub fn peaks(&self, known: &Known) -> BTreeMap<TopicPartition, Values> {
        self.shared.peaks(known)
    }

    /// How samples were fetched so far.
    pub fn fetches(&self) -> Fetches {
        self.shared.told().fetches
    }

    /// Takes no samples from now on.
    pub fn pause(&self, reason: &str) {
        self.shared.set_paused(true, reason);
    }

    /// Takes samples again.
    pub fn resume(&self, reason: &str) {
        self.shared.set_paused(false, reason);
    }

    /// Whether it was told to wait.
    pub fn is_paused(&self) -> bool {
        self.shared.told().paused
    }

    /// Why nothing is new, if so.
    pub fn trouble(&self) -> Option<String> {
        self.shared.told().trouble.clone()
    }

    /// Measures and keeps nothing more: another engine does.
    pub fn retire(&self) {
        self.work.0.abort();
        let mut told = self.shared.told();
        told.retired = true;
        told.trouble = Some("another engine measures now".to_owned());
    }

    /// Whether it works, or was told not to: only a fault of ours ends it otherwise.
    pub fn is_at_work(&self) -> bool {
        self.shared.told().retired || !self.work.0.is_finished()
    }

    /// Whether what was kept has been loaded and the cluster has been seen.
    pub fn is_ready(&self) -> bool {
        let told = self.shared.told();
        told.sighting.is_some() && !matches!(told.phase, Phase::Loading(_))
    }

    /// The state's body; `verbose` names the windows.
    pub fn state(&self, verbose: bool) -> MonitorState {
        let told = self.shared.told();
        let (state, loading) = match told.phase {
            Phase::Loading(share) => (MonitorPhase::Loading, Some(Double(share * 100.0))),
            _ if told.paused => (MonitorPhase::Paused, None),
            Phase::Sampling => (MonitorPhase::Sampling, None),
            Phase::Waiting => (MonitorPhase::Running, None),
        };
        let figures = &told.figures;
        let windows = || figures.by_window.iter().map(|(end, share)| (Key(*end), Double(*share))).collect();
        let total = told.sighting.as_ref().map_or(0, |sighting| sighting.view.partitions.len());
        let coverage = if total == 0 { 0.0 } else { figures.valid as f64 / total as f64 * 100.0 };
        let reason = || told.reason.clone().unwrap_or_else(|| "N/A".to_owned());
        MonitorState {
            state,
            figures: Some(MonitorFigures {
                training_pct: Double(0.0),
                trained: false,
                num_flawed_partitions: figures.stretched as u64,
                monitored_windows: verbose.then(windows),
                num_total_partitions: total as u64,
                num_monitored_windows: figures.usable as u64,
                monitoring_coverage_pct: Double(coverage),
                num_valid_partitions: figures.valid as u64,
                num_total_windows: figures.by_window.len() as u64,
            }),
            reason_of_latest_pause_or_resume: matches!(state, MonitorPhase::Running | MonitorPhase::Paused)
                .then(reason),
            bootstrap_progress_pct: None,
            loading_progress_pct: loading,
            error: None,
        }
    }
}
