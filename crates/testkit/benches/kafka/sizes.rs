//! How much of everything.

use serde::Serialize;

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Sizes {
    /// Partitions in the metadata, in topics of a hundred.
    pub(crate) partitions: i32,
    /// How often the metadata is decoded; the best counts, which other work on the machine disturbs least.
    pub(crate) decodings: usize,
    /// Records in the metrics topic.
    pub(crate) records: usize,
    /// How often the metrics topic is read; the best counts.
    pub(crate) readings: usize,
    /// Round trips of each kind.
    pub(crate) round_trips: usize,
}

impl Sizes {
    pub(crate) const FULL: Self =
        Self { partitions: 200_000, decodings: 10, records: 1_000_000, readings: 3, round_trips: 500 };

    pub(crate) const QUICK: Self =
        Self { partitions: 2_000, decodings: 2, records: 20_000, readings: 1, round_trips: 20 };
}
