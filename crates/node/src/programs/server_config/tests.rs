//! A file as the operator writes it, and what is wrong with others.

use super::*;

const FILE: &str = "\
node.id=3
process.roles=broker,controller
controller.quorum.voters=3@c-mixed-3.c-kafka-brokers.ns.svc:9090
controller.listener.names=CONTROLPLANE-9090
listeners=CONTROLPLANE-9090://0.0.0.0:9090,REPLICATION-9091://0.0.0.0:9091,PLAIN-9092://0.0.0.0:9092,TLS-9093://0.0.0.0:9093
advertised.listeners=REPLICATION-9091://c-mixed-3.c-kafka-brokers.ns.svc:9091,PLAIN-9092://c-mixed-3.c-kafka-brokers.ns.svc:9092
listener.security.protocol.map=CONTROLPLANE-9090:SSL,REPLICATION-9091:SSL,PLAIN-9092:PLAINTEXT,TLS-9093:SSL
inter.broker.listener.name=REPLICATION-9091
ssl.keystore.type=PEM
ssl.keystore.location=/certs/all.pem
listener.name.replication-9091.ssl.keystore.type=PEM
listener.name.replication-9091.ssl.keystore.location=/certs/node/keystore.pem
listener.name.replication-9091.ssl.truststore.type=PEM
listener.name.replication-9091.ssl.truststore.location=/certs/cluster-ca/ca.crt
listener.name.replication-9091.ssl.client.auth=required
log.dirs=/var/lib/kafka/data-0/kafka-log3, /var/lib/kafka/data-1/kafka-log3
broker.rack=${dir:/opt/kafka/init:rack.id}
metric.reporters=com.linkedin.kafka.cruisecontrol.metricsreporter.CruiseControlMetricsReporter
cruise.control.metrics.topic.num.partitions=1
min.insync.replicas=2
some.plugin.key=kept
";

fn read(text: &str) -> Result<ServerConfig, String> {
    let rack = |path: &str| (path == "/opt/kafka/init/rack.id").then(|| "zone-1\n".to_owned());
    ServerConfig::read(text, rack, |_| None).map_err(|why| why.to_string())
}

#[test]
fn a_file_of_the_operator_is_understood() {
    let config = read(FILE).unwrap();
    assert_eq!((config.node_id, config.is_broker, config.rack.as_deref()), (3, true, Some("zone-1")));
    assert_eq!(config.log_dirs, ["/var/lib/kafka/data-0/kafka-log3", "/var/lib/kafka/data-1/kafka-log3"]);
    assert_eq!(config.reporter, Some(Reporter { partitions: 1, ..Reporter::default() }));
    assert_eq!(config.all.get("some.plugin.key").map(String::as_str), Some("kept"));
    assert_eq!(config.all.get("broker.rack").map(String::as_str), Some("zone-1"));
    let shown: Vec<_> = config.listeners.iter().map(|it| (it.name.as_str(), it.port, it.audience)).collect();
    let expected = [
        ("CONTROLPLANE-9090", 9090, Audience::Controllers),
        ("REPLICATION-9091", 9091, Audience::Brokers),
        ("PLAIN-9092", 9092, Audience::Clients),
        ("TLS-9093", 9093, Audience::Clients),
    ];
    assert_eq!(shown, expected);
    let internal = TlsConfig {
        key_store: "/certs/node/keystore.pem".to_owned(),
        trust_store: Some("/certs/cluster-ca/ca.crt".to_owned()),
        client_auth: ClientAuth::Required,
    };
    assert_eq!(config.listeners[1].tls, Some(internal));
    assert_eq!(config.listeners[1].advertised, Some(("c-mixed-3.c-kafka-brokers.ns.svc".to_owned(), 9091)));
    assert_eq!(config.listeners[2].tls, None);
    let of_all = TlsConfig { key_store: "/certs/all.pem".to_owned(), trust_store: None, client_auth: ClientAuth::None };
    assert_eq!((config.listeners[3].tls.as_ref(), &config.listeners[3].advertised), (Some(&of_all), &None));
}

/// What the operator writes, as its own tests have it.
const OF_THE_OPERATOR: [&str; 2] = [
    include_str!("../../../../operator/tests/golden/broker-server.config"),
    include_str!("../../../../operator/tests/golden/controller-server.config"),
];

#[test]
fn the_operator_s_own_files_are_understood() {
    let [broker, controller] = OF_THE_OPERATOR.map(|text| read(text).unwrap());
    assert_eq!((broker.node_id, broker.is_broker, broker.rack.as_deref()), (1, true, Some("zone-1")));
    let audiences: Vec<_> = broker.listeners.iter().map(|it| (it.audience, it.tls.is_some())).collect();
    assert_eq!(audiences, [(Audience::Brokers, true), (Audience::Clients, false), (Audience::Clients, true)]);
    assert_eq!(broker.log_dirs.len(), 2);
    let of_clients = broker.listeners[2].tls.as_ref().and_then(|tls| tls.trust_store.as_deref());
    assert_eq!(of_clients, Some("/opt/kafka/certs/clients-ca/ca.crt"));
    assert!(!controller.is_broker && controller.node_id == 101);
}

#[test]
fn a_controller_alone_needs_no_directories_of_a_broker() {
    let config = read(
        "node.id=0\nprocess.roles=controller\ncontroller.listener.names=C\nlisteners=C://0.0.0.0:9090\n\
         listener.security.protocol.map=C:PLAINTEXT",
    )
    .unwrap();
    assert!(!config.is_broker && config.reporter.is_none());
}

#[test]
fn what_is_wrong_is_said_in_one_line() {
    let with = |line: &str| format!("{FILE}{line}\n");
    let without = |key: &str| {
        let kept: Vec<&str> = FILE.lines().filter(|line| !line.starts_with(&format!("{key}="))).collect();
        kept.join("\n")
    };
    let said = [
        (without("node.id"), "`node.id` is missing"),
        (without("process.roles"), "`process.roles` is missing"),
        (without("listeners"), "`listeners` is missing"),
        (without("log.dirs"), "`log.dirs` is missing"),
        (with("node.id=-1"), "`node.id`: `-1` is no id of a node"),
        (with("process.roles=zookeeper"), "`process.roles`: there is no role `zookeeper`, only broker and controller"),
        (with("listeners=PLAIN"), "`listeners`: `PLAIN` is not of the form NAME://host:port"),
        (
            with("listeners=PLAIN-9092://:9092,TLS-9093://:9092"),
            "`listeners`: `TLS-9093://:9092` has the name or the port of another one",
        ),
        (with("listeners=CONTROLPLANE-9090://:9090"), "`listeners`: a broker needs one that is not of the controllers"),
        (
            with("listener.security.protocol.map=PLAIN-9092:SASL_SSL"),
            "`listener.security.protocol.map`: CONTROLPLANE-9090 is CONTROLPLANE-9090, and a simulated broker speaks \
             PLAINTEXT and SSL only",
        ),
        (
            with("listener.name.replication-9091.ssl.keystore.type=JKS"),
            "`listener.name.replication-9091.ssl.keystore.type`: a simulated broker reads PEM and not JKS",
        ),
        (
            with("listener.name.tls-9093.ssl.client.auth=required"),
            "`listener.name.tls-9093.ssl.truststore.location`: is missing: whose certificates are to be seen?",
        ),
        (
            with("broker.rack=${dir:/opt/kafka/init:rack}"),
            "`broker.rack` asks for `dir:/opt/kafka/init:rack`, which is not there",
        ),
        (
            with("cruise.control.metrics.topic.num.partitions=many"),
            "`cruise.control.metrics.topic.num.partitions`: `many` is no number that it could have",
        ),
    ];
    for (text, expected) in said {
        assert_eq!(read(&text).unwrap_err(), expected);
    }
}
