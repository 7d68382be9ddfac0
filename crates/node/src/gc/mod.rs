//! The garbage collector: what lost its owners goes, in the background, in the foreground, or not at all.
//!
//! [`graph`] decides; this file listens and carries out. One metadata watch per kind feeds the graph; actions run side
//! by side, a bounded number of them, and whatever fails is looked at again after a pause.

mod claims;
pub mod graph;
mod hands;
pub mod words;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt, StreamExt};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{DynamicObject, PartialObjectMeta};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

use crate::kinds::{Kind, KindId, Kinds, Known};
use crate::patience::{Doubling, patience};
use graph::Graph;
use hands::Outcome;
use words::{Action, Coordinates, Event, FOREGROUND, ORPHAN, Object, Owner, Uid};

/// How many actions run at the same time: enough that a slow answer holds nobody up, few enough to be polite.
const AT_ONCE: usize = 32;

/// Before something that failed is looked at again.
const PAUSE: Duration = Duration::from_millis(200);

/// How often the server may refuse the first list of a kind before it is no longer waited for: a kind that was just
/// defined is often not served for a moment, and one that is broken must not keep everything else from being collected.
/// The waits in between add up to a quarter of a minute.
const REFUSED_LISTS: u32 = 8;

/// Collects garbage until dropped.
pub async fn run(client: Client, mut known: Known) {
    let (heard, mut hear) = mpsc::channel(1024);
    let mut collector = Collector {
        client,
        kinds: Arc::default(),
        watches: BTreeMap::new(),
        heard,
        graph: Graph::default(),
        listening: JoinSet::new(),
        waiting: VecDeque::new(),
        at_work: JoinSet::new(),
        pausing: JoinSet::new(),
        unlisted: None,
    };
    loop {
        tokio::select! {
            changed = known.changed() => match changed {
                Ok(()) => {
                    let kinds = known.borrow_and_update().clone();
                    collector.adopt(&kinds.unwrap_or_default());
                }
                // Whoever follows the kinds has stopped, and so do we.
                Err(_) => return,
            },
            Some((kind, news)) = hear.recv() => match news {
                News::Event(event) => collector.listen(&kind, *event),
                News::Unlistable => collector.listed(&kind),
            },
            Some(ended) = collector.listening.join_next() => match ended {
                // Its kind is no more.
                Err(error) if error.is_cancelled() => (),
                Err(error) => tracing::error!(%error, "a watch of the garbage collector broke off"),
                Ok(()) => (),
            },
            // Neither kind of task is ever cancelled, and both catch their panics.
            Some(Ok(ended)) = collector.at_work.join_next() => collector.learn(ended),
            Some(Ok(next)) = collector.pausing.join_next() => collector.go_on(next),
        }
    }
}

type Heard = watcher::Event<PartialObjectMeta<DynamicObject>>;

/// What a watch has to say.
enum News {
    Event(Box<Heard>),
    /// The server refuses the list of this kind, again and again.
    Unlistable,
}

struct Collector {
    client: Client,
    kinds: Arc<Kinds>,
    watches: BTreeMap<KindId, Watched>,
    heard: mpsc::Sender<(KindId, News)>,
    graph: Graph,
    /// The watches.
    listening: JoinSet<()>,
    /// What is to be done when there is room for it.
    waiting: VecDeque<Errand>,
    /// What is being done: [`AT_ONCE`] at most.
    at_work: JoinSet<Ended>,
    /// What is to go on after a while: one for each object or claim at most, as the graph has one action under way.
    pausing: JoinSet<Next>,
    /// Kinds whose first list is not in yet; `None` before the kinds are known. While there are any, nothing is decided.
    unlisted: Option<BTreeSet<KindId>>,
}

/// An action, and how long to wait before it is tried again.
struct Errand {
    action: Action,
    waits: Doubling,
}

/// What comes after an action.
enum Next {
    Tell(Event),
    Retry(Errand),
}

enum Ended {
    Now(Next),
    After(Duration, Next),
}

/// A kind that is being watched.
struct Watched {
    kind: Kind,
    task: AbortHandle,
    /// What is there, as far as heard.
    uids: BTreeSet<Uid>,
    /// What the list that is coming in has shown so far.
    listed: BTreeSet<Uid>,
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Collector {
    /// Watches what is new, and lets go of what is no more.
    fn adopt(&mut self, kinds: &Kinds) {
        // Events are many, own nothing, and go by themselves.
        let kinds = Arc::new(kinds.without_events());
        let new: BTreeSet<KindId> = kinds.iter().map(Kind::id).filter(|id| !self.watches.contains_key(id)).collect();
        self.wait_for(new);
        let ended: Vec<_> = self.watches.keys().filter(|id| !kinds.contains(id)).cloned().collect();
        for id in ended {
            let Some(mut watched) = self.watches.remove(&id) else { continue };
            // A definition goes after its last object.
            for uid in std::mem::take(&mut watched.uids) {
                self.tell(Event::Gone(uid));
            }
            self.listed(&id);
        }
        for kind in kinds.iter() {
            if self.watches.get(&kind.id()).is_none_or(|watched| watched.kind != *kind) {
                let uids = self.watches.remove(&kind.id()).map(|mut old| std::mem::take(&mut old.uids));
                let task = self.listen_to(kind);
                let watched =
                    Watched { kind: kind.clone(), task, uids: uids.unwrap_or_default(), listed: BTreeSet::new() };
                self.watches.insert(kind.id(), watched);
            }
        }
        self.kinds = kinds;
        self.tell(Event::KindsChanged);
    }

    /// Decides nothing before these kinds are listed: an owner may have dependants of them. What was decided and has not
    /// been begun is thought over.
    fn wait_for(&mut self, new: BTreeSet<KindId>) {
        let unlisted = self.unlisted.get_or_insert_default();
        let was_complete = unlisted.is_empty();
        unlisted.extend(new);
        if !was_complete || unlisted.is_empty() {
            return;
        }
        self.tell(Event::Unsynced);
        let (asked, decided): (VecDeque<_>, VecDeque<_>) =
            self.waiting.drain(..).partition(|errand| matches!(errand.action, Action::Verify(_)));
        self.waiting = asked;
        for errand in decided {
            self.tell(Event::Recheck(hands::subject(&errand.action)));
        }
    }

    /// A task that hands over every event of a kind.
    fn listen_to(&mut self, kind: &Kind) -> AbortHandle {
        let api = Api::<PartialObjectMeta<DynamicObject>>::all_with(self.client.clone(), &kind.resource);
        let (id, heard) = (kind.id(), self.heard.clone());
        let listening = async move {
            let mut events = watcher(api, watcher::Config::default()).backoff(patience()).boxed();
            let mut refused = 0;
            while let Some(event) = events.next().await {
                let news = match event {
                    Ok(event) => News::Event(Box::new(event)),
                    Err(error) => {
                        tracing::debug!(?id, %error, "a watch starts again");
                        refused += u32::from(is_refused_list(&error));
                        if refused != REFUSED_LISTS {
                            continue;
                        }
                        tracing::warn!(?id, %error, "objects of this kind cannot be listed; no owner waits for them");
                        News::Unlistable
                    }
                };
                if heard.send((id.clone(), news)).await.is_err() {
                    break;
                }
            }
        };
        self.listening.spawn(listening)
    }

    fn listen(&mut self, id: &KindId, event: Heard) {
        // A last word from a watch that was let go.
        let Some(watched) = self.watches.get_mut(id) else { return };
        match event {
            watcher::Event::Init => watched.listed.clear(),
            watcher::Event::InitApply(seen) => {
                let object = object(&watched.kind, seen.metadata);
                watched.listed.insert(object.uid.clone());
                watched.uids.insert(object.uid.clone());
                self.tell(Event::Seen(object));
            }
            watcher::Event::InitDone => {
                let listed = std::mem::take(&mut watched.listed);
                let missing: Vec<_> = watched.uids.difference(&listed).cloned().collect();
                watched.uids = listed;
                let (group, kind) = (watched.kind.resource.group.clone(), watched.kind.resource.kind.clone());
                for uid in missing {
                    self.tell(Event::Gone(uid));
                }
                self.tell(Event::Listed(group, kind));
                self.listed(id);
            }
            watcher::Event::Apply(seen) => {
                let object = object(&watched.kind, seen.metadata);
                watched.uids.insert(object.uid.clone());
                self.tell(Event::Seen(object));
            }
            watcher::Event::Delete(seen) => {
                let uid = seen.metadata.uid.unwrap_or_default();
                watched.uids.remove(&uid);
                self.tell(Event::Gone(uid));
            }
        }
    }

    /// A first list is in, or will not come; after the last of them the graph may act.
    fn listed(&mut self, id: &KindId) {
        let Some(unlisted) = self.unlisted.as_mut() else { return };
        if unlisted.remove(id) && unlisted.is_empty() {
            self.tell(Event::Synced);
        }
    }

    fn learn(&mut self, ended: Ended) {
        match ended {
            Ended::Now(next) => self.go_on(next),
            Ended::After(pause, next) => {
                self.pausing.spawn(async move {
                    tokio::time::sleep(pause).await;
                    next
                });
            }
        }
        self.start();
    }

    fn go_on(&mut self, next: Next) {
        match next {
            Next::Tell(event) => self.tell(event),
            Next::Retry(errand) => {
                self.waiting.push_back(errand);
                self.start();
            }
        }
    }

    /// Tells the graph, and has done what it wants done.
    fn tell(&mut self, event: Event) {
        let actions = self.graph.handle(event).into_iter();
        self.waiting.extend(actions.map(|action| Errand { action, waits: Doubling::default() }));
        self.start();
    }

    /// Starts what there is room for.
    fn start(&mut self) {
        while self.at_work.len() < AT_ONCE {
            let Some(errand) = self.waiting.pop_front() else { return };
            let (client, kinds) = (self.client.clone(), self.kinds.clone());
            self.at_work.spawn(async move {
                let action = errand.action.clone();
                // The graph waits for a word about everything under way, also from an action that panics.
                let ended = AssertUnwindSafe(carry_out(&client, &kinds, errand)).catch_unwind().await;
                ended.unwrap_or_else(|_| {
                    tracing::error!(?action, "an action of the garbage collector broke off");
                    again(action, Doubling::default(), PAUSE * 5)
                })
            });
        }
    }
}

/// The server has answered, and said no. One that cannot be reached, or has too much to do, has said nothing.
fn is_refused_list(error: &watcher::Error) -> bool {
    let watcher::Error::InitialListFailed(kube::Error::Api(status)) = error else { return false };
    !matches!(status.code, 429 | 503 | 504)
}

/// Does one thing, and returns what comes of it.
async fn carry_out(client: &Client, kinds: &Kinds, Errand { action, mut waits }: Errand) -> Ended {
    tracing::debug!(?action, "the garbage collector acts");
    if let Action::Verify(claim) = &action {
        return match hands::verify(client, kinds, claim).await {
            Ok(finding) => Ended::Now(Next::Tell(Event::Verified(claim.clone(), finding))),
            Err(error) => {
                tracing::debug!(?claim, %error, "could not look up an owner; trying again");
                let pause = waits.next().unwrap_or(PAUSE);
                again(action, waits, pause)
            }
        };
    }
    match hands::perform(client, kinds, &action).await {
        Ok(Outcome::Done) => Ended::Now(Next::Tell(Event::Done(hands::subject(&action)))),
        // The newer state is on its way through the watch.
        Ok(Outcome::Outdated) => again(action, waits, PAUSE),
        Err(error) => {
            tracing::debug!(?action, %error, "an action failed; looking again");
            again(action, waits, PAUSE * 5)
        }
    }
}

/// Later: a question is asked again, and about everything else the graph thinks anew.
fn again(action: Action, waits: Doubling, pause: Duration) -> Ended {
    let next = match action {
        Action::Verify(_) => Next::Retry(Errand { action, waits }),
        _ => Next::Tell(Event::Recheck(hands::subject(&action))),
    };
    Ended::After(pause, next)
}

/// What the graph needs to know of an object.
fn object(kind: &Kind, metadata: ObjectMeta) -> Object {
    let finalizers = metadata.finalizers.unwrap_or_default();
    let at = Coordinates {
        group: kind.resource.group.clone(),
        kind: kind.resource.kind.clone(),
        namespace: metadata.namespace,
        name: metadata.name.unwrap_or_default(),
    };
    let owners = metadata.owner_references.unwrap_or_default().into_iter().map(|owner| Owner {
        group: owner.api_version.rsplit_once('/').map(|(group, _)| group.to_owned()).unwrap_or_default(),
        kind: owner.kind,
        name: owner.name,
        uid: owner.uid,
        blocks: owner.block_owner_deletion.unwrap_or_default(),
    });
    Object {
        uid: metadata.uid.unwrap_or_default(),
        at,
        version: metadata.resource_version.unwrap_or_default(),
        owners: owners.collect(),
        deleting: metadata.deletion_timestamp.is_some(),
        foreground: finalizers.iter().any(|finalizer| finalizer == FOREGROUND),
        orphan: finalizers.iter().any(|finalizer| finalizer == ORPHAN),
    }
}
