//! A newcomer's first minutes: our definitions and `examples/` from their folders, and what `get` shows of them.

use std::path::Path;

use crate::terminal::{Terminal, table};

scenes!(definitions_and_examples_are_applied_from_their_folders, get_shows_the_columns_of_our_kinds);

const DEFINITIONS: [&str; 4] = [
    "kafkanodepools.kafka.strimzi.io",
    "kafkarebalances.kafka.strimzi.io",
    "kafkas.kafka.strimzi.io",
    "strimzipodsets.core.strimzi.io",
];

/// A folder of the repository.
fn folder(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.join(name).to_str().expect("the repository is in a folder with a readable name").to_owned()
}

/// Installs our definitions. They belong to all scenes: whoever is first makes them, nobody removes them.
fn install(terminal: &Terminal) -> String {
    let definitions = folder("deploy/crds");
    // Two that create the same definition at once get in each other's way.
    terminal.until(&["apply", "-f", &definitions], |ran| ran.succeeded);
    for name in DEFINITIONS {
        let name = format!("customresourcedefinition/{name}");
        terminal.run(&["wait", "--for=condition=Established", "--timeout=90s", &name]).ok();
    }
    // Served a little after that.
    terminal.until(&["get", "kafka,knp,kr,sps"], |ran| ran.succeeded);
    definitions
}

/// How many of our objects met with this outcome.
fn outcomes(text: &str, outcome: &str) -> usize {
    text.lines().filter(|line| line.contains(".kafka.strimzi.io/") && line.ends_with(outcome)).count()
}

fn definitions_and_examples_are_applied_from_their_folders(terminal: &Terminal) {
    let (definitions, examples) = (install(terminal), folder("examples"));
    let both = ["apply", "-f", &definitions, "-f", &examples];
    let first = terminal.until(&both, |ran| ran.succeeded).ok();
    for name in DEFINITIONS {
        assert!(first.contains(&format!("customresourcedefinition.apiextensions.k8s.io/{name} unchanged")), "{first}");
    }
    let made = outcomes(&first, " created");
    assert!(made > 20, "{first}");
    let again = terminal.run(&both).ok();
    assert_eq!(outcomes(&again, " unchanged"), made, "{again}");

    let kafkas = terminal.run(&["get", "k", "-o", "name"]).ok();
    assert!(kafkas.contains("kafka.kafka.strimzi.io/barge\n"), "{kafkas}");
    // The same object, whichever version its manifest has.
    terminal
        .run(&["get", "kafkas.v1.kafka.strimzi.io", "barge", "-o", "jsonpath={.apiVersion}"])
        .prints("kafka.strimzi.io/v1");
    let older = ["get", "kafkas.v1beta2.kafka.strimzi.io", "harbour", "-o", "jsonpath={.apiVersion}"];
    terminal.run(&older).prints("kafka.strimzi.io/v1beta2");
    terminal.run(&["diff", "-f", &examples]).prints("");
    terminal.run(&["scale", "knp", "archive", "--replicas=5"]).prints("kafkanodepool.kafka.strimzi.io/archive scaled");
    let category = terminal.run(&["get", "strimzi", "-o", "name"]).ok();
    assert_eq!(category.lines().count(), made, "{category}");
}

fn get_shows_the_columns_of_our_kinds(terminal: &Terminal) {
    install(terminal);
    terminal.feed(&["create", "-f", "-"], OBJECTS).ok();
    for (object, status) in [
        (
            "kafka/harbour",
            r#"{"status":{"kafkaVersion":"4.1.0","kafkaMetadataVersion":"4.1-IV1","conditions":[{"type":"Ready","status":"True"},{"type":"Warning","status":"True"}]}}"#,
        ),
        ("knp/brokers", r#"{"status":{"roles":["broker"],"nodeIds":[0,1,2]}}"#),
        ("kr/even-out", r#"{"status":{"conditions":[{"type":"ProposalReady","status":"True"}]}}"#),
        ("sps/harbour-brokers", r#"{"status":{"pods":3,"readyPods":2,"currentPods":1}}"#),
    ] {
        terminal.run(&["patch", object, "--subresource=status", "--type=merge", "-p", status]).ok();
    }
    let seen = table(&terminal.run(&["get", "kafka,knp,kr,sps"]).ok());
    let (aged, plain) = seen.split_last().expect("something is there");
    assert_eq!(
        plain,
        [
            "NAME READY WARNINGS KAFKA VERSION METADATA VERSION",
            "kafka.kafka.strimzi.io/harbour True True 4.1.0 4.1-IV1",
            "",
            "NAME DESIRED REPLICAS ROLES NODEIDS",
            r#"kafkanodepool.kafka.strimzi.io/brokers 3 ["broker"] [0,1,2]"#,
            "",
            "NAME CLUSTER TEMPLATE STATUS",
            "kafkarebalance.kafka.strimzi.io/even-out harbour ProposalReady",
            "kafkarebalance.kafka.strimzi.io/house-rules true",
            "",
            "NAME PODS READY PODS CURRENT PODS AGE",
        ]
    );
    let (counts, age) = aged.rsplit_once(' ').expect("columns");
    assert_eq!(counts, "strimzipodset.core.strimzi.io/harbour-brokers 3 2 1");
    assert!(age.ends_with('s') || age.ends_with('m'), "{age}");
}

const OBJECTS: &str = "
apiVersion: kafka.strimzi.io/v1
kind: Kafka
metadata: {name: harbour}
spec: {kafka: {}}
---
apiVersion: kafka.strimzi.io/v1
kind: KafkaNodePool
metadata: {name: brokers, labels: {strimzi.io/cluster: harbour}}
spec: {replicas: 3, roles: [broker], storage: {type: ephemeral}}
---
apiVersion: kafka.strimzi.io/v1
kind: KafkaRebalance
metadata: {name: even-out, labels: {strimzi.io/cluster: harbour}}
spec: {}
---
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaRebalance
metadata: {name: house-rules, annotations: {strimzi.io/rebalance-template: 'true'}}
spec: {}
---
apiVersion: core.strimzi.io/v1
kind: StrimziPodSet
metadata: {name: harbour-brokers}
spec: {selector: {matchLabels: {app: a}}, pods: []}
";
