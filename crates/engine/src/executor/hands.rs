//! Does what a step asks for, and tells the execution what was refused.
//!
//! Brokers that are asked each for themselves are asked at the same time, and given little time: one
//! that says nothing holds up neither the others nor a stop.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use evenkeel_kafka::{
    BrokerId, Client, Error, ErrorCode, Refusal, Remedy, TopicPartition,
    calls::{
        configs::{Change, Resource},
        elections::Election,
        reassignments::Target,
    },
};
use futures::future::join_all;

use super::{
    machine::{Action, Dirs, Execution},
    throttle::{List, Relisting, Throttle},
};
use crate::said::chain;

const RATES: [&str; 2] = ["leader.replication.throttled.rate", "follower.replication.throttled.rate"];

/// What one broker is given to answer.
pub(super) const ONE_BROKER: Duration = Duration::from_secs(5);

/// Changes to settings, by whose they are.
type SettingChanges = BTreeMap<Resource, BTreeMap<String, Change>>;

/// What came of a step's deeds.
#[derive(Debug, Default)]
pub(crate) struct Deeds {
    /// Tasks whose stage changed because of a refusal.
    pub(crate) changed: BTreeSet<usize>,
    /// What could not be done, in words. It is asked for again by a later step.
    pub(crate) trouble: Option<String>,
    /// What is not to be moved yet: nothing holds it back, or who gets it does not know into which directory.
    unprepared: BTreeSet<TopicPartition>,
}

impl Deeds {
    /// Does them all: that one could not be done is no reason to leave the next undone.
    /// Rates of brokers in `leftover` were set by a run before: they are ours.
    pub(crate) async fn of(
        client: &Client,
        actions: &[Action],
        execution: &mut Execution,
        leftover: &BTreeSet<BrokerId>,
    ) -> Deeds {
        let mut deeds = Deeds::default();
        for action in actions {
            deeds.perform(client, action, execution, leftover).await;
        }
        deeds
    }

    async fn perform(
        &mut self,
        client: &Client,
        action: &Action,
        execution: &mut Execution,
        leftover: &BTreeSet<BrokerId>,
    ) {
        match action {
            Action::LookForRates(brokers) => match rates(client, brokers).await {
                Ok((found, silent)) if silent.is_empty() => {
                    execution.rates_were_found(brokers, &found.difference(leftover).copied().collect());
                }
                // Nothing moves without the throttle that was asked for: they are asked again.
                Ok((_, silent)) => self.say_silent(&silent),
                Err(error) => self.fail(&error),
            },
            Action::Throttle(throttle) => match set(client, throttle).await {
                Ok(Outcome { refused, .. }) if !refused.is_empty() => {
                    let said = format!("the throttle was refused: {}", refused.join("; "));
                    execution.throttle_refused(said.clone());
                    self.trouble.get_or_insert(said);
                }
                Ok(Outcome { silent, .. }) if !silent.is_empty() => self.say_silent(&silent),
                Ok(_) => execution.throttle_is_set(),
                Err(error) => self.fail(&error),
            },
            Action::Unthrottle(throttle) => match lift(client, throttle).await {
                Ok(outcome) if outcome.left.is_empty() => execution.throttle_is_lifted(),
                Ok(outcome) => {
                    self.say_silent(&outcome.silent);
                    if !outcome.refused.is_empty() {
                        self.trouble = Some(format!("the throttle cannot be lifted: {}", outcome.refused.join("; ")));
                    }
                    execution.throttle_remains(&outcome.brokers(), &outcome.topics());
                }
                Err(error) => self.fail(&error),
            },
            Action::Relist(lists) => match relist(client, lists).await {
                Ok(outcome) if outcome.topics().iter().any(|topic| lists.begin.contains_key(topic)) => {
                    let said = format!("the throttle was refused: {}", outcome.refused.join("; "));
                    execution.throttle_refused(said.clone());
                    self.unprepared.extend(lists.partitions());
                    self.trouble.get_or_insert(said);
                }
                // What is no longer copied is in the lists until all of it is lifted, then.
                Ok(_) => {}
                Err(error) => {
                    execution.not_listed(lists);
                    self.unprepared.extend(lists.partitions());
                    self.fail(&error);
                }
            },
            Action::Cancel(partitions) => {
                let targets = partitions.iter().map(|partition| (partition.clone(), Target::Cancel)).collect();
                let outcome = client.alter_reassignments(&targets, true).await;
                for (partition, answer) in outcome.answers {
                    let Err(refusal) = answer else { continue };
                    // That there was nothing to take back any more shows in the next look.
                    if refusal.code == ErrorCode::NO_REASSIGNMENT_IN_PROGRESS {
                        continue;
                    }
                    self.trouble.get_or_insert_with(|| format!("the move of {partition} is not taken back: {refusal}"));
                    execution.cancel_refused(&partition, refusal.code);
                }
                self.interrupted(outcome.interrupted);
            }
            Action::Reassign(targets) => {
                let targets: BTreeMap<TopicPartition, Target> = targets
                    .iter()
                    .filter(|(partition, _)| !self.unprepared.contains(partition))
                    .map(|(partition, replicas)| (partition.clone(), Target::Replicas(replicas.clone())))
                    .collect();
                let outcome = client.alter_reassignments(&targets, true).await;
                for (partition, answer) in outcome.answers {
                    let Err(refusal) = answer else { continue };
                    tracing::warn!(%partition, %refusal, "a reassignment was refused");
                    self.changed.extend(execution.reassignment_refused(&partition, refusal.code));
                }
                self.interrupted(outcome.interrupted);
            }
            Action::PreferDirs(dirs) => {
                self.move_dirs(client, dirs).await;
            }
            Action::MoveDirs(dirs) => {
                for (broker, partition, code) in self.move_dirs(client, dirs).await {
                    tracing::warn!(%partition, %broker, ?code, "a move between directories was refused");
                    self.changed.extend(execution.dir_move_refused(broker, &partition, code));
                }
            }
            Action::Elect(partitions) => {
                let partitions: Vec<TopicPartition> = partitions.iter().cloned().collect();
                // Who cannot be elected now may be later; who need not be shows in the next look.
                self.interrupted(client.elect_leaders(Election::Preferred, &partitions).await.interrupted);
            }
        }
    }

    /// Tells brokers where replicas are to lie; gives what was refused.
    async fn move_dirs(&mut self, client: &Client, dirs: &Dirs) -> Vec<(BrokerId, TopicPartition, ErrorCode)> {
        let asked = dirs.iter().map(|(broker, wanted)| async move {
            (*broker, wanted, tokio::time::timeout(ONE_BROKER, client.alter_replica_log_dirs(*broker, wanted)).await)
        });
        let mut refused = Vec::new();
        for (broker, wanted, outcome) in join_all(asked).await {
            let Ok(outcome) = outcome else {
                self.unprepared.extend(wanted.keys().cloned());
                self.say_silent(&[broker].into());
                continue;
            };
            let unanswered = wanted.keys().filter(|partition| !outcome.answers.contains_key(partition));
            self.unprepared.extend(unanswered.cloned());
            self.interrupted(outcome.interrupted);
            let answers = outcome.answers.into_iter();
            refused.extend(answers.filter_map(|(partition, answer)| Some((broker, partition, answer.err()?.code))));
        }
        refused
    }

    fn interrupted(&mut self, error: Option<Error>) {
        if let Some(error) = error {
            self.fail(&error);
        }
    }

    fn fail(&mut self, error: &Error) {
        self.trouble.get_or_insert_with(|| chain(error));
    }

    fn say_silent(&mut self, brokers: &BTreeSet<BrokerId>) {
        if !brokers.is_empty() {
            let ids: Vec<String> = brokers.iter().map(ToString::to_string).collect();
            self.trouble.get_or_insert_with(|| format!("no answer from brokers {}", ids.join(", ")));
        }
    }
}

/// Lifts what is left of throttles, and tells what still is.
pub(super) async fn lift_leftover(client: &Client, left: &Throttle) -> Result<Throttle, Error> {
    let outcome = lift(client, left).await?;
    Ok(left.of_those(&outcome.brokers(), &outcome.topics()))
}

/// Whose rate is not ours to set, for it has one already; and who does not say.
async fn rates(
    client: &Client,
    brokers: &BTreeSet<BrokerId>,
) -> Result<(BTreeSet<BrokerId>, BTreeSet<BrokerId>), Error> {
    let asked = brokers.iter().map(|broker| async move {
        let resource = Resource::Broker(*broker);
        let asked = client.describe_configs(std::slice::from_ref(&resource), Some(&RATES));
        let answers = tokio::time::timeout(ONE_BROKER, asked).await.map(|answers| answers.whole());
        (*broker, answers.map(|answers| answers.map(|mut answers| answers.remove(&resource))))
    });
    let (mut found, mut silent) = (BTreeSet::new(), BTreeSet::new());
    for (broker, answer) in join_all(asked).await {
        match answer {
            Ok(Ok(Some(Ok(settings)))) => {
                if settings.values().any(|setting| setting.value.is_some()) {
                    found.insert(broker);
                }
            }
            Ok(Ok(Some(Err(refusal)))) => return Err(Error::Refused { operation: "look for a throttle", refusal }),
            Err(_) | Ok(Ok(None) | Err(Error::UnknownBroker { .. } | Error::Connect { .. })) => {
                silent.insert(broker);
            }
            Ok(Err(error)) => return Err(error),
        }
    }
    Ok((found, silent))
}

/// What came of a change to settings of many.
#[derive(Default)]
struct Outcome {
    /// Who would not have it, and why.
    refused: Vec<String>,
    /// Who did not answer.
    silent: BTreeSet<BrokerId>,
    /// All of both.
    left: BTreeSet<Resource>,
}

async fn set(client: &Client, throttle: &Throttle) -> Result<Outcome, Error> {
    let rate = throttle.rate.to_string();
    let rates = throttle.brokers.iter().map(|broker| {
        let both = RATES.map(|name| (name.to_owned(), Change::Set(rate.clone())));
        (Resource::Broker(*broker), both.into())
    });
    alter(client, rates.collect(), Outcome::default()).await
}

async fn relist(client: &Client, lists: &Relisting) -> Result<Outcome, Error> {
    let changed =
        |topic: &str, list, existing: Option<&str>| lists.applied_to(topic, list, existing).map(set_or_deleted);
    let (changes, outcome) = list_changes(client, lists.topics(), changed).await?;
    alter(client, changes, outcome).await
}

async fn lift(client: &Client, throttle: &Throttle) -> Result<Outcome, Error> {
    let taken =
        |topic: &str, _, existing: Option<&str>| throttle.topics.get(topic)?.taken_from(existing?).map(set_or_deleted);
    let (mut changes, outcome) = list_changes(client, throttle.topics.keys(), taken).await?;
    for broker in &throttle.brokers {
        changes.insert(Resource::Broker(*broker), RATES.map(|name| (name.to_owned(), Change::Delete)).into());
    }
    alter(client, changes, outcome).await
}

/// An empty list is none.
fn set_or_deleted(list: String) -> Change {
    if list.is_empty() { Change::Delete } else { Change::Set(list) }
}

/// What is to be changed about the lists of topics; one that is gone has none.
async fn list_changes<'t>(
    client: &Client,
    topics: impl IntoIterator<Item = &'t String>,
    change: impl Fn(&str, List, Option<&str>) -> Option<Change>,
) -> Result<(SettingChanges, Outcome), Error> {
    let resources: Vec<Resource> = topics.into_iter().cloned().map(Resource::Topic).collect();
    let (mut changes, mut outcome) = (SettingChanges::new(), Outcome::default());
    if resources.is_empty() {
        return Ok((changes, outcome));
    }
    let names = List::BOTH.map(List::setting);
    for (resource, settings) in client.describe_configs(&resources, Some(&names)).await.whole()? {
        let Resource::Topic(topic) = &resource else { continue };
        let settings = match settings {
            Ok(settings) => settings,
            Err(refusal) => {
                outcome.refuse(&resource, refusal)?;
                continue;
            }
        };
        let wanted: BTreeMap<String, Change> = List::BOTH
            .iter()
            .filter_map(|list| {
                let existing = settings.get(list.setting()).and_then(|setting| setting.value.as_deref());
                Some((list.setting().to_owned(), change(topic, *list, existing)?))
            })
            .collect();
        if !wanted.is_empty() {
            changes.insert(resource, wanted);
        }
    }
    Ok((changes, outcome))
}

/// Topics in one go; brokers each by themselves, for only a broker itself changes its settings.
async fn alter(client: &Client, changes: SettingChanges, mut outcome: Outcome) -> Result<Outcome, Error> {
    let (brokers, topics): (SettingChanges, SettingChanges) =
        changes.into_iter().partition(|(resource, _)| matches!(resource, Resource::Broker(_)));
    if !topics.is_empty() {
        outcome.take(client.alter_configs(&topics, false).await.whole()?)?;
    }
    let asked = brokers.into_iter().map(|(resource, wanted)| async move {
        let changes = [(resource.clone(), wanted)].into();
        (resource, tokio::time::timeout(ONE_BROKER, client.alter_configs(&changes, false)).await)
    });
    for (resource, answers) in join_all(asked).await {
        match answers.map(|changes| changes.whole()) {
            Ok(Ok(answers)) => outcome.take(answers)?,
            Ok(Err(_)) | Err(_) => {
                if let Resource::Broker(broker) = &resource {
                    outcome.silent.insert(*broker);
                }
                outcome.left.insert(resource);
            }
        }
    }
    Ok(outcome)
}

impl Outcome {
    fn brokers(&self) -> BTreeSet<BrokerId> {
        let broker = |resource: &Resource| if let Resource::Broker(id) = resource { Some(*id) } else { None };
        self.left.iter().filter_map(broker).collect()
    }

    fn topics(&self) -> BTreeSet<String> {
        let topic = |resource: &Resource| if let Resource::Topic(name) = resource { Some(name.clone()) } else { None };
        self.left.iter().filter_map(topic).collect()
    }

    fn take(&mut self, answers: BTreeMap<Resource, Result<(), Refusal>>) -> Result<(), Error> {
        answers.into_iter().try_for_each(|(resource, answer)| match answer {
            Ok(()) => Ok(()),
            Err(refusal) => self.refuse(&resource, refusal),
        })
    }

    /// What passes by itself is an error, and tried again; a topic that is gone has nothing to change.
    fn refuse(&mut self, resource: &Resource, refusal: Refusal) -> Result<(), Error> {
        if refusal.code == ErrorCode::UNKNOWN_TOPIC_OR_PARTITION {
            return Ok(());
        }
        if refusal.code.remedy() != Remedy::AskUser {
            return Err(Error::Refused { operation: "change a throttle", refusal });
        }
        self.refused.push(format!("{resource:?}: {refusal}"));
        self.left.insert(resource.clone());
        Ok(())
    }
}
