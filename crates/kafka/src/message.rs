//! Whole messages: a header and a body, from and to the bytes of one frame.
//!
//! This is the only door to the codec for bytes that came from a network, and [`guard`] stands in
//! it. Both sides are here: what a client sends and reads, what a broker reads and answers.

use bytes::{Buf, Bytes, BytesMut};
use kafka_protocol::{
    messages::{ApiKey, RequestHeader, ResponseHeader},
    protocol::{Decodable, Encodable, HeaderVersion, Request, StrBytes},
};

use crate::{
    frame::{self, FrameError},
    guard::{self, Hostile, Limits},
};

/// Why bytes are no message, or a message no bytes.
#[derive(Debug, thiserror::Error)]
pub enum MessageError {
    /// The header is cut off or malformed.
    #[error("the header of the message cannot be read")]
    Header,
    /// The guard refused the body.
    #[error("the message is not well formed")]
    Refused(#[from] Hostile),
    /// The codec refused the body.
    #[error("the message cannot be decoded")]
    Decode(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// What was to be sent does not fit the version.
    #[error("the message cannot be encoded in version {version}")]
    Encode {
        /// The version that was asked for.
        version: i16,
        /// What the codec says.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// What was to be sent is too long for any frame.
    #[error("the message is too long")]
    TooLong(#[source] FrameError),
}

/// A request as a broker first sees it: the header read, the body not yet.
#[derive(Debug, Clone)]
pub struct RawRequest {
    /// The API key, whether we know it or not.
    pub key: i16,
    /// The version, whether we know it or not.
    pub version: i16,
    /// What the answer must repeat.
    pub correlation: i32,
    /// What the client calls itself.
    pub client_id: Option<String>,
    /// The bytes behind the header. Decode them with [`RawRequest::decode`] only.
    pub body: Bytes,
}

impl RawRequest {
    /// Reads the header of a request.
    pub fn parse(mut frame: Bytes) -> Result<Self, MessageError> {
        let short = |_| MessageError::Header;
        let key = frame.try_get_i16().map_err(short)?;
        let version = frame.try_get_i16().map_err(short)?;
        let correlation = frame.try_get_i32().map_err(short)?;
        let client_id = match frame.try_get_i16().map_err(short)? {
            -1 => None,
            length => {
                let length = usize::try_from(length).map_err(|_| MessageError::Header)?;
                if length > frame.len() {
                    return Err(MessageError::Header);
                }
                let name = frame.split_to(length);
                Some(str::from_utf8(&name).map_err(|_| MessageError::Header)?.to_owned())
            }
        };
        // An unknown key is answered from the correlation alone, so how its header ends is no matter.
        if ApiKey::try_from(key).is_ok_and(|key| key.request_header_version(version) >= 2) {
            let skipped = guard::skip_tags(&frame)?;
            frame.advance(skipped);
        }
        Ok(Self { key, version, correlation, client_id, body: frame })
    }

    /// Decodes the body, if the guard lets it through.
    pub fn decode<Q: Request>(&self, limits: Limits) -> Result<Q, MessageError> {
        guard::check_request(self.key, self.version, &self.body, limits)?;
        decode(self.body.clone(), codec_version::<Q>(self.version))
    }
}

/// A request as a frame, ready for the stream.
pub fn encode_request<Q: Request>(
    request: &Q,
    version: i16,
    correlation: i32,
    client_id: &str,
) -> Result<Bytes, MessageError> {
    let header = RequestHeader::default()
        .with_request_api_key(Q::KEY)
        .with_request_api_version(version)
        .with_correlation_id(correlation)
        .with_client_id(Some(StrBytes::from_string(client_id.to_owned())));
    let body_version = codec_version::<Q>(version);
    encode(&header, Q::header_version(body_version), request, body_version)
}

/// An answer as a frame, ready for the stream.
pub fn encode_response<P: Encodable + HeaderVersion>(
    response: &P,
    version: i16,
    correlation: i32,
) -> Result<Bytes, MessageError> {
    let header = ResponseHeader::default().with_correlation_id(correlation);
    encode(&header, P::header_version(version), response, version)
}

/// Which request a frame answers.
pub fn correlation_of(frame: &[u8]) -> Result<i32, MessageError> {
    frame.first_chunk().map(|bytes| i32::from_be_bytes(*bytes)).ok_or(MessageError::Header)
}

/// The body of an answer to `Q` in `version`, walked by the guard and not yet decoded.
pub fn response_body<Q: Request>(mut frame: Bytes, version: i16, limits: Limits) -> Result<Bytes, MessageError> {
    correlation_of(&frame)?;
    frame.advance(size_of::<i32>());
    if Q::Response::header_version(version) >= 1 {
        let skipped = guard::skip_tags(&frame)?;
        frame.advance(skipped);
    }
    guard::check_response(Q::KEY, version, &frame, limits)?;
    Ok(frame)
}

/// The answer to `Q` in `version`, without its header.
pub fn decode_response<Q: Request>(frame: Bytes, version: i16, limits: Limits) -> Result<Q::Response, MessageError> {
    decode(response_body::<Q>(frame, version, limits)?, version)
}

/// Requests whose newest version looks like the one before it are encoded as that: the codec does
/// not know the newest DescribeLogDirs, whose request did not change.
fn codec_version<Q: Request>(version: i16) -> i16 {
    if Q::KEY == ApiKey::DescribeLogDirs as i16 { version.min(Q::VERSIONS.max) } else { version }
}

fn encode(
    header: &impl Encodable,
    header_version: i16,
    body: &impl Encodable,
    version: i16,
) -> Result<Bytes, MessageError> {
    let mut bytes: BytesMut = frame::begin();
    header
        .encode(&mut bytes, header_version)
        .and_then(|()| body.encode(&mut bytes, version))
        .map_err(|source| MessageError::Encode { version, source: source.into() })?;
    frame::finish(bytes).map_err(MessageError::TooLong)
}

pub(crate) fn decode<T: Decodable>(mut body: Bytes, version: i16) -> Result<T, MessageError> {
    T::decode(&mut body, version).map_err(|source| MessageError::Decode(source.into()))
}

#[cfg(test)]
mod tests {
    use kafka_protocol::messages::{ApiVersionsRequest, MetadataRequest, MetadataResponse};
    use proptest::prelude::*;

    use super::*;

    fn message(frame: Bytes) -> Bytes {
        frame.slice(4..)
    }

    #[test]
    fn a_request_arrives_as_it_was_sent() {
        for version in 0..=13 {
            let sent = MetadataRequest::default().with_topics(Some(vec![]));
            let raw = RawRequest::parse(message(encode_request(&sent, version, 7, "me").unwrap())).unwrap();
            assert_eq!((raw.key, raw.version, raw.correlation), (3, version, 7));
            assert_eq!(raw.client_id.as_deref(), Some("me"));
            assert_eq!(raw.decode::<MetadataRequest>(Limits::STRANGER).unwrap(), sent);
        }
    }

    #[test]
    fn an_answer_arrives_as_it_was_sent() {
        for version in 0..=13 {
            let sent = MetadataResponse::default();
            let frame = message(encode_response(&sent, version, 9).unwrap());
            assert_eq!(correlation_of(&frame).unwrap(), 9);
            assert_eq!(decode_response::<MetadataRequest>(frame, version, Limits::KNOWN_PEER).unwrap(), sent);
        }
    }

    #[test]
    fn a_version_from_the_future_still_has_a_correlation() {
        let mut frame = BytesMut::from(&encode_request(&ApiVersionsRequest::default(), 3, 5, "x").unwrap()[4..]);
        frame[3] = 99;
        let raw = RawRequest::parse(frame.freeze()).unwrap();
        assert_eq!((raw.version, raw.correlation), (99, 5));
        let refused = raw.decode::<ApiVersionsRequest>(Limits::STRANGER).unwrap_err();
        assert!(matches!(refused, MessageError::Refused(Hostile::UnknownVersion { version: 99, .. })), "{refused}");
    }

    proptest! {
        #[test]
        fn hostile_headers_end_in_a_request_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(raw) = RawRequest::parse(Bytes::from(bytes)) {
                let _ = raw.decode::<MetadataRequest>(Limits::STRANGER);
            }
        }

        #[test]
        fn hostile_answers_end_in_an_answer_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..64), version in -1_i16..15) {
            let _ = decode_response::<MetadataRequest>(Bytes::from(bytes), version, Limits::KNOWN_PEER);
        }
    }
}
