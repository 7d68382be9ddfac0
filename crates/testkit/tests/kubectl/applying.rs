//! apply in both forms, diff, create and replace.

use crate::terminal::{Terminal, widget};

scenes!(
    apply_creates_configures_and_leaves_alone,
    apply_takes_away_what_left_the_file,
    apply_merges_builtin_kinds,
    apply_server_side_conflicts_and_is_forced,
    a_field_that_nobody_knows_is_refused_or_warned_about,
    a_kind_that_is_not_there_is_told_as_such,
    diff_shows_what_would_change,
    create_takes_files_and_arguments,
    replace_needs_what_is_there,
    a_dry_run_changes_nothing,
);

fn apply(terminal: &Terminal, text: &str, outcome: &str) {
    terminal.feed(&["apply", "-f", "-"], text).prints(outcome);
}

fn field(terminal: &Terminal, path: &str) -> String {
    terminal.run(&["get", "widget", "a", "-o", &format!("jsonpath={path}")]).ok()
}

fn apply_creates_configures_and_leaves_alone(terminal: &Terminal) {
    apply(terminal, &widget("a", "{size: small}"), "widget.scenes.example.com/a created");
    apply(terminal, &widget("a", "{size: small}"), "widget.scenes.example.com/a unchanged");
    apply(terminal, &widget("a", "{size: large}"), "widget.scenes.example.com/a configured");
    assert_eq!(field(terminal, "{.spec.size}"), "large");
}

fn apply_takes_away_what_left_the_file(terminal: &Terminal) {
    apply(terminal, &widget("a", "{size: small, note: mine}"), "widget.scenes.example.com/a created");
    terminal.run(&["patch", "widget", "a", "--type=merge", "-p", r#"{"spec":{"replicas":4}}"#]).ok();
    apply(terminal, &widget("a", "{size: small}"), "widget.scenes.example.com/a configured");
    assert_eq!(field(terminal, "{.spec.note}/{.spec.replicas}"), "/4", "what others set stays");
}

fn deployment(image: &str, extra: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: d}}\nspec:\n  selector: {{matchLabels: {{app: d}}}}\n  \
         template:\n    metadata: {{labels: {{app: d}}}}\n    spec:\n      containers:\n      - {{name: main, image: '{image}'}}\n{extra}"
    )
}

fn apply_merges_builtin_kinds(terminal: &Terminal) {
    apply(terminal, &deployment("i:1", ""), "deployment.apps/d created");
    let sidecar = r#"{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"s:1"}]}}}}"#;
    terminal.run(&["patch", "deployment", "d", "-p", sidecar]).prints("deployment.apps/d patched");
    apply(terminal, &deployment("i:2", ""), "deployment.apps/d configured");
    let images =
        terminal.run(&["get", "deployment", "d", "-o", "jsonpath={.spec.template.spec.containers[*].image}"]).ok();
    let mut images: Vec<_> = images.split(' ').collect();
    images.sort_unstable();
    assert_eq!(images, ["i:2", "s:1"], "the container that somebody else added stays");
    terminal.run(&["set", "image", "deployment/d", "main=i:3"]).prints("deployment.apps/d image updated");
}

fn apply_server_side_conflicts_and_is_forced(terminal: &Terminal) {
    let server_side = ["apply", "--server-side", "-f", "-", "--field-manager"];
    let with = |manager: &'static str| [server_side.as_slice(), &[manager]].concat();
    let applied = "widget.scenes.example.com/a serverside-applied";
    terminal.feed(&with("alice"), &widget("a", "{size: small}")).prints(applied);
    let refused = terminal.feed(&with("bob"), &widget("a", "{size: large}"));
    assert!(refused.err.contains("Apply failed with 1 conflict: conflict with \"alice\": .spec.size"), "{refused:?}");
    refused.fails_with("Please review the fields above--they currently have other managers.");
    let forced = [with("bob").as_slice(), &["--force-conflicts"]].concat();
    terminal.feed(&forced, &widget("a", "{size: large}")).prints(applied);
    terminal.feed(&with("carol"), &widget("a", "{ports: [{name: http, port: 80}]}")).prints(applied);
    assert_eq!(field(terminal, "{.spec.size}/{.spec.ports[0].port}"), "large/80");
    let managers = terminal.run(&[
        "get",
        "widget",
        "a",
        "--show-managed-fields",
        "-o",
        "jsonpath={.metadata.managedFields[*].manager}",
    ]);
    managers.prints("bob carol");
}

fn a_field_that_nobody_knows_is_refused_or_warned_about(terminal: &Terminal) {
    let text = widget("a", "{size: small, nope: 1}");
    terminal.feed(&["apply", "-f", "-"], &text).fails_with("unknown field \"spec.nope\"");
    let warned = terminal.feed(&["apply", "--validate=warn", "-f", "-"], &text);
    assert!(warned.err.contains("Warning: unknown field \"spec.nope\""), "{warned:?}");
    warned.prints("widget.scenes.example.com/a created");
    let wrong = terminal.feed(&["apply", "-f", "-"], &widget("b", "{size: huge}"));
    wrong.fails_with("spec.size: Unsupported value: \"huge\": supported values: \"small\", \"large\"");
}

fn a_kind_that_is_not_there_is_told_as_such(terminal: &Terminal) {
    let gadget = "apiVersion: nowhere.example.com/v1\nkind: Gadget\nmetadata: {name: a}\nspec: {}\n";
    for verb in [&["apply"][..], &["apply", "--server-side"], &["create"]] {
        let ran = terminal.feed(&[verb, &["-f", "-"]].concat(), gadget);
        ran.fails_with(
            "no matches for kind \"Gadget\" in version \"nowhere.example.com/v1\"\nensure CRDs are installed first",
        );
    }
}

fn diff_shows_what_would_change(terminal: &Terminal) {
    apply(terminal, &widget("a", "{size: small}"), "widget.scenes.example.com/a created");
    let same = terminal.feed(&["diff", "-f", "-"], &widget("a", "{size: small}"));
    assert_eq!((same.code, same.out.as_str()), (Some(0), ""), "{same:?}");
    for command in [["diff", "-f", "-"].as_slice(), &["diff", "--server-side", "-f", "-"]] {
        let changed = terminal.feed(command, &widget("a", "{size: large}"));
        assert_eq!(changed.code, Some(1), "{changed:?}");
        assert!(changed.out.contains("-  size: small") && changed.out.contains("+  size: large"), "{}", changed.out);
    }
    assert_eq!(field(terminal, "{.spec.size}"), "small");
}

fn create_takes_files_and_arguments(terminal: &Terminal) {
    terminal.run(&["create", "configmap", "m", "--from-literal=k=v"]).prints("configmap/m created");
    terminal.run(&["get", "configmap", "m", "-o", "jsonpath={.data.k}"]).prints("v");
    terminal.run(&["create", "configmap", "m"]).fails_with("configmaps \"m\" already exists");
    terminal.run(&["create", "secret", "generic", "s", "--from-literal=k=v"]).prints("secret/s created");
    terminal.run(&["get", "secret", "s", "-o", "jsonpath={.data.k}"]).prints("dg==");
    terminal.run(&["create", "serviceaccount", "sa"]).prints("serviceaccount/sa created");
    terminal.run(&["create", "deployment", "d", "--image=i:1"]).prints("deployment.apps/d created");
    let generated = widget("", "{}").replace("name: \n", "generateName: run-\n");
    let made = terminal.feed(&["create", "-f", "-"], &generated).ok();
    assert!(made.starts_with("widget.scenes.example.com/run-"), "{made}");
}

fn replace_needs_what_is_there(terminal: &Terminal) {
    terminal.feed(&["replace", "-f", "-"], &widget("a", "{size: small}")).fails_with("not found");
    terminal.feed(&["create", "-f", "-"], &widget("a", "{size: small, note: text}")).ok();
    terminal
        .feed(&["replace", "-f", "-"], &widget("a", "{size: large}"))
        .prints("widget.scenes.example.com/a replaced");
    assert_eq!(field(terminal, "{.spec.size}{.spec.note}"), "large");
    let stale = widget("a", "{size: small}").replace("  name: a\n", "  name: a\n  resourceVersion: \"1\"\n");
    terminal.feed(&["replace", "-f", "-"], &stale).fails_with("the object has been modified");
    terminal.feed(&["replace", "--force", "-f", "-"], &widget("a", "{size: small}")).ok();
    assert_eq!(field(terminal, "{.spec.size}/{.metadata.generation}"), "small/1", "it is a new one");
}

fn a_dry_run_changes_nothing(terminal: &Terminal) {
    let text = widget("a", "{size: small}");
    terminal
        .feed(&["apply", "--dry-run=server", "-f", "-"], &text)
        .prints("widget.scenes.example.com/a created (server dry run)");
    terminal
        .feed(&["create", "--dry-run=server", "-f", "-"], &text)
        .prints("widget.scenes.example.com/a created (server dry run)");
    terminal.run(&["get", "widgets", "-o", "name"]).prints("");
}
