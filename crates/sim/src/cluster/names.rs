//! What topics may be called.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::code::{Code, Refusal};

/// The longest name of a topic.
const LIMIT: usize = 249;

/// Whether a topic could have this name.
pub(super) fn check(name: &str) -> Result<(), Refusal> {
    let refuse = |why: String| Err(Code::InvalidTopic.because(why));
    if name.is_empty() {
        return refuse("Topic name is invalid: the empty string is not allowed".to_owned());
    }
    if name == "." || name == ".." {
        return refuse(format!("Topic name is invalid: '{name}' is not allowed"));
    }
    if name.len() > LIMIT {
        return refuse(format!(
            "Topic name is invalid: the length of '{name}' is longer than the max allowed length {LIMIT}"
        ));
    }
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-')) {
        return refuse(format!(
            "Topic name is invalid: '{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
        ));
    }
    Ok(())
}

/// The names there are, as metrics spell them: there a full stop and an underscore are one, so that no two topics may
/// differ in nothing else.
#[derive(Clone, Debug, Default)]
pub(super) struct Alike {
    by_shape: BTreeMap<String, BTreeSet<Arc<str>>>,
}

impl Alike {
    /// Whether a new topic can be told from all others.
    pub(super) fn check(&self, name: &str) -> Result<(), Refusal> {
        let other = shape(name).and_then(|shape| self.by_shape.get(&shape)?.first());
        let Some(other) = other else { return Ok(()) };
        Err(Code::InvalidTopic.because(format!("Topic '{name}' collides with existing topic: {other}")))
    }

    pub(super) fn add(&mut self, name: &Arc<str>) {
        if let Some(shape) = shape(name) {
            self.by_shape.entry(shape).or_default().insert(name.clone());
        }
    }

    pub(super) fn remove(&mut self, name: &str) {
        let Some(shape) = shape(name) else { return };
        let Some(names) = self.by_shape.get_mut(&shape) else { return };
        names.remove(name);
        if names.is_empty() {
            self.by_shape.remove(&shape);
        }
    }
}

/// What a name has in common with those that look like it; nothing does if it has neither of the two.
fn shape(name: &str) -> Option<String> {
    name.contains(['.', '_']).then(|| name.replace('.', "_"))
}
