//! The first line: what the file is, how many records to expect, and notes.

use std::collections::BTreeMap;

use crate::error::Quoted;
use crate::words::{Words, cut, decode, is_plain};
use crate::{MAGIC, Problem, TOTALS, VERSION};

/// Totals that every header has ...
const ALWAYS: [&str; 2] = ["brokers", "partitions"];
/// ... and those it has if there are such records.
const IF_ANY: [&str; 2] = ["disks", "moves"];

/// Where the topics are in [`TOTALS`]; they are known only when the cluster is made.
const TOPICS: usize = TOTALS.len() - 1;

#[derive(Debug, Default)]
pub(super) struct Header {
    announced: [Option<u64>; TOTALS.len()],
    pub(super) notes: BTreeMap<String, String>,
}

impl Header {
    pub(super) fn parse(line: &str) -> Result<Header, Problem> {
        let mut words = Words::of(line);
        let magic = words.next().unwrap_or_default();
        if magic != MAGIC {
            return Err(Problem::NotASnapshot(Quoted::new(magic)));
        }
        let version = words.next().unwrap_or_default();
        if version != VERSION {
            return Err(Problem::Version(Quoted::new(version)));
        }
        let mut header = Header::default();
        for word in words {
            header.entry(word)?;
        }
        Ok(header)
    }

    fn entry(&mut self, word: &str) -> Result<(), Problem> {
        let wrong = |wanted| Problem::Field { field: "a header entry", found: Quoted::new(word), wanted };
        let (key, value) = cut(word, b'=');
        let value = value.filter(|_| !key.is_empty()).ok_or_else(|| wrong("key=value"))?;
        let twice = if let Some(index) = TOTALS.iter().position(|total| *total == key) {
            let count = value.parse().map_err(|_| wrong("a whole number"))?;
            self.announced[index].replace(count).is_some()
        } else {
            // What could not be written again is not taken either.
            if !is_plain(key) {
                return Err(wrong("key=value, the key neither `-` nor with % or a control character in it"));
            }
            let value = decode(value).ok_or_else(|| wrong("key=value"))?;
            self.notes.insert(key.to_owned(), value.into_owned()).is_some()
        };
        if twice { Err(Problem::HeaderTwice(Quoted::new(key))) } else { Ok(()) }
    }

    /// A file may be cut at the end of any line: so what can stand at its end must have been announced.
    pub(super) fn check_announced(&self, found: &[u64; TOPICS]) -> Result<(), Problem> {
        let needs = |index: &usize| {
            let what = TOTALS[*index];
            ALWAYS.contains(&what) || (IF_ANY.contains(&what) && found[*index] > 0)
        };
        let missing = (0..TOPICS).filter(needs).find(|index| self.announced[*index].is_none());
        missing.map_or(Ok(()), |index| Err(Problem::NotAnnounced(TOTALS[index])))
    }

    /// Compares what was announced, of all but the topics, with what came.
    pub(super) fn check(&self, found: &[u64; TOPICS]) -> Result<(), Problem> {
        (0..TOPICS).try_for_each(|index| self.check_one(index, found[index]))
    }

    pub(super) fn check_topics(&self, found: usize) -> Result<(), Problem> {
        self.check_one(TOPICS, found as u64)
    }

    fn check_one(&self, index: usize, found: u64) -> Result<(), Problem> {
        match self.announced[index] {
            Some(announced) if announced != found => Err(Problem::Total { what: TOTALS[index], announced, found }),
            _ => Ok(()),
        }
    }
}
