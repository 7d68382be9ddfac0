//! The guard before the codec: nothing from the network is decoded before it was walked here.
//!
//! The codec sets memory aside for as many array elements as a message announces, so four hostile
//! bytes would end the process (an allocation of terabytes aborts; it is no error one could catch).
//! A buffer that refuses such lengths cannot be written, since it does not know which numbers are
//! lengths; so we know the shape of every message we speak, and walk it first. The tests show that
//! shapes and codec agree in every version.

pub(crate) mod shape;
#[cfg(test)]
mod tests;
mod walk;

pub use shape::Direction;

/// How much a message may make us hold, beyond its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Elements of arrays and unknown tags, all together.
    pub elements: usize,
}

impl Limits {
    /// For a peer that has proved who it is, or that we chose to talk to. The metadata of 200,000
    /// partitions with three replicas each is below one and a half million elements.
    pub const KNOWN_PEER: Self = Self { elements: 4_000_000 };
    /// For a client that has not logged in: it has little to say yet.
    pub const STRANGER: Self = Self { elements: 1_000 };
}

/// Why a message was not let through to the codec.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Hostile {
    /// We have no shape for this API key.
    #[error("API key {key} is not spoken here")]
    UnknownApi {
        /// The key asked for.
        key: i16,
    },
    /// We have no shape for this version.
    #[error("version {version} of {name} is not spoken here")]
    UnknownVersion {
        /// Kafka's name for the call.
        name: &'static str,
        /// The version asked for.
        version: i16,
    },
    /// Something longer than what is left of the message.
    #[error("{field} announces {announced} where {there} bytes are left")]
    Length {
        /// Where.
        field: &'static str,
        /// Bytes or elements announced.
        announced: usize,
        /// Bytes left.
        there: usize,
    },
    /// A length below null.
    #[error("{field} has a negative length")]
    Negative {
        /// Where.
        field: &'static str,
    },
    /// A number that does not end.
    #[error("{field} holds a number of more than 32 bits")]
    Varint {
        /// Where.
        field: &'static str,
    },
    /// A tagged field whose content is not as long as announced.
    #[error("the tagged field {field} is not as long as announced")]
    TagSize {
        /// Where.
        field: &'static str,
    },
    /// More elements than [`Limits`] allow.
    #[error("{field} brings the message over the limit of elements")]
    TooMany {
        /// Where.
        field: &'static str,
    },
    /// Bytes behind the end of the message.
    #[error("{extra} bytes behind the end of the message")]
    Trailing {
        /// How many.
        extra: usize,
    },
}

/// Whether the codec may decode this request body (the bytes behind the header).
pub fn check_request(key: i16, version: i16, body: &[u8], limits: Limits) -> Result<(), Hostile> {
    check(Direction::Request, key, version, body, limits)
}

/// Whether the codec may decode this response body (the bytes behind the header).
pub fn check_response(key: i16, version: i16, body: &[u8], limits: Limits) -> Result<(), Hostile> {
    check(Direction::Response, key, version, body, limits)
}

fn check(direction: Direction, key: i16, version: i16, body: &[u8], limits: Limits) -> Result<(), Hostile> {
    let shape = shape::of(key, direction).ok_or(Hostile::UnknownApi { key })?;
    if !shape.versions.contains(&version) {
        return Err(Hostile::UnknownVersion { name: shape.name, version });
    }
    walk::Walk::new(body, version, shape.is_flexible(version), limits).message(&shape.fields)
}

/// How long the tagged fields at the start of `bytes` are: the end of a flexible header.
pub(crate) fn skip_tags(bytes: &[u8]) -> Result<usize, Hostile> {
    walk::Walk::new(bytes, 0, true, Limits::STRANGER).header_tags()
}
