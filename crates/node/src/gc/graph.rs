//! Who owns whom, and what follows from it: events in, actions out.
//!
//! The graph believes what it was told and nothing else. Before it has anything deleted for want of an owner it saw
//! that owner go, or has the server asked ([`Action::Verify`]); a deletion names the version that was judged, so that
//! the server refuses it if the object changed meanwhile. Until [`Event::Synced`] it only listens: an owner must not be
//! let go because dependants were not yet heard of.

use std::collections::{BTreeMap, BTreeSet};

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
    fn waits_for_dependants(&self) -> bool {
        self.deleting && self.foreground
    }

    /// It waits for its dependants to be let go.
    fn orphans_dependants(&self) -> bool {
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
    /// Every kind known at the start has been listed.
    Synced,
    /// Kinds came or went: what could not be asked before may be asked now.
    KindsChanged,
    /// An action about this object did not work out; look again.
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

/// Everything that was heard of.
#[derive(Debug, Default)]
pub struct Graph {
    objects: BTreeMap<Uid, Object>,
    /// Owner to dependants, also for owners that were never seen.
    dependants: BTreeMap<Uid, BTreeSet<Uid>>,
    /// What the server said, or is being asked, about owners that are not in `objects`.
    claims: BTreeMap<Claim, Answer>,
    synced: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Asked,
    Known(Finding),
}

/// How an owner stands, from a dependant's point of view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Present,
    /// Present, and waiting for its dependants to go.
    Waiting,
    Absent,
    /// Not known yet; the server is asked.
    Unknown,
}

impl Graph {
    /// Takes in what happened; returns what to do about it.
    pub fn handle(&mut self, event: Event) -> Vec<Action> {
        let look_at = match event {
            Event::Seen(object) => self.seen(object),
            Event::Gone(uid) => self.gone(&uid),
            Event::Verified(claim, finding) => {
                let dependants = self.dependants_of(&claim.uid);
                // Nobody claims it any longer: nothing to remember.
                if !dependants.is_empty() {
                    self.claims.insert(claim, Answer::Known(finding));
                }
                dependants
            }
            Event::Synced => {
                self.synced = true;
                self.objects.keys().cloned().collect()
            }
            Event::KindsChanged => {
                let unresolved = |answer: &Answer| *answer == Answer::Known(Finding::Unresolvable);
                let open: Vec<_> = self.claims.extract_if(.., |_, answer| unresolved(answer)).map(|(c, _)| c).collect();
                open.iter().flat_map(|claim| self.dependants_of(&claim.uid)).collect()
            }
            Event::Recheck(uid) => vec![uid],
        };
        if !self.synced {
            return Vec::new();
        }
        let unique: BTreeSet<Uid> = look_at.into_iter().collect();
        unique.iter().flat_map(|uid| self.judge(uid)).collect()
    }

    /// Takes over an object's new state; returns whom to look at.
    fn seen(&mut self, object: Object) -> Vec<Uid> {
        let uid = object.uid.clone();
        self.claims.retain(|claim, _| claim.uid != uid);
        for owner in &object.owners {
            self.dependants.entry(owner.uid.clone()).or_default().insert(uid.clone());
        }
        let before = self.objects.insert(uid.clone(), object.clone());
        let Some(before) = before else {
            let mut look_at = self.dependants_of(&uid);
            look_at.push(uid);
            return look_at;
        };
        let mut look_at = Vec::new();
        if before.owners != object.owners {
            for owner in before.owners.iter().filter(|owner| !object.owners.contains(owner)) {
                if object.owners.iter().all(|still| still.uid != owner.uid) {
                    self.forget_dependant(&owner.uid, &uid);
                }
                look_at.push(owner.uid.clone());
            }
            look_at.push(uid.clone());
        }
        let state = |object: &Object| (object.deleting, object.foreground, object.orphan);
        if state(&before) != state(&object) {
            look_at.extend(self.dependants_of(&uid));
            look_at.push(uid);
        }
        look_at
    }

    /// Drops an object; returns whom to look at.
    fn gone(&mut self, uid: &Uid) -> Vec<Uid> {
        let Some(object) = self.objects.remove(uid) else { return Vec::new() };
        let dependants = self.dependants_of(uid);
        for dependant in &dependants {
            let Some(dependant) = self.objects.get(dependant) else { continue };
            for owner in dependant.owners.iter().filter(|owner| owner.uid == *uid) {
                // A uid never comes back, so nobody needs to be asked.
                self.claims.insert(claim(dependant, owner), Answer::Known(Finding::Absent));
            }
        }
        for owner in &object.owners {
            self.forget_dependant(&owner.uid, uid);
        }
        object.owners.into_iter().map(|owner| owner.uid).chain(dependants).collect()
    }

    /// What to do about one object now.
    fn judge(&mut self, uid: &Uid) -> Vec<Action> {
        let Some(object) = self.objects.get(uid).cloned() else { return Vec::new() };
        if object.orphans_dependants() {
            return self.release_dependants(object);
        }
        if object.waits_for_dependants() {
            return self.wait_for_dependants(object);
        }
        if object.deleting || object.owners.is_empty() {
            return Vec::new();
        }
        self.judge_by_owners(object)
    }

    fn judge_by_owners(&mut self, object: Object) -> Vec<Action> {
        let mut asked = Vec::new();
        let by_standing = |standing| -> BTreeSet<Uid> {
            let fits = |owner: &&Owner| self.standing(&object, owner) == standing;
            object.owners.iter().filter(fits).map(|owner| owner.uid.clone()).collect()
        };
        let (present, waiting) = (by_standing(Standing::Present), by_standing(Standing::Waiting));
        let (absent, unknown) = (by_standing(Standing::Absent), by_standing(Standing::Unknown));
        if !unknown.is_empty() {
            for owner in object.owners.iter().filter(|owner| unknown.contains(&owner.uid)) {
                let claim = claim(&object, owner);
                if self.claims.insert(claim.clone(), Answer::Asked).is_none() {
                    asked.push(Action::Verify(claim));
                }
            }
            return asked;
        }
        if !present.is_empty() {
            let lost: BTreeSet<Uid> = absent.union(&waiting).cloned().collect();
            return if lost.is_empty() { Vec::new() } else { vec![Action::RemoveOwners(object, lost)] };
        }
        let dependants = self.dependants_of(&object.uid);
        if !waiting.is_empty() && !dependants.is_empty() {
            // Each waits for the next around a circle until one of them lets go.
            let in_circle = |uid: &Uid| self.objects.get(uid).is_some_and(Object::waits_for_dependants);
            let mut actions = Vec::new();
            if dependants.iter().any(in_circle) && object.owners.iter().any(|owner| owner.blocks) {
                actions.push(Action::StopBlocking(object.clone()));
            }
            actions.push(Action::Delete(object, Propagation::Foreground));
            return actions;
        }
        let propagation = match (object.orphan, object.foreground) {
            (true, _) => Propagation::Orphan,
            (_, true) => Propagation::Foreground,
            _ => Propagation::Background,
        };
        vec![Action::Delete(object, propagation)]
    }

    /// Foreground: the finalizer goes when no dependant blocks any longer.
    fn wait_for_dependants(&mut self, object: Object) -> Vec<Action> {
        let blocking = self.dependants_of(&object.uid);
        let blocking: Vec<_> = blocking.into_iter().filter(|uid| self.blocks(uid, &object.uid)).collect();
        if blocking.is_empty() {
            return vec![Action::RemoveFinalizer(object, FOREGROUND)];
        }
        let idle = |uid: &&Uid| self.objects.get(*uid).is_some_and(|dependant| !dependant.waits_for_dependants());
        let idle: Vec<_> = blocking.iter().filter(idle).cloned().collect();
        idle.iter().flat_map(|uid| self.judge(uid)).collect()
    }

    /// Orphaning: the finalizer goes when no dependant refers to the owner any longer.
    fn release_dependants(&self, object: Object) -> Vec<Action> {
        let dependants = self.dependants_of(&object.uid);
        if dependants.is_empty() {
            return vec![Action::RemoveFinalizer(object, ORPHAN)];
        }
        let owner = BTreeSet::from([object.uid]);
        let dependants = dependants.iter().filter_map(|uid| self.objects.get(uid));
        dependants.map(|dependant| Action::RemoveOwners(dependant.clone(), owner.clone())).collect()
    }

    fn standing(&self, dependant: &Object, owner: &Owner) -> Standing {
        match self.objects.get(&owner.uid) {
            Some(seen) if answers_to(seen, dependant, owner) => match seen.waits_for_dependants() {
                true => Standing::Waiting,
                false => Standing::Present,
            },
            // Seen elsewhere or under another name: the claim is false as it stands, but that is for the server to say.
            _ => match self.claims.get(&claim(dependant, owner)) {
                Some(Answer::Known(Finding::Absent)) => Standing::Absent,
                Some(Answer::Known(_)) => Standing::Present,
                Some(Answer::Asked) | None => Standing::Unknown,
            },
        }
    }

    fn blocks(&self, dependant: &Uid, owner: &Uid) -> bool {
        let references = self.objects.get(dependant).map(|object| object.owners.as_slice()).unwrap_or_default();
        references.iter().any(|reference| reference.uid == *owner && reference.blocks)
    }

    fn dependants_of(&self, uid: &Uid) -> Vec<Uid> {
        self.dependants.get(uid).into_iter().flatten().cloned().collect()
    }

    fn forget_dependant(&mut self, owner: &Uid, dependant: &Uid) {
        let Some(dependants) = self.dependants.get_mut(owner) else { return };
        dependants.remove(dependant);
        if dependants.is_empty() {
            self.dependants.remove(owner);
            self.claims.retain(|claim, _| claim.uid != *owner);
        }
    }
}

/// The object is the one that the dependant's reference describes.
fn answers_to(seen: &Object, dependant: &Object, owner: &Owner) -> bool {
    let same_kind = seen.at.group == owner.group && seen.at.kind == owner.kind && seen.at.name == owner.name;
    same_kind && (seen.at.namespace.is_none() || seen.at.namespace == dependant.at.namespace)
}

fn claim(dependant: &Object, owner: &Owner) -> Claim {
    let (group, kind, name) = (owner.group.clone(), owner.kind.clone(), owner.name.clone());
    let at = Coordinates { group, kind, namespace: dependant.at.namespace.clone(), name };
    Claim { at, uid: owner.uid.clone() }
}

#[cfg(test)]
#[path = "graph_tests.rs"]
mod tests;
