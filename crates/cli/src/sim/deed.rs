//! Commands are done to the cluster. What cannot be done is said in one line, and nothing is disturbed.

use evenkeel_sim::cluster::{BrokerState, Fault, NewTopic, Reassignment};
use evenkeel_sim::traffic::Load;
use evenkeel_sim::{BrokerId, Cluster, TopicPartition};

use super::command::{Command, Dir};
use super::show;

/// Does what is asked of the cluster itself; answers what there is to say.
pub(super) fn obey(cluster: &mut Cluster, command: &Command) -> Result<String, String> {
    match command {
        Command::Help => return Ok(show::help()),
        Command::Status => {
            return Ok(show::status(&cluster.broker_status(), &cluster.copy_status(), cluster.shown_controller()));
        }
        Command::Topics => return Ok(show::topics(&cluster.topic_status())),
        Command::Moves => return Ok(show::moves(&cluster.list_reassignments(None))),
        Command::Stop(id) => {
            up(cluster, *id)?;
            cluster.suffer(&Fault::Stop(*id));
        }
        Command::Kill(id) => {
            up(cluster, *id)?;
            cluster.suffer(&Fault::Crash(*id));
        }
        Command::Start(id) => {
            known(cluster, *id)?;
            if !cluster.is_down(*id) {
                return Err(format!("broker {id} is up; stop or kill it first"));
            }
            let waits = cluster.session_lasts(*id);
            if !works(cluster, *id) {
                return Err(format!("broker {id} has no directory that works; mend-dir {id} 0 mends one"));
            }
            cluster.suffer(&Fault::Return(*id));
            if waits {
                return Ok(format!("broker {id} starts when the session of its last life is over\n"));
            }
        }
        Command::Remove(id) => {
            known(cluster, *id)?;
            cluster.unregister_broker(*id).map_err(|refusal| refusal.to_string())?;
        }
        Command::LoseRack(rack) => {
            let racks: Vec<String> = cluster.broker_status().into_iter().filter_map(|broker| broker.rack).collect();
            if !racks.contains(rack) {
                return Err(format!("there is no rack {rack}; there are {}", list(&racks)));
            }
            cluster.suffer(&Fault::RackLost(rack.clone()));
        }
        Command::SlowDisk { broker, dir, pace } => {
            let dir = disk(cluster, *broker, dir)?;
            cluster.suffer(&Fault::SlowDisk(*broker, dir, *pace));
        }
        Command::FullDisk { broker, dir } => {
            let dir = well(cluster, *broker, dir)?;
            cluster.suffer(&Fault::FullDisk(*broker, dir));
        }
        Command::FailDir { broker, dir } => {
            let dir = well(cluster, *broker, dir)?;
            cluster.suffer(&Fault::FailedDir(*broker, dir));
        }
        Command::MendDir { broker, dir } => {
            let dir = disk(cluster, *broker, dir)?;
            if !has_failed(cluster, *broker, dir) {
                return Err(format!("directory {dir} of broker {broker} works"));
            }
            cluster.suffer(&Fault::MendedDir(*broker, dir));
        }
        Command::SlowLink { broker, pace } => {
            known(cluster, *broker)?;
            cluster.suffer(&Fault::SlowLink(*broker, *pace));
        }
        Command::Cut(id) => {
            up(cluster, *id)?;
            if known(cluster, *id)? == BrokerState::CutOff {
                return Err(format!("the link of broker {id} is cut already; mend {id} mends it"));
            }
            cluster.suffer(&Fault::CutLink(*id));
        }
        Command::Mend(id) => {
            if known(cluster, *id)? != BrokerState::CutOff {
                return Err(format!("the link of broker {id} is not cut"));
            }
            cluster.suffer(&Fault::MendedLink(*id));
        }
        Command::Stale { broker, seconds } => {
            up(cluster, *broker)?;
            cluster.suffer(&Fault::StaleMetadata(*broker, seconds * 1_000));
        }
        Command::ChangeController => {
            cluster.suffer(&Fault::ControllerChange);
            let now = cluster.shown_controller().map_or_else(|| "nobody".to_owned(), |id| format!("broker {id}"));
            return Ok(format!("{now} passes for the controller now\n"));
        }
        Command::Move { topic, partition, to } => {
            let (partition, target) = (TopicPartition::new(topic.as_str(), *partition), Some(to.clone()));
            reassign(cluster, Reassignment { partition, target })?;
        }
        Command::Cancel { topic, partition } => {
            let partition = TopicPartition::new(topic.as_str(), *partition);
            reassign(cluster, Reassignment { partition, target: None })?;
        }
        Command::Create { topic, partitions, factor, bytes_in } => {
            let topic = NewTopic::new(topic, *partitions, *factor).loaded(Load::steady(*bytes_in), 0);
            cluster.create_topic(&topic, false).map_err(|refusal| refusal.to_string())?;
        }
        Command::Delete(topic) => {
            cluster.delete_topic(topic).map_err(|_| format!("there is no topic {topic}; topics lists them"))?;
        }
        Command::Load { topic, bytes_in } => change_load(cluster, topic, |load| load.bytes_in = *bytes_in)?,
        Command::Swing { topic, swing } => change_load(cluster, topic, |load| load.swing = *swing)?,
        Command::Hot { topic, partition, times } => heat(cluster, topic, *partition, *times)?,
        // What needs more than the cluster is the console's.
        Command::Add { .. } | Command::LoseAnswer { .. } | Command::Quit => {}
    }
    Ok("done\n".to_owned())
}

/// How a broker is, or that there is none.
pub(super) fn known(cluster: &Cluster, id: BrokerId) -> Result<BrokerState, String> {
    let brokers = cluster.broker_status();
    let found = brokers.iter().find(|broker| broker.id == id);
    found.map(|broker| broker.state).ok_or_else(|| {
        let ids: Vec<String> = brokers.iter().map(|broker| broker.id.to_string()).collect();
        format!("there is no broker {id}; there are {}", list(&ids))
    })
}

fn up(cluster: &Cluster, id: BrokerId) -> Result<(), String> {
    known(cluster, id)?;
    if cluster.is_down(id) { Err(format!("broker {id} is down already; start {id} starts it")) } else { Ok(()) }
}

/// Of each directory of a broker whether it has failed.
fn failed(cluster: &Cluster, id: BrokerId) -> Vec<bool> {
    let brokers = cluster.broker_status();
    let dirs = brokers.iter().find(|broker| broker.id == id).map_or(&[][..], |broker| &broker.dirs);
    dirs.iter().map(|dir| dir.failed).collect()
}

fn has_failed(cluster: &Cluster, id: BrokerId, dir: usize) -> bool {
    failed(cluster, id).get(dir).copied().unwrap_or_default()
}

/// The number of a broker's directory that has not failed yet.
fn well(cluster: &Cluster, id: BrokerId, dir: &Dir) -> Result<usize, String> {
    let dir = disk(cluster, id, dir)?;
    if has_failed(cluster, id, dir) {
        return Err(format!("directory {dir} of broker {id} has failed already; mend-dir {id} {dir} mends it"));
    }
    Ok(dir)
}

/// Whether a broker has a directory to start with.
fn works(cluster: &Cluster, id: BrokerId) -> bool {
    failed(cluster, id).contains(&false)
}

/// The number of a broker's directory.
fn disk(cluster: &Cluster, id: BrokerId, dir: &Dir) -> Result<usize, String> {
    known(cluster, id)?;
    let brokers = cluster.broker_status();
    let dirs = brokers.iter().find(|broker| broker.id == id).map_or(&[][..], |broker| &broker.dirs);
    let (found, named) = match dir {
        Dir::Number(number) => (Some(*number).filter(|number| *number < dirs.len()), number.to_string()),
        Dir::Path(path) => (dirs.iter().position(|dir| dir.path == *path), path.clone()),
    };
    let all = (0..).zip(dirs).map(|(number, dir): (usize, _)| format!("{number} or {}", dir.path));
    found.ok_or_else(|| format!("broker {id} has no directory {named}; it has {}", list(&all.collect::<Vec<_>>())))
}

/// Changes one thing about what is written to a topic, and leaves the others as they are.
fn change_load(cluster: &mut Cluster, topic: &str, change: impl FnOnce(&mut Load)) -> Result<(), String> {
    let Some(mut load) = cluster.load_of(topic).cloned() else {
        return Err(format!("there is no topic {topic}; topics lists them"));
    };
    change(&mut load);
    cluster.set_load(topic, load);
    Ok(())
}

fn heat(cluster: &mut Cluster, topic: &str, partition: i32, times: f64) -> Result<(), String> {
    let topics = cluster.topic_status();
    let partitions = topics.iter().find(|it| it.name == topic).map(|it| it.partitions);
    if partitions.is_some_and(|count| usize::try_from(partition).is_ok_and(|number| number >= count)) {
        return Err(format!("{topic} has no partition {partition}; topics tells how many there are"));
    }
    change_load(cluster, topic, |load| {
        load.hot.retain(|(other, _)| *other != partition);
        if times > 1.0 {
            load.hot.push((partition, times));
        }
    })
}

fn reassign(cluster: &mut Cluster, line: Reassignment) -> Result<(), String> {
    let answers = cluster.alter_reassignments(&[line], true);
    answers.into_iter().collect::<Result<(), _>>().map_err(|refusal| refusal.to_string())
}

/// Names without repetition, with an end to them.
fn list(names: &[String]) -> String {
    const MOST: usize = 20;
    let mut seen: Vec<&str> = Vec::new();
    for name in names.iter().map(String::as_str) {
        if !seen.contains(&name) {
            seen.push(name);
        }
    }
    let more = if seen.len() > MOST { ", …" } else { "" };
    seen.truncate(MOST);
    if seen.is_empty() { "none".to_owned() } else { seen.join(", ") + more }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_sim::Options;
    use evenkeel_sim::cluster::BrokerSpec;

    fn cluster() -> Cluster {
        let specs = (0..3).map(|id| BrokerSpec::new(id).in_rack(["a", "b", "c"][id as usize]));
        let mut cluster = Cluster::new(Options::default(), specs);
        cluster.create_topic(&NewTopic::manual("t", &[&[0, 1]]), false).expect("made");
        cluster
    }

    #[test]
    fn what_is_not_there_or_not_so_is_refused_in_one_line_and_nothing_is_disturbed() {
        let id = BrokerId;
        let t = || "t".to_owned();
        let refused = [
            (Command::Kill(id(9)), "there is no broker 9; there are 0, 1, 2"),
            (Command::Start(id(1)), "broker 1 is up; stop or kill it first"),
            (Command::Mend(id(1)), "the link of broker 1 is not cut"),
            (Command::MendDir { broker: id(1), dir: Dir::Number(0) }, "directory 0 of broker 1 works"),
            (Command::LoseRack("z".to_owned()), "there is no rack z; there are a, b, c"),
            (
                Command::FailDir { broker: id(0), dir: Dir::Number(1) },
                "broker 0 has no directory 1; it has 0 or /data/d0",
            ),
            (
                Command::FailDir { broker: id(0), dir: Dir::Path("/data".to_owned()) },
                "broker 0 has no directory /data; it has 0 or /data/d0",
            ),
            (
                Command::Hot { topic: t(), partition: 1, times: 2.0 },
                "t has no partition 1; topics tells how many there are",
            ),
            (Command::Swing { topic: "nope".to_owned(), swing: 0.5 }, "there is no topic nope; topics lists them"),
            (Command::Delete("nope".to_owned()), "there is no topic nope; topics lists them"),
            (Command::Load { topic: "nope".to_owned(), bytes_in: 1.0 }, "there is no topic nope; topics lists them"),
            (
                Command::Cancel { topic: t(), partition: 0 },
                "No partition reassignment is in progress. (NoReassignmentInProgress, 85)",
            ),
            (
                Command::Move { topic: t(), partition: 0, to: vec![id(9)] },
                "The manual partition assignment includes broker 9, but no such broker is registered. \
                 (InvalidReplicaAssignment, 39)",
            ),
        ];
        let mut cluster = cluster();
        let before = (cluster.broker_status(), cluster.topic_status());
        for (command, says) in refused {
            assert_eq!(obey(&mut cluster, &command), Err(says.to_owned()));
        }
        assert_eq!((cluster.broker_status(), cluster.topic_status()), before);
    }

    #[test]
    fn what_is_broken_already_is_not_broken_again() {
        let (mut cluster, broker, dir) = (cluster(), BrokerId(1), || Dir::Number(0));
        assert!(obey(&mut cluster, &Command::Cut(broker)).is_ok());
        let refused = obey(&mut cluster, &Command::Cut(broker));
        assert_eq!(refused, Err("the link of broker 1 is cut already; mend 1 mends it".to_owned()));
        assert!(obey(&mut cluster, &Command::FailDir { broker, dir: dir() }).is_ok());
        for again in [Command::FailDir { broker, dir: dir() }, Command::FullDisk { broker, dir: dir() }] {
            let words = "directory 0 of broker 1 has failed already; mend-dir 1 0 mends it";
            assert_eq!(obey(&mut cluster, &again), Err(words.to_owned()));
        }
    }

    #[test]
    fn one_thing_about_a_load_changes_and_the_others_stay() {
        let mut cluster = cluster();
        let topic = || "t".to_owned();
        for command in [
            Command::Load { topic: topic(), bytes_in: 5.0 },
            Command::Swing { topic: topic(), swing: 0.5 },
            Command::Hot { topic: topic(), partition: 0, times: 9.0 },
            Command::Hot { topic: topic(), partition: 0, times: 3.0 },
            Command::Load { topic: topic(), bytes_in: 7.0 },
        ] {
            assert!(obey(&mut cluster, &command).is_ok(), "{command:?}");
        }
        let load = Load { swing: 0.5, hot: vec![(0, 3.0)], ..Load::steady(7.0) };
        assert_eq!(cluster.load_of("t"), Some(&load));
        assert!(obey(&mut cluster, &Command::Hot { topic: topic(), partition: 0, times: 1.0 }).is_ok());
        assert_eq!(cluster.load_of("t").map(|load| load.hot.len()), Some(0));
    }

    #[test]
    fn a_broker_that_was_killed_starts_when_its_session_is_over() {
        let (mut cluster, id) = (cluster(), BrokerId(2));
        cluster.tick(5_000);
        assert!(obey(&mut cluster, &Command::Kill(id)).is_ok());
        let said = obey(&mut cluster, &Command::Start(id)).expect("it will start");
        assert_eq!(said, "broker 2 starts when the session of its last life is over\n");
        assert!(cluster.is_down(id));
        cluster.tick(20_000);
        assert!(cluster.is_serving(id));
    }

    #[test]
    fn a_broker_without_a_directory_that_works_does_not_start() {
        let mut cluster = cluster();
        assert!(obey(&mut cluster, &Command::FailDir { broker: BrokerId(2), dir: Dir::Number(0) }).is_ok());
        let refused = obey(&mut cluster, &Command::Start(BrokerId(2))).expect_err("no directory");
        assert!(refused.contains("mend-dir 2 0"), "{refused}");
        // Nobody comes back before the session of its life before is over.
        cluster.tick(10_000);
        assert!(obey(&mut cluster, &Command::MendDir { broker: BrokerId(2), dir: Dir::Number(0) }).is_ok());
        assert!(!cluster.is_down(BrokerId(2)));
    }
}
