//! What a pod and a template must be like, and what of a pod may change, in the words that people search for.

use serde_json::{Value, json};

use crate::world::{MERGE, World, unique};

promises!(
    containers_are_checked,
    variables_are_checked,
    volumes_are_checked,
    mounts_are_checked,
    probes_and_hooks_are_checked,
    resources_are_checked,
    security_contexts_are_checked,
    affinities_are_checked,
    tolerations_and_spreads_are_checked,
    what_a_pod_is_called_and_asks_is_checked,
    templates_are_checked_as_pods_are_but_for_the_spaces_of_images,
    a_pod_may_become_stricter_and_not_laxer,
    a_pod_behind_a_gate_may_become_choosier,
);

const NOT_A_LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const NOT_A_SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

/// A spec with one container, and some fields more.
fn spec(more: Value) -> Value {
    with(json!({"containers": [{"name": "a", "image": "i"}]}), more)
}

/// A spec whose one container has some fields more.
fn container(more: Value) -> Value {
    json!({"containers": [with(json!({"name": "a", "image": "i"}), more)]})
}

fn with(mut object: Value, more: Value) -> Value {
    object.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    object
}

/// Each spec is refused with exactly these words about it.
async fn refuses(world: &World, rows: &[(Value, &str)]) {
    for (spec, why) in rows {
        let body = json!({"metadata": {"name": "p"}, "spec": spec});
        let answer = world.post(&world.core("pods"), body).await;
        assert_eq!(answer.code, 422, "{spec} should be: {why}; {}", answer.text);
        assert_eq!(answer.message(), format!("Pod \"p\" is invalid: {why}"), "{spec}");
    }
}

async fn containers_are_checked(world: World) {
    let two = |first: Value, second: Value| json!({"containers": [first, second]});
    let image = |name: &str| json!({"name": name, "image": "i"});
    let ports = |list: Value| container(json!({ "ports": list }));
    refuses(&world, &[
        (json!({"containers": []}), "spec.containers: Required value"),
        (two(image("a"), image("a")), "spec.containers[1].name: Duplicate value: \"a\""),
        (json!({"containers": [{"name": "a", "image": "i "}]}),
            "spec.containers[0].image: Invalid value: \"i \": must not have leading or trailing whitespace"),
        (ports(json!([{"containerPort": 80, "hostPort": 70000}])),
            "spec.containers[0].ports[0].hostPort: Invalid value: 70000: must be between 1 and 65535, inclusive"),
        (ports(json!([{"containerPort": 80, "hostPort": 80}, {"containerPort": 81, "hostPort": 80}])),
            "spec.containers[0].ports[1].hostPort: Duplicate value: \"TCP//80\""),
        (ports(json!([{"containerPort": 80, "name": "A-"}])),
            "[spec.containers[0].ports[0].name: Invalid value: \"A-\": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-), \
             spec.containers[0].ports[0].name: Invalid value: \"A-\": must contain at least one letter (a-z), \
             spec.containers[0].ports[0].name: Invalid value: \"A-\": must not begin or end with a hyphen]"),
        (with(ports(json!([{"containerPort": 80, "hostPort": 81}])), json!({"hostNetwork": true})),
            "spec.containers[0].ports[0].hostPort: Invalid value: 81: must match `containerPort` when `hostNetwork` is true"),
        (container(json!({"terminationMessagePolicy": "Never"})),
            "spec.containers[0].terminationMessagePolicy: Unsupported value: \"Never\": supported values: \"File\", \"FallbackToLogsOnError\""),
        (container(json!({"restartPolicy": "Sometimes"})),
            "spec.containers[0].restartPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", \"Never\", \"OnFailure\""),
        (spec(json!({"initContainers": [{"name": "b", "image": "i", "livenessProbe": {"exec": {"command": ["x"]}}}]})),
            "spec.initContainers[0].livenessProbe: Forbidden: may not be set for init containers without restartPolicy=Always"),
        (spec(json!({"ephemeralContainers": [{"name": "b", "image": "i"}]})),
            "spec.ephemeralContainers: Forbidden: cannot be set on create"),
    ]).await;
    let sidecar =
        json!({"name": "b", "image": "i", "restartPolicy": "Always", "livenessProbe": {"exec": {"command": ["x"]}}});
    let pod = json!({"metadata": {"name": "p"}, "spec": spec(json!({"initContainers": [sidecar]}))});
    world.post(&world.core("pods"), pod).await.code(201);
}

async fn variables_are_checked(world: World) {
    let from = |source: Value| container(json!({"env": [{"name": "A", "valueFrom": source}]}));
    let at = "spec.containers[0].env[0].valueFrom";
    refuses(&world, &[
        (from(json!({"fieldRef": {"fieldPath": ""}})), &format!("{at}.fieldRef.fieldPath: Required value")),
        (from(json!({"fieldRef": {"fieldPath": "spec.containers"}})),
            &format!("{at}.fieldRef.fieldPath: Invalid value: \"spec.containers\": error converting fieldPath: field label not supported: spec.containers")),
        (from(json!({"fieldRef": {"fieldPath": "status.phase"}})),
            &format!("{at}.fieldRef.fieldPath: Unsupported value: \"status.phase\": supported values: \"metadata.name\", \"metadata.namespace\", \
             \"metadata.uid\", \"spec.nodeName\", \"spec.serviceAccountName\", \"status.hostIP\", \"status.hostIPs\", \"status.podIP\", \"status.podIPs\"")),
        (from(json!({"fieldRef": {"fieldPath": "metadata.name['a']"}})),
            &format!("{at}.fieldRef.fieldPath: Invalid value: \"metadata.name['a']\": error converting fieldPath: field label does not support subscript: metadata.name['a']")),
        (from(json!({"resourceFieldRef": {"resource": "limits.gold"}})),
            &format!("{at}.resourceFieldRef.resource: Unsupported value: \"limits.gold\": supported values: \"limits.cpu\", \
             \"limits.ephemeral-storage\", \"limits.memory\", \"requests.cpu\", \"requests.ephemeral-storage\", \"requests.memory\"")),
        (from(json!({"resourceFieldRef": {"resource": "limits.cpu", "divisor": "2"}})),
            &format!("{at}.resourceFieldRef.divisor: Invalid value: \"limits.cpu\": only divisor's values 1m and 1 are supported with the cpu resource")),
        (from(json!({"configMapKeyRef": {"name": "A!", "key": ""}})),
            &format!("[{at}.configMapKeyRef.name: Invalid value: \"A!\": {NOT_A_SUBDOMAIN}, {at}.configMapKeyRef.key: Required value]")),
        (container(json!({"envFrom": [{}]})),
            "spec.containers[0].envFrom: Invalid value: \"\": must specify one of: `configMapRef` or `secretRef`"),
        (container(json!({"envFrom": [{"configMapRef": {"name": ""}}]})),
            "spec.containers[0].envFrom[0].configMapRef.name: Required value"),
    ]).await;
    let pod = from(json!({"fieldRef": {"fieldPath": "metadata.labels['app']"}}));
    world.post(&world.core("pods"), json!({"metadata": {"name": "p"}, "spec": pod})).await.code(201);
}

async fn volumes_are_checked(world: World) {
    let volume = |source: Value| spec(json!({"volumes": [with(json!({"name": "v"}), source)]}));
    let token = |token: Value| volume(json!({"projected": {"sources": [{"serviceAccountToken": token}]}}));
    let at = "spec.volumes[0]";
    refuses(&world, &[
        (volume(json!({"emptyDir": {"sizeLimit": "-1"}})),
            &format!("{at}.emptyDir.sizeLimit: Forbidden: SizeLimit field must be a valid resource quantity")),
        (volume(json!({"hostPath": {"path": "/a/../b"}})),
            &format!("{at}.hostPath.path: Invalid value: \"/a/../b\": must not contain '..'")),
        (volume(json!({"hostPath": {"path": "/a", "type": "Floppy"}})),
            &format!("{at}.hostPath.type: Unsupported value: \"Floppy\": supported values: \"\", \"BlockDevice\", \"CharDevice\", \
             \"Directory\", \"DirectoryOrCreate\", \"File\", \"FileOrCreate\", \"Socket\"")),
        (volume(json!({"configMap": {"name": "m", "defaultMode": 512}})),
            &format!("{at}.configMap.defaultMode: Invalid value: 512: must be a number between 0 and 0777 (octal), both inclusive")),
        (volume(json!({"secret": {"secretName": "s", "items": [{"key": "", "path": "/a"}]}})),
            &format!("[{at}.secret.items[0].key: Required value, {at}.secret.items[0].path: Invalid value: \"/a\": must be a relative path]")),
        (volume(json!({"configMap": {"name": "m", "items": [{"key": "k", "path": "..a"}]}})),
            &format!("{at}.configMap.items[0].path: Invalid value: \"..a\": must not start with '..'")),
        (volume(json!({"nfs": {"server": "s", "path": "a"}})),
            &format!("{at}.nfs.path: Invalid value: \"a\": must be an absolute path")),
        (volume(json!({"downwardAPI": {"items": [{"path": "a"}]}})),
            &format!("{at}.downwardAPI: Required value: one of fieldRef and resourceFieldRef is required")),
        (token(json!({"path": "t", "expirationSeconds": 1})),
            &format!("{at}.projected.sources[0].serviceAccountToken.expirationSeconds: Invalid value: 1: may not specify a duration less than 10 minutes")),
        (volume(json!({"projected": {"sources": [{"secret": {"name": "s"}, "configMap": {"name": "m"}}]}})),
            &format!("{at}.projected.sources[0]: Forbidden: may not specify more than 1 volume type per source")),
        (volume(json!({"ephemeral": {}})), &format!("{at}.ephemeral.volumeClaimTemplate: Required value")),
    ]).await;
}

async fn mounts_are_checked(world: World) {
    let mount = |mount: Value| {
        let mounts = container(json!({"volumeMounts": [with(json!({"name": "v", "mountPath": "/v"}), mount)]}));
        with(mounts, json!({"volumes": [{"name": "v", "emptyDir": {}}]}))
    };
    let device = |volume: Value| {
        let devices = container(json!({"volumeDevices": [{"name": "v", "devicePath": "/v"}]}));
        with(devices, json!({"volumes": [with(json!({"name": "v"}), volume)]}))
    };
    let at = "spec.containers[0].volumeMounts";
    refuses(&world, &[
        (mount(json!({"name": "w"})), &format!("{at}[0].name: Not found: \"w\"")),
        (mount(json!({"subPath": "/a"})), &format!("{at}.subPath: Invalid value: \"/a\": must be a relative path")),
        (mount(json!({"subPath": "a/../b"})), &format!("{at}.subPath: Invalid value: \"a/../b\": must not contain '..'")),
        (mount(json!({"subPath": "a", "subPathExpr": "b"})),
            &format!("{at}[0].subPathExpr: Invalid value: \"b\": subPathExpr and subPath are mutually exclusive")),
        (mount(json!({"mountPropagation": "Bidirectional"})),
            &format!("{at}.mountPropagation: Forbidden: Bidirectional mount propagation is available only to privileged containers")),
        // A volume that something is wrong with is none that could be mounted.
        (with(mount(json!({})), json!({"volumes": [{"name": "v", "configMap": {"name": ""}}]})),
            &format!("[spec.volumes[0].configMap.name: Required value, {at}[0].name: Not found: \"v\"]")),
        (device(json!({"emptyDir": {}})),
            "spec.containers[0].volumeDevices[0].name: Invalid value: \"v\": can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"),
    ]).await;
    let pod = device(json!({"persistentVolumeClaim": {"claimName": "c"}}));
    world.post(&world.core("pods"), json!({"metadata": {"name": "p"}, "spec": pod})).await.code(201);
}

async fn probes_and_hooks_are_checked(world: World) {
    let probe = |kind: &str, more: Value| container(json!({kind: with(json!({"tcpSocket": {"port": 80}}), more)}));
    let hook = |action: Value| container(json!({"lifecycle": {"preStop": action}}));
    refuses(&world, &[
        (probe("readinessProbe", json!({"terminationGracePeriodSeconds": 5})),
            "spec.containers[0].readinessProbe.terminationGracePeriodSeconds: Invalid value: 5: must not be set for readinessProbes"),
        (probe("livenessProbe", json!({"terminationGracePeriodSeconds": 0})),
            "spec.containers[0].livenessProbe.terminationGracePeriodSeconds: Invalid value: 0: must be greater than 0"),
        (container(json!({"livenessProbe": {"httpGet": {"port": 80, "scheme": "GOPHER"}}})),
            "spec.containers[0].livenessProbe.httpGet.scheme: Unsupported value: \"GOPHER\": supported values: \"HTTP\", \"HTTPS\""),
        (container(json!({"livenessProbe": {"httpGet": {"port": 80, "httpHeaders": [{"name": "a b", "value": "c"}]}}})),
            "spec.containers[0].livenessProbe.httpGet.httpHeaders: Invalid value: \"a b\": a valid HTTP header must consist of alphanumeric \
             characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')"),
        (hook(json!({})), "spec.containers[0].lifecycle.preStop: Required value: must specify a handler type"),
        (hook(json!({"exec": {}})), "spec.containers[0].lifecycle.preStop.exec.command: Required value"),
        (hook(json!({"sleep": {"seconds": 31}})),
            "spec.containers[0].lifecycle.preStop.sleep: Invalid value: 31: must be non-negative and less than terminationGracePeriodSeconds (30)"),
    ]).await;
}

async fn resources_are_checked(world: World) {
    let resources =
        |limits: Value, requests: Value| container(json!({"resources": {"limits": limits, "requests": requests}}));
    let at = "spec.containers[0].resources";
    refuses(
        &world,
        &[
            (
                resources(json!({"cpu": "1"}), json!({"cpu": "2"})),
                &format!("{at}.requests: Invalid value: \"2\": must be less than or equal to cpu limit of 1"),
            ),
            (
                resources(json!({"example.com/gpu": "2"}), json!({"example.com/gpu": "1"})),
                &format!("{at}.requests: Invalid value: \"1\": must be equal to example.com/gpu limit of 2"),
            ),
            (
                resources(json!({}), json!({"example.com/gpu": "1"})),
                &format!("{at}.limits: Required value: Limit must be set for non overcommitable resources"),
            ),
            (
                resources(json!({"hugepages-2Mi": "2Mi"}), json!({})),
                &format!("{at}: Forbidden: HugePages require cpu or memory"),
            ),
            (
                container(json!({"resizePolicy": [{"resourceName": "disk", "restartPolicy": "NotRequired"}]})),
                "spec.containers[0].resizePolicy: Unsupported value: \"disk\": supported values: \"cpu\", \"memory\"",
            ),
        ],
    )
    .await;
}

async fn security_contexts_are_checked(world: World) {
    let of_pod = |context: Value| spec(json!({ "securityContext": context }));
    refuses(&world, &[
        (container(json!({"securityContext": {"runAsUser": -1}})),
            "spec.containers[0].securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive"),
        (container(json!({"securityContext": {"seccompProfile": {"type": "Localhost"}}})),
            "spec.containers[0].securityContext.seccompProfile.localhostProfile: Required value: must be set when seccomp type is Localhost"),
        (of_pod(json!({"fsGroup": -1})),
            "spec.securityContext.fsGroup: Invalid value: -1: must be between 0 and 2147483647, inclusive"),
        (of_pod(json!({"supplementalGroups": [1, -1]})),
            "spec.securityContext.supplementalGroups[1]: Invalid value: -1: must be between 0 and 2147483647, inclusive"),
        (of_pod(json!({"fsGroupChangePolicy": "Maybe"})),
            "spec.securityContext.fsGroupChangePolicy: Unsupported value: \"Maybe\": supported values: \"Always\", \"OnRootMismatch\""),
        (of_pod(json!({"seccompProfile": {"type": "Loose"}})),
            "spec.securityContext.seccompProfile.type: Unsupported value: \"Loose\": supported values: \"Localhost\", \"RuntimeDefault\", \"Unconfined\""),
    ]).await;
    // What is shown of it differs: the original shows its own structure.
    let context = json!({"allowPrivilegeEscalation": false, "capabilities": {"add": ["CAP_SYS_ADMIN"]}});
    let pod = container(json!({ "securityContext": context }));
    let answer = world.post(&world.core("pods"), json!({"metadata": {"name": "p"}, "spec": pod})).await;
    let answer = answer.refused(422, "Invalid").causes(&[("FieldValueInvalid", "spec.containers[0].securityContext")]);
    answer.mentions("cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN");
}

async fn affinities_are_checked(world: World) {
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
    let node = |terms: Value| spec(json!({"affinity": {"nodeAffinity": {required: {"nodeSelectorTerms": terms}}}}));
    let pods = |term: Value| spec(json!({"affinity": {"podAntiAffinity": {required: [term]}}}));
    let at_node = format!("spec.affinity.nodeAffinity.{required}.nodeSelectorTerms");
    let at_pods = format!("spec.affinity.podAntiAffinity.{required}[0]");
    refuses(&world, &[
        (node(json!([])), &format!("{at_node}: Required value: must have at least one node selector term")),
        (node(json!([{"matchExpressions": [{"key": "a", "operator": "In"}]}])),
            &format!("{at_node}[0].matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'")),
        (node(json!([{"matchExpressions": [{"key": "a", "operator": "Near"}]}])),
            &format!("{at_node}[0].matchExpressions[0].operator: Invalid value: \"Near\": not a valid selector operator")),
        (node(json!([{"matchFields": [{"key": "a", "operator": "In", "values": ["b"]}]}])),
            &format!("{at_node}[0].matchFields[0].key: Invalid value: \"a\": not a valid field selector key")),
        (spec(json!({"affinity": {"nodeAffinity": {preferred: [{"weight": 101, "preference": {}}]}}})),
            &format!("spec.affinity.nodeAffinity.{preferred}[0].weight: Invalid value: 101: must be in the range 1-100")),
        (pods(json!({"topologyKey": "k", "labelSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}})),
            &format!("{at_pods}.labelSelector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'")),
    ]).await;
    let answer = world
        .post(&world.core("pods"), json!({"metadata": {"name": "p"}, "spec": pods(json!({"topologyKey": ""}))}))
        .await;
    let field = format!("{at_pods}.topologyKey");
    answer.refused(422, "Invalid").causes(&[("FieldValueInvalid", &field), ("FieldValueRequired", &field)]);
}

async fn tolerations_and_spreads_are_checked(world: World) {
    let tolerates = |toleration: Value| spec(json!({"tolerations": [toleration]}));
    let spread = |more: Value| {
        let whole = with(json!({"maxSkew": 1, "topologyKey": "k", "whenUnsatisfiable": "ScheduleAnyway"}), more);
        spec(json!({"topologySpreadConstraints": [whole]}))
    };
    let at = "spec.topologySpreadConstraints[0]";
    refuses(&world, &[
        (tolerates(json!({"key": "a", "operator": "Exists", "tolerationSeconds": 1})),
            "spec.tolerations[0].effect: Invalid value: \"\": effect must be 'NoExecute' when `tolerationSeconds` is set"),
        (tolerates(json!({"key": "a", "operator": "Exists", "value": "b"})),
            "spec.tolerations[0].operator: Invalid value: \"b\": value must be empty when `operator` is 'Exists'"),
        (tolerates(json!({"key": "a", "operator": "Gt", "value": "1"})),
            "spec.tolerations[0].operator: Unsupported value: \"Gt\": supported values: \"Equal\", \"Exists\", \"Lt\", \"Gt\""),
        (tolerates(json!({"key": "a", "operator": "Exists", "effect": "Tickle"})),
            "spec.tolerations[0].effect: Unsupported value: \"Tickle\": supported values: \"NoSchedule\", \"PreferNoSchedule\", \"NoExecute\""),
        (spread(json!({"maxSkew": 0})), &format!("{at}.maxSkew: Invalid value: 0: must be greater than zero")),
        (spread(json!({"topologyKey": ""})), &format!("{at}.topologyKey: Required value: can not be empty")),
        (spread(json!({"whenUnsatisfiable": "Cry"})),
            &format!("{at}.whenUnsatisfiable: Unsupported value: \"Cry\": supported values: \"DoNotSchedule\", \"ScheduleAnyway\"")),
        (spread(json!({"minDomains": 2})),
            &format!("{at}.minDomains: Invalid value: 2: can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway")),
    ]).await;
}

async fn what_a_pod_is_called_and_asks_is_checked(world: World) {
    refuses(&world, &[
        (spec(json!({"hostname": "A"})), &format!("spec.hostname: Invalid value: \"A\": {NOT_A_LABEL}")),
        (spec(json!({"subdomain": "a.b"})), "spec.subdomain: Invalid value: \"a.b\": must not contain dots"),
        (json!({"containers": [{"name": "a.b", "image": "i"}]}),
            "spec.containers[0].name: Invalid value: \"a.b\": must not contain dots"),
        (spec(json!({"hostAliases": [{"ip": "10.0.0.1", "hostnames": ["A"]}]})),
            &format!("spec.hostAliases[0].hostnames[0]: Invalid value: \"A\": {NOT_A_SUBDOMAIN}")),
        (spec(json!({"dnsPolicy": "None"})),
            "spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"),
        (spec(json!({"dnsConfig": {"nameservers": ["x"]}})),
            "spec.dnsConfig.nameservers[0]: Invalid value: \"x\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"),
        (spec(json!({"dnsConfig": {"nameservers": ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"]}})),
            "spec.dnsConfig.nameservers: Invalid value: [\"10.0.0.1\",\"10.0.0.2\",\"10.0.0.3\",\"10.0.0.4\"]: must not have more than 3 nameservers"),
        (spec(json!({"schedulingGates": [{"name": "a"}, {"name": "a"}]})),
            "spec.schedulingGates[1]: Duplicate value: \"a\""),
        (spec(json!({"os": {"name": "plan9"}})),
            "spec.os: Unsupported value: \"plan9\": supported values: \"linux\", \"windows\""),
        (spec(json!({"schedulingGates": [{"name": "a"}], "nodeName": "n"})),
            "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared"),
    ]).await;
}

async fn templates_are_checked_as_pods_are_but_for_the_spaces_of_images(world: World) {
    let deployments = world.of_group("apps/v1", "deployments");
    let deployment = |pod: Value, label: &str| {
        json!({"metadata": {"name": unique("d")}, "spec": {"selector": {"matchLabels": {"app": "a"}},
            "template": {"metadata": {"labels": {"app": "a", "more": label}}, "spec": pod}}})
    };
    let answer = world.post(&deployments, deployment(container(json!({"envFrom": [{}]})), "")).await;
    let answer = answer.refused(422, "Invalid");
    answer.mentions("spec.template.spec.containers[0].envFrom: Invalid value: \"\": must specify one of");
    let answer = world.post(&deployments, deployment(spec(json!({})), "a b")).await.refused(422, "Invalid");
    answer.causes(&[("FieldValueInvalid", "spec.template.labels")]);
    let spaced = json!({"containers": [{"name": "a", "image": " i"}]});
    world.post(&deployments, deployment(spaced, "")).await.code(201);
}

async fn a_pod_may_become_stricter_and_not_laxer(world: World) {
    let pods = world.core("pods");
    let tolerations = json!([{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}]);
    let pod = spec(json!({"activeDeadlineSeconds": 100, "tolerations": tolerations}));
    world.post(&pods, json!({"metadata": {"name": "p"}, "spec": pod})).await.code(201);
    let one = format!("{pods}/p");
    let strategic = crate::world::STRATEGIC;
    let image = |image: &str| json!({"spec": {"containers": [{"name": "a", "image": image}]}});
    assert_eq!(world.patch(strategic, &one, image("j")).await.ok()["spec"]["containers"][0]["image"], "j");
    let answer = world.patch(strategic, &one, image("j ")).await.refused(422, "Invalid");
    answer.causes(&[("FieldValueInvalid", "spec.containers[0].image")]);
    world.patch(MERGE, &one, json!({"spec": {"activeDeadlineSeconds": 50}})).await.code(200);
    for (deadline, why) in [
        (json!(60), "spec.activeDeadlineSeconds: Invalid value: 60: must be less than or equal to previous value"),
        (
            json!(null),
            "spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive integer to nil value",
        ),
    ] {
        let answer = world.patch(MERGE, &one, json!({"spec": {"activeDeadlineSeconds": deadline}})).await;
        answer.refused(422, "Invalid").says(&format!("Pod \"p\" is invalid: {why}"));
    }
    let now = world.get(&one).await.ok()["spec"]["tolerations"].take();
    let mut patient = now.clone();
    patient[0]["tolerationSeconds"] = json!(90);
    world.patch(MERGE, &one, json!({"spec": {"tolerations": patient}})).await.code(200);
    let mut other = now.clone();
    other[0]["key"] = json!("b");
    let answer = world.patch(MERGE, &one, json!({"spec": {"tolerations": other}})).await.refused(422, "Invalid");
    answer.says("Pod \"p\" is invalid: spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds");
    let answer = world.patch(MERGE, &one, json!({"spec": {"nodeSelector": {"a": "b"}}})).await.refused(422, "Invalid");
    answer.causes(&[("FieldValueForbidden", "spec")]).mentions("pod updates may not change fields other than");
}

async fn a_pod_behind_a_gate_may_become_choosier(world: World) {
    let pods = world.core("pods");
    let pod = spec(json!({"schedulingGates": [{"name": "example.com/a"}], "nodeSelector": {"a": "b"}}));
    world.post(&pods, json!({"metadata": {"name": "p"}, "spec": pod})).await.code(201);
    let one = format!("{pods}/p");
    let change = |spec: Value| world.patch(MERGE, &one, json!({ "spec": spec }));
    change(json!({"nodeSelector": {"c": "d"}})).await.code(200);
    let answer = change(json!({"nodeSelector": {"a": "z"}})).await.refused(422, "Invalid");
    answer.says(
        "Pod \"p\" is invalid: spec.nodeSelector: Invalid value: {\"a\":\"z\",\"c\":\"d\"}: only additions to spec.nodeSelector are allowed (no mutations or deletions)",
    );
    let answer = change(json!({"schedulingGates": [{"name": "example.com/b"}]})).await.refused(422, "Invalid");
    answer.says(
        "Pod \"p\" is invalid: spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'example.com/b'",
    );
    change(json!({"schedulingGates": null})).await.code(200);
    change(json!({"nodeSelector": {"e": "f"}}))
        .await
        .refused(422, "Invalid")
        .causes(&[("FieldValueForbidden", "spec")]);
}
