//! Asks the engine of a cluster what only it knows, and only when somebody needs to know.

use std::collections::BTreeSet;

use evenkeel_api::labels;
use evenkeel_rest::{
    Answer,
    body::state::{Phase, State as EngineState},
    parameter::Substate,
    request::State,
};
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::ResourceExt;

use super::{
    names::Names,
    seen::{EngineSaid, Seen},
};
use crate::{
    access,
    auto_rebalance::{Configured, executor_matters, sort_rebalances},
    error::told,
    pod_set::decide::is_ready,
    seams::{ClusterRef, Context},
};

/// What the engine has to be asked about, given all else.
fn questions(seen: &Seen) -> BTreeSet<Substate> {
    let (generated, _) = sort_rebalances(&seen.rebalances, seen.cluster());
    let executor = executor_matters(&generated).then_some(Substate::Executor);
    let polled = Configured::of(&seen.kafka.spec).polled_every.is_some();
    executor.into_iter().chain(polled.then_some(Substate::AnomalyDetector)).collect()
}

/// What the engine says. One that does not answer is no reason not to go on.
pub(super) async fn ask_engine(context: &Context, seen: &Seen) -> EngineSaid {
    let substates = questions(seen);
    let names = Names::of(&seen.kafka);
    let is_engine = |pod: &&Pod| pod.labels().get(labels::NAME).is_some_and(|name| *name == names.engine());
    let somebody = seen.pods.iter().filter(is_engine).any(is_ready);
    if substates.is_empty() || !somebody {
        return EngineSaid::default();
    }
    let polls = substates.contains(&Substate::AnomalyDetector);
    match ask(context, seen, &names, substates).await {
        Ok(state) => heard(state, polls),
        Err(why) => EngineSaid { executing: None, violated: polls.then_some(Err(why)) },
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

fn heard(state: EngineState, polls: bool) -> EngineSaid {
    EngineSaid {
        executing: state.executor_state.map(|executor| executor.phase != Phase::Idle),
        violated: polls.then(|| {
            let detector = state.anomaly_detector_state.ok_or("it says nothing of anomalies")?;
            Ok(detector.recent_goal_violations)
        }),
    }
}
