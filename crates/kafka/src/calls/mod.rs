//! The calls, a file for each family, with requests and answers of our own: what callers see does
//! not change with the codec.

pub mod cluster;
pub mod configs;
pub mod elections;
pub mod features;
pub mod fetch;
pub mod log_dirs;
pub mod offsets;
pub mod produce;
pub mod quorum;
pub mod reassignments;
pub mod topics;
pub mod transactions;

use std::collections::BTreeMap;

use crate::{
    error::{Error, Refusal},
    types::{Changes, TopicPartition},
};

/// Questions about these partitions, in pieces of a request each; one about all of them if none are
/// named.
fn questions(partitions: Option<&[TopicPartition]>, at_once: usize) -> Vec<Option<&[TopicPartition]>> {
    match partitions {
        Some(partitions) => partitions.chunks(at_once.max(1)).map(Some).collect(),
        None => vec![None],
    }
}

/// Makes a change piece by piece, until one is interrupted.
async fn in_pieces<T: Clone, Thing: Ord, Changing>(
    things: &[T],
    at_once: usize,
    change: impl Fn(Vec<T>) -> Changing,
) -> Changes<Thing>
where
    Changing: Future<Output = Result<BTreeMap<Thing, Result<(), Refusal>>, Error>>,
{
    let mut answers = BTreeMap::new();
    for piece in things.chunks(at_once.max(1)) {
        match change(piece.to_vec()).await {
            Ok(some) => answers.extend(some),
            Err(error) => return Changes { answers, interrupted: Some(error) },
        }
    }
    Changes { answers, interrupted: None }
}
