//! get, describe, wait: looking at what is there.

use crate::terminal::{Terminal, table, widget};

scenes!(
    get_prints_a_table,
    get_prints_wide_and_other_forms,
    get_watches,
    get_selects,
    get_sorts,
    describe_shows_fields_and_events,
    wait_for_a_condition_a_value_and_a_deletion,
    what_is_missing_is_said,
);

const READY: &str = r#"{"status":{"conditions":[{"type":"Ready","status":"True"}]}}"#;

fn make(terminal: &Terminal, name: &str, spec: &str) {
    terminal
        .feed(&["create", "-f", "-"], &widget(name, spec))
        .prints(&format!("widget.scenes.example.com/{name} created"));
}

fn get_prints_a_table(terminal: &Terminal) {
    make(terminal, "b", "{size: large, replicas: 2}");
    make(terminal, "a", "{size: small}");
    terminal.run(&["patch", "widget", "b", "--subresource=status", "--type=merge", "-p", READY]).ok();
    let lines = table(&terminal.run(&["get", "widgets"]).ok());
    assert_eq!(lines, ["NAME SIZE READY", "a small", "b large True"]);
    assert_eq!(table(&terminal.run(&["get", "wd", "b", "--no-headers"]).ok()), ["b large True"]);
    let both = terminal.run(&["get", "all"]).ok();
    assert!(both.contains("widget.scenes.example.com/a"), "{both}");
}

fn get_prints_wide_and_other_forms(terminal: &Terminal) {
    make(terminal, "a", "{size: small, replicas: 3}");
    let wide = table(&terminal.run(&["get", "widgets", "-o", "wide"]).ok());
    assert_eq!(wide, ["NAME SIZE READY REPLICAS", "a small 3"]);
    terminal.run(&["get", "widgets", "-o", "name"]).prints("widget.scenes.example.com/a");
    terminal.run(&["get", "widget", "a", "-o", "jsonpath={.spec.size}/{.metadata.generation}"]).prints("small/1");
    let columns = terminal.run(&["get", "widgets", "-o", "custom-columns=N:.metadata.name,S:.spec.size"]).ok();
    assert_eq!(table(&columns), ["N S", "a small"]);
    let yaml = terminal.run(&["get", "widget", "a", "-o", "yaml"]).ok();
    assert!(yaml.starts_with("apiVersion: scenes.example.com/v1\nkind: Widget\nmetadata:\n"), "{yaml}");
    assert!(yaml.contains("\nspec:\n  replicas: 3\n  size: small\n") && !yaml.contains("managedFields"), "{yaml}");
    let all = terminal.run(&["get", "widgets", "--all-namespaces"]).ok();
    assert!(all.starts_with("NAMESPACE"), "{all}");
}

fn get_watches(terminal: &Terminal) {
    make(terminal, "a", "{size: small}");
    let watch = terminal.follow(&["get", "widgets", "--watch", "--output-watch-events"]);
    assert_eq!(watch.line(), "EVENT NAME SIZE READY");
    assert_eq!(watch.line(), "ADDED a small");
    terminal.run(&["patch", "widget", "a", "--type=merge", "-p", r#"{"spec":{"size":"large"}}"#]).ok();
    assert_eq!(watch.line(), "MODIFIED a large");
    terminal.run(&["delete", "widget", "a"]).ok();
    assert_eq!(watch.line(), "DELETED a large");
}

fn get_selects(terminal: &Terminal) {
    for name in ["a", "b"] {
        make(terminal, name, "{}");
    }
    terminal.run(&["label", "widget", "a", "tier=web"]).ok();
    terminal.run(&["get", "widgets", "-l", "tier in (web,db)", "-o", "name"]).prints("widget.scenes.example.com/a");
    terminal.run(&["get", "widgets", "-l", "!tier", "-o", "name"]).prints("widget.scenes.example.com/b");
    terminal
        .run(&["get", "widgets", "--field-selector", "metadata.name=b", "-o", "name"])
        .prints("widget.scenes.example.com/b");
    assert_eq!(table(&terminal.run(&["get", "widgets", "-L", "tier"]).ok())[0], "NAME SIZE READY TIER");
    let none = terminal.run(&["get", "widgets", "-l", "tier=none"]);
    assert!(none.err.contains(&format!("No resources found in {} namespace.", terminal.namespace())), "{none:?}");
}

fn get_sorts(terminal: &Terminal) {
    for (name, size) in [("a", "small"), ("b", "large")] {
        make(terminal, name, &format!("{{size: {size}}}"));
        terminal.run(&["create", "secret", "generic", name, &format!("--from-literal=size={size}")]).ok();
    }
    let widgets = table(&terminal.run(&["get", "widgets", "--sort-by=.spec.size"]).ok());
    assert_eq!(widgets, ["NAME SIZE READY", "b large", "a small"]);
    // Of a built-in kind; as base64 the order is the same.
    let secrets = table(&terminal.run(&["get", "secrets", "--sort-by=.data.size", "--no-headers"]).ok());
    let names: Vec<&str> = secrets.iter().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(names, ["b", "a"], "{secrets:?}");
}

fn describe_shows_fields_and_events(terminal: &Terminal) {
    make(terminal, "a", "{size: small}");
    let uid = terminal.run(&["get", "widget", "a", "-o", "jsonpath={.metadata.uid}"]).ok();
    let namespace = terminal.namespace();
    let event = format!(
        "apiVersion: v1\nkind: Event\nmetadata: {{name: e}}\nreason: Polished\nmessage: It shines.\ntype: Normal\n\
         source: {{component: polisher}}\ncount: 2\nfirstTimestamp: 2024-01-01T00:00:00Z\nlastTimestamp: 2024-01-01T00:00:00Z\n\
         involvedObject: {{apiVersion: scenes.example.com/v1, kind: Widget, namespace: {namespace}, name: a, uid: {uid}}}\n"
    );
    terminal.feed(&["create", "-f", "-"], &event).prints("event/e created");
    let text = table(&terminal.run(&["describe", "widget", "a"]).ok());
    for line in ["Name: a", "Kind: Widget", "API Version: scenes.example.com/v1", "Size: small", "Events:"] {
        assert!(text.iter().any(|seen| seen == line), "{line:?} in {text:#?}");
    }
    assert!(text.iter().any(|line| line.contains("Polished") && line.contains("polisher It shines.")), "{text:#?}");
    let events = terminal.run(&["get", "events"]).ok();
    assert!(events.contains("Polished") && events.contains("widget/a"), "{events}");
}

fn wait_for_a_condition_a_value_and_a_deletion(terminal: &Terminal) {
    make(terminal, "a", "{size: small}");
    terminal
        .run(&["wait", "widget/a", "--for=condition=Ready", "--timeout=1s"])
        .fails_with("timed out waiting for the condition");
    let mut condition = terminal.follow(&["wait", "widget/a", "--for=condition=Ready", "--timeout=60s"]);
    let mut value = terminal.follow(&["wait", "widget/a", "--for=jsonpath={.spec.size}=large", "--timeout=60s"]);
    terminal.run(&["patch", "widget", "a", "--subresource=status", "--type=merge", "-p", READY]).ok();
    assert_eq!(condition.line(), "widget.scenes.example.com/a condition met");
    terminal.run(&["patch", "widget", "a", "--type=merge", "-p", r#"{"spec":{"size":"large"}}"#]).ok();
    assert_eq!(value.line(), "widget.scenes.example.com/a condition met");
    let mut deletion = terminal.follow(&["wait", "widget/a", "--for=delete", "--timeout=60s"]);
    terminal.run(&["delete", "widget", "a"]).ok();
    assert!(condition.ends() && value.ends() && deletion.ends());
}

fn what_is_missing_is_said(terminal: &Terminal) {
    let missing = "Error from server (NotFound): widgets.scenes.example.com \"nope\" not found";
    terminal.run(&["get", "widget", "nope"]).fails_with(missing);
    terminal.run(&["get", "nonsense"]).fails_with("the server doesn't have a resource type \"nonsense\"");
    terminal.run(&["get", "widget", "nope", "--ignore-not-found"]).prints("");
}
