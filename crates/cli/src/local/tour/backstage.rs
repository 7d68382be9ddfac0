//! What the tour does that no `kubectl` does: it kills the operator, and pours data into a topic.

use evenkeel_kafka::Client;
use evenkeel_sim::TopicPartition;
use evenkeel_sim::serve::World;

use crate::local::data;
use crate::local::operator::Operator;

/// How much less there is of everything where brokers are real: their disks are small.
const LESS: u64 = 20;
/// The largest record that is written there; Kafka takes a megabyte.
const RECORD: u64 = 512 * 1024;

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
        if let Some(world) = &self.world {
            world.with(|cluster| {
                for number in 0..partitions {
                    cluster.fill(&TopicPartition::new(topic, number), bytes);
                }
            });
            return Ok(());
        }
        let mut left = bytes;
        while left > 0 {
            let some = left.min(RECORD);
            data::write(kafka, topic, partitions, usize::try_from(some)?).await?;
            left -= some;
        }
        Ok(())
    }

    /// So many bytes, in a topic or in a second; or fewer where there is less of everything.
    pub(crate) fn fitting(&self, bytes: u64) -> u64 {
        if self.world.is_some() { bytes } else { bytes / LESS }
    }
}
