//! What the server said, or is being asked, about owners that were not seen.

use std::collections::BTreeMap;

use super::words::{Claim, Coordinates, Finding, Uid};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Asked,
    Known(Finding),
}

/// Answers by owner first: whenever an owner is seen, or lost its last dependant, all that was said about it is let go,
/// and there may be as many owners as objects.
#[derive(Debug, Default)]
pub(super) struct Claims(BTreeMap<Uid, BTreeMap<Coordinates, Answer>>);

impl Claims {
    pub(super) fn get(&self, claim: &Claim) -> Option<Answer> {
        self.0.get(&claim.uid)?.get(&claim.at).copied()
    }

    /// Notes an answer; returns the one before.
    pub(super) fn note(&mut self, claim: Claim, answer: Answer) -> Option<Answer> {
        self.0.entry(claim.uid).or_default().insert(claim.at, answer)
    }

    /// Lets go of everything about an owner.
    pub(super) fn forget(&mut self, owner: &Uid) {
        self.0.remove(owner);
    }

    /// Lets go of such answers; returns the owners that they were about.
    pub(super) fn forget_such(&mut self, such: impl Fn(&Coordinates, Finding) -> bool) -> Vec<Uid> {
        let mut about = Vec::new();
        self.0.retain(|owner, answers| {
            let before = answers.len();
            answers.retain(|at, answer| !matches!(answer, Answer::Known(known) if such(at, *known)));
            if answers.len() < before {
                about.push(owner.clone());
            }
            !answers.is_empty()
        });
        about
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
