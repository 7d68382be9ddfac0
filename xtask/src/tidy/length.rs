//! A file that needs scrolling for minutes wants to be two files.

use super::{Finding, is_rust};

const LIMIT: usize = 800;

/// Longer files that stay as they are, each with its reason.
const LONGER: [(&str, &str); 0] = [];

pub(super) fn check(path: &str, text: &str) -> Option<Finding> {
    if !is_rust(path) || LONGER.iter().any(|(listed, _)| *listed == path) {
        return None;
    }
    let lines = text.lines().count();
    (lines > LIMIT)
        .then(|| Finding::in_file(path, format!("{lines} lines; split it, or list it with a reason (limit {LIMIT})")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_file_over_the_limit_is_refused() {
        assert_eq!(check("a.rs", &"x\n".repeat(LIMIT)), None);
        assert!(check("a.rs", &"x\n".repeat(LIMIT + 1)).is_some());
        assert_eq!(check("a.yaml", &"x\n".repeat(LIMIT + 1)), None);
    }
}
