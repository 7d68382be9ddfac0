//! The end of a namespace: everything in it goes, then the namespace itself.
//!
//! A namespace that terminates is emptied kind by kind. What finalizers hold is waited for by watching it, and the
//! namespace's conditions say what is waited for. When nothing is left the finalizer `kubernetes` goes, which only the
//! `finalize` subresource can do.

mod conditions;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::core::{DynamicObject, PartialObjectMeta};
use kube::runtime::watcher::{self, Event, watcher};
use kube::runtime::{WatchStreamExt, utils::Backoff};
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use tokio::task::JoinSet;

use crate::kinds::{Kind, Known};
use crate::patience::patience;
use conditions::Remaining;

/// The finalizer of every namespace.
const KUBERNETES: &str = "kubernetes";

/// Look again after this long even if no watch spoke: a kind may have appeared, or a watch may be broken.
const SAFETY_NET: Duration = Duration::from_secs(15);

/// How many kinds are cleared at the same time.
const AT_ONCE: usize = 8;

/// Empties namespaces that terminate, until dropped.
pub async fn run(client: Client, known: Known) {
    let mut at_work: JoinSet<String> = JoinSet::new();
    let mut terminating = BTreeSet::new();
    let namespaces = Api::<Namespace>::all(client.clone());
    let mut events = watcher(namespaces, watcher::Config::default()).backoff(patience()).boxed();
    loop {
        tokio::select! {
            Some(event) = events.next() => match event {
                Ok(Event::Apply(namespace) | Event::InitApply(namespace)) => {
                    if must_be_emptied(&namespace) && terminating.insert(namespace.name_any()) {
                        at_work.spawn(end(client.clone(), known.clone(), namespace.name_any()));
                    }
                }
                Ok(_) => (),
                Err(error) => tracing::debug!(%error, "the watch of namespaces starts again"),
            },
            Some(ended) = at_work.join_next() => match ended {
                Ok(name) => drop(terminating.remove(&name)),
                Err(error) => tracing::error!(%error, "the end of a namespace broke off"),
            },
        }
    }
}

fn must_be_emptied(namespace: &Namespace) -> bool {
    let finalizers = namespace.spec.as_ref().and_then(|spec| spec.finalizers.as_deref()).unwrap_or_default();
    namespace.metadata.deletion_timestamp.is_some() && finalizers.iter().any(|finalizer| finalizer == KUBERNETES)
}

/// Brings one namespace to its end; returns its name.
async fn end(client: Client, known: Known, name: String) -> String {
    let mut waits = patience();
    loop {
        let kinds: Vec<Kind> = {
            let known = known.borrow();
            known.iter().flat_map(|kinds| kinds.iter()).filter(|kind| kind.namespaced).cloned().collect()
        };
        match step(&client, &name, &kinds).await {
            Ok(Step::Ended) => return name,
            Ok(Step::Waits(kinds)) => {
                waits.reset();
                wait_for_change(&client, &name, &kinds).await;
            }
            Err(error) => {
                tracing::debug!(%error, namespace = name, "could not empty a namespace; trying again");
                tokio::time::sleep(waits.next().unwrap_or_default()).await;
            }
        }
    }
}

enum Step {
    /// It is gone, or needs us no more.
    Ended,
    /// Objects of these kinds are still there.
    Waits(Vec<Kind>),
}

/// Deletes what is there, and says what is left.
async fn step(client: &Client, name: &str, kinds: &[Kind]) -> kube::Result<Step> {
    let namespaces = Api::<Namespace>::all(client.clone());
    let Some(namespace) = namespaces.get_opt(name).await?.filter(must_be_emptied) else { return Ok(Step::Ended) };
    if kinds.is_empty() {
        // Nothing is known yet, which is not the same as nothing being there.
        return Ok(Step::Waits(Vec::new()));
    }
    let cleared = futures::stream::iter(kinds.to_vec()).map(|kind| async move {
        let left = clear(client, name, &kind).await;
        (kind, left)
    });
    let cleared: Vec<_> = cleared.buffered(AT_ONCE).collect().await;

    let mut remaining = Remaining::default();
    let mut waiting = Vec::new();
    for (kind, left) in cleared {
        match left {
            Ok(left) if left.is_empty() => (),
            Ok(left) => {
                remaining.add(&kind, &left);
                waiting.push(kind);
            }
            Err(error) => {
                remaining.failed(&error);
                waiting.push(kind);
            }
        }
    }
    if waiting.is_empty() {
        finalize(client, &namespace).await?;
        return Ok(Step::Ended);
    }
    if let Some(conditions) = remaining.conditions(&namespace) {
        let status = Patch::Merge(json!({"status": {"conditions": conditions}}));
        namespaces.patch_status(name, &PatchParams::default(), &status).await?;
    }
    Ok(Step::Waits(waiting))
}

/// Deletes all objects of a kind; returns those that are still there, by name, with their finalizers.
async fn clear(client: &Client, namespace: &str, kind: &Kind) -> kube::Result<BTreeMap<String, Vec<String>>> {
    let api = Api::<DynamicObject>::namespaced_with(client.clone(), namespace, &kind.resource);
    if left_of(&api).await?.is_empty() {
        return Ok(BTreeMap::new());
    }
    let background = DeleteParams::background();
    match api.delete_collection(&background, &ListParams::default()).await {
        Ok(_) => (),
        // Not every kind can be deleted by the dozen.
        Err(kube::Error::Api(status)) if status.code == 405 => {
            for name in left_of(&api).await?.keys() {
                match api.delete(name, &background).await {
                    Err(kube::Error::Api(status)) if status.is_not_found() => (),
                    other => drop(other?),
                }
            }
        }
        Err(kube::Error::Api(status)) if status.is_not_found() => (),
        Err(error) => return Err(error),
    }
    left_of(&api).await
}

async fn left_of(api: &Api<DynamicObject>) -> kube::Result<BTreeMap<String, Vec<String>>> {
    match api.list_metadata(&ListParams::default()).await {
        Ok(list) => {
            let items = list.items.into_iter();
            Ok(items.map(|item| (item.name_any(), item.metadata.finalizers.unwrap_or_default())).collect())
        }
        // The kind went meanwhile, and its objects with it.
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(BTreeMap::new()),
        Err(error) => Err(error),
    }
}

/// Takes our finalizer from the namespace, whereupon the server removes it.
async fn finalize(client: &Client, namespace: &Namespace) -> kube::Result<()> {
    let mut released = namespace.clone();
    if let Some(finalizers) = released.spec.as_mut().and_then(|spec| spec.finalizers.as_mut()) {
        finalizers.retain(|finalizer| finalizer != KUBERNETES);
    }
    let path = format!("/api/v1/namespaces/{}/finalize", namespace.name_any());
    let body = serde_json::to_vec(&released).map_err(kube::Error::SerdeError)?;
    let request = http::Request::put(path).header("content-type", "application/json").body(body);
    match client.request::<serde_json::Value>(request.map_err(kube::Error::HttpError)?).await {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        other => other.map(drop),
    }
}

/// Until something in the namespace goes or changes, or the safety net.
async fn wait_for_change(client: &Client, namespace: &str, kinds: &[Kind]) {
    let watches = kinds.iter().map(|kind| {
        let api = Api::<PartialObjectMeta<DynamicObject>>::namespaced_with(client.clone(), namespace, &kind.resource);
        let events = watcher(api, watcher::Config::default()).backoff(patience());
        events.filter(|event| std::future::ready(matches!(event, Ok(Event::Delete(_) | Event::Apply(_))))).boxed()
    });
    let mut changes = futures::stream::select_all(watches);
    // With nothing to watch the stream ends at once; the net must hold then.
    let change = async {
        if changes.next().await.is_none() {
            std::future::pending().await
        }
    };
    let _ = tokio::time::timeout(SAFETY_NET, change).await;
}
