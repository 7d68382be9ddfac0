//! Whole topics, read and written: metrics, samples, the engine's journal.

mod reader;
#[cfg(test)]
mod tests;
mod unread;
mod visible;
mod writer;

pub use reader::{Gaps, Start, TopicReader, TopicRecord, Until};
pub use writer::TopicWriter;
