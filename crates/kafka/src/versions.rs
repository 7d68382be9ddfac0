//! Which versions of which calls are spoken: what the client asks for, what a broker of ours serves.
//!
//! The client's ranges are those that were tried; newest is not best. They end early where a later
//! version changes what a call means: topics by id instead of by name in Produce and Fetch,
//! transactions without AddPartitionsToTxn, calls between brokers.

use std::ops::RangeInclusive;

use kafka_protocol::messages::ApiKey;

use crate::guard::{Direction, shape};

/// Versions of one call, both ends included.
pub type Versions = RangeInclusive<i16>;

/// What the client speaks.
pub const CLIENT: [(ApiKey, Versions); 25] = [
    (ApiKey::Produce, 3..=11),
    (ApiKey::Fetch, 4..=12),
    (ApiKey::ListOffsets, 2..=8),
    (ApiKey::Metadata, 4..=13),
    (ApiKey::FindCoordinator, 1..=6),
    (ApiKey::SaslHandshake, 1..=1),
    (ApiKey::ApiVersions, 0..=4),
    (ApiKey::CreateTopics, 2..=7),
    (ApiKey::DeleteTopics, 1..=5),
    (ApiKey::InitProducerId, 0..=5),
    (ApiKey::AddPartitionsToTxn, 0..=3),
    (ApiKey::EndTxn, 0..=4),
    (ApiKey::DescribeConfigs, 1..=4),
    (ApiKey::AlterReplicaLogDirs, 1..=2),
    (ApiKey::DescribeLogDirs, 1..=5),
    (ApiKey::SaslAuthenticate, 0..=2),
    (ApiKey::CreatePartitions, 0..=3),
    (ApiKey::ElectLeaders, 1..=2),
    (ApiKey::IncrementalAlterConfigs, 0..=1),
    (ApiKey::AlterPartitionReassignments, 0..=1),
    (ApiKey::ListPartitionReassignments, 0..=0),
    (ApiKey::DescribeQuorum, 0..=2),
    (ApiKey::DescribeCluster, 0..=2),
    (ApiKey::UnregisterBroker, 0..=0),
    (ApiKey::DescribeTopicPartitions, 0..=0),
];

/// What the client speaks of one call; `None` if it never makes it.
pub fn of_client(key: ApiKey) -> Option<Versions> {
    CLIENT.into_iter().find(|(spoken, _)| *spoken == key).map(|(_, versions)| versions)
}

/// The newest version that both sides speak.
pub fn common(ours: &Versions, theirs: &Versions) -> Option<i16> {
    let newest = *ours.end().min(theirs.end());
    (newest >= *ours.start() && newest >= *theirs.start()).then_some(newest)
}

/// What a broker of ours may announce, of the calls it answers: every version whose request and
/// response the guard knows.
pub fn served() -> impl Iterator<Item = (ApiKey, Versions)> {
    shape::all().filter(|(_, direction, _)| *direction == Direction::Request).filter_map(|(key, _, request)| {
        let response = shape::of(key, Direction::Response)?;
        let oldest = *request.versions.start().max(response.versions.start());
        let newest = *request.versions.end().min(response.versions.end());
        Some((ApiKey::try_from(key).ok()?, oldest..=newest))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn the_client_speaks_only_what_the_guard_knows() {
        let served: BTreeMap<i16, Versions> = served().map(|(key, versions)| (key as i16, versions)).collect();
        for (key, versions) in CLIENT {
            let known = &served[&(key as i16)];
            assert!(known.contains(versions.start()) && known.contains(versions.end()), "{key:?}");
        }
    }

    #[test]
    fn only_log_dirs_are_spoken_beyond_the_codec() {
        for (key, versions) in served() {
            let codec = key.valid_versions();
            let beyond = *versions.end() > codec.max || *versions.start() < codec.min;
            assert_eq!(beyond, key == ApiKey::DescribeLogDirs, "{key:?} {versions:?} {codec}");
        }
    }

    #[test]
    fn the_newest_common_version_is_taken_or_none() {
        assert_eq!(common(&(3..=9), &(0..=7)), Some(7));
        assert_eq!(common(&(3..=9), &(4..=12)), Some(9));
        assert_eq!(common(&(3..=9), &(0..=2)), None);
        assert_eq!(common(&(3..=9), &(10..=12)), None);
    }
}
