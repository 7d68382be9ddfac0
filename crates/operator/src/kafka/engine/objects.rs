//! The engine's objects in Kubernetes.

use std::collections::BTreeMap;

use evenkeel_api::annotations;
use k8s_openapi::{
    api::{
        apps::v1::{Deployment, DeploymentSpec, DeploymentStrategy},
        core::v1::{
            ConfigMap, ConfigMapVolumeSource, Container, EmptyDirVolumeSource, EnvVar, ExecAction, HTTPGetAction,
            PodSpec, PodTemplateSpec, Probe, Secret, Service, ServiceAccount, ServiceSpec, Volume,
        },
        networking::v1::{NetworkPolicy, NetworkPolicyIngressRule, NetworkPolicySpec},
        policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec},
        rbac::v1::{PolicyRule, Role, RoleBinding, RoleRef, Subject},
    },
    apimachinery::pkg::{apis::meta::v1::ObjectMeta, util::intstr::IntOrString},
};

use super::{
    ApiSecret, CAPACITY, CERTS_PATH, CONFIG_PATH, Capacities, PORT, PROPERTIES, TRUST_PATH, USERS_PATH, Wanted,
    properties,
};
use crate::{
    auto_rebalance::imbalance,
    kafka::{
        hash,
        listeners::REPLICATION,
        model::Model,
        objects::{
            Component, confined, container_port, from_operator, labels_of, marked, matching, mount, port, requirements,
            secret, selector, service_port, variable,
        },
        properties as files, quantity,
    },
};

const PORT_NAME: &str = "rest-api";
/// How an engine of ours is rolled.
const RECREATE: &str = "Recreate";
const BINDING_GROUP: &str = "rbac.authorization.k8s.io";

/// What the objects depend on besides the model.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// What brokers can carry.
    pub capacities: Capacities,
    /// Users and passwords.
    pub api: ApiSecret,
    /// [`certificate_hash`](crate::kafka::certificates::certificate_hash) of the engine's Secret.
    pub certificate: String,
    /// Generations of the cluster authority's certificate and key.
    pub cluster_ca: (String, String),
}

/// All of them, in the order in which they are to be applied.
#[derive(Clone, Debug, PartialEq)]
pub struct EngineObjects {
    /// Who may reach it.
    pub network_policy: NetworkPolicy,
    /// Its account.
    pub service_account: ServiceAccount,
    /// What it may do in Kubernetes: one ConfigMap, if it has to write one.
    pub role: Option<(Role, RoleBinding)>,
    /// The ConfigMap that it writes. Only to be created: what is in it is not ours alone.
    pub violation_map: Option<ConfigMap>,
    /// Its settings and the capacities.
    pub config_map: ConfigMap,
    /// Its users.
    pub api_secret: Secret,
    /// Its service.
    pub service: Service,
    /// Its disruption budget.
    pub disruption_budget: PodDisruptionBudget,
    /// Itself.
    pub deployment: Deployment,
}

/// The engine's objects.
pub fn objects(model: &Model, wanted: &Wanted, facts: &Facts) -> EngineObjects {
    let config_map = config_map(model, wanted, facts);
    let notifies = wanted.ours && wanted.imbalance;
    EngineObjects {
        network_policy: network_policy(model),
        service_account: service_account(model, wanted),
        role: notifies.then(|| role(model)),
        violation_map: wanted.imbalance.then(|| ConfigMap {
            metadata: own(model, &imbalance::map_name(&model.names.cluster)),
            ..ConfigMap::default()
        }),
        deployment: deployment(model, wanted, facts, &config_map),
        config_map,
        api_secret: Secret {
            metadata: own(model, &model.names.engine_api()),
            data: Some(facts.api.data.clone()),
            type_: Some("Opaque".to_owned()),
            ..Secret::default()
        },
        service: service(model, wanted),
        disruption_budget: disruption_budget(model, wanted),
    }
}

fn own(model: &Model, name: &str) -> ObjectMeta {
    marked(model, name, Component::Engine, model.owner.clone())
}

fn config_map(model: &Model, wanted: &Wanted, facts: &Facts) -> ConfigMap {
    let settings = files::text(&properties(model, wanted, &facts.capacities));
    let mut data = BTreeMap::from([(PROPERTIES.to_owned(), settings), (CAPACITY.to_owned(), facts.capacities.json())]);
    if !wanted.ours {
        data.insert("log4j2.properties".to_owned(), LOGGING.to_owned());
    }
    ConfigMap { metadata: own(model, &model.names.engine_config()), data: Some(data), ..ConfigMap::default() }
}

/// For an engine in Java.
const LOGGING: &str = "\
name=CCConfig
appender.console.type=Console
appender.console.name=STDOUT
appender.console.layout.type=PatternLayout
appender.console.layout.pattern=%d{yyyy-MM-dd HH:mm:ss} %-5p [%t] %c{1}:%L - %m%n
rootLogger.level=INFO
rootLogger.appenderRefs=console
rootLogger.appenderRef.console.ref=STDOUT
";

fn service_account(model: &Model, wanted: &Wanted) -> ServiceAccount {
    let mut metadata = own(model, &model.names.engine());
    wanted.template.service_account.metadata.add_to(&mut metadata);
    ServiceAccount { metadata, automount_service_account_token: Some(false), ..ServiceAccount::default() }
}

fn role(model: &Model) -> (Role, RoleBinding) {
    let name = model.names.engine();
    let rule = PolicyRule {
        api_groups: Some(vec![String::new()]),
        resources: Some(vec!["configmaps".to_owned()]),
        resource_names: Some(vec![imbalance::map_name(&model.names.cluster)]),
        verbs: ["get", "update"].map(str::to_owned).to_vec(),
        ..PolicyRule::default()
    };
    let role = Role { metadata: own(model, &name), rules: Some(vec![rule]) };
    let binding = RoleBinding {
        metadata: own(model, &name),
        role_ref: RoleRef { api_group: BINDING_GROUP.to_owned(), kind: "Role".to_owned(), name: name.clone() },
        subjects: Some(vec![Subject {
            kind: "ServiceAccount".to_owned(),
            name,
            namespace: Some(model.names.namespace.clone()),
            ..Subject::default()
        }]),
    };
    (role, binding)
}

fn service(model: &Model, wanted: &Wanted) -> Service {
    let mut metadata = own(model, &model.names.engine());
    wanted.template.api_service.metadata.add_to(&mut metadata);
    let spec = ServiceSpec {
        type_: Some("ClusterIP".to_owned()),
        selector: Some(selector(&model.names, Component::Engine)),
        ports: Some(vec![service_port(PORT_NAME, PORT)]),
        ..ServiceSpec::default()
    };
    Service { metadata, spec: Some(spec), status: None }
}

fn network_policy(model: &Model) -> NetworkPolicy {
    let rule = NetworkPolicyIngressRule { ports: Some(vec![port(PORT)]), from: Some(vec![from_operator(model)]) };
    NetworkPolicy {
        metadata: own(model, &model.names.engine_network_policy()),
        spec: Some(NetworkPolicySpec {
            pod_selector: Some(matching(selector(&model.names, Component::Engine))),
            ingress: Some(vec![rule]),
            policy_types: Some(vec!["Ingress".to_owned()]),
            ..NetworkPolicySpec::default()
        }),
    }
}

fn disruption_budget(model: &Model, wanted: &Wanted) -> PodDisruptionBudget {
    let wish = &wanted.template.pod_disruption_budget;
    let mut metadata = own(model, &model.names.engine());
    wish.metadata.add_to(&mut metadata);
    let there = 1 - wish.max_unavailable.unwrap_or(1).clamp(0, 1);
    PodDisruptionBudget {
        metadata,
        spec: Some(PodDisruptionBudgetSpec {
            min_available: Some(IntOrString::Int(there)),
            selector: Some(matching(selector(&model.names, Component::Engine))),
            ..PodDisruptionBudgetSpec::default()
        }),
        status: None,
    }
}

fn deployment(model: &Model, wanted: &Wanted, facts: &Facts, config_map: &ConfigMap) -> Deployment {
    let data = |key: &str| config_map.data.as_ref().and_then(|data| data.get(key)).map_or("", String::as_str);
    let hashes = [
        hash::of_text(data(PROPERTIES)),
        hash::of_text(data(CAPACITY)),
        facts.api.hash.clone(),
        facts.certificate.clone(),
        facts.cluster_ca.0.clone(),
        facts.cluster_ca.1.clone(),
    ];
    let mut of_pod = of_pod(model, hashes);
    wanted.template.pod.metadata.add_to(&mut of_pod);
    let mut pod = PodSpec {
        service_account_name: Some(model.names.engine()),
        automount_service_account_token: Some(wanted.ours && wanted.imbalance),
        // What another image needs is not known.
        security_context: wanted.ours.then(confined::pod),
        containers: vec![container(model, wanted)],
        volumes: Some(volumes(model)),
        ..PodSpec::default()
    };
    wanted.template.pod.apply(&mut pod);
    let recreate = DeploymentStrategy { type_: Some(RECREATE.to_owned()), rolling_update: None };
    let rolling = || DeploymentStrategy { type_: Some("RollingUpdate".to_owned()), rolling_update: None };
    let strategy = if wanted.ours { recreate } else { wanted.template.deployment.strategy().unwrap_or_else(rolling) };
    let mut metadata = own(model, &model.names.engine());
    wanted.template.deployment.metadata.add_to(&mut metadata);
    Deployment {
        metadata,
        spec: Some(DeploymentSpec {
            replicas: Some(1),
            selector: matching(selector(&model.names, Component::Engine)),
            strategy: Some(strategy),
            template: PodTemplateSpec { metadata: Some(of_pod), spec: Some(pod) },
            ..DeploymentSpec::default()
        }),
        status: None,
    }
}

/// What changes when the engine has to be rolled.
const HASHES: [&str; 6] = [
    annotations::CONFIGURATION_HASH,
    annotations::CAPACITY_CONFIGURATION_HASH,
    annotations::AUTH_HASH,
    annotations::SERVER_CERT_HASH,
    annotations::CLUSTER_CA_CERT_GENERATION,
    annotations::CLUSTER_CA_KEY_GENERATION,
];

/// Metadata of its pod, with these [`HASHES`].
fn of_pod(model: &Model, hashes: [String; 6]) -> ObjectMeta {
    ObjectMeta {
        labels: Some(labels_of(&model.names, Component::Engine)),
        annotations: Some(HASHES.into_iter().map(str::to_owned).zip(hashes).collect()),
        ..ObjectMeta::default()
    }
}

/// Fields below its template that are not honoured, because the operator says something else there.
pub(in crate::kafka) fn passed_over(model: &Model, wanted: &Wanted) -> Vec<String> {
    let template = &wanted.template;
    let ours = own(model, &model.names.engine());
    let marks = [
        ("deployment", &template.deployment.metadata, ours.clone()),
        ("pod", &template.pod.metadata, of_pod(model, Default::default())),
        ("apiService", &template.api_service.metadata, ours.clone()),
        ("serviceAccount", &template.service_account.metadata, ours.clone()),
        ("podDisruptionBudget", &template.pod_disruption_budget.metadata, ours),
    ];
    let mut fields = Vec::new();
    for (name, wish, ours) in &marks {
        fields.extend(wish.passed_over(ours).map(|field| format!("{name}.{field}")));
    }
    let variables = variables(model, wanted);
    let passed = template.cruise_control_container.passed_over(&variables);
    fields.extend(passed.map(|field| format!("cruiseControlContainer.{field}")));
    // Two engines at once would move data at once.
    let rolls = template.deployment.deployment_strategy.as_ref().is_some_and(|strategy| strategy != RECREATE);
    if wanted.ours && rolls {
        fields.push("deployment.deploymentStrategy".to_owned());
    }
    fields
}

fn variables(model: &Model, wanted: &Wanted) -> Vec<EnvVar> {
    if wanted.ours { Vec::new() } else { foreign_variables(model, wanted) }
}

fn container(model: &Model, wanted: &Wanted) -> Container {
    let command = if wanted.ours {
        vec!["evenkeel".to_owned(), "engine".to_owned(), format!("{CONFIG_PATH}/{PROPERTIES}")]
    } else {
        vec!["/opt/cruise-control/cruise_control_run.sh".to_owned()]
    };
    let (readiness, liveness) =
        if wanted.ours { (by_http("/readyz"), by_http("/healthz")) } else { (by_script(), by_script()) };
    let variables = variables(model, wanted);
    Container {
        name: "cruise-control".to_owned(),
        image: Some(wanted.image.clone()),
        command: Some(command),
        env: Some(wanted.template.cruise_control_container.variables(variables)).filter(|all| !all.is_empty()),
        ports: Some(vec![container_port(PORT_NAME, PORT)]),
        readiness_probe: Some(readiness),
        liveness_probe: Some(liveness),
        resources: wanted.spec.resources.as_ref().map(requirements),
        security_context: wanted
            .template
            .cruise_control_container
            .security_context
            .clone()
            .or_else(|| wanted.ours.then(confined::own_container)),
        volume_mounts: Some(vec![
            mount("tmp", "/tmp", false),
            mount("config", CONFIG_PATH, true),
            mount("cc-certs", CERTS_PATH, true),
            mount("cluster-ca-certs", TRUST_PATH, true),
            mount("api-auth-config", USERS_PATH, true),
        ]),
        ..Container::default()
    }
}

fn by_http(path: &str) -> Probe {
    let get = HTTPGetAction {
        path: Some(path.to_owned()),
        port: IntOrString::String(PORT_NAME.to_owned()),
        scheme: Some("HTTPS".to_owned()),
        ..HTTPGetAction::default()
    };
    Probe { http_get: Some(get), timeout_seconds: Some(5), ..Probe::default() }
}

fn by_script() -> Probe {
    let command = Some(vec!["/opt/cruise-control/cruise_control_healthcheck.sh".to_owned()]);
    Probe {
        exec: Some(ExecAction { command }),
        initial_delay_seconds: Some(15),
        timeout_seconds: Some(5),
        ..Probe::default()
    }
}

/// What Strimzi's start script wants to know.
fn foreign_variables(model: &Model, wanted: &Wanted) -> Vec<EnvVar> {
    let options = wanted.spec.jvm_options.clone().unwrap_or_default();
    let gc_log = options.gc_logging_enabled.unwrap_or_default();
    let mut all = vec![
        variable("CRUISE_CONTROL_JMX_EXPORTER_ENABLED", "false"),
        variable("STRIMZI_KAFKA_BOOTSTRAP_SERVERS", format!("{}:{REPLICATION}", model.names.bootstrap_service())),
        variable("STRIMZI_KAFKA_GC_LOG_ENABLED", gc_log.to_string()),
        variable("STRIMZI_CC_TLS_ENABLED", "true"),
        variable("STRIMZI_CC_MTLS_ENABLED", "true"),
        variable("STRIMZI_CC_API_AUTH_ENABLED", wanted.is_secured().to_string()),
        variable("API_HEALTHCHECK_USERNAME", "healthcheck"),
        variable("API_PORT", PORT.to_string()),
        variable("API_HEALTHCHECK_PATH", "/kafkacruisecontrol/state"),
    ];
    if let Some(heap) = heap(wanted) {
        all.push(variable("KAFKA_HEAP_OPTS", heap));
    }
    all
}

/// As the user says, else three quarters of the memory.
fn heap(wanted: &Wanted) -> Option<String> {
    let options = wanted.spec.jvm_options.clone().unwrap_or_default();
    let limits = wanted.spec.resources.as_ref().and_then(|resources| resources.limits.as_ref());
    match (options.xms, options.xmx) {
        (None, None) => {
            let memory = quantity::bytes(&limits?.get("memory")?.0)?;
            Some(format!("-Xmx{}", memory / 4 * 3))
        }
        (xms, xmx) => {
            let all = [xms.map(|size| format!("-Xms{size}")), xmx.map(|size| format!("-Xmx{size}"))];
            Some(all.into_iter().flatten().collect::<Vec<_>>().join(" "))
        }
    }
}

fn volumes(model: &Model) -> Vec<Volume> {
    let config = ConfigMapVolumeSource { name: model.names.engine_config(), ..ConfigMapVolumeSource::default() };
    vec![
        Volume { name: "tmp".to_owned(), empty_dir: Some(EmptyDirVolumeSource::default()), ..Volume::default() },
        Volume { name: "config".to_owned(), config_map: Some(config), ..Volume::default() },
        secret("cc-certs", &model.names.engine_certs()),
        secret("cluster-ca-certs", &model.names.cluster_ca_cert()),
        secret("api-auth-config", &model.names.engine_api()),
    ]
}
