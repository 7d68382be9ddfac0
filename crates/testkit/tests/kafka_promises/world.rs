//! Brokers to talk to, names that belong to one promise, and topics whose moves stand still until they are told to go.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use evenkeel_kafka::{
    Address, BrokerId, Client, Settings, TopicPartition,
    calls::{
        configs::{Change, Resource},
        produce::Writing,
        topics::{Layout, NewTopic, Partition, Topic, Which},
    },
    connect::Stream,
    records::{self, BatchOptions, Compression, Producer, Record},
};
use evenkeel_testkit::real_kafka::Listener;
use tokio::time::{sleep, timeout};

use crate::{brokers::Brokers, simulated::Simulated};

/// How long something may take that the other side does on its own time. Generous, because the real arm shares a
/// small machine with compilers; nothing waits this long unless it fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(20);

/// Both ends of a copy, each as a broker's rate and a topic's list of replicas that it holds for.
pub(crate) const RATES: [&str; 2] = ["leader.replication.throttled.rate", "follower.replication.throttled.rate"];
pub(crate) const THROTTLED: [&str; 2] =
    ["leader.replication.throttled.replicas", "follower.replication.throttled.replicas"];
/// More than a broker lets pass before it looks at a throttle.
const STALLING_BATCHES: usize = 10;
const STALLING_BATCH: usize = 500_000;

/// A cluster, and a name of the promise's own. Every copy of a throttled topic stands still there.
pub(crate) struct World {
    pub(crate) brokers: Brokers,
    pub(crate) client: Client,
    name: String,
}

/// Simulated brokers, for one promise under paused time.
pub(crate) async fn simulated(promise: &str, brokers: u8) -> World {
    World::settled(Brokers::Simulated(Simulated::over_pipes(brokers)), promise).await
}

/// Four simulated brokers on sockets, with doors for those who are asked who they are.
pub(crate) async fn simulated_with_doors(promise: &str) -> World {
    let world = World::new(Brokers::Simulated(Simulated::with_doors(4).await), promise);
    world.brokers_know_each_other().await;
    world
}

/// Four real brokers, shared by all promises of one run.
#[cfg(feature = "real-kafka")]
pub(crate) async fn real(promise: &str) -> World {
    static READY: tokio::sync::OnceCell<()> = tokio::sync::OnceCell::const_new();
    let world = World::new(Brokers::shared().await, promise);
    READY.get_or_init(|| world.settle()).await;
    world
}

/// Real brokers for one promise.
#[cfg(feature = "real-kafka")]
pub(crate) async fn real_own(promise: &str, brokers: u8) -> World {
    World::settled(Brokers::own(brokers).await, promise).await
}

impl World {
    fn new(brokers: Brokers, promise: &str) -> Self {
        let client = Client::new(brokers.connector(), settings(brokers.bootstrap(Listener::Plaintext)));
        Self { brokers, client, name: promise.replace('_', "-") }
    }

    async fn settled(brokers: Brokers, promise: &str) -> Self {
        let world = Self::new(brokers, promise);
        world.settle().await;
        world
    }

    /// What all promises begin with: brokers that know of each other, and no way for throttled copies (one byte a
    /// second is the least that a throttle takes).
    async fn settle(&self) {
        self.brokers_know_each_other().await;
        self.throttle("1").await;
    }

    /// A broker that has just started is not known to the others at once.
    async fn brokers_know_each_other(&self) {
        let everybody = self.brokers.first_ids();
        for broker in &everybody {
            eventually("all know of all", async || {
                let cluster = self.client_of(*broker).await.describe_cluster().await.expect("an answer");
                let alive = cluster.brokers.iter().filter(|broker| !broker.fenced).map(|broker| broker.id.0);
                alive.eq(everybody.iter().copied()).then_some(())
            })
            .await;
        }
    }

    /// A name for a topic or another thing that no other promise uses.
    pub(crate) fn name(&self, thing: &str) -> String {
        format!("{}-{thing}", self.name)
    }

    /// A stream to a broker, for what no client would do.
    pub(crate) async fn open(&self, broker: i32) -> Stream {
        let address = self.brokers.address(broker).await;
        self.brokers.connector().open(&address).await.expect("a broker that listens")
    }

    /// Makes a topic with these replicas, and returns once whoever is asked knows all of it.
    pub(crate) async fn topic(&self, replicas: &[&[i32]]) -> String {
        self.topic_with("topic", replicas, &[]).await
    }

    /// A topic with data, of which no further copy gets far until [`World::release`].
    ///
    /// Throttled only once it is full: a throttle holds for every follower that is behind, if only for a moment, and
    /// then nobody could write.
    pub(crate) async fn stalled_topic(&self, replicas: &[&[i32]]) -> String {
        let name = self.topic_with("stalled", replicas, &[]).await;
        for partition in 0..replicas.len() {
            self.fill(&TopicPartition::new(&name, i32::try_from(partition).unwrap())).await;
        }
        let topic = Resource::Topic(name.clone());
        let changes = THROTTLED.map(|key| (key.to_owned(), Change::Set("*".to_owned())));
        self.configure(topic.clone(), BTreeMap::from(changes)).await;
        for broker in self.alive().await {
            eventually("every broker knows the throttle", async || {
                let client = self.client_of(broker).await;
                let [leader, follower] = THROTTLED;
                let both = [setting(&client, &topic, leader).await, setting(&client, &topic, follower).await];
                both.iter().all(|one| one.as_deref() == Some("*")).then_some(())
            })
            .await;
        }
        name
    }

    /// Writes as much as a stalled copy needs to be seen.
    pub(crate) async fn fill(&self, partition: &TopicPartition) {
        for _ in 0..STALLING_BATCHES {
            self.write(partition, &[Bytes::from(vec![b'x'; STALLING_BATCH])]).await;
        }
    }

    /// Lets the copies of a stalled topic go on.
    pub(crate) async fn release(&self, topic: &str) {
        let changes = THROTTLED.map(|key| (key.to_owned(), Change::Delete));
        self.configure(Resource::Topic(topic.to_owned()), BTreeMap::from(changes)).await;
    }

    pub(crate) async fn topic_with(&self, thing: &str, replicas: &[&[i32]], configs: &[(&str, &str)]) -> String {
        let name = self.name(thing);
        let topic = NewTopic {
            name: name.clone(),
            layout: Layout::Manual(replicas.iter().map(|replicas| ids(replicas)).collect()),
            configs: configs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        };
        let made = self.client.create_topics(&[topic], false).await.whole().expect("an answer");
        assert_eq!(made, BTreeMap::from([(name.clone(), Ok(()))]));
        eventually("all brokers know the topic", async || {
            let mut known = true;
            for broker in self.alive().await {
                let view = look(&self.client_of(broker).await, &name).await;
                known &= view.is_some_and(|topic| topic.partitions.iter().all(|one| one.in_sync == one.replicas));
            }
            known.then_some(())
        })
        .await;
        name
    }

    /// Makes changes to settings that must be accepted.
    pub(crate) async fn configure(&self, resource: Resource, changes: BTreeMap<String, Change>) {
        let wanted = BTreeMap::from([(resource, changes)]);
        let answers = self.client.alter_configs(&wanted, false).await.whole().expect("an answer");
        assert!(answers.values().all(Result::is_ok), "{answers:?}");
    }

    /// The topic as some broker sees it now.
    pub(crate) async fn look(&self, topic: &str) -> Option<Topic> {
        look(&self.client, topic).await
    }

    /// The value of a setting.
    pub(crate) async fn setting(&self, resource: &Resource, name: &str) -> Option<String> {
        setting(&self.client, resource, name).await
    }

    /// A client that knows but one broker, and so asks it first.
    pub(crate) async fn client_of(&self, broker: i32) -> Client {
        Client::new(self.brokers.connector(), settings(vec![self.brokers.address(broker).await]))
    }

    /// Waits until a partition looks as it should, whoever is asked.
    pub(crate) async fn until(
        &self,
        topic: &str,
        index: usize,
        what: &str,
        holds: impl Fn(&Partition) -> bool,
    ) -> Partition {
        eventually(what, async || self.look(topic).await?.partitions.into_iter().nth(index).filter(|one| holds(one)))
            .await
    }

    /// Writes records with these values to one partition; returns the offset of the first.
    pub(crate) async fn write(&self, partition: &TopicPartition, values: &[Bytes]) -> i64 {
        let records: Vec<_> =
            values.iter().map(|value| Record { value: Some(value.clone()), ..Record::default() }).collect();
        let batch = records::encode_batch(&records, &plain()).expect("a batch");
        let batches = BTreeMap::from([(partition.clone(), batch)]);
        let answers = self.client.produce(&batches, Writing::Plain).await.expect("an answer");
        *answers[partition].as_ref().expect("an offset")
    }

    /// Brokers that are not fenced.
    pub(crate) async fn alive(&self) -> Vec<i32> {
        let cluster = self.client.describe_cluster().await.expect("an answer");
        cluster.brokers.iter().filter(|broker| !broker.fenced).map(|broker| broker.id.0).collect()
    }

    /// From now on throttled copies get so many bytes a second, in and out of each broker.
    pub(crate) async fn throttle(&self, rate: &str) {
        for broker in self.alive().await {
            let resource = Resource::Broker(BrokerId(broker));
            let changes = RATES.map(|key| (key.to_owned(), Change::Set(rate.to_owned())));
            self.configure(resource.clone(), BTreeMap::from(changes)).await;
            for key in RATES {
                eventually("the rate is set", async || {
                    (self.setting(&resource, key).await.as_deref() == Some(rate)).then_some(())
                })
                .await;
            }
        }
    }
}

fn settings(bootstrap: Vec<Address>) -> Settings {
    Settings { patience: PATIENCE, ..Settings::new(bootstrap) }
}

async fn look(client: &Client, topic: &str) -> Option<Topic> {
    let names = [topic.to_owned()];
    let mut topics = client.topics(Which::Named(&names)).await.expect("an answer");
    topics.remove(topic).expect("the topic that was asked for").ok()
}

async fn setting(client: &Client, resource: &Resource, name: &str) -> Option<String> {
    let asked = std::slice::from_ref(resource);
    let mut answers = client.describe_configs(asked, Some(&[name])).await.whole().expect("an answer");
    let settings = answers.remove(resource).expect("the resource that was asked for").expect("its settings");
    settings.get(name)?.value.clone()
}

/// Looks until there is something to see.
pub(crate) async fn eventually<T>(what: &str, look: impl AsyncFn() -> Option<T>) -> T {
    let looking = async {
        loop {
            if let Some(seen) = look().await {
                return seen;
            }
            sleep(PAUSE).await;
        }
    };
    timeout(PATIENCE, looking).await.unwrap_or_else(|_| panic!("never seen: {what}"))
}

pub(crate) fn ids(ids: &[i32]) -> Vec<BrokerId> {
    ids.iter().copied().map(BrokerId).collect()
}

/// A batch without a producer's id.
pub(crate) fn plain() -> BatchOptions {
    let nobody = Producer { id: -1, epoch: -1, sequence: -1 };
    BatchOptions { compression: Compression::None, producer: nobody, transactional: false }
}
