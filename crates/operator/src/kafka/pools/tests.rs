use serde_json::{Value, json};

use super::*;

fn kafka(spec: Value) -> Kafka {
    serde_json::from_value(json!({"apiVersion": "kafka.strimzi.io/v1", "kind": "Kafka",
        "metadata": {"name": "c", "namespace": "ns", "uid": "u"}, "spec": spec}))
    .unwrap()
}

fn node_pool(name: &str, replicas: i32, roles: &[&str], ids: &[i32]) -> KafkaNodePool {
    serde_json::from_value(json!({"apiVersion": "kafka.strimzi.io/v1", "kind": "KafkaNodePool",
        "metadata": {"name": name, "namespace": "ns", "uid": name, "labels": {"strimzi.io/cluster": "c"}},
        "spec": {"replicas": replicas, "roles": roles, "storage": {"type": "persistent-claim", "size": "10Gi"}},
        "status": {"nodeIds": ids, "roles": roles}}))
    .unwrap()
}

fn pod_set(pool: &str, ids: &[i32], roles: &[&str], owner: &str, storage: Value) -> StrimziPodSet {
    let has = |role: &str| roles.contains(&role).to_string();
    let pods: Vec<Value> = ids
        .iter()
        .map(|id| {
            json!({"metadata": {"name": format!("c-{pool}-{id}"), "labels": {
                "strimzi.io/controller-role": has("controller"), "strimzi.io/broker-role": has("broker")}}})
        })
        .collect();
    serde_json::from_value(json!({"apiVersion": "core.strimzi.io/v1", "kind": "StrimziPodSet",
        "metadata": {"name": format!("c-{pool}"), "namespace": "ns", "labels": {"strimzi.io/cluster": "c"},
            "annotations": {"strimzi.io/storage": storage.to_string()},
            "ownerReferences": [{"apiVersion": "kafka.strimzi.io/v1", "kind": owner, "name": "x", "uid": "x"}]},
        "spec": {"selector": {}, "pods": pods}}))
    .unwrap()
}

fn ten() -> Value {
    json!({"type": "persistent-claim", "size": "10Gi"})
}

fn running() -> (Vec<KafkaNodePool>, Vec<StrimziPodSet>) {
    (
        vec![node_pool("b", 3, &["broker"], &[0, 1, 2]), node_pool("k", 3, &["controller"], &[3, 4, 5])],
        vec![
            pod_set("b", &[0, 1, 2], &["broker"], "KafkaNodePool", ten()),
            pod_set("k", &[3, 4, 5], &["controller"], "KafkaNodePool", ten()),
        ],
    )
}

/// As long as nobody was told who votes.
fn read_pools(kafka: &Kafka, pools: &[KafkaNodePool], sets: &[StrimziPodSet]) -> Result<Pools, Vec<Problem>> {
    Pools::read(kafka, pools, sets, &Voters::default())
}

fn said(result: Result<Pools, Vec<Problem>>) -> Vec<String> {
    result.map(|_| ()).unwrap_err().iter().map(ToString::to_string).collect()
}

#[test]
fn a_cluster_with_pools_is_read() {
    let (pools, sets) = running();
    let read = read_pools(&kafka(json!({"kafka": {}})), &pools, &sets).unwrap();
    let b = &read.all["b"];
    assert_eq!((b.replicas, b.roles, b.roles_before), (3, Roles::BROKER, Some(Roles::BROKER)));
    assert_eq!((b.current.clone(), b.owner.kind.as_str()), ([0, 1, 2].into(), "KafkaNodePool"));
    assert!(read.quorum_runs && read.taken.is_empty() && read.remarks.is_empty());
}

#[test]
fn pools_of_others_are_passed_over_and_ids_of_those_that_go_are_taken() {
    let (mut pools, mut sets) = running();
    let mut foreign = node_pool("foreign", 1, &[], &[9]);
    foreign.labels_mut().insert(labels::CLUSTER.to_owned(), "other".to_owned());
    let mut going = node_pool("going", 1, &["broker"], &[6]);
    going.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    pools.extend([foreign, going]);
    sets.push(pod_set("gone", &[7], &["broker"], "KafkaNodePool", ten()));
    let read = read_pools(&kafka(json!({"kafka": {}})), &pools, &sets).unwrap();
    assert_eq!(read.all.keys().collect::<Vec<_>>(), ["b", "k"]);
    assert_eq!(read.taken, [6, 7].into());
}

#[test]
fn a_kafka_with_replicas_has_two_pools_that_remember_their_ids_in_pod_sets() {
    let spec = json!({"kafka": {"replicas": 3, "storage": {"type": "jbod", "volumes": [
        {"id": 0, "type": "ephemeral"}, {"id": 1, "type": "ephemeral"}]}}});
    let read = read_pools(&kafka(spec.clone()), &[], &[]).unwrap();
    let assigned = crate::kafka::nodes::assign(&read);
    assert_eq!(assigned.pools[IMPLICIT_BROKERS].desired, [0, 1, 2].into());
    assert_eq!(assigned.pools[IMPLICIT_CONTROLLERS].desired, [100, 101, 102].into());
    assert_eq!(read.all[IMPLICIT_CONTROLLERS].disks.disks.len(), 1);

    let storage = spec["kafka"]["storage"].clone();
    let sets = [
        pod_set("kafka", &[0, 1, 4], &["broker"], "Kafka", storage.clone()),
        pod_set("controllers", &[100, 101, 102], &["controller"], "Kafka", storage),
    ];
    let read = read_pools(&kafka(spec.clone()), &[], &sets).unwrap();
    assert_eq!(read.all[IMPLICIT_BROKERS].current, [0, 1, 4].into());
    assert_eq!(read.all[IMPLICIT_BROKERS].owner.kind, "Kafka");

    // Node pools beside them would throw them away.
    let problems = said(read_pools(&kafka(spec), &running().0, &sets));
    assert!(problems[0].contains("runs without node pools (StrimziPodSet c-kafka)"), "{problems:?}");
}

#[test]
fn a_kafka_whose_pools_are_away_gets_none_of_its_own() {
    let spec = json!({"kafka": {"replicas": 3, "storage": {"type": "ephemeral"}}});
    let (mut pools, sets) = running();
    let read = |kafka: &Kafka, pools: &[KafkaNodePool], sets: &[StrimziPodSet]| said(read_pools(kafka, pools, sets));
    // They lost their label, or were replaced by force.
    let problems = read(&kafka(spec.clone()), &[], &sets);
    assert!(problems[0].contains("StrimziPodSet c-b is still there, and its node pool is not"), "{problems:?}");
    for pool in &mut pools {
        pool.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    }
    assert!(read(&kafka(spec.clone()), &pools, &[])[0].contains("node pool b is being deleted"));
    // Nothing of them is left, but it is on record that there were some; or it is announced that there will be.
    let mut had = kafka(spec.clone());
    had.status = serde_json::from_value(json!({"kafkaNodePools": [{"name": "b"}]})).unwrap();
    assert!(read(&had, &[], &[])[0].contains("it has had node pools (b)"));
    let mut announced = kafka(spec);
    announced.annotations_mut().insert("strimzi.io/node-pools".to_owned(), "enabled".to_owned());
    assert!(read(&announced, &[], &[])[0].contains("says that there are node pools"));
}

#[test]
fn what_is_missing_is_said() {
    let (pools, _) = running();
    let read = |spec: Value, pools: &[KafkaNodePool]| said(read_pools(&kafka(spec), pools, &[]));
    assert!(read(json!({"kafka": {}}), &[])[0].contains("strimzi.io/cluster: c"));
    assert!(read(json!({"kafka": {"replicas": 3}}), &[])[0].starts_with("spec.kafka.storage: is required"));
    assert_eq!(
        read(json!({"kafka": {}}), &pools[..1]),
        ["spec.kafka: no node pool with at least one replica has the role controller"]
    );
    assert_eq!(
        read(json!({"kafka": {}}), &[pools[1].clone(), node_pool("b", 0, &["broker"], &[])]),
        ["spec.kafka: no node pool with at least one replica has the role broker"]
    );
    assert_eq!(
        read(json!({"kafka": {}}), &[node_pool("b", 1, &[], &[])]),
        ["node pool b, spec.roles: names no role: write `broker`, `controller` or both"]
    );
    assert_eq!(
        read(json!({"kafka": {}, "cruiseControl": {}}), &[pools[1].clone(), node_pool("b", 1, &["broker"], &[])]),
        ["spec.cruiseControl: Cruise Control needs two brokers at least, and there would be 1"]
    );
    let twice = [pools[1].clone(), node_pool("b", 1, &["broker"], &[3])];
    assert_eq!(
        read(json!({"kafka": {}}), &twice),
        ["node pool k, status.nodeIds: node id 3 is also in node pool b: an id belongs to one pool"]
    );
}

#[test]
fn the_quorum_cannot_change_once_it_runs() {
    let (pools, sets) = running();
    let with = |n: usize, change: &dyn Fn(&mut KafkaNodePool)| {
        let mut pools = pools.clone();
        change(&mut pools[n]);
        pools
    };
    let grown = with(1, &|pool| pool.spec.replicas = 5);
    let problems = said(read_pools(&kafka(json!({"kafka": {}})), &grown, &sets));
    assert_eq!(
        problems,
        [
            "node pool k, spec.replicas: 3 controllers cannot become 5: the quorum of controllers is fixed when the cluster \
          is made"
        ]
    );
    // Before the first pod set it can, unless the cluster is on record: then somebody has deleted the set.
    assert!(read_pools(&kafka(json!({"kafka": {}})), &grown, &[]).is_ok());
    let mut recorded = kafka(json!({"kafka": {}}));
    recorded.status = serde_json::from_value(json!({"clusterId": "id"})).unwrap();
    assert_eq!(said(read_pools(&recorded, &grown, &[])), problems);

    for changed in [
        with(0, &|pool| pool.spec.roles.push(ProcessRole::Controller)),
        with(1, &|pool| pool.spec.roles = vec![ProcessRole::Controller, ProcessRole::Broker]),
    ] {
        let read = read_pools(&kafka(json!({"kafka": {}})), &changed, &sets);
        let becomes_controller = changed[0].spec.roles.contains(&ProcessRole::Controller);
        assert_eq!(read.is_err(), becomes_controller, "{read:?}");
    }
    let mut more = pools.clone();
    more.push(node_pool("new", 1, &["controller"], &[]));
    let problems = said(read_pools(&kafka(json!({"kafka": {}})), &more, &sets));
    assert!(
        problems[0].starts_with("node pool new, spec.roles: a pool of controllers cannot be added"),
        "{problems:?}"
    );
}

/// Two pools of controllers, as for two zones; the second one is away, or about to be.
#[test]
fn a_pool_of_controllers_cannot_be_taken_away_while_its_nodes_run() {
    let (mut pools, mut sets) = running();
    pools.push(node_pool("k-two", 2, &["controller"], &[6, 7]));
    sets.push(pod_set("k-two", &[6, 7], &["controller"], "KafkaNodePool", ten()));
    let told: Voters = (3..8).map(|id| (id, if id < 6 { "k" } else { "k-two" }.to_owned())).collect();
    let read =
        |pools: &[KafkaNodePool], sets: &[StrimziPodSet]| Pools::read(&kafka(json!({"kafka": {}})), pools, sets, &told);
    let all = read(&pools, &sets).unwrap();
    assert_eq!((all.voters.clone(), all.remarks), (told.clone(), Vec::new()));

    let expected = "spec.kafka: StrimziPodSet c-k-two is still there with controllers (6, 7), and its node pool is not: the \
                    quorum of controllers is fixed when the cluster is made. Give the KafkaNodePool its label \
                    strimzi.io/cluster: c again, or make it again as it was";
    let mut unlabelled = pools.clone();
    unlabelled[2].labels_mut().clear();
    let mut going = pools.clone();
    going[2].metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    for away in [&unlabelled[..], &going[..], &pools[..2]] {
        assert_eq!(said(read(away, &sets)), [expected]);
    }
    // A broker's pool may be away: it takes nothing from the others.
    assert!(read(&[pools[1].clone(), pools[2].clone(), node_pool("c", 2, &["broker"], &[])], &sets).is_ok());

    // It is gone, with all that was its own: they still vote, nobody gets their ids, and it is said.
    let left = read(&pools[..2], &sets[..2]).unwrap();
    assert_eq!((left.voters.clone(), left.taken), (told.clone(), [6, 7].into()));
    assert_eq!(
        left.remarks[0].condition.message.as_deref(),
        Some(
            "controllers are gone with their node pool k-two (6, 7), and still count, because the quorum is fixed when the \
             cluster is made: of 5 controllers 3 are left, and 3 must be up. Make the node pool again, with the same name, \
             roles and number of replicas: it gets the same ids"
        )
    );

    // Made again it is the same, and not another size.
    let mut again = [pools[0].clone(), pools[1].clone(), node_pool("k-two", 2, &["controller"], &[])];
    again[2].status = None;
    let back = read(&again, &sets[..2]).unwrap();
    assert_eq!((back.all["k-two"].current.clone(), back.taken, back.remarks), ([6, 7].into(), [].into(), Vec::new()));
    assert_eq!(crate::kafka::nodes::assign(&read(&again, &sets[..2]).unwrap()).pools["k-two"].desired, [6, 7].into());
    again[2].spec.replicas = 3;
    assert!(said(read(&again, &sets[..2]))[0].contains("2 controllers cannot become 3"));
    again[2].spec.roles = vec![ProcessRole::Broker];
    assert!(said(read(&again, &sets[..2]))[0].contains("nodes cannot cease to be controllers"));
}

/// Two pools of brokers; the larger one loses its label, or gets that of another cluster.
#[test]
fn brokers_whose_pool_has_lost_its_label_run_on_and_are_spoken_of() {
    let (mut pools, mut sets) = running();
    pools.push(node_pool("c", 1, &["broker"], &[6]));
    sets.push(pod_set("c", &[6], &["broker"], "KafkaNodePool", ten()));
    for (set, pool) in sets.iter_mut().zip(&pools) {
        set.metadata.owner_references.as_mut().unwrap()[0].uid = pool.uid().unwrap();
    }
    let cluster = kafka(json!({"kafka": {"config": {"default.replication.factor": 3}}, "cruiseControl": {}}));
    for label in [None, Some("other")] {
        let mut pools = pools.clone();
        let label = label.map(|label| (labels::CLUSTER.to_owned(), label.to_owned()));
        pools[0].metadata.labels = Some(label.into_iter().collect());
        let read = read_pools(&cluster, &pools, &sets).unwrap();
        assert_eq!((read.unlabelled.clone(), read.taken.clone()), ([0, 1, 2].into(), [0, 1, 2].into()));
        assert_eq!(read.brokers(), 4, "they still are");
        let remarks: Vec<&str> = read.remarks.iter().filter_map(|it| it.condition.message.as_deref()).collect();
        assert_eq!(
            remarks,
            [
                "KafkaNodePool b has lost its label strimzi.io/cluster: c. Its brokers (0, 1, 2) run on with their data, and \
                 nothing is changed about them any more. Give it the label again"
            ]
        );
        let assigned = crate::kafka::nodes::assign(&read);
        assert_eq!((assigned.removed_brokers(), assigned.desired_brokers()), ([].into(), [6].into()));
        // Without any other there is no cluster that could be looked after, and it is said why.
        let alone = said(read_pools(&cluster, &pools[..2], &sets[..2]));
        assert_eq!(
            alone,
            [
                "spec.kafka: no node pool with at least one replica has the role broker: give the one whose brokers run its \
                 label strimzi.io/cluster: c again"
            ]
        );
    }
    // A namesake that was made since has none of them, and one that is on its way out is no mistake.
    let mut namesake = pools.clone();
    namesake[0].metadata.labels = None;
    namesake[0].metadata.uid = Some("another".to_owned());
    let mut going = pools.clone();
    going[0].metadata.labels = None;
    going[0].metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    for others in [namesake, going] {
        let read = read_pools(&kafka(json!({"kafka": {}})), &others, &sets).unwrap();
        assert_eq!((read.unlabelled, read.remarks), ([].into(), Vec::new()));
    }
}

#[test]
fn until_the_quorum_runs_nobody_is_bound_by_what_was_written_for_it() {
    let told: Voters = [(3, "k".to_owned()), (9, "elsewhere".to_owned())].into_iter().collect();
    let pools = [node_pool("b", 3, &["broker"], &[]), node_pool("k", 1, &["controller"], &[])];
    let read = Pools::read(&kafka(json!({"kafka": {}})), &pools, &[], &told).unwrap();
    assert_eq!((read.voters, read.taken, read.remarks), (Voters::default(), [].into(), Vec::new()));
}

#[test]
fn nodes_of_a_pool_that_lost_its_status_are_not_taken_for_new() {
    let (mut pools, sets) = running();
    for pool in &mut pools {
        pool.status = None;
    }
    pools[0].spec.replicas = 2;
    let read = read_pools(&kafka(json!({"kafka": {}})), &pools, &sets).unwrap();
    assert_eq!((read.all["b"].current.clone(), read.all["k"].current.clone()), ([0, 1, 2].into(), [3, 4, 5].into()));
    assert_eq!(read.all["b"].roles_before, Some(Roles::BROKER));
    let assigned = crate::kafka::nodes::assign(&read);
    assert_eq!((assigned.removed_brokers(), assigned.added_brokers()), ([2].into(), [].into()));
}

#[test]
fn storage_is_compared_with_what_it_was() {
    let (mut pools, sets) = running();
    pools[0].spec.storage.size = Some("5Gi".to_owned());
    let problems = said(read_pools(&kafka(json!({"kafka": {}})), &pools, &sets));
    assert_eq!(problems, ["node pool b, spec.storage.size: a volume cannot shrink from 10Gi to 5Gi"]);
    pools[0].spec.storage.size = Some("lots".to_owned());
    let problems = said(read_pools(&kafka(json!({"kafka": {}})), &pools, &sets));
    assert_eq!(problems, ["node pool b, spec.storage.size: `lots` is no amount of bytes: write one such as `100Gi`"]);
}

#[test]
fn malformed_ids_are_ignored_with_a_warning() {
    let (mut pools, sets) = running();
    pools[0].annotations_mut().insert(annotations::NEXT_NODE_IDS.to_owned(), "7-9".to_owned());
    let read = read_pools(&kafka(json!({"kafka": {}})), &pools, &sets).unwrap();
    assert!(read.all["b"].next_ids.is_empty());
    assert_eq!(
        read.remarks[0].condition.message.as_deref(),
        Some(
            "node pool b, annotation strimzi.io/next-node-ids is `7-9`: put the ids in brackets, such as [0, 5, 10-20]. \
             It is ignored"
        )
    );
}
