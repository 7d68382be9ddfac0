//! How the engine is set up: the original's files, read as the original reads them.

pub mod capacity;
pub mod properties;
