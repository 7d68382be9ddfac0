//! What older builds have left on record in the midst of a run: an engine of today carries it to its end.
//!
//! Every form of the records that is kept (`src/journal/forms`) is put into the journal of a cluster that is as the run
//! would have left it. That all of a form is read is tested where the forms are.

use std::{collections::BTreeMap, fs, path::Path, time::Duration};

use evenkeel_engine::journal::{Entry, Journal};
use evenkeel_rest::{body::state::Phase, parameter::TaskStatus};
use evenkeel_sim::{
    BrokerId, Cluster, TopicPartition,
    cluster::{Alteration, NewTopic, Operation, Resource},
};
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use crate::lives::PATIENCE;
use crate::stage::{MB, Stage};

/// Of all forms: one partition of each of three topics leaves broker 0 for broker 3.
const MOVES: i32 = 3;
const TASK: Uuid = Uuid::from_u128(8);
/// Its task began in 1970, and would be forgotten as soon as it is over.
const TASKS_ARE_KEPT: &str = "completed.user.task.retention.time.ms=9000000000000\n";
const RATES: [&str; 2] = ["leader.replication.throttled.rate", "follower.replication.throttled.rate"];
const LISTS: [&str; 2] = ["leader.replication.throttled.replicas", "follower.replication.throttled.replicas"];

/// By the name of its file: a line is a key, a tab, and a value.
fn forms() -> BTreeMap<String, Vec<Entry>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/journal/forms");
    let entry = |line: &str| {
        let (key, value) = line.split_once('\t').expect("a key and a value");
        Entry { key: key.to_owned(), value: Some(value.as_bytes().to_vec()) }
    };
    let form = |path: &Path| -> Vec<Entry> { fs::read_to_string(path).unwrap().lines().map(entry).collect() };
    fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path())
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), form(&path)))
        .collect()
}

fn topic(number: i32) -> String {
    format!("topic-with-a-long-name-{number}")
}

fn set(cluster: &mut Cluster, resource: &Resource, names: [&str; 2], value: &str) {
    let set =
        |name: &str| Alteration { name: name.to_owned(), operation: Operation::Set, value: Some(value.to_owned()) };
    cluster.incremental_alter_configs(resource, &names.map(set), false).unwrap();
}

/// Who is held back, or is listed to be.
fn throttles(cluster: &Cluster) -> Vec<String> {
    let brokers = (0..4).map(|id| (BrokerId(id), Resource::Broker(BrokerId(id))));
    let topics = (0..MOVES).map(topic).chain(["a".to_owned()]).map(|name| (BrokerId(0), Resource::Topic(name)));
    let mut found = Vec::new();
    for (asked, resource) in brokers.chain(topics) {
        let settings = cluster.describe_configs(asked, &resource).unwrap();
        let is_set = |value: Option<&str>| value.is_some_and(|value| !value.is_empty());
        let set = settings.iter().filter(|it| it.name.contains("throttled.") && is_set(it.value.as_deref()));
        found.extend(set.map(|it| format!("{resource:?} {} {:?}", it.name, it.value)));
    }
    found
}

/// Topics and throttles as the older engine had them when it went. Its last wishes have not reached the controller.
async fn left_behind() -> Stage {
    let stage = Stage::new();
    stage.world.with(|cluster| {
        for number in 0..MOVES {
            let list: &[i32] = &[0, 1, 2];
            let lists = vec![list; number as usize + 1];
            cluster.create_topic(&NewTopic::manual(&topic(number), &lists), false).unwrap();
        }
        cluster.create_topic(&NewTopic::manual("a", &[&[1, 2]]), false).unwrap();
    });
    sleep(Duration::from_secs(1)).await;
    stage.world.with(|cluster| {
        for number in 0..MOVES {
            cluster.fill(&TopicPartition::new(topic(number), number), MB);
        }
        for id in [0, 2, 3] {
            set(cluster, &Resource::Broker(BrokerId(id)), RATES, "1000000");
        }
        // What was left of a run before that.
        set(cluster, &Resource::Broker(BrokerId(1)), RATES, "9");
        set(cluster, &Resource::Topic("a".to_owned()), LISTS, "0:1");
    });
    sleep(Duration::from_secs(1)).await;
    stage
}

#[tokio::test(start_paused = true)]
async fn a_run_on_record_in_any_form_is_carried_to_its_end() {
    let forms = forms();
    assert!(forms.contains_key("1.tsv"), "{:?}", forms.keys());
    for (form, records) in forms {
        let stage = left_behind().await;
        let journal = Journal::open(stage.client()).await.unwrap().0;
        journal.append(records).await.unwrap();
        drop(journal);

        let life = stage.engine_with(TASKS_ARE_KEPT);
        life.until(&format!("{form}: it runs"), |phase| matches!(phase, Phase::InterBroker(_))).await;
        assert_eq!(life.status_of(TASK).await, Some(TaskStatus::InExecution), "{form}");
        life.until(&format!("{form}: it is over"), |phase| *phase == Phase::Idle).await;
        assert_eq!(life.status_of(TASK).await, Some(TaskStatus::Completed), "{form}");
        let replicas = |topic: &str, partition| {
            let registration = |cluster: &mut Cluster| cluster.registration(topic, partition).unwrap().replicas.clone();
            stage.world.look(registration).into_iter().map(|id| id.0).collect::<Vec<i32>>()
        };
        for number in 0..MOVES {
            assert_eq!(replicas(&topic(number), number), [3, 1, 2], "{form}: {}", topic(number));
        }
        assert_eq!(replicas(&topic(2), 0), [0, 1, 2], "{form}: nobody has asked for it");

        // Its own throttles go with it, and what was left of an older one soon after.
        let lifted = timeout(PATIENCE, stage.world.until(|cluster| throttles(cluster).is_empty())).await;
        assert!(lifted.is_ok(), "{form}: {:?}", stage.world.look(|cluster| throttles(cluster)));
        stage.assert_at_rest(&form);
        drop(life);
        let found = Journal::open(stage.client()).await.unwrap().1;
        assert!(found.run.is_none() && found.leftover.is_empty(), "{form}: {:?}", found.leftover);
        assert!(found.strange.is_empty(), "{form}: {:?}", found.strange);
    }
}
