//! Laws that hold for all schemas and values, tried on random ones.

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::*;

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// The schema of a field, with all ways of merging, three levels deep.
fn field_schema() -> impl Strategy<Value = Value> {
    let scalar = select(vec![json!({"type": "string"}), json!({"type": "integer"}), json!({"type": "boolean"})]);
    let leaf = prop_oneof![
        4 => scalar,
        1 => Just(json!({"x-kubernetes-preserve-unknown-fields": true})),
        1 => Just(json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"})),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let fields = btree_map(select(&NAMES[..]).prop_map(str::to_owned), inner.clone(), 1..4);
        prop_oneof![
            fields.clone().prop_map(|fields| json!({"type": "object", "properties": fields})),
            fields.clone().prop_map(|fields| {
                json!({"type": "object", "properties": fields, "x-kubernetes-map-type": "atomic"})
            }),
            inner.clone().prop_map(|value| json!({"type": "object", "additionalProperties": value})),
            inner.prop_map(|item| json!({"type": "array", "items": item})),
            fields.prop_map(|mut fields| {
                fields.insert("key".into(), json!({"type": "string"}));
                let item = json!({"type": "object", "properties": fields});
                let keys = ["key"];
                json!({"type": "array", "items": item, "x-kubernetes-list-type": "map",
                       "x-kubernetes-list-map-keys": keys})
            }),
        ]
    })
}

/// A value that the schema allows. Sets and lists with keys have items, because empty ones are owned by nobody.
fn value_of(openapi: &Value) -> BoxedStrategy<Value> {
    let some_of = |fields: Vec<(String, BoxedStrategy<Value>)>| {
        let count = fields.len();
        subsequence(fields, 0..=count).prop_flat_map(|fields| {
            let (names, values): (Vec<_>, Vec<_>) = fields.into_iter().unzip();
            values.prop_map(move |values| Value::Object(names.iter().cloned().zip(values).collect()))
        })
    };
    let properties = |schema: &Value| -> Vec<(String, BoxedStrategy<Value>)> {
        let fields = schema["properties"].as_object().into_iter().flatten();
        fields.map(|(name, field)| (name.clone(), value_of(field))).collect()
    };
    match openapi["type"].as_str() {
        Some("string") => select(vec!["x", "y", "z"]).prop_map(Value::from).boxed(),
        Some("integer") => (0..3).prop_map(Value::from).boxed(),
        Some("boolean") => any::<bool>().prop_map(Value::from).boxed(),
        Some("object") => match openapi.get("additionalProperties") {
            Some(value) => some_of(NAMES.iter().map(|name| (name.to_string(), value_of(value))).collect()).boxed(),
            None => some_of(properties(openapi)).boxed(),
        },
        Some("array") => match openapi["x-kubernetes-list-type"].as_str() {
            Some("set") => subsequence(NAMES.to_vec(), 1..=NAMES.len()).prop_shuffle().prop_map(Value::from).boxed(),
            Some(_) => {
                let rest = properties(&openapi["items"]).into_iter().filter(|(name, _)| name != "key").collect();
                let items = (subsequence(NAMES.to_vec(), 1..=3).prop_shuffle(), vec(some_of(rest), 3));
                let keyed = |(keys, items): (Vec<&str>, Vec<Value>)| {
                    let item = |(key, mut item): (&str, Value)| {
                        item["key"] = key.into();
                        item
                    };
                    keys.into_iter().zip(items).map(item).collect()
                };
                items.prop_map(keyed).boxed()
            }
            None => vec(value_of(&openapi["items"]), 0..3).prop_map(Value::from).boxed(),
        },
        _ => anything(),
    }
}

/// Any JSON at all.
fn anything() -> BoxedStrategy<Value> {
    let names = select(vec!["a", "b", "key", "metadata", "managedFields", "f:a", "k:{}", "labels", "."]);
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z<&\"]{0,3}".prop_map(Value::from),
    ];
    scalar
        .prop_recursive(4, 24, 4, move |inner| {
            let map = btree_map(names.clone().prop_map(str::to_owned), inner.clone(), 0..4);
            prop_oneof![vec(inner, 0..4).prop_map(Value::from), map.prop_map(|map| json!(map))]
        })
        .boxed()
}

/// JSON that a failing case shows on one line.
#[derive(Clone)]
struct Text(Value);

impl std::fmt::Debug for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A kind with a random `spec`, and some objects of it.
fn kind(objects: usize) -> impl Strategy<Value = (Text, Vec<Text>)> {
    let fields = btree_map(select(&NAMES[..]).prop_map(str::to_owned), field_schema(), 1..4);
    fields.prop_flat_map(move |fields| {
        let openapi = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}});
        let object = |mut value: Value| {
            value["apiVersion"] = "example.com/v1".into();
            value["kind"] = "Demo".into();
            value["metadata"] = json!({"name": "x"});
            value
        };
        (Just(Text(openapi.clone())), vec(value_of(&openapi).prop_map(move |v| Text(object(v))), objects))
    })
}

fn field_set() -> impl Strategy<Value = FieldSet> {
    let element = prop_oneof![
        3 => select(&NAMES[..]).prop_map(PathElement::field),
        1 => select(vec![json!("x"), json!(1), json!(10), json!(9), json!(1.5), json!("<&>")])
            .prop_map(|value| PathElement::Value(Literal(value))),
        1 => (0..12i64, select(vec!["x", "y"]))
            .prop_map(|(n, y)| PathElement::Key(vec![("n".into(), Literal(n.into())), ("y".into(), Literal(y.into()))])),
        1 => (0..3i64).prop_map(PathElement::Index),
    ];
    vec(vec(element, 1..4), 0..8).prop_map(|paths| {
        let mut set = FieldSet::default();
        paths.iter().for_each(|path| set.insert(path));
        set
    })
}

fn by(manager: &str, step: usize) -> Write<'_> {
    static NONE: LazyLock<FieldSet> = LazyLock::new(FieldSet::default);
    Write { manager, api_version: "example.com/v1", subresource: "", now: at(step), reset: &NONE, blank: None }
}

fn owned_by(object: &Value, name: &str) -> FieldSet {
    let managers = Managers::parse(&object["metadata"]["managedFields"]).expect("the record can be read");
    managers.iter().filter(|e| e.manager.name == name).fold(FieldSet::default(), |set, e| set.union(&e.set))
}

/// The object without its record, and without what emptied maps and lists leave behind.
fn content(object: &Value) -> Value {
    fn solid(value: &Value) -> Option<Value> {
        match value {
            Value::Null => None,
            Value::Object(map) => {
                let map: Map<String, Value> =
                    map.iter().filter_map(|(key, value)| Some((key.clone(), solid(value)?))).collect();
                Some(Value::Object(map)).filter(|map| *map != json!({}))
            }
            Value::Array(list) if list.is_empty() => None,
            Value::Array(list) => Some(list.iter().map(|item| solid(item).unwrap_or_default()).collect()),
            other => Some(other.clone()),
        }
    }
    let mut object = object.clone();
    object.metadata_mut().remove("managedFields");
    solid(&object).unwrap_or_default()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sets_obey_the_laws_of_sets(a in field_set(), b in field_set(), c in field_set()) {
        prop_assert_eq!(a.union(&b), b.union(&a));
        prop_assert_eq!(a.union(&b).union(&c), a.union(&b.union(&c)));
        prop_assert_eq!(a.intersection(&b), b.intersection(&a));
        prop_assert_eq!(a.union(&a), a.clone());
        prop_assert_eq!(a.difference(&b).union(&a.intersection(&b)), a.clone());
        prop_assert!(a.difference(&b).intersection(&b).is_empty());
        prop_assert!(a.recursive_difference(&a).is_empty());
        prop_assert_eq!(a.recursive_difference(&b).intersection(&b), FieldSet::default());
        prop_assert!(a.union(&b).paths().iter().all(|path| a.contains(path) || b.contains(path)));
        prop_assert_eq!(a.leaves().difference(&a), FieldSet::default());
    }

    #[test]
    fn what_is_written_as_fields_v1_is_read_back(set in field_set()) {
        prop_assert_eq!(FieldSet::parse(&set.to_value()), Ok(set));
    }

    #[test]
    fn values_are_merged_compared_and_taken_apart((kind, values) in kind(2)) {
        let schema = schema(&kind.0);
        let [Text(live), Text(applied)] = values.as_slice() else { unreachable!("two were asked for") };
        let merged = merge(live, applied, &schema);
        prop_assert_eq!(merge(&merged, applied, &schema), merged.clone(), "merging again changes nothing");
        let own = set_of(applied, &schema);
        for gone in compare(live, &merged, &schema).removed.paths() {
            let replaced = (1..gone.len()).any(|n| own.contains(&gone[..n]));
            prop_assert!(replaced, "merging removes only what it puts something else over: {gone:?}");
        }
        prop_assert!(compare(&merged, &merged, &schema).is_empty());
        let (forth, back) = (compare(live, applied, &schema), compare(applied, live, &schema));
        prop_assert_eq!((&forth.added, &forth.modified, &forth.removed), (&back.removed, &back.modified, &back.added));
        let everything = set_of(live, &schema);
        prop_assert_eq!(content(&extract(live, &everything, &schema)), content(live));
        prop_assert_eq!(content(&remove(live.clone(), &everything, &schema)), Value::Null);
    }

    #[test]
    fn applying_twice_is_applying_once((kind, values) in kind(2)) {
        let schema = schema(&kind.0);
        let [Text(live), Text(config)] = values.as_slice() else { unreachable!("two were asked for") };
        let mut live = live.clone();
        track_update(None, &mut live, &schema, &by("creator", 0));
        let once = apply(Some(&live), config, &schema, &by("applier", 1), true).expect("force leaves no conflicts");
        let twice = apply(Some(&once), config, &schema, &by("applier", 2), false);
        prop_assert_eq!(twice, Ok(once));
    }

    #[test]
    fn what_is_applied_by_force_is_there_and_owned((kind, values) in kind(3)) {
        let schema = schema(&kind.0);
        let [Text(live), Text(before), Text(config)] = values.as_slice() else { unreachable!("three were asked for") };
        let mut live = live.clone();
        track_update(None, &mut live, &schema, &by("creator", 0));
        let live = apply(Some(&live), before, &schema, &by("other", 1), true).expect("forced");
        let object = apply(Some(&live), config, &schema, &by("applier", 2), true).expect("forced");
        let set = set_of(config, &schema).difference(&NEVER_OWNED);
        prop_assert_eq!(owned_by(&object, "applier"), set.clone());
        prop_assert!(compare(config, &object, &schema).modified.intersection(&set.leaves()).is_empty());
        prop_assert!(compare(config, &object, &schema).removed.is_empty());
    }

    #[test]
    fn what_nobody_applies_any_more_is_gone((kind, values) in kind(2)) {
        let schema = schema(&kind.0);
        let [Text(first), Text(second)] = values.as_slice() else { unreachable!("two were asked for") };
        let nothing = json!({"apiVersion": "example.com/v1", "kind": "Demo", "metadata": {"name": "x"}});
        let alone = apply(None, first, &schema, &by("a", 0), false).expect("nobody else is there");
        let both = apply(Some(&alone), second, &schema, &by("b", 1), true).expect("forced");
        // What b took away from a by force is not given back, so only what is b's alone can be looked at.
        if owned_by(&both, "a") == owned_by(&alone, "a") {
            let back = apply(Some(&both), &nothing, &schema, &by("b", 2), false).expect("nothing to conflict");
            let change = compare(&content(&alone), &content(&back), &schema);
            prop_assert_eq!(change, Comparison::default());
            prop_assert!(owned_by(&back, "b").is_empty());
        }
        let gone = apply(Some(&alone), &nothing, &schema, &by("a", 3), false).expect("nothing to conflict");
        prop_assert_eq!(content(&gone), content(&nothing));
    }

    #[test]
    fn appliers_that_do_not_meet_can_come_in_any_order((kind, values) in kind(2)) {
        let schema = schema(&kind.0);
        let [Text(a), Text(b)] = values.as_slice() else { unreachable!("two were asked for") };
        let apply_both = |first: (&str, &Value), second: (&str, &Value)| {
            let object = apply(None, first.1, &schema, &by(first.0, 0), false).expect("alone");
            apply(Some(&object), second.1, &schema, &by(second.0, 0), false)
        };
        let (ab, ba) = (apply_both(("a", a), ("b", b)), apply_both(("b", b), ("a", a)));
        if let (Ok(ab), Ok(ba)) = (ab, ba) {
            // The order of list items is the order of arrival.
            prop_assert!(compare(&ab, &ba, &schema).difference_in_content().is_empty());
            prop_assert_eq!(owned_by(&ab, "a"), owned_by(&ba, "a"));
            prop_assert_eq!(owned_by(&ab, "b"), owned_by(&ba, "b"));
        }
    }

    #[test]
    fn an_update_belongs_to_who_made_it((kind, values) in kind(2)) {
        let schema = schema(&kind.0);
        let [Text(old), Text(new)] = values.as_slice() else { unreachable!("two were asked for") };
        let (mut old, mut new) = (old.clone(), new.clone());
        track_update(None, &mut old, &schema, &by("a", 0));
        track_update(Some(&old), &mut new, &schema, &by("b", 1));
        let changes = compare(&old, &new, &schema);
        let theirs = changes.added.union(&changes.modified).difference(&NEVER_OWNED);
        prop_assert_eq!(owned_by(&new, "b"), theirs.clone());
        let left = owned_by(&old, "a").difference(&theirs).difference(&changes.removed);
        prop_assert_eq!(owned_by(&new, "a"), left);
        let mut again = new.clone();
        track_update(Some(&new), &mut again, &schema, &by("c", 2));
        prop_assert_eq!(again, new);
    }

    #[test]
    fn nonsense_is_survived((kind, _) in kind(0), live in anything(), config in anything(), set in anything()) {
        let schema = schema(&kind.0);
        let mut object = live.clone();
        track_update(Some(&config), &mut object, &schema, &by("a", 0));
        track_update(None, &mut object, &schema, &by("a", 0));
        let _ = apply(Some(&live), &config, &schema, &by("kubectl", 1), false);
        let _ = apply(None, &config, &Schema::default(), &by("", 1), true);
        let _ = Managers::parse(&set).map(|managers| managers.to_value());
        if let Ok(set) = FieldSet::parse(&set) {
            remove(live.clone(), &set, &schema);
            extract(&live, &set, &schema);
        }
    }
}

impl Comparison {
    /// All differences but the order of items.
    fn difference_in_content(self) -> FieldSet {
        let all = self.added.union(&self.modified).union(&self.removed);
        all.recursive_difference(&FieldSet::of_fields(&[&["metadata"]]))
    }
}
