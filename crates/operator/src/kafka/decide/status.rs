//! What the Kafka and its pools say about themselves, and what is told as Events.

use std::collections::BTreeMap;

use evenkeel_api::{
    Condition, Kafka, KafkaNodePool, KafkaNodePoolStatus, KafkaStatus, Reason, annotations, conditions,
    kafka::{ListenerAddress, ListenerStatus, NodePoolName},
    labels,
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use super::{
    super::{
        model::{Model, Node},
        nodes::Ids,
        objects::pod_set_selector,
        pools::{Origin, Roles},
        problem::{Problem, Remark, Subject},
        roll::Roll,
        scale_down,
        seen::{Metadata, Missing, Seen},
    },
    Deed, Given, Step, Trouble,
    certificates::Issued,
    objects::Nodes,
    plan::Plan,
};
use crate::{auto_rebalance, error::told, pod_set::decide::ready_since, seams::Happening};

/// The reason of a new Kafka that is being made.
const CREATING: &str = "Creating";
/// The reason of one whose nodes stay away.
pub(super) const TIMEOUT: &str = "TimeoutException";
/// How a warning begins that Kafka is out of reach.
const UNANSWERED: &str = "Kafka has not answered the operator";
/// How a warning begins that the engine is not up.
pub(super) const NO_ENGINE: &str = "Cruise Control has not been ready";

/// The status at the very beginning: what was said before, or that there is something in the making.
pub(super) fn begun(seen: &Seen, before: &KafkaStatus) -> KafkaStatus {
    if !before.conditions.is_empty() {
        return before.clone();
    }
    let creating = not_ready(CREATING, "the cluster is being created");
    KafkaStatus { conditions: conditions::settle([creating], &[], seen.now), ..before.clone() }
}

fn not_ready(reason: &str, message: impl Into<String>) -> Condition {
    Condition {
        reason: Some(reason.to_owned()),
        message: Some(message.into()),
        ..Condition::state(conditions::NOT_READY)
    }
}

/// What the Kafka says once everything was decided.
pub(super) fn status(
    seen: &Seen,
    given: Given<'_>,
    plan: &Plan,
    issued: &Issued,
    further: &[Remark],
    nodes: &Nodes,
    auto: &auto_rebalance::Decision,
) -> KafkaStatus {
    let model = &plan.model;
    let before = seen.kafka.status.clone().unwrap_or_default();
    let mut state = state(seen, given, model, &before);
    let is_ready = state.type_ == conditions::READY;
    if let (true, Roll::Wait { whose, until, is_usual: false }) = (is_ready, &nodes.roll) {
        state.message = Some(format!("the restart of {whose} waits until {until}"));
    }
    let mistrust = match &seen.metadata {
        Metadata::Mistrusted(why) => Some(Condition::warning(
            Reason::InvalidResourceException,
            format!("Kafka cannot be asked: {why}. Look at the Secrets of the cluster's authority"),
        )),
        _ => None,
    };
    let remarks = model.remarks.iter().chain(&plan.kept).chain(further).map(|remark| remark.condition.clone());
    let remarks = remarks.chain(mistrust).chain(unanswered(seen, given)).chain(stragglers(seen, given, model));
    let all = std::iter::once(state).chain(remarks).chain(auto.warnings.iter().cloned());
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let told_version = seen.metadata.known().and_then(|known| known.metadata_version.clone());
    KafkaStatus {
        conditions: conditions::settle(all, &before.conditions, seen.now),
        observed_generation: seen.kafka.metadata.generation,
        listeners: listeners(model, issued),
        kafka_node_pools: model.pools.values().filter(|pool| pool.origin == Origin::NodePool).map(named).collect(),
        cluster_id: Some(nodes.cluster_id.clone()),
        operator_last_successful_version: if is_ready {
            Some(version)
        } else {
            before.operator_last_successful_version
        },
        kafka_version: Some(model.version.clone()),
        kafka_metadata_version: told_version.or(model.metadata_version.clone()).or(before.kafka_metadata_version),
        cluster_security: before.cluster_security,
        auto_rebalance: auto.status.clone(),
    }
}

fn named(pool: &super::super::pools::Pool) -> NodePoolName {
    NodePoolName { name: pool.name.clone() }
}

/// `Ready` once all nodes were, and from then on until one of them has been away for too long.
fn state(seen: &Seen, given: Given<'_>, model: &Model, before: &KafkaStatus) -> Condition {
    let away: Vec<&Node> = model.nodes.values().filter(|node| !seen.is_ready(&node.pod)).collect();
    let alive = seen.metadata.alive();
    // A cluster whose spec was refused for a while is no new cluster.
    let was_complete = before.operator_last_successful_version.is_some();
    if !was_complete {
        let listed: Vec<&str> = away.iter().map(|node| node.pod.as_str()).collect();
        if !listed.is_empty() {
            return not_ready(CREATING, format!("waiting for pods {}", listed.join(", ")));
        }
        if model.brokers().any(|node| !alive.contains(&node.id)) {
            return not_ready(CREATING, "all pods are ready, and Kafka does not count all brokers as alive yet");
        }
        return Condition::state(conditions::READY);
    }
    let patience = patience(given);
    let too_long = away.iter().copied().filter(|node| !is_new(seen, node) && is_overdue(seen, node, patience));
    let unheard = fenced(seen, model)
        .filter(|node| seen.now.duration_since(missing_since(seen, &Missing::Broker(node.pod.clone()))) > patience);
    let listed = |nodes: Vec<&Node>| nodes.iter().map(|node| node.pod.as_str()).collect::<Vec<_>>().join(", ");
    let minutes = patience.as_mins();
    let said = [
        (listed(too_long.collect()), format!("not ready for more than {minutes} minutes")),
        (listed(unheard.collect()), format!("ready, and not counted on by Kafka for more than {minutes} minutes")),
    ];
    let said = said.into_iter().filter(|(pods, _)| !pods.is_empty()).map(|(pods, what)| format!("{what}: {pods}"));
    let said: Vec<String> = said.collect();
    if said.is_empty() { Condition::state(conditions::READY) } else { not_ready(TIMEOUT, said.join("; ")) }
}

/// Brokers that Kafka does not count on though their pods are ready: these say so as soon as somebody listens at a port.
fn fenced<'a>(seen: &'a Seen, model: &'a Model) -> impl Iterator<Item = &'a Node> {
    let known = seen.metadata.known();
    let is_fenced = move |id: i32| known.is_some_and(|known| known.registered.get(&id) == Some(&true));
    model.brokers().filter(move |node| is_fenced(node.id) && seen.is_ready(&node.pod))
}

/// What is said when the operator has not heard of Kafka for too long, though brokers are ready.
fn unanswered(seen: &Seen, given: Given<'_>) -> Option<Condition> {
    let Metadata::Unreachable(why) = &seen.metadata else { return None };
    let patience = patience(given);
    let is_late = seen.now.duration_since(missing_since(seen, &Missing::Answers)) > patience;
    is_late.then(|| Condition {
        reason: Some(TIMEOUT.to_owned()),
        message: Some(format!(
            "{UNANSWERED} for more than {} minutes: {why}. Without an answer nobody is restarted, and no broker goes. Look \
             at network policies, and at the logs of the brokers",
            patience.as_mins()
        )),
        ..Condition::state(conditions::WARNING)
    })
}

pub(super) fn patience(given: Given<'_>) -> SignedDuration {
    SignedDuration::try_from(given.operation_timeout).unwrap_or(SignedDuration::MAX)
}

/// One that Kafka has never heard of is new: whoever was there before serves without it.
fn is_new(seen: &Seen, node: &Node) -> bool {
    match &seen.metadata {
        Metadata::Known(known) => node.roles == Roles::BROKER && !known.registered.contains_key(&node.id),
        _ => false,
    }
}

/// Whether a node has been away for longer than that.
fn is_overdue(seen: &Seen, node: &Node, patience: SignedDuration) -> bool {
    away_since(seen, node).is_some_and(|since| seen.now.duration_since(since) > patience)
}

/// Since when a node that is not ready has been away.
pub(super) fn away_since(seen: &Seen, node: &Node) -> Option<Timestamp> {
    match seen.pod(&node.pod) {
        // It says that it is ready until it has ended.
        Some(pod) => ends_since(pod).or_else(|| ready_since(pod)).or_else(|| Some(pod.creation_timestamp()?.0)),
        None => Some(missing_since(seen, &Missing::Pod(node.pod.clone()))),
    }
}

/// Since when a pod is on its way out: it has its grace until the moment that it carries.
fn ends_since(pod: &Pod) -> Option<Timestamp> {
    let until = pod.metadata.deletion_timestamp.as_ref()?.0;
    let grace = SignedDuration::from_secs(pod.metadata.deletion_grace_period_seconds.unwrap_or_default());
    Some(until.saturating_sub(grace).unwrap_or(until))
}

/// What is missing, and since when that is known. `lacks_engine`: an engine is wanted, and is not up.
pub(super) fn missing(seen: &Seen, model: &Model, lacks_engine: bool) -> BTreeMap<Missing, Timestamp> {
    let pods = model.nodes.values().filter(|node| seen.pod(&node.pod).is_none());
    let pods = pods.map(|node| Missing::Pod(node.pod.clone()));
    let brokers = fenced(seen, model).map(|node| Missing::Broker(node.pod.clone()));
    let answers = matches!(seen.metadata, Metadata::Unreachable(_)).then_some(Missing::Answers);
    let engine = lacks_engine.then_some(Missing::Engine);
    let all = pods.chain(brokers).chain(answers).chain(engine);
    all.map(|what| (what.clone(), missing_since(seen, &what))).collect()
}

/// Since when something is known to be missing. Whoever has forgotten it finds on record that it was too long already.
pub(super) fn missing_since(seen: &Seen, what: &Missing) -> Timestamp {
    let told = seen.kafka.status.iter().flat_map(|status| &status.conditions);
    let mut told = told.filter(|it| it.reason.as_deref() == Some(TIMEOUT)).filter_map(|it| it.message.as_deref());
    let is_told = match what {
        Missing::Answers => told.any(|message| message.starts_with(UNANSWERED)),
        Missing::Engine => told.any(|message| message.starts_with(NO_ENGINE)),
        Missing::Pod(pod) | Missing::Broker(pod) => {
            told.any(|message| message.split([' ', ',', ';', '.']).any(|word| word == pod))
        }
    };
    let unknown = if is_told { Timestamp::MIN } else { seen.now };
    seen.missing_since.get(what).copied().unwrap_or(unknown)
}

/// New brokers that do not come up: the others serve without them, so nobody would ask why.
fn stragglers(seen: &Seen, given: Given<'_>, model: &Model) -> Option<Condition> {
    let patience = patience(given);
    let away = model.nodes.values().filter(|node| !seen.is_ready(&node.pod) && is_new(seen, node));
    let pods: Vec<&str> = away.filter(|node| is_overdue(seen, node, patience)).map(|node| node.pod.as_str()).collect();
    let text = || {
        let (pods, minutes) = (pods.join(", "), patience.as_mins());
        format!(
            "new brokers have not come up for more than {minutes} minutes: {pods}. Look at these pods and their events"
        )
    };
    (!pods.is_empty()).then(|| Condition {
        reason: Some(TIMEOUT.to_owned()),
        message: Some(text()),
        ..Condition::state(conditions::WARNING)
    })
}

fn listeners(model: &Model, issued: &Issued) -> Vec<ListenerStatus> {
    let host = model.names.service_host(&model.names.bootstrap_service());
    let one = |listener: &super::super::listeners::Listener| ListenerStatus {
        name: Some(listener.name.clone()),
        addresses: vec![ListenerAddress { host: Some(host.clone()), port: Some(i32::from(listener.port)) }],
        bootstrap_servers: Some(format!("{host}:{}", listener.port)),
        certificates: listener.tls.then(|| issued.cluster.certificate.clone()).into_iter().collect(),
    };
    model.listeners.iter().map(one).collect()
}

/// The pools' statuses, those that say something new.
pub(super) fn pools(seen: &Seen, plan: &Plan, cluster_id: &str) -> Vec<Deed> {
    let model = &plan.model;
    let mut deeds = Vec::new();
    for (name, nodes) in &plan.assignment.pools {
        let Some(pool) = seen.node_pools.iter().find(|pool| pool.metadata.name.as_ref() == Some(name)) else {
            continue;
        };
        let before = pool.status.clone().unwrap_or_default();
        let remarks = model.remarks.iter().chain(&plan.kept);
        let own = remarks.filter(|remark| remark.subject == Subject::Pool(name.clone()));
        let selector = pod_set_selector(&model.names, name);
        let selector: Vec<String> = selector.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let status = KafkaNodePoolStatus {
            conditions: conditions::settle(own.map(|remark| remark.condition.clone()), &before.conditions, seen.now),
            observed_generation: pool.metadata.generation,
            node_ids: nodes.desired.iter().copied().collect(),
            roles: nodes.roles.list(),
            cluster_id: Some(cluster_id.to_owned()),
            replicas: i32::try_from(nodes.desired.len()).ok(),
            label_selector: Some(selector.join(",")),
        };
        if pool.status.as_ref() != Some(&status) {
            deeds.push(Deed::PoolStatus { pool: name.clone(), status: Box::new(status) });
        }
    }
    deeds
}

/// What a Kafka says of which nothing can be made. All else stays as it was: the cluster runs on.
pub(super) fn refused(seen: &Seen, trouble: &Trouble) -> KafkaStatus {
    let before = seen.kafka.status.clone().unwrap_or_default();
    let state = match trouble {
        Trouble::Spec(problems) => Problem::condition_of(problems),
        Trouble::Certificates(error) => {
            let text = format!("{}. {}", told(error), error.remedy());
            Condition::state(conditions::NOT_READY).because(Reason::InvalidResourceException, text)
        }
    };
    KafkaStatus {
        conditions: conditions::settle([state], &before.conditions, seen.now),
        observed_generation: seen.kafka.metadata.generation,
        ..before
    }
}

/// What a Kafka says of whose name nothing can be made, and the Event about it, if it is new. Nobody has looked for its objects:
/// not even that can be asked for by such a name.
pub fn unnameable(kafka: &Kafka, wrong: Problem, now: Timestamp) -> (KafkaStatus, Vec<Happening>) {
    let before = kafka.status.clone().unwrap_or_default();
    let state = Problem::condition_of(&[wrong]);
    let note = state.message.clone().unwrap_or_default();
    let is_known = before.conditions.iter().any(|it| it.message.as_ref() == Some(&note));
    let news = if is_known { Vec::new() } else { vec![Happening::warning("NotReady", note)] };
    let conditions = conditions::settle([state], &before.conditions, now);
    (KafkaStatus { conditions, observed_generation: kafka.metadata.generation, ..before }, news)
}

/// What pools say whose specs are to be mended.
pub(super) fn refused_pools(seen: &Seen, trouble: &Trouble) -> Vec<Step> {
    let Trouble::Spec(problems) = trouble else { return Vec::new() };
    let mut deeds = Vec::new();
    let is_own = |pool: &&KafkaNodePool| pool.labels().get(labels::CLUSTER).is_some_and(|of| of == seen.cluster());
    for pool in seen.node_pools.iter().filter(is_own) {
        let Some(name) = pool.metadata.name.clone() else { continue };
        let subject = Subject::Pool(name.clone());
        let own: Vec<Problem> = problems.iter().filter(|problem| problem.subject == subject).cloned().collect();
        let before = pool.status.clone().unwrap_or_default();
        let said = (!own.is_empty()).then(|| Problem::condition_of(&own));
        let status = KafkaNodePoolStatus {
            conditions: conditions::settle(said, &before.conditions, seen.now),
            observed_generation: pool.metadata.generation,
            ..before
        };
        if is_news(pool, &status) {
            deeds.push(Deed::PoolStatus { pool: name, status: Box::new(status) }.into());
        }
    }
    deeds
}

fn is_news(pool: &KafkaNodePool, status: &KafkaNodePoolStatus) -> bool {
    pool.status.as_ref() != Some(status) && !(pool.status.is_none() && status.conditions.is_empty())
}

/// Events about nodes that come and go with what is now written into a pod set.
pub(super) fn nodes_told(seen: &Seen, plan: &Plan, pod_set: &str) -> Vec<Happening> {
    let mut told = Vec::new();
    let listed = |ids: &Ids| ids.iter().map(i32::to_string).collect::<Vec<_>>().join(", ");
    let own = plan.assignment.pools.iter().filter(|(pool, _)| plan.model.names.pod_set(pool) == pod_set);
    for (pool, changed) in own {
        if !changed.added.is_empty() {
            let note = format!("node pool {pool} gets nodes {}", listed(&changed.added));
            told.push(Happening::normal("NodesAdded", note));
        }
        if !changed.removed.is_empty() {
            let unchecked = seen.kafka.metadata.annotations.as_ref().is_some_and(annotations::skips_scale_down_check);
            let why = match changed.roles_before {
                Some(roles) if roles.broker && !unchecked => ": they hold no data",
                Some(roles) if roles.broker => ": nobody looked whether they hold data, as was asked for",
                _ => "",
            };
            told.push(Happening::normal(
                "NodesRemoved",
                format!("node pool {pool} loses nodes {}{why}", listed(&changed.removed)),
            ));
        }
    }
    told
}

/// The Event about a restart.
pub(super) fn restart_told(pod: &str, why: &str) -> Happening {
    Happening::normal("PodRestarted", format!("{pod} is restarted: {why}"))
}

/// The Event about a broker that Kafka forgets.
pub(super) fn unregistration_told(id: i32) -> Happening {
    Happening::normal("BrokerUnregistered", format!("broker {id} is gone and is struck off Kafka's list"))
}

/// The status with what could not be done, and Events about what of it is new. Nothing of this is carried over: what can be
/// done the next time is not spoken of any more.
pub fn confess(status: &KafkaStatus, failed: &[String], seen: &Seen) -> (KafkaStatus, Vec<Happening>) {
    let before = seen.kafka.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let not_done = Reason::KubernetesClientException;
    let warnings: Vec<Condition> = failed.iter().map(|text| Condition::warning(not_done, text.clone())).collect();
    let is_new = |it: &&Condition| !before.iter().any(|old| old.reason == it.reason && old.message == it.message);
    let told = |it: &Condition| Some(Happening::warning(not_done.as_str(), it.message.clone()?));
    let news = warnings.iter().filter(is_new).filter_map(told).collect();
    let all = status.conditions.iter().cloned().chain(warnings);
    (KafkaStatus { conditions: conditions::settle(all, before, seen.now), ..status.clone() }, news)
}

/// The status while the memory of automatic rebalancing cannot be written. Nothing of what was decided about that is done, and
/// what it says of itself stays as it was: the moments in it would be others in every look.
pub fn standing_still(status: &KafkaStatus, before: Option<&KafkaStatus>) -> KafkaStatus {
    const ITS_OWN: [Reason; 4] = [
        Reason::AutoRebalanceFailed,
        Reason::AutoRebalanceStopped,
        Reason::AutoRebalanceWaiting,
        Reason::AutoRebalanceHeld,
    ];
    let is_its_own = |it: &&Condition| ITS_OWN.iter().any(|reason| it.has_reason(*reason));
    let said = before.into_iter().flat_map(|before| before.conditions.iter().filter(is_its_own));
    let others = status.conditions.iter().filter(|it| !is_its_own(it));
    KafkaStatus {
        conditions: others.chain(said).cloned().collect(),
        auto_rebalance: before.and_then(|before| before.auto_rebalance.clone()),
        ..status.clone()
    }
}

/// What a Kafka says that could not be looked at, and why; the Event about it, if it is new. All else stands: nobody has looked.
pub fn unseen(kafka: &Kafka, why: &str, now: Timestamp) -> (KafkaStatus, Vec<Happening>) {
    let before = kafka.status.clone().unwrap_or_default();
    let not_seen = Reason::KubernetesClientException;
    let mut all: Vec<Condition> = before.conditions.iter().filter(|it| !it.has_reason(not_seen)).cloned().collect();
    let has_state = all.iter().any(|it| !it.is_warning());
    all.push(if has_state { Condition::warning(not_seen, why) } else { not_ready(not_seen.as_str(), why) });
    let is_known = before.conditions.iter().any(|it| it.has_reason(not_seen) && it.message.as_deref() == Some(why));
    let news = if is_known { Vec::new() } else { vec![Happening::warning(not_seen.as_str(), why.to_owned())] };
    (KafkaStatus { conditions: conditions::settle(all, &before.conditions, now), ..before }, news)
}

/// Events about what is newly so. What only says the same in other words, such as how much data a broker still holds, is
/// no news.
pub(super) fn news(seen: &Seen, status: &KafkaStatus) -> Vec<Happening> {
    let before = seen.kafka.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let gist = |condition: &Condition| {
        let message = condition.message.as_deref().unwrap_or_default();
        let about = message.split(':').next().unwrap_or_default().to_owned();
        let about = if condition.is_warning() { (about, scale_down::kind_of(message)) } else { Default::default() };
        (condition.type_.clone(), condition.reason.clone(), about)
    };
    let passes = |condition: &Condition| condition.message.as_deref().is_some_and(scale_down::passes);
    let is_new = |it: &&Condition| !before.iter().any(|old| !passes(old) && gist(old) == gist(it));
    let mut told = Vec::new();
    for condition in status.conditions.iter().filter(|it| !passes(it)).filter(is_new) {
        let note = condition.message.clone().unwrap_or_default();
        let loud = [Reason::ScaleDownPreventionCheck, Reason::InvalidResourceException];
        let loud = loud.into_iter().find(|reason| condition.is_warning() && condition.has_reason(*reason));
        if let Some(reason) = loud {
            told.push(Happening::warning(reason.as_str(), note));
        } else if condition.type_ == conditions::NOT_READY && condition.reason.as_deref() != Some(CREATING) {
            told.push(Happening::warning("NotReady", note));
        } else if condition.type_ == conditions::READY {
            told.push(Happening::normal("Ready", "the cluster is ready"));
        }
    }
    let waits =
        |of: &[Condition]| of.first().filter(|it| it.type_ == conditions::READY).and_then(|it| it.message.clone());
    if let Some(note) = waits(&status.conditions).filter(|note| waits(before).as_ref() != Some(note)) {
        told.push(Happening::normal("RestartWaits", note));
    }
    told
}
