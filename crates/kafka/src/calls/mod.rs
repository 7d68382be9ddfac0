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

use std::collections::BTreeMap;

use crate::{
    error::{Error, Refusal},
    types::{Changes, TopicPartition},
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
async fn in_pieces<T, Thing: Ord>(
    things: &[T],
    at_once: usize,
    change: impl AsyncFn(&[T]) -> Result<BTreeMap<Thing, Result<(), Refusal>>, Error>,
) -> Changes<Thing> {
    let mut answers = BTreeMap::new();
    for piece in things.chunks(at_once) {
        match change(piece).await {
            Ok(some) => answers.extend(some),
            Err(error) => return Changes { answers, interrupted: Some(error) },
        }
    }
    Changes { answers, interrupted: None }
}
