//! Nothing here leans on a file that a clone does not have.

use super::Finding;

/// Folders of somebody's machine. Spelled in halves, so that this file does not find itself.
const ELSEWHERE: [&str; 3] = [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];
const UP: &str = concat!(".", "./");

pub(super) fn check(path: &str, text: &str) -> Vec<Finding> {
    let depth = path.matches('/').count();
    let mut findings = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if steps_up(line) > depth {
            findings.push(Finding::at_line(path, number, "names a path above the repository"));
        }
        for folder in ELSEWHERE {
            if line.contains(folder) {
                findings.push(Finding::at_line(path, number, format!("names a path below `{folder}`")));
            }
        }
    }
    findings
}

/// The longest run of steps to the parent folder in a line.
fn steps_up(line: &str) -> usize {
    let mut longest = 0;
    let mut rest = line;
    while let Some(at) = rest.find(UP) {
        rest = &rest[at..];
        let mut steps = 0;
        while let Some(after) = rest.strip_prefix(UP) {
            rest = after;
            steps += 1;
        }
        longest = longest.max(steps);
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_climbs_out_is_refused() {
        let climb = |steps: usize| format!("see {}notes.md", UP.repeat(steps));
        assert_eq!(check("crates/api/src/lib.rs", &climb(3)), []);
        assert_eq!(check("crates/api/src/lib.rs", &climb(4)).len(), 1);
        assert_eq!(check("docs/x.md", &climb(1)), []);
        assert_eq!(check("README.md", &climb(1)).len(), 1);
    }

    #[test]
    fn a_path_of_somebodys_machine_is_refused() {
        for folder in ELSEWHERE {
            assert_eq!(check(".ci/run", &format!("cd {folder}x")).len(), 1);
        }
        assert_eq!(check(".ci/run", "cd /tmp"), []);
    }
}
