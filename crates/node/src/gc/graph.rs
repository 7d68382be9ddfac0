//! Who owns whom, and what follows from it: events in, actions out.
//!
//! The graph believes what it was told and nothing else. Before it has anything deleted for want of an owner it saw
//! that owner go, or has the server asked ([`Action::Verify`]); a deletion names the version that was judged, so that
//! the server refuses it if the object changed meanwhile. Until [`Event::Synced`], and again from [`Event::Unsynced`] on,
//! it only listens: an owner must not be let go because dependants were not yet heard of.
//!
//! Every object is judged by itself: an owner that goes only waits, and each dependant knows from its owners what to do.
//! One action at a time is under way per object, so that the number of actions grows with what happens and not with
//! how often somebody looks.

use std::collections::{BTreeMap, BTreeSet};

use super::claims::{Answer, Claims};
use super::words::{Action, Claim, Coordinates, Event, FOREGROUND, Finding, ORPHAN, Object, Owner, Propagation, Uid};

/// Everything that was heard of.
#[derive(Debug, Default)]
pub struct Graph {
    objects: BTreeMap<Uid, Object>,
    /// Owner to dependants, also for owners that were never seen.
    dependants: BTreeMap<Uid, BTreeSet<Uid>>,
    /// What the server said, or is being asked, about owners that are not in `objects`.
    claims: Claims,
    /// Objects with an action under way, and whether there was reason to look at them since.
    under_way: BTreeMap<Uid, bool>,
    synced: bool,
}

/// What becomes of an object.
enum Verdict {
    Leave,
    /// That depends on owners of which nothing is known.
    Ask(Vec<Claim>),
    Act(Action),
}

/// How an owner stands, from a dependant's point of view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Present,
    /// Present, and waiting for its dependants to go.
    Waiting,
    /// Present, and waiting for its dependants to be let go.
    Orphaning,
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
            Event::Verified(claim, finding) => self.verified(claim, finding),
            Event::Synced => {
                self.synced = true;
                self.objects.keys().cloned().collect()
            }
            Event::Unsynced => {
                self.synced = false;
                Vec::new()
            }
            Event::KindsChanged => self.ask_again(|_, finding| finding == Finding::Unresolvable),
            // An owner that was there when asked for but is not in a list since went in a gap between two watches. One
            // that is only late will be found present again.
            Event::Listed(group, kind) => {
                self.ask_again(|at, finding| finding == Finding::Present && at.group == group && at.kind == kind)
            }
            Event::Done(uid) => match self.under_way.remove(&uid) {
                Some(true) => vec![uid],
                _ => Vec::new(),
            },
            Event::Recheck(uid) => {
                self.under_way.remove(&uid);
                vec![uid]
            }
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
        self.claims.forget(&uid);
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

    /// Takes over an answer; returns whom to look at.
    fn verified(&mut self, claim: Claim, finding: Finding) -> Vec<Uid> {
        match self.claims.get(&claim) {
            // Nobody claims it any longer, or the owner was seen meanwhile, or even seen to go: an answer given before
            // that is worth nothing.
            None | Some(Answer::Known(Finding::Absent)) => Vec::new(),
            Some(_) => {
                let dependants = self.dependants_of(&claim.uid);
                self.claims.note(claim, Answer::Known(finding));
                dependants
            }
        }
    }

    /// Forgets such answers; returns whom to look at.
    fn ask_again(&mut self, such: impl Fn(&Coordinates, Finding) -> bool) -> Vec<Uid> {
        let open = self.claims.forget_such(such);
        open.iter().flat_map(|owner| self.dependants_of(owner)).collect()
    }

    /// Drops an object; returns whom to look at.
    fn gone(&mut self, uid: &Uid) -> Vec<Uid> {
        self.under_way.remove(uid);
        let Some(object) = self.objects.remove(uid) else { return Vec::new() };
        let dependants = self.dependants_of(uid);
        for dependant in &dependants {
            let Some(dependant) = self.objects.get(dependant) else { continue };
            for owner in dependant.owners.iter().filter(|owner| owner.uid == *uid) {
                // A uid never comes back, so nobody needs to be asked.
                self.claims.note(claim(dependant, owner), Answer::Known(Finding::Absent));
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
        if let Some(look_again) = self.under_way.get_mut(uid) {
            *look_again = true;
            return Vec::new();
        }
        let (action, unknown) = match self.verdict(object) {
            Verdict::Leave => (None, Vec::new()),
            Verdict::Ask(claims) => (None, claims),
            Verdict::Act(action) => (Some(action), Vec::new()),
        };
        if action.is_some() {
            self.under_way.insert(uid.clone(), false);
        }
        let asked = unknown.into_iter().filter(|claim| self.claims.note(claim.clone(), Answer::Asked).is_none());
        let asked: Vec<_> = asked.map(Action::Verify).collect();
        asked.into_iter().chain(action).collect()
    }

    fn verdict(&self, object: Object) -> Verdict {
        let having = |standing| -> BTreeSet<Uid> {
            let fits = |owner: &&Owner| self.standing(&object, owner) == standing;
            object.owners.iter().filter(fits).map(|owner| owner.uid.clone()).collect()
        };
        let (waiting, absent) = (having(Standing::Waiting), having(Standing::Absent));
        let orphaning = having(Standing::Orphaning);
        if !orphaning.is_empty() {
            // Together with all others that are lost: left with only those, what should be orphaned would be deleted.
            let lost = [orphaning, absent, waiting].into_iter().flatten().collect();
            return Verdict::Act(Action::RemoveOwners(object, lost));
        }
        if object.orphans_dependants() {
            // The finalizer goes when no dependant refers to the owner any longer.
            return match self.dependants.contains_key(&object.uid) {
                true => Verdict::Leave,
                false => Verdict::Act(Action::RemoveFinalizer(object, ORPHAN)),
            };
        }
        if object.waits_for_dependants() {
            // The finalizer goes when no dependant blocks any longer.
            return match self.dependants.get(&object.uid).into_iter().flatten().any(|uid| self.blocks(uid, &object.uid))
            {
                true => Verdict::Leave,
                false => Verdict::Act(Action::RemoveFinalizer(object, FOREGROUND)),
            };
        }
        if object.deleting || object.owners.is_empty() {
            return Verdict::Leave;
        }
        let unknown = object.owners.iter().filter(|owner| self.standing(&object, owner) == Standing::Unknown);
        let unknown: Vec<_> = unknown.map(|owner| claim(&object, owner)).collect();
        if !unknown.is_empty() {
            return Verdict::Ask(unknown);
        }
        if !having(Standing::Present).is_empty() {
            let lost: BTreeSet<Uid> = [absent, waiting].into_iter().flatten().collect();
            return if lost.is_empty() { Verdict::Leave } else { Verdict::Act(Action::RemoveOwners(object, lost)) };
        }
        let dependants = self.dependants_of(&object.uid);
        if !waiting.is_empty() && !dependants.is_empty() {
            // Each waits for the next around a circle until one of them lets go. When it has, it is judged again.
            let waits = |uid: &Uid| self.objects.get(uid).is_some_and(Object::waits_for_dependants);
            let in_circle = dependants.iter().any(waits) && object.owners.iter().any(|owner| owner.blocks);
            return Verdict::Act(match in_circle {
                true => Action::StopBlocking(object),
                false => Action::Delete(object, Propagation::Foreground),
            });
        }
        let propagation = match (object.orphan, object.foreground) {
            (true, _) => Propagation::Orphan,
            (_, true) => Propagation::Foreground,
            _ => Propagation::Background,
        };
        Verdict::Act(Action::Delete(object, propagation))
    }

    fn standing(&self, dependant: &Object, owner: &Owner) -> Standing {
        match self.objects.get(&owner.uid) {
            // It lets go of whoever refers to it, rightly or not.
            Some(seen) if seen.orphans_dependants() => Standing::Orphaning,
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
            self.claims.forget(owner);
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
