//! Why a configuration was not applied.

use super::fields::FieldSet;
use super::managers::{Manager, Managers};
use super::path::{Path, show};
use crate::refusal::{Cause, Refusal};

/// A field that somebody else owns and wants to be different.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// Who.
    pub manager: Manager,
    /// Which field.
    pub path: Path,
}

/// Why a configuration was not applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// It says who owns its fields; that is for the server to know.
    #[error("metadata.managedFields must be nil")]
    ManagedFieldsGiven,
    /// It does not fit the schema.
    #[error("{0}")]
    Unreadable(String),
    /// Others own what it would change.
    #[error("{}", message(.0))]
    Conflicts(Vec<Conflict>),
}

impl From<ApplyError> for Refusal {
    fn from(error: ApplyError) -> Self {
        let message = error.to_string();
        match error {
            ApplyError::ManagedFieldsGiven => Self::bad_request(message),
            // The original has no words for this but the message.
            ApplyError::Unreadable(_) => Self::new(500, "", message),
            ApplyError::Conflicts(conflicts) => {
                let cause = |conflict: &Conflict| Cause {
                    reason: "FieldManagerConflict".to_owned(),
                    message: format!("conflict with {}", conflict.manager),
                    field: show(&conflict.path),
                };
                Self::new(409, "Conflict", message).because(conflicts.iter().map(cause).collect())
            }
        }
    }
}

/// What would be taken from whom.
pub(super) fn between(managers: &Managers, taken: &FieldSet) -> Vec<Conflict> {
    let mut entries: Vec<_> = managers.iter().collect();
    entries.sort_by(|a, b| a.manager.order().cmp(&b.manager.order()));
    let of = |(manager, set): (&Manager, FieldSet)| {
        let manager = manager.clone();
        set.paths().into_iter().map(move |path| Conflict { manager: manager.clone(), path })
    };
    entries.into_iter().map(|e| (&e.manager, e.set.intersection(taken))).flat_map(of).collect()
}

fn message(conflicts: &[Conflict]) -> String {
    if let [one] = conflicts {
        return format!("Apply failed with 1 conflict: conflict with {}: {}", one.manager, show(&one.path));
    }
    let mut lines = Vec::new();
    let mut last = None;
    for conflict in conflicts {
        if last != Some(&conflict.manager) {
            lines.push(format!("conflicts with {}:", conflict.manager));
            last = Some(&conflict.manager);
        }
        lines.push(format!("- {}", show(&conflict.path)));
    }
    format!("Apply failed with {} conflicts: {}", conflicts.len(), lines.join("\n"))
}
