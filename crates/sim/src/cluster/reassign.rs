//! Reassignments: asked for, listed, cancelled. They end in [`super::registration`].

use super::Cluster;
use super::registration::Registration;
use crate::code::{Code, Refusal};
use crate::ids::{BrokerId, TopicPartition};

/// One line of a reassignment request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reassignment {
    /// Which partition.
    pub partition: TopicPartition,
    /// Its wanted replicas in their wanted order; nothing cancels a running move.
    pub target: Option<Vec<BrokerId>>,
}

/// One running reassignment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoveView {
    /// Which partition.
    pub partition: TopicPartition,
    /// Target replicas first, then those to be removed, ascending.
    pub replicas: Vec<BrokerId>,
    /// Ascending.
    pub adding: Vec<BrokerId>,
    /// Ascending.
    pub removing: Vec<BrokerId>,
}

impl Cluster {
    /// Starts, replaces or cancels moves. A bad line does not spoil the good ones.
    pub fn alter_reassignments(
        &mut self,
        lines: &[Reassignment],
        allow_factor_change: bool,
    ) -> Vec<Result<(), Refusal>> {
        lines.iter().map(|line| self.alter_reassignment(line, allow_factor_change)).collect()
    }

    fn alter_reassignment(&mut self, line: &Reassignment, allow_factor_change: bool) -> Result<(), Refusal> {
        let (topic, number) = (&line.partition.topic, line.partition.partition);
        let registration = self.find(&line.partition)?.clone();
        let Some(target) = &line.target else {
            if !registration.is_moving() {
                return Err(Code::NoReassignmentInProgress.plain());
            }
            let unclean = self.topics.get(topic).is_some_and(|topic| topic.rules.unclean);
            if !self.alter(topic, number, |change| change.cancel(unclean)) {
                return Err(Code::InvalidReplicaAssignment.because(format!(
                    "Unable to revert partition assignment for {topic}:{number} because it would require an unclean leader election."
                )));
            }
            return Ok(());
        };
        self.check_list(target, None)?;
        if !allow_factor_change {
            // Where the partition is going, not where it came from.
            let going = registration.replicas.iter().filter(|it| !registration.removing.contains(it)).count();
            if going != target.len() {
                return Err(Code::InvalidReplicationFactor
                    .because(format!("The replication factor is changed from {going} to {}", target.len())));
            }
        }
        self.alter(topic, number, |change| Some(change.reassign(target)));
        Ok(())
    }

    /// The running moves: of `among`, or all of them. Straight from the controller.
    pub fn list_reassignments(&self, among: Option<&[TopicPartition]>) -> Vec<MoveView> {
        let show = |partition: TopicPartition, registration: &Registration| {
            registration.is_moving().then(|| MoveView {
                partition,
                replicas: registration.replicas.clone(),
                adding: registration.adding.clone(),
                removing: registration.removing.clone(),
            })
        };
        match among {
            Some(among) => among.iter().filter_map(|tp| show(tp.clone(), self.find(tp).ok()?)).collect(),
            None => {
                let numbered = self.topics.iter().flat_map(|(name, topic)| {
                    (0..).zip(&topic.partitions).map(move |(number, partition)| (name, number, partition))
                });
                numbered
                    .filter_map(|(name, partition, it)| {
                        show(TopicPartition { topic: name.clone(), partition }, &it.registration)
                    })
                    .collect()
            }
        }
    }

    /// What the controller has on record of a partition.
    pub fn registration(&self, topic: &str, partition: i32) -> Option<&Registration> {
        self.topics.get(topic)?.partition(partition).map(|it| &it.registration)
    }

    fn find(&self, tp: &TopicPartition) -> Result<&Registration, Refusal> {
        let unknown = |text: String| Code::UnknownTopicOrPartition.because(text);
        let topic =
            self.topics.get(&tp.topic).ok_or_else(|| unknown(format!("Unable to find a topic named {}.", tp.topic)))?;
        let partition = topic.partition(tp.partition);
        let partition =
            partition.ok_or_else(|| unknown(format!("Unable to find partition {}:{}.", tp.topic, tp.partition)))?;
        Ok(&partition.registration)
    }
}
