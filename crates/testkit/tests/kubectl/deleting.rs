//! delete, with everything that may hang on it.

use crate::terminal::{Terminal, widget};

scenes!(
    delete_waits_until_it_is_gone,
    delete_takes_selectors_and_files,
    dependants_follow_or_go_first_or_stay,
    a_finalizer_holds_what_is_deleted,
    a_namespace_is_deleted_with_all_in_it,
);

fn make(terminal: &Terminal, name: &str) {
    terminal.feed(&["create", "-f", "-"], &widget(name, "{}")).ok();
}

fn delete_waits_until_it_is_gone(terminal: &Terminal) {
    make(terminal, "a");
    let deleted = terminal.run(&["delete", "widget", "a"]).ok();
    assert!(deleted.starts_with("widget.scenes.example.com \"a\" deleted"), "{deleted}");
    terminal.run(&["get", "widgets", "-o", "name"]).prints("");
    terminal
        .run(&["delete", "widget", "a"])
        .fails_with("Error from server (NotFound): widgets.scenes.example.com \"a\" not found");
    terminal.run(&["delete", "widget", "a", "--ignore-not-found"]).ok();
}

fn delete_takes_selectors_and_files(terminal: &Terminal) {
    for name in ["a", "b", "c"] {
        make(terminal, name);
    }
    terminal.run(&["label", "widgets", "a", "b", "tier=web"]).ok();
    terminal.run(&["delete", "widgets", "-l", "tier=web"]).ok();
    terminal.run(&["get", "widgets", "-o", "name"]).prints("widget.scenes.example.com/c");
    terminal.feed(&["delete", "-f", "-"], &widget("c", "{}")).ok();
    make(terminal, "d");
    terminal.run(&["delete", "widgets", "--all"]).ok();
    terminal.run(&["get", "widgets", "-o", "name"]).prints("");
}

fn dependants_follow_or_go_first_or_stay(terminal: &Terminal) {
    for (policy, stays) in [("background", false), ("foreground", false), ("orphan", true)] {
        make(terminal, policy);
        let uid = terminal.run(&["get", "widget", policy, "-o", "jsonpath={.metadata.uid}"]).ok();
        let child = format!("{policy}-child");
        let owner = format!(
            "  ownerReferences:\n  - {{apiVersion: scenes.example.com/v1, kind: Widget, name: {policy}, uid: {uid}, blockOwnerDeletion: true}}\n"
        );
        let text = widget(&child, "{}").replace("spec:", &format!("{owner}spec:"));
        terminal.feed(&["create", "-f", "-"], &text).ok();
        terminal.run(&["delete", "widget", policy, &format!("--cascade={policy}")]).ok();
        if stays {
            let owners = terminal.run(&["get", "widget", &child, "-o", "jsonpath={.metadata.ownerReferences}"]);
            owners.prints("");
        } else {
            terminal.until(&["get", "widget", &child], |ran| !ran.succeeded && ran.err.contains("NotFound"));
        }
    }
}

fn a_finalizer_holds_what_is_deleted(terminal: &Terminal) {
    make(terminal, "a");
    let patch = |finalizers: &str| {
        let text = format!(r#"{{"metadata":{{"finalizers":{finalizers}}}}}"#);
        terminal.run(&["patch", "widget", "a", "--type=merge", "-p", &text]).ok();
    };
    patch(r#"["example.com/hold"]"#);
    terminal.run(&["delete", "widget", "a", "--wait=false"]).ok();
    let mark = terminal.run(&["get", "widget", "a", "-o", "jsonpath={.metadata.deletionTimestamp}"]).ok();
    assert!(!mark.is_empty());
    let mut wait = terminal.follow(&["delete", "widget", "a"]);
    assert!(
        wait.line().starts_with("widget.scenes.example.com \"a\" deleted"),
        "it says so when it was asked for, and waits"
    );
    patch("null");
    assert!(wait.ends());
    terminal.run(&["get", "widget", "a"]).fails_with("not found");
}

fn a_namespace_is_deleted_with_all_in_it(terminal: &Terminal) {
    let inner = format!("{}-inner", terminal.namespace());
    terminal.run(&["create", "namespace", &inner]).prints(&format!("namespace/{inner} created"));
    terminal.run(&["create", "configmap", "m", "--namespace", &inner]).ok();
    terminal.run(&["delete", "namespace", &inner]).ok();
    terminal.run(&["get", "namespace", &inner]).fails_with("not found");
}
