//! The costly part of admitting a definition: its patterns are measured, its schemas read, its rules compiled.
//!
//! It depends on nothing but `spec.versions`, so it can be done before anything is locked, by whoever has the time.

use std::sync::Arc;

use serde_json::Value;

use super::versions::{schema_path, share_schema};
use super::{schema_of, version_list};
use crate::object::Object;
use crate::refusal::FieldError;
use crate::schema::{Schema, patterns_are_affordable};

/// What was found out about the schemas of a definition.
#[derive(Debug)]
pub struct Examined {
    versions: Value,
    /// Whether its patterns are small enough to be compiled at all; nothing else was looked at if not.
    pub(super) is_affordable: bool,
    /// For each version its schema, or everything wrong with it; nothing where there is none.
    schemas: Vec<Option<Result<Arc<Schema>, Vec<FieldError>>>>,
}

impl Examined {
    /// Examines a definition, after [`defaulted`](super::defaulted).
    pub fn of(crd: &Value) -> Self {
        let versions = crd.at(&["spec", "versions"]).cloned().unwrap_or_default();
        let is_affordable = patterns_are_affordable(&versions);
        let mut examined = Self { versions, is_affordable, schemas: Vec::new() };
        if !is_affordable {
            return examined;
        }
        let versions = version_list(crd);
        let is_shared = share_schema(&versions);
        for (index, version) in versions.iter().enumerate() {
            let raw = schema_of(version);
            // Versions mostly have one schema, which need not be read for each of them. Only the one before is looked
            // at: comparing each with all others would take longer than reading it.
            let before = index.checked_sub(1).filter(|&at| schema_of(versions[at]) == raw);
            let known = before.and_then(|at| examined.schema(at).cloned()).map(Ok);
            let read = |raw| Schema::parse(raw, &schema_path(is_shared, index)).map(Arc::new);
            examined.schemas.push(known.or_else(|| raw.map(read)));
        }
        examined
    }

    /// Whether these are the schemas of this definition.
    pub fn is_of(&self, crd: &Value) -> bool {
        crd.at(&["spec", "versions"]).unwrap_or(&Value::Null) == &self.versions
    }

    /// The schema of a version, if it has one that is sound.
    pub(super) fn schema(&self, version: usize) -> Option<&Arc<Schema>> {
        self.schemas.get(version)?.as_ref()?.as_ref().ok()
    }

    /// What is wrong with the schema of a version.
    pub(super) fn faults(&self, version: usize) -> &[FieldError] {
        match self.schemas.get(version) {
            Some(Some(Err(faults))) => faults,
            _ => &[],
        }
    }
}
