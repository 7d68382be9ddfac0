//! What the detectors judge, and repairs that they want.

use std::time::Instant;

use evenkeel_balancer::cluster::Cluster;
use evenkeel_rest::{Failure, failure::Sort, reason};
use jiff::Timestamp;
use tokio::sync::mpsc;

use super::{
    Engine,
    plans::{Client, Whose},
};
use crate::{
    detect::service::{Outcome, Repair, Unready},
    model::{self, Purpose},
    proposals::{self, not_enough},
    serve::Steps,
};

/// The cluster as it is.
pub(super) fn model(engine: &Engine) -> Result<Cluster, Unready> {
    if !engine.monitor.is_ready() {
        return Err(Unready::Loading);
    }
    let requirement = proposals::requirement(&engine.settings.goals.detection, &engine.settings.monitor);
    let known = engine.monitor.known(requirement).map_err(|why| Unready::Incomplete(not_enough(&why).to_string()))?;
    let purpose = Purpose { may_estimate: engine.settings.detectors.may_estimate, ..Purpose::default() };
    let weights = engine.settings.monitor.cpu_weights;
    let began = Instant::now();
    let built = model::build(&known.sighting.view, &known.loads, &engine.capacities, weights, &purpose);
    engine.planner.modelled(began.elapsed());
    built.map_err(|why| Unready::Impossible(crate::said::chain(&why)))
}

/// Carries out what the detectors want, one after the other.
pub(super) async fn heal(engine: &Engine, mut wanted: mpsc::Receiver<Repair>) {
    while let Some(repair) = wanted.recv().await {
        let at = Timestamp::from_millisecond(engine.clock.now()).unwrap_or(Timestamp::UNIX_EPOCH);
        let client = Client {
            whose: Whose::Anomaly(repair.anomaly),
            reason: reason::stamped(repair.request.reason(), "self-healing", at),
        };
        let outcome = match engine.plan_for(&repair.request, client, &Steps::default()).await {
            Ok((proposal, true)) => Outcome::Started(proposal.id.clone()),
            Ok((_, false)) => Outcome::NothingToDo,
            Err(failure) => refused(&failure),
        };
        // Whoever wanted it may be gone; what was begun goes on.
        let _ = repair.reply.send(outcome);
    }
}

fn refused(failure: &Failure) -> Outcome {
    let text = failure.to_string();
    match Failure::sort(&text) {
        Sort::NotEnoughData => Outcome::NotReady(Unready::Incomplete(text)),
        _ => Outcome::Refused(text),
    }
}
