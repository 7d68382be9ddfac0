//! Elections that somebody asks for.

use super::Cluster;
use super::registration::Election;
use crate::code::{Code, Refusal};
use crate::ids::TopicPartition;

/// Which leader is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElectionKind {
    /// The first replica.
    Preferred,
    /// Anybody, when there is none: data may be lost.
    Unclean,
}

impl Cluster {
    /// Elects leaders: of `among`, or of all partitions that need it.
    pub fn elect_leaders(
        &mut self,
        kind: ElectionKind,
        among: Option<&[TopicPartition]>,
    ) -> Vec<(TopicPartition, Result<(), Refusal>)> {
        match among {
            Some(among) => among.iter().map(|tp| (tp.clone(), self.elect_leader(kind, tp))).collect(),
            None => {
                let numbered = self.topics.iter().flat_map(|(name, topic)| {
                    (0..topic.partitions.len() as i32)
                        .map(|partition| TopicPartition { topic: name.clone(), partition })
                });
                let all: Vec<TopicPartition> = numbered.collect();
                let results = all.into_iter().map(|tp| {
                    let result = self.elect_leader(kind, &tp);
                    (tp, result)
                });
                // Asked for all, Kafka leaves out those that need nothing.
                let needed =
                    |result: &Result<(), Refusal>| !matches!(result, Err(why) if why.code == Code::ElectionNotNeeded);
                results.filter(|(_, result)| needed(result)).collect()
            }
        }
    }

    fn elect_leader(&mut self, kind: ElectionKind, tp: &TopicPartition) -> Result<(), Refusal> {
        let unknown = |text: String| Code::UnknownTopicOrPartition.because(text);
        let topic = self.topics.get(&tp.topic).ok_or_else(|| unknown(format!("No such topic as {}", tp.topic)))?;
        let Some(partition) = topic.partition(tp.partition) else {
            return Err(unknown(format!("No such partition as {tp}")));
        };
        let registration = &partition.registration;
        let (needless, election, unavailable) = match kind {
            ElectionKind::Preferred => (
                registration.leader == registration.replicas.first().copied(),
                Election::Preferred,
                Code::PreferredLeaderNotAvailable,
            ),
            ElectionKind::Unclean => {
                (registration.leader.is_some(), Election::Unclean, Code::EligibleLeadersNotAvailable)
            }
        };
        if needless {
            return Err(Code::ElectionNotNeeded.plain());
        }
        let wanted = registration.replicas.first().copied();
        self.alter(&tp.topic, tp.partition, |change| Some(change.election(election)));
        let leader = self.registration(&tp.topic, tp.partition).and_then(|it| it.leader);
        let done = match kind {
            ElectionKind::Preferred => leader == wanted,
            ElectionKind::Unclean => leader.is_some(),
        };
        if done { Ok(()) } else { Err(unavailable.plain()) }
    }
}
