//! How fast simulated time passes: `cargo run --release -p evenkeel-sim --example speed`.
#![expect(clippy::print_stdout, reason = "it talks to a person")]

use std::time::Instant;

use evenkeel_sim::cluster::{BrokerSpec, NewTopic, Reassignment};
use evenkeel_sim::traffic::Load;
use evenkeel_sim::{BrokerId, Cluster, Options, TopicPartition};

const PARTITIONS_OF_A_TOPIC: i32 = 50;

fn main() {
    for (brokers, partitions) in [(30, 20_000), (100, 200_000)] {
        let specs = (0..brokers).map(|id| BrokerSpec::new(id).in_rack(["a", "b", "c"][id as usize % 3]));
        let mut cluster = Cluster::new(Options::default(), specs);
        for n in 0..partitions / PARTITIONS_OF_A_TOPIC {
            let load = Load { swing: 0.5, ..Load::steady(500_000.0) };
            let topic = NewTopic::new(&format!("topic-{n}"), PARTITIONS_OF_A_TOPIC, 3).loaded(load, 3_600_000);
            if let Err(refusal) = cluster.create_topic(&topic, false) {
                println!("{refusal}");
                return;
            }
        }
        measure(&mut cluster, brokers, partitions, "idle");
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
        measure(&mut cluster, brokers, partitions, "1,000 moves running");
    }
}

/// A simulated minute in ticks of 100 ms.
fn measure(cluster: &mut Cluster, brokers: i32, partitions: i32, what: &str) {
    const TICKS: u32 = 600;
    let start = Instant::now();
    (0..TICKS).for_each(|_| cluster.tick(100));
    let took = start.elapsed();
    let per_second = f64::from(TICKS) / took.as_secs_f64();
    println!(
        "{brokers} brokers, {partitions} partitions, {what}: {per_second:.0} ticks/s of 100 ms, {:.0} times real time",
        per_second / 10.0
    );
}
