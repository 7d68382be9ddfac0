//! Specs that cannot be: the Kafka, and the pool that is to be mended, say what and where, and the running cluster is left as
//! it was.

use std::time::Duration;

use evenkeel_api::{Kafka, KafkaNodePool, StrimziPodSet};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::scene::{change, cluster_of, is_ready, pool, status};
use crate::stage::{CLUSTER, Stage, a_while, create, patch, until};

/// What a user does.
enum Wish {
    /// Changes the Kafka, and how it is taken back.
    Kafka(Value, Value),
    /// Changes a pool.
    Pool(&'static str, Value, Value),
    /// Adds a pool.
    Add(Value),
    /// Makes a pool's memory say that it has these nodes.
    Nodes(&'static str, Value, Value),
}

struct Case {
    wish: Wish,
    /// Which pool says it, too.
    pool: Option<&'static str>,
    /// What is said: the field, and a word of the reason.
    said: [&'static str; 2],
}

fn claimed(name: &str, replicas: i32, roles: &[&str], notes: Value) -> Value {
    let mut pool = pool(name, replicas, roles, notes);
    pool["spec"]["storage"] = json!({"type": "persistent-claim", "size": "10Gi"});
    pool
}

fn of_kafka(spec: Value, back: Value) -> Wish {
    Wish::Kafka(json!({"spec": {"kafka": spec}}), json!({"spec": {"kafka": back}}))
}

fn of_pool(name: &'static str, spec: Value, back: Value) -> Wish {
    Wish::Pool(name, json!({"spec": spec}), json!({"spec": back}))
}

fn cases() -> Vec<Case> {
    let listener = |name: &str, port: u16| json!({"name": name, "port": port, "type": "internal", "tls": false});
    let usual = json!({"listeners": [listener("plain", 9092)]});
    vec![
        Case {
            wish: of_pool("brokers", json!({"replicas": 0}), json!({"replicas": 3})),
            pool: None,
            said: ["spec.kafka", "role broker"],
        },
        Case {
            wish: of_pool("controllers", json!({"replicas": 0}), json!({"replicas": 3})),
            pool: Some("controllers"),
            said: ["spec.replicas", "3 controllers cannot become 0"],
        },
        Case {
            wish: of_pool("controllers", json!({"replicas": 5}), json!({"replicas": 3})),
            pool: Some("controllers"),
            said: ["spec.replicas", "the quorum of controllers is fixed"],
        },
        Case {
            wish: of_pool("brokers", json!({"roles": ["broker", "controller"]}), json!({"roles": ["broker"]})),
            pool: Some("brokers"),
            said: ["spec.roles", "cannot become controllers"],
        },
        Case {
            wish: Wish::Nodes("more", json!([0]), json!([])),
            pool: Some("more"),
            said: ["status.nodeIds", "node id 0 is also in node pool brokers"],
        },
        Case {
            wish: of_kafka(json!({"config": {"default.replication.factor": 4}}), json!({"config": null})),
            pool: None,
            said: ["spec.kafka.config", "there would be 3 brokers"],
        },
        Case {
            wish: of_pool(
                "brokers",
                json!({"storage": {"type": "persistent-claim", "size": "1Gi"}}),
                json!({"storage": {"type": "persistent-claim", "size": "10Gi"}}),
            ),
            pool: Some("brokers"),
            said: ["spec.storage.size", "cannot shrink from 10Gi to 1Gi"],
        },
        Case {
            wish: of_pool("brokers", json!({"storage": {"size": "lots"}}), json!({"storage": {"size": "10Gi"}})),
            pool: Some("brokers"),
            said: ["spec.storage.size", "`lots` is no amount of bytes"],
        },
        Case {
            wish: of_pool(
                "brokers",
                json!({"resources": {"requests": {"memory": "much"}}}),
                json!({"resources": null}),
            ),
            pool: Some("brokers"),
            said: ["spec.resources.requests.memory", "`much` is no amount"],
        },
        Case {
            wish: of_kafka(json!({"listeners": [listener("plain", 9092), listener("other", 9092)]}), usual.clone()),
            pool: None,
            said: ["spec.kafka.listeners", "9092"],
        },
        Case {
            wish: of_kafka(json!({"listeners": [listener("plain", 9092), listener("plain", 9095)]}), usual),
            pool: None,
            said: ["spec.kafka.listeners", "plain"],
        },
        Case {
            wish: Wish::Add(claimed("third", 1, &["controller"], json!({}))),
            pool: Some("third"),
            said: ["spec.roles", "a pool of controllers cannot be added"],
        },
    ]
}

/// What runs, and what it was started with.
async fn running(stage: &Stage) -> Value {
    let pods = stage.api::<Pod>().list(&Default::default()).await.unwrap().items;
    let sets = stage.api::<StrimziPodSet>().list(&Default::default()).await.unwrap().items;
    let maps = stage.api::<ConfigMap>().list(&Default::default()).await.unwrap().items;
    json!({
        "pods": pods.iter().map(|it| (it.name_any(), it.uid())).collect::<Vec<_>>(),
        "sets": sets.iter().map(|it| (it.name_any(), &it.spec)).collect::<Vec<_>>(),
        "maps": maps.iter().map(|it| (it.name_any(), &it.data)).collect::<Vec<_>>(),
    })
}

async fn said_by(stage: &Stage, pool: Option<&str>) -> String {
    let conditions = match pool {
        Some(pool) => stage.api::<KafkaNodePool>().get(pool).await.unwrap().status.unwrap_or_default().conditions,
        None => status(stage).await.conditions,
    };
    let said = conditions.into_iter().filter(|it| it.reason.as_deref() == Some("InvalidResourceException"));
    said.filter_map(|it| it.message).collect::<Vec<_>>().join("\n")
}

async fn nodes(stage: &Stage, pool: &str, ids: &Value) {
    let status = Patch::Merge(json!({"status": {"nodeIds": ids}}));
    stage.api::<KafkaNodePool>().patch_status(pool, &PatchParams::default(), &status).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_is_said_where_it_stands_and_changes_nothing() {
    let stage = Stage::new().await;
    let controllers = json!({"strimzi.io/next-node-ids": "[100-199]"});
    let pools = vec![
        claimed("controllers", 3, &["controller"], controllers),
        claimed("brokers", 3, &["broker"], json!({})),
        claimed("more", 0, &["broker"], json!({})),
    ];
    let listeners = json!([{"name": "plain", "port": 9092, "type": "internal", "tls": false}]);
    cluster_of(&stage, json!({"kafka": {"listeners": listeners}}), pools).await;
    until("it is ready", || is_ready(&stage)).await;
    sleep(Duration::from_secs(30)).await;
    let all = stage.api::<KafkaNodePool>();
    for Case { wish, pool, said } in cases() {
        let before = running(&stage).await;
        stage.writes();
        match &wish {
            Wish::Kafka(wrong, _) => change(&stage, wrong.clone()).await,
            Wish::Pool(name, wrong, _) => patch(&all, name, wrong.clone()).await,
            Wish::Add(pool) => drop(create(&all, pool.clone()).await),
            Wish::Nodes(name, wrong, _) => nodes(&stage, name, wrong).await,
        }
        let is_said = async |by: Option<&str>| {
            let text = said_by(&stage, by).await;
            said.iter().all(|word| text.contains(word))
        };
        until(&format!("the Kafka says {said:?}"), || async { is_said(None).await }).await;
        if pool.is_some() {
            until(&format!("pool {pool:?} says {said:?}"), || async { is_said(pool).await }).await;
        }
        a_while().await;
        assert!(!is_ready(&stage).await, "{said:?}");
        assert_eq!(running(&stage).await, before, "{said:?}");
        let is_told = |it: &String| it.ends_with("/status") || it.contains("/events");
        let writes: Vec<String> = stage.writes().into_iter().filter(|it| !is_told(it)).collect();
        assert_eq!(writes, [""; 0], "{said:?}");
        match &wish {
            Wish::Kafka(_, back) => change(&stage, back.clone()).await,
            Wish::Pool(name, _, back) => patch(&all, name, back.clone()).await,
            Wish::Add(pool) => {
                let name = pool["metadata"]["name"].as_str().unwrap();
                all.delete(name, &DeleteParams::default()).await.unwrap();
            }
            Wish::Nodes(name, _, back) => nodes(&stage, name, back).await,
        }
        until(&format!("it is mended: {said:?}"), || is_ready(&stage)).await;
        if let Some(name) = pool.filter(|name| *name != "third") {
            until("the pool says nothing more", || async { said_by(&stage, Some(name)).await.is_empty() }).await;
        }
        assert_eq!(running(&stage).await["pods"], before["pods"], "{said:?}");
    }
}

/// What is merely not honoured is a Warning: the cluster goes on without it.
#[tokio::test(start_paused = true)]
async fn what_is_passed_over_is_said_where_it_stands() {
    let stage = Stage::new().await;
    let brokers = pool("brokers", 3, &["broker"], json!({"strimzi.io/next-node-ids": "7-9"}));
    let controllers = pool("controllers", 3, &["controller"], json!({"strimzi.io/next-node-ids": "[100-199]"}));
    let config = json!({"listeners": "nonsense", "log.retention.ms": 1_000});
    let spec = json!({"kafka": {"config": config, "metadataVersion": "4.3"}});
    cluster_of(&stage, spec, vec![controllers, brokers]).await;
    until("it is ready", || is_ready(&stage)).await;
    let texts = async |pool: Option<&str>| -> String {
        let conditions = match pool {
            Some(pool) => stage.api::<KafkaNodePool>().get(pool).await.unwrap().status.unwrap().conditions,
            None => status(&stage).await.conditions,
        };
        conditions.into_iter().filter(|it| it.type_ == "Warning").filter_map(|it| it.message).collect()
    };
    assert!(texts(None).await.contains("listeners"), "a forbidden key: {}", texts(None).await);
    for of in [None, Some("brokers")] {
        assert!(texts(of).await.contains("strimzi.io/next-node-ids is `7-9`"), "{}", texts(of).await);
    }
    assert!(!texts(None).await.contains("metadataVersion"), "{}", texts(None).await);
    // A cluster keeps the metadata version that it was made with.
    let pods = stage.pods().await;
    change(&stage, json!({"spec": {"kafka": {"metadataVersion": "4.1"}}})).await;
    until("it is said", || async { texts(None).await.contains("metadataVersion 4.1 is not honoured") }).await;
    assert_eq!(status(&stage).await.kafka_metadata_version.as_deref(), Some("4.3-IV0"));
    crate::scene::scale(&stage, 4).await;
    until("it grows", || async { stage.pods().await.len() == pods.len() + 1 }).await;
    let file = stage.api::<ConfigMap>().get("my-cluster-brokers-3").await.unwrap().data.unwrap();
    assert!(file.values().any(|it| it == "4.3-IV0"), "{:?}", file.keys());
    assert!(stage.api::<Kafka>().get(CLUSTER).await.is_ok() && is_ready(&stage).await);
}
