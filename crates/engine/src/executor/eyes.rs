//! Looks at the cluster for an execution: only what its next step may depend on.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_kafka::{
    BrokerId, Client, Error, ErrorCode, TopicPartition,
    calls::{
        configs::Resource,
        topics::{Topic, TopicAnswers, Which},
    },
};

use futures::future::join_all;

use crate::{
    clock::WallClock,
    watch::{MIN_IN_SYNC, assemble::minimums},
};

use super::{
    hands::ONE_BROKER,
    machine::Execution,
    order::Millis,
    sight::{DirSight, PartitionSight, Sight},
    task::Kind,
};

/// How often the whole cluster is looked through for partitions in trouble.
const LOOK_AROUND_EVERY: Millis = 5_000;
/// How often topics are asked what their minimum is.
const ASK_MINIMUM_EVERY: Millis = 300_000;

/// Looks, and remembers what need not be looked at each time.
#[derive(Debug)]
pub(crate) struct Eyes {
    client: Client,
    /// When the cluster was last looked through.
    looked_around: Option<Millis>,
    /// Partitions that fell short then, and those of them whose missing members are lost.
    short: BTreeSet<TopicPartition>,
    bereft: BTreeSet<TopicPartition>,
    /// What topics want in sync, and when they were asked.
    minimums: (Option<Millis>, BTreeMap<String, usize>),
}

impl Eyes {
    pub(crate) fn new(client: Client) -> Self {
        let (short, bereft) = (BTreeSet::new(), BTreeSet::new());
        Self { client, looked_around: None, short, bereft, minimums: (None, BTreeMap::new()) }
    }

    /// What is to be seen now.
    pub(crate) async fn look(&mut self, execution: &Execution, clock: &WallClock) -> Result<Sight, Error> {
        let cluster = self.client.describe_cluster().await?;
        // An answer may have taken long, and says how it is now.
        let now = clock.now();
        let up = cluster.brokers.iter().filter(|broker| !broker.fenced).map(|broker| broker.id).collect();
        let mut sight = Sight {
            now,
            up,
            registered: cluster.brokers.iter().map(|broker| broker.id).collect(),
            names_all: cluster.names_fenced,
            ..Sight::default()
        };
        // The listing first: what has ended between the two looks is then still taken to be under way.
        let listed = self.client.list_reassignments(None).await?;
        sight.under_way = listed.into_iter().map(|(partition, mv)| (partition, mv.replicas)).collect();
        let open: BTreeSet<&TopicPartition> = execution
            .tasks()
            .iter()
            .filter(|task| !task.stage.is_over())
            .map(|task| &execution.order().moves[task.of].partition)
            .collect();
        let topics: Vec<String> =
            open.iter().map(|partition| partition.topic.to_string()).collect::<BTreeSet<_>>().into_iter().collect();
        self.look_around(now).await?;
        let found = self.client.topics(Which::Named(&topics)).await?;
        for topic in found.values().flatten() {
            sight.partitions.extend(self.partitions(topic));
        }
        sight.unknown = unknown(&open, &found);
        (sight.short, sight.bereft) = (self.short.clone(), self.bereft.clone());
        self.look_at_dirs(execution, &mut sight).await;
        Ok(sight)
    }

    fn partitions(&self, topic: &Topic) -> impl Iterator<Item = (TopicPartition, PartitionSight)> {
        let min_in_sync = self.minimums.1.get(&topic.name).copied().unwrap_or(1);
        topic.partitions.iter().map(move |partition| {
            let seen = PartitionSight {
                replicas: partition.replicas.clone(),
                in_sync: partition.in_sync.clone(),
                offline: partition.offline.clone(),
                leader: partition.leader,
                min_in_sync,
            };
            (TopicPartition::new(&topic.name, partition.index), seen)
        })
    }

    /// Looks through the whole cluster, if it is time to.
    async fn look_around(&mut self, now: Millis) -> Result<(), Error> {
        let due = |last: Option<Millis>, every| last.is_none_or(|last| now - last >= every);
        if !due(self.looked_around, LOOK_AROUND_EVERY) {
            return Ok(());
        }
        let all = self.client.topics(Which::All).await?;
        let unasked = all.keys().any(|topic| !self.minimums.1.contains_key(topic));
        if unasked || due(self.minimums.0, ASK_MINIMUM_EVERY) {
            let resources: Vec<Resource> = all.keys().cloned().map(Resource::Topic).collect();
            let told = self.client.describe_configs(&resources, Some(&[MIN_IN_SYNC])).await.whole()?;
            self.minimums.1.extend(minimums(told));
            self.minimums.0 = Some(now);
        }
        let partitions = all.values().flatten().flat_map(|topic| self.partitions(topic));
        let short: Vec<_> = partitions.filter(|(_, seen)| seen.is_short()).collect();
        self.bereft = short.iter().filter(|(_, seen)| seen.is_bereft()).map(|(name, _)| name.clone()).collect();
        self.short = short.into_iter().map(|(name, _)| name).collect();
        self.looked_around = Some(now);
        Ok(())
    }

    /// The disks of brokers that are being copied to, all at the same time. One that does not answer is seen by
    /// others to be down soon enough, and holds up nothing.
    async fn look_at_dirs(&self, execution: &Execution, sight: &mut Sight) {
        let mut wanted: BTreeMap<BrokerId, Vec<TopicPartition>> = BTreeMap::new();
        for task in execution.tasks().iter().filter(|task| task.stage.is_in_flight()) {
            let mv = &execution.order().moves[task.of];
            match task.kind {
                Kind::Replicas => {
                    mv.added().for_each(|broker| wanted.entry(broker).or_default().push(mv.partition.clone()));
                }
                Kind::Dir(index) => wanted.entry(mv.dirs[index].broker).or_default().push(mv.partition.clone()),
                Kind::Leader => {}
            }
        }
        wanted.retain(|broker, _| sight.up.contains(broker));
        let asked = wanted.iter().map(|(broker, partitions)| async move {
            let asked = self.client.describe_log_dirs(*broker, Some(partitions));
            (*broker, tokio::time::timeout(ONE_BROKER, asked).await)
        });
        for (broker, answer) in join_all(asked).await {
            let Ok(Ok(answer)) = answer else { continue };
            for (path, dir) in answer.dirs {
                for (partition, replica) in dir.into_iter().flat_map(|dir| dir.replicas) {
                    let seen: &mut DirSight = sight.dirs.entry((broker, partition)).or_default();
                    let bytes = u64::try_from(replica.bytes).unwrap_or(0);
                    if replica.future {
                        seen.future = Some((path.clone(), bytes));
                    } else {
                        (seen.dir, seen.bytes) = (path.clone(), bytes);
                    }
                }
            }
        }
    }
}

/// Those that are not there. Of a topic that was refused for another reason nothing is known.
fn unknown(open: &BTreeSet<&TopicPartition>, found: &TopicAnswers<Topic>) -> BTreeSet<TopicPartition> {
    let is_missing = |partition: &&&TopicPartition| match found.get(partition.topic.as_str()) {
        Some(Ok(topic)) => !topic.partitions.iter().any(|it| it.index == partition.partition),
        Some(Err(refusal)) => refusal.code == ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
        None => false,
    };
    open.iter().filter(is_missing).map(|partition| (*partition).clone()).collect()
}

#[cfg(test)]
mod tests {
    use evenkeel_kafka::Refusal;

    use super::*;

    #[test]
    fn only_what_is_said_not_to_be_there_is_not() {
        let topic = Topic { name: "t".to_owned(), id: 1, internal: false, partitions: Vec::new() };
        let refused = |code| Err(Refusal { code, message: None });
        let found = TopicAnswers::from([
            ("shrunk".to_owned(), Ok(topic)),
            ("deleted".to_owned(), refused(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)),
            ("late".to_owned(), refused(ErrorCode::LEADER_NOT_AVAILABLE)),
            ("forbidden".to_owned(), refused(ErrorCode(29))),
        ]);
        let open = ["shrunk", "deleted", "late", "forbidden", "unheard"].map(|topic| TopicPartition::new(topic, 0));
        let unknown = unknown(&open.iter().collect(), &found);
        assert_eq!(unknown.iter().map(|it| it.topic.as_str()).collect::<Vec<_>>(), ["deleted", "shrunk"]);
    }
}
