//! Eyes that see every version of every object, keep a log of it, and know what must never be.
//!
//! Versions of one kind are seen in their order. What concerns several kinds is judged a moment later, when all of them were
//! seen. Whoever acts has looked before, so what a user has changed only just now counts for nothing yet.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use evenkeel_api::kafka::AutoRebalanceMode;
use evenkeel_api::rebalance::RebalanceState;
use evenkeel_api::{Condition, Kafka, KafkaNodePool, KafkaRebalance, StrimziPodSet, annotations};
use evenkeel_sim::BrokerId;
use evenkeel_sim::serve::World;
use futures::StreamExt;
use futures::stream::{BoxStream, select_all};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use k8s_openapi::api::events::v1::Event;
use kube::runtime::watcher;
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout};

use crate::play::MAP;
use crate::stage::NAMESPACE;

type Ids = BTreeSet<i32>;

/// For so long somebody may act on what was so before.
const GRACE: Duration = Duration::from_secs(60);
/// After so long all kinds were seen.
const MOMENT: Duration = Duration::from_secs(1);
/// Nobody reads more of a message.
const SHORT: usize = 200;

/// Something that is so or is not, and since when.
#[derive(Clone, Copy, Debug)]
struct Switch {
    on: bool,
    since: Instant,
}

impl Switch {
    /// So it was all along.
    fn always(on: bool) -> Self {
        let now = Instant::now();
        Self { on, since: now.checked_sub(GRACE * 2).unwrap_or(now) }
    }

    fn set(&mut self, on: bool) {
        if self.on != on {
            *self = Self { on, since: Instant::now() };
        }
    }

    fn is_long(&self, on: bool) -> bool {
        self.on == on && self.since.elapsed() > GRACE
    }

    /// Whether it was off at any time since then.
    fn was_off_since(&self, then: Instant) -> bool {
        !self.on || self.since > then
    }
}

/// A generated rebalance, as it was last seen.
#[derive(Clone, Debug)]
struct Run {
    uid: String,
    brokers: Ids,
}

/// What is judged a moment later.
#[derive(Clone, Debug)]
enum Doubt {
    /// A broker that came, in this version of its pod set.
    Came { id: i32, version: u64 },
    /// A broker that is no longer queued for data, and since when it was.
    Dropped { id: i32, queued: Instant },
    /// A generated rebalance that was made.
    Made { name: String, brokers: Ids },
}

/// All that was seen.
pub(crate) struct History {
    begun: Instant,
    world: World,
    /// What happened, in order.
    pub(crate) log: Vec<String>,
    /// What must not have been, if it was.
    pub(crate) wrong: Option<String>,
    lines: BTreeMap<String, String>,
    generated: BTreeMap<String, Run>,
    replicas: BTreeMap<String, i32>,
    listed: BTreeMap<String, Ids>,
    pods: BTreeMap<String, i32>,
    /// Brokers that are to go: since when, and when this was last so.
    leaving: BTreeMap<i32, (Instant, Instant)>,
    /// Brokers that are queued for data: since when; and every version of that.
    queued: BTreeMap<i32, Instant>,
    queues: Vec<(u64, Ids)>,
    /// Rebalances to added brokers that came to an end, and whether to a good one.
    ends: Vec<(Instant, Ids, bool)>,
    /// When it was said that an automatic rebalance has failed or was stopped.
    confessed: Vec<Instant>,
    /// Violated goals that are on record: until when there were any, if there were; and when the last rebalance for them went.
    violated: Option<Instant>,
    is_violated: bool,
    mended: Instant,
    modes: BTreeMap<AutoRebalanceMode, Switch>,
    template: Switch,
    released: Switch,
    looked_after: Switch,
    doubts: Vec<(Instant, Doubt)>,
    /// Brokers that need not have got data: they were there from the beginning, or it was said why.
    pub(crate) excused: Ids,
    /// Brokers that held data when the rebalance to them was told as carried out.
    pub(crate) filled: Ids,
    /// Brokers that were away at times, or were emptied to go and stayed after all. Whatever is planned meanwhile takes from
    /// them what they have, and nobody brings it back; so of those that had got something they may have nothing in the end.
    pub(crate) shaken: Ids,
}

enum Seen {
    Rebalance(bool, Box<KafkaRebalance>),
    Kafka(Box<Kafka>),
    Pool(Box<KafkaNodePool>),
    PodSet(Box<StrimziPodSet>),
    Pod(bool, Box<Pod>),
    Map(bool, Box<ConfigMap>),
    Told(Box<Event>),
}

/// Keeps the history from now on, until dropped.
pub(crate) async fn watch(client: Client, history: Arc<Mutex<History>>) {
    let mut all = select_all([
        versions(&client, |gone, it| Some(Seen::Rebalance(gone, it))),
        versions(&client, |gone, it| (!gone).then_some(Seen::Kafka(it))),
        versions(&client, |gone, it| (!gone).then_some(Seen::Pool(it))),
        versions(&client, |gone, it| (!gone).then_some(Seen::PodSet(it))),
        versions(&client, |gone, it| Some(Seen::Pod(gone, it))),
        versions(&client, |gone, it| Some(Seen::Map(gone, it))),
        versions(&client, |gone, it| (!gone).then_some(Seen::Told(it))),
    ]);
    loop {
        let next = timeout(MOMENT, all.next()).await;
        let mut history = history.lock().unwrap();
        match next {
            Ok(Some(seen)) => history.see(seen),
            Ok(None) => return,
            Err(_) => {}
        }
        history.settle_doubts();
    }
}

/// Every version of the objects of a kind.
fn versions<K>(client: &Client, seen: fn(bool, Box<K>) -> Option<Seen>) -> BoxStream<'static, Seen>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + DeserializeOwned + Clone + Debug + Send + 'static,
{
    let of_one = move |event| async move {
        match event {
            Ok(watcher::Event::Apply(it) | watcher::Event::InitApply(it)) => seen(false, Box::new(it)),
            Ok(watcher::Event::Delete(it)) => seen(true, Box::new(it)),
            _ => None,
        }
    };
    watcher(Api::<K>::namespaced(client.clone(), NAMESPACE), watcher::Config::default()).filter_map(of_one).boxed()
}

impl History {
    /// A history of a cluster that has these brokers.
    pub(crate) fn new(world: World, there: Ids) -> Self {
        let modes = [AutoRebalanceMode::AddBrokers, AutoRebalanceMode::RemoveBrokers, AutoRebalanceMode::Imbalance];
        Self {
            begun: Instant::now(),
            world,
            log: Vec::new(),
            wrong: None,
            lines: BTreeMap::new(),
            generated: BTreeMap::new(),
            replicas: BTreeMap::new(),
            listed: BTreeMap::from([("my-cluster-brokers".to_owned(), there.clone())]),
            pods: BTreeMap::new(),
            leaving: BTreeMap::new(),
            queued: BTreeMap::new(),
            queues: Vec::new(),
            ends: Vec::new(),
            confessed: Vec::new(),
            violated: None,
            is_violated: false,
            mended: Instant::now(),
            modes: modes.map(|mode| (mode, Switch::always(mode != AutoRebalanceMode::Imbalance))).into(),
            template: Switch::always(true),
            released: Switch::always(true),
            looked_after: Switch::always(true),
            doubts: Vec::new(),
            excused: there,
            filled: Ids::new(),
            shaken: Ids::new(),
        }
    }

    /// Something happened.
    pub(crate) fn note(&mut self, text: impl AsRef<str>) {
        self.log.push(format!("{:8.3}  {}", self.begun.elapsed().as_secs_f64(), text.as_ref()));
    }

    /// Something happened that must not.
    pub(crate) fn object(&mut self, text: impl AsRef<str>) {
        let text = text.as_ref();
        self.note(format!("WRONG: {text}"));
        self.wrong.get_or_insert_with(|| text.to_owned());
    }

    /// Notes how something is, if that is news.
    fn note_of(&mut self, what: String, how: String) {
        if self.lines.get(&what) != Some(&how) {
            self.note(format!("{what} {how}"));
            self.lines.insert(what, how);
        }
    }

    fn see(&mut self, seen: Seen) {
        match seen {
            Seen::Rebalance(gone, it) => self.see_rebalance(gone, &it),
            Seen::Kafka(it) => self.see_kafka(&it),
            Seen::Pool(it) => {
                self.note_of(format!("pool {}", it.name_any()), format!("wants {}", it.spec.replicas));
                self.replicas.insert(format!("my-cluster-{}", it.name_any()), it.spec.replicas);
            }
            Seen::PodSet(it) => self.see_pod_set(&it),
            Seen::Pod(gone, it) => self.see_pod(gone, &it),
            Seen::Map(gone, it) if it.name_any() == MAP => self.see_violations(gone, &it),
            Seen::Map(..) => {}
            Seen::Told(it) => {
                let (reason, note) = (it.reason.clone().unwrap_or_default(), it.note.clone().unwrap_or_default());
                self.hear(&reason);
                self.note_of(format!("told {}:", it.name_any()), format!("{reason}: {}", short(&note)));
            }
        }
        self.count_leaving();
    }

    fn see_rebalance(&mut self, gone: bool, it: &KafkaRebalance) {
        let name = it.name_any();
        let notes = it.annotations();
        if name == "even" {
            self.template.set(!gone && annotations::is_template(notes));
        }
        let why = it.status.iter().flat_map(|status| &status.conditions).map(told).collect::<Vec<_>>().join("; ");
        let asked = notes.get(annotations::REBALANCE).map(|ask| format!(" asked to {ask}")).unwrap_or_default();
        let stopped = notes.get(annotations::STOPPED_FOR).map(|why| format!(" stopped for {why}")).unwrap_or_default();
        let deleted = if it.metadata.deletion_timestamp.is_some() { " deleted" } else { "" };
        let brokers = it.spec.brokers.as_ref().map(|ids| format!(" {ids:?}")).unwrap_or_default();
        let held = it.finalizers().len();
        let how = match gone {
            true => "is gone".to_owned(),
            false => format!("is [{why}]{brokers}{asked}{stopped}{deleted}, held by {held}"),
        };
        self.note_of(format!("rebalance {name}"), how);
        let Some(mode) = mode_of(&name) else { return };
        let brokers: Ids = it.spec.brokers.iter().flatten().copied().collect();
        let is_addition = mode == AutoRebalanceMode::AddBrokers;
        let has_ended =
            [RebalanceState::Ready, RebalanceState::NotReady, RebalanceState::Stopped].contains(&it.state());
        // Who takes the finalizer off and deletes it has removed it, though it may linger.
        let ours = annotations::AUTO_REBALANCING_FINALIZER;
        let is_torn = it.metadata.deletion_timestamp.is_some() && !it.finalizers().iter().any(|held| held == ours);
        // A new spec or a refresh that nobody has dealt with yet: the state speaks of the run before.
        let observed = it.status.as_ref().and_then(|status| status.observed_generation);
        // Asking for deletion raises the generation, and is no new spec.
        let by_deletion = i64::from(it.metadata.deletion_timestamp.is_some());
        let is_another =
            |observed| ![0, by_deletion].contains(&(it.metadata.generation.unwrap_or_default() - observed));
        let is_renewed =
            observed.is_some_and(is_another) || notes.get(annotations::REBALANCE).is_some_and(|ask| ask == "refresh");
        let is_done = it.state() == RebalanceState::Ready && !is_renewed;
        if is_addition && (gone || is_torn || (has_ended && !is_renewed)) {
            self.ends.push((Instant::now(), brokers.clone(), is_done));
        }
        if is_addition && is_done {
            let holds = |id: &&i32| self.world.look(|cluster| !cluster.replicas_on(BrokerId(**id)).is_empty());
            let filled: Vec<i32> = brokers.iter().filter(holds).copied().collect();
            self.filled.extend(filled);
        }
        // What nobody works on any more, and others alone keep, is as good as gone.
        let is_at_work =
            [RebalanceState::PendingProposal, RebalanceState::Rebalancing, RebalanceState::ReconciliationPaused]
                .contains(&it.state());
        let lingers =
            is_torn && !is_at_work && !it.finalizers().iter().any(|it| it == annotations::REBALANCE_FINALIZER);
        if gone || lingers {
            let was_there = self.generated.remove(&name).is_some();
            if mode == AutoRebalanceMode::Imbalance && (gone || was_there) {
                self.mended = Instant::now();
            }
            return;
        }
        if mode == AutoRebalanceMode::RemoveBrokers {
            self.shaken.extend(&brokers);
        }
        let run = Run { uid: it.uid().unwrap_or_default(), brokers: brokers.clone() };
        let before = self.generated.insert(name.clone(), run.clone());
        if self.generated.len() > 1 {
            let names: Vec<String> = self.generated.keys().cloned().collect();
            self.object(format!("two generated rebalances at once: {names:?}"));
        }
        // A user never changes brokers here, so a new list is as good as a new one.
        if before.is_none_or(|before| before.uid != run.uid || before.brokers != run.brokers) {
            self.doubts.push((Instant::now(), Doubt::Made { name, brokers }));
        }
    }

    fn see_kafka(&mut self, it: &Kafka) {
        let version: u64 = it.resource_version().and_then(|it| it.parse().ok()).unwrap_or_default();
        for (mode, switch) in &mut self.modes {
            switch.set(it.spec.auto_rebalance(*mode).is_some());
        }
        self.released.set(!it.annotations().contains_key(annotations::AUTO_REBALANCE));
        self.looked_after.set(!it.annotations().contains_key(annotations::PAUSE_RECONCILIATION));
        let status = it.status.clone().unwrap_or_default();
        let auto = status.auto_rebalance.as_ref();
        let state = auto.map_or("off".to_owned(), |auto| {
            let modes: Vec<String> = auto.modes.iter().map(|it| format!("{} {:?}", it.mode, it.brokers)).collect();
            format!("{:?} [{}]", auto.state, modes.join(", "))
        });
        let conditions: Vec<String> = status.conditions.iter().map(told).collect();
        status.conditions.iter().filter_map(|it| it.reason.as_deref()).for_each(|reason| self.hear(reason));
        self.note_of("kafka".to_owned(), format!("{state}; {}", conditions.join("; ")));
        let modes = auto.map(|auto| auto.modes.clone()).unwrap_or_default();
        let queued: Ids =
            modes.into_iter().filter(|it| it.mode == AutoRebalanceMode::AddBrokers).flat_map(|it| it.brokers).collect();
        let dropped: Vec<(i32, Instant)> =
            self.queued.iter().filter(|(id, _)| !queued.contains(id)).map(|(id, since)| (*id, *since)).collect();
        for (id, since) in dropped {
            self.queued.remove(&id);
            self.doubts.push((Instant::now(), Doubt::Dropped { id, queued: since }));
        }
        for id in &queued {
            self.queued.entry(*id).or_insert_with(Instant::now);
        }
        self.queues.push((version, queued));
    }

    /// A Warning or an Event of the Kafka.
    fn hear(&mut self, reason: &str) {
        if ["AutoRebalanceFailed", "AutoRebalanceStopped"].contains(&reason) {
            self.confessed.push(Instant::now());
        }
    }

    fn see_violations(&mut self, gone: bool, it: &ConfigMap) {
        let written = it.data.as_ref().and_then(|data| data.get("fixableAnomalies")).map(String::as_str);
        let found = written.filter(|text| !gone && !text.trim().is_empty());
        self.note_of("violations".to_owned(), found.map_or("none".to_owned(), short));
        if self.is_violated || found.is_some() {
            self.violated = Some(Instant::now());
        }
        self.is_violated = found.is_some();
    }

    fn see_pod_set(&mut self, it: &StrimziPodSet) {
        let name = it.name_any();
        if name.ends_with("controllers") {
            return;
        }
        let version: u64 = it.resource_version().and_then(|it| it.parse().ok()).unwrap_or_default();
        let ids: Ids =
            it.spec.pods.iter().filter_map(|pod| id_of(pod.get("metadata")?.get("name")?.as_str()?)).collect();
        self.note_of(format!("pod set {name}"), format!("{ids:?}"));
        let before = self.listed.insert(name, ids.clone()).unwrap_or_default();
        for id in &before - &ids {
            let left = self.world.look(|cluster| cluster.replicas_on(BrokerId(id)));
            if !left.is_empty() {
                self.object(format!("broker {id} was removed with replicas of {left:?}"));
            }
        }
        for id in &ids - &before {
            self.excused.remove(&id);
            self.filled.remove(&id);
            self.shaken.remove(&id);
            self.doubts.push((Instant::now(), Doubt::Came { id, version }));
        }
    }

    fn see_pod(&mut self, gone: bool, it: &Pod) {
        let name = it.name_any();
        let mut conditions = it.status.iter().flat_map(|status| status.conditions.iter().flatten());
        let ready = conditions.any(|it| it.type_ == "Ready" && it.status == "True");
        let how = match (gone, it.metadata.deletion_timestamp.is_some(), ready) {
            (true, ..) => "is gone",
            (_, true, _) => "ends",
            (_, _, true) => "is ready",
            _ => "is there",
        };
        self.note_of(format!("pod {name}"), how.to_owned());
        let Some(id) = id_of(&name).filter(|_| !name.contains("cruise-control")) else { return };
        if gone {
            self.pods.remove(&name);
            return;
        }
        let twin = self.pods.iter().find(|(other, its)| **its == id && **other != name).map(|(other, _)| other.clone());
        if let Some(twin) = twin {
            self.object(format!("{name} and {twin} have the same id"));
        }
        self.pods.insert(name, id);
    }

    /// Who is to go: of each pool the highest ids.
    fn count_leaving(&mut self) {
        let mut now = Ids::new();
        for (set, ids) in &self.listed {
            let wanted = self.replicas.get(set).copied().unwrap_or(ids.len() as i32);
            now.extend(ids.iter().rev().take(ids.len().saturating_sub(wanted as usize)));
        }
        let moment = Instant::now();
        for id in now {
            let last = self.leaving.get(&id).copied();
            // Who was to go, stayed after all, and is to go again, is to go since now.
            let since =
                last.filter(|(_, last)| moment.duration_since(*last) < MOMENT * 2).map_or(moment, |(since, _)| since);
            self.leaving.insert(id, (since, moment));
        }
    }

    fn is_leaving(&self, id: i32) -> bool {
        self.leaving.get(&id).is_some_and(|(_, last)| last.elapsed() < GRACE)
    }

    /// Judges what is old enough.
    fn settle_doubts(&mut self) {
        self.count_leaving();
        let (due, rest) =
            std::mem::take(&mut self.doubts).into_iter().partition(|(since, _)| since.elapsed() >= MOMENT);
        self.doubts = rest;
        let due: Vec<(Instant, Doubt)> = due;
        for (since, doubt) in due {
            match doubt {
                Doubt::Came { id, version } => self.judge_newcomer(id, version),
                Doubt::Dropped { id, queued } => self.judge_dropped(id, queued),
                Doubt::Made { name, brokers } => self.judge_made(since, &name, &brokers),
            }
        }
    }

    /// What comes is remembered first, unless nobody wants that.
    fn judge_newcomer(&mut self, id: i32, version: u64) {
        let adding = self.modes[&AutoRebalanceMode::AddBrokers];
        if !adding.is_long(true) {
            self.excused.insert(id);
            return;
        }
        let remembered =
            self.queues.iter().rev().find(|(of, _)| *of < version).is_some_and(|(_, ids)| ids.contains(&id));
        if !remembered {
            self.object(format!("broker {id} came, and nobody had recorded it before"));
        }
    }

    /// What was queued for data got it, or there is a reason that the design knows.
    fn judge_dropped(&mut self, id: i32, queued: Instant) {
        let ended: Vec<bool> = self
            .ends
            .iter()
            .filter(|(at, ids, _)| *at >= queued && ids.contains(&id))
            .map(|(_, _, well)| *well)
            .collect();
        if ended.contains(&true) {
            return;
        }
        let is_listed = self.listed.values().any(|ids| ids.contains(&id));
        let adding = self.modes[&AutoRebalanceMode::AddBrokers];
        let reasons = [
            !is_listed || self.is_leaving(id),
            adding.was_off_since(queued),
            self.template.was_off_since(queued),
            // It came to a bad end, and whoever wants to know can.
            !ended.is_empty() && self.confessed.iter().any(|at| *at >= queued),
        ];
        if reasons.contains(&true) {
            self.excused.insert(id);
        } else {
            let end = if ended.is_empty() { "" } else { ", and the end of what was to fill it is not told" };
            self.object(format!("broker {id} was added, and is forgotten without its data{end}"));
        }
    }

    /// Whatever is made has a trigger, and nobody holds it.
    fn judge_made(&mut self, when: Instant, name: &str, brokers: &Ids) {
        let Some(mode) = mode_of(name) else { return };
        if self.modes[&mode].is_long(false) {
            self.object(format!("{name} was made, and its mode is off"));
        }
        if self.released.is_long(false) || self.looked_after.is_long(false) {
            self.object(format!("{name} was made in spite of the brake or the pause"));
        }
        match mode {
            AutoRebalanceMode::RemoveBrokers => {
                let stay: Vec<&i32> = brokers.iter().filter(|id| !self.is_leaving(**id)).collect();
                if !stay.is_empty() {
                    self.object(format!("{name} empties brokers {stay:?}, which nobody wants to go"));
                }
            }
            AutoRebalanceMode::AddBrokers => {
                let go = |id: &&i32| {
                    self.leaving
                        .get(id)
                        .is_some_and(|(since, last)| since.elapsed() > GRACE && last.elapsed() < MOMENT * 2)
                };
                let go: Vec<&i32> = brokers.iter().filter(go).collect();
                if !go.is_empty() {
                    self.object(format!("{name} fills brokers {go:?}, which are to go"));
                }
                let known = |id: &i32| self.queues.iter().any(|(_, ids)| ids.contains(id));
                let strange: Vec<&i32> = brokers.iter().filter(|id| !known(id)).collect();
                if !strange.is_empty() {
                    self.object(format!("{name} fills brokers {strange:?}, which were not added"));
                }
            }
            AutoRebalanceMode::Imbalance => {
                // What was on record when the last one went counts for the next.
                let found =
                    self.is_violated || self.violated.is_some_and(|last| last + MOMENT >= self.mended.min(when));
                if !found {
                    self.object(format!("{name} was made, and nothing was violated"));
                }
            }
        }
    }
}

fn mode_of(name: &str) -> Option<AutoRebalanceMode> {
    let (_, mode) = name.split_once("-auto-rebalancing-")?;
    match mode {
        "add-brokers" => Some(AutoRebalanceMode::AddBrokers),
        "remove-brokers" => Some(AutoRebalanceMode::RemoveBrokers),
        _ => Some(AutoRebalanceMode::Imbalance),
    }
}

fn id_of(pod: &str) -> Option<i32> {
    pod.rsplit('-').next()?.parse().ok()
}

fn told(it: &Condition) -> String {
    let because = it.reason.as_ref().map(|reason| format!(" {reason}")).unwrap_or_default();
    let text = it.message.as_ref().map(|text| format!(": {}", short(text))).unwrap_or_default();
    format!("{}{because}{text}", it.type_)
}

fn short(text: &str) -> String {
    text.chars().take(SHORT).collect()
}
