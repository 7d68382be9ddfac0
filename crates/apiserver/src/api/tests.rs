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
            world.api.list(&target, &Query::default()).unwrap().shown(&target).items
        });
        texts.collect::<Vec<_>>()
    };
    let first = run();
    assert!(first.len() > 6, "namespaces, the definition, a widget and a config map");
    assert_eq!(first, run());
}

#[test]
fn a_write_is_answered_with_what_a_read_then_shows() {
    let mut world = World::new();
    let mut definition = widgets();
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["share"] =
        json!({"type": "number", "default": 0.5});
    let mut older = widgets()["spec"]["versions"][0].take();
    (older["name"], older["storage"]) = (json!("v1beta1"), json!(false));
    definition["spec"]["versions"].as_array_mut().unwrap().push(older);
    let made = world.create("customresourcedefinitions", definition);
    let definitions = world.target("customresourcedefinitions");
    let read = world.api.get(&definitions, made.name(), Part::Main).unwrap();
    assert_eq!(made.to_string(), read.to_string());

    let targets = [("t.io", "v1", "widgets"), ("t.io", "v1beta1", "widgets"), ("", "v1", "services")];
    let targets = targets.into_iter().chain([("", "v1", "events"), ("events.k8s.io", "v1", "events")]);
    for (n, (group, version, plural)) in targets.enumerate() {
        let target = world.api.target(group, version, plural, Some("default")).unwrap();
        let name = format!("o{n}");
        let mut object = json!({"apiVersion": target.api_version(), "kind": target.resource.kind,
            "metadata": {"name": name, "namespace": "default", "finalizers": ["t.io/held"]}});
        match (group, plural) {
            (_, "widgets") => object["spec"] = json!({"size": 1, "share": 1.25, "unknown": true}),
            (_, "services") => object["spec"] = json!({"ports": [{"port": 80}]}),
            ("", _) => object["involvedObject"] = json!({"namespace": "default"}),
            _ => object["regarding"] = json!({"namespace": "default"}),
        }
        if group == "events.k8s.io" {
            object["eventTime"] = json!("2023-11-14T22:13:20.000000Z");
            (object["reportingController"], object["reportingInstance"]) = (json!("t.io/test"), json!("one"));
            (object["action"], object["reason"], object["type"]) = (json!("Try"), json!("Tried"), json!("Normal"));
        }
        let moment = world.moment();
        let made = world.api.create(&target, Body { value: object, duplicates: vec![] }, &options(), moment);
        let made = made.unwrap_or_else(|e| panic!("{e:?}")).object;
        let shown = |world: &World| world.api.get(&target, &name, Part::Main).unwrap().to_string();
        assert_eq!(made.to_string(), shown(&world), "created");
        let (patch, moment) = (Patch::Merge(json!({"metadata": {"labels": {"l": "1"}}})), world.moment());
        let changed = world.api.patch(&target, &name, Part::Main, patch, &[], &options(), moment).unwrap().object;
        assert_eq!(changed.to_string(), shown(&world), "changed");
        let moment = world.moment();
        match world.api.delete(&target, &name, &DeleteOptions::default(), moment).unwrap() {
            Deleted::Pending(marked) => assert_eq!(marked.to_string(), shown(&world), "marked"),
            Deleted::Gone(gone) => panic!("it is held: {gone}"),
        }
    }
}

#[test]
fn addresses_of_services_that_are_gone_are_handed_out_again() {
    let mut world = World::new();
    let make = |world: &mut World, name: &str| {
        let spec = json!({"type": "NodePort", "ports": [{"port": 80}]});
        let made = world.create("services", json!({"metadata": {"name": name}, "spec": spec}));
        (made["spec"]["clusterIP"].as_str().unwrap().to_owned(), made["spec"]["ports"][0]["nodePort"].as_u64().unwrap())
    };
    let (first, second) = (make(&mut world, "a"), make(&mut world, "b"));
    assert!(first.0 != second.0 && first.1 != second.1, "{first:?} {second:?}");
    world.delete("services", "a");
    assert_eq!(make(&mut world, "c"), first);
    // An ordinary service has no node port.
    world.merge("services", "b", json!({"spec": {"type": "ClusterIP", "ports": [{"port": 80, "nodePort": null}]}}));
    assert_eq!(make(&mut world, "d").1, second.1);
    // What is only tried takes nothing.
    let (target, moment) = (world.target("services"), world.moment());
    let value = json!({"metadata": {"name": "e"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}});
    let dry = WriteOptions { dry_run: true, ..options() };
    let tried = world.api.create(&target, Body { value, duplicates: vec![] }, &dry, moment).unwrap().object;
    assert_eq!(make(&mut world, "e").0, tried["spec"]["clusterIP"].as_str().unwrap());
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
    let first = world.api.list(&target, &Query { limit: 2, ..Query::default() }).unwrap().shown(&target);
    assert_eq!((first.items.len(), first.remaining), (2, Some(1)));
    world.delete("configmaps", "c");
    world.config_map("d", "red");
    let query = Query { limit: 2, page: first.next, ..Query::default() };
    let second = world.api.list(&target, &query).unwrap().shown(&target);
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
fn what_a_definition_was_is_not_kept_by_its_objects_and_their_history() {
    let mut world = World::new();
    let made = world.create("customresourcedefinitions", widgets());
    let name = made.name().to_owned();
    let mut schemas = Vec::new();
    for n in 0..10 {
        let fields = json!({format!("f{n}"): {"type": "string", "pattern": "^a+$"}});
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}});
        let mut versions = made["spec"]["versions"].clone();
        versions[0]["schema"]["openAPIV3Schema"] = schema;
        world.merge("customresourcedefinitions", &name, json!({"spec": {"versions": versions}}));
        schemas.push(Arc::downgrade(&world.target("widgets").version().schema));
        let kind = made["spec"]["names"]["kind"].clone();
        let api_version = world.target("widgets").api_version();
        let object = |name: String| json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
        world.create("widgets", object(format!("stays-{n}")));
        world.create("widgets", object(format!("goes-{n}")));
        world.delete("widgets", &format!("goes-{n}"));
    }
    let alive: Vec<usize> = (0..10).filter(|n| schemas[*n].upgrade().is_some()).collect();
    assert_eq!(alive, [9], "only the one that is served");
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

#[test]
fn a_generated_name_that_is_taken_is_generated_again() {
    let mut world = World::new();
    let target = world.target("configmaps");
    let chance = Moment { entropy: 0x0123_4567_89ab_cdef_fedc_ba98_7654_3210, ..moment(1) };
    let mut made = BTreeSet::new();
    let generate = |api: &mut Api| {
        let body = Body { value: json!({"metadata": {"generateName": "run-"}}), duplicates: vec![] };
        api.create(&target, body, &options(), chance)
    };
    for _ in 0..8 {
        let written = generate(&mut world.api).unwrap();
        assert!(made.insert(written.object.name().to_owned()), "{made:?}");
    }
    let refusal = generate(&mut world.api).unwrap_err();
    assert_eq!((refusal.code, refusal.reason), (409, "AlreadyExists"));
    assert!(refusal.message.ends_with("the server was not able to generate a unique name for the object"));
}

#[test]
fn one_write_deletes_some_instances_of_a_definition_and_others_go_on_from_there() {
    let mut world = World::new();
    world.create("customresourcedefinitions", widgets());
    for n in 0..2 * DELETED_AT_ONCE + 1 {
        let metadata = json!({"name": format!("w{n:05}")});
        world.create("widgets", json!({"apiVersion": "t.io/v1", "kind": "Widget", "metadata": metadata}));
    }
    let id = ResourceId::new("t.io", "widgets");
    assert!(matches!(world.delete("customresourcedefinitions", "widgets.t.io"), Deleted::Pending(_)));
    assert_eq!(world.api.store.count(&id), DELETED_AT_ONCE + 1);
    let moment = world.moment();
    let last = world.api.clear_instances("widgets.t.io", None, moment);
    assert_eq!(last.as_ref().map(Key::name), Some(format!("w{:05}", 2 * DELETED_AT_ONCE - 1).as_str()));
    assert_eq!(world.api.clear_instances("widgets.t.io", last.as_ref(), moment), None);
    assert!(world.api.registry().get(&id).is_none(), "the definition went with the last of them");
    assert_eq!(world.api.clear_instances("widgets.t.io", None, moment), None, "nothing is left to do");
}

#[test]
fn a_pod_that_is_deleted_again_keeps_to_the_time_of_the_first_request() {
    let mut world = World::new();
    let spec = json!({"nodeName": "n", "containers": [{"name": "c", "image": "i"}]});
    world.create("pods", json!({"metadata": {"name": "a"}, "spec": spec}));
    let target = world.target("pods");
    let mut delete = |grace: Option<i64>, at: u64| {
        let options = DeleteOptions { grace_seconds: grace, ..DeleteOptions::default() };
        let Deleted::Pending(pod) = world.api.delete(&target, "a", &options, moment(at)).unwrap() else {
            panic!("it has time left");
        };
        let end: Timestamp = pod.meta("deletionTimestamp").parse().unwrap();
        let grace = pod.at(&["metadata", "deletionGracePeriodSeconds"]).and_then(Value::as_i64).unwrap();
        (end.as_second() - 1_700_000_000, grace)
    };
    assert_eq!(delete(Some(60), 100), (160, 60));
    assert_eq!(delete(None, 110), (160, 60), "its own thirty seconds do not count any more");
    assert_eq!(delete(Some(20), 110), (120, 20), "it counts from the first request");
    assert_eq!(delete(Some(40), 110), (120, 20), "nobody gives more");
    assert_eq!(delete(Some(-5), 110), (110, 1), "nothing ends in the past");
}

#[test]
fn of_very_many_finalizers_not_all_are_remarked_upon() {
    let mut world = World::new();
    world.create("customresourcedefinitions", widgets());
    let finalizers: Vec<String> = (0..20_000).map(|n| format!("f{n}")).collect();
    let value = json!({"apiVersion": "t.io/v1", "kind": "Widget", "metadata": {"name": "a", "finalizers": finalizers}});
    let (target, moment) = (world.target("widgets"), world.moment());
    let written = world.api.create(&target, Body { value, duplicates: vec![] }, &options(), moment).unwrap();
    assert_eq!(written.warnings.len(), crate::refusal::MAX_FOUND);
    assert_eq!(written.object.finalizers().len(), 20_000);
}
