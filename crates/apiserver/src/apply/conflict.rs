//! Why a configuration was not applied.

use std::ops::ControlFlow;

use super::fields::FieldSet;
use super::managers::{Manager, Managers};
use super::path::show;
use crate::refusal::{Cause, Findings, Refusal, Told};

/// Fields that somebody else owns and wants to be different.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// Who.
    pub manager: Manager,
    /// Which fields.
    pub fields: FieldSet,
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
                let cause = |disputed: Disputed<'_>| Cause {
                    reason: "FieldManagerConflict".to_owned(),
                    message: format!("conflict with {}", disputed.manager),
                    field: disputed.field,
                };
                Self::new(409, "Conflict", message).because(disputed(&conflicts).into_iter().map(cause).collect())
            }
        }
    }
}

/// What would be taken from whom.
pub(super) fn between(managers: &Managers, taken: &FieldSet) -> Vec<Conflict> {
    let mut entries: Vec<_> = managers.iter().collect();
    entries.sort_by(|a, b| a.manager.order().cmp(&b.manager.order()));
    let of = |(manager, fields): (&Manager, FieldSet)| {
        (!fields.is_empty()).then(|| Conflict { manager: manager.clone(), fields })
    };
    entries.into_iter().map(|e| (&e.manager, e.set.intersection(taken))).filter_map(of).collect()
}

/// One field in dispute, as it is told.
struct Disputed<'c> {
    manager: &'c Manager,
    field: String,
}

impl Told for Disputed<'_> {
    fn length(&self) -> usize {
        let Manager { name, api_version, subresource, .. } = self.manager;
        self.field.len() + name.len() + api_version.len() + subresource.len()
    }
}

/// The fields in dispute one by one, as many as are told.
fn disputed(conflicts: &[Conflict]) -> Vec<Disputed<'_>> {
    let mut told = Findings::default();
    for Conflict { manager, fields } in conflicts {
        _ = fields.visit(|path| {
            told.tell(|| Disputed { manager, field: show(path.iter().copied()) });
            if told.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
    }
    told.into_told()
}

fn message(conflicts: &[Conflict]) -> String {
    let told = disputed(conflicts);
    let all: usize = conflicts.iter().map(|conflict| conflict.fields.len()).sum();
    if let ([one], 1) = (told.as_slice(), all) {
        return format!("Apply failed with 1 conflict: conflict with {}: {}", one.manager, one.field);
    }
    let mut lines = Vec::new();
    let mut last = None;
    for Disputed { manager, field } in &told {
        if last != Some(manager) {
            lines.push(format!("conflicts with {manager}:"));
            last = Some(manager);
        }
        lines.push(format!("- {field}"));
    }
    if told.len() < all {
        lines.push("and more".to_owned());
    }
    format!("Apply failed with {all} conflicts: {}", lines.join("\n"))
}
