//! Everything that brokers told during one interval, by what it is of and who told it.
//!
//! What is told more than once becomes a mean as it is heard: of a large cluster a round brings millions of measurements,
//! and only so many means. Nearly every broker tells of nearly every topic, so what each of them takes counts: the rates of
//! a topic on a broker are one entry of a list, and sizes are a list for each topic.

use std::collections::BTreeMap;

use super::{
    raw::{RawMetric, Scope, kind},
    sample::{Metric, Values},
};

/// What is told of topics, and what it is called in samples.
const RATES: [(u8, Metric); 7] = [
    (kind::TOPIC_BYTES_IN, Metric::LeaderBytesIn),
    (kind::TOPIC_BYTES_OUT, Metric::LeaderBytesOut),
    (kind::TOPIC_PRODUCE_REQUESTS, Metric::ProduceRate),
    (kind::TOPIC_FETCH_REQUESTS, Metric::FetchRate),
    (kind::TOPIC_MESSAGES_IN, Metric::MessagesIn),
    (kind::TOPIC_REPLICATION_BYTES_IN, Metric::ReplicationBytesIn),
    (kind::TOPIC_REPLICATION_BYTES_OUT, Metric::ReplicationBytesOut),
];

/// All of it. Once everything is heard it has to be put in order; then it can be asked.
#[derive(Debug, Default)]
pub struct Told {
    brokers: BTreeMap<i32, BTreeMap<u8, Mean>>,
    topics: BTreeMap<String, OfTopic>,
}

#[derive(Debug, Default)]
struct OfTopic {
    /// By broker.
    rates: Vec<OfBroker>,
    /// By broker and partition, once they are in order.
    sizes: Vec<Size>,
}

/// What one broker told of a topic. As precise as it is kept.
#[derive(Debug)]
struct OfBroker {
    broker: i32,
    counts: [u16; RATES.len()],
    sums: [f32; RATES.len()],
}

#[derive(Debug, Clone, Copy)]
struct Size {
    broker: i32,
    partition: i32,
    bytes: Mean,
}

#[derive(Debug, Clone, Copy, Default)]
struct Mean {
    count: u32,
    sum: f64,
}

impl Mean {
    fn of(value: f64) -> Mean {
        Mean { count: 1, sum: value }
    }

    fn add(&mut self, other: Mean) {
        (self.count, self.sum) = (self.count.saturating_add(other.count), self.sum + other.sum);
    }

    fn value(self) -> f64 {
        self.sum / f64::from(self.count)
    }
}

impl OfBroker {
    fn silent(broker: i32) -> OfBroker {
        OfBroker { broker, counts: [0; RATES.len()], sums: [0.0; RATES.len()] }
    }

    fn add(&mut self, rate: usize, value: f64) {
        self.counts[rate] = self.counts[rate].saturating_add(1);
        self.sums[rate] += value as f32;
    }

    fn rates(&self) -> Rates {
        Rates(std::array::from_fn(|at| f64::from(self.sums[at]) / f64::from(self.counts[at].max(1))))
    }
}

impl OfTopic {
    fn by(&mut self, broker: i32) -> &mut OfBroker {
        let at = match self.rates.binary_search_by_key(&broker, |told| told.broker) {
            Ok(at) => at,
            Err(at) => {
                self.rates.insert(at, OfBroker::silent(broker));
                at
            }
        };
        &mut self.rates[at]
    }

    fn add_size(&mut self, size: Size) {
        if self.sizes.len() == self.sizes.capacity() {
            // What was told twice need not be there twice. If that makes little room the list grows all the same.
            self.settle();
            self.sizes.reserve(self.sizes.len() / 4);
        }
        self.sizes.push(size);
    }

    fn settle(&mut self) {
        self.sizes.sort_unstable_by_key(Size::place);
        self.sizes.dedup_by(|later, kept| {
            let same = later.place() == kept.place();
            if same {
                kept.bytes.add(later.bytes);
            }
            same
        });
    }
}

impl Size {
    fn place(&self) -> (i32, i32) {
        (self.broker, self.partition)
    }
}

impl Told {
    /// Takes in one measurement.
    pub fn hear(&mut self, metric: &RawMetric) {
        let (broker, value) = (metric.broker, metric.value);
        match &metric.scope {
            Scope::Broker => {
                self.brokers.entry(broker).or_default().entry(metric.kind).or_default().add(Mean::of(value));
            }
            Scope::Topic(topic) => {
                if let Some(rate) = position(metric.kind) {
                    self.of_topic(topic).by(broker).add(rate, value);
                }
            }
            Scope::Partition(topic, partition) => {
                let size = Size { broker, partition: *partition, bytes: Mean::of(value) };
                self.of_topic(topic).add_size(size);
            }
        }
    }

    fn of_topic(&mut self, topic: &str) -> &mut OfTopic {
        // A name is kept once, however often and by however many it is told.
        if !self.topics.contains_key(topic) {
            self.topics.insert(topic.to_owned(), OfTopic::default());
        }
        self.topics.get_mut(topic).expect("it is there")
    }

    /// Puts it in order, to be asked.
    pub(super) fn settle(&mut self) {
        self.topics.values_mut().for_each(OfTopic::settle);
    }

    /// What each broker told of itself: the mean of each kind.
    pub(super) fn of_brokers(&self) -> BTreeMap<i32, BTreeMap<u8, f64>> {
        let of = |kinds: &BTreeMap<u8, Mean>| kinds.iter().map(|(kind, mean)| (*kind, mean.value())).collect();
        self.brokers.iter().map(|(broker, kinds)| (*broker, of(kinds))).collect()
    }

    /// Bytes that each broker holds.
    pub(super) fn held(&self) -> BTreeMap<i32, f64> {
        let mut held = BTreeMap::new();
        for size in self.topics.values().flat_map(|told| &told.sizes) {
            *held.entry(size.broker).or_default() += size.bytes.value();
        }
        held
    }

    /// By the name that the reporter gives it.
    pub(super) fn topic(&self, broker: i32, topic: &str) -> Option<Rates> {
        let rates = &self.topics.get(topic)?.rates;
        let at = rates.binary_search_by_key(&broker, |told| told.broker).ok()?;
        Some(rates[at].rates())
    }

    pub(super) fn size(&self, broker: i32, topic: &str, partition: i32) -> Option<f64> {
        let sizes = &self.topics.get(topic)?.sizes;
        let at = sizes.binary_search_by_key(&(broker, partition), Size::place).ok()?;
        Some(sizes[at].bytes.value())
    }

    /// All that a broker told of its topics, whether it leads them or follows.
    pub(super) fn total(&self, broker: i32) -> Rates {
        let of_topics = self.topics.keys().filter_map(|topic| self.topic(broker, topic));
        of_topics.fold(Rates::default(), |total, rates| Rates(std::array::from_fn(|at| total.0[at] + rates.0[at])))
    }
}

/// Rates of a topic or of a whole broker, in the order of [`RATES`].
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Rates([f64; RATES.len()]);

fn position(kind: u8) -> Option<usize> {
    RATES.iter().position(|(rate, _)| *rate == kind)
}

impl Rates {
    pub(super) fn get(&self, kind: u8) -> f64 {
        position(kind).map_or(0.0, |at| self.0[at])
    }

    pub(super) fn divided_by(&self, count: f64) -> Rates {
        Rates(self.0.map(|rate| rate / count))
    }

    pub(super) fn values(&self) -> Values {
        RATES.iter().zip(self.0).fold(Values::UNKNOWN, |values, ((_, metric), rate)| values.with(*metric, rate))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_means_in_whatever_order_and_however_often_they_are_told() {
        let mut told = Told::default();
        for round in 0..5 {
            // No order that anybody would keep.
            for number in (0..100).map(|number| number * 37 % 100) {
                for broker in [3, 1] {
                    let scope = Scope::Partition("t".to_owned(), number);
                    let value = f64::from(number * 10 + broker + round);
                    told.hear(&RawMetric { kind: kind::PARTITION_SIZE, time: 0, broker, scope, value });
                }
            }
        }
        told.settle();
        assert!((0..100).all(|number| told.size(1, "t", number) == Some(f64::from(number * 10 + 1 + 2))));
        assert!((0..100).all(|number| told.size(3, "t", number) == Some(f64::from(number * 10 + 3 + 2))));
        assert_eq!((told.size(1, "t", 100), told.size(2, "t", 0), told.size(1, "u", 0)), (None, None, None));
        let sum = f64::from((0..100).map(|number| number * 10).sum::<i32>());
        assert_eq!(told.held(), [(1, sum + 300.0), (3, sum + 500.0)].into());
        assert!(told.topics["t"].sizes.capacity() < 300, "what is told again takes no room");
    }
}
