//! Version 5 of the answer to DescribeLogDirs, which tells whether a directory is cordoned. The
//! codec ends at 4; this is 4 with one more byte for each directory.

use bytes::{Buf, BufMut, Bytes};
use kafka_protocol::{
    messages::{
        DescribeLogDirsResponse, TopicName,
        describe_log_dirs_response::{DescribeLogDirsPartition, DescribeLogDirsResult, DescribeLogDirsTopic},
    },
    protocol::{Decodable, Encodable, StrBytes},
};

use crate::{
    frame,
    message::{self, MessageError},
    varint::{first_unsigned, write_unsigned},
};

/// The first version that tells of cordons, and the last that the codec knows.
pub(super) const CORDONS: i16 = 5;
const CODEC: i16 = 4;

/// Reads a body that the guard has walked, with whether each directory is cordoned (nothing before
/// version 5).
pub(super) fn decode(mut body: Bytes, version: i16) -> Result<(DescribeLogDirsResponse, Vec<bool>), MessageError> {
    if version < CORDONS {
        let answer = DescribeLogDirsResponse::decode(&mut body, version);
        return answer.map(|answer| (answer, Vec::new())).map_err(|error| MessageError::Decode(error.into()));
    }
    let mut cordoned = Vec::new();
    let mut body = Body(body);
    let mut read = || {
        let mut answer = DescribeLogDirsResponse::default();
        answer.throttle_time_ms = body.0.try_get_i32()?;
        answer.error_code = body.0.try_get_i16()?;
        answer.results = body.array(|body| {
            let mut dir = DescribeLogDirsResult::default();
            dir.error_code = body.0.try_get_i16()?;
            dir.log_dir = body.string()?;
            dir.topics = body.array(topic)?;
            dir.total_bytes = body.0.try_get_i64()?;
            dir.usable_bytes = body.0.try_get_i64()?;
            cordoned.push(body.0.try_get_u8()? != 0);
            body.skip_tags()?;
            Ok(dir)
        })?;
        Ok::<_, Wrong>(answer)
    };
    let answer = read().map_err(MessageError::Decode)?;
    Ok((answer, cordoned))
}

type Wrong = Box<dyn std::error::Error + Send + Sync>;

fn topic(body: &mut Body) -> Result<DescribeLogDirsTopic, Wrong> {
    let name = TopicName(body.string()?);
    let partitions = body.array(|body| {
        let mut partition = DescribeLogDirsPartition::default();
        partition.partition_index = body.0.try_get_i32()?;
        partition.partition_size = body.0.try_get_i64()?;
        partition.offset_lag = body.0.try_get_i64()?;
        partition.is_future_key = body.0.try_get_u8()? != 0;
        body.skip_tags()?;
        Ok(partition)
    })?;
    body.skip_tags()?;
    Ok(DescribeLogDirsTopic::default().with_name(name).with_partitions(partitions))
}

/// What is left to read, in the compact encoding.
struct Body(Bytes);

impl Body {
    fn varint(&mut self) -> Result<usize, Wrong> {
        let (number, length) = first_unsigned(&self.0)?;
        self.0.advance(length);
        Ok(number as usize)
    }

    fn take(&mut self, length: usize) -> Result<Bytes, Wrong> {
        if length > self.0.len() { Err("cut off".into()) } else { Ok(self.0.split_to(length)) }
    }

    fn string(&mut self) -> Result<StrBytes, Wrong> {
        let length = self.varint()?.checked_sub(1).ok_or("a name that is null")?;
        Ok(StrBytes::try_from(self.take(length)?)?)
    }

    fn array<T>(&mut self, mut element: impl FnMut(&mut Self) -> Result<T, Wrong>) -> Result<Vec<T>, Wrong> {
        let count = self.varint()?.saturating_sub(1);
        (0..count).map(|_| element(self)).collect()
    }

    fn skip_tags(&mut self) -> Result<(), Wrong> {
        for _ in 0..self.varint()? {
            self.varint()?;
            let length = self.varint()?;
            self.take(length)?;
        }
        Ok(())
    }
}

/// The answer of a broker in any version up to 5, as a frame; `cordoned` tells for each directory,
/// in their order.
pub fn encode_response(
    answer: &DescribeLogDirsResponse,
    cordoned: &[bool],
    version: i16,
    correlation: i32,
) -> Result<Bytes, MessageError> {
    if version < CORDONS {
        return message::encode_response(answer, version, correlation);
    }
    let mut out = frame::begin();
    out.put_i32(correlation);
    out.put_u8(0);
    out.put_i32(answer.throttle_time_ms);
    out.put_i16(answer.error_code);
    write_unsigned(&mut out, answer.results.len() as u64 + 1);
    let cordoned = cordoned.iter().copied().chain(std::iter::repeat(false));
    for (dir, cordoned) in answer.results.iter().zip(cordoned) {
        let mut plain = dir.clone();
        plain.unknown_tagged_fields.clear();
        plain.encode(&mut out, CODEC).map_err(|error| MessageError::Encode { version, source: error.into() })?;
        // Without tagged fields the last byte says that there are none; the cordon comes before it.
        out.truncate(out.len() - 1);
        out.put_u8(cordoned.into());
        out.put_u8(0);
    }
    out.put_u8(0);
    frame::finish(out).map_err(MessageError::TooLong)
}

#[cfg(test)]
mod tests {
    use kafka_protocol::messages::DescribeLogDirsRequest;
    use proptest::prelude::*;

    use super::*;
    use crate::{guard::Limits, types::text};

    fn dir() -> impl Strategy<Value = (DescribeLogDirsResult, bool)> {
        let partition = (any::<i32>(), any::<i64>(), any::<i64>(), any::<bool>());
        let topic = ("[a-z]{1,4}", prop::collection::vec(partition, 0..4));
        let topics = prop::collection::vec(topic, 0..3);
        (any::<i16>(), "/[a-z]{0,200}", topics, any::<(i64, i64)>(), any::<bool>()).prop_map(
            |(error, path, topics, (total, usable), cordoned)| {
                let topics = topics.into_iter().map(|(name, partitions)| {
                    let partitions = partitions.into_iter().map(|(index, size, lag, future)| {
                        DescribeLogDirsPartition::default()
                            .with_partition_index(index)
                            .with_partition_size(size)
                            .with_offset_lag(lag)
                            .with_is_future_key(future)
                    });
                    DescribeLogDirsTopic::default()
                        .with_name(TopicName(text(&name)))
                        .with_partitions(partitions.collect())
                });
                let dir = DescribeLogDirsResult::default()
                    .with_error_code(error)
                    .with_log_dir(text(&path))
                    .with_topics(topics.collect())
                    .with_total_bytes(total)
                    .with_usable_bytes(usable);
                (dir, cordoned)
            },
        )
    }

    proptest! {
        #[test]
        fn what_a_broker_writes_a_client_reads(dirs in prop::collection::vec(dir(), 0..4), version in 4_i16..=5) {
            let (dirs, cordoned): (Vec<_>, Vec<_>) = dirs.into_iter().unzip();
            let sent = DescribeLogDirsResponse::default().with_error_code(3).with_results(dirs);
            let frame = encode_response(&sent, &cordoned, version, 8).unwrap().slice(4..);
            prop_assert_eq!(message::correlation_of(&frame).unwrap(), 8);
            let body = message::response_body::<DescribeLogDirsRequest>(frame, version, Limits::KNOWN_PEER).unwrap();
            let (read, told) = decode(body, version).unwrap();
            prop_assert_eq!(read, sent);
            prop_assert_eq!(told, if version == 5 { cordoned } else { vec![] });
        }

        #[test]
        fn noise_ends_in_an_error(noise in prop::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(body) = message::response_body::<DescribeLogDirsRequest>(noise.into(), 5, Limits::KNOWN_PEER) {
                let _ = decode(body, 5);
            }
        }
    }
}
