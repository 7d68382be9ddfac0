//! From a request for a plan to its answer, and to its being carried out.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use evenkeel_kafka::BrokerId;
use evenkeel_rest::{
    Failure, Request,
    body::{Body as _, Step, state::Trigger},
    request,
    text::load_heading,
};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::{Engine, desk::out_of_reach};
use crate::{
    aside::aside,
    executor::service::{Executor, HistoryChange, Reservation, Start},
    journal::{History, Run},
    monitor::{
        Known,
        windows::{NotEnough, Requirement},
    },
    proposals::{self, Proposal, not_enough},
    said::failure,
    serve::{Answered, Asked, Steps},
    watch::Sighting,
};

/// A look that is older than this is taken anew before a plan is made, in milliseconds.
const FRESH: i64 = 1_000;
/// For so long after an execution brokers may show what was before its last moves were over, in milliseconds.
const QUIET: i64 = 1_000;
/// How long it is waited until brokers show what is, how long for copies that are on their way to brokers which are to
/// be emptied, and how often that is looked at.
const SETTLES_WITHIN: Duration = Duration::from_secs(6);
/// Within this time every broker has heard of one that has come, and any of them may be the one that is asked.
const HEARD_WITHIN: Duration = Duration::from_secs(1);
const ARRIVES_WITHIN: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// Who wants a plan carried out, and what becomes of it on record.
pub(super) struct Client<'a> {
    /// The user task, or the anomaly.
    pub(super) whose: Whose<'a>,
    /// Why, as it is shown.
    pub(super) reason: String,
}

pub(super) enum Whose<'a> {
    Task(&'a Asked),
    Anomaly(Uuid),
}

impl Engine {
    /// Answers a request for a plan, and begins to carry it out if that is wanted.
    pub(super) async fn plan(&self, asked: &Asked, steps: &Steps) -> Result<Answered, Failure> {
        let client = Client { whose: Whose::Task(asked), reason: asked.reason.clone() };
        let (proposal, begun) = self.plan_for(&asked.request, client, steps).await?;
        let mut answered = self.shown(asked, &proposal).await;
        answered.executes = begun;
        Ok(answered)
    }

    /// Makes the plan for a request. If the request wants it carried out and there is anything to do, it is being
    /// carried out when this returns.
    pub(super) async fn plan_for(
        &self,
        request: &Request,
        client: Client<'_>,
        steps: &Steps,
    ) -> Result<(Arc<Proposal>, bool), Failure> {
        let executor = &self.acting()?.executor;
        let Some(run) = request.run().filter(|run| !run.dryrun) else {
            steps.begin(Step::WaitingForClusterModel);
            self.look_if_stale(request).await?;
            return Ok((self.propose(request, &executor.history(), steps).await?, false));
        };
        proposals::wanted(request, &self.settings.goals)?;
        // From here on nobody else begins anything, and `state` says that this one is about to.
        let reservation = match run.stop_ongoing_execution {
            true => executor.reserve_next(client.trigger())?,
            false => executor.reserve(client.trigger())?,
        };
        // What is wrong with the request, or with what it would come to, is no reason to stop anybody, nor to take back what
        // others move.
        self.check(request, &executor.history()).await?;
        let foreseen = self.foreseen(request, run, executor, &reservation).await?;
        // Before anything is done, even for its sake, a next life has to know who asked for it.
        if let Whose::Task(asked) = &client.whose {
            tokio::select! {
                recorded = executor.record_task(asked.id, &asked.task) => recorded.map_err(|error| failure(&error))?,
                why = self.reach.lost() => return Err(out_of_reach(&why)),
            }
        }
        if run.stop_ongoing_execution {
            steps.begin(Step::StoppingOngoingExecution);
            reservation.take_over().await?;
        }
        if let Some(nothing) = foreseen.filter(|it| it.outcome.plan.changes.is_empty()) {
            return Ok((nothing, false));
        }
        reservation.clear_the_way(self.settings.executor.stops_others).await?;
        steps.begin(Step::WaitingForClusterModel);
        // What is not seen to lie somewhere is not moved away from there: so this look is the one that the plan rests on.
        let sighting = self.look_settled(request).await?;
        let proposal = match &run.proposal_id {
            Some(id) => self.approved(id, request, &executor.history(), &sighting).await?,
            None => self.propose(request, &executor.history(), steps).await?,
        };
        if proposal.outcome.plan.changes.is_empty() {
            return Ok((proposal, false));
        }
        let (id, task) = match client.whose {
            Whose::Task(asked) => {
                let answered = self.shown(asked, &proposal).await;
                (Uuid::new_v4(), Some((asked.id, asked.in_execution(&answered))))
            }
            // A run that nobody asked for goes by the name of what it mends.
            Whose::Anomaly(id) => (id, None),
        };
        let run = Run {
            id,
            task: task.as_ref().map(|(id, _)| *id),
            reason: client.reason,
            proposal: proposal.id.clone(),
            order: proposals::order(&proposal, request, &self.settings.executor),
        };
        let change = history_change(request);
        reservation.begin(Start { run, task: task.map(|(_, task)| task), change }).await?;
        Ok((proposal, true))
    }

    pub(super) async fn propose(
        &self,
        request: &Request,
        history: &History,
        steps: &Steps,
    ) -> Result<Arc<Proposal>, Failure> {
        self.planner.propose(request, history, steps, |requirement| self.known(requirement)).await
    }

    /// What is known, put together off the async threads: of many partitions that takes a moment.
    pub(super) async fn known(&self, requirement: Requirement) -> Result<Arc<Known>, NotEnough> {
        let monitor = self.monitor.clone();
        aside(move || monitor.known(requirement)).await
    }

    /// What will be known once all copies that are being made are called off.
    async fn calm(&self, requirement: Requirement) -> Result<Arc<Known>, NotEnough> {
        let monitor = self.monitor.clone();
        aside(move || Ok(Arc::new(monitor.known(requirement)?.without_copies()))).await
    }

    /// What is wrong with a request, as far as it can be told before anything is done for its sake. Who asks for something
    /// with a broker that has just come has seen it already, so nothing is refused because of an old look.
    async fn check(&self, request: &Request, history: &History) -> Result<(), Failure> {
        let began = Instant::now();
        loop {
            let known = self.known(Requirement::LEAST).await.map_err(|why| not_enough(&why))?;
            match self.planner.check(request, history, &known) {
                Err(_) if began.elapsed() < HEARD_WITHIN => drop(self.look().await?),
                checked => return checked,
            }
            sleep(LOOK_AGAIN).await;
        }
    }

    /// The plan that somebody has seen and approved, if it still fits.
    async fn approved(
        &self,
        id: &str,
        request: &Request,
        history: &History,
        sighting: &Sighting,
    ) -> Result<Arc<Proposal>, Failure> {
        let known = self.known(Requirement::LEAST).await.map_err(|why| not_enough(&why))?;
        let proposal = self.planner.by_id(id, request, history, &known)?;
        proposals::fits(&proposal, &sighting.view).map_err(|why| Failure::proposal_outdated(id, why))?;
        Ok(proposal)
    }

    /// What the request comes to once nothing moves any more, if anything does. If that cannot be, nobody is to be stopped
    /// for it: what others move is still under way, and so is what this engine carries out.
    async fn foreseen(
        &self,
        request: &Request,
        run: &request::Run,
        executor: &Executor,
        reservation: &Reservation,
    ) -> Result<Option<Arc<Proposal>>, Failure> {
        let others = tokio::select! {
            others = reservation.others(self.settings.executor.stops_others) => others?,
            why = self.reach.lost() => return Err(out_of_reach(&why)),
        };
        let stops = run.stop_ongoing_execution && executor.running().is_some();
        if others == 0 && !stops {
            return Ok(None);
        }
        // Whoever is to be emptied is not empty once these have come: they are taken back, whatever else there is to do.
        let comes = self.look().await?.coming_to(&emptied(request)).is_some();
        let history = executor.history();
        let Some(id) = &run.proposal_id else {
            let foreseen = self.planner.foresee(request, &history, |requirement| self.calm(requirement)).await?;
            return Ok(Some(foreseen).filter(|_| !comes));
        };
        let known = self.calm(Requirement::LEAST).await.map_err(|why| not_enough(&why))?;
        let proposal = self.planner.by_id(id, request, &history, &known)?;
        let approved = Arc::clone(&proposal);
        let fits = aside(move || proposals::fits(&approved, &known.sighting.view)).await;
        let outdated = |why| format!("so it would be once what is under way is stopped, which goes on: {why}");
        fits.map_err(|why| Failure::proposal_outdated(id, outdated(why)))?;
        Ok(Some(proposal).filter(|_| !comes))
    }

    /// Makes sure that what is seen is not old, and shows nothing that is over; and everybody who is spoken of, because
    /// who asks for something with a broker that has just come has seen it already.
    async fn look_if_stale(&self, request: &Request) -> Result<(), Failure> {
        let ended = self.acting()?.executor.ended_at();
        let is_fresh = |seen: Arc<Sighting>| {
            let settled = seen.moving.is_empty() && ended.is_none_or(|ended| seen.at - ended >= QUIET);
            settled && self.clock.now() - seen.at <= FRESH && all_are_there(request, &seen)
        };
        if !self.monitor.sighting().is_some_and(is_fresh) {
            self.look_settled(request).await?;
        }
        Ok(())
    }

    /// A new look that shows every partition where it is, and not where it was before its last move was over; every broker
    /// that is spoken of; and nothing on its way to brokers that are to be emptied. Such a copy is no replica yet, so no
    /// plan could move it away.
    async fn look_settled(&self, request: &Request) -> Result<Arc<Sighting>, Failure> {
        let (ended, emptied) = (self.acting()?.executor.ended_at(), emptied(request));
        let wait = ended.map_or(0, |ended| (ended + QUIET - self.clock.now()).clamp(0, QUIET));
        sleep(Duration::from_millis(wait.unsigned_abs())).await;
        let began = Instant::now();
        loop {
            let seen = self.look().await?;
            let coming = seen.coming_to(&emptied);
            let settled = (!seen.trails() || began.elapsed() >= SETTLES_WITHIN)
                && (all_are_there(request, &seen) || began.elapsed() >= HEARD_WITHIN);
            match coming {
                None if settled => return Ok(seen),
                Some((partition, broker)) if began.elapsed() >= ARRIVES_WITHIN => {
                    return Err(Failure::illegal_state(format_args!(
                        "partition {partition} is still being copied to broker {broker}, which is to be emptied"
                    )));
                }
                _ => sleep(LOOK_AGAIN).await,
            }
        }
    }

    /// As it is answered. Off the async threads too: a plan that lists many changes is long.
    async fn shown(&self, asked: &Asked, proposal: &Arc<Proposal>) -> Answered {
        let (asked, proposal, settings) = (asked.clone(), Arc::clone(proposal), Arc::clone(&self.settings));
        aside(move || {
            let began = Instant::now();
            let body = proposals::result(&proposal, &asked.request, &settings.executor);
            let answered = asked.answered(|| body.json(), || body.text(&load_heading(&asked.request)));
            tracing::debug!(bytes = answered.body.len(), ms = began.elapsed().as_millis(), "wrote a plan's answer");
            answered
        })
        .await
    }
}

impl Client<'_> {
    fn trigger(&self) -> Trigger {
        let mut trigger = Trigger { triggered_task_reason: self.reason.clone(), ..Trigger::default() };
        match &self.whose {
            Whose::Task(asked) => trigger.triggered_user_task_id = asked.id.to_string(),
            Whose::Anomaly(id) => trigger.triggered_self_healing_task_id = id.to_string(),
        }
        trigger
    }
}

/// Whether the brokers are up that have to be for a request to make sense.
fn all_are_there(request: &Request, seen: &Sighting) -> bool {
    let named = match request {
        Request::AddBroker(it) => &it.brokerid,
        Request::DemoteBroker(it) => &it.brokerid,
        Request::RemoveBroker(it) => &it.destination_broker_ids,
        Request::Rebalance(it) => &it.scope.destination_broker_ids,
        Request::Proposals(it) => &it.scope.destination_broker_ids,
        _ => return true,
    };
    named.iter().all(|id| seen.view.brokers.get(id).is_some_and(|broker| broker.up))
}

/// Brokers that nothing is to be left on.
fn emptied(request: &Request) -> BTreeSet<i32> {
    match request {
        Request::RemoveBroker(it) => it.brokerid.clone(),
        _ => BTreeSet::new(),
    }
}

/// What carrying a request out means for the history of brokers.
fn history_change(request: &Request) -> HistoryChange {
    let ids = |ids: &BTreeSet<i32>| ids.iter().copied().map(BrokerId).collect();
    let mut change = HistoryChange::default();
    match request {
        Request::RemoveBroker(it) => change.removed = ids(&it.brokerid),
        Request::DemoteBroker(it) => change.demoted = ids(&it.brokerid),
        Request::AddBroker(it) => change.added = ids(&it.brokerid),
        _ => {}
    }
    change
}
