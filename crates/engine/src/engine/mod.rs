//! The parts joined: one engine over one Kafka.
//!
//! ```text
//!            monitor ---- what is known ----> planner --- order ---> executor ---> Kafka
//!               |                                ^                      |
//!               '---> detectors --- repairs -----|                      '--- journal
//!                                                |
//!   clients --> door --> desk: every request ----'
//! ```
//!
//! The door is there at once. It is shut until the journal is open, for only then is it known what a
//! life before this one has begun; while Kafka cannot be reached it says so.

mod desk;
mod healing;
mod plans;
mod reach;

use std::{
    collections::BTreeSet,
    sync::{Arc, OnceLock},
    time::Duration,
};

use evenkeel_kafka::{BrokerId, Client};
use evenkeel_rest::{Failure, Request, parameter::AnomalyType};
use reach::Reach;
use tokio::{sync::mpsc, task::AbortHandle};
use uuid::Uuid;

use crate::{
    clock::WallClock,
    config::{capacity::Capacities, settings::Settings},
    detect::{failures::Sight, service as detectors},
    executor::Executor,
    monitor::Monitor,
    notify::Courier,
    planner::Planner,
    said::chain,
    serve::{Door, DoorSettings, NoGuard, Steps},
};

pub use crate::serve::WORK;

/// The part of readiness that is about what is measured.
const MONITOR: &str = "monitor";
/// The part of readiness that is about whether anything can be recorded. The API is open all the same: a stop is heeded.
const RECORD: &str = "record";
/// How often it is looked whether the parts are well.
const LOOK_AFTER_PARTS: Duration = Duration::from_secs(1);

/// What is said of a task that has ended and must not.
const BROKEN: &str = "a part of the engine has failed; its log says why, and it has to be started again";

/// What an engine is made of.
#[derive(Debug)]
pub struct Parts {
    /// The cluster.
    pub client: Client,
    /// How it shall be.
    pub settings: Arc<Settings>,
    /// What brokers can carry.
    pub capacities: Arc<Capacities>,
    /// Who tells people.
    pub courier: Courier,
    /// The time of day.
    pub clock: WallClock,
}

/// Everything that works on requests.
pub struct Engine {
    settings: Arc<Settings>,
    capacities: Arc<Capacities>,
    monitor: Monitor,
    planner: Planner,
    reach: Reach,
    clock: WallClock,
    /// Not before the journal is open.
    acting: OnceLock<Acting>,
}

/// What needs the journal.
struct Acting {
    executor: Executor,
    detectors: detectors::Detectors,
}

/// A running engine. Dropping it ends this process's part; what is under way is carried on by the next.
pub struct Running {
    door: Arc<Door<Engine>>,
    life: AbortHandle,
}

impl Running {
    /// Where requests go.
    pub fn door(&self) -> &Arc<Door<Engine>> {
        &self.door
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.life.abort();
    }
}

impl Engine {
    /// Starts it. Needs a tokio runtime. Fails only if the file of users cannot be used.
    pub fn start(parts: Parts) -> Result<Running, NoGuard> {
        let Parts { client, settings, capacities, courier, clock } = parts;
        let monitor = Monitor::start(client.clone(), settings.monitor.clone(), Arc::clone(&capacities), clock);
        let engine = Arc::new(Engine {
            planner: Planner::new(Arc::clone(&settings), Arc::clone(&capacities)),
            settings: Arc::clone(&settings),
            capacities,
            monitor,
            reach: Reach::new(),
            clock,
            acting: OnceLock::new(),
        });
        let door_settings = DoorSettings {
            webserver: settings.webserver.clone(),
            tasks: settings.tasks.clone(),
            answer_within: settings.answer_within,
        };
        let door = Door::new(Arc::clone(&engine), door_settings, clock)?;
        Reach::begin(door.readiness());
        let work = tokio::spawn(live(engine, Arc::clone(&door), client, courier));
        let life = work.abort_handle();
        let readiness = door.readiness().clone();
        tokio::spawn(async move {
            if let Err(error) = work.await
                && error.is_panic()
            {
                tracing::error!(%error, "the engine's own work has ended");
                readiness.set(WORK, Some(BROKEN.to_owned()));
            }
        });
        Ok(Running { door, life })
    }

    /// Whether every task that must not end is there: only a fault of ours ends one.
    fn is_whole(&self) -> bool {
        let acts = self.acting.get().is_none_or(|acting| acting.executor.is_at_work() && acting.detectors.is_at_work());
        self.monitor.is_at_work() && acts
    }

    fn acting(&self) -> Result<&Acting, Failure> {
        self.acting.get().ok_or_else(|| Failure::not_now("the journal is not open yet"))
    }
}

/// Does all there is to do, until another engine takes over: then nothing more is measured, detected or mended here.
async fn live(engine: Arc<Engine>, door: Arc<Door<Engine>>, client: Client, courier: Courier) {
    let telling = async {
        tokio::join!(tell_readiness(&engine, &door), engine.reach.watch(&client, door.readiness()));
    };
    tokio::select! {
        () = telling => {}
        () = act(&engine, &door, client.clone(), courier) => {
            engine.monitor.retire();
            if let Some(acting) = engine.acting.get() {
                acting.detectors.end();
            }
        }
    }
}

/// Opens the journal, begins to act, and goes on until another engine takes over.
async fn act(engine: &Arc<Engine>, door: &Arc<Door<Engine>>, client: Client, courier: Courier) {
    let waiting = Arc::clone(door);
    let (executor, recorded) =
        Executor::open(client, &engine.settings.executor, engine.clock, move |why| waiting.waits_for_journal(why))
            .await;
    let (repairs, wanted) = mpsc::channel(1);
    let detectors = begin_to_detect(engine, &executor, repairs, courier);
    let switches = executor.switches();
    for kind in AnomalyType::ALL {
        if let Some(on) = switches.heals(*kind, engine.settings.detectors.enabled.contains(kind)) {
            detectors.switch(*kind, on);
        }
    }
    if let Some(reason) = &switches.paused {
        engine.monitor.pause(reason);
    }
    let mut missing = detectors.missing_brokers();
    if engine.acting.set(Acting { executor: executor.clone(), detectors }).is_err() {
        // Nobody else sets it.
        return;
    }
    door.join(&executor, recorded);
    let mut fenced = executor.fenced();
    let remembering = async {
        while missing.changed().await.is_ok() {
            let brokers = missing.borrow_and_update().clone();
            executor.remember_missing(brokers.into_iter().map(|(id, since)| (BrokerId(id), since)).collect()).await;
        }
    };
    // Detectors that end by a fault of theirs end nothing else.
    let serving = async {
        tokio::join!(
            healing::heal(engine, wanted),
            remembering,
            forget_who_left(engine, &executor),
            plan_ahead(engine, &executor)
        );
        std::future::pending::<()>().await;
    };
    tokio::select! {
        _ = fenced.wait_for(|fenced| *fenced) => {}
        () = serving => {}
    }
}

/// Forgets the removal of brokers that have left the cluster since: whoever comes with such an id is another one, and may
/// be given data.
async fn forget_who_left(engine: &Engine, executor: &Executor) {
    let mut looks = engine.monitor.changed();
    loop {
        // In this order: whoever is removed was seen before, so it is missing in no later look unless it has left.
        let removed = executor.history().removed;
        let seen = engine.monitor.sighting();
        let has_left = |id: &BrokerId| seen.as_ref().is_some_and(|seen| seen.has_left(id.0));
        let left: BTreeSet<BrokerId> = removed.into_keys().filter(has_left).collect();
        if !left.is_empty() {
            match executor.forget_brokers(&left, &BTreeSet::new()).await {
                Ok(_) => tracing::info!(brokers = ?left, "brokers that were removed have left the cluster"),
                Err(error) => tracing::warn!(error = chain(&error), "who has left the cluster is not on record"),
            }
        }
        if looks.changed().await.is_err() {
            return;
        }
    }
}

/// Makes the plan that a request without goals asks for whenever something new is known, so that it is there when somebody
/// asks: `isProposalReady` is what scripts wait for.
async fn plan_ahead(engine: &Engine, executor: &Executor) {
    if !engine.settings.goals.plans_ahead {
        return;
    }
    let (mut known, mut runs) = (engine.monitor.changed(), executor.is_running());
    let plain = Request::Proposals(Default::default());
    loop {
        known.borrow_and_update();
        if !*runs.borrow_and_update()
            && let Err(why) = engine.propose(&plain, &executor.history(), &Steps::default()).await
        {
            tracing::debug!(%why, "no plan is made ahead");
        }
        let fed = tokio::select! {
            changed = known.changed() => changed.is_ok(),
            changed = runs.changed() => changed.is_ok(),
        };
        if !fed {
            return;
        }
    }
}

/// Says whether loads are measured and whether all parts are at work, ever again.
async fn tell_readiness(engine: &Engine, door: &Door<Engine>) {
    let mut was_whole = true;
    loop {
        let trouble = engine.monitor.trouble().or_else(|| {
            let loading = !engine.monitor.is_ready();
            loading.then(|| "is still loading what was measured before".to_owned())
        });
        door.readiness().set(MONITOR, trouble);
        let unrecorded = engine.acting.get().and_then(|acting| acting.executor.journal_trouble());
        let fenced = engine.acting.get().is_some_and(|acting| *acting.executor.fenced().borrow());
        let unrecorded = unrecorded.filter(|_| !fenced).map(|why| format!("The journal cannot be written: {why}"));
        door.readiness().set(RECORD, unrecorded);
        let whole = engine.is_whole();
        if was_whole && !whole {
            tracing::error!("a part of the engine has ended that must not");
        }
        door.readiness().set(WORK, (!whole).then(|| BROKEN.to_owned()));
        was_whole = whole;
        tokio::time::sleep(LOOK_AFTER_PARTS).await;
    }
}

fn begin_to_detect(
    engine: &Arc<Engine>,
    executor: &Executor,
    repairs: mpsc::Sender<detectors::Repair>,
    courier: Courier,
) -> detectors::Detectors {
    // They do not keep the engine alive: it ends with whoever runs it, and they with it.
    let (watching, judging, remembering) = (Arc::downgrade(engine), Arc::downgrade(engine), Arc::downgrade(engine));
    let inputs = detectors::Inputs {
        generations: engine.monitor.changed(),
        executing: executor.is_running(),
        sight: Box::new(move || Sight::seen(&watching.upgrade()?.monitor.sighting()?.view)),
        model: Arc::new(move || match judging.upgrade() {
            Some(engine) => healing::model(&engine),
            None => Err(detectors::Unready::Loading),
        }),
        history: Box::new(move || {
            let engine = remembering.upgrade();
            let acting = engine.as_ref().and_then(|engine| engine.acting.get());
            acting.map(|acting| acting.executor.history()).unwrap_or_default()
        }),
        ids: Box::new(Uuid::new_v4),
        missed: executor.history().missing.into_iter().map(|(broker, since)| (broker.0, since)).collect(),
        repairs,
        courier,
        clock: engine.clock,
    };
    detectors::Detectors::start(engine.settings.detectors.clone(), engine.settings.goals.clone(), inputs)
}
