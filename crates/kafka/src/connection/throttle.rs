//! How long a broker will not listen to us, by its own word: every answer says so, most of them first of all.

use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::{
    messages::{ApiKey, ProduceResponse},
    protocol::{Decodable, Request},
};

/// No broker is waited for longer, whatever it says: a bandwidth quota that was passed tenfold asks for two minutes.
const LONGEST: Duration = Duration::from_secs(120);

/// The throttle time in an answer to `Q` whose body the guard has walked; none where it has no such field.
pub(super) fn of<Q: Request>(version: i16, body: &Bytes) -> Duration {
    let millis = match ApiKey::try_from(Q::KEY) {
        // A greeting has it last and a login has none; neither is throttled before anybody is known.
        // What is told of the controllers has none either.
        Err(())
        | Ok(ApiKey::ApiVersions | ApiKey::SaslHandshake | ApiKey::SaslAuthenticate | ApiKey::DescribeQuorum) => None,
        Ok(ApiKey::Produce) => {
            ProduceResponse::decode(&mut body.clone(), version).ok().map(|answer| answer.throttle_time_ms)
        }
        // The versions this client speaks have it first.
        Ok(_) => body.first_chunk().map(|bytes| i32::from_be_bytes(*bytes)),
    };
    Duration::from_millis(millis.and_then(|millis| u64::try_from(millis).ok()).unwrap_or(0)).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use kafka_protocol::{
        messages::{
            AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, AlterPartitionReassignmentsRequest,
            AlterPartitionReassignmentsResponse, AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse,
            CreatePartitionsRequest, CreatePartitionsResponse, CreateTopicsRequest, CreateTopicsResponse,
            DeleteTopicsRequest, DeleteTopicsResponse, DescribeClusterRequest, DescribeClusterResponse,
            DescribeConfigsRequest, DescribeConfigsResponse, DescribeLogDirsRequest, DescribeLogDirsResponse,
            DescribeQuorumRequest, DescribeQuorumResponse, DescribeTopicPartitionsRequest,
            DescribeTopicPartitionsResponse, ElectLeadersRequest, ElectLeadersResponse, EndTxnRequest, EndTxnResponse,
            FetchRequest, FetchResponse, FindCoordinatorRequest, FindCoordinatorResponse,
            IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse, InitProducerIdRequest,
            InitProducerIdResponse, ListOffsetsRequest, ListOffsetsResponse, ListPartitionReassignmentsRequest,
            ListPartitionReassignmentsResponse, MetadataRequest, MetadataResponse, ProduceRequest,
            UnregisterBrokerRequest, UnregisterBrokerResponse,
        },
        protocol::Encodable,
    };

    use super::*;
    use crate::versions;

    /// In every version that the client speaks and the codec knows; returns the call.
    fn check<Q: Request>(answer: &Q::Response) -> i16 {
        let spoken = versions::of_client(ApiKey::try_from(Q::KEY).unwrap()).unwrap();
        for version in *spoken.start()..=(*spoken.end()).min(Q::VERSIONS.max) {
            let mut body = BytesMut::new();
            answer.encode(&mut body, version).unwrap();
            assert_eq!(of::<Q>(version, &body.freeze()), Duration::from_millis(1234), "{} v{version}", Q::KEY);
        }
        Q::KEY
    }

    #[test]
    fn it_is_found_in_every_answer_that_has_one() {
        macro_rules! checked {
            ($($request:ident $response:ident),* $(,)?) => {
                vec![$(check::<$request>(&$response::default().with_throttle_time_ms(1234))),*]
            };
        }
        let mut checked = checked![
            ProduceRequest ProduceResponse,
            FetchRequest FetchResponse,
            ListOffsetsRequest ListOffsetsResponse,
            MetadataRequest MetadataResponse,
            FindCoordinatorRequest FindCoordinatorResponse,
            CreateTopicsRequest CreateTopicsResponse,
            DeleteTopicsRequest DeleteTopicsResponse,
            InitProducerIdRequest InitProducerIdResponse,
            AddPartitionsToTxnRequest AddPartitionsToTxnResponse,
            EndTxnRequest EndTxnResponse,
            DescribeConfigsRequest DescribeConfigsResponse,
            AlterReplicaLogDirsRequest AlterReplicaLogDirsResponse,
            DescribeLogDirsRequest DescribeLogDirsResponse,
            CreatePartitionsRequest CreatePartitionsResponse,
            ElectLeadersRequest ElectLeadersResponse,
            IncrementalAlterConfigsRequest IncrementalAlterConfigsResponse,
            AlterPartitionReassignmentsRequest AlterPartitionReassignmentsResponse,
            ListPartitionReassignmentsRequest ListPartitionReassignmentsResponse,
            DescribeClusterRequest DescribeClusterResponse,
            UnregisterBrokerRequest UnregisterBrokerResponse,
            DescribeTopicPartitionsRequest DescribeTopicPartitionsResponse,
        ];
        let without = [ApiKey::ApiVersions, ApiKey::SaslHandshake, ApiKey::SaslAuthenticate, ApiKey::DescribeQuorum];
        checked.extend(without.map(|key| key as i16));
        let mut told = BytesMut::new();
        DescribeQuorumResponse::default().with_error_code(i16::MAX).encode(&mut told, 2).unwrap();
        assert_eq!(of::<DescribeQuorumRequest>(2, &told.freeze()), Duration::ZERO, "what is first is something else");
        checked.sort_unstable();
        let spoken: Vec<i16> = versions::CLIENT.iter().map(|(key, _)| *key as i16).collect();
        let mut sorted = spoken.clone();
        sorted.sort_unstable();
        assert_eq!(checked, sorted, "every call of the client is looked at");
    }
}
