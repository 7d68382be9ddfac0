//! patch, annotate, label, scale, edit: changing what is there.

use crate::terminal::{Terminal, widget};

scenes!(
    patch_takes_every_type,
    annotate_and_label_add_change_and_remove,
    scale_sets_replicas,
    edit_writes_back,
    a_patch_that_breaks_the_schema_is_refused,
);

fn make(terminal: &Terminal, spec: &str) {
    terminal.feed(&["create", "-f", "-"], &widget("a", spec)).ok();
}

fn field(terminal: &Terminal, path: &str) -> String {
    terminal.run(&["get", "widget", "a", "-o", &format!("jsonpath={path}")]).ok()
}

fn patch_takes_every_type(terminal: &Terminal) {
    make(terminal, "{size: small}");
    let patch = |kind: &str, text: &str| terminal.run(&["patch", "widget", "a", &format!("--type={kind}"), "-p", text]);
    patch("merge", r#"{"spec":{"size":"large"}}"#).prints("widget.scenes.example.com/a patched");
    patch("merge", r#"{"spec":{"size":"large"}}"#).prints("widget.scenes.example.com/a patched (no change)");
    patch("json", r#"[{"op":"replace","path":"/spec/size","value":"small"}]"#)
        .prints("widget.scenes.example.com/a patched");
    patch("json", r#"[{"op":"remove","path":"/spec/nope"}]"#)
        .fails_with("the server rejected our request due to an error in our request");
    patch("strategic", r#"{"spec":{"size":"large"}}"#)
        .fails_with("accepted media types include: application/json-patch+json, application/merge-patch+json");
    // Strategic is for built-in kinds: a container is found by its name, and another is added beside it.
    terminal.run(&["create", "deployment", "a", "--image=i", "--replicas=0"]).ok();
    let containers = r#"{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"s"}]}}}}"#;
    terminal
        .run(&["patch", "deployment", "a", "--type=strategic", "-p", containers])
        .prints("deployment.apps/a patched");
    let images = "jsonpath={range .spec.template.spec.containers[*]}{.name}={.image} {end}";
    assert_eq!(terminal.run(&["get", "deployment", "a", "-o", images]).ok().trim(), "side=s i=i");
    let status = terminal.run(&[
        "patch",
        "widget",
        "a",
        "--subresource=status",
        "--type=merge",
        "-p",
        r#"{"status":{"phase":"Fine"}}"#,
    ]);
    status.prints("widget.scenes.example.com/a patched");
    assert_eq!(field(terminal, "{.spec.size}/{.status.phase}"), "small/Fine");
}

fn annotate_and_label_add_change_and_remove(terminal: &Terminal) {
    make(terminal, "{}");
    // Old ones say "annotate".
    let annotated = terminal.run(&["annotate", "widget", "a", "example.com/k=v"]).ok();
    assert!(annotated.starts_with("widget.scenes.example.com/a annotate"), "{annotated}");
    assert_eq!(field(terminal, r"{.metadata.annotations.example\.com/k}"), "v");
    terminal.run(&["annotate", "widget", "a", "example.com/k=w"]).fails_with(
        "--overwrite is false but found the following declared annotation(s): 'example.com/k' already has a value (v)",
    );
    terminal.run(&["annotate", "widget", "a", "example.com/k-"]).ok();
    terminal.run(&["label", "widget", "a", "tier=web"]).prints("widget.scenes.example.com/a labeled");
    terminal.run(&["label", "widget", "a", "tier=db", "--overwrite"]).prints("widget.scenes.example.com/a labeled");
    terminal.run(&["label", "widgets", "--all", "tier-"]).prints("widget.scenes.example.com/a unlabeled");
    terminal
        .run(&["label", "widget", "a", "bad key=v"])
        .fails_with("name part must consist of alphanumeric characters");
    assert_eq!(field(terminal, "{.metadata.labels}"), "");
}

fn scale_sets_replicas(terminal: &Terminal) {
    make(terminal, "{replicas: 1}");
    terminal.run(&["scale", "widget", "a", "--replicas=5"]).prints("widget.scenes.example.com/a scaled");
    assert_eq!(field(terminal, "{.spec.replicas}"), "5");
    let wrong = terminal.run(&["scale", "widget", "a", "--current-replicas=2", "--replicas=3"]);
    wrong.fails_with("Expected replicas to be 2, was 5");
    terminal.run(&["create", "deployment", "d", "--image=i:1"]).ok();
    terminal.run(&["scale", "deployment", "d", "--replicas=3"]).prints("deployment.apps/d scaled");
    terminal.run(&["get", "deployment", "d", "-o", "jsonpath={.spec.replicas}"]).prints("3");
}

fn edit_writes_back(terminal: &Terminal) {
    make(terminal, "{size: small}");
    terminal.run(&["edit", "widget", "a"]).prints("widget.scenes.example.com/a edited");
    assert_eq!(field(terminal, "{.spec.size}"), "large");
}

fn a_patch_that_breaks_the_schema_is_refused(terminal: &Terminal) {
    make(terminal, "{replicas: 1}");
    let patch = terminal.run(&["patch", "widget", "a", "--type=merge", "-p", r#"{"spec":{"replicas":-1}}"#]);
    patch.fails_with("spec.replicas: Invalid value: -1: spec.replicas in body should be greater than or equal to 0");
}
