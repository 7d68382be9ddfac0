//! Tables of the docs that are written by hand say what the code reads, and nothing else.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

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
fn figures_of_ours_are_those_of_the_page_on_metrics() {
    let is_figure = |text: &str| {
        ["evenkeel_", "strimzi_"].iter().any(|prefix| text.strip_prefix(prefix).is_some_and(|rest| !rest.is_empty()))
            && text.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_')
    };
    let sources = ["crates/operator/src/figures.rs", "crates/engine/src/metrics.rs", "crates/engine/src/serve/mod.rs"];
    let told: BTreeSet<String> =
        sources.iter().flat_map(|source| quoted(source)).filter(|text| is_figure(text)).collect();
    assert!(told.len() > 20, "{told:?}");
    let page = text_of("docs/metrics.md");
    let mut listed = BTreeSet::new();
    for cell in page.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next()) {
        let names: Vec<&str> = cell.split('`').skip(1).step_by(2).collect();
        let Some(first) = names.first().filter(|name| is_figure(name)) else { continue };
        for name in &names {
            // Of a family only the first is named in full, and of the others how they end: `a_sum`, `…_count`.
            let family =
                |ending: &str| told.iter().find(|it| it.ends_with(ending) && shares_a_family(it, first)).cloned();
            let whole = name.strip_prefix('…').map_or_else(|| Some((*name).to_owned()), family);
            listed.insert(whole.unwrap_or_else(|| format!("{first}, {name}")));
        }
    }
    assert_eq!(listed, told);
}

/// Whether two figures differ in how they end alone.
fn shares_a_family(one: &str, other: &str) -> bool {
    let common = one.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
    one.get(..common).is_some_and(|shared| shared.matches('_').count() >= 2)
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
            !["hash", "generation", "revision", "strimzi.io/storage", "delete-claim", "stopped-for", "asked-of"]
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

/// README and all pages of docs, as one text.
fn pages_for_users() -> String {
    let files = fs::read_dir(root().join("docs")).unwrap().map(|file| file.unwrap().path());
    let pages: String = files.filter(|path| path.is_file()).map(|path| fs::read_to_string(path).unwrap()).collect();
    text_of("README.md") + &pages
}

/// What the program says of itself.
fn help(arguments: &[&str]) -> String {
    let output =
        Command::new(env!("CARGO_BIN_EXE_evenkeel")).args(arguments).arg("--help").output().expect("it starts");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_option_is_in_some_page() {
    let pages = pages_for_users();
    let words: BTreeSet<&str> = pages.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').collect();
    let all = help(&[]);
    let (_, commands) = all.split_once("Commands:\n").expect("the commands");
    let commands = commands.split("\n\n").next().unwrap_or_default().lines();
    let commands = commands.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help");
    let (mut unknown, mut known) = (Vec::new(), 0);
    for command in commands {
        let help = help(&[command]);
        let options = help.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
        let options =
            options.flat_map(|line| line.split([' ', ',', '=', '[']).filter(|word| word.starts_with("--")).take(1));
        // A line of a description may begin with an option of another program.
        let is_whole = |option: &&str| option.chars().all(|c| c.is_ascii_lowercase() || c == '-');
        for option in options.filter(is_whole).filter(|option| *option != "--help") {
            known += 1;
            unknown.extend((!words.contains(option)).then(|| format!("{command} {option}")));
        }
    }
    assert!(unknown.is_empty() && known > 60, "of {known} options these are in no page: {unknown:?}");
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
    let pages = pages_for_users();
    let unknown: Vec<&String> = names.iter().filter(|name| !pages.contains(&format!("evenkeel {name}"))).collect();
    assert!(unknown.is_empty(), "in no page: {unknown:?}");
}

/// A parameter that nothing in the engine reads is not described as if it did something.
#[test]
fn parameters_without_effect_say_so() {
    // Read by functions of the requests themselves, and by who writes answers.
    let read_elsewhere = ["populate_disk_info", "get_response_schema", "json"];
    let is_test =
        |path: &PathBuf| path.components().any(|part| part.as_os_str().to_string_lossy().starts_with("tests"));
    let code = sources(&root().join("crates/engine/src")).into_iter().filter(|path| !is_test(path));
    let code: String = code
        .map(|path| fs::read_to_string(path).unwrap())
        .map(|text| text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().to_owned())
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

/// What stands between two quotes somewhere in the code, with whatever is put into it left out.
fn said_by_the_code() -> String {
    let files = fs::read_dir(root().join("crates")).unwrap().map(|it| it.unwrap().path().join("src"));
    let sources = files.filter(|folder| folder.is_dir()).flat_map(|folder| sources(&folder));
    let code: String = sources.map(|path| fs::read_to_string(path).unwrap()).collect();
    // A text that goes on in the next line is one text, and a quote within it is a quote.
    let mut joined = String::with_capacity(code.len());
    for line in code.lines() {
        let ends = joined.ends_with('\\');
        if ends {
            joined.pop();
        } else {
            joined.push('\n');
        }
        joined += if ends { line.trim_start() } else { line };
    }
    joined.replace("\\\"", "\"")
}

/// People search for the words that they see.
#[test]
fn quoted_messages_are_those_of_the_code() {
    let page = text_of("docs/troubleshooting.md");
    let code = said_by_the_code();
    let (_, messages) = page.split_once("\n### Messages of a KafkaRebalance\n").expect("the messages");
    let messages = messages.split("\n## ").next().unwrap_or_default();
    let rows = messages.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let mut quotes: Vec<&str> =
        rows.filter(|cell| *cell != "the message says").flat_map(|cell| cell.split("; ")).collect();
    let tables = page.lines().filter(|line| line.starts_with("| "));
    quotes
        .extend(tables.flat_map(|line| line.split(" | ").take(2)).flat_map(|cell| cell.split('"').skip(1).step_by(2)));
    assert!(quotes.len() > 30, "{quotes:?}");
    // What others say: kubelets, API servers and compilers.
    let foreign = ["violates PodSecurity", "error: linker"];
    let mut unsaid = Vec::new();
    for quote in quotes.into_iter().filter(|quote| !foreign.iter().any(|it| quote.starts_with(it))) {
        let parts = quote.split(['…', '`', '[', ']']).map(str::trim).filter(|part| part.len() > 2);
        unsaid.extend(parts.filter(|part| !code.contains(*part)).map(|part| format!("{part} (of: {quote})")));
    }
    assert!(unsaid.is_empty(), "docs/troubleshooting.md quotes what nothing says:\n{}", unsaid.join("\n"));
}
