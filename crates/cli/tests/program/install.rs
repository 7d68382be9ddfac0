//! `evenkeel install`: what it prints. What it does to a cluster is in the suite `operator` of the testkit.

use std::process::{Command, Output};

use evenkeel_operator::installation::Manifests;

fn install(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_evenkeel")).arg("install").args(arguments).output().expect("it starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn install_prints_the_manifests_and_nothing_else() {
    let output = install(&[]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), Manifests::default().yaml().unwrap());
    let without = text(&install(&["--no-crds", "--namespace", "ops"]).stdout);
    assert!(!without.contains("CustomResourceDefinition") && without.contains("  namespace: ops\n"), "{without}");
    let narrow = text(&install(&["--watch", "kafka,more"]).stdout);
    assert!(narrow.contains("{name: STRIMZI_NAMESPACE, value: \"kafka,more\"}\n"), "{narrow}");
    let selecting = text(&install(&["--selector", "team=a, tier=1"]).stdout);
    let variable = "            - {name: STRIMZI_CUSTOM_RESOURCE_SELECTOR, value: \"team=a,tier=1\"}\n";
    assert!(selecting.contains(variable), "{selecting}");
    assert_eq!(selecting.replace(variable, ""), text(&output.stdout), "and nothing else differs");
}

#[test]
fn a_selector_that_the_operator_would_not_understand_is_refused_in_one_line() {
    for selector in ["team", "team!=a", "team in (a, b)"] {
        let output = install(&["--selector", selector]);
        assert_eq!(output.status.code(), Some(2));
        let said =
            format!("evenkeel: `{selector}` cannot be a selector: write `name=value` pairs with commas between them\n");
        assert_eq!((text(&output.stderr).as_str(), text(&output.stdout).as_str()), (said.as_str(), ""));
    }
}

#[test]
fn a_name_that_no_namespace_has_is_refused_in_one_line() {
    for option in ["--namespace", "--watch"] {
        let output = install(&[option, "Ops"]);
        assert_eq!(output.status.code(), Some(2));
        let said = "evenkeel: `Ops` cannot be the name of a namespace: write small letters, digits and dashes\n";
        assert_eq!((text(&output.stderr).as_str(), text(&output.stdout).as_str()), (said, ""));
    }
}
