//! Rollouts against a world of a few lines, in which pods become available one by one.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;

fn deployment(strategy: Value, replicas: i32, image: &str) -> Deployment {
    let template =
        json!({"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": image}]}});
    serde_json::from_value(json!({
        "metadata": {"name": "d", "namespace": "ns", "uid": "d1"},
        "spec": {"replicas": replicas, "strategy": strategy, "selector": {}, "template": template},
    }))
    .unwrap()
}

fn rolling(surge: Value, unavailable: Value) -> Value {
    json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}})
}

/// Sets by name, with how many of their pods are alive; pods follow their sets step by step.
#[derive(Default)]
struct World {
    sets: BTreeMap<String, (ReplicaSet, usize)>,
    made: u32,
    log: Vec<String>,
}

impl World {
    fn observed(&self) -> Vec<Observed<'_>> {
        self.sets.values().map(|(set, alive)| Observed { set, alive: *alive }).collect()
    }

    fn perform(&mut self, deployment: &mut Deployment, act: Act) {
        self.log.push(match &act {
            Act::Create { replicas, revision } => format!("create {replicas} #{revision}"),
            Act::Scale(name, replicas) => format!("{name}={replicas}"),
            Act::Patience(name, seconds) => format!("{name} waits {seconds}"),
            Act::Number(name, revision) => format!("{name} is #{revision}"),
            Act::NumberDeployment(revision) => format!("now #{revision}"),
            Act::Delete(name) => format!("delete {name}"),
        });
        match act {
            Act::Create { replicas, revision } => {
                self.made += 1;
                let name = format!("s{}", self.made);
                let set = super::super::template::new_set(deployment, &name, replicas, revision);
                let mut set: ReplicaSet = serde_json::from_value(set).unwrap();
                set.metadata.name = Some(name.clone());
                set.metadata.creation_timestamp =
                    serde_json::from_value(json!(format!("2026-01-01T00:00:{:02}Z", self.made))).unwrap();
                self.sets.insert(name, (set, 0));
            }
            Act::Scale(name, replicas) => {
                self.sets.get_mut(&name).unwrap().0.spec.as_mut().unwrap().replicas = Some(replicas);
            }
            Act::Patience(name, seconds) => {
                self.sets.get_mut(&name).unwrap().0.spec.as_mut().unwrap().min_ready_seconds = Some(seconds);
            }
            Act::Number(name, revision) => {
                let set = &mut self.sets.get_mut(&name).unwrap().0;
                set.annotations_mut().insert(REVISION.into(), revision.to_string());
            }
            Act::NumberDeployment(revision) => {
                deployment.annotations_mut().insert(REVISION.into(), revision.to_string());
            }
            Act::Delete(name) => drop(self.sets.remove(&name)),
        }
    }

    fn decide(&mut self, deployment: &mut Deployment) {
        for _ in 0..20 {
            let acts = decide(deployment, &self.observed());
            if acts.is_empty() {
                return;
            }
            acts.into_iter().for_each(|act| self.perform(deployment, act));
        }
        panic!("never rests: {:?}", self.log);
    }

    /// One pod comes or goes, somewhere; false if there was nothing left to do.
    fn step(&mut self) -> bool {
        for (set, alive) in self.sets.values_mut() {
            let wanted = usize::try_from(size(set)).unwrap();
            if *alive == wanted {
                continue;
            }
            *alive = if *alive < wanted { *alive + 1 } else { *alive - 1 };
            let status = set.status.get_or_insert_default();
            status.available_replicas = Some(i32::try_from(*alive).unwrap());
            return true;
        }
        false
    }

    fn total(&self) -> usize {
        self.sets.values().map(|(_, alive)| alive).sum()
    }

    fn shown(&self) -> String {
        let shown =
            self.sets.iter().filter(|(_, (_, alive))| *alive > 0).map(|(name, (_, alive))| format!("{name}:{alive}"));
        shown.collect::<Vec<_>>().join(" ")
    }

    /// Until nothing changes; `check` after every step.
    fn settle(&mut self, deployment: &mut Deployment, check: impl Fn(&Self)) {
        for _ in 0..500 {
            self.decide(deployment);
            check(self);
            if !self.step() {
                return;
            }
        }
        panic!("never settles: {}", self.shown());
    }
}

fn change_image(deployment: &mut Deployment, image: &str) {
    let pod = deployment.spec.as_mut().unwrap().template.spec.as_mut().unwrap();
    pod.containers[0].image = Some(image.into());
}

#[test]
fn recreating_ends_all_old_pods_before_it_makes_new_ones() {
    let mut deployment = deployment(json!({"type": "Recreate"}), 3, "one");
    let mut world = World::default();
    world.settle(&mut deployment, |_| ());
    assert_eq!(world.shown(), "s1:3");
    change_image(&mut deployment, "two");
    world.settle(&mut deployment, |world| {
        let kinds = world.sets.values().filter(|(_, alive)| *alive > 0).count();
        assert!(kinds <= 1, "old and new at once: {}", world.shown());
    });
    assert_eq!(world.shown(), "s2:3");
    assert_eq!(world.log, ["create 3 #1", "now #1", "s1=0", "create 3 #2", "now #2"]);
}

#[test]
fn rolling_keeps_within_its_limits_whatever_they_are() {
    let parts = [json!(0), json!(1), json!(2), json!("25%"), json!("100%")];
    for replicas in 0..=5 {
        for surge in &parts {
            for unavailable in &parts {
                let mut deployment = deployment(rolling(surge.clone(), unavailable.clone()), replicas, "one");
                let limits = Limits::of(&deployment).unwrap();
                let mut world = World::default();
                world.settle(&mut deployment, |_| ());
                change_image(&mut deployment, "two");
                let least = usize::try_from(replicas - limits.unavailable).unwrap();
                let most = usize::try_from(replicas + limits.surge).unwrap();
                world.settle(&mut deployment, |world| {
                    let total = world.total();
                    assert!((least..=most).contains(&total), "{replicas} {surge} {unavailable}: {}", world.shown());
                });
                let expected = if replicas == 0 { String::new() } else { format!("s2:{replicas}") };
                assert_eq!(world.shown(), expected, "{replicas} {surge} {unavailable}");
                assert!(is_complete(&deployment, &world.observed()));
            }
        }
    }
}

#[test]
fn going_back_takes_up_the_old_set_with_a_new_number() {
    let mut deployment = deployment(json!({"type": "Recreate"}), 1, "one");
    let mut world = World::default();
    for image in ["one", "two", "one"] {
        change_image(&mut deployment, image);
        world.settle(&mut deployment, |_| ());
    }
    assert_eq!(world.shown(), "s1:1");
    assert_eq!(deployment.annotations()[REVISION], "3");
    assert_eq!(revision(&world.sets["s1"].0), 3);
}

#[test]
fn so_many_old_states_are_kept_as_are_asked_for() {
    let mut deployment = deployment(json!({"type": "Recreate"}), 1, "one");
    deployment.spec.as_mut().unwrap().revision_history_limit = Some(2);
    let mut world = World::default();
    for number in 0..6 {
        change_image(&mut deployment, &number.to_string());
        world.settle(&mut deployment, |_| ());
    }
    assert_eq!(world.sets.keys().collect::<Vec<_>>(), ["s4", "s5", "s6"]);
}

#[test]
fn a_paused_deployment_is_resized_and_not_rolled() {
    let mut deployment = deployment(rolling(json!(1), json!(0)), 2, "one");
    let mut world = World::default();
    world.settle(&mut deployment, |_| ());
    let spec = deployment.spec.as_mut().unwrap();
    (spec.paused, spec.replicas) = (Some(true), Some(4));
    change_image(&mut deployment, "two");
    world.settle(&mut deployment, |_| ());
    assert_eq!(world.shown(), "s1:4");
    deployment.spec.as_mut().unwrap().paused = None;
    world.settle(&mut deployment, |_| ());
    assert_eq!(world.shown(), "s2:4");
}

#[test]
fn a_rollout_whose_pods_never_serve_leaves_the_old_ones() {
    let mut deployment = deployment(rolling(json!(1), json!(0)), 2, "one");
    let mut world = World::default();
    world.settle(&mut deployment, |_| ());
    change_image(&mut deployment, "broken");
    world.decide(&mut deployment);
    assert_eq!(size(&world.sets["s1"].0), 2);
    assert_eq!(size(&world.sets["s2"].0), 1);
    // Mended before it was ever available: the broken pods are of no use, and go.
    change_image(&mut deployment, "mended");
    world.settle(&mut deployment, |_| ());
    assert_eq!(world.shown(), "s3:2");
}

#[test]
fn shares_are_rounded_so_that_something_moves() {
    let limits = |replicas, surge: Value, unavailable: Value| {
        let limits = Limits::of(&deployment(rolling(surge, unavailable), replicas, "one")).unwrap();
        (limits.surge, limits.unavailable)
    };
    assert_eq!(limits(3, json!(null), json!(null)), (1, 0));
    assert_eq!(limits(10, json!("25%"), json!("25%")), (3, 2));
    assert_eq!(limits(3, json!(0), json!("25%")), (0, 1));
    assert_eq!(limits(1, json!(0), json!(5)), (0, 1));
    assert_eq!(Limits::of(&deployment(json!({"type": "Recreate"}), 3, "one")), None);
}
