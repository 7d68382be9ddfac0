//! Schemas as the CRDs have them, and the manifests in `examples/`.
//!
//! What an API server makes of them (defaults, structure, rules) is promised by an API server, ours and the real one:
//! `promises/resources.rs` and `promises/resource_rules.rs` of the testkit.

use std::{fs, path::PathBuf};

use evenkeel_api::crds;
use serde_json::Value;

/// The schema of a kind in a version, as JSON.
pub(crate) fn schema(kind: &str, version: &str) -> Value {
    let crd = crds().into_iter().find(|crd| crd.spec.names.kind == kind).unwrap_or_else(|| panic!("no CRD for {kind}"));
    let version = crd.spec.versions.into_iter().find(|served| served.name == version);
    serde_json::to_value(version.expect("a served version").schema.unwrap().open_api_v3_schema.unwrap()).unwrap()
}

/// All documents of all files in `examples/`, with the name of their file.
pub(crate) fn examples() -> Vec<(String, String, Vec<Value>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "looked in the wrong place");
    files
        .into_iter()
        .map(|path| {
            let text = fs::read_to_string(&path).unwrap();
            let documents = serde_saphyr::from_multiple(&text).unwrap_or_else(|error| panic!("{path:?}: {error}"));
            (path.file_name().unwrap().to_string_lossy().into_owned(), text, documents)
        })
        .collect()
}
