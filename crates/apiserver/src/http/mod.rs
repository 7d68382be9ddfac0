//! HTTP around the API: routes, negotiation, streams.

pub mod protobuf;
pub mod table;
