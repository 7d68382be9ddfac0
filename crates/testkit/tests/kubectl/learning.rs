//! explain, api-resources, auth: learning what there is.

use crate::terminal::{Terminal, table};

scenes!(
    explain_describes_fields,
    api_resources_lists_what_is_served,
    an_administrator_can_do_everything,
    the_version_of_the_server_is_shown,
);

fn explain_describes_fields(terminal: &Terminal) {
    let text = table(&terminal.run(&["explain", "widgets"]).ok()).join("\n");
    for part in ["KIND: Widget", "VERSION: v1", "A thing that scenes play with.", "spec", "status"] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    let text = table(&terminal.run(&["explain", "widget.spec.size"]).ok()).join("\n");
    assert!(text.contains("FIELD: size <string>") && text.contains("How large it is."), "{text}");
    let text = terminal.run(&["explain", "widget.spec", "--recursive"]).ok();
    assert!(text.contains("ports") && text.contains("port"), "{text}");
    let text = table(&terminal.run(&["explain", "deployment.spec.replicas"]).ok()).join("\n");
    assert!(text.contains("FIELD: replicas <integer>") && text.contains("Number of desired pods."), "{text}");
    terminal.run(&["explain", "widget.spec.nope"]).fails_with("field \"nope\" does not exist");
}

fn api_resources_lists_what_is_served(terminal: &Terminal) {
    let lines = table(&terminal.run(&["api-resources"]).ok());
    assert_eq!(lines[0], "NAME SHORTNAMES APIVERSION NAMESPACED KIND");
    for line in [
        "widgets wd scenes.example.com/v1 true Widget",
        "configmaps cm v1 true ConfigMap",
        "namespaces ns v1 false Namespace",
        "deployments deploy apps/v1 true Deployment",
        "leases coordination.k8s.io/v1 true Lease",
        "customresourcedefinitions crd,crds apiextensions.k8s.io/v1 false CustomResourceDefinition",
    ] {
        assert!(lines.iter().any(|seen| seen == line), "{line:?} in {lines:#?}");
    }
    let own = terminal.run(&["api-resources", "--api-group=scenes.example.com", "-o", "name"]);
    own.prints("widgets.scenes.example.com");
    let versions = terminal.run(&["api-versions"]).ok();
    assert!(versions.lines().any(|line| line == "scenes.example.com/v1"), "{versions}");
}

fn an_administrator_can_do_everything(terminal: &Terminal) {
    terminal.run(&["auth", "can-i", "delete", "widgets"]).prints("yes");
    terminal.run(&["auth", "can-i", "*", "*", "--all-namespaces"]).prints("yes");
}

fn the_version_of_the_server_is_shown(terminal: &Terminal) {
    let version = terminal.run(&["version", "-o", "json"]).ok();
    assert!(version.contains("\"serverVersion\""), "{version}");
    terminal.run(&["get", "--raw", "/readyz"]).prints("ok");
}
