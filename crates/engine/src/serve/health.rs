//! Whether the engine can do its work, for whoever decides to send requests here.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

/// The part that is about tasks of ours that must not end. What it complains of does not pass by itself: whoever starts
/// engines has to start this one again, and is told so by `/healthz`.
pub const WORK: &str = "work";

/// What keeps the engine from its work, by part. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Readiness {
    troubles: Arc<Mutex<BTreeMap<&'static str, String>>>,
}

impl Readiness {
    /// A part says what keeps it from its work, or that nothing does any more.
    pub fn set(&self, part: &'static str, trouble: Option<String>) {
        let mut troubles = self.troubles.lock().unwrap_or_else(PoisonError::into_inner);
        match trouble {
            Some(trouble) => troubles.insert(part, trouble),
            None => troubles.remove(part),
        };
    }

    /// What is in the way, a line for each part; `None` if nothing is.
    pub fn troubles(&self) -> Option<String> {
        let troubles = self.troubles.lock().unwrap_or_else(PoisonError::into_inner);
        let lines: Vec<String> = troubles.iter().map(|(part, trouble)| format!("{part}: {trouble}\n")).collect();
        (!lines.is_empty()).then(|| lines.concat())
    }

    /// What a part says.
    pub fn of(&self, part: &str) -> Option<String> {
        self.troubles.lock().unwrap_or_else(PoisonError::into_inner).get(part).cloned()
    }
}
