//! Does what a step asks for, and tells the execution what was refused.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_kafka::{
    BrokerId, Client, Error, Refusal, TopicPartition,
    calls::{
        configs::{Change, Resource, Settings},
        elections::Election,
        reassignments::Target,
    },
};

use super::{
    machine::{Action, Dirs, Execution},
    throttle::{Listing, Throttle},
};

const RATES: [&str; 2] = ["leader.replication.throttled.rate", "follower.replication.throttled.rate"];
const LISTS: [&str; 2] = ["leader.replication.throttled.replicas", "follower.replication.throttled.replicas"];

/// Changes to settings, by whose they are.
type SettingChanges = BTreeMap<Resource, BTreeMap<String, Change>>;

/// Does it. Tasks whose stage changed because of a refusal go into `changed`; what was interrupted is
/// an error, and is asked for again by a later step.
pub(crate) async fn perform(
    client: &Client,
    action: &Action,
    execution: &mut Execution,
    changed: &mut BTreeSet<usize>,
) -> Result<(), Error> {
    match action {
        Action::LookForRates(brokers) => {
            let found = rates(client, brokers).await?;
            execution.rates_were_found(&found);
        }
        Action::Throttle(throttle) => {
            set(client, throttle).await?;
            execution.throttle_is_set();
        }
        Action::Unthrottle(throttle) => {
            lift(client, throttle).await?;
            execution.throttle_is_lifted();
        }
        Action::Cancel(partitions) => {
            let targets = partitions.iter().map(|partition| (partition.clone(), Target::Cancel)).collect();
            // Refused means that there was nothing to take back any more, which the next look shows.
            return interrupted(client.alter_reassignments(&targets, true).await.interrupted);
        }
        Action::Reassign(targets) => {
            let targets: BTreeMap<TopicPartition, Target> = targets
                .iter()
                .map(|(partition, replicas)| (partition.clone(), Target::Replicas(replicas.clone())))
                .collect();
            let outcome = client.alter_reassignments(&targets, true).await;
            for (partition, answer) in outcome.answers {
                let Err(refusal) = answer else { continue };
                tracing::warn!(%partition, %refusal, "a reassignment was refused");
                changed.extend(execution.reassignment_refused(&partition, refusal.code));
            }
            return interrupted(outcome.interrupted);
        }
        Action::PreferDirs(dirs) => return move_dirs(client, dirs, |_, _, _| {}).await,
        Action::MoveDirs(dirs) => {
            let refused = |broker, partition: &TopicPartition, code| {
                tracing::warn!(%partition, %broker, ?code, "a move between directories was refused");
                changed.extend(execution.dir_move_refused(broker, partition, code));
            };
            return move_dirs(client, dirs, refused).await;
        }
        Action::Elect(partitions) => {
            let partitions: Vec<TopicPartition> = partitions.iter().cloned().collect();
            // Who cannot be elected now may be later; who need not be shows in the next look.
            return interrupted(client.elect_leaders(Election::Preferred, &partitions).await.interrupted);
        }
    }
    Ok(())
}

fn interrupted(error: Option<Error>) -> Result<(), Error> {
    error.map_or(Ok(()), Err)
}

async fn move_dirs(
    client: &Client,
    dirs: &Dirs,
    mut refused: impl FnMut(BrokerId, &TopicPartition, evenkeel_kafka::ErrorCode),
) -> Result<(), Error> {
    for (broker, wanted) in dirs {
        let outcome = client.alter_replica_log_dirs(*broker, wanted).await;
        for (partition, answer) in &outcome.answers {
            if let Err(refusal) = answer {
                refused(*broker, partition, refusal.code);
            }
        }
        interrupted(outcome.interrupted)?;
    }
    Ok(())
}

/// Who has a rate of their own already.
async fn rates(client: &Client, brokers: &BTreeSet<BrokerId>) -> Result<BTreeSet<BrokerId>, Error> {
    let mut found = BTreeSet::new();
    for broker in brokers {
        let settings = of_broker(client, *broker, &RATES).await?;
        let rated = |settings: Settings| settings.values().any(|setting| setting.value.is_some());
        if settings.is_some_and(rated) {
            found.insert(*broker);
        }
    }
    Ok(found)
}

/// The settings of a broker; `None` if it is down: only the broker itself knows and changes its own.
async fn of_broker(client: &Client, broker: BrokerId, names: &[&str]) -> Result<Option<Settings>, Error> {
    let resource = Resource::Broker(broker);
    match client.describe_configs(std::slice::from_ref(&resource), Some(names)).await.whole() {
        Ok(mut answers) => Ok(answers.remove(&resource).and_then(Result::ok)),
        Err(Error::UnknownBroker { .. } | Error::Connect { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

async fn set(client: &Client, throttle: &Throttle) -> Result<(), Error> {
    let mut changes =
        list_changes(client, throttle, |listing, existing| listing.joined_to(existing).map(Change::Set)).await?;
    let rate = throttle.rate.to_string();
    for broker in &throttle.brokers {
        let both = RATES.map(|name| (name.to_owned(), Change::Set(rate.clone())));
        changes.insert(Resource::Broker(*broker), both.into());
    }
    alter(client, changes).await
}

async fn lift(client: &Client, throttle: &Throttle) -> Result<(), Error> {
    let mut changes = list_changes(client, throttle, |listing, existing| {
        let left = listing.taken_from(existing?)?;
        Some(if left.is_empty() { Change::Delete } else { Change::Set(left) })
    })
    .await?;
    for broker in &throttle.brokers {
        changes.insert(Resource::Broker(*broker), RATES.map(|name| (name.to_owned(), Change::Delete)).into());
    }
    alter(client, changes).await
}

/// What is to be changed about the lists of the throttle's topics; one that is gone has none.
async fn list_changes(
    client: &Client,
    throttle: &Throttle,
    change: impl Fn(&Listing, Option<&str>) -> Option<Change>,
) -> Result<SettingChanges, Error> {
    let resources: Vec<Resource> = throttle.topics.keys().cloned().map(Resource::Topic).collect();
    let mut changes = SettingChanges::new();
    for (resource, settings) in client.describe_configs(&resources, Some(&LISTS)).await.whole()? {
        let Resource::Topic(topic) = &resource else { continue };
        let (Some(listing), Ok(settings)) = (throttle.topics.get(topic), settings) else { continue };
        let wanted: BTreeMap<String, Change> = LISTS
            .iter()
            .filter_map(|name| {
                let existing = settings.get(*name).and_then(|setting| setting.value.as_deref());
                Some(((*name).to_owned(), change(listing, existing)?))
            })
            .collect();
        if !wanted.is_empty() {
            changes.insert(resource, wanted);
        }
    }
    Ok(changes)
}

/// Topics in one go; brokers each by themselves, for one that is down must not hold up the others.
async fn alter(client: &Client, changes: SettingChanges) -> Result<(), Error> {
    let (brokers, topics): (SettingChanges, SettingChanges) =
        changes.into_iter().partition(|(resource, _)| matches!(resource, Resource::Broker(_)));
    refusals(client.alter_configs(&topics, false).await.whole()?);
    for (resource, wanted) in brokers {
        match client.alter_configs(&[(resource.clone(), wanted)].into(), false).await.whole() {
            Ok(answers) => refusals(answers),
            // It copies nothing while it is down. Its settings come back with it: the lists of the topics, which are
            // everybody's, decide whether they have an effect.
            Err(Error::UnknownBroker { .. } | Error::Connect { .. }) => {
                tracing::warn!(?resource, "the throttle of a broker that is down was not changed");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn refusals(answers: BTreeMap<Resource, Result<(), Refusal>>) {
    for (resource, answer) in answers {
        if let Err(refusal) = answer {
            tracing::warn!(?resource, %refusal, "a throttle was refused");
        }
    }
}
