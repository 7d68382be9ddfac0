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
const IMPURE: [(&str, &str); 19] = [
    ("async", "it waits for nobody"),
    (".await", "it waits for nobody"),
    ("tokio::", "it needs no runtime"),
    ("kube::", "it talks to nobody"),
    ("axum::", "it talks to nobody"),
    ("TcpStream", "it talks to nobody"),
    ("TcpListener", "it talks to nobody"),
    ("UdpSocket", "it talks to nobody"),
    ("ToSocketAddrs", "it asks nobody where somebody is"),
    ("std::fs", "it reads and writes no files"),
    ("std::env", "its inputs are arguments"),
    ("std::thread", "it runs where it was called"),
    ("std::process", "it starts and ends nobody"),
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
    // Comments may explain what the code must not do.
    let is_comment = |line: &str| line.trim_start().starts_with("//");
    let code: Vec<&str> = text.lines().map(|line| if is_comment(line) { "" } else { line }).collect();
    let mut findings = Vec::new();
    for (word, why) in IMPURE {
        if EXCEPTIONS.iter().any(|(file, allowed, _)| *file == path && *allowed == word) {
            continue;
        }
        let plain = code.iter().enumerate().filter(|(_, line)| has_word(line, word)).map(|(number, _)| number);
        let mut lines: Vec<usize> = plain.chain(in_lists(&code.join("\n"), word)).collect();
        lines.sort_unstable();
        lines.dedup();
        let finding = |line| Finding::at_line(path, line, format!("`{word}` in pure code: {why}"));
        findings.extend(lines.into_iter().map(finding));
    }
    findings
}

/// The lines on which a module of the standard library (`std::fs`) is imported in a list: `use std::{env, fs as files};`,
/// over as many lines as it likes. What is used of it then is named without `std`.
fn in_lists(code: &str, word: &str) -> Vec<usize> {
    let Some(module) = word.strip_prefix("std::") else { return Vec::new() };
    let mut lines = Vec::new();
    for (at, opening) in code.match_indices("std::{") {
        let start = at + opening.len();
        let (mut depth, mut item) = (0_usize, start);
        for (offset, letter) in code[start..].char_indices() {
            let here = start + offset;
            let ends_item = depth == 0 && matches!(letter, ',' | '}');
            if ends_item {
                let name = code[item..here].trim_start();
                let first = name.split(|c: char| !c.is_alphanumeric() && c != '_').next();
                if first == Some(module) {
                    lines.push(code[..here - name.len()].matches('\n').count());
                }
                item = here + 1;
            }
            match letter {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                _ => {}
            }
        }
    }
    lines
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
    fn a_module_in_a_list_of_imports_is_found_where_it_stands() {
        let places = |text: &str| -> Vec<String> {
            check("crates/balancer/src/model.rs", text).into_iter().map(|finding| finding.place).collect()
        };
        for module in ["fs", "env", "thread", "process"] {
            let lists = [
                format!("use std::{{{module}}};"),
                format!("use std::{{cmp::Ordering, {module}, fmt}};"),
                format!("use std::{{{module} as other, fmt}};"),
                format!("use std::{{collections::{{BTreeMap, BTreeSet}}, {module}::something}};"),
                format!("use std::{{{module}::{{self, one, another}}, fmt}};"),
            ];
            for text in lists {
                assert_eq!(places(&text), ["crates/balancer/src/model.rs:1"], "{text}");
            }
        }
        assert_eq!(places("use std::{\n    fmt,\n    // fs,\n    fs,\n};\n"), ["crates/balancer/src/model.rs:4"]);
        for pure in
            ["use std::{fmt, cmp};\nlet env = fs;", "use std::{fmt};\nuse other::{fs};", "use std::{offset, fmt::fs};"]
        {
            assert_eq!(places(pure), [] as [&str; 0], "{pure}");
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
