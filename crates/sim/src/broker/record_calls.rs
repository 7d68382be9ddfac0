//! Records are produced, fetched and found; some answers have to wait.

use bytes::Bytes;
use evenkeel_kafka::message::{MessageError, encode_response};
use kafka_protocol::messages::delete_records_response::{DeleteRecordsPartitionResult, DeleteRecordsTopicResult};
use kafka_protocol::messages::fetch_request::FetchTopic;
use kafka_protocol::messages::fetch_response::{
    AbortedTransaction, FetchableTopicResponse, LeaderIdAndEpoch, PartitionData,
};
use kafka_protocol::messages::list_offsets_response::{ListOffsetsPartitionResponse, ListOffsetsTopicResponse};
use kafka_protocol::messages::produce_response::{PartitionProduceResponse, TopicProduceResponse};
use kafka_protocol::messages::{
    DeleteRecordsRequest, DeleteRecordsResponse, FetchRequest, FetchResponse, ListOffsetsRequest, ListOffsetsResponse,
    ProduceRequest, ProduceResponse, TopicName,
};

use super::convert::{broker, outcome, partition, topic, topic_id};
use super::{Call, Reply};
use crate::cluster::{Cluster, FetchRequest as Wanted, Isolation, OffsetQuery, Term};
use crate::code::{Code, Refusal};
use crate::ids::{BrokerId, Millis, TopicPartition};

/// fetch.max.bytes
const FETCHED_AT_ONCE: usize = 55 * 1024 * 1024;

/// An answer that waits for something to happen.
#[derive(Debug)]
pub struct Pending {
    me: BrokerId,
    version: i16,
    correlation: i32,
    /// For how long at most.
    pub patience: Millis,
    awaited: Awaited,
}

#[derive(Debug)]
enum Awaited {
    /// All replicas in sync have these records.
    Acknowledged { response: ProduceResponse, waiting: Vec<Unacknowledged> },
    /// There is something to read.
    Records(FetchRequest),
}

/// Records of which it is not known yet whether they are everywhere.
#[derive(Debug)]
struct Unacknowledged {
    /// Where in the answer they stand: topic and partition.
    place: (usize, usize),
    partition: TopicPartition,
    /// What was written under one leader may be gone when the same one leads again.
    term: Term,
    end: i64,
}

impl Pending {
    /// The answer, if it can be given now or must be because the time is up.
    pub fn try_answer(&mut self, cluster: &Cluster, time_is_up: bool) -> Option<Reply> {
        let (version, correlation) = (self.version, self.correlation);
        let frame = match &mut self.awaited {
            Awaited::Acknowledged { response, waiting } => {
                waiting.retain(|it| {
                    let leads = cluster.term(&it.partition) == Some(it.term);
                    let code = match cluster.high_watermark(&it.partition) {
                        Some(high_watermark) if leads && high_watermark >= it.end => return false,
                        Some(_) if leads && time_is_up => Code::RequestTimedOut,
                        Some(_) if leads => return true,
                        _ => Code::NotLeaderOrFollower,
                    };
                    let (topic, partition) = it.place;
                    let answer = &mut response.responses[topic].partition_responses[partition];
                    answer.error_code = code.number();
                    answer.base_offset = -1;
                    false
                });
                if !waiting.is_empty() {
                    return None;
                }
                encode_response(response, version, correlation)
            }
            Awaited::Records(request) => {
                let (response, ready) = fetched(cluster, self.me, version, request);
                if !ready && !time_is_up {
                    return None;
                }
                encode_response(&response, version, correlation)
            }
        };
        Some(frame.map_or_else(|error| Reply::Close(Some(error)), Reply::Answer))
    }
}

impl Call<'_> {
    pub(super) fn produce(&mut self) -> Result<Reply, MessageError> {
        let request: ProduceRequest = self.decode()?;
        let transactional_id = request.transactional_id.as_ref().map(|id| id.to_string());
        let bad_acks = !matches!(request.acks, -1..=1);
        let mut waiting = Vec::new();
        let mut responses = Vec::new();
        for (topic_at, data) in request.topic_data.iter().enumerate() {
            let mut partitions = Vec::new();
            for (partition_at, it) in data.partition_data.iter().enumerate() {
                let tp = partition(&data.name, it.index);
                let records = it.records.clone().unwrap_or_default();
                let result = if bad_acks {
                    Err(Code::InvalidRequiredAcks.plain())
                } else {
                    let id = transactional_id.as_deref();
                    let known = self.cluster.knows_it_leads(self.me, &tp);
                    known.and_then(|()| self.cluster.produce(self.me, &tp, records, request.acks == -1, id))
                };
                let (code, message) = outcome(&result);
                let mut answer = PartitionProduceResponse::default().with_index(it.index).with_error_code(code);
                answer = answer.with_error_message(message).with_base_offset(-1);
                if let Ok(appended) = result {
                    answer = answer.with_base_offset(appended.base_offset).with_log_append_time_ms(-1);
                    answer = answer.with_log_start_offset(appended.log_start_offset);
                    if request.acks == -1 {
                        let (term, end) = (appended.term, appended.end_offset);
                        waiting.push(Unacknowledged { place: (topic_at, partition_at), partition: tp, term, end });
                    }
                }
                partitions.push(answer);
            }
            responses.push(
                TopicProduceResponse::default().with_name(data.name.clone()).with_partition_responses(partitions),
            );
        }
        if request.acks == 0 {
            // Nobody listens for errors; a connection that closes is how Kafka tells.
            let failed = responses.iter().flat_map(|it| &it.partition_responses).any(|it| it.error_code != 0);
            return Ok(if failed { Reply::Close(None) } else { Reply::Silence });
        }
        let response = ProduceResponse::default().with_responses(responses);
        self.wait(Millis::from(request.timeout_ms), Awaited::Acknowledged { response, waiting })
    }

    pub(super) fn fetch(&mut self) -> Result<Reply, MessageError> {
        let request: FetchRequest = self.decode()?;
        self.wait(Millis::from(request.max_wait_ms), Awaited::Records(request))
    }

    fn wait(&self, patience: Millis, awaited: Awaited) -> Result<Reply, MessageError> {
        let (version, correlation) = (self.raw.version, self.raw.correlation);
        let mut pending = Pending { me: self.me, version, correlation, patience: patience.max(0), awaited };
        let at_once = pending.try_answer(self.cluster, pending.patience == 0);
        Ok(at_once.unwrap_or_else(|| Reply::Later(Box::new(pending))))
    }

    pub(super) fn delete_records(&mut self, request: DeleteRecordsRequest) -> DeleteRecordsResponse {
        let topics = request.topics.iter().map(|wanted| {
            let partitions = wanted.partitions.iter().map(|it| {
                let tp = partition(&wanted.name, it.partition_index);
                let known = self.cluster.knows_it_leads(self.me, &tp);
                let result = known.and_then(|()| self.cluster.delete_records(self.me, &tp, it.offset));
                DeleteRecordsPartitionResult::default()
                    .with_partition_index(it.partition_index)
                    .with_error_code(outcome(&result).0)
                    .with_low_watermark(result.unwrap_or(-1))
            });
            DeleteRecordsTopicResult::default().with_name(wanted.name.clone()).with_partitions(partitions.collect())
        });
        DeleteRecordsResponse::default().with_topics(topics.collect())
    }

    pub(super) fn list_offsets(&mut self, request: ListOffsetsRequest) -> ListOffsetsResponse {
        let isolation = isolation(request.isolation_level);
        let knows_epochs = self.raw.version >= 4;
        let topics = request.topics.iter().map(|wanted| {
            let partitions = wanted.partitions.iter().map(|it| {
                let tp = partition(&wanted.name, it.partition_index);
                let epoch = (it.current_leader_epoch >= 0).then_some(it.current_leader_epoch);
                let query = match it.timestamp {
                    -1 => Ok(OffsetQuery::Latest),
                    // Nothing is tiered here, so the earliest there is is the earliest here.
                    -2 | -4 => Ok(OffsetQuery::Earliest),
                    -3 => Ok(OffsetQuery::Youngest),
                    time if time >= 0 => Ok(OffsetQuery::At(time)),
                    _ => Err(Code::UnsupportedVersion.plain()),
                };
                let known = self.cluster.knows_it_leads(self.me, &tp);
                let result =
                    known.and(query).and_then(|query| self.cluster.list_offset(self.me, &tp, query, isolation, epoch));
                let code = outcome(&result).0;
                let (timestamp, offset, leader_epoch) = result.unwrap_or((-1, -1, -1));
                ListOffsetsPartitionResponse::default()
                    .with_partition_index(it.partition_index)
                    .with_error_code(code)
                    .with_timestamp(timestamp)
                    .with_offset(offset)
                    .with_leader_epoch(if knows_epochs { leader_epoch } else { -1 })
            });
            ListOffsetsTopicResponse::default().with_name(wanted.name.clone()).with_partitions(partitions.collect())
        });
        ListOffsetsResponse::default().with_topics(topics.collect())
    }
}

fn isolation(level: i8) -> Isolation {
    if level == 1 { Isolation::ReadCommitted } else { Isolation::ReadUncommitted }
}

/// What there is to read, and whether that is enough to answer now.
fn fetched(cluster: &Cluster, me: BrokerId, version: i16, request: &FetchRequest) -> (FetchResponse, bool) {
    let mut left = usize::try_from(request.max_bytes).unwrap_or(0).min(FETCHED_AT_ONCE);
    // Nobody is made to wait for more than would be sent.
    let enough = usize::try_from(request.min_bytes).unwrap_or(0).min(left);
    let mut size = 0;
    let mut failed = false;
    let mut responses = Vec::new();
    for wanted in &request.topics {
        let name = topic_of(cluster, me, version, wanted);
        let partitions = wanted.partitions.iter().map(|it| {
            let answer = PartitionData::default().with_partition_index(it.partition);
            let result = name.clone().and_then(|name| {
                let wanted = Wanted {
                    partition: partition(&name, it.partition),
                    offset: it.fetch_offset,
                    max_bytes: left.min(usize::try_from(it.partition_max_bytes).unwrap_or(0)),
                    isolation: isolation(request.isolation_level),
                    leader_epoch: (it.current_leader_epoch >= 0).then_some(it.current_leader_epoch),
                };
                let known = cluster.knows_it_leads(me, &wanted.partition);
                let fetched = known.and_then(|()| cluster.fetch(me, &wanted));
                fetched.map_err(|refusal| (refusal, Some(wanted.partition)))
            });
            match result {
                Ok(fetched) => {
                    // A first batch is sent whatever its size, so that a reader never gets stuck; later ones must fit.
                    let fits = size == 0 || fetched.records.len() <= left;
                    let records = if fits { fetched.records } else { Bytes::new() };
                    size += records.len();
                    left = left.saturating_sub(records.len());
                    let aborted = fetched.aborted.iter().map(|it| {
                        AbortedTransaction::default()
                            .with_producer_id(it.producer_id.into())
                            .with_first_offset(it.first_offset)
                    });
                    let committed_only = isolation(request.isolation_level) == Isolation::ReadCommitted;
                    answer
                        .with_high_watermark(fetched.high_watermark)
                        .with_last_stable_offset(fetched.last_stable_offset)
                        .with_log_start_offset(fetched.log_start_offset)
                        .with_aborted_transactions(committed_only.then(|| aborted.collect()))
                        .with_records(Some(records))
                }
                Err((refusal, tp)) => {
                    failed = true;
                    let answer = answer.with_error_code(refusal.code.number()).with_high_watermark(-1);
                    let answer =
                        answer.with_last_stable_offset(-1).with_log_start_offset(-1).with_records(Some(Bytes::new()));
                    let stale =
                        version >= 12 && matches!(refusal.code, Code::NotLeaderOrFollower | Code::FencedLeaderEpoch);
                    let present = tp.filter(|_| stale).and_then(|tp| cluster.registration(&tp.topic, tp.partition));
                    // Who has not heard yet that it leads does not name itself.
                    match present.filter(|present| present.leader != Some(me)) {
                        Some(present) => answer.with_current_leader(
                            LeaderIdAndEpoch::default()
                                .with_leader_id(broker(present.leader))
                                .with_leader_epoch(present.leader_epoch),
                        ),
                        None => answer,
                    }
                }
            }
        });
        let partitions = partitions.collect();
        let response =
            FetchableTopicResponse::default().with_topic(wanted.topic.clone()).with_topic_id(wanted.topic_id);
        responses.push(response.with_partitions(partitions));
    }
    let ready = failed || request.topics.is_empty() || size >= enough;
    // No session is ever given out, so every fetch is a full one.
    (FetchResponse::default().with_responses(responses), ready)
}

/// From version 13 on topics go by their ids.
fn topic_of(
    cluster: &Cluster,
    me: BrokerId,
    version: i16,
    wanted: &FetchTopic,
) -> Result<TopicName, (Refusal, Option<TopicPartition>)> {
    if version < 13 {
        return Ok(wanted.topic.clone());
    }
    let name = cluster.topic_name(topic_id(&wanted.topic_id)).filter(|name| cluster.knows_topic(me, name).is_ok());
    name.map(|name| topic(&name)).ok_or_else(|| (Code::UnknownTopicId.plain(), None))
}
