//! The state as it was, piece by piece.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use super::{Forgotten, Key, Store, Stored};
use crate::resource::ResourceId;

impl Store {
    /// The objects after a key as they were at an earlier revision, as long as that is remembered. Nothing is collected
    /// but what has changed since, so whoever needs only the next few pays for no more than that.
    pub fn after<'a, 'n>(
        &'a self,
        id: &ResourceId,
        namespace: Option<&'n str>,
        last: Option<&Key>,
        revision: u64,
    ) -> Result<impl Iterator<Item = (&'a Key, &'a Arc<Stored>)> + use<'a, 'n>, Forgotten> {
        let from = match (last, namespace) {
            (Some(last), _) => Bound::Excluded(last.clone()),
            (None, Some(namespace)) => Bound::Included(Key::new(Some(namespace), "")),
            (None, None) => Bound::Unbounded,
        };
        // What each key held at `revision` is what the first later change found there.
        let mut then: BTreeMap<&Key, Option<&Arc<Stored>>> = BTreeMap::new();
        for change in self.changes_since(id, revision)? {
            if change.key.is_in(namespace) && last.is_none_or(|last| change.key > *last) {
                then.entry(&change.key).or_insert(change.before.as_ref());
            }
        }
        let mut changed = then.into_iter().filter_map(|(key, stored)| Some((key, stored?))).peekable();
        let now = self.tables.get(id).into_iter().flat_map(move |t| t.objects.range((from.clone(), Bound::Unbounded)));
        let mut unchanged = now.filter(move |(_, stored)| stored.revision <= revision).peekable();
        let rows = std::iter::from_fn(move || {
            let earlier = match (changed.peek(), unchanged.peek()) {
                (Some((a, _)), Some((b, _))) => a < b,
                (then, _) => then.is_some(),
            };
            if earlier { changed.next() } else { unchanged.next() }
        });
        Ok(rows.take_while(move |(key, _)| key.is_in(namespace)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn id() -> ResourceId {
        ResourceId::new("", "configmaps")
    }

    #[derive(Debug, Clone)]
    enum Step {
        Put(usize),
        Remove(usize),
    }

    /// Names around each other, also across namespaces whose order is not that of their names.
    const KEYS: [(&str, &str); 7] =
        [("a", "x"), ("a", "y"), ("a", "z"), ("a-b", "x"), ("a-b", "y"), ("b", "x"), ("b", "y")];

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = (0..KEYS.len()).prop_flat_map(|n| prop_oneof![2 => Just(Step::Put(n)), 1 => Just(Step::Remove(n))]);
        prop::collection::vec(step, 0..24)
    }

    fn take(store: &mut Store, step: &Step) {
        let (Step::Put(n) | Step::Remove(n)) = step;
        let (namespace, name) = KEYS[*n];
        let key = Key::new(Some(namespace), name);
        let mut object = json!({"metadata": {"name": name, "namespace": namespace}});
        match step {
            Step::Put(_) => drop(store.put(&id(), key, &mut object, &Arc::default()).unwrap()),
            Step::Remove(_) if store.get(&id(), &key).is_none() => {}
            Step::Remove(_) => drop(store.remove(&id(), &key, object, &Arc::default())),
        }
    }

    /// All objects as they were, found by undoing everything that happened since.
    fn all_at(store: &Store, namespace: Option<&str>, revision: u64) -> Vec<(Key, Arc<Stored>)> {
        let mut rows: BTreeMap<Key, Arc<Stored>> =
            store.iter(&id(), None).map(|(key, stored)| (key.clone(), stored.clone())).collect();
        let changes: Vec<_> = store.changes_since(&id(), revision).unwrap().collect();
        for change in changes.into_iter().rev() {
            match &change.before {
                Some(before) => rows.insert(change.key.clone(), before.clone()),
                None => rows.remove(&change.key),
            };
        }
        rows.into_iter().filter(|(key, _)| key.is_in(namespace)).collect()
    }

    fn told(rows: impl Iterator<Item = (Key, Arc<Stored>)>) -> Vec<(String, u64)> {
        rows.map(|(key, stored)| (key.as_str().to_owned(), stored.revision)).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_comes_after_a_key_is_the_rest_of_the_past(
            before in steps(), since in steps(), last in prop::option::of(0..KEYS.len()), one_namespace in any::<bool>(),
        ) {
            let mut store = Store::default();
            before.iter().for_each(|step| take(&mut store, step));
            let revision = store.revision();
            since.iter().for_each(|step| take(&mut store, step));
            let namespace = one_namespace.then_some("a");
            let last = last.map(|n| Key::new(Some(KEYS[n].0), KEYS[n].1));
            let last = last.filter(|key| key.is_in(namespace));
            let whole = all_at(&store, namespace, revision);
            let expected = told(whole.into_iter().filter(|(key, _)| last.as_ref().is_none_or(|last| key > last)));
            let rest = store.after(&id(), namespace, last.as_ref(), revision).unwrap();
            prop_assert_eq!(told(rest.map(|(k, s)| (k.clone(), s.clone()))), expected);
        }
    }
}
