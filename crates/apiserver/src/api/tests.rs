//! The API without HTTP. What a client sees of it is checked by the promises, against the real server too; here stand
//! the properties that need the pure form: repeatability, cursors, and the order of internal steps.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::object::Object;
use crate::select::LabelSelector;

struct World {
    api: Api,
    ticks: u64,
}

impl World {
    fn new() -> Self {
        Self { api: Api::new(moment(0)), ticks: 0 }
    }

    fn moment(&mut self) -> Moment {
        self.ticks += 1;
        moment(self.ticks)
    }

    fn target(&self, plural: &str) -> Target {
        let found = self.api.registry().iter().find(|r| r.plural == plural && !is_event_view(r)).cloned();
        let resource = found.unwrap_or_else(|| panic!("{plural} is not served"));
        let version = resource.versions.iter().position(|v| v.storage).unwrap();
        let namespace = resource.namespaced.then(|| "default".to_owned());
        Target { resource, version, namespace }
    }

    fn create(&mut self, plural: &str, value: Value) -> Value {
        let (target, moment) = (self.target(plural), self.moment());
        let body = Body { value, duplicates: vec![] };
        self.api.create(&target, body, &options(), moment).unwrap_or_else(|e| panic!("{e:?}")).object
    }

    fn config_map(&mut self, name: &str, label: &str) -> Value {
        self.create("configmaps", json!({"metadata": {"name": name, "labels": {"color": label}}}))
    }

    fn merge(&mut self, plural: &str, name: &str, patch: Value) -> Value {
        let (target, moment) = (self.target(plural), self.moment());
        let patched = self.api.patch(&target, name, Part::Main, Patch::Merge(patch), &[], &options(), moment);
        patched.unwrap_or_else(|e| panic!("{e:?}")).object
    }

    fn delete(&mut self, plural: &str, name: &str) -> Deleted {
        let (target, moment) = (self.target(plural), self.moment());
        self.api.delete(&target, name, &DeleteOptions::default(), moment).unwrap()
    }
}

fn moment(n: u64) -> Moment {
    Moment { now: Timestamp::from_second(1_700_000_000 + n as i64).unwrap(), entropy: u128::from(n) << 64 | 7 }
}

fn options() -> WriteOptions {
    WriteOptions { manager: "test".into(), ..WriteOptions::default() }
}

fn names(events: &[WatchEvent]) -> Vec<String> {
    let name = |event: &WatchEvent| serde_json::from_slice::<Value>(&event.object()).unwrap().name().to_owned();
    events.iter().map(|e| format!("{} {}", e.kind.as_str(), name(e))).collect()
}

fn widgets() -> Value {
    json!({"metadata": {"name": "widgets.t.io"}, "spec": {"group": "t.io", "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
                "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}}]}})
}

#[test]
fn the_same_requests_at_the_same_moments_give_the_same_bytes() {
    let run = || {
        let mut world = World::new();
        world.create("customresourcedefinitions", widgets());
        world.create("widgets", json!({"apiVersion": "t.io/v1", "kind": "Widget", "metadata": {"generateName": "w-"}}));
        world.config_map("a", "red");
        world.merge("configmaps", "a", json!({"data": {"k": "v"}}));
        let all: Vec<_> = world.api.registry().iter().cloned().collect();
        let texts = all.iter().flat_map(|resource| {
            let target = Target { resource: resource.clone(), version: 0, namespace: None };
            world.api.list(&target, &Query::default()).unwrap().items
        });
        texts.collect::<Vec<_>>()
    };
    let first = run();
    assert!(first.len() > 6, "namespaces, the definition, a widget and a config map");
    assert_eq!(first, run());
}

#[test]
fn a_watch_sees_objects_enter_and_leave_its_selection() {
    let mut world = World::new();
    world.config_map("early", "red");
    let query = Query { labels: LabelSelector::parse("color=red").unwrap(), ..Query::default() };
    let target = world.target("configmaps");
    let mut watch = world.api.watch(&target, &query, &WatchOptions::default()).unwrap();
    assert_eq!(names(&watch.next(&world.api, usize::MAX).unwrap()), ["ADDED early"]);
    world.config_map("late", "blue");
    world.merge("configmaps", "late", json!({"metadata": {"labels": {"color": "red"}}}));
    world.merge("configmaps", "late", json!({"data": {"k": "v"}}));
    world.merge("configmaps", "early", json!({"metadata": {"labels": {"color": "blue"}}}));
    world.delete("configmaps", "late");
    let seen = names(&watch.next(&world.api, usize::MAX).unwrap());
    assert_eq!(seen, ["ADDED late", "MODIFIED late", "DELETED early", "DELETED late"]);
    assert!(watch.next(&world.api, usize::MAX).unwrap().is_empty());
}

#[test]
fn a_watcher_that_does_not_read_is_told_that_it_is_too_late() {
    let mut world = World::new();
    world.config_map("a", "red");
    let target = world.target("configmaps");
    let mut watch = world.api.watch(&target, &Query::default(), &WatchOptions::default()).unwrap();
    watch.next(&world.api, usize::MAX).unwrap();
    let text = "x".repeat(900 << 10);
    for n in 0..40 {
        world.merge("configmaps", "a", json!({"data": {"k": format!("{n}{text}")}}));
    }
    let refusal = watch.next(&world.api, usize::MAX).unwrap_err();
    assert_eq!((refusal.code, refusal.reason), (410, "Expired"));
}

#[test]
fn pages_show_one_moment_whatever_happens_between_them() {
    let mut world = World::new();
    for name in ["a", "b", "c"] {
        world.config_map(name, "red");
    }
    let target = world.target("configmaps");
    let first = world.api.list(&target, &Query { limit: 2, ..Query::default() }).unwrap();
    assert_eq!((first.items.len(), first.remaining), (2, Some(1)));
    world.delete("configmaps", "c");
    world.config_map("d", "red");
    let query = Query { limit: 2, page: first.next, ..Query::default() };
    let second = world.api.list(&target, &query).unwrap();
    let shown: Vec<Value> = second.items.iter().map(|i| serde_json::from_slice(i).unwrap()).collect();
    assert_eq!(shown.iter().map(Object::name).collect::<Vec<_>>(), ["c"]);
    assert_eq!((second.revision, second.next), (first.revision, None));
}

#[test]
fn a_write_that_changes_nothing_is_not_a_write() {
    let mut world = World::new();
    let made = world.config_map("a", "red");
    let before = world.api.revision();
    let again = world.merge("configmaps", "a", json!({"metadata": {"labels": {"color": "red"}}}));
    assert_eq!(again, made);
    assert_eq!(world.api.revision(), before);
}

#[test]
fn a_definition_serves_its_resource_and_takes_its_instances_along() {
    let mut world = World::new();
    world.create("customresourcedefinitions", widgets());
    let widget =
        json!({"apiVersion": "t.io/v1", "kind": "Widget", "metadata": {"name": "w", "finalizers": ["t.io/x"]}});
    world.create("widgets", widget);
    assert!(matches!(world.delete("customresourcedefinitions", "widgets.t.io"), Deleted::Pending(_)));
    let definitions = world.target("customresourcedefinitions");
    assert!(world.api.get(&definitions, "widgets.t.io", Part::Main).unwrap().is_terminating());
    let released = world.merge("widgets", "w", json!({"metadata": {"finalizers": null}}));
    assert!(released.is_terminating(), "the definition's deletion marked it");
    assert!(world.api.target("t.io", "v1", "widgets", None).is_none(), "no longer served");
    assert_eq!(world.api.get(&definitions, "widgets.t.io", Part::Main).unwrap_err().code, 404);
}

#[test]
fn a_dry_run_leaves_no_trace() {
    let mut world = World::new();
    let (target, now) = (world.target("configmaps"), world.moment());
    let before = world.api.revision();
    let dry = WriteOptions { dry_run: true, ..options() };
    let body = Body { value: json!({"metadata": {"name": "a"}}), duplicates: vec![] };
    let written = world.api.create(&target, body, &dry, now).unwrap();
    assert_eq!(written.object.name(), "a");
    assert_eq!(world.api.revision(), before);
    assert_eq!(world.api.get(&target, "a", Part::Main).unwrap_err().code, 404);
}
