//! No notes to self in the code: what is left to do is an issue, or is done.

use std::path::Path;

use super::{Finding, has_word};

/// Spelled in halves, so that this file does not find itself.
const MARKERS: [&str; 4] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X"), concat!("to", "do!(")];

pub(super) fn check(path: &str, text: &str) -> Vec<Finding> {
    if !is_written_by_us(path) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for marker in MARKERS {
            if has_word(line, marker) {
                findings.push(Finding::at_line(path, number, format!("`{marker}`: finish it or file it")));
            }
        }
    }
    findings
}

/// Generated YAML and JSON carry Kubernetes' own notes to self; those are not ours to finish.
fn is_written_by_us(path: &str) -> bool {
    match Path::new(path).extension().and_then(|extension| extension.to_str()) {
        Some(extension) => matches!(extension, "rs" | "go" | "md" | "toml" | "sh"),
        None => path.starts_with(".ci/"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_marker_is_found_where_we_write() {
        for marker in MARKERS {
            let text = format!("fn a() {{}}\n// {marker} x");
            for path in ["crates/api/src/lib.rs", "README.md", "real/kubetest/main.go", ".ci/run"] {
                let findings = check(path, &text);
                assert_eq!(findings.len(), 1, "{marker} in {path}");
                assert_eq!(findings[0].place, format!("{path}:2"));
            }
        }
    }

    #[test]
    fn generated_files_and_longer_names_are_left_alone() {
        let note = format!("# {}: upstream's own", MARKERS[0]);
        assert_eq!(check("deploy/crds/kafkas.yaml", &note), []);
        assert_eq!(check("a.rs", &format!("{}S_DONE", MARKERS[0])), []);
    }
}
