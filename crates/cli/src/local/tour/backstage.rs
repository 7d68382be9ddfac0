//! What the tour does that no `kubectl` does: it kills the operator, and pours data into a topic.

use evenkeel_kafka::Client;
use evenkeel_sim::TopicPartition;
use evenkeel_sim::serve::World;

use crate::local::data;
use crate::local::operator::Operator;

/// What is written to each partition where brokers are real and disks are small.
const REAL_BYTES: usize = 512 * 1024;

/// What stands behind the stage.
#[derive(Default)]
pub(crate) struct Backstage {
    /// The operator, to be killed.
    pub(crate) operator: Option<Operator>,
    /// The simulated cluster; none where brokers are real.
    pub(crate) world: Option<World>,
}

impl Backstage {
    /// Has so many bytes come into each partition of a topic. Simulated brokers are told that they came.
    pub(crate) async fn pour(&self, kafka: &Client, topic: &str, partitions: i32, bytes: u64) -> anyhow::Result<()> {
        let Some(world) = &self.world else { return data::write(kafka, topic, partitions, REAL_BYTES).await };
        world.with(|cluster| {
            for number in 0..partitions {
                cluster.fill(&TopicPartition::new(topic, number), bytes);
            }
        });
        Ok(())
    }
}
