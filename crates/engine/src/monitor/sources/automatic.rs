//! The reporter's topic while brokers write to it, else from outside.

use evenkeel_kafka::Error;

use super::{Ground, Sampled, Sampling, Scene, Source, outside::Outside, reporter::Reporter};
use crate::said::chain;

/// A reporter that was heard within so many intervals may be heard again: the other way would know less.
const PATIENCE: i64 = 3;
/// Brokers report once a minute: so long they are not silent, however short the interval.
const REPORTS_WITHIN: i64 = 180_000;

/// Both, and when the first was last heard.
#[derive(Debug)]
pub(super) struct Automatic {
    reporter: Reporter,
    outside: Outside,
    heard: Option<i64>,
    ground: Ground,
}

impl Automatic {
    pub(super) fn new(ground: Ground) -> Self {
        Automatic {
            reporter: Reporter::new(ground.clone()),
            outside: Outside::new(ground.clone()),
            heard: None,
            ground,
        }
    }

    async fn take(&mut self, scene: Scene<'_>) -> Result<Sampled, Error> {
        let now = self.ground.clock.now();
        if self.reporter.is_there(scene.sighting) {
            let told = self.reporter.sample(scene).await;
            if told.as_ref().is_ok_and(|told| !told.partitions.is_empty()) {
                if self.heard.replace(now).is_none() {
                    tracing::info!(topic = self.ground.topic, "loads come from the reporter's topic");
                }
                return told;
            }
            if is_expected(self.heard, now, self.ground.interval) {
                return told;
            }
            if let Err(error) = told {
                let error = chain(&error);
                tracing::warn!(topic = self.ground.topic, error, "the reporter's topic cannot be read");
            }
        }
        if self.heard.take().is_some() {
            tracing::warn!(topic = self.ground.topic, "nobody reports any more: loads are measured from outside");
        }
        self.outside.sample(scene).await
    }
}

impl Source for Automatic {
    fn sample<'a>(&'a mut self, scene: Scene<'a>) -> Sampling<'a> {
        Box::pin(self.take(scene))
    }
}

/// Whether a reporter that says nothing now is likely to go on.
fn is_expected(heard: Option<i64>, now: i64, interval: i64) -> bool {
    heard.is_some_and(|heard| now - heard <= (PATIENCE * interval).max(REPORTS_WITHIN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_no_silence() {
        assert!(!is_expected(None, 1_000, 60_000));
        assert!(is_expected(Some(0), 180_000, 60_000));
        assert!(!is_expected(Some(0), 180_001, 60_000));
        assert!(is_expected(Some(0), 180_000, 5_000), "brokers report once a minute, however often they are asked");
        assert!(is_expected(Some(0), 900_000, 300_000));
    }
}
