//! Who acts: the record that tells an engine which was replaced from one that was only out of reach.
//!
//! The transactional id alone cannot: the coordinator also refuses the living writer after a transaction that
//! stayed open for too long, and forgets an id that was idle for days. So each life of an engine has a name of its
//! own, and writes it before it believes anything that it reads:
//!
//! ```text
//! take over    a new epoch (shuts the former out) -> own name -> read what was decided
//! shut out     a new epoch (shuts whoever else out) -> read whose name came last: go on, or step down for good
//! ```
//!
//! A name that is on record was written under the newest epoch of its moment, and whoever it replaced has written
//! nothing since: to write it would have needed a newer epoch, and to have seen that name. Two that shut each other
//! out meanwhile lose nothing but time: the one whose name is not the last one stops asking.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Entry, entry, read};

/// Its key.
pub(super) const KEY: &str = "owner";

/// Whose journal it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Owner {
    /// A life of an engine.
    pub(super) engine: Uuid,
}

impl Owner {
    /// Its record.
    pub(super) fn entry(self) -> Entry {
        entry(KEY.to_owned(), &self)
    }

    /// The owner that a record names, if it is the owner's record.
    pub(super) fn of(entry: &Entry) -> Option<Owner> {
        entry.value.as_deref().filter(|_| entry.key == KEY).and_then(read)
    }
}
