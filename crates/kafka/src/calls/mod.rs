//! The calls, a file for each family, with requests and answers of our own: what callers see does
//! not change with the codec.

pub mod cluster;
pub mod configs;
pub mod elections;
pub mod fetch;
pub mod log_dirs;
pub mod offsets;
pub mod produce;
pub mod reassignments;
pub mod topics;
pub mod transactions;

use crate::{
    error::Error,
    types::{Answers, Changes, TopicPartition},
};

/// Partitions asked about in one request.
const QUESTIONS_AT_ONCE: usize = 1000;

/// Questions about these partitions, in pieces of a request each; one about all of them if none are
/// named.
fn questions(partitions: Option<&[TopicPartition]>) -> Vec<Option<&[TopicPartition]>> {
    match partitions {
        Some(partitions) => partitions.chunks(QUESTIONS_AT_ONCE).map(Some).collect(),
        None => vec![None],
    }
}

/// Partitions changed by one request. More would make the controller busy for seconds.
const CHANGES_AT_ONCE: usize = 1000;

/// Makes a change piece by piece, until one is interrupted.
async fn in_pieces<T>(things: &[T], change: impl AsyncFn(&[T]) -> Result<Answers, Error>) -> Changes {
    let mut answers = Answers::new();
    for piece in things.chunks(CHANGES_AT_ONCE) {
        match change(piece).await {
            Ok(some) => answers.extend(some),
            Err(error) => return Changes { answers, interrupted: Some(error) },
        }
    }
    Changes { answers, interrupted: None }
}
