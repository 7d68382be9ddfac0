//! Samples of hours, in the topic where engines keep them: what an engine finds that has been there for a while.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use bytes::Bytes;
use evenkeel_engine::monitor::sample::{Metric, PartitionSample, Values};
use evenkeel_kafka::{
    TopicPartition,
    calls::topics::{Layout, NewTopic},
    records::{Compression, Record},
    topic::TopicWriter,
};

use crate::stand::{self, OF_A_TOPIC, Stand};

const TOPIC: &str = "__KafkaCruiseControlPartitionMetricSamples";
/// As many as engines give it.
const PARTITIONS: i32 = 32;
/// Samples written at once.
const AT_ONCE: usize = 20_000;

impl Stand {
    /// Writes samples of all partitions, one each `every` milliseconds of the last `span`. Tells how many.
    pub(crate) async fn remember(&self, partitions: i32, every: i64, span: i64) -> Result<usize> {
        let kafka = self.kafka()?;
        let layout = Layout::Automatic { partitions: Some(PARTITIONS), replication_factor: Some(2) };
        let configs = BTreeMap::from([("retention.ms".to_owned(), (2 * 86_400_000).to_string())]);
        let new = NewTopic { name: TOPIC.to_owned(), layout, configs };
        kafka.create_topics(&[new], false).await.whole()?.remove(TOPIC).context("no answer about the topic")??;
        let mut writer = TopicWriter::idempotent(kafka, Compression::Gzip).await?;
        let (now, usual) = (stand::now()?, self.usual(partitions));
        let mut round: BTreeMap<TopicPartition, Vec<Record>> = BTreeMap::new();
        let (mut waiting, mut written) = (0, 0);
        for (number, time) in (0..).zip((now - span..now).step_by(usize::try_from(every)?)) {
            for (at, sample) in (0..).zip(&usual) {
                let swing = 1.0 + f64::from((at * 31 + number * 17) % 101) / 1_000.0;
                let values = Values(sample.values.0.map(|value| value * swing));
                let value = PartitionSample { time, values, ..sample.clone() }.write();
                let place = TopicPartition::new(TOPIC, at % PARTITIONS);
                let record = Record { value: Some(Bytes::from(value)), timestamp: time, ..Record::default() };
                round.entry(place).or_default().push(record);
                waiting += 1;
                if waiting == AT_ONCE {
                    writer.write(&std::mem::take(&mut round)).await?;
                    written += std::mem::take(&mut waiting);
                }
            }
        }
        if waiting > 0 {
            writer.write(&round).await?;
        }
        Ok(written + waiting)
    }

    /// What each partition carries, as its leader would tell.
    fn usual(&self, partitions: i32) -> Vec<PartitionSample> {
        self.world.look(|cluster| {
            (0..partitions)
                .map(|n| {
                    let (number, partition) = (n / OF_A_TOPIC, n % OF_A_TOPIC);
                    let (topic, load) = (stand::topic(number), stand::load(number));
                    let rate = load.bytes_in * load.share(partition, OF_A_TOPIC);
                    let leader = cluster.registration(&topic, partition).and_then(|it| it.leader);
                    let values = Values::UNKNOWN
                        // Eight cores, half of them busy at 100 MB/s.
                        .with(Metric::Cpu, rate / 100e6 * 400.0)
                        .with(Metric::Disk, cluster.partition_size(&topic, partition) as f64)
                        .with(Metric::LeaderBytesIn, rate)
                        .with(Metric::LeaderBytesOut, rate)
                        .with(Metric::ProduceRate, rate / 10_000.0)
                        .with(Metric::FetchRate, rate / 10_000.0)
                        .with(Metric::MessagesIn, rate / 1_000.0)
                        .with(Metric::ReplicationBytesIn, 0.0)
                        .with(Metric::ReplicationBytesOut, 2.0 * rate);
                    let partition = TopicPartition::new(&topic, partition);
                    PartitionSample { partition, leader: leader.map_or(-1, |id| id.0), time: 0, values }
                })
                .collect()
        })
    }
}
