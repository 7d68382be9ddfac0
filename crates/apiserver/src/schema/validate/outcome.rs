//! The faults of one value, gathered on the way up.

use std::cell::Cell;

use serde_json::Value;

use crate::refusal::{Fault, FieldError, Findings, Told};
use crate::schema::gotext;
use crate::schema::path::Path;

/// How much text is made about the faults of one value, also about those that are forgiven or belong to an alternative
/// that is not told: each names the whole path to it.
const MAX_TEXT: usize = 16 << 20;

/// How many steps are taken to check one object: about a second's worth. Every value is looked at by every schema that
/// says something about it, so that a large definition and a large object together could keep the server for hours.
const MAX_STEPS: u64 = 20_000_000;

/// How much was said and done about one object.
#[derive(Default)]
pub(super) struct Spent {
    text: Cell<usize>,
    steps: Cell<u64>,
}

impl Spent {
    /// Takes so many steps, or says that they would be too many.
    pub(super) fn takes(&self, steps: u64) -> bool {
        self.steps.set(self.steps.get().saturating_add(steps));
        !self.is_exhausted()
    }

    /// Whether something was left out.
    pub(super) fn is_exhausted(&self) -> bool {
        self.steps.get() > MAX_STEPS
    }
}

/// What checking one value gave.
pub(super) struct Outcome<'t> {
    /// There are faults, told or not.
    pub(super) failed: bool,
    pub(super) faults: Findings<Failed>,
    /// How many checks applied. Of several failed alternatives, the one with the most is explained.
    pub(super) applied: usize,
    /// What was said and done so far, here and elsewhere.
    pub(super) spent: &'t Spent,
}

/// A fault.
pub(super) struct Failed {
    /// The original reports one text only once.
    pub(super) text: String,
    /// What is told.
    pub(super) error: FieldError,
}

impl PartialEq for Failed {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Told for Failed {
    fn length(&self) -> usize {
        self.text.len() + self.error.length()
    }
}

impl<'t> Outcome<'t> {
    /// Nothing was looked at yet.
    pub(super) fn new(spent: &'t Spent) -> Self {
        Self { failed: false, faults: Findings::default(), applied: 0, spent }
    }

    /// Takes in what checking something else gave.
    pub(super) fn merge(&mut self, other: Self) {
        self.failed |= other.failed;
        self.applied += other.applied;
        if self.faults.is_empty() {
            self.faults = other.faults;
        } else {
            other.faults.into_told().into_iter().for_each(|fault| self.faults.tell_once(|| fault));
        }
    }

    /// A fault, which is put into words only if there is room to tell it.
    pub(super) fn push(&mut self, make: impl FnOnce() -> Failed) {
        self.failed = true;
        let spent = &self.spent.text;
        if spent.get() > MAX_TEXT {
            return;
        }
        self.faults.tell_once(|| {
            let fault = make();
            spent.set(spent.get() + fault.length());
            fault
        });
    }

    /// A fault in the most usual words.
    pub(super) fn fail(
        &mut self,
        path: &Path<'_>,
        fault: Fault,
        value: impl Into<Value>,
        says: impl std::fmt::Display,
    ) {
        self.push(|| {
            let text = format!("{} in body {says}", path.within());
            Failed { error: FieldError::with_value(path.dotted(), fault, &value.into(), text.clone()), text }
        });
    }

    /// A fault of a junctor, which belongs to no field.
    pub(super) fn fail_junctor(&mut self, path: &Path<'_>, says: &str) {
        self.push(|| {
            let text = format!("{} {says}", gotext::quoted(&path.within()));
            Failed { error: FieldError::with_value("", Fault::Invalid, &"".into(), text.clone()), text }
        });
    }

    /// More items or properties than there may be.
    pub(super) fn too_many(&mut self, path: &Path<'_>, what: &str, actual: usize, max: u64) {
        self.push(|| {
            let unit = if max == 1 { "item" } else { "items" };
            let detail = format!("must have at most {max} {unit}");
            let error = FieldError::with_value(path.dotted(), Fault::TooMany, &actual.into(), detail);
            Failed { text: format!("{} in body should have at most {max} {what}", path.within()), error }
        });
    }
}
