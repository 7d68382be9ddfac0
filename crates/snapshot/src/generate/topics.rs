//! How many partitions each topic has, so that the replicas come to exactly the number asked for.

use super::JavaRandom;
use super::parameters::Parameters;
use crate::Error;

const FACTOR_SEED: i64 = 5_234;
const PARTITIONS_SEED: i64 = 72_033;
const ADDED_TOPIC: &str = "TopicWithOneLeaderPerBroker";
pub(super) const ADDED_FACTOR: u32 = 2;

pub(super) struct Topic {
    pub(super) name: String,
    pub(super) partitions: u32,
    pub(super) factor: u32,
}

/// The topics in the order they are drawn in.
pub(super) fn topics(parameters: &Parameters) -> Result<Vec<Topic>, Error> {
    let mut topics = single_partitions(parameters);
    let mut total = topics.iter().map(|topic| topic.factor).sum();
    draw_partitions(parameters, &mut topics, &mut total);
    fill(parameters, &mut topics, total)?;
    topics.push(Topic { name: ADDED_TOPIC.to_owned(), partitions: parameters.brokers, factor: ADDED_FACTOR });
    Ok(topics)
}

/// Every topic with one partition; its factor is the least one where more would leave too little for the others.
fn single_partitions(parameters: &Parameters) -> Vec<Topic> {
    let Parameters { min_factor, max_factor, .. } = *parameters;
    let mut spare = parameters.replicas - parameters.topics * min_factor;
    let topic = |index: u32| {
        let seed = FACTOR_SEED + i64::from(index) + parameters.seed;
        let drawn = JavaRandom::first_between(min_factor, max_factor, seed);
        let factor = if drawn - min_factor <= spare { drawn } else { min_factor };
        spare -= factor - min_factor;
        Topic { name: format!("T{index}"), partitions: 1, factor }
    };
    (0..parameters.topics).map(topic).collect()
}

/// Each topic gets as many as it draws, unless that would be more than there may be.
fn draw_partitions(parameters: &Parameters, topics: &mut [Topic], total: &mut u32) {
    const LEAST: u32 = 2;
    let most = parameters.replicas / parameters.topics;
    if most < LEAST {
        return;
    }
    for (index, topic) in topics.iter_mut().enumerate() {
        let drawn = JavaRandom::first_between(LEAST, most, PARTITIONS_SEED + index as i64 + parameters.seed);
        let more = u64::from(drawn - 1) * u64::from(topic.factor);
        if u64::from(*total) + more <= u64::from(parameters.replicas) {
            topic.partitions = drawn;
            *total += more as u32;
        }
    }
}

/// What is left goes round, one partition at a time.
fn fill(parameters: &Parameters, topics: &mut [Topic], mut total: u32) -> Result<(), Error> {
    while total < parameters.replicas {
        let before = total;
        for topic in topics.iter_mut() {
            if topic.factor <= parameters.replicas - total {
                topic.partitions += 1;
                total += topic.factor;
            }
        }
        if total == before {
            let problem = format!(
                "partitions of {} to {} replicas do not add up to {}, only to {total}",
                parameters.min_factor, parameters.max_factor, parameters.replicas
            );
            return Err(Error::Generate { problem });
        }
    }
    Ok(())
}
