//! Tables of the docs that are written by hand say what the code reads, and nothing else.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn text_of(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// What stands between quotes in a source file, tests left out.
fn quoted(path: &str) -> Vec<String> {
    let source = text_of(path);
    let code = source.split("#[cfg(test)]").next().unwrap_or_default();
    code.split('"').map(str::to_owned).collect()
}

/// What stands between backticks in the first cells of the tables under a heading.
fn first_cells(page: &str, heading: &str) -> BTreeSet<String> {
    let text = text_of(page);
    let (_, section) = text.split_once(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("{page}: {heading}"));
    let section = section.split("\n## ").next().unwrap_or_default();
    let cells = section.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

#[test]
fn the_operators_variables_are_those_of_its_table() {
    let is_variable = |text: &String| {
        ["STRIMZI_", "EVENKEEL_"].iter().any(|prefix| text.starts_with(prefix))
            && text.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_')
    };
    let sources = ["crates/operator/src/settings.rs", "crates/cli/src/main.rs"];
    let read: BTreeSet<String> = sources.iter().flat_map(|source| quoted(source)).filter(is_variable).collect();
    assert!(read.len() > 10, "{read:?}");
    assert_eq!(first_cells("docs/operator.md", "## Environment variables"), read);
}

#[test]
fn the_settings_of_automatic_rebalancing_are_those_of_its_table() {
    let ours = |text: &String| text.starts_with("evenkeel.auto.rebalance.");
    let read: BTreeSet<String> =
        quoted("crates/operator/src/auto_rebalance/settings.rs").into_iter().filter(ours).collect();
    let listed: BTreeSet<String> =
        first_cells("docs/auto-rebalancing.md", "## Settings").into_iter().filter(ours).collect();
    assert!(read.len() > 3, "{read:?}");
    assert_eq!(listed, read);
}

/// All source files below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found
}

#[test]
fn events_are_explained() {
    let mut reasons = BTreeSet::new();
    for path in sources(&root().join("crates/operator/src")) {
        let source = fs::read_to_string(path).unwrap();
        let code = source.split("#[cfg(test)]").next().unwrap_or_default();
        // Where an Event is written down by name; those of conditions have the reasons of these.
        for writing in ["Happening::normal(", "Happening::warning(", ".tell(", ".event("] {
            for call in code.split(writing).skip(1) {
                let arguments = call.split(['(', ')', ';']).next().unwrap_or_default();
                let name = arguments.split('"').nth(1).unwrap_or_default();
                let is_name = name.starts_with(char::is_uppercase) && name.chars().all(char::is_alphanumeric);
                reasons.extend(is_name.then(|| name.to_owned()));
            }
        }
    }
    assert!(reasons.len() > 5, "{reasons:?}");
    let listed = first_cells("docs/troubleshooting.md", "## Events");
    let unexplained: Vec<&String> = reasons.difference(&listed).collect();
    assert!(unexplained.is_empty(), "no row in docs/troubleshooting.md: {unexplained:?}");
}

#[test]
fn annotations_for_people_are_explained() {
    let source = text_of("crates/api/src/annotations.rs");
    let values: BTreeSet<&str> = source
        .lines()
        .filter(|line| line.starts_with("pub const "))
        .filter_map(|line| line.split('"').nth(1))
        // What the operator writes for itself on its own objects.
        .filter(|name| {
            !["hash", "generation", "revision", "strimzi.io/storage", "delete-claim", "stopped-for"]
                .iter()
                .any(|it| name.contains(it))
        })
        .collect();
    assert!(values.len() > 8, "{values:?}");
    let pages = fs::read_dir(root().join("docs")).unwrap().map(|file| file.unwrap().path());
    let pages: String = pages.filter(|page| page.is_file()).map(|page| fs::read_to_string(page).unwrap()).collect();
    let unexplained: Vec<&&str> = values.iter().filter(|name| !pages.contains(**name)).collect();
    assert!(unexplained.is_empty(), "in no page of docs: {unexplained:?}");
}

#[test]
fn no_file_of_the_engines_settings_is_forgotten() {
    // `docs.rs` looks for keys in these by name.
    let looked_at = ["connection", "detectors", "settings", "store", "webserver"];
    let keyless = ["capacity", "keys", "mod", "properties"];
    for file in fs::read_dir(root().join("crates/engine/src/config")).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        assert!(
            looked_at.contains(&name.as_str()) || keyless.contains(&name.as_str()),
            "{name}.rs: list it in docs.rs"
        );
    }
}

#[test]
fn every_subcommand_is_in_some_page() {
    let source = text_of("crates/cli/src/main.rs");
    let (_, rest) = source.split_once("enum Command {").expect("the commands");
    let commands = rest.split("\n}").next().unwrap_or_default();
    let names: Vec<String> = commands
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with(char::is_uppercase))
        .filter_map(|line| line.split(['(', ',']).next())
        .map(str::to_ascii_lowercase)
        .collect();
    assert!(names.len() > 10, "{names:?}");
    let mut pages: String = text_of("README.md");
    for file in fs::read_dir(root().join("docs")).unwrap() {
        let path = file.unwrap().path();
        if path.is_file() {
            pages += &fs::read_to_string(path).unwrap();
        }
    }
    let unknown: Vec<&String> = names.iter().filter(|name| !pages.contains(&format!("evenkeel {name}"))).collect();
    assert!(unknown.is_empty(), "in no page: {unknown:?}");
}

/// A parameter that nothing in the engine reads is not described as if it did something.
#[test]
fn parameters_without_effect_say_so() {
    // Read by functions of the requests themselves, and by who writes answers.
    let read_elsewhere = ["populate_disk_info", "get_response_schema", "json"];
    let is_test = |path: &PathBuf| path.components().any(|part| part.as_os_str().to_string_lossy().starts_with("tests"));
    let code = sources(&root().join("crates/engine/src")).into_iter().filter(|path| !is_test(path));
    let code: String = code
        .map(|path| fs::read_to_string(path).unwrap())
        .map(|text| text.split("#[cfg(test)]").next().unwrap_or_default().to_owned())
        .collect();
    let words: BTreeSet<&str> = code.split(|letter: char| !letter.is_alphanumeric() && letter != '_').collect();
    let page = text_of("docs/rest.md");
    let (_, parameters) = page.split_once("\n## Parameters of all endpoints\n").expect("the parameters");
    let mut unread = 0;
    for row in parameters.lines().filter_map(|line| line.strip_prefix("| `")) {
        let name = row.split('`').next().unwrap_or_default();
        if !words.contains(name) && !read_elsewhere.contains(&name) {
            assert!(row.contains("without effect") || row.contains("Refused"), "{row}");
            unread += 1;
        }
    }
    assert!(unread > 3, "the words are those of the code");
}
