//! The brokers of a cluster as a picture: what each holds and leads, and how full it is beside the others.

use std::collections::BTreeMap;

use evenkeel_kafka::calls::topics::{Partition, Which};
use evenkeel_kafka::{BrokerId, Client, TopicPartition};

use super::show::bar;
use crate::columns::columns;

/// What is seen of a broker from outside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Broker {
    pub(crate) rack: Option<String>,
    /// Replicas that it holds, whoever leads them.
    pub(crate) replicas: usize,
    pub(crate) leaders: usize,
    pub(crate) bytes: u64,
}

/// Every broker that is up, by id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Brokers(pub(crate) BTreeMap<i32, Broker>);

impl Brokers {
    /// Asks Kafka, as any client may.
    pub(crate) async fn look(kafka: &Client) -> Result<Self, evenkeel_kafka::Error> {
        let cluster = kafka.describe_cluster().await?;
        let mut brokers = BTreeMap::new();
        for seen in cluster.brokers.iter().filter(|broker| !broker.fenced) {
            let dirs = kafka.describe_log_dirs(seen.id, None).await?.dirs;
            let replicas = dirs.values().flatten().flat_map(|dir| dir.replicas.values());
            let bytes = replicas.filter_map(|replica| u64::try_from(replica.bytes).ok()).sum();
            brokers.insert(seen.id.0, Broker { rack: seen.rack.clone(), bytes, ..Broker::default() });
        }
        for topic in kafka.topics(Which::All).await?.values().flatten() {
            for partition in &topic.partitions {
                for replica in &partition.replicas {
                    count(&mut brokers, *replica, |it| it.replicas += 1);
                }
                if let Some(leader) = partition.leader {
                    count(&mut brokers, leader, |it| it.leaders += 1);
                }
            }
        }
        Ok(Self(brokers))
    }

    /// How many bytes the fullest has more than the emptiest.
    pub(crate) fn spread(&self) -> u64 {
        let bytes = || self.0.values().map(|it| it.bytes);
        bytes().max().unwrap_or(0) - bytes().min().unwrap_or(0)
    }

    /// The picture.
    pub(crate) fn table(&self) -> String {
        let most = self.0.values().map(|it| it.bytes).max().unwrap_or(0).max(1);
        let head = ["BROKER", "ZONE", "REPLICAS", "LEADERS", "DATA", ""].map(str::to_owned).to_vec();
        let rows = self.0.iter().map(|(id, it)| {
            let share = u8::try_from(it.bytes.saturating_mul(100) / most).unwrap_or(100);
            let zone = it.rack.clone().unwrap_or_else(|| "–".to_owned());
            let mb = it.bytes / (1024 * 1024);
            vec![id.to_string(), zone, it.replicas.to_string(), it.leaders.to_string(), format!("{mb} MB"), bar(share)]
        });
        columns(&std::iter::once(head).chain(rows).collect::<Vec<_>>())
    }
}

/// Where every partition is, and who has all of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Placement(BTreeMap<TopicPartition, Partition>);

impl Placement {
    /// Asks Kafka.
    pub(crate) async fn look(kafka: &Client) -> Result<Self, evenkeel_kafka::Error> {
        let mut all = BTreeMap::new();
        for topic in kafka.topics(Which::All).await?.into_values().flatten() {
            for partition in topic.partitions {
                all.insert(TopicPartition::new(topic.name.clone(), partition.index), partition);
            }
        }
        Ok(Self(all))
    }

    /// How many partitions of this topic there are.
    pub(crate) fn of_topic(&self, name: &str) -> usize {
        self.0.keys().filter(|it| it.topic == name).count()
    }

    /// How many partitions of this topic have a replica on this broker.
    pub(crate) fn of_topic_on(&self, name: &str, broker: i32) -> usize {
        let of_topic = self.0.iter().filter(|(it, _)| it.topic == name);
        of_topic.filter(|(_, it)| it.replicas.contains(&BrokerId(broker))).count()
    }

    /// How many partitions have a replica that does not have all of it.
    pub(crate) fn short(&self) -> usize {
        let is_short = |it: &&Partition| it.leader.is_none() || it.in_sync.len() < it.replicas.len();
        self.0.values().filter(is_short).count()
    }

    /// How many of the partitions that were there before are held by others now.
    pub(crate) fn moved_since(&self, before: &Self) -> usize {
        let moved = before.0.iter().filter(|(name, was)| self.0.get(name).is_none_or(|it| it.replicas != was.replicas));
        moved.count()
    }

    /// How many replicas are on these brokers.
    pub(crate) fn held_by(&self, brokers: &[i32]) -> usize {
        self.0.values().flat_map(|it| &it.replicas).filter(|it| brokers.contains(&it.0)).count()
    }
}

fn count(brokers: &mut BTreeMap<i32, Broker>, of: BrokerId, change: impl FnOnce(&mut Broker)) {
    if let Some(broker) = brokers.get_mut(&of.0) {
        change(broker);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_moved_and_what_is_short_is_counted() {
        let partition = |index, replicas: &[i32], in_sync: &[i32]| {
            let ids = |all: &[i32]| all.iter().copied().map(BrokerId).collect::<Vec<_>>();
            let of = Partition {
                index,
                leader: ids(in_sync).first().copied(),
                leader_epoch: 0,
                replicas: ids(replicas),
                in_sync: ids(in_sync),
                offline: Vec::new(),
            };
            (TopicPartition::new("tides", index), of)
        };
        let before = Placement(BTreeMap::from([partition(0, &[0, 1], &[0, 1]), partition(1, &[1, 2], &[1])]));
        let after = Placement(BTreeMap::from([partition(0, &[0, 3], &[0, 3]), partition(2, &[3, 4], &[])]));
        assert_eq!((before.short(), after.short()), (1, 1));
        assert_eq!((before.moved_since(&before), after.moved_since(&before)), (0, 2), "one moved, one is gone");
        assert_eq!((after.held_by(&[3, 4]), after.held_by(&[1])), (3, 0));
        assert_eq!((after.of_topic("tides"), after.of_topic("cargo")), (2, 0));
        assert_eq!((after.of_topic_on("tides", 3), after.of_topic_on("cargo", 3)), (2, 0));
    }

    #[test]
    fn the_fullest_broker_has_the_longest_bar() {
        let broker = |rack: Option<&str>, mb: u64| Broker {
            rack: rack.map(str::to_owned),
            replicas: 10,
            leaders: 4,
            bytes: mb * 1024 * 1024,
        };
        let brokers = Brokers(BTreeMap::from([(0, broker(Some("zone-0"), 200)), (11, broker(None, 50))]));
        let table = brokers.table();
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines[0], "BROKER  ZONE    REPLICAS  LEADERS  DATA");
        assert!(lines[1].starts_with("0       zone-0  10        4        200 MB"), "{table}");
        assert!(lines[1].ends_with(&bar(100)), "{table}");
        assert!(lines[2].ends_with(&bar(25)), "{table}");
        assert_eq!((brokers.spread(), Brokers::default().spread()), (150 * 1024 * 1024, 0));
        assert_eq!(Brokers::default().table(), "BROKER  ZONE  REPLICAS  LEADERS  DATA\n");
    }
}
