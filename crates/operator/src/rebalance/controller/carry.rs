//! Carries a decision out, write by write, in the order in which a crash between any two does no harm.
//!
//! Every write names the version that it rests on. If somebody else wrote meanwhile the server refuses it, nothing
//! after it is done, and everything is looked at anew.

use evenkeel_api::{KafkaRebalance, KafkaRebalanceStatus, annotations};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Map, Value, json};

use super::observe::Sight;
use crate::error::{Error, Remedy};
use crate::rebalance::{Decision, EventKind, Finalizer, FoundConfigMap, Order};
use crate::seams::{Context, Happening, NAME};

/// How far a decision was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Carried {
    /// Every write of it was made.
    Out,
    /// The ConfigMap was refused, of which `sight` tells now, and nothing after it was done: it is to be decided again,
    /// with everything that was heard.
    UpToTheConfigMap,
}

/// Makes all writes of a decision, and keeps `sight` true.
pub(super) async fn carry_out(context: &Context, sight: &mut Sight, decision: &Decision) -> Result<Carried, Error> {
    let mut hand = Hand::new(context, sight);
    if decision.finalizer == Finalizer::Add {
        hand.set_finalizer(true).await?;
    }
    let forgets = |order: Order| decision.forget.as_ref().is_some_and(|forget| forget.order == order);
    if forgets(Order::BeforeStatus) {
        hand.forget().await?;
    }
    if let Some(config_map) = &decision.config_map
        && let Err(error) = hand.write_config_map(config_map).await
    {
        let why = refusal(&error).ok_or(error)?;
        let found = std::mem::take(&mut hand.sight.seen.config_map);
        hand.sight.seen.config_map = found.refused(why);
        return Ok(Carried::UpToTheConfigMap);
    }
    if let Some(status) = &decision.status {
        hand.write_status(status).await?;
    }
    if forgets(Order::AfterStatus) {
        hand.forget().await?;
    }
    if decision.finalizer == Finalizer::Remove {
        hand.set_finalizer(false).await?;
    }
    if decision.begins_something() && !hand.has_written {
        hand.make_sure().await?;
    }
    for event in &decision.events {
        hand.tell(event).await;
    }
    Ok(Carried::Out)
}

/// What the API server said, if it was reached and will have none of it. Who was overtaken looks again instead.
fn refusal(error: &Error) -> Option<String> {
    match error {
        Error::Write { source: kube::Error::Api(status), .. } if error.remedy() != Remedy::LookAgain => {
            Some(if status.message.is_empty() { format!("status {}", status.code) } else { status.message.clone() })
        }
        _ => None,
    }
}

struct Hand<'a> {
    context: &'a Context,
    rebalances: Api<KafkaRebalance>,
    config_maps: Api<ConfigMap>,
    name: String,
    sight: &'a mut Sight,
    /// Whether the resource was written, and so was still what had been seen.
    has_written: bool,
}

impl<'a> Hand<'a> {
    fn new(context: &'a Context, sight: &'a mut Sight) -> Self {
        let metadata = &sight.seen.resource.metadata;
        let namespace = metadata.namespace.clone().unwrap_or_default();
        Self {
            context,
            rebalances: Api::namespaced(context.client.clone(), &namespace),
            config_maps: Api::namespaced(context.client.clone(), &namespace),
            name: metadata.name.clone().unwrap_or_default(),
            sight,
            has_written: false,
        }
    }

    fn learn(&mut self, resource: KafkaRebalance) {
        self.has_written = true;
        self.sight.versions.resource = resource.metadata.resource_version.clone();
        self.sight.seen.resource = resource;
    }

    /// Changes something in the resource's metadata.
    async fn patch(&mut self, what: &'static str, key: &str, value: Value) -> Result<(), Error> {
        let mut metadata = Map::from_iter([(key.to_owned(), value)]);
        metadata.insert("resourceVersion".to_owned(), json!(self.sight.seen.resource.metadata.resource_version));
        let patch = Patch::Merge(json!({ "metadata": metadata }));
        let patched = self.rebalances.patch(&self.name, &params(), &patch).await.map_err(Error::writing(what))?;
        self.learn(patched);
        Ok(())
    }

    /// Writes nothing new, so that the server compares: since the resource was read the engine was asked, which takes its
    /// time, and a deletion, a pause or a word of the user that came meanwhile comes before what is about to begin. So does
    /// another operator that has taken over.
    async fn make_sure(&mut self) -> Result<(), Error> {
        let finalizers = self.sight.seen.resource.metadata.finalizers.clone().unwrap_or_default();
        self.patch("the finalizer", "finalizers", json!(finalizers)).await
    }

    /// Ours is added or removed, others stay where they are.
    async fn set_finalizer(&mut self, on: bool) -> Result<(), Error> {
        let found = self.sight.seen.resource.metadata.finalizers.clone().unwrap_or_default();
        let mut wanted: Vec<String> = found.into_iter().filter(|it| it != annotations::REBALANCE_FINALIZER).collect();
        if on {
            wanted.push(annotations::REBALANCE_FINALIZER.to_owned());
        }
        self.patch("the finalizer", "finalizers", json!(wanted)).await
    }

    /// Takes the command away. That it still is the one that was heard follows from the version.
    async fn forget(&mut self) -> Result<(), Error> {
        self.patch("the annotation", "annotations", json!({ (annotations::REBALANCE): null })).await
    }

    async fn write_status(&mut self, status: &KafkaRebalanceStatus) -> Result<(), Error> {
        let mut resource = self.sight.seen.resource.clone();
        resource.status = Some(status.clone());
        // It is sent as it was read, or the server takes it for an attempt to change who manages what.
        let params = PostParams { field_manager: Some(NAME.to_owned()), ..PostParams::default() };
        let written = self.rebalances.replace_status(&self.name, &params, &resource).await;
        self.learn(written.map_err(Error::writing("the status"))?);
        Ok(())
    }

    /// Creates it, or brings its data to what they should be. Labels and annotations of others stay.
    async fn write_config_map(&mut self, wanted: &ConfigMap) -> Result<(), Error> {
        let failed = Error::writing("the ConfigMap");
        let written = match &self.sight.seen.config_map {
            FoundConfigMap::Ours(found) | FoundConfigMap::Inherited(found) => {
                let mut data: Map<String, Value> = found.keys().map(|key| (key.clone(), Value::Null)).collect();
                data.extend(wanted.data.iter().flatten().map(|(key, value)| (key.clone(), json!(value))));
                let version = &self.sight.versions.config_map;
                let mut metadata = json!({ "resourceVersion": version, "labels": wanted.metadata.labels });
                if matches!(self.sight.seen.config_map, FoundConfigMap::Inherited(_)) {
                    metadata["ownerReferences"] = json!(wanted.metadata.owner_references);
                }
                let patch = Patch::Merge(json!({ "metadata": metadata, "data": data }));
                self.config_maps.patch(&self.name, &params(), &patch).await
            }
            // One that appeared meanwhile makes this fail, whoever it belongs to.
            _ => {
                let params = PostParams { field_manager: Some(NAME.to_owned()), ..PostParams::default() };
                self.config_maps.create(&params, wanted).await
            }
        };
        let written = written.map_err(failed)?;
        self.sight.versions.config_map = written.metadata.resource_version.clone();
        self.sight.seen.config_map = FoundConfigMap::of(&self.sight.seen.resource, Some(&written));
        self.sight.seen.recorded_cluster = FoundConfigMap::cluster(&self.sight.seen.resource, Some(&written));
        Ok(())
    }

    async fn tell(&self, event: &crate::rebalance::Event) {
        let happened = match event.kind {
            EventKind::Normal => Happening::normal(event.reason.clone(), event.note.clone()),
            EventKind::Warning => Happening::warning(event.reason.clone(), event.note.clone()),
        };
        self.context.tell(&self.sight.seen.resource, &happened).await;
    }
}

fn params() -> PatchParams {
    PatchParams { field_manager: Some(NAME.to_owned()), ..PatchParams::default() }
}
