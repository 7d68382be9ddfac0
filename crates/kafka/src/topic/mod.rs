//! Whole topics, read and written: metrics, samples, the engine's journal.

mod reader;
#[cfg(test)]
mod tests;
mod visible;
mod writer;

pub use reader::{Start, TopicReader, TopicRecord, Until};
pub use writer::TopicWriter;
