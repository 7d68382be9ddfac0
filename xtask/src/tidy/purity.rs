//! Pure code stays pure: no waiting, no clock, no dice, no sockets, no files, and nothing that
//! iterates in another order on the next run.

use super::{Finding, has_word, is_rust};

/// Folders of pure code, and the modules in them that may touch the world.
const PURE: [(&str, &[&str]); 4] = [
    ("crates/balancer/src", &[]),
    ("crates/apiserver/src", &["http", "serve"]),
    ("crates/rest/src", &["client"]),
    ("crates/sim/src", &["serve"]),
];

/// A word, and why it has no place in a decision.
const IMPURE: [(&str, &str); 17] = [
    ("async", "it waits for nobody"),
    (".await", "it waits for nobody"),
    ("tokio::", "it needs no runtime"),
    ("kube::", "it talks to nobody"),
    ("axum::", "it talks to nobody"),
    ("TcpStream", "it talks to nobody"),
    ("TcpListener", "it talks to nobody"),
    ("UdpSocket", "it talks to nobody"),
    ("std::fs", "it reads and writes no files"),
    ("std::env", "its inputs are arguments"),
    ("std::thread", "it runs where it was called"),
    ("::now()", "time is an argument"),
    ("SystemTime", "time is an argument"),
    ("Instant", "time is an argument"),
    ("rand::", "randomness is an argument"),
    ("HashMap", "its order changes from run to run; take a BTreeMap"),
    ("HashSet", "its order changes from run to run; take a BTreeSet"),
];

/// Words that a file may use all the same, and why.
const EXCEPTIONS: [(&str, &str, &str); 2] = [
    (
        "crates/apiserver/src/schema/cel/values.rs",
        "HashMap",
        "kube-cel's maps are hash maps; the original does not order them for rules either",
    ),
    (
        "crates/balancer/src/threads.rs",
        "std::thread",
        "the one place where work is split; answers come back in the order of the work",
    ),
];

pub(super) fn check(path: &str, text: &str) -> Vec<Finding> {
    if !is_rust(path) || !is_pure(path) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (number, line) in text.lines().enumerate() {
        // Comments may explain what the code must not do.
        if line.trim_start().starts_with("//") {
            continue;
        }
        for (word, why) in IMPURE {
            let excepted = EXCEPTIONS.iter().any(|(file, allowed, _)| *file == path && *allowed == word);
            if has_word(line, word) && !excepted {
                findings.push(Finding::at_line(path, number, format!("`{word}` in pure code: {why}")));
            }
        }
    }
    findings
}

/// Guards the table above: a crate that is there must have files where the rule looks for them.
pub(super) fn roots_without_files(files: &[String], exists: impl Fn(&str) -> bool) -> Vec<Finding> {
    PURE.iter()
        .filter(|(root, _)| root.strip_suffix("/src").is_some_and(&exists))
        .filter(|(root, _)| !files.iter().any(|file| is_rust(file) && file.starts_with(root)))
        .map(|(root, _)| Finding::in_file(root, "has no Rust files: the purity rule looks in the wrong place"))
        .collect()
}

fn is_pure(path: &str) -> bool {
    PURE.iter().any(|(root, impure_modules)| {
        let Some(inside) = path.strip_prefix(root).and_then(|rest| rest.strip_prefix('/')) else {
            return false;
        };
        let module = inside.split('/').next().unwrap_or(inside);
        let module = module.strip_suffix(".rs").unwrap_or(module);
        !impure_modules.contains(&module)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_in_the_store_is_refused() {
        let findings =
            check("crates/apiserver/src/store/write.rs", "fn stamp() -> Timestamp {\n    Timestamp::now()\n}\n");
        assert_eq!(
            findings,
            [Finding {
                place: "crates/apiserver/src/store/write.rs:2".to_owned(),
                what: "`::now()` in pure code: time is an argument".to_owned(),
            }]
        );
    }

    #[test]
    fn every_impure_word_is_found() {
        for (word, _) in IMPURE {
            let text = format!("let x = {word} y;");
            assert!(!check("crates/balancer/src/model.rs", &text).is_empty(), "{word}");
        }
    }

    #[test]
    fn the_shell_around_the_store_may_wait() {
        let text = "pub async fn serve() { tokio::spawn(x).await }";
        for path in [
            "crates/apiserver/src/http/watch.rs",
            "crates/apiserver/src/http.rs",
            "crates/apiserver/src/serve/mod.rs",
            "crates/node/src/lib.rs",
        ] {
            assert_eq!(check(path, text), [], "{path}");
        }
        assert!(!check("crates/apiserver/src/api/http.rs", text).is_empty());
    }

    #[test]
    fn a_comment_may_name_what_the_code_avoids() {
        let text = "/// Ordered, unlike a HashMap.\nstruct Sorted(BTreeMap<A, B>);";
        assert_eq!(check("crates/balancer/src/model.rs", text), []);
    }

    #[test]
    fn a_pure_crate_that_moved_is_noticed() {
        let files = ["crates/apiserver/lib/store.rs".to_owned()];
        let there = |folder: &str| folder == "crates/apiserver";
        assert_eq!(roots_without_files(&files, there).len(), 1);
        let files = ["crates/apiserver/src/lib.rs".to_owned()];
        assert_eq!(roots_without_files(&files, there), []);
    }
}
