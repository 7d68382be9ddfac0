//! Kafka over the wire: the calls Evenkeel needs, as an asynchronous client over any byte stream.
//!
//! Read from the outside in: [`frame`] cuts a stream into frames, [`guard`] looks at every frame
//! before the codec may, [`message`] joins headers and bodies. The simulated brokers use these
//! three from the other side, so both ends of every test speak through the same code. Above them
//! [`connection`] makes calls to one broker, [`client`] finds the broker for a call, and [`calls`]
//! are the calls, with types of our own; [`topic`] reads and writes whole topics with them.
//!
//! Nothing here decides anything about a cluster, and nothing here trusts what it reads.

pub mod calls;
pub mod client;
pub mod connect;
pub mod connection;
pub mod error;
pub mod frame;
pub mod guard;
pub mod login;
pub mod message;
pub mod name;
pub mod records;
#[cfg(test)]
mod testing;
pub mod topic;
pub mod types;
mod varint;
pub mod versions;

pub use client::{Client, Settings};
pub use connect::Address;
pub use error::{Error, ErrorCode, Refusal, Remedy};
pub use name::TopicName;
pub use types::{BrokerId, TopicPartition};
