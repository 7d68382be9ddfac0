//! Lists of node ids as users write them in annotations: `[0, 5, 10-20, 30-25]`.
//!
//! The order counts: it is the order in which ids are handed out or taken away. A range may
//! descend. A range is never spelt out in memory, so `[0-2000000000]` costs no more than `[0-2]`.

use std::{collections::BTreeSet, fmt, str::FromStr};

/// Node ids and ranges of them, in the order in which they were written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeIdRanges(Vec<NodeIdRange>);

/// Ids from `first` to `last`, both included. `first` may be the greater one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NodeIdRange {
    first: i32,
    last: i32,
}

impl NodeIdRanges {
    /// Whether nothing is listed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether an id is listed.
    pub fn contains(&self, id: i32) -> bool {
        self.0.iter().any(|range| (range.low()..=range.high()).contains(&id))
    }

    /// All ids in the order written, one by one. An id that is written twice comes twice.
    pub fn iter(&self) -> impl Iterator<Item = i32> + '_ {
        self.0.iter().flat_map(|range| {
            let (low, high) = (range.low(), range.high());
            let descends = range.first > range.last;
            let mut ids = low..=high;
            std::iter::from_fn(move || if descends { ids.next_back() } else { ids.next() })
        })
    }

    /// The first listed id that is not in use: the one to give to a new node.
    pub fn first_unused(&self, used: &BTreeSet<i32>) -> Option<i32> {
        self.0.iter().find_map(|range| range.first_outside(used))
    }

    /// The first listed id that is in use: the node to take away.
    pub fn first_used(&self, used: &BTreeSet<i32>) -> Option<i32> {
        self.0.iter().find_map(|range| range.first_inside(used))
    }
}

impl NodeIdRange {
    fn low(self) -> i32 {
        self.first.min(self.last)
    }

    fn high(self) -> i32 {
        self.first.max(self.last)
    }

    /// Looks only at the members of `used` that the range covers, never at each id of the range.
    fn first_inside(self, used: &BTreeSet<i32>) -> Option<i32> {
        let mut covered = used.range(self.low()..=self.high());
        if self.first <= self.last { covered.next().copied() } else { covered.next_back().copied() }
    }

    fn first_outside(self, used: &BTreeSet<i32>) -> Option<i32> {
        // Walks along the ids in use until one is missing: no more steps than there are ids in use.
        let step = if self.first <= self.last { 1 } else { -1 };
        let mut id = self.first;
        while used.contains(&id) {
            if id == self.last {
                return None;
            }
            id += step;
        }
        Some(id)
    }
}

/// Why a text is no list of node ids.
#[derive(thiserror::Error, Clone, Debug, PartialEq, Eq)]
pub enum NodeIdError {
    /// There are no brackets around it.
    #[error("put the ids in brackets, such as [0, 5, 10-20]")]
    NoBrackets,
    /// One element is neither an id nor a range.
    #[error("`{0}` is neither a node id nor a range such as 10-20")]
    NoRange(String),
}

impl FromStr for NodeIdRanges {
    type Err = NodeIdError;

    fn from_str(text: &str) -> Result<Self, NodeIdError> {
        let inside =
            text.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).ok_or(NodeIdError::NoBrackets)?;
        if inside.trim().is_empty() {
            return Ok(Self::default());
        }
        inside.split(',').map(parse_range).collect::<Result<_, _>>().map(Self)
    }
}

fn parse_range(text: &str) -> Result<NodeIdRange, NodeIdError> {
    let range = match text.split_once('-') {
        Some((first, last)) => parse_id(first).zip(parse_id(last)),
        None => parse_id(text).map(|id| (id, id)),
    };
    let (first, last) = range.ok_or_else(|| NodeIdError::NoRange(text.trim().into()))?;
    Ok(NodeIdRange { first, last })
}

/// Digits only: `parse` alone would also take a sign.
fn parse_id(text: &str) -> Option<i32> {
    let digits = text.trim();
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten()
}

impl fmt::Display for NodeIdRanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (n, range) in self.0.iter().enumerate() {
            let comma = if n == 0 { "" } else { ", " };
            if range.first == range.last {
                write!(f, "{comma}{}", range.first)?;
            } else {
                write!(f, "{comma}{}-{}", range.first, range.last)?;
            }
        }
        f.write_str("]")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ids(text: &str) -> Vec<i32> {
        text.parse::<NodeIdRanges>().unwrap().iter().collect()
    }

    #[test]
    fn ids_and_ranges_come_in_the_order_written() {
        assert_eq!(ids("[0, 5, 10-12, 30-28]"), [0, 5, 10, 11, 12, 30, 29, 28]);
    }

    #[test]
    fn whitespace_does_not_matter() {
        assert_eq!(ids("  [ 1 ,2- 3 ,\t5 -4 ] "), [1, 2, 3, 5, 4]);
    }

    #[test]
    fn an_empty_list_is_a_list() {
        assert_eq!(ids("[]"), [0; 0]);
        assert_eq!(ids(" [ ] "), [0; 0]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |text: &str| text.parse::<NodeIdRanges>().unwrap_err();
        assert_eq!(error("0, 1"), NodeIdError::NoBrackets);
        assert_eq!(error("[0, 1"), NodeIdError::NoBrackets);
        assert_eq!(error(""), NodeIdError::NoBrackets);
        for (text, culprit) in [
            ("[a]", "a"),
            ("[1,,2]", ""),
            ("[1,]", ""),
            ("[-1]", "-1"),
            ("[1-2-3]", "1-2-3"),
            ("[+1]", "+1"),
            ("[1-]", "1-"),
        ] {
            assert_eq!(error(text), NodeIdError::NoRange(culprit.into()), "{text}");
        }
        assert_eq!(error("[2147483648]"), NodeIdError::NoRange("2147483648".into()));
    }

    #[test]
    fn a_huge_range_costs_nothing() {
        let all: NodeIdRanges = "[0-2147483647]".parse().unwrap();
        let used = BTreeSet::from([0, 1, 2, 2_000_000_000]);
        assert_eq!(all.first_unused(&used), Some(3));
        assert_eq!(all.first_used(&BTreeSet::from([2_000_000_000])), Some(2_000_000_000));
        assert!(all.contains(i32::MAX));

        let down: NodeIdRanges = "[2147483647-0]".parse().unwrap();
        assert_eq!(down.first_unused(&BTreeSet::from([i32::MAX])), Some(i32::MAX - 1));
        assert_eq!(down.first_used(&BTreeSet::from([3, 7])), Some(7));
    }

    #[test]
    fn a_full_range_at_either_end_gives_way_to_the_next() {
        let ranges: NodeIdRanges = "[1-0, 2147483646-2147483647, 9]".parse().unwrap();
        assert_eq!(ranges.first_unused(&BTreeSet::from([0, 1, i32::MAX - 1, i32::MAX])), Some(9));
    }

    fn some_ranges() -> impl Strategy<Value = NodeIdRanges> {
        let range = (0..50, 0..50).prop_map(|(first, last)| NodeIdRange { first, last });
        proptest::collection::vec(range, 0..6).prop_map(NodeIdRanges)
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(ranges in some_ranges()) {
            prop_assert_eq!(ranges.to_string().parse(), Ok(ranges));
        }

        #[test]
        fn any_text_is_read_or_refused(text in r"\[[0-9, -]{0,30}\]|\PC*") {
            if let Ok(ranges) = text.parse::<NodeIdRanges>() {
                prop_assert!(ranges.iter().take(100).all(|id| id >= 0 && ranges.contains(id)));
            }
        }

        #[test]
        fn searching_finds_what_spelling_out_would(
            ranges in some_ranges(),
            used in proptest::collection::btree_set(0..50, 0..50),
        ) {
            prop_assert_eq!(ranges.first_used(&used), ranges.iter().find(|id| used.contains(id)));
            prop_assert_eq!(ranges.first_unused(&used), ranges.iter().find(|id| !used.contains(id)));
            for id in 0..50 {
                prop_assert_eq!(ranges.contains(id), ranges.iter().any(|listed| listed == id));
            }
        }
    }
}
