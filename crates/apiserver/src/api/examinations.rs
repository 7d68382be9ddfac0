//! What was found out about the schemas of definitions, and by whom.
//!
//! To examine a definition takes as long as its author likes, within limits, and nobody is answered while the API is
//! locked. So whoever holds the lock can have it done elsewhere: a write of a definition that was not examined yet is
//! refused, the API says what is to be examined, and the write is tried again with the result.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::Api;
use crate::object::Object;
use crate::refusal::Refusal;
use crate::resource::crd::Examined;

#[derive(Debug, Default)]
pub(super) struct Examinations {
    /// Of every definition that is stored, by its name.
    stored: BTreeMap<String, Arc<Examined>>,
    /// Of the definition that is being written.
    fresh: Option<Arc<Examined>>,
    /// Whether somebody else does it for the write that is going on.
    elsewhere: bool,
    /// The definition that somebody else is to examine.
    wanted: Option<Value>,
}

impl Examinations {
    /// What is known of a definition. A refusal is for nobody to see: it only ends this attempt.
    pub(super) fn of(&mut self, definition: &Value) -> Result<Arc<Examined>, Refusal> {
        if let Some(known) = self.known(definition) {
            return Ok(known);
        }
        if self.elsewhere {
            self.wanted = Some(definition.clone());
            return Err(Refusal::new(500, "InternalError", "the definition was not examined yet"));
        }
        let examined = Arc::new(Examined::of(definition));
        self.fresh = Some(examined.clone());
        Ok(examined)
    }

    fn known(&self, definition: &Value) -> Option<Arc<Examined>> {
        let mut known = self.stored.get(definition.name()).into_iter().chain(&self.fresh);
        known.find(|examined| examined.is_of(definition)).cloned()
    }

    /// Remembers what is known of a definition that is stored now.
    pub(super) fn keep(&mut self, definition: &Value) -> Option<Arc<Examined>> {
        let examined = self.known(definition)?;
        self.stored.insert(definition.name().to_owned(), examined.clone());
        Some(examined)
    }

    /// A definition is gone.
    pub(super) fn forget(&mut self, name: &str) {
        self.stored.remove(name);
    }
}

impl Api {
    /// Attempts a write without examining any definition. Instead of an outcome it may say which one is to be examined
    /// first: then nothing was written, and the attempt is to be made again with the result.
    pub fn attempt<T>(
        &mut self,
        examined: Option<Examined>,
        write: impl FnOnce(&mut Self) -> Result<T, Refusal>,
    ) -> Result<Result<T, Refusal>, Value> {
        self.examinations.fresh = examined.map(Arc::new);
        self.examinations.elsewhere = true;
        let outcome = write(self);
        self.examinations.fresh = None;
        self.examinations.elsewhere = false;
        match self.examinations.wanted.take() {
            Some(definition) => Err(definition),
            None => Ok(outcome),
        }
    }
}
