//! A scripted peer on a pipe in memory: the wire, played by the test.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use kafka_protocol::{
    messages::{
        self, ApiKey, ApiVersionsResponse, MetadataResponse, TopicName,
        api_versions_response::ApiVersion,
        metadata_response::{MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic},
    },
    protocol::{Encodable, HeaderVersion},
};
use tokio::io::AsyncWriteExt;

use crate::{
    Address, Client, Settings,
    connect::Memory,
    frame::FrameReader,
    message::{RawRequest, encode_response},
    types::text,
    versions,
};

/// What the peer does about a request.
pub(crate) enum Reply {
    Answer(Bytes),
    Silence,
    Hangup,
}

/// An answer to `request`.
pub(crate) fn answer<P: Encodable + HeaderVersion>(request: &RawRequest, response: P) -> Reply {
    Reply::Answer(encode_response(&response, request.version, request.correlation).unwrap())
}

pub(crate) fn address(port: u16) -> Address {
    Address { host: "peer".to_owned(), port }
}

pub(crate) fn key(request: &RawRequest) -> ApiKey {
    ApiKey::try_from(request.key).unwrap()
}

/// Plays a broker at `port`. ApiVersions is answered for it, by all that the guard knows.
pub(crate) fn play(memory: &Memory, port: u16, script: impl FnMut(&RawRequest) -> Reply + Send + 'static) {
    let script = Arc::new(Mutex::new(script));
    let mut listener = memory.listen(address(port));
    tokio::spawn(async move {
        while let Some(stream) = listener.accept().await {
            let script = Arc::clone(&script);
            tokio::spawn(async move {
                let (reading, mut writing) = tokio::io::split(stream);
                let mut frames = FrameReader::new(reading);
                while let Ok(Some(frame)) = frames.next().await {
                    let request = RawRequest::parse(frame).unwrap();
                    let reply = match key(&request) {
                        ApiKey::ApiVersions => answer(&request, all_versions()),
                        _ => script.lock().unwrap()(&request),
                    };
                    match reply {
                        Reply::Answer(frame) => writing.write_all(&frame).await.unwrap(),
                        Reply::Silence => {}
                        Reply::Hangup => return,
                    }
                }
            });
        }
    });
}

pub(crate) fn all_versions() -> ApiVersionsResponse {
    let spoken = versions::served().map(|(key, versions)| {
        ApiVersion::default()
            .with_api_key(key as i16)
            .with_min_version(*versions.start())
            .with_max_version(*versions.end())
    });
    ApiVersionsResponse::default().with_api_keys(spoken.collect())
}

/// A client whose bootstrap is the peer at `port`.
pub(crate) fn client(memory: &Memory, port: u16) -> Client {
    Client::new(Arc::new(memory.clone()), Settings { seed: 7, ..Settings::new(vec![address(port)]) })
}

/// Brokers `(id, port)`, the controller, and topics with the leader of each partition.
pub(crate) fn metadata(brokers: &[(i32, u16)], controller: i32, topics: &[(&str, &[i32])]) -> MetadataResponse {
    let brokers = brokers.iter().map(|(id, port)| {
        MetadataResponseBroker::default()
            .with_node_id(messages::BrokerId(*id))
            .with_host(text("peer"))
            .with_port(i32::from(*port))
    });
    let topics = topics.iter().map(|(name, leaders)| {
        let partitions = (0..).zip(*leaders).map(|(index, leader)| {
            MetadataResponsePartition::default()
                .with_partition_index(index)
                .with_leader_id(messages::BrokerId(*leader))
                .with_replica_nodes(vec![messages::BrokerId(*leader)])
        });
        MetadataResponseTopic::default().with_name(Some(TopicName(text(name)))).with_partitions(partitions.collect())
    });
    MetadataResponse::default()
        .with_brokers(brokers.collect())
        .with_controller_id(messages::BrokerId(controller))
        .with_topics(topics.collect())
}
