//! Who leads through the tour: does what a person would do, waits as a person would, and counts what was promised and
//! what was kept.
//!
//! Everything goes through the API that people use, so somebody with `kubectl` may look on, or interfere.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::io::{self, Write};
use std::time::Duration;

use anyhow::Context;
use evenkeel_kafka::Client as Kafka;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::events::v1::Event;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Resource, ResourceExt};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::super::patience::PATIENCE;
use super::backstage::Backstage;
use super::brokers::Brokers;
use super::show::Show;

/// How often the API is asked while something is waited for.
const GLANCE: Duration = Duration::from_millis(200);
/// For how long something must stay as it is to be called lasting.
const LASTING: Duration = Duration::from_secs(2);

/// What is seen of something that is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It is so.
    Reached,
    /// Not yet: where it stands, and how far in percent if that can be told.
    Not(String, Option<u8>),
    /// Not, and waiting will not change it: why.
    Never(String),
}

impl Standing {
    /// Reached, or where it stands instead.
    pub(crate) fn reached_if(reached: bool, otherwise: impl Into<String>) -> Self {
        if reached { Self::Reached } else { Self::Not(otherwise.into(), None) }
    }
}

/// Kinds that the tour makes and changes.
pub(crate) trait Told:
    Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + DeserializeOwned + Serialize + Debug
{
}

impl<K> Told for K where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + DeserializeOwned + Serialize + Debug
{
}

/// What kubectl takes for the resource.
fn called<K: Told>(name: &str) -> String {
    format!("{}/{name}", K::kind(&()).to_lowercase())
}

/// A promise that was not kept ends the tour.
#[derive(Debug, thiserror::Error)]
#[error("the tour ended at a promise that was not kept: {0}")]
pub(crate) struct Broken(pub(crate) String);

/// The guide through one run.
pub(crate) struct Guide<W> {
    pub(crate) kube: kube::Client,
    pub(crate) namespace: String,
    pub(crate) cluster: String,
    /// Kafka as clients of the cluster reach it: through its plain listener.
    pub(crate) kafka: Kafka,
    /// The address that people point their clients at.
    pub(crate) bootstrap: String,
    /// The topics that the cluster was given, and how many partitions each has.
    pub(crate) topics: Vec<(String, i32)>,
    /// What no kubectl does.
    pub(crate) backstage: Backstage,
    show: Show<W>,
    /// Wait for a key before every chapter.
    pub(crate) pauses: bool,
    seen_events: BTreeSet<String>,
    kept: usize,
}

impl<W: Write> Guide<W> {
    pub(crate) fn new(kube: kube::Client, namespace: &str, cluster: &str, kafka: Kafka, show: Show<W>) -> Self {
        Self {
            kube,
            namespace: namespace.to_owned(),
            cluster: cluster.to_owned(),
            kafka,
            bootstrap: String::new(),
            topics: Vec::new(),
            backstage: Backstage::default(),
            show,
            pauses: false,
            seen_events: BTreeSet::new(),
            kept: 0,
        }
    }

    /// How many promises were kept so far.
    pub(crate) fn kept(&self) -> usize {
        self.kept
    }

    /// The resources of a kind in the namespace of the tour.
    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.kube.clone(), &self.namespace)
    }

    pub(crate) async fn heading(&mut self, text: &str) -> anyhow::Result<()> {
        self.show.heading(text)?;
        if self.pauses {
            self.show.status("press Enter to go on", None)?;
            tokio::task::spawn_blocking(|| io::stdin().read_line(&mut String::new())).await??;
            self.show.settled()?;
        }
        Ok(())
    }

    pub(crate) fn tell(&mut self, text: &str) -> io::Result<()> {
        self.show.tell(text)
    }

    /// Shows what a person would type; what is done by the API itself has its own word below, which shows what it does.
    pub(crate) fn command(&mut self, text: &str) -> io::Result<()> {
        self.show.command(text)
    }

    /// Says that something is so; it is the caller who looked.
    pub(crate) fn promise(&mut self, kept: bool, text: &str) -> anyhow::Result<()> {
        self.show.promise(kept, text)?;
        if !kept {
            return Err(Broken(text.to_owned()).into());
        }
        self.kept += 1;
        Ok(())
    }

    /// Makes what a manifest says, as `kubectl create` does.
    pub(crate) async fn create<K: Told>(&mut self, manifest: &str) -> anyhow::Result<()> {
        self.show.command(&format!("kubectl create -f - <<'END'\n{}\nEND", manifest.trim()))?;
        let wanted: K = serde_saphyr::from_str(manifest).context("a manifest of the tour is no YAML")?;
        let made = self.api::<K>().create(&PostParams::default(), &wanted).await;
        made.with_context(|| format!("could not make {}", wanted.name_any()))?;
        Ok(())
    }

    /// Merges `patch` into a resource, as `kubectl patch --type merge` does.
    pub(crate) async fn patch<K: Told>(&mut self, name: &str, patch: &Value) -> anyhow::Result<()> {
        self.show.command(&format!("kubectl patch {} --type merge -p '{patch}'", called::<K>(name)))?;
        self.merge::<K>(name, patch).await
    }

    /// Sets an annotation, as `kubectl annotate` does.
    pub(crate) async fn annotate<K: Told>(&mut self, name: &str, key: &str, value: &str) -> anyhow::Result<()> {
        self.show.command(&format!("kubectl annotate {} {key}={value}", called::<K>(name)))?;
        self.merge::<K>(name, &json!({"metadata": {"annotations": {key: value}}})).await
    }

    /// Has a resource deleted, as `kubectl delete --wait=false` does.
    pub(crate) async fn delete<K: Told>(&mut self, name: &str) -> anyhow::Result<()> {
        self.show.command(&format!("kubectl delete {} --wait=false", called::<K>(name)))?;
        let deleted = self.api::<K>().delete(name, &DeleteParams::default()).await;
        deleted.with_context(|| format!("could not delete {name}"))?;
        Ok(())
    }

    /// Ends a pod without a word to what runs in it, as `kubectl delete --force` does.
    pub(crate) async fn kill_pod(&mut self, name: &str) -> anyhow::Result<()> {
        self.show.command(&format!("kubectl delete pod/{name} --force --grace-period=0"))?;
        let now = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
        self.api::<Pod>().delete(name, &now).await.with_context(|| format!("could not delete {name}"))?;
        Ok(())
    }

    /// Sets how many there are to be, as `kubectl scale` does.
    pub(crate) async fn scale<K: Told>(&mut self, name: &str, replicas: i32) -> anyhow::Result<()> {
        self.show.command(&format!("kubectl scale {} --replicas={replicas}", called::<K>(name)))?;
        let patch = json!({"spec": {"replicas": replicas}});
        let scaled = self.api::<K>().patch_scale(name, &PatchParams::default(), &Patch::Merge(&patch)).await;
        scaled.with_context(|| format!("could not scale {name}"))?;
        Ok(())
    }

    async fn merge<K: Told>(&self, name: &str, patch: &Value) -> anyhow::Result<()> {
        let patched = self.api::<K>().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await;
        patched.with_context(|| format!("could not patch {name}"))?;
        Ok(())
    }

    /// Looks again and again until what is promised has come true, and tells what happens meanwhile. A look that fails
    /// is no verdict: a broker that goes may take an answer with it.
    pub(crate) async fn until<F>(&mut self, promise: &str, mut look: F) -> anyhow::Result<()>
    where
        F: AsyncFnMut(&Self) -> anyhow::Result<Standing>,
    {
        let end = Instant::now() + PATIENCE;
        loop {
            self.tell_events().await?;
            let (text, percent) = match look(self).await {
                Ok(Standing::Reached) => {
                    self.show.settled()?;
                    return self.promise(true, promise);
                }
                Ok(Standing::Never(why)) => {
                    self.show.settled()?;
                    return self.promise(false, &format!("{promise}: {why}"));
                }
                Ok(Standing::Not(text, percent)) => (text, percent),
                Err(error) => (format!("{error:#}"), None),
            };
            self.show.status(&text, percent)?;
            if Instant::now() >= end {
                self.show.settled()?;
                let seconds = PATIENCE.as_secs();
                return self.promise(false, &format!("{promise}: not within {seconds} s; it stands at: {text}"));
            }
            tokio::time::sleep(GLANCE).await;
        }
    }

    /// Looks again and again for a while: what is promised must be so each time. A look that fails sees nothing, and if all
    /// of them do, that is said after a while.
    pub(crate) async fn throughout<F>(&mut self, promise: &str, mut look: F) -> anyhow::Result<()>
    where
        F: AsyncFnMut(&Self) -> anyhow::Result<bool>,
    {
        let begun = Instant::now();
        let mut seen = false;
        while begun.elapsed() < LASTING || !seen {
            self.tell_events().await?;
            match look(self).await {
                Ok(true) => seen = true,
                Ok(false) => return self.promise(false, promise),
                Err(error) if begun.elapsed() >= PATIENCE => {
                    self.show.settled()?;
                    let seconds = PATIENCE.as_secs();
                    return self
                        .promise(false, &format!("{promise}: nothing is seen of it for {seconds} s: {error:#}"));
                }
                Err(error) => self.show.status(&format!("{error:#}"), None)?,
            }
            tokio::time::sleep(GLANCE).await;
        }
        self.show.settled()?;
        self.promise(seen, promise)
    }

    /// Tells of the events that came since the last time.
    async fn tell_events(&mut self) -> io::Result<()> {
        // Those that could not be listed now will be told the next time.
        for event in self.api::<Event>().list(&ListParams::default()).await.into_iter().flatten() {
            let mark = format!("{}/{}", event.name_any(), event.resource_version().unwrap_or_default());
            if !self.seen_events.insert(mark) {
                continue;
            }
            let of = event.regarding.as_ref();
            let kind = of.and_then(|it| it.kind.clone()).unwrap_or_default();
            let name = of.and_then(|it| it.name.clone()).unwrap_or_default();
            let reason = event.reason.clone().unwrap_or_default();
            let note = event.note.clone().unwrap_or_default();
            self.show.event(&format!("{kind}/{name} {reason}: {note}"))?;
        }
        Ok(())
    }

    /// Shows the brokers as they are now.
    pub(crate) async fn picture(&mut self) -> anyhow::Result<Brokers> {
        let brokers = self.brokers().await?;
        self.show.picture(&brokers.table())?;
        Ok(brokers)
    }

    /// The brokers as they are now. Kafka is asked until it answers: one of them may just be going.
    pub(crate) async fn brokers(&mut self) -> anyhow::Result<Brokers> {
        let end = Instant::now() + PATIENCE;
        loop {
            match Brokers::look(&self.kafka).await {
                Ok(brokers) => return Ok(brokers),
                Err(error) if Instant::now() >= end => return Err(error).context("could not ask Kafka"),
                Err(error) => self.show.status(&format!("could not ask Kafka: {error}"), None)?,
            }
            tokio::time::sleep(GLANCE).await;
        }
    }

    /// Shows a text as it is.
    pub(crate) fn print(&mut self, text: &str) -> io::Result<()> {
        self.show.picture(text)
    }
}

#[cfg(test)]
#[path = "guide_tests.rs"]
mod tests;
