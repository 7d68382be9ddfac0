//! A simulated broker's side of Kafka's protocol: bytes of a request in, bytes of the answer out.
//!
//! Pure, like the heart it speaks for. What must wait (a long poll, an acknowledgement by all) comes
//! back as [`Reply::Later`]; the shell in `serve` asks again when something has happened or the time
//! is up. Like Kafka, a connection is answered one request at a time, and one that cannot be read
//! ends the connection.

mod acl_calls;
mod client_quota_calls;
mod cluster_calls;
mod convert;
mod feature_calls;
pub mod login;
mod move_calls;
mod record_calls;
mod token_calls;
mod topic_calls;
mod txn_admin_calls;
mod txn_calls;
mod user_calls;

use std::collections::BTreeMap;

use bytes::Bytes;
use evenkeel_kafka::frame::DEFAULT_CAP;
use evenkeel_kafka::guard::{Hostile, Limits};
use evenkeel_kafka::message::{MessageError, RawRequest, encode_response};
use kafka_protocol::messages::{ApiKey, SaslAuthenticateRequest, SaslHandshakeRequest};
use kafka_protocol::protocol::{Encodable, HeaderVersion, Request};

pub use record_calls::Pending;

use crate::cluster::Cluster;
use crate::ids::BrokerId;

/// Where clients of one listener find the brokers: host and port.
pub type Addresses = BTreeMap<BrokerId, (String, u16)>;

/// What becomes of a request.
#[derive(Debug)]
pub enum Reply {
    /// A frame to send.
    Answer(Bytes),
    /// A frame to send before the client is cut off: it may not go on.
    Farewell(Bytes),
    /// The answer comes later: see [`Pending`].
    Later(Box<Pending>),
    /// The client wants no answer.
    Silence,
    /// The client is cut off: it sent what no broker can answer, or the answer cannot be written.
    Close(Option<MessageError>),
}

/// Who asks whom.
struct Call<'a> {
    cluster: &'a mut Cluster,
    me: BrokerId,
    addresses: &'a Addresses,
    raw: &'a RawRequest,
}

/// The calls that are served, and their newest version where ours ends before the guard's: batched
/// AddPartitionsToTxn is between brokers, newer Produce and EndTxn belong to transactions that open
/// by themselves.
const SERVED: [(ApiKey, i16); 44] = [
    (ApiKey::Produce, 11),
    (ApiKey::Fetch, i16::MAX),
    (ApiKey::ListOffsets, 8),
    (ApiKey::Metadata, i16::MAX),
    (ApiKey::FindCoordinator, i16::MAX),
    (ApiKey::ApiVersions, i16::MAX),
    (ApiKey::CreateTopics, i16::MAX),
    (ApiKey::DeleteTopics, i16::MAX),
    (ApiKey::InitProducerId, i16::MAX),
    (ApiKey::AddPartitionsToTxn, 3),
    (ApiKey::EndTxn, 4),
    (ApiKey::DeleteRecords, i16::MAX),
    (ApiKey::DescribeConfigs, i16::MAX),
    (ApiKey::AlterConfigs, i16::MAX),
    (ApiKey::ListConfigResources, i16::MAX),
    (ApiKey::AlterReplicaLogDirs, i16::MAX),
    (ApiKey::DescribeLogDirs, i16::MAX),
    (ApiKey::CreatePartitions, i16::MAX),
    (ApiKey::ElectLeaders, i16::MAX),
    (ApiKey::IncrementalAlterConfigs, i16::MAX),
    (ApiKey::AlterPartitionReassignments, i16::MAX),
    (ApiKey::ListPartitionReassignments, i16::MAX),
    (ApiKey::DescribeCluster, i16::MAX),
    (ApiKey::UnregisterBroker, i16::MAX),
    (ApiKey::DescribeTopicPartitions, i16::MAX),
    (ApiKey::DescribeQuorum, i16::MAX),
    (ApiKey::ListTransactions, i16::MAX),
    (ApiKey::DescribeTransactions, i16::MAX),
    (ApiKey::DescribeProducers, i16::MAX),
    (ApiKey::WriteTxnMarkers, i16::MAX),
    (ApiKey::DescribeUserScramCredentials, i16::MAX),
    (ApiKey::AlterUserScramCredentials, i16::MAX),
    (ApiKey::DescribeAcls, i16::MAX),
    (ApiKey::CreateAcls, i16::MAX),
    (ApiKey::DeleteAcls, i16::MAX),
    (ApiKey::UpdateFeatures, i16::MAX),
    (ApiKey::DescribeClientQuotas, i16::MAX),
    (ApiKey::AlterClientQuotas, i16::MAX),
    (ApiKey::CreateDelegationToken, i16::MAX),
    (ApiKey::RenewDelegationToken, i16::MAX),
    (ApiKey::ExpireDelegationToken, i16::MAX),
    (ApiKey::DescribeDelegationToken, i16::MAX),
    (ApiKey::SaslHandshake, i16::MAX),
    (ApiKey::SaslAuthenticate, i16::MAX),
];

/// What a broker announces: key, oldest and newest version.
pub fn served() -> impl Iterator<Item = (ApiKey, i16, i16)> {
    evenkeel_kafka::versions::served().filter_map(|(key, versions)| {
        let (_, newest) = SERVED.iter().find(|(served, _)| *served == key)?;
        Some((key, *versions.start(), (*versions.end()).min(*newest)))
    })
}

/// What anybody may say at once. Who moves 100,000 partitions with three replicas each in one request says less.
const REQUEST: Limits = Limits { elements: 500_000 };

/// Answers one request as broker `me`.
pub fn handle(cluster: &mut Cluster, me: BrokerId, addresses: &Addresses, frame: Bytes) -> Reply {
    let reply = RawRequest::parse(frame).and_then(|raw| Call { cluster, me, addresses, raw: &raw }.dispatch());
    reply.unwrap_or_else(|error| Reply::Close(Some(error)))
}

/// Decodes a request as brokers do: what lies behind its end is not looked at. librdkafka leaves a
/// few bytes there, and nobody has ever minded.
fn decode<Q: Request>(raw: &RawRequest, limits: Limits) -> Result<Q, MessageError> {
    match raw.decode(limits) {
        Err(MessageError::Refused(Hostile::Trailing { extra })) => {
            let body = raw.body.slice(..raw.body.len().saturating_sub(extra));
            RawRequest { body, ..raw.clone() }.decode(limits)
        }
        decoded => decoded,
    }
}

impl Call<'_> {
    fn dispatch(&mut self) -> Result<Reply, MessageError> {
        let key = ApiKey::try_from(self.raw.key).ok();
        let announced = served().find(|(served, _, _)| Some(*served) == key);
        let Some((key, oldest, newest)) = announced else { return Ok(Reply::Close(None)) };
        if !(oldest..=newest).contains(&self.raw.version) {
            return if key == ApiKey::ApiVersions { self.unsupported_version() } else { Ok(Reply::Close(None)) };
        }
        match key {
            ApiKey::ApiVersions => self.api_versions(),
            ApiKey::Metadata => self.answer(Self::metadata),
            ApiKey::DescribeCluster => self.answer(Self::describe_cluster),
            ApiKey::DescribeTopicPartitions => self.answer(Self::describe_topic_partitions),
            ApiKey::DescribeQuorum => self.answer(Self::describe_quorum),
            ApiKey::UnregisterBroker => self.answer(Self::unregister_broker),
            ApiKey::FindCoordinator => self.answer(Self::find_coordinator),
            ApiKey::CreateTopics => self.answer(Self::create_topics),
            ApiKey::DeleteTopics => self.answer(Self::delete_topics),
            ApiKey::CreatePartitions => self.answer(Self::create_partitions),
            ApiKey::DescribeConfigs => self.answer(Self::describe_configs),
            ApiKey::AlterConfigs => self.answer(Self::alter_configs),
            ApiKey::ListConfigResources => self.answer(Self::list_config_resources),
            ApiKey::IncrementalAlterConfigs => self.answer(Self::incremental_alter_configs),
            ApiKey::AlterPartitionReassignments => self.answer(Self::alter_reassignments),
            ApiKey::ListPartitionReassignments => self.answer(Self::list_reassignments),
            ApiKey::ElectLeaders => self.answer(Self::elect_leaders),
            ApiKey::DescribeLogDirs => self.describe_log_dirs(),
            ApiKey::AlterReplicaLogDirs => self.answer(Self::alter_replica_log_dirs),
            ApiKey::ListOffsets => self.answer(Self::list_offsets),
            ApiKey::DeleteRecords => self.answer(Self::delete_records),
            ApiKey::InitProducerId => self.answer(Self::init_producer_id),
            ApiKey::AddPartitionsToTxn => self.answer(Self::add_partitions_to_txn),
            ApiKey::EndTxn => self.answer(Self::end_txn),
            ApiKey::ListTransactions => self.answer(Self::list_transactions),
            ApiKey::DescribeTransactions => self.answer(Self::describe_transactions),
            ApiKey::DescribeProducers => self.answer(Self::describe_producers),
            ApiKey::WriteTxnMarkers => self.answer(Self::write_txn_markers),
            ApiKey::DescribeUserScramCredentials => self.answer(Self::describe_user_scram_credentials),
            ApiKey::AlterUserScramCredentials => self.answer(Self::alter_user_scram_credentials),
            ApiKey::DescribeAcls => self.describe_acls(),
            ApiKey::CreateAcls => self.create_acls(),
            ApiKey::DeleteAcls => self.delete_acls(),
            ApiKey::UpdateFeatures => self.answer(Self::update_features),
            ApiKey::DescribeClientQuotas => self.answer(Self::describe_client_quotas),
            ApiKey::AlterClientQuotas => self.answer(Self::alter_client_quotas),
            ApiKey::CreateDelegationToken => self.answer(Self::create_delegation_token),
            ApiKey::RenewDelegationToken => self.answer(Self::renew_delegation_token),
            ApiKey::ExpireDelegationToken => self.answer(Self::expire_delegation_token),
            ApiKey::DescribeDelegationToken => self.answer(Self::describe_delegation_token),
            ApiKey::Produce => self.produce(),
            ApiKey::Fetch => self.fetch(),
            // The shell logs clients in before they get here; one that is in has no business with these.
            ApiKey::SaslHandshake => self.answer(|_, _: SaslHandshakeRequest| login::no_handshake()),
            ApiKey::SaslAuthenticate => self.answer(|_, _: SaslAuthenticateRequest| login::no_login()),
            _ => Ok(Reply::Close(None)),
        }
    }

    fn decode<Q: Request>(&self) -> Result<Q, MessageError> {
        decode(self.raw, REQUEST)
    }

    fn encode<P: Encodable + HeaderVersion>(&self, response: &P) -> Result<Reply, MessageError> {
        let frame = encode_response(response, self.raw.version, self.raw.correlation)?;
        // Nobody would read it.
        Ok(if frame.len() > DEFAULT_CAP { Reply::Close(None) } else { Reply::Answer(frame) })
    }

    fn answer<Q: Request>(&mut self, how: impl FnOnce(&mut Self, Q) -> Q::Response) -> Result<Reply, MessageError> {
        let request = self.decode()?;
        let response = how(self, request);
        self.encode(&response)
    }

    /// A broker's host and port; a broker that is not on this listener cannot be told.
    fn address(&self, id: BrokerId) -> Option<(kafka_protocol::protocol::StrBytes, i32)> {
        self.addresses.get(&id).map(|(host, port)| (convert::text(host), i32::from(*port)))
    }
}
