//! What the graph hears and says.

use std::collections::BTreeSet;

/// Identifies an object over its whole life.
pub type Uid = String;

/// Group and kind, and where and under which name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Coordinates {
    /// API group; empty for the core group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Namespace; `None` at cluster scope.
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
}

/// A reference from a dependant to its owner.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    /// Group of the owner.
    pub group: String,
    /// Kind of the owner.
    pub kind: String,
    /// Name of the owner.
    pub name: String,
    /// Uid of the owner.
    pub uid: Uid,
    /// The owner's foreground deletion waits for this dependant.
    pub blocks: bool,
}

/// What of an object matters here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// Which object.
    pub uid: Uid,
    /// Where it is.
    pub at: Coordinates,
    /// The version that was seen.
    pub version: String,
    /// Its owners.
    pub owners: Vec<Owner>,
    /// Deletion was asked for.
    pub deleting: bool,
    /// It carries the finalizer of foreground deletion.
    pub foreground: bool,
    /// It carries the finalizer of orphaning.
    pub orphan: bool,
}

impl Object {
    /// It waits for its dependants before it goes.
    pub(super) fn waits_for_dependants(&self) -> bool {
        self.deleting && self.foreground
    }

    /// It waits for its dependants to be let go.
    pub(super) fn orphans_dependants(&self) -> bool {
        self.deleting && self.orphan
    }
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// An object is there, in this state.
    Seen(Object),
    /// An object is no longer there.
    Gone(Uid),
    /// The answer to [`Action::Verify`].
    Verified(Claim, Finding),
    /// Every kind that is known has been listed.
    Synced,
    /// A kind came whose objects are not known yet; [`Event::Synced`] comes again when they are.
    Unsynced,
    /// Kinds came or went: what could not be asked before may be asked now.
    KindsChanged,
    /// A list of all objects of this group and kind is in.
    Listed(String, String),
    /// The action about this object was carried out. What came of it is told by [`Event::Seen`] or [`Event::Gone`].
    Done(Uid),
    /// The action about this object did not work out; look again.
    Recheck(Uid),
}

/// An owner as a dependant claims it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Claim {
    /// Where the owner would be: in the dependant's namespace, unless its kind is cluster-scoped.
    pub at: Coordinates,
    /// Which object it would be.
    pub uid: Uid,
}

/// What the server says about a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finding {
    /// There is such an object with that uid.
    Present,
    /// There is none, or it is another one.
    Absent,
    /// The kind is not served, or cannot be looked up from there. Nothing may be concluded.
    Unresolvable,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Ask the server whether the claimed owner exists.
    Verify(Claim),
    /// Delete the object, if it still is what was judged.
    Delete(Object, Propagation),
    /// Remove references to these owners.
    RemoveOwners(Object, BTreeSet<Uid>),
    /// Let no owner wait for this object any longer: it is part of a circle.
    StopBlocking(Object),
    /// Remove one of our finalizers.
    RemoveFinalizer(Object, &'static str),
}

/// What happens to the dependants of what is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Propagation {
    /// They follow.
    Background,
    /// They go first.
    Foreground,
    /// They stay.
    Orphan,
}

/// Finalizer of foreground deletion.
pub const FOREGROUND: &str = "foregroundDeletion";
/// Finalizer of orphaning.
pub const ORPHAN: &str = "orphan";
