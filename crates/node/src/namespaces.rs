//! The end of a namespace: everything in it goes, then the namespace itself.
//!
//! A namespace that terminates is emptied kind by kind. What finalizers hold is waited for by watching it, and the
//! namespace's conditions say what is waited for. When nothing is left the finalizer `kubernetes` goes, which only the
//! `finalize` subresource can do.

mod conditions;

use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::{FutureExt, StreamExt};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, WatchEvent, WatchParams};
use kube::core::DynamicObject;
use kube::runtime::watcher::{self, Event, watcher};
use kube::runtime::{WatchStreamExt, utils::Backoff};
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use tokio::task::JoinSet;

use crate::kinds::{self, Kind, Known};
use crate::patience::patience;
use conditions::Remaining;

/// The finalizer of every namespace.
const KUBERNETES: &str = "kubernetes";

/// Look again after this long even if no watch spoke: one may be broken.
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
                    // By uid: the next of the same name may come and go before we hear that this one has ended.
                    let uid = namespace.uid().unwrap_or_default();
                    if must_be_emptied(&namespace) && terminating.insert(uid.clone()) {
                        let (client, known) = (client.clone(), known.clone());
                        at_work.spawn(async move {
                            persist(|| end(client.clone(), known.clone(), namespace.name_any())).await;
                            uid
                        });
                    }
                }
                Ok(_) => (),
                Err(error) => tracing::debug!(%error, "the watch of namespaces starts again"),
            },
            // These tasks are not cancelled, and catch their panics.
            Some(Ok(uid)) = at_work.join_next() => drop(terminating.remove(&uid)),
        }
    }
}

/// Begins again after a panic: the namespace would hang otherwise, as nothing else will speak of it.
async fn persist<F: Future<Output = ()>>(work: impl Fn() -> F) {
    while AssertUnwindSafe(work()).catch_unwind().await.is_err() {
        tracing::error!("the end of a namespace broke off; beginning again");
        tokio::time::sleep(SAFETY_NET).await;
    }
}

fn must_be_emptied(namespace: &Namespace) -> bool {
    let finalizers = namespace.spec.as_ref().and_then(|spec| spec.finalizers.as_deref()).unwrap_or_default();
    namespace.metadata.deletion_timestamp.is_some() && finalizers.iter().any(|finalizer| finalizer == KUBERNETES)
}

/// Brings one namespace to its end.
async fn end(client: Client, mut known: Known, name: String) {
    let mut waits = patience();
    loop {
        let kinds: Vec<Kind> = {
            let known = known.borrow_and_update();
            known.iter().flat_map(|kinds| kinds.iter()).filter(|kind| kind.namespaced).cloned().collect()
        };
        match step(&client, &name, &kinds).await {
            Ok(Step::Ended) => return,
            Ok(Step::Waits(left)) => {
                waits.reset();
                wait_for_change(&client, &name, &left, &mut known).await;
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
    /// Objects of these kinds were still there at these versions.
    Waits(Vec<(Kind, String)>),
}

/// What is there of a kind.
#[derive(Default)]
struct Left {
    /// By name, with their finalizers.
    objects: BTreeMap<String, Vec<String>>,
    /// Version of the list: from here on a watch misses nothing.
    version: String,
}

/// Deletes what is there, and says what is left.
async fn step(client: &Client, name: &str, kinds: &[Kind]) -> kube::Result<Step> {
    let namespaces = Api::<Namespace>::all(client.clone());
    let Some(namespace) = namespaces.get_opt(name).await?.filter(must_be_emptied) else { return Ok(Step::Ended) };
    if kinds.is_empty() {
        // Nothing is known yet, which is not the same as nothing being there.
        return Ok(Step::Waits(Vec::new()));
    }
    // A kind may have been defined a moment ago, and its definition not yet heard of. What is in the namespace came before
    // its end began, so its definition is there by now.
    let mut kinds = kinds.to_vec();
    for kind in kinds::defined(client).await?.into_iter().filter(|kind| kind.namespaced) {
        if kinds.iter().all(|known| known.id() != kind.id()) {
            kinds.push(kind);
        }
    }
    let cleared = futures::stream::iter(kinds).map(|kind| async move {
        let left = clear(client, name, &kind).await;
        (kind, left)
    });
    let cleared: Vec<_> = cleared.buffered(AT_ONCE).collect().await;

    let mut remaining = Remaining::default();
    let (mut waiting, mut failed) = (Vec::new(), false);
    for (kind, left) in cleared {
        match left {
            Ok(left) if left.objects.is_empty() => (),
            Ok(left) => {
                remaining.add(&kind, &left.objects);
                waiting.push((kind, left.version));
            }
            Err(error) => {
                remaining.failed(&error);
                failed = true;
            }
        }
    }
    if waiting.is_empty() && !failed {
        finalize(client, &namespace).await?;
        return Ok(Step::Ended);
    }
    if let Some(conditions) = remaining.conditions(&namespace) {
        let status = Patch::Merge(json!({"status": {"conditions": conditions}}));
        namespaces.patch_status(name, &PatchParams::default(), &status).await?;
    }
    Ok(Step::Waits(waiting))
}

/// Deletes all objects of a kind; returns those that are still there.
async fn clear(client: &Client, namespace: &str, kind: &Kind) -> kube::Result<Left> {
    let api = Api::<DynamicObject>::namespaced_with(client.clone(), namespace, &kind.resource);
    if left_of(&api).await?.objects.is_empty() {
        return Ok(Left::default());
    }
    let background = DeleteParams::background();
    match api.delete_collection(&background, &ListParams::default()).await {
        Ok(_) => (),
        // Not every kind can be deleted by the dozen.
        Err(kube::Error::Api(status)) if status.code == 405 => {
            for name in left_of(&api).await?.objects.keys() {
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

async fn left_of(api: &Api<DynamicObject>) -> kube::Result<Left> {
    match api.list_metadata(&ListParams::default()).await {
        Ok(list) => {
            let items = list.items.into_iter();
            let objects = items.map(|item| (item.name_any(), item.metadata.finalizers.unwrap_or_default())).collect();
            Ok(Left { objects, version: list.metadata.resource_version.unwrap_or_default() })
        }
        // The kind went meanwhile, and its objects with it.
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(Left::default()),
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

/// Until something in the namespace goes or changes, or kinds come or go, or the safety net.
async fn wait_for_change(client: &Client, namespace: &str, left: &[(Kind, String)], known: &mut Known) {
    let watches = left.iter().map(|(kind, version)| {
        let api = Api::<DynamicObject>::namespaced_with(client.clone(), namespace, &kind.resource);
        async move {
            match api.watch_metadata(&WatchParams::default(), version).await {
                Ok(events) => events.boxed().next().await,
                Err(error) => Some(Err(error)),
            }
        }
        .boxed()
    });
    let mut watches: futures::stream::FuturesUnordered<_> = watches.collect();
    let change = async {
        while let Some(event) = watches.next().await {
            match event {
                // The version is too old to watch from: something happened.
                Some(Ok(WatchEvent::Error(status))) if status.code != 410 => {
                    tracing::debug!(%status, namespace, "a watch does not work");
                }
                Some(Err(error)) => tracing::debug!(%error, namespace, "a watch does not work"),
                None => (),
                Some(Ok(_)) => return,
            }
        }
        // Nothing is left to watch; the net must hold then.
        std::future::pending().await
    };
    tokio::select! {
        () = change => (),
        Ok(()) = known.changed() => (),
        () = tokio::time::sleep(SAFETY_NET) => (),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_panic_is_not_the_end() {
        let tries = AtomicU32::new(0);
        persist(|| async { assert_eq!(tries.fetch_add(1, Ordering::Relaxed), 1, "the first try panics") }).await;
        assert_eq!(tries.into_inner(), 2);
    }
}
