//! Calls that go to the leaders of partitions: grouped by broker, in pieces, and once more for the
//! partitions whose leader turned out to be another.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use futures::{StreamExt, stream};
use kafka_protocol::{
    messages::{MetadataRequest, metadata_request::MetadataRequestTopic, metadata_response::MetadataResponsePartition},
    protocol::Request,
};
use tokio::time::{Instant, sleep_until};

use super::{ATTEMPTS_FOR_UNKNOWN, Call, Client, Effect, To, is_refused_undone};
use crate::{
    calls::offsets::Place,
    error::{Error, ErrorCode, Refusal, Remedy},
    types::{Answers, BrokerId, TopicPartition, topic_name},
};

/// Bytes of what goes with partitions in one request: brokers take 100 MiB by default, and a request is in memory
/// several times on its way. Topics in one question for leaders.
const BYTES_AT_ONCE: usize = 16 * 1024 * 1024;
const TOPICS_AT_ONCE: usize = 500;
/// Leaders asked at the same time.
const LEADERS_AT_ONCE: usize = 16;

impl Client {
    /// Asks each partition's leader. `request` builds a request for some of the partitions, knowing how many such requests
    /// share the memory that answers take; `split` takes an answer apart. A partition that the answer leaves out counts as timed out, and so does one of a
    /// request whose answer was lost and that may not be repeated.
    pub(crate) async fn ask_leaders<Q: Request, In: Weight, Out>(
        &self,
        operation: &'static str,
        effect: Effect,
        work: &BTreeMap<TopicPartition, In>,
        request: impl Fn(i16, &[(&TopicPartition, &In)], usize) -> Q,
        split: impl Fn(Q::Response) -> Answers<Out>,
    ) -> Result<Answers<Out>, Error> {
        let until = self.deadline();
        let mut answers: Answers<Out> = BTreeMap::new();
        // Partitions of which nothing is known but that no answer came, and why the last of them has none.
        let mut silent: BTreeSet<&TopicPartition> = BTreeSet::new();
        let mut lost = None;
        // The last word about partitions that were not asked about again since.
        let mut said: Answers<Out> = BTreeMap::new();
        let mut open: BTreeSet<&TopicPartition> = work.keys().collect();
        let mut failures = 0;
        let mut sharing = 0;
        loop {
            let Leaders { by_leader, leaderless, unasked } = self.by_leader(&open, until).await?;
            lost = unasked.or(lost);
            let pieces: Vec<_> = by_leader
                .into_iter()
                .flat_map(|(leader, partitions)| {
                    let pieces =
                        cut(partitions, self.inner.settings.partitions_at_once, |partition| work[*partition].weight());
                    pieces.into_iter().map(move |piece| (leader, piece))
                })
                .collect();
            // A later round is for what failed in this one, and gets no more for each than this one did.
            sharing = pieces.len().max(sharing);
            let (request, split) = (&request, &split);
            let asking = pieces.into_iter().map(|(leader, partitions): (BrokerId, Vec<&TopicPartition>)| async move {
                let some: Vec<_> = partitions.iter().map(|partition| (*partition, &work[*partition])).collect();
                let call = Call { operation, to: To::Broker(leader), effect };
                let answer = self.ask_once::<Q>(call, until, |version| request(version, &some, sharing)).await;
                (partitions, answer)
            });
            let asking: Vec<_> = asking.collect();
            let asked = stream::iter(asking).buffered(LEADERS_AT_ONCE).collect::<Vec<_>>().await;

            let mut failed: Answers<Out> = leaderless;
            for (partitions, answer) in asked {
                for partition in &partitions {
                    said.remove(*partition);
                }
                match answer {
                    Ok(answer) => {
                        let mut results = split(answer);
                        for partition in &partitions {
                            let silence = || Err(Refusal { code: ErrorCode::REQUEST_TIMED_OUT, message: None });
                            let result = results.remove(*partition).unwrap_or_else(silence);
                            let into = if result.is_ok() { &mut answers } else { &mut failed };
                            into.insert((*partition).clone(), result);
                        }
                    }
                    Err(error) => {
                        // What others have said or written is not to be forgotten because of it.
                        let once = effect == Effect::Once && !super::may_repeat(&error, effect, failures);
                        if once || error.remedy() == Remedy::AskUser {
                            answers.extend(partitions.iter().map(|one| ((*one).clone(), Err(no_answer(&error)))));
                            silent.extend(partitions);
                        }
                        lost = Some(error);
                    }
                }
            }

            failures += 1;
            let again = Instant::now() + self.inner.pool.pause(failures);
            let hopeless = |code: ErrorCode| match code {
                ErrorCode::UNKNOWN_TOPIC_OR_PARTITION => failures >= ATTEMPTS_FOR_UNKNOWN,
                code => !is_worth_repeating(code, effect),
            };
            for (partition, result) in failed {
                let Err(refusal) = &result else { continue };
                let last = hopeless(refusal.code) || again >= until;
                let into = if last { &mut answers } else { &mut said };
                into.insert(partition, result);
            }
            open.retain(|partition| !answers.contains_key(*partition));
            if again >= until
                && let Some(error) = &lost
            {
                // A round that had no time left to ask anybody takes nothing back of what was said before.
                for partition in std::mem::take(&mut open) {
                    let known = said.remove(partition);
                    if known.is_none() {
                        silent.insert(partition);
                    }
                    answers.insert(partition.clone(), known.unwrap_or_else(|| Err(no_answer(error))));
                }
            }
            if open.is_empty() {
                return match lost {
                    // Nothing else is known, so the cause says it best.
                    Some(error) if silent.len() == answers.len() && !silent.is_empty() => Err(error),
                    _ => Ok(answers),
                };
            }
            self.forget_leaders(open.iter().copied());
            sleep_until(again).await;
        }
    }

    async fn ask_once<Q: Request>(
        &self,
        call: Call<'_>,
        until: Instant,
        request: impl Fn(i16) -> Q,
    ) -> Result<Q::Response, Error> {
        let request = &request;
        let make = |connection: crate::connection::Connection, patience| async move {
            let version = connection.version_of::<Q>()?;
            connection.call_in(&request(version), version, patience).await
        };
        let result = self.attempt(call, until, &make, &|_| Ok(())).await;
        if result.is_err() {
            self.inner.routes.doubt(call.to);
        }
        result
    }

    /// Partitions by leader, those that have none, and why nothing is known of the others.
    async fn by_leader<'a, Out>(
        &self,
        open: &BTreeSet<&'a TopicPartition>,
        until: Instant,
    ) -> Result<Leaders<'a, Out>, Error> {
        let (refusals, unasked) = self.learn_leaders(open, until).await?;
        let mut by_leader: BTreeMap<BrokerId, Vec<&TopicPartition>> = BTreeMap::new();
        let mut leaderless: Answers<Out> = BTreeMap::new();
        {
            let known = self.inner.routes.lock();
            for partition in open {
                let code =
                    match known.leaders.get(partition.topic.as_str()).map(|topic| topic.get(&partition.partition)) {
                        Some(Some(Some(leader))) => {
                            by_leader.entry(*leader).or_default().push(partition);
                            continue;
                        }
                        Some(Some(None)) => ErrorCode::LEADER_NOT_AVAILABLE,
                        Some(None) => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                        None => match refusals.get(partition.topic.as_str()) {
                            Some(code) => *code,
                            // Nobody could be asked: that is no word about its leader.
                            None if unasked.is_some() => continue,
                            None => ErrorCode::LEADER_NOT_AVAILABLE,
                        },
                    };
                leaderless.insert((*partition).clone(), Err(Refusal { code, message: None }));
            }
        }
        Ok(Leaders { by_leader, leaderless, unasked })
    }

    /// Asks for the leaders of topics that are not known; tells what was refused, and why some could not be asked for.
    async fn learn_leaders(
        &self,
        open: &BTreeSet<&TopicPartition>,
        until: Instant,
    ) -> Result<(BTreeMap<String, ErrorCode>, Option<Error>), Error> {
        let unknown: BTreeSet<&str> = {
            let known = self.inner.routes.lock();
            let is_unknown = |partition: &&&TopicPartition| !known.leaders.contains_key(partition.topic.as_str());
            open.iter().filter(is_unknown).map(|partition| partition.topic.as_str()).collect()
        };
        let (mut refusals, mut unasked) = (BTreeMap::new(), None);
        let unknown: Vec<&str> = unknown.into_iter().collect();
        for names in unknown.chunks(TOPICS_AT_ONCE) {
            let topics =
                names.iter().map(|name| MetadataRequestTopic::default().with_name(Some(topic_name(name)))).collect();
            let request = MetadataRequest::default().with_topics(Some(topics)).with_allow_auto_topic_creation(false);
            let call = Call { operation: "find the leaders", to: To::Any, effect: Effect::Repeatable };
            let answer = match self.ask_once(call, until, |_| request.clone()).await {
                Ok(answer) => answer,
                Err(error) if error.remedy() == Remedy::AskUser => return Err(error),
                // The next round asks again, of another broker if this one is gone.
                Err(error) => {
                    unasked = Some(error);
                    continue;
                }
            };
            self.learn_brokers(&answer);
            let mut known = self.inner.routes.lock();
            for topic in answer.topics {
                let Some(name) = topic.name.map(|name| name.0.to_string()) else { continue };
                if topic.error_code != 0 {
                    refusals.insert(name, ErrorCode(topic.error_code));
                    continue;
                }
                let leader_of = |partition: &MetadataResponsePartition| BrokerId::of(partition.leader_id);
                let leaders =
                    topic.partitions.iter().map(|partition| (partition.partition_index, leader_of(partition)));
                known.leaders.insert(name, leaders.collect());
            }
        }
        Ok((refusals, unasked))
    }

    fn forget_leaders<'a>(&self, partitions: impl Iterator<Item = &'a TopicPartition>) {
        let mut known = self.inner.routes.lock();
        for partition in partitions {
            known.leaders.remove(partition.topic.as_str());
        }
        known.ask_another();
    }
}

/// Whom to ask about which partitions.
struct Leaders<'a, Out> {
    by_leader: BTreeMap<BrokerId, Vec<&'a TopicPartition>>,
    leaderless: Answers<Out>,
    /// Why nothing is known of the rest.
    unasked: Option<Error>,
}

/// How many bytes go with a partition in a request.
pub(crate) trait Weight {
    /// Its own; the partition's number and the like are not counted.
    fn weight(&self) -> usize {
        0
    }
}

/// Offsets to read from.
impl Weight for i64 {}
impl Weight for Place {}

/// Batches to write.
impl Weight for Bytes {
    fn weight(&self) -> usize {
        self.len()
    }
}

/// Cuts partitions into pieces of a request each. What is too much by itself goes alone.
fn cut<T>(partitions: Vec<T>, at_once: usize, weight: impl Fn(&T) -> usize) -> Vec<Vec<T>> {
    let mut pieces: Vec<Vec<T>> = Vec::new();
    let mut bytes = 0;
    for partition in partitions {
        let more = weight(&partition);
        match pieces.last_mut() {
            Some(piece) if piece.len() < at_once && bytes + more <= BYTES_AT_ONCE => {
                piece.push(partition);
                bytes += more;
            }
            _ => {
                pieces.push(vec![partition]);
                bytes = more;
            }
        }
    }
    pieces
}

fn is_worth_repeating(code: ErrorCode, effect: Effect) -> bool {
    match effect {
        Effect::Repeatable => code.remedy() != Remedy::AskUser,
        // Whoever says so has not written anything.
        Effect::Once => is_refused_undone(code) || matches!(code.0, 3 | 5 | 6 | 74 | 75 | 100),
    }
}

/// What is said of a partition whose leader gave no answer.
fn no_answer(error: &Error) -> Refusal {
    Refusal { code: ErrorCode::REQUEST_TIMED_OUT, message: Some(format!("no answer: {}", error_chain(error))) }
}

/// An error with its causes, in one line.
fn error_chain(error: &Error) -> String {
    let causes = std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_bounded_by_count_and_by_bytes_and_keep_the_order() {
        let lengths = |weights: &[usize]| {
            let pieces = cut(weights.to_vec(), 1000, |weight| *weight);
            assert_eq!(pieces.concat(), weights);
            pieces.iter().map(Vec::len).collect::<Vec<_>>()
        };
        assert_eq!(lengths(&[0; 2500]), [1000, 1000, 500]);
        assert_eq!(lengths(&[BYTES_AT_ONCE / 2, BYTES_AT_ONCE / 2, 1]), [2, 1]);
        assert_eq!(lengths(&[1, BYTES_AT_ONCE + 1, 1]), [1, 1, 1]);
        assert!(lengths(&[]).is_empty());
    }
}
