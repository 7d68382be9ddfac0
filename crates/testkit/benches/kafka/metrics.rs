//! A metrics topic, read from its beginning to its end by one consumer: fetched over loopback, decompressed, decoded.

use std::{collections::BTreeMap, time::Instant};

use anyhow::{Context, Result, ensure};
use bytes::{BufMut, Bytes, BytesMut};
use evenkeel_kafka::{
    Client, Settings, TopicPartition,
    calls::{
        offsets::Isolation,
        topics::{Layout, NewTopic},
    },
    connect::Tcp,
    records::{Compression, Record},
    topic::{Start, TopicReader, TopicWriter, Until},
};
use evenkeel_sim::{
    BrokerId as SimulatedId, Options,
    cluster::BrokerSpec as SimulatedSpec,
    serve::{Listener as SimulatedListener, World},
};
use evenkeel_testkit::{
    measure::{Measurement, Unit},
    real_kafka::{Cluster, Listener},
};

use crate::sizes::Sizes;

const COMPRESSIONS: [Compression; 5] =
    [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];
const PARTITIONS: i32 = 8;
/// Records given to the writer at once, for each partition.
const AT_ONCE: usize = 5_000;

pub(crate) async fn measure_simulated(sizes: &Sizes) -> Result<Vec<Measurement>> {
    let specs = (0..3).map(|id| SimulatedSpec::new(id).with_dirs(["/simulated/d0"]));
    let listener = SimulatedListener::plain(World::new(evenkeel_sim::Cluster::new(Options::default(), specs)));
    for id in 0..3 {
        listener.open_tcp(SimulatedId(id), 0).await?;
    }
    measure("simulated brokers", &listener.bootstrap(), sizes).await
}

pub(crate) async fn measure_real(cluster: &Cluster, sizes: &Sizes) -> Result<Vec<Measurement>> {
    measure("real brokers", &cluster.bootstrap(Listener::Plaintext), sizes).await
}

async fn measure(whose: &str, bootstrap: &str, sizes: &Sizes) -> Result<Vec<Measurement>> {
    let client = client(bootstrap)?;
    let mut measured = Vec::new();
    for compression in COMPRESSIONS {
        let topic = format!("metrics-{compression:?}");
        fill(&client, &topic, compression, sizes.records).await.context("filling the topic")?;
        let mut best: f64 = 0.0;
        for _ in 0..sizes.readings {
            let began = Instant::now();
            let read = read(&client, &topic).await.context("reading the topic")?;
            let took = began.elapsed();
            ensure!(read == sizes.records, "{} records were written, and {read} were read", sizes.records);
            best = best.max(read as f64 / took.as_secs_f64());
        }
        let what = format!("metrics topic, {whose}, {}", format!("{compression:?}").to_lowercase());
        measured.push(Measurement::new(what, Unit::PerSecond, best));
    }
    Ok(measured)
}

/// A client at an address.
pub(crate) fn client(bootstrap: &str) -> Result<Client> {
    let addresses = bootstrap.split(',').map(str::parse).collect::<Result<Vec<_>, _>>()?;
    Ok(Client::new(std::sync::Arc::new(Tcp), Settings::new(addresses)))
}

async fn fill(client: &Client, topic: &str, compression: Compression, count: usize) -> Result<()> {
    let layout = Layout::Automatic { partitions: Some(PARTITIONS), replication_factor: Some(1) };
    let new = NewTopic { name: topic.to_owned(), layout, configs: BTreeMap::new() };
    client.create_topics(&[new], false).await.whole()?.remove(topic).context("no answer about the topic")??;
    let mut writer = TopicWriter::idempotent(client.clone(), compression).await?;
    let mut left: Vec<usize> = (0..PARTITIONS as usize).map(|n| (count + n) / PARTITIONS as usize).collect();
    while left.iter().any(|left| *left > 0) {
        let mut round = BTreeMap::new();
        for (partition, left) in (0..).zip(&mut left) {
            let some = (*left).min(AT_ONCE);
            *left -= some;
            round.insert(TopicPartition::new(topic, partition), (0..some).map(metric).collect());
        }
        writer.write(&round).await?;
    }
    Ok(())
}

async fn read(client: &Client, topic: &str) -> Result<usize> {
    let mut reader =
        TopicReader::open(client.clone(), topic, &Start::Earliest, Until::End, Isolation::Committed).await?;
    let mut count = 0;
    while let Some(records) = reader.next().await? {
        count += records.len();
    }
    Ok(count)
}

/// A metric of a partition, as long as Cruise Control's reporter makes it: class, version, type, time, broker, topic,
/// partition and value.
fn metric(n: usize) -> Record {
    let topic = format!("some-topic-with-a-name-{}", n % 100);
    let timestamp = 1_700_000_000_000 + n as i64;
    let mut value = BytesMut::with_capacity(64);
    value.put_slice(&[2, 0, 4]);
    value.put_i64(timestamp);
    value.put_i32((n % 30) as i32);
    value.put_i32(topic.len() as i32);
    value.put_slice(topic.as_bytes());
    value.put_i32((n % 10) as i32);
    value.put_f64(n as f64 * 1.7);
    Record { key: Some(Bytes::from(topic)), value: Some(value.freeze()), headers: Vec::new(), timestamp }
}
