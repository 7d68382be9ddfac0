//! The quorum of controllers: who leads it, and how far the others have followed.

use kafka_protocol::messages::{
    DescribeQuorumRequest, DescribeQuorumResponse, describe_quorum_request, describe_quorum_response,
};

use crate::{
    client::{Call, Client, Effect, To},
    error::{Error, ErrorCode, Refusal},
    types::{BrokerId, message, topic_name},
};

/// The topic that controllers keep, which no client can read.
const METADATA_LOG: &str = "__cluster_metadata";

/// The controllers, as the one that leads sees them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quorum {
    /// Who leads.
    pub leader: Option<BrokerId>,
    /// Whose votes count, in order of their ids, the leader among them.
    pub voters: Vec<Voter>,
}

/// One of the controllers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Voter {
    /// Its number.
    pub id: BrokerId,
    /// How far its log reaches, as far as the leader knows.
    pub log_end: Option<i64>,
    /// When it last had all that the leader had, in milliseconds of the leader's clock; of the leader itself, the present moment.
    /// None: not since the leader leads, or brokers before Kafka 3.3 were asked, which do not say.
    pub caught_up_at: Option<i64>,
}

impl Client {
    /// The quorum of controllers. Any broker passes the question on; where nobody leads there is no answer.
    pub async fn describe_quorum(&self) -> Result<Quorum, Error> {
        let call = Call { operation: "describe the quorum of controllers", to: To::Any, effect: Effect::Repeatable };
        let request = |_| {
            let partition = describe_quorum_request::PartitionData::default();
            let log = describe_quorum_request::TopicData::default().with_topic_name(topic_name(METADATA_LOG));
            DescribeQuorumRequest::default().with_topics(vec![log.with_partitions(vec![partition])])
        };
        let answer = self.ask(call, request, |answer| log_of(answer).map(drop)).await?;
        let log = log_of(&answer).map_err(|refusal| Error::Refused { operation: call.operation, refusal })?;
        let known = |number: i64| (number >= 0).then_some(number);
        let mut voters: Vec<Voter> = log
            .current_voters
            .iter()
            .map(|voter| Voter {
                id: BrokerId(voter.replica_id.0),
                log_end: known(voter.log_end_offset),
                caught_up_at: known(voter.last_caught_up_timestamp),
            })
            .collect();
        voters.sort_by_key(|voter| voter.id);
        Ok(Quorum { leader: BrokerId::of(log.leader_id), voters })
    }
}

/// What is said of the one log that there is.
fn log_of(answer: &DescribeQuorumResponse) -> Result<&describe_quorum_response::PartitionData, Refusal> {
    Refusal::check(answer.error_code, message(answer.error_message.clone()))?;
    let log = answer.topics.iter().flat_map(|topic| &topic.partitions).next();
    let log = log.ok_or(Refusal { code: ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, message: None })?;
    Refusal::check(log.error_code, message(log.error_message.clone()))?;
    Ok(log)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_found_wherever_it_stands() {
        let answer = |partitions| {
            let log = describe_quorum_response::TopicData::default().with_partitions(partitions);
            DescribeQuorumResponse::default().with_topics(vec![log])
        };
        let log = describe_quorum_response::PartitionData::default;
        let code = |answer: &DescribeQuorumResponse| log_of(answer).err().map(|refusal| refusal.code.0);
        assert_eq!(code(&answer(vec![log()])), None);
        assert_eq!(code(&answer(vec![log().with_error_code(6)])), Some(6), "it leads no more");
        assert_eq!(code(&answer(vec![log()]).with_error_code(31)), Some(31));
        assert!(log_of(&answer(Vec::new())).is_err() && log_of(&DescribeQuorumResponse::default()).is_err());
    }
}
