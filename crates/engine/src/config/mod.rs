//! How the engine is set up: the original's files, read as the original reads them.
//!
//! Unknown keys never hurt. Keys of what is not built are named in a warning; only what would be
//! unsafe to ignore keeps the engine from starting.

pub mod capacity;
pub mod connection;
pub mod detectors;
mod keys;
pub mod properties;
pub mod settings;
pub mod store;
pub mod webserver;

pub use keys::{Meaning, Remark};
