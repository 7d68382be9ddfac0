//! Cursors, told in small pieces while the world goes on.

use std::collections::BTreeMap;

use jiff::Timestamp;
use proptest::prelude::*;

use super::*;
use crate::api::{Body, DeleteOptions, Moment, Part, Patch, WriteOptions};
use crate::select::LabelSelector;

struct World {
    api: Api,
    maps: Target,
    ticks: u64,
}

impl World {
    fn new() -> Self {
        let api = Api::new(moment(0));
        let maps = api.target("", "v1", "configmaps", Some("default")).unwrap();
        Self { api, maps, ticks: 0 }
    }

    fn tick(&mut self) -> Moment {
        self.ticks += 1;
        moment(self.ticks)
    }

    /// Creates or changes a config map of that colour.
    fn put(&mut self, name: &str, color: &str, text: &str) {
        let (options, moment) = (WriteOptions { manager: "test".into(), ..WriteOptions::default() }, self.tick());
        let object = json!({"metadata": {"name": name, "labels": {"color": color}}, "data": {"text": text}});
        if self.api.get(&self.maps, name, Part::Main).is_ok() {
            self.api.patch(&self.maps, name, Part::Main, Patch::Merge(object), &[], &options, moment).unwrap();
        } else {
            self.api.create(&self.maps, Body { value: object, duplicates: vec![] }, &options, moment).unwrap();
        }
    }

    fn delete(&mut self, name: &str) {
        let moment = self.tick();
        // It may not be there, which is as good.
        let _ = self.api.delete(&self.maps, name, &DeleteOptions::default(), moment);
    }

    fn watch(&self, query: &Query) -> Watch {
        self.api.watch(&self.maps, query, &WatchOptions { bookmarks: true, send_initial: None }).unwrap()
    }
}

fn moment(n: u64) -> Moment {
    let second = 1_700_000_000 + i64::try_from(n).unwrap();
    Moment { now: Timestamp::from_second(second).unwrap(), entropy: u128::from(n) << 64 | 7 }
}

fn parsed(text: &[u8]) -> Value {
    serde_json::from_slice(text).unwrap()
}

/// What a client makes of the events; it complains about any that makes no sense.
#[derive(Default)]
struct Client {
    objects: BTreeMap<String, Value>,
    in_sync: bool,
    last_change: u64,
}

impl Client {
    fn take(&mut self, events: &[WatchEvent]) {
        for event in events {
            let object = parsed(&event.object());
            let (name, revision) = (object.name().to_owned(), object.meta("resourceVersion").parse().unwrap());
            let known = self.objects.contains_key(&name);
            match event.kind {
                EventKind::Added => assert!(!known, "{name} is added twice"),
                EventKind::Modified | EventKind::Deleted => assert!(known && self.in_sync, "{name} was never seen"),
                EventKind::Bookmark => {
                    assert!(!std::mem::replace(&mut self.in_sync, true), "the state ends once");
                    self.last_change = revision;
                    continue;
                }
            }
            if self.in_sync {
                assert!(revision > self.last_change, "{name}: changes come in their order");
                self.last_change = revision;
            }
            match event.kind {
                EventKind::Deleted => self.objects.remove(&name),
                _ => self.objects.insert(name, object),
            };
        }
    }
}

#[derive(Debug, Clone)]
enum Step {
    Put(u8, bool),
    Delete(u8),
    /// The client reads as much.
    Read(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (0..6u8, any::<bool>()).prop_map(|(n, red)| Step::Put(n, red)),
        1 => (0..6u8).prop_map(Step::Delete),
        2 => prop_oneof![Just(1), Just(600), Just(2000)].prop_map(Step::Read),
    ];
    prop::collection::vec(step, 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn however_it_is_cut_a_watch_leads_to_the_state(before in steps(), meanwhile in steps(), selected in any::<bool>()) {
        let mut world = World::new();
        let labels = if selected { "color=red" } else { "" };
        let query = Query { labels: LabelSelector::parse(labels).unwrap(), ..Query::default() };
        let mut client = Client::default();
        let mut watch = world.watch(&query);
        for (n, step) in before.iter().chain(&meanwhile).enumerate() {
            match step {
                Step::Put(name, red) => {
                    world.put(&format!("m{name}"), if *red { "red" } else { "blue" }, &n.to_string());
                }
                Step::Delete(name) => world.delete(&format!("m{name}")),
                // The state is begun in the middle of everything.
                Step::Read(budget) if n >= before.len() => client.take(&watch.next(&world.api, *budget).unwrap()),
                Step::Read(_) => {}
            }
        }
        loop {
            let events = watch.next(&world.api, 1).unwrap();
            prop_assert!(events.len() <= 2, "one object, and perhaps the mark after it");
            if events.is_empty() {
                break;
            }
            client.take(&events);
        }
        prop_assert!(client.in_sync);
        let listed = world.api.list(&world.maps, &query).unwrap().shown(&world.maps).items;
        let listed: Vec<Value> = listed.iter().map(|text| parsed(text)["metadata"].clone()).collect();
        let seen: Vec<Value> = client.objects.into_values().map(|object| object["metadata"].clone()).collect();
        prop_assert_eq!(seen, listed);
    }
}

#[test]
fn a_batch_is_bounded_whatever_there_is_to_tell() {
    let mut world = World::new();
    let text = "x".repeat(10_000);
    let mut watch = world.watch(&Query::default());
    for n in 0..100 {
        world.put(&format!("m{n}"), "red", &text);
    }
    let budget = 64 * 1024;
    let mut drained = |world: &World| {
        let mut count = 0;
        loop {
            let events = watch.next(&world.api, budget).unwrap();
            let bytes: usize = events.iter().map(|event| event.object().len()).sum();
            assert!(bytes < budget + 12_000, "{bytes} bytes at once");
            if events.is_empty() {
                return count;
            }
            count += events.len();
        }
    };
    assert_eq!(drained(&world), 101, "a megabyte of state, and the mark");
    for n in 0..100 {
        world.put(&format!("m{n}"), "blue", &text);
    }
    assert_eq!(drained(&world), 100, "a megabyte of changes");
}

#[test]
fn there_is_no_bookmark_in_the_middle_of_the_state() {
    let mut world = World::new();
    world.put("a", "red", "");
    world.put("b", "red", "");
    let mut watch = world.watch(&Query::default());
    assert!(watch.bookmark().is_none(), "nothing was told");
    assert_eq!(watch.next(&world.api, 1).unwrap().len(), 1);
    assert!(watch.bookmark().is_none(), "half of it was told");
    watch.next(&world.api, 1).unwrap();
    let mark = watch.bookmark().expect("all of it was told");
    assert_eq!(parsed(&mark.object()).meta("resourceVersion"), world.api.revision().to_string());
}

#[test]
fn a_state_that_is_read_too_slowly_is_given_up() {
    let mut world = World::new();
    world.put("a", "red", "");
    world.put("b", "red", "");
    let mut watch = world.watch(&Query::default());
    watch.next(&world.api, 1).unwrap();
    let text = "x".repeat(900 << 10);
    for n in 0..40 {
        world.put("b", "red", &format!("{n}{text}"));
    }
    let refusal = watch.next(&world.api, 1).unwrap_err();
    assert_eq!((refusal.code, refusal.reason), (410, "Expired"));
}

#[test]
fn events_of_the_same_object_are_the_same_to_all_watchers_and_different_otherwise() {
    let mut world = World::new();
    world.put("a", "red", "");
    let everything = Query::default();
    let red = Query { labels: LabelSelector::parse("color=red").unwrap(), ..Query::default() };
    let (mut one, mut two) = (world.watch(&everything), world.watch(&red));
    let first = |watch: &mut Watch, world: &World| watch.next(&world.api, usize::MAX).unwrap().swap_remove(0);
    let (seen, also_seen) = (first(&mut one, &world), first(&mut two, &world));
    assert_eq!(seen.identity(), also_seen.identity());
    world.put("a", "blue", "");
    let (modified, left) = (first(&mut one, &world), first(&mut two, &world));
    assert_eq!((modified.kind, left.kind), (EventKind::Modified, EventKind::Deleted));
    assert_ne!(modified.identity(), left.identity());
    assert_ne!(modified.identity(), seen.identity());
    assert_eq!(one.bookmark().unwrap().identity(), None);
}
