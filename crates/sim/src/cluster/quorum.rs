//! The quorum of controllers, as far as anybody can ask for it: it keeps one log, which never fails, and its members can be told
//! to fall behind.

use std::collections::BTreeMap;

use super::Cluster;

/// The only controller of a cluster that nobody has given others.
pub(crate) const CONTROLLER: i32 = 100;

/// A controller, as the one that leads sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Voter {
    /// Its number.
    pub id: i32,
    /// How far its log reaches.
    pub log_end: i64,
    /// When it had all that there is, in milliseconds since 1970.
    pub caught_up_at: i64,
}

/// Controllers by number, and where those that have fallen behind were left.
pub(super) type Voters = BTreeMap<i32, Option<Voter>>;

impl Cluster {
    /// From now on these are the controllers, and all have caught up.
    pub fn set_voters(&mut self, ids: impl IntoIterator<Item = i32>) {
        self.voters = ids.into_iter().map(|id| (id, None)).collect();
    }

    /// A controller hears nothing any more, until [`Cluster::catch_up_voter`].
    pub fn hold_voter(&mut self, id: i32) {
        let now = self.present(id);
        if let Some(left) = self.voters.get_mut(&id) {
            left.get_or_insert(now);
        }
    }

    /// A controller has caught up with the others.
    pub fn catch_up_voter(&mut self, id: i32) {
        self.voters.insert(id, None);
    }

    /// Who leads: the first who hears what there is.
    pub fn leading_voter(&self) -> Option<i32> {
        self.voters.iter().find(|(_, left)| left.is_none()).map(|(id, _)| *id)
    }

    /// All controllers.
    pub fn voters(&self) -> impl Iterator<Item = Voter> {
        self.voters.iter().map(|(id, left)| left.unwrap_or(self.present(*id)))
    }

    fn present(&self, id: i32) -> Voter {
        Voter { id, log_end: self.metadata_offset(), caught_up_at: self.wall_clock() }
    }
}
