//! Every request that the door lets in, and who of the parts answers it.

use std::{future::Future, sync::Arc};

use evenkeel_kafka::Error;
use evenkeel_rest::{
    Failure, Request,
    body::{Body as _, Message, Step, state::AnalyzerState},
    parameter::Substate,
    request,
};
use uuid::Uuid;

use super::Engine;
use crate::{
    answers::{self, AdminPlan, AdminSeen, ClusterSeen, GoalSeen, Parts},
    aside::aside,
    journal::Switches,
    metrics::{self, Page},
    monitor::{Known, windows::Requirement},
    proposals::{self, not_enough},
    said::failure,
    serve::{Answered, Asked, Desk, Steps},
    tasks::UserTask,
    watch::Sighting,
};

impl Desk for Engine {
    fn answer(&self, asked: Asked, steps: Steps) -> impl Future<Output = Result<Answered, Failure>> + Send {
        self.work_out(asked, steps)
    }

    async fn record(&self, id: Uuid, task: &UserTask) -> Result<(), Error> {
        match self.acting.get() {
            Some(acting) => acting.executor.record_task(id, task).await,
            None => Ok(()),
        }
    }

    async fn forget(&self, tasks: &[(Uuid, Arc<UserTask>)]) -> Result<(), Error> {
        match self.acting.get() {
            Some(acting) => acting.executor.forget_tasks(tasks).await,
            None => Ok(()),
        }
    }

    fn measure(&self, page: &mut Page) {
        let figures = self.monitor.state(false).figures;
        metrics::monitor(page, figures.as_ref(), self.monitor.sighting().as_deref(), self.monitor.fetches());
        metrics::planner(page, self.planner.tally());
        if let Some(acting) = self.acting.get() {
            metrics::executor(page, &acting.executor);
            metrics::detectors(page, &acting.detectors);
        }
    }
}

impl Engine {
    async fn work_out(&self, asked: Asked, steps: Steps) -> Result<Answered, Failure> {
        match &asked.request {
            Request::State(it) => {
                let body = self.state(it)?;
                if !it.verbose && !it.super_verbose {
                    return Ok(asked.answered(|| body.json(), || body.text() + &self.troubles()));
                }
                let troubles = self.troubles();
                Ok(aside(move || asked.answered(|| body.json(), || body.text() + &troubles)).await)
            }
            Request::Load(it) => {
                let body = self.load(it.clone(), &steps).await?;
                Ok(asked.answered(|| body.json(), || body.text()))
            }
            Request::PartitionLoad(it) => {
                let (it, requirement) = (it.clone(), proposals::partition_requirement(it, &self.settings.monitor));
                let (known, monitor) = (self.known_for(requirement, &steps).await?, self.monitor.clone());
                aside(move || {
                    let peaks = it.max_load.then(|| monitor.peaks(&known));
                    let loads = peaks.as_ref().unwrap_or(&known.loads.loads);
                    let body = proposals::partition_load(&it, &known.sighting.view, loads)?;
                    Ok(asked.answered(|| body.json(), || body.text()))
                })
                .await
            }
            Request::KafkaClusterState(it) => {
                let (it, seen) = (it.clone(), self.look().await?);
                aside(move || {
                    let body = answers::cluster_state(&it, &ClusterSeen::of(&seen))?;
                    Ok(asked.answered(|| body.json(), || body.text()))
                })
                .await
            }
            Request::StopProposalExecution(it) => {
                let executor = &self.acting()?.executor;
                executor.stop(it.stop_external_agent).await.map_err(|error| failure(&error))?;
                Ok(said(&asked, &Message::execution_stopped()))
            }
            Request::PauseSampling(_) => {
                self.monitor.pause(&asked.reason);
                self.remember(|switches| switches.paused = Some(asked.reason.clone())).await?;
                Ok(said(&asked, &Message::sampling_paused()))
            }
            Request::ResumeSampling(_) => {
                self.monitor.resume(&asked.reason);
                self.remember(|switches| switches.paused = None).await?;
                Ok(said(&asked, &Message::sampling_resumed()))
            }
            Request::Admin(it) => {
                let body = self.administer(it).await?;
                Ok(asked.answered(|| body.json(), || body.text()))
            }
            Request::Proposals(_)
            | Request::Rebalance(_)
            | Request::AddBroker(_)
            | Request::RemoveBroker(_)
            | Request::FixOfflineReplicas(_)
            | Request::DemoteBroker(_)
            | Request::RemoveDisks(_) => self.plan(&asked, &steps).await,
            // The door answers these itself.
            Request::UserTasks(_) | Request::Permissions(_) => {
                Err(Failure::illegal_state("a question about tasks or permissions has come too far"))
            }
        }
    }

    /// Remembers what was switched, for the next life too.
    async fn remember(&self, change: impl FnOnce(&mut Switches)) -> Result<(), Failure> {
        match self.acting.get() {
            Some(acting) => acting.executor.switch(change).await.map_err(|error| failure(&error)),
            None => Ok(()),
        }
    }

    /// A fresh look. Nobody waits for it while Kafka is known to be out of reach.
    pub(super) async fn look(&self) -> Result<Arc<Sighting>, Failure> {
        tokio::select! {
            seen = self.monitor.look_now() => seen.map_err(|error| failure(&error)),
            why = self.reach.lost() => Err(out_of_reach(&why)),
        }
    }

    /// Also while the journal is not open, for probes ask it. But nobody knows then what is being carried out: to say
    /// "nothing" would be taken for the end of what another life has begun.
    fn state(&self, asked: &request::State) -> Result<evenkeel_rest::body::State, Failure> {
        let acting = self.acting.get().filter(|acting| !*acting.executor.fenced().borrow());
        let known = [Substate::Analyzer, Substate::Monitor];
        let asked = match acting {
            Some(_) => asked.clone(),
            None if asked.substates.is_empty() => request::State { substates: known.into(), ..asked.clone() },
            None if asked.substates.iter().all(|part| known.contains(part)) => asked.clone(),
            None if self.acting.get().is_some() => {
                return Err(Failure::not_now("another engine has taken over: it knows what is carried out"));
            }
            None => return Err(Failure::not_now("the journal is not open: it is not known what is carried out")),
        };
        let parts = Parts {
            analyzer: |verbose| self.analyzer_state(verbose),
            monitor: |verbose| self.monitor.state(verbose),
            executor: |verbose| acting.map(|acting| acting.executor.state(verbose)).unwrap_or_default(),
            detector: || acting.map(|acting| acting.detectors.state()).unwrap_or_default(),
        };
        let mut body = answers::state(&asked, parts);
        if let (true, Some(acting), Some(executor)) = (asked.broker_progress, acting, &mut body.executor_state) {
            executor.broker_progress = acting.executor.by_broker();
        }
        Ok(body)
    }

    /// What is not as it should be, for people: a line for each.
    fn troubles(&self) -> String {
        let report = self.acting.get().and_then(|acting| acting.executor.running()).map(|(_, report)| report);
        let (hold, trouble) = report.map(|report| (report.hold, report.trouble)).unwrap_or_default();
        let lines = [
            self.reach.why().map(|why| format!("Kafka cannot be reached: {why}\n")),
            hold.map(|hold| format!("The execution waits: {hold}\n")),
            trouble.map(|trouble| format!("The execution is in trouble: {trouble}\n")),
        ];
        lines.into_iter().flatten().collect()
    }

    fn analyzer_state(&self, verbose: bool) -> AnalyzerState {
        let goals: Vec<GoalSeen> = self
            .settings
            .goals
            .default
            .iter()
            .map(|goal| {
                let needs = proposals::requirement(&[*goal], &self.settings.monitor);
                let ready = self.monitor.is_known(needs).is_some_and(|unmeasured| goal.is_measurable(unmeasured));
                GoalSeen {
                    name: goal.name().to_owned(),
                    windows: needs.windows as u64,
                    share: needs.ratio,
                    all_topics: true,
                    ready,
                }
            })
            .collect();
        answers::analyzer_state(&goals, self.planner.is_up_to_date(self.monitor.generation()), verbose)
    }

    async fn load(&self, asked: request::Load, steps: &Steps) -> Result<evenkeel_rest::body::Load, Failure> {
        let (capacities, weights) = (Arc::clone(&self.capacities), self.settings.monitor.cpu_weights);
        if asked.capacity_only {
            let sighting = self.look().await?;
            return aside(move || proposals::load(&asked, &sighting.view, None, &capacities, weights)).await;
        }
        let requirement = proposals::requirement(&self.settings.goals.default, &self.settings.monitor);
        // Of those on a broker that is down nothing may be known; what is known of the others is worth telling.
        let known = match self.known_for(requirement, steps).await {
            Ok(known) => known,
            Err(why) => {
                let some = self.known(Requirement::LEAST).await.ok().filter(|known| known.loads.coverage > 0.0);
                some.ok_or(why)?
            }
        };
        aside(move || proposals::load(&asked, &known.sighting.view, Some(&known.loads), &capacities, weights)).await
    }

    /// What is known, for an answer that tells of it.
    async fn known_for(&self, requirement: Requirement, steps: &Steps) -> Result<Arc<Known>, Failure> {
        steps.begin(Step::WaitingForClusterModel);
        steps.begin(Step::AggregatingMetrics);
        let known = self.known(requirement).await.map_err(|why| not_enough(&why))?;
        steps.begin(Step::GeneratingClusterModel);
        Ok(known)
    }

    async fn administer(&self, asked: &request::Admin) -> Result<evenkeel_rest::body::AdminAnswer, Failure> {
        let acting = self.acting()?;
        let plan = AdminPlan::of(asked, self.settings.executor.ceiling)?;
        let mut seen = AdminSeen::default();
        if plan.forgets_brokers() {
            let forgotten = acting.executor.forget_brokers(&plan.removed, &plan.demoted).await;
            seen.history = Some(forgotten.map_err(|error| failure(&error))?);
        }
        acting.executor.adjust(plan.adjustment);
        for (kind, on) in &plan.healing {
            let (before, after) = acting.detectors.switch(*kind, *on);
            seen.healing_before.insert(*kind, before);
            seen.healing_after.insert(*kind, after);
        }
        if !plan.healing.is_empty() {
            let configured = &self.settings.detectors.enabled;
            let switched = |switches: &mut Switches| {
                let after = seen.healing_after.iter();
                after.for_each(|(kind, on)| switches.heal(*kind, configured.contains(kind), *on));
            };
            acting.executor.switch(switched).await.map_err(|error| failure(&error))?;
        }
        Ok(plan.answer(&seen))
    }
}

/// Nothing can be done now; it is tried again all the time, and so may whoever asks.
pub(super) fn out_of_reach(why: &str) -> Failure {
    Failure::not_now(format_args!("Kafka cannot be reached: {why}"))
}

fn said(asked: &Asked, message: &Message) -> Answered {
    asked.answered(|| message.json(), || message.text())
}
