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
use k8s_openapi::api::events::v1::Event;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Resource, ResourceExt};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use tokio::time::Instant;

use super::brokers::Brokers;
use super::show::Show;

/// How often the API is asked while something is waited for.
const GLANCE: Duration = Duration::from_millis(200);

/// What is seen of something that is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It is so.
    Reached,
    /// Not yet: where it stands, and how far in percent if that can be told.
    Not(String, Option<u8>),
}

impl Standing {
    /// Reached, or where it stands instead.
    pub(crate) fn reached_if(reached: bool, otherwise: impl Into<String>) -> Self {
        if reached { Self::Reached } else { Self::Not(otherwise.into(), None) }
    }
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
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
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

    /// Shows what a person would type.
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

    /// Merges `patch` into a resource, as `kubectl patch --type merge` does.
    pub(crate) async fn patch<K>(&self, name: &str, patch: &Value) -> anyhow::Result<K>
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
            + Clone
            + DeserializeOwned
            + Serialize
            + Debug,
    {
        let patched = self.api::<K>().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await;
        patched.with_context(|| format!("could not patch {name}"))
    }

    /// Looks again and again until what is promised has come true, and tells what happens meanwhile.
    pub(crate) async fn until<F>(&mut self, promise: &str, within: Duration, mut look: F) -> anyhow::Result<()>
    where
        F: AsyncFnMut(&Self) -> anyhow::Result<Standing>,
    {
        let end = Instant::now() + within;
        loop {
            self.tell_events().await?;
            let Standing::Not(text, percent) = look(self).await? else {
                self.show.settled()?;
                return self.promise(true, promise);
            };
            self.show.status(&text, percent)?;
            if Instant::now() >= end {
                self.show.settled()?;
                let seconds = within.as_secs();
                return self.promise(false, &format!("{promise}: not within {seconds} s; it stands at: {text}"));
            }
            tokio::time::sleep(GLANCE).await;
        }
    }

    /// Tells of the events that came since the last time.
    async fn tell_events(&mut self) -> anyhow::Result<()> {
        let events = self.api::<Event>().list(&ListParams::default()).await.context("could not list events")?;
        for event in events {
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
        let brokers = Brokers::look(&self.kafka).await.context("could not ask Kafka")?;
        self.show.picture(&brokers.table())?;
        Ok(brokers)
    }

    /// Shows a text as it is.
    pub(crate) fn print(&mut self, text: &str) -> io::Result<()> {
        self.show.picture(text)
    }
}
