use serde_json::json;

use super::*;

fn id() -> ResourceId {
    ResourceId::new("", "configmaps")
}

fn put(store: &mut Store, namespace: &str, name: &str, value: u32) -> u64 {
    let mut object = json!({"metadata": {"name": name, "namespace": namespace}, "data": {"v": value}});
    store.put(&id(), Key::new(Some(namespace), name), &mut object, &Arc::default()).unwrap().revision
}

fn names(store: &Store, namespace: Option<&str>, revision: u64) -> Vec<String> {
    let rows = store.after(&id(), namespace, None, revision).unwrap();
    rows.map(|(key, stored)| format!("{}={}", key.as_str(), stored.parse()["data"]["v"])).collect()
}

#[test]
fn every_write_has_a_revision_of_its_own_and_carries_it() {
    let mut store = Store::default();
    let first = put(&mut store, "a", "x", 1);
    let second = put(&mut store, "a", "y", 1);
    assert!(second > first);
    let stored = store.get(&id(), &Key::new(Some("a"), "y")).unwrap();
    assert_eq!(stored.parse()["metadata"]["resourceVersion"], second.to_string());
    assert_eq!(store.revision(), second);
}

#[test]
fn lists_are_ordered_by_the_text_of_namespace_and_name() {
    let mut store = Store::default();
    for (namespace, name) in [("a", "z"), ("a-b", "a"), ("a", "b"), ("b", "a")] {
        put(&mut store, namespace, name, 0);
    }
    let all: Vec<_> = store.iter(&id(), None).map(|(key, _)| key.as_str().to_owned()).collect();
    assert_eq!(all, ["a-b/a", "a/b", "a/z", "b/a"]);
    let of_a: Vec<_> = store.iter(&id(), Some("a")).map(|(key, _)| key.name().to_owned()).collect();
    assert_eq!(of_a, ["b", "z"], "a-b is another namespace");
}

#[test]
fn the_past_can_be_listed_as_it_was() {
    let mut store = Store::default();
    put(&mut store, "a", "kept", 1);
    put(&mut store, "a", "changed", 1);
    let then = put(&mut store, "a", "removed", 1);
    put(&mut store, "a", "changed", 2);
    put(&mut store, "a", "changed", 3);
    put(&mut store, "a", "added", 1);
    let key = Key::new(Some("a"), "removed");
    let last = store.get(&id(), &key).unwrap().parse();
    store.remove(&id(), &key, last, &Arc::default());
    assert_eq!(names(&store, None, then), ["a/changed=1", "a/kept=1", "a/removed=1"]);
    let now = store.revision();
    assert_eq!(names(&store, Some("a"), now), ["a/added=1", "a/changed=3", "a/kept=1"]);
}

#[test]
fn a_removal_is_seen_with_a_revision_of_its_own() {
    let mut store = Store::default();
    let made = put(&mut store, "a", "x", 7);
    let key = Key::new(Some("a"), "x");
    let last = store.get(&id(), &key).unwrap().parse();
    store.remove(&id(), &key, last, &Arc::default());
    let changes: Vec<_> = store.changes_since(&id(), made).unwrap().collect();
    assert_eq!(changes.len(), 1);
    assert!(changes[0].removed && changes[0].revision > made);
    assert_eq!(changes[0].after.parse()["data"]["v"], 7);
    assert!(store.get(&id(), &key).is_none());
}

#[test]
fn history_is_bounded_and_says_what_it_forgot() {
    let mut store = Store::default();
    let first = put(&mut store, "a", "x", 0);
    let big = "x".repeat(1 << 20);
    for _ in 0..40 {
        let mut object = json!({"metadata": {"name": "x", "namespace": "a"}, "data": {"v": big}});
        store.put(&id(), Key::new(Some("a"), "x"), &mut object, &Arc::default()).unwrap();
    }
    let forgotten = store.changes_since(&id(), first).err().expect("40 MiB do not fit");
    assert!(forgotten.oldest > first);
    let kept: usize = store.changes_since(&id(), forgotten.oldest).unwrap().map(|c| c.after.text.len()).sum();
    assert!(kept <= 32 << 20, "{kept} bytes kept");
}

#[test]
fn history_does_not_keep_what_objects_were_before_they_shrank() {
    let mut store = Store::default();
    let mut put_all = |text: &str| {
        for n in 0..100 {
            let name = format!("x{n}");
            let mut object = json!({"metadata": {"name": name, "namespace": "a"}, "data": {"v": text}});
            store.put(&id(), Key::new(Some("a"), &name), &mut object, &Arc::default()).unwrap();
        }
    };
    put_all(&"x".repeat(1 << 20));
    put_all("");
    let forgotten = store.changes_since(&id(), 1).err().expect("100 MiB do not fit");
    let earlier = store.changes_since(&id(), forgotten.oldest).unwrap().filter_map(|c| c.before.as_ref());
    let kept: usize = earlier.map(|before| before.text.len()).sum();
    assert!((1 << 20..64 << 20).contains(&kept), "{kept} bytes kept");
}

#[test]
fn an_object_keeps_no_schema_alive() {
    let mut store = Store::default();
    let (mut object, key) = (json!({"metadata": {"name": "x"}}), Key::new(None, "x"));
    let [first, second] = [Arc::new(Schema::default()), Arc::new(Schema::default())];
    store.put(&id(), key.clone(), &mut object, &first).unwrap();
    let stored = store.put(&id(), key.clone(), &mut object, &second).unwrap();
    store.remove(&id(), &key, object, &second);
    assert!(stored.is_by(&second) && !stored.is_by(&first));
    assert_eq!((Arc::strong_count(&first), Arc::strong_count(&second)), (1, 1));
    drop((first, second));
    assert!(!stored.is_by(&Arc::default()), "whatever is made later is another");
}

#[test]
fn of_resources_that_are_gone_only_the_last_are_remembered() {
    let mut store = Store::default();
    let resource = |n: usize| ResourceId::new(&format!("g{n}.io"), "widgets");
    for n in 0..100 {
        let (mut object, key) = (json!({"metadata": {"name": "x"}}), Key::new(None, "x"));
        store.begin(&resource(n));
        store.put(&resource(n), key.clone(), &mut object, &Arc::default()).unwrap();
        store.remove(&resource(n), &key, object, &Arc::default());
        store.end(&resource(n));
    }
    assert_eq!(store.tables.len(), MAX_ENDED);
    assert_eq!(store.changes_since(&resource(99), store.revision() - 1).unwrap().count(), 1, "its end can be seen");
    // One that comes back is none of them, and goes as the last again.
    store.begin(&resource(90));
    (100..200).for_each(|n| {
        store.begin(&resource(n));
        store.end(&resource(n));
    });
    assert!(store.tables.contains_key(&resource(90)) && store.tables.len() == MAX_ENDED + 1);
    store.begin(&resource(0));
    assert!(store.changes_since(&resource(0), 1).is_err(), "what was before cannot be asked for");
}
