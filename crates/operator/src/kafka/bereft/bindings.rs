//! ClusterRoleBindings of Kafkas that are gone. They stand in no namespace, so nothing can own them; and of the cluster nothing
//! outlives it for certain that would tell of them. So they are found by what they say of themselves: one when its Kafka goes,
//! and all of them when the operator starts, because Kafkas also go while it is away.

use std::{collections::BTreeSet, time::Duration};

use evenkeel_api::{Kafka, labels};
use futures::{StreamExt, stream::FuturesUnordered};
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::{Api, ResourceExt, api::ListParams, core::PartialObjectMeta, runtime::watcher::Event};
use tokio::{sync::mpsc::UnboundedReceiver, time::sleep};

use super::super::{
    act::{exactly, unless_gone},
    desired::APPLIED,
    names::Names,
};
use crate::{
    error::{Error, told},
    seams::{ClusterRef, Context},
};

/// A round that was under way when its Kafka went may still bind. None lasts longer than this.
const LATE_HANDS: Duration = Duration::from_secs(180);

/// What a watch of Kafkas has told.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum News {
    /// These are there, and no others.
    There(BTreeSet<ClusterRef>),
    /// This one is gone.
    Gone(ClusterRef),
}

/// Who was named so far, while a watch begins.
#[derive(Debug, Default)]
pub(super) struct Hearing(BTreeSet<ClusterRef>);

impl Hearing {
    /// What an event says about Kafkas that may have left something.
    pub(super) fn hear(&mut self, event: &Event<PartialObjectMeta<Kafka>>) -> Option<News> {
        match event {
            Event::Init => {
                self.0.clear();
                None
            }
            Event::InitApply(kafka) => {
                self.0.insert(cluster(kafka));
                None
            }
            Event::InitDone => Some(News::There(std::mem::take(&mut self.0))),
            Event::Apply(_) => None,
            Event::Delete(kafka) => Some(News::Gone(cluster(kafka))),
        }
    }
}

fn cluster(kafka: &PartialObjectMeta<Kafka>) -> ClusterRef {
    ClusterRef::new(kafka.namespace().unwrap_or_default(), kafka.name_any())
}

/// Deletes what Kafkas have left that are gone, until nothing more is told.
pub(super) async fn look_after(context: &Context, namespace: Option<&str>, mut heard: UnboundedReceiver<News>) {
    let mut underway = FuturesUnordered::new();
    loop {
        tokio::select! {
            news = heard.recv() => match news {
                Some(news) => underway.push(attend(context, namespace, news)),
                None => break,
            },
            Some(()) = underway.next(), if !underway.is_empty() => {}
        }
    }
}

async fn attend(context: &Context, namespace: Option<&str>, news: News) {
    for pause in [Duration::ZERO, LATE_HANDS] {
        sleep(pause).await;
        let mut failures = 0;
        while let Err(error) = clear_up(context, namespace, &news).await {
            if is_forbidden(&error) {
                // Who may not bind has bound nobody. Without racks that is how it should be.
                tracing::debug!(error = told(&error), "ClusterRoleBindings are not looked at");
                return;
            }
            tracing::warn!(error = told(&error), "a ClusterRoleBinding of a Kafka that is gone may be left");
            sleep(error.pause(failures)).await;
            failures += 1;
        }
    }
}

fn is_forbidden(error: &Error) -> bool {
    let (Error::Read { source, .. } | Error::Write { source, .. }) = error else { return false };
    matches!(source, kube::Error::Api(status) if status.is_forbidden())
}

async fn clear_up(context: &Context, namespace: Option<&str>, news: &News) -> Result<(), Error> {
    let bindings = Api::<ClusterRoleBinding>::all(context.client.clone());
    let found = match news {
        News::Gone(gone) => {
            let name = names(gone).rack_binding();
            let found = bindings.get_metadata_opt(&name).await;
            found.map_err(Error::reading(format!("ClusterRoleBinding {name}")))?.into_iter().collect()
        }
        News::There(_) => {
            let of_clusters = ListParams::default().labels(labels::CLUSTER);
            bindings.list_metadata(&of_clusters).await.map_err(Error::reading("clusterrolebindings"))?.items
        }
    };
    for (of, binding) in left(&found, namespace, news) {
        // What was told may be old: by now there may be another Kafka of that name.
        let kafkas = Api::<Kafka>::namespaced(context.client.clone(), &of.namespace);
        let there = kafkas.get_opt(&of.name).await.map_err(Error::reading(format!("Kafka {of}")))?;
        if there.is_none() {
            let name = binding.name_any();
            let deleted = bindings.delete(&name, &exactly(binding.uid())).await;
            unless_gone(deleted.map(drop), format!("the end of ClusterRoleBinding {name}"))?;
        }
    }
    Ok(())
}

/// What is read of them: their names say whose they are.
type Binding = PartialObjectMeta<ClusterRoleBinding>;

/// Those that nobody needs any more, and whose they were. Those of other namespaces are somebody else's to look after.
fn left<'a>(
    found: &'a [Binding],
    namespace: Option<&'a str>,
    news: &'a News,
) -> impl Iterator<Item = (ClusterRef, &'a Binding)> {
    let owned = found.iter().filter_map(|binding| Some((cluster_of(binding)?, binding)));
    owned.filter(move |(of, _)| {
        let is_gone = match news {
            News::There(there) => !there.contains(of),
            News::Gone(gone) => gone == of,
        };
        is_gone && namespace.is_none_or(|namespace| of.namespace == namespace)
    })
}

/// Whose binding it is, if we made it. Another operator's has the same name, but does not say that we applied it.
fn cluster_of(binding: &Binding) -> Option<ClusterRef> {
    let (name, cluster) = (binding.name_any(), binding.labels().get(labels::CLUSTER)?);
    // Whatever the name of a namespace may be, it is between what comes before and after it.
    let frame = Names { cluster: cluster.clone(), namespace: "/".to_owned() }.rack_binding();
    let (before, after) = frame.split_once('/')?;
    let namespace = name.strip_prefix(before)?.strip_suffix(after).filter(|namespace| !namespace.is_empty())?;
    binding.annotations().contains_key(APPLIED).then(|| ClusterRef::new(namespace, cluster))
}

fn names(of: &ClusterRef) -> Names {
    Names { cluster: of.name.clone(), namespace: of.namespace.clone() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kafka(name: &str) -> PartialObjectMeta<Kafka> {
        serde_json::from_value(json!({"metadata": {"name": name, "namespace": "ns"}})).unwrap()
    }

    fn of(name: &str) -> ClusterRef {
        ClusterRef::new("ns", name)
    }

    fn binding(of: &ClusterRef) -> Binding {
        let metadata = json!({"name": names(of).rack_binding(), "labels": {labels::CLUSTER: of.name},
            "annotations": {APPLIED: "hash"}});
        serde_json::from_value(json!({"metadata": metadata})).unwrap()
    }

    #[test]
    fn a_watch_tells_who_is_there_when_it_begins_and_who_goes_then() {
        let mut hearing = Hearing::default();
        let mut told = |events: Vec<Event<PartialObjectMeta<Kafka>>>| -> Vec<News> {
            events.iter().filter_map(|event| hearing.hear(event)).collect()
        };
        let begun = |name: &str| Event::InitApply(kafka(name));
        let first = told(vec![Event::Init, begun("a"), begun("b"), Event::InitDone, Event::Apply(kafka("c"))]);
        assert_eq!(first, [News::There([of("a"), of("b")].into())]);
        assert_eq!(told(vec![Event::Delete(kafka("a"))]), [News::Gone(of("a"))]);
        // It was cut off in the middle, and begins again.
        let again = told(vec![Event::Init, begun("b"), Event::Init, begun("c"), Event::InitDone]);
        assert_eq!(again, [News::There([of("c")].into())]);
    }

    #[test]
    fn what_belongs_to_a_kafka_that_is_gone_is_left_and_nothing_else() {
        let elsewhere = ClusterRef::new("other", "gone");
        let all = [binding(&of("there")), binding(&of("gone")), binding(&elsewhere)];
        let told = |namespace: Option<&str>, news: &News| -> Vec<String> {
            left(&all, namespace, news).map(|(of, binding)| format!("{of} {}", binding.name_any())).collect()
        };
        let there = News::There([of("there")].into());
        let expected = ["ns/gone strimzi-ns-gone-kafka-init", "other/gone strimzi-other-gone-kafka-init"];
        assert_eq!(told(None, &there), expected);
        assert_eq!(told(Some("ns"), &there), expected[..1]);
        assert_eq!(told(None, &News::Gone(of("gone"))), expected[..1]);
    }

    #[test]
    fn a_binding_that_we_did_not_make_is_not_ours() {
        let gone = ClusterRef::new("a-b", "b-gone");
        assert_eq!(cluster_of(&binding(&gone)), Some(gone.clone()));
        let changes: [fn(&mut Binding); 3] = [
            |it| it.annotations_mut().clear(),
            |it| it.labels_mut().clear(),
            |it| it.metadata.name = Some("mine".to_owned()),
        ];
        for change in changes {
            let mut foreign = binding(&gone);
            change(&mut foreign);
            assert_eq!(cluster_of(&foreign), None, "{foreign:?}");
        }
    }
}
