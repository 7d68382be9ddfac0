//! How fast simulated time passes: `cargo run --release -p evenkeel-sim --example speed`.
#![expect(clippy::print_stdout, reason = "it talks to a person")]

use std::time::Instant;

use evenkeel_sim::cluster::{BrokerSpec, NewTopic, Reassignment, Reporter};
use evenkeel_sim::traffic::Load;
use evenkeel_sim::{BrokerId, Cluster, Options, Refusal, TopicPartition};

const PARTITIONS_OF_A_TOPIC: i32 = 50;
/// A simulated minute in ticks of 100 ms.
const TICKS: u32 = 600;

fn main() -> Result<(), Refusal> {
    for (brokers, partitions) in [(30, 20_000), (100, 200_000)] {
        let size = format!("{brokers} brokers, {partitions} partitions");
        let mut cluster = make(brokers, partitions, None)?;
        measure(&mut cluster, &size, "idle");
        let lines: Vec<Reassignment> = (0..1_000)
            .filter_map(|n| {
                let (topic, partition) = (format!("topic-{}", n % 200), n / 200);
                let mut target = cluster.registration(&topic, partition)?.replicas.clone();
                let free = (0..brokers).map(BrokerId).find(|id| !target.contains(id))?;
                *target.last_mut()? = free;
                Some(Reassignment { partition: TopicPartition::new(topic, partition), target: Some(target) })
            })
            .collect();
        cluster.alter_reassignments(&lines, true);
        measure(&mut cluster, &size, "1,000 moves running");

        let reporter = Reporter::default();
        let metrics = TopicPartition::new(reporter.topic.as_str(), 0);
        let mut cluster = make(brokers, partitions, Some(reporter))?;
        measure(&mut cluster, &size, "one report of each broker");
        println!("  {} metrics in it", cluster.high_watermark(&metrics).unwrap_or(0));
    }
    Ok(())
}

fn make(brokers: i32, partitions: i32, reporter: Option<Reporter>) -> Result<Cluster, Refusal> {
    let specs = (0..brokers).map(|id| BrokerSpec::new(id).in_rack(["a", "b", "c"][id as usize % 3]));
    let mut cluster = Cluster::new(Options { reporter, ..Options::default() }, specs);
    for n in 0..partitions / PARTITIONS_OF_A_TOPIC {
        let load = Load { swing: 0.5, ..Load::steady(500_000.0) };
        let topic = NewTopic::new(&format!("topic-{n}"), PARTITIONS_OF_A_TOPIC, 3).loaded(load, 3_600_000);
        cluster.create_topic(&topic, false)?;
    }
    Ok(cluster)
}

fn measure(cluster: &mut Cluster, size: &str, what: &str) {
    let start = Instant::now();
    (0..TICKS).for_each(|_| cluster.tick(100));
    let took = start.elapsed();
    let per_second = f64::from(TICKS) / took.as_secs_f64();
    println!("{size}, {what}: {per_second:.0} ticks/s of 100 ms, {:.0} times real time", per_second / 10.0);
}
