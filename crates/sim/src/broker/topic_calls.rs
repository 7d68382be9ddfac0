//! Topics are made, grown, deleted and configured.

use std::collections::{BTreeMap, BTreeSet};

use kafka_protocol::messages::alter_configs_response::AlterConfigsResourceResponse as ReplacedConfigs;
use kafka_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use kafka_protocol::messages::create_partitions_response::CreatePartitionsTopicResult;
use kafka_protocol::messages::create_topics_request::CreatableTopic;
use kafka_protocol::messages::create_topics_response::{CreatableTopicConfigs, CreatableTopicResult};
use kafka_protocol::messages::delete_topics_response::DeletableTopicResult;
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResult, DescribeConfigsSynonym,
};
use kafka_protocol::messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use kafka_protocol::messages::incremental_alter_configs_response::AlterConfigsResourceResponse;
use kafka_protocol::messages::list_config_resources_response::ConfigResource;
use kafka_protocol::messages::{
    AlterConfigsRequest, AlterConfigsResponse, CreatePartitionsRequest, CreatePartitionsResponse, CreateTopicsRequest,
    CreateTopicsResponse, DeleteTopicsRequest, DeleteTopicsResponse, DescribeConfigsRequest, DescribeConfigsResponse,
    IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse, ListConfigResourcesRequest,
    ListConfigResourcesResponse, TopicName,
};
use kafka_protocol::protocol::StrBytes;
use uuid::Uuid;

use super::Call;
use super::convert::{ids, outcome, text, topic, topic_id, uuid};
use crate::cluster::{Alteration, ConfigEntry, ConfigSource, NewTopic, Operation, Placement, Resource};
use crate::code::{Code, Refusal};
use crate::ids::BrokerId;

/// The controller writes no more records than this for one request, and a new partition is a record.
const PARTITIONS_AT_ONCE: i64 = 10_000;

impl Call<'_> {
    pub(super) fn create_topics(&mut self, request: CreateTopicsRequest) -> CreateTopicsResponse {
        let mut times: BTreeMap<TopicName, usize> = BTreeMap::new();
        request.topics.iter().for_each(|wanted| *times.entry(wanted.name.clone()).or_default() += 1);
        let too_many = request.topics.iter().map(partitions_of).sum::<i64>() > PARTITIONS_AT_ONCE;
        let refuse = |wanted: &CreatableTopic, refusal: Refusal| {
            CreatableTopicResult::default()
                .with_name(wanted.name.clone())
                .with_error_code(refusal.code.number())
                .with_error_message(Some(text(&refusal.message)))
        };
        let mut results = Vec::new();
        for wanted in &request.topics {
            // What is named twice is refused once.
            let Some(times) = times.remove(&wanted.name) else { continue };
            results.push(if too_many {
                refuse(wanted, Code::PolicyViolation.because("Excessively large number of partitions per request."))
            } else if times > 1 {
                refuse(wanted, Code::InvalidRequest.because("Duplicate topic name."))
            } else {
                self.create_topic(wanted, request.validate_only)
            });
        }
        CreateTopicsResponse::default().with_topics(results)
    }

    fn create_topic(&mut self, wanted: &CreatableTopic, validate_only: bool) -> CreatableTopicResult {
        let made = |new: NewTopic| Ok((self.cluster.create_topic(&new, validate_only)?, new.configs));
        let result = new_topic(wanted).and_then(made);
        let (code, message) = outcome(&result);
        let answer = CreatableTopicResult::default()
            .with_name(wanted.name.clone())
            .with_error_code(code)
            .with_error_message(message);
        let Ok((made, configs)) = result else { return answer };
        let entries = self.cluster.topic_entries(&configs);
        let configs = entries.iter().map(|entry| {
            CreatableTopicConfigs::default()
                .with_name(text(&entry.name))
                .with_value(entry.value.as_deref().map(text))
                .with_config_source(entry.source.number())
                .with_is_sensitive(entry.sensitive)
        });
        answer
            .with_topic_id(uuid(made.id))
            .with_num_partitions(made.partitions)
            .with_replication_factor(made.factor)
            .with_configs(Some(configs.collect()))
    }

    pub(super) fn delete_topics(&mut self, request: DeleteTopicsRequest) -> DeleteTopicsResponse {
        let by_name = request.topic_names.into_iter().map(|name| (Some(name), Uuid::nil()));
        let wanted: Vec<(Option<TopicName>, Uuid)> =
            by_name.chain(request.topics.into_iter().map(|state| (state.name, state.topic_id))).collect();
        let responses = wanted.into_iter().map(|(name, id)| {
            let by_id = name.is_none();
            let found = if by_id { self.cluster.topic_name(topic_id(&id)).map(|name| topic(&name)) } else { name };
            let result = match &found {
                Some(name) => self.cluster.delete_topic(name),
                None => Err(Code::UnknownTopicId.plain()),
            };
            let (code, message) = outcome(&result);
            let id = result.map_or(id, uuid);
            let answer = DeletableTopicResult::default().with_name(found).with_topic_id(id);
            answer.with_error_code(code).with_error_message(message)
        });
        DeleteTopicsResponse::default().with_responses(responses.collect())
    }

    pub(super) fn create_partitions(&mut self, request: CreatePartitionsRequest) -> CreatePartitionsResponse {
        let more = |wanted: &CreatePartitionsTopic| {
            let present = self.cluster.partition_count(&wanted.name).unwrap_or(wanted.count);
            i64::from(wanted.count.saturating_sub(present).max(0))
        };
        let too_many = request.topics.iter().map(more).sum::<i64>() > PARTITIONS_AT_ONCE;
        let results = request.topics.iter().map(|wanted| {
            let lists: Option<Vec<Vec<BrokerId>>> =
                wanted.assignments.as_ref().map(|lists| lists.iter().map(|list| ids(&list.broker_ids)).collect());
            let result = if too_many {
                Err(Code::PolicyViolation.because("Unable to perform excessively large batch operation."))
            } else {
                self.cluster.create_partitions(&wanted.name, wanted.count, lists.as_deref(), request.validate_only)
            };
            let (code, message) = outcome(&result);
            let answer = CreatePartitionsTopicResult::default().with_name(wanted.name.clone());
            answer.with_error_code(code).with_error_message(message)
        });
        CreatePartitionsResponse::default().with_results(results.collect())
    }

    pub(super) fn describe_configs(&mut self, request: DescribeConfigsRequest) -> DescribeConfigsResponse {
        let mut asked = BTreeSet::new();
        let once = request.resources.iter().filter(|it| asked.insert((it.resource_type, it.resource_name.clone())));
        let results = once.map(|wanted| {
            let result = resource(wanted.resource_type, &wanted.resource_name).and_then(|resource| {
                if let Resource::Topic(name) = &resource {
                    self.cluster.knows_topic(self.me, name)?;
                }
                self.cluster.describe_configs(self.me, &resource)
            });
            let (code, message) = outcome(&result);
            let entries = result.unwrap_or_default();
            let shown = entries.iter().filter(|entry| is_wanted(wanted, entry));
            DescribeConfigsResult::default()
                .with_error_code(code)
                .with_error_message(message)
                .with_resource_type(wanted.resource_type)
                .with_resource_name(wanted.resource_name.clone())
                .with_configs(shown.map(|entry| described(entry, request.include_synonyms)).collect())
        });
        DescribeConfigsResponse::default().with_results(results.collect())
    }

    pub(super) fn incremental_alter_configs(
        &mut self,
        request: IncrementalAlterConfigsRequest,
    ) -> IncrementalAlterConfigsResponse {
        let responses = request.resources.iter().map(|wanted| {
            let result = self.alter_resource(wanted, request.validate_only);
            let (code, message) = outcome(&result);
            AlterConfigsResourceResponse::default()
                .with_error_code(code)
                .with_error_message(message)
                .with_resource_type(wanted.resource_type)
                .with_resource_name(wanted.resource_name.clone())
        });
        IncrementalAlterConfigsResponse::default().with_responses(responses.collect())
    }

    /// The older way: what is not named is taken away.
    pub(super) fn alter_configs(&mut self, request: AlterConfigsRequest) -> AlterConfigsResponse {
        let responses = request.resources.iter().map(|wanted| {
            let value = |value: &StrBytes| value.to_string();
            let values = wanted.configs.iter().map(|it| (it.name.to_string(), it.value.as_ref().map(value)));
            let result = self
                .alterable(wanted.resource_type, &wanted.resource_name)
                .and_then(|resource| self.cluster.replace_configs(&resource, values, request.validate_only));
            let (code, message) = outcome(&result);
            ReplacedConfigs::default()
                .with_error_code(code)
                .with_error_message(message)
                .with_resource_type(wanted.resource_type)
                .with_resource_name(wanted.resource_name.clone())
        });
        AlterConfigsResponse::default().with_responses(responses.collect())
    }

    /// What has settings; before version 1 only subscriptions to clients' metrics, of which there are none.
    pub(super) fn list_config_resources(&mut self, request: ListConfigResourcesRequest) -> ListConfigResourcesResponse {
        let mut wanted: BTreeSet<i8> = request.resource_types.iter().copied().collect();
        if wanted.is_empty() && self.raw.version > 0 {
            wanted.extend(LISTED);
        }
        let response = ListConfigResourcesResponse::default();
        if wanted.iter().any(|kind| !LISTED.contains(kind)) {
            return response.with_error_code(Code::UnsupportedVersion.number());
        }
        let brokers = self.cluster.describe_brokers(self.me, false);
        let brokers: Vec<String> = brokers.iter().map(|view| view.id.to_string()).collect();
        let listed = wanted.into_iter().flat_map(|kind| {
            let names = match kind {
                TOPIC => self.cluster.topic_names(self.me).iter().map(|name| name.to_string()).collect(),
                BROKER | BROKER_LOGGER => brokers.clone(),
                _ => Vec::new(),
            };
            names
                .into_iter()
                .map(move |name| ConfigResource::default().with_resource_name(text(&name)).with_resource_type(kind))
        });
        response.with_config_resources(listed.collect())
    }

    fn alter_resource(&mut self, wanted: &AlterConfigsResource, validate_only: bool) -> Result<(), Refusal> {
        let resource = self.alterable(wanted.resource_type, &wanted.resource_name)?;
        let alterations: Vec<Alteration> = wanted.configs.iter().map(alteration).collect();
        self.cluster.incremental_alter_configs(&resource, &alterations, validate_only)
    }

    /// What this broker may alter the settings of: no other broker's.
    fn alterable(&self, kind: i8, name: &str) -> Result<Resource, Refusal> {
        match resource(kind, name)? {
            Resource::Broker(id) if id != self.me => {
                let text = format!("Unexpected broker id, expected {}, but received {id}", self.me);
                Err(Code::InvalidRequest.because(text))
            }
            resource => Ok(resource),
        }
    }
}

/// How many partitions a topic would have; one that will be refused for its number counts as one.
fn partitions_of(wanted: &CreatableTopic) -> i64 {
    if wanted.assignments.is_empty() {
        i64::from(wanted.num_partitions.max(1))
    } else {
        wanted.assignments.len() as i64
    }
}

fn new_topic(wanted: &CreatableTopic) -> Result<NewTopic, Refusal> {
    let placement = if wanted.assignments.is_empty() {
        Placement::Automatic { partitions: wanted.num_partitions, factor: wanted.replication_factor }
    } else if wanted.num_partitions != -1 || wanted.replication_factor != -1 {
        let both = "A manual partition assignment was specified, but ";
        let (code, what) = if wanted.replication_factor != -1 {
            (Code::InvalidRequest, "replication factor was not set to -1.")
        } else {
            (Code::InvalidRequest, "numPartitions was not set to -1.")
        };
        return Err(code.because(format!("{both}{what}")));
    } else {
        let mut lists = BTreeMap::new();
        for it in &wanted.assignments {
            if lists.insert(it.partition_index, ids(&it.broker_ids)).is_some() {
                return Err(Code::InvalidReplicaAssignment.because(format!(
                    "Found multiple manual partition assignments for partition {}",
                    it.partition_index
                )));
            }
        }
        Placement::Manual(lists)
    };
    let configs = wanted.configs.iter().filter_map(|it| Some((it.name.to_string(), it.value.as_ref()?.to_string())));
    let configs = configs.collect();
    Ok(NewTopic { configs, ..NewTopic::placed(&wanted.name, placement) })
}

const TOPIC: i8 = 2;
const BROKER: i8 = 4;
const BROKER_LOGGER: i8 = 8;
/// What can be listed: those, subscriptions to clients' metrics, and groups.
const LISTED: [i8; 5] = [TOPIC, BROKER, BROKER_LOGGER, 16, 32];

/// A topic, or a broker, and all of them where no name is given.
fn resource(kind: i8, name: &str) -> Result<Resource, Refusal> {
    match (kind, name) {
        (TOPIC, name) => Ok(Resource::Topic(name.to_owned())),
        (BROKER, "") => Ok(Resource::EveryBroker),
        (BROKER, name) => name
            .parse()
            .map(|id| Resource::Broker(BrokerId(id)))
            .map_err(|_| Code::InvalidRequest.because(format!("Broker id must be an integer, but it is: {name}"))),
        (kind, _) => Err(Code::InvalidRequest.because(format!("Unsupported resource type: {kind}"))),
    }
}

fn alteration(config: &AlterableConfig) -> Alteration {
    let operation = match config.config_operation {
        0 => Operation::Set,
        1 => Operation::Delete,
        2 => Operation::Append,
        3 => Operation::Subtract,
        _ => Operation::Unknown,
    };
    Alteration { name: config.name.to_string(), operation, value: config.value.as_ref().map(|value| value.to_string()) }
}

fn is_wanted(wanted: &DescribeConfigsResource, entry: &ConfigEntry) -> bool {
    wanted.configuration_keys.as_ref().is_none_or(|keys| keys.iter().any(|key| key.as_str() == entry.name))
}

fn described(entry: &ConfigEntry, synonyms: bool) -> DescribeConfigsResourceResult {
    let value = entry.value.as_deref().map(text);
    let synonym = DescribeConfigsSynonym::default()
        .with_name(text(&entry.name))
        .with_value(value.clone())
        .with_source(entry.source.number());
    let own = synonyms && entry.source != ConfigSource::Default;
    DescribeConfigsResourceResult::default()
        .with_name(text(&entry.name))
        .with_value(value)
        .with_read_only(entry.read_only)
        .with_config_source(entry.source.number())
        .with_is_sensitive(entry.sensitive)
        .with_config_type(entry.kind)
        .with_documentation(None)
        .with_synonyms(if own { vec![synonym] } else { Vec::new() })
}
