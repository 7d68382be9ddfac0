//! The recent changes of one resource, within bounds.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{Key, Stored};

/// Changes remembered per resource. A watcher that is further behind lists again; at 500 writes a second to one
/// resource that leaves it half a minute.
const MAX_CHANGES: usize = 16_384;

/// Bytes of object text that the history of one resource may keep alive on its own. Of every change both states count:
/// mostly the earlier one is the later one of another change and half of this is enough for both, but objects that have
/// shrunk are kept alive by nobody else.
const MAX_BYTES: usize = 64 << 20;

/// The same for a resource that is no longer served.
const MAX_BYTES_AFTER_THE_END: usize = 2 << 20;

/// One write.
#[derive(Debug, Clone)]
pub struct Change {
    /// Its revision.
    pub revision: u64,
    /// Which object.
    pub key: Key,
    /// How the object was before; `None` if it was created.
    pub before: Option<Arc<Stored>>,
    /// How it is now; for a removal, its last state stamped with the removal's revision.
    pub after: Arc<Stored>,
    /// The object is gone.
    pub removed: bool,
}

impl Change {
    fn bytes(&self) -> usize {
        self.after.text.len() + self.before.as_ref().map_or(0, |before| before.text.len())
    }
}

/// The asked-for revision lies before what is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forgotten {
    /// The oldest revision from which changes can still be had.
    pub oldest: u64,
}

#[derive(Debug, Default)]
pub(super) struct History {
    changes: VecDeque<Change>,
    bytes: usize,
    /// Changes up to here are gone.
    forgotten: u64,
}

impl History {
    /// An empty history that knows nothing of what happened up to `revision`.
    pub(super) fn beginning(revision: u64) -> Self {
        Self { forgotten: revision, ..Self::default() }
    }

    pub(super) fn push(&mut self, change: Change) {
        self.bytes += change.bytes();
        self.changes.push_back(change);
        self.keep(MAX_CHANGES, MAX_BYTES);
    }

    /// Keeps only the last of it.
    pub(super) fn shorten(&mut self) {
        self.keep(MAX_CHANGES, MAX_BYTES_AFTER_THE_END);
    }

    fn keep(&mut self, changes: usize, bytes: usize) {
        while self.changes.len() > changes || self.bytes > bytes {
            let Some(dropped) = self.changes.pop_front() else { break };
            self.bytes -= dropped.bytes();
            self.forgotten = dropped.revision;
        }
    }

    /// Changes after `revision`, oldest first.
    pub(super) fn since(&self, revision: u64) -> Result<impl Iterator<Item = &Change> + use<'_>, Forgotten> {
        if revision < self.forgotten {
            return Err(Forgotten { oldest: self.forgotten });
        }
        let first = self.changes.partition_point(|change| change.revision <= revision);
        Ok(self.changes.range(first..))
    }
}
