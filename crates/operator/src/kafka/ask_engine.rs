//! Asks the engine of a cluster what only it knows, and only when somebody needs to know.

use std::{collections::BTreeSet, time::Duration};

use evenkeel_api::{KafkaSpec, labels};
use evenkeel_rest::{
    Answer,
    body::state::{Anomaly, GoalViolation, Phase, State as EngineState},
    parameter::Substate,
    request::State,
};
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::ResourceExt;
use tokio::time::timeout;

use super::{
    names::Names,
    seen::{EngineSaid, Seen},
};
use crate::{
    access,
    auto_rebalance::{Configured, Manual, executor_matters, poll::Polled, sort_rebalances},
    error::told,
    pod_set::decide::is_ready,
    seams::{ClusterRef, Context},
};

/// How long it may take to answer: meanwhile nothing else is done for its cluster.
const PATIENCE: Duration = Duration::from_secs(5);

/// What of that it said before still counts: nothing, once nobody asks for what it finds any more. Who asks again is answered by
/// another engine, perhaps, and wants to know what is so then.
fn remembered<'a>(spec: &KafkaSpec, before: Option<&'a Polled>) -> Option<&'a Polled> {
    before.filter(|_| Configured::of(spec).polled_every.is_some())
}

/// What the engine has to be asked about, given all else. Not for what it found while that is just being mended, and not in
/// every look: one that hangs would hold up each of them.
fn questions(seen: &Seen, before: Option<&Polled>) -> BTreeSet<Substate> {
    let (generated, manual) = sort_rebalances(&seen.rebalances, seen.cluster());
    let executor = executor_matters(&generated).then_some(Substate::Executor);
    let is_mended = !generated.is_empty() || manual.iter().any(Manual::is_asked_for);
    let is_due = before.is_none_or(|before| before.due() <= seen.now || before.at > seen.now);
    let polled = Configured::of(&seen.kafka.spec).polled_every.is_some() && is_due && !is_mended;
    executor.into_iter().chain(polled.then_some(Substate::AnomalyDetector)).collect()
}

/// What the engine says, and what it said `before` of what it found. One that does not answer is no reason not to go on.
pub(super) async fn ask_engine(context: &Context, seen: &Seen, before: Option<&Polled>) -> EngineSaid {
    let before = remembered(&seen.kafka.spec, before);
    let substates = questions(seen, before);
    let names = Names::of(&seen.kafka);
    let is_engine = |pod: &&Pod| pod.labels().get(labels::NAME).is_some_and(|name| *name == names.engine());
    let somebody = seen.pods.iter().filter(is_engine).any(is_ready);
    if !somebody {
        return EngineSaid::default();
    }
    let before = before.cloned();
    if substates.is_empty() {
        return EngineSaid { executing: None, violated: before };
    }
    let polls = substates.contains(&Substate::AnomalyDetector);
    let said = timeout(PATIENCE, ask(context, seen, &names, substates)).await;
    let said = said.unwrap_or_else(|_| Err(format!("no answer within {PATIENCE:?}")));
    let at = seen.now;
    let executing = said.as_ref().ok().and_then(|said| said.executor_state.as_ref());
    EngineSaid {
        executing: executing.map(|executor| executor.phase != Phase::Idle),
        violated: if polls { Some(Polled { at, found: said.and_then(found) }) } else { before },
    }
}

async fn ask(
    context: &Context,
    seen: &Seen,
    names: &Names,
    substates: BTreeSet<Substate>,
) -> Result<EngineState, String> {
    let spec = seen.kafka.spec.cruise_control.as_ref().ok_or("there is none")?;
    let secret = |name: String| seen.live.read::<Secret>("Secret", &name);
    let (api, ca) = (secret(names.engine_api()), secret(names.cluster_ca_cert()));
    let access = access::read(names, spec, api.as_ref(), ca.as_ref());
    let access = access.map_err(|secret| format!("Secret {secret} is not there yet"))?;
    let cluster = ClusterRef::new(&names.namespace, &names.cluster);
    let client = access::connect(context, &cluster, &access).await?;
    match client.ask(&State { substates, ..State::default() }).await.answer {
        Answer::Ready(state) => Ok(state),
        Answer::Refused { message, .. } | Answer::NotYet(message) => Err(message),
        Answer::Unreachable(error) => Err(told(&error)),
        other => Err(format!("it answered: {}", other.label().replace('_', " "))),
    }
}

/// What it has found.
fn found(state: EngineState) -> Result<Vec<Anomaly<GoalViolation>>, String> {
    let detector = state.anomaly_detector_state.ok_or("it says nothing of anomalies")?;
    Ok(detector.recent_goal_violations)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn what_was_found_is_forgotten_when_nobody_asks_for_it_any_more() {
        let polled = Polled { at: Timestamp::UNIX_EPOCH, found: Ok(Vec::new()) };
        let remembers = |engine: Value| {
            let spec: KafkaSpec = serde_json::from_value(json!({"cruiseControl": engine})).unwrap();
            remembered(&spec, Some(&polled)).is_some()
        };
        let modes = |mode: &str| json!([{"mode": mode}]);
        assert!(remembers(json!({"image": "linkedin/cruise-control", "autoRebalance": modes("imbalance")})));
        for off in [
            json!({"image": "linkedin/cruise-control", "autoRebalance": modes("add-brokers")}),
            json!({"image": "linkedin/cruise-control"}),
            json!({"autoRebalance": modes("imbalance")}),
        ] {
            assert!(!remembers(off.clone()), "{off}");
        }
    }
}
