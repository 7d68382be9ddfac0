//! The metadata of a large cluster, as one answer: the guard's walk, then the codec, and the memory both need.

use std::{
    env, fs,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use evenkeel_kafka::{
    guard::{self, Limits},
    message,
};
use evenkeel_testkit::measure::{Measurement, Unit, grouped, peak_of};
use kafka_protocol::{
    messages::{
        ApiKey, BrokerId, MetadataRequest, MetadataResponse, TopicName,
        metadata_response::{MetadataResponsePartition, MetadataResponseTopic},
    },
    protocol::StrBytes,
};
use serde::{Deserialize, Serialize};

use crate::sizes::Sizes;

const VERSION: i16 = 12;
const PARTITIONS_OF_A_TOPIC: i32 = 100;
/// Correlation, and no tagged fields.
const HEADER: usize = 5;
const DECODINGS: &str = "EVENKEEL_DECODINGS";

/// What the process that decodes tells.
#[derive(Serialize, Deserialize)]
struct Told {
    guard: Duration,
    both: Duration,
    peak: u64,
    partitions: usize,
}

/// Lets another process decode: this one has made the metadata, and its allocator remembers.
pub(crate) fn measure(sizes: &Sizes) -> Result<Vec<Measurement>> {
    let frame = message::encode_response(&cluster(sizes.partitions), VERSION, 1)?.slice(4..);
    let file = tempfile::NamedTempFile::new().context("could not make a file for the metadata")?;
    fs::write(file.path(), &frame).context("could not write the metadata")?;
    let decoding = Command::new(env::current_exe()?)
        .arg("--decode")
        .arg(file.path())
        .env(DECODINGS, sizes.decodings.to_string())
        .output()
        .context("could not start a process to decode")?;
    ensure!(decoding.status.success(), "decoding failed: {}", String::from_utf8_lossy(&decoding.stderr));
    let told: Told = serde_json::from_slice(&decoding.stdout).context("the decoding process said something else")?;
    ensure!(i32::try_from(told.partitions)? == sizes.partitions, "{} partitions were decoded", told.partitions);
    let what = format!("metadata of {} partitions", grouped(sizes.partitions));
    let mebibytes = |bytes: f64| bytes / f64::from(1 << 20);
    Ok(vec![
        Measurement::new(format!("{what}, on the wire"), Unit::Mebibytes, mebibytes(frame.len() as f64)),
        Measurement::time(format!("{what}, the guard alone"), Unit::Milliseconds, told.guard),
        Measurement::time(format!("{what}, guard and codec"), Unit::Milliseconds, told.both),
        Measurement::new(
            format!("{what}, peak of memory beyond the frame"),
            Unit::Mebibytes,
            mebibytes(told.peak as f64),
        ),
    ])
}

/// The process that decodes.
pub(crate) fn decode(file: &Path) -> Result<()> {
    let frame = Bytes::from(fs::read(file).context("could not read the metadata")?);
    let decodings = env::var(DECODINGS).ok().and_then(|count| count.parse().ok()).unwrap_or(1);
    let read = || message::decode_response::<MetadataRequest>(frame.clone(), VERSION, Limits::KNOWN_PEER);
    let (first, peak) = peak_of(read)?;
    let partitions = first?.topics.iter().map(|topic| topic.partitions.len()).sum();
    let walk = || guard::check_response(ApiKey::Metadata as i16, VERSION, &frame[HEADER..], Limits::KNOWN_PEER);
    walk().context("the guard refuses the metadata")?;
    let told = Told { guard: best(decodings, walk), both: best(decodings, read), peak, partitions };
    println!("{}", serde_json::to_string(&told)?);
    Ok(())
}

fn best<T>(rounds: usize, work: impl Fn() -> T) -> Duration {
    let round = |_| {
        let began = Instant::now();
        std::hint::black_box(work());
        began.elapsed()
    };
    (0..rounds).map(round).min().unwrap_or_default()
}

fn cluster(partitions: i32) -> MetadataResponse {
    let partition = |index| {
        let replicas: Vec<_> = (0..3).map(|n| BrokerId(index + n)).collect();
        MetadataResponsePartition::default()
            .with_partition_index(index)
            .with_leader_id(replicas[0])
            .with_replica_nodes(replicas.clone())
            .with_isr_nodes(replicas)
    };
    let topic = |n| {
        let name = TopicName(StrBytes::from_string(format!("some-topic-with-a-name-{n}")));
        MetadataResponseTopic::default()
            .with_name(Some(name))
            .with_partitions((0..PARTITIONS_OF_A_TOPIC).map(partition).collect())
    };
    MetadataResponse::default().with_topics((0..partitions / PARTITIONS_OF_A_TOPIC).map(topic).collect())
}
