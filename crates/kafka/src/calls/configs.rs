//! Settings of topics and brokers.

use std::{collections::BTreeMap, fmt};

use futures::{StreamExt, stream};
use kafka_protocol::messages::{
    self, DescribeConfigsRequest, IncrementalAlterConfigsRequest,
    describe_configs_request::DescribeConfigsResource,
    incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig},
};

use crate::{
    client::{Call, Client, Effect, To},
    error::{Error, Refusal},
    types::{BrokerId, Changes, message, text},
};

/// Topics asked for in one request; all their settings come back.
const RESOURCES_AT_ONCE: usize = 500;
/// Brokers asked at the same time.
const BROKERS_AT_ONCE: usize = 16;

/// Whose settings.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resource {
    /// A topic's.
    Topic(String),
    /// A broker's.
    Broker(BrokerId),
    /// What all brokers have in common, set at run time.
    AllBrokers,
}

/// One setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Its value; `None` if it has none, or is a secret.
    pub value: Option<String>,
    /// Where the value comes from.
    pub source: Source,
    /// Whether its value is kept from everybody.
    pub sensitive: bool,
    /// Whether it can only be changed by restarting.
    pub read_only: bool,
}

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Set for this topic.
    Topic,
    /// Set at run time for this broker.
    Broker,
    /// Set at run time for all brokers.
    AllBrokers,
    /// From the broker's file.
    File,
    /// Nobody has set it.
    Default,
    /// Something that later versions know.
    Other(i8),
}

/// What to do with one setting.
#[derive(Clone, PartialEq, Eq)]
pub enum Change {
    /// Give it this value.
    Set(String),
    /// Back to what it is without this resource's value.
    Delete,
    /// Put these into the list that it is.
    Append(String),
    /// Take these out of the list that it is.
    Subtract(String),
}

impl fmt::Debug for Change {
    /// Without values: one may be a password.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Set(_) => "Set(..)",
            Self::Delete => "Delete",
            Self::Append(_) => "Append(..)",
            Self::Subtract(_) => "Subtract(..)",
        })
    }
}

/// Settings by name.
pub type Settings = BTreeMap<String, Setting>;

/// What came of each resource. The settings of a broker that is down cannot be had; those of others can.
pub type ConfigAnswers<T = ()> = Changes<Resource, T>;

impl Resource {
    fn to_wire(&self) -> (i8, String) {
        match self {
            Self::Topic(name) => (2, name.clone()),
            Self::Broker(id) => (4, id.to_string()),
            Self::AllBrokers => (4, String::new()),
        }
    }

    fn of_wire(kind: i8, name: &str) -> Option<Self> {
        match (kind, name) {
            (2, name) => Some(Self::Topic(name.to_owned())),
            (4, "") => Some(Self::AllBrokers),
            (4, id) => id.parse().ok().map(|id| Self::Broker(BrokerId(id))),
            _ => None,
        }
    }

    /// A broker's own settings are known to, and changed at, that broker alone.
    fn asked_at(&self) -> To<'static> {
        match self {
            Self::Broker(id) => To::Broker(*id),
            _ => To::Any,
        }
    }
}

impl Source {
    fn of(wire: i8) -> Self {
        match wire {
            1 => Self::Topic,
            2 => Self::Broker,
            3 => Self::AllBrokers,
            4 => Self::File,
            5 => Self::Default,
            other => Self::Other(other),
        }
    }
}

impl Client {
    /// Settings of resources: those in `names`, or all.
    pub async fn describe_configs(&self, resources: &[Resource], names: Option<&[&str]>) -> ConfigAnswers<Settings> {
        let keys = || names.map(|names| names.iter().map(|name| text(name)).collect::<Vec<_>>());
        let keys = &keys;
        of_each(resources.iter().cloned(), |some: Vec<Resource>| async move {
            let to = asked_at(&some);
            let mut found = BTreeMap::new();
            let call = Call { operation: "describe configurations", to, effect: Effect::Repeatable };
            let request = |_| {
                let wanted = some.iter().map(|resource| {
                    let (kind, name) = resource.to_wire();
                    DescribeConfigsResource::default()
                        .with_resource_type(kind)
                        .with_resource_name(text(&name))
                        .with_configuration_keys(keys())
                });
                DescribeConfigsRequest::default().with_resources(wanted.collect())
            };
            let answer: messages::DescribeConfigsResponse = self.ask(call, request, |_| Ok(())).await?;
            for result in answer.results {
                let Some(resource) = Resource::of_wire(result.resource_type, &result.resource_name) else { continue };
                let settings = result.configs.into_iter().map(|config| {
                    let setting = Setting {
                        value: config.value.map(|value| value.to_string()),
                        source: Source::of(config.config_source),
                        sensitive: config.is_sensitive,
                        read_only: config.read_only,
                    };
                    (config.name.to_string(), setting)
                });
                let answer = Refusal::check(result.error_code, message(result.error_message));
                found.insert(resource, answer.map(|()| settings.collect()));
            }
            Ok(found)
        })
        .await
    }

    /// Changes some settings and leaves the others; `dry_run` only asks whether it could be done.
    pub async fn alter_configs(
        &self,
        changes: &BTreeMap<Resource, BTreeMap<String, Change>>,
        dry_run: bool,
    ) -> ConfigAnswers {
        // Who is asked passes it on to the controller, but refuses what is another broker's: the settings of one that
        // is down cannot be changed.
        of_each(changes.clone().into_iter(), |some: Vec<(Resource, BTreeMap<String, Change>)>| async move {
            let to = asked_at(&some);
            let mut found = BTreeMap::new();
            // Set and Delete can be repeated; lists would not grow twice either, as members are unique.
            let call = Call { operation: "alter configurations", to, effect: Effect::Repeatable };
            let request = |_| {
                let resources = some.iter().map(|(resource, changes)| {
                    let (kind, name) = resource.to_wire();
                    AlterConfigsResource::default()
                        .with_resource_type(kind)
                        .with_resource_name(text(&name))
                        .with_configs(changes.iter().map(|(name, change)| alterable(name, change)).collect())
                });
                IncrementalAlterConfigsRequest::default()
                    .with_resources(resources.collect())
                    .with_validate_only(dry_run)
            };
            let answer: messages::IncrementalAlterConfigsResponse = self.ask(call, request, |_| Ok(())).await?;
            for result in answer.responses {
                if let Some(resource) = Resource::of_wire(result.resource_type, &result.resource_name) {
                    found.insert(resource, Refusal::check(result.error_code, message(result.error_message)));
                }
            }
            Ok(found)
        })
        .await
    }
}

fn alterable(name: &str, change: &Change) -> AlterableConfig {
    let (operation, value) = match change {
        Change::Set(value) => (0, Some(value)),
        Change::Delete => (1, None),
        Change::Append(value) => (2, Some(value)),
        Change::Subtract(value) => (3, Some(value)),
    };
    AlterableConfig::default()
        .with_name(text(name))
        .with_config_operation(operation)
        .with_value(value.map(|value| text(value)))
}

/// Asks about things piece by piece, and brokers about their own at the same time: one that does not answer takes all
/// the patience there is, and keeps nobody from asking the others.
async fn of_each<Asked: About, T, Asking>(
    things: impl Iterator<Item = Asked>,
    ask: impl Fn(Vec<Asked>) -> Asking,
) -> ConfigAnswers<T>
where
    Asking: Future<Output = Result<BTreeMap<Resource, Result<T, Refusal>>, Error>>,
{
    let (anywhere, at_brokers): (Vec<_>, Vec<_>) =
        pieces(things).into_iter().partition(|some| asked_at(some) == To::Any);
    let of_all = async {
        let mut told = Vec::new();
        for some in anywhere {
            told.push(ask(some).await);
            // Whom nobody answers need not ask on.
            if told.last().is_some_and(Result::is_err) {
                break;
            }
        }
        told
    };
    let asking: Vec<_> = at_brokers.into_iter().map(&ask).collect();
    let (of_all, of_brokers) = tokio::join!(of_all, stream::iter(asking).buffered(BROKERS_AT_ONCE).collect::<Vec<_>>());
    let mut told = Changes { answers: BTreeMap::new(), interrupted: None };
    for outcome in of_all.into_iter().chain(of_brokers) {
        match outcome {
            Ok(answers) => told.answers.extend(answers),
            Err(error) => {
                told.interrupted.get_or_insert(error);
            }
        }
    }
    told
}

/// Something that is asked about a resource.
trait About {
    fn resource(&self) -> &Resource;
}

impl About for Resource {
    fn resource(&self) -> &Resource {
        self
    }
}

impl<T> About for (Resource, T) {
    fn resource(&self) -> &Resource {
        &self.0
    }
}

/// Who is asked about the things of one piece, which is the same for all of them.
fn asked_at<T: About>(some: &[T]) -> To<'static> {
    some.first().map_or(To::Any, |thing| thing.resource().asked_at())
}

/// Pieces of a request each, of things that go to the same one.
fn pieces<T: About>(things: impl Iterator<Item = T>) -> Vec<Vec<T>> {
    let mut pieces: Vec<Vec<T>> = Vec::new();
    for thing in things {
        let to = thing.resource().asked_at();
        match pieces.iter_mut().find(|some| asked_at(some) == to && some.len() < RESOURCES_AT_ONCE) {
            Some(some) => some.push(thing),
            None => pieces.push(vec![thing]),
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_formatter_prints_what_is_set() {
        for change in [Change::Set, Change::Append, Change::Subtract] {
            let printed = format!("{0:?} {0:#?}", change("hunter2".to_owned()));
            assert!(!printed.contains("hunter2"), "{printed}");
        }
    }
}
