//! What changed between two values, as sets of fields.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::fields::{FieldSet, Node};
use super::path::{PathElement, same};
use super::shape::{self, Form, field, fields_of, form, item_names, items_of};
use crate::schema::Schema;

/// The fields in which a new value differs from an old one. No field is in two of the sets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Only the new value has them.
    pub added: FieldSet,
    /// Both have them, with different values.
    pub modified: FieldSet,
    /// Only the old value has them.
    pub removed: FieldSet,
}

impl Comparison {
    /// Nothing changed.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }

    /// The same without the given fields and all that is below them.
    pub fn ignoring(mut self, fields: &FieldSet) -> Self {
        if !fields.is_empty() {
            for set in [&mut self.added, &mut self.modified, &mut self.removed] {
                *set = set.recursive_difference(fields);
            }
        }
        self
    }
}

/// Compares two values of one schema.
pub fn compare(old: &Value, new: &Value, schema: &Schema) -> Comparison {
    let delta = difference(Some(old), Some(new), schema, 0);
    Comparison { added: delta.added.below, modified: delta.modified.below, removed: delta.removed.below }
}

/// A [`Comparison`] of one field and all that is below it. Built on the way up, so that what did not change costs
/// nothing but the look at it.
#[derive(Default)]
struct Delta {
    added: Node,
    modified: Node,
    removed: Node,
}

impl Delta {
    /// Takes in what changed below, in whatever order it was found.
    fn absorb(&mut self, below: Vec<(PathElement, Self)>) {
        let (mut added, mut modified, mut removed) = (Vec::new(), Vec::new(), Vec::new());
        for (element, delta) in below {
            for (nodes, node) in
                [(&mut added, delta.added), (&mut modified, delta.modified), (&mut removed, delta.removed)]
            {
                if !node.is_empty() {
                    nodes.push((element.clone(), node));
                }
            }
        }
        for (mine, nodes) in [(&mut self.added, added), (&mut self.modified, modified), (&mut self.removed, removed)] {
            let found = FieldSet::of_nodes(nodes);
            mine.below = if mine.below.is_empty() { found } else { mine.below.union(&found) };
        }
    }

    fn is_empty(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }
}

fn difference(old: Option<&Value>, new: Option<&Value>, schema: &Schema, depth: usize) -> Delta {
    let form_of = |value: Option<&Value>| value.map(|value| form(schema, value, depth));
    let (before, after) = (form_of(old), form_of(new));
    let mut delta = Delta::default();
    for form in before.into_iter().chain(after.filter(|_| before != after)) {
        difference_as(form, old, new, schema, depth, &mut delta);
    }
    delta
}

/// Compares in one form. A value that is not of that form counts as an empty one.
fn difference_as(
    form: Form,
    old: Option<&Value>,
    new: Option<&Value>,
    schema: &Schema,
    depth: usize,
    delta: &mut Delta,
) {
    match form {
        Form::Fields => {
            let (before, after) = (fields_of(old), fields_of(new));
            if before.is_none() && after.is_none() {
                return leaf(old, new, delta);
            }
            let empty = Map::new();
            let (before, after) = (before.unwrap_or(&empty), after.unwrap_or(&empty));
            let all = before.iter().map(|(name, value)| (name, Some(value), after.get(name)));
            let fresh = after.iter().filter(|(name, _)| !before.contains_key(*name));
            let mut changed = Vec::new();
            for (name, old, new) in all.chain(fresh.map(|(name, value)| (name, None, Some(value)))) {
                let below = difference(old, new, field(schema, name, depth).schema, depth + 1);
                if !below.is_empty() {
                    changed.push((PathElement::field(name), below));
                }
            }
            delta.absorb(changed);
        }
        Form::Items => {
            let (before, after) = (items_of(old), items_of(new));
            if before.is_none() && after.is_none() {
                return leaf(old, new, delta);
            }
            if before == after {
                return;
            }
            match (names(schema, before), names(schema, after)) {
                (Ok(before), Ok(after)) => items(before, after, schema, depth, delta),
                // Items that cannot be told apart make the list one thing.
                _ => return leaf(old, new, delta),
            }
        }
        Form::Leaf => return leaf(old, new, delta),
    }
    delta.added.member |= old.is_none();
    delta.removed.member |= new.is_none();
}

fn leaf(old: Option<&Value>, new: Option<&Value>, delta: &mut Delta) {
    match (old, new) {
        (Some(old), Some(new)) => delta.modified.member |= !same(old, new),
        (old, new) => {
            delta.added.member |= old.is_none();
            delta.removed.member |= new.is_none();
        }
    }
}

/// Items by name; more than one where the name is not unique.
type Named<'v> = BTreeMap<PathElement, Vec<&'v Value>>;

fn names<'v>(schema: &Schema, list: Option<&'v [Value]>) -> Result<Named<'v>, String> {
    let list = list.unwrap_or_default();
    let mut named = Named::new();
    for (name, item) in item_names(schema, list)?.into_iter().zip(list) {
        named.entry(name).or_default().push(item);
    }
    Ok(named)
}

fn items(before: Named<'_>, mut after: Named<'_>, schema: &Schema, depth: usize, delta: &mut Delta) {
    let mut pairs: Vec<(PathElement, Vec<&Value>, Vec<&Value>)> = Vec::new();
    for (name, old) in before {
        let new = after.remove(&name).unwrap_or_default();
        pairs.push((name, old, new));
    }
    pairs.extend(after.into_iter().map(|(name, new)| (name, Vec::new(), new)));
    let mut changed = Vec::new();
    for (name, old, new) in pairs {
        let one = |old: Option<&&Value>, new: Option<&&Value>| {
            difference(old.copied(), new.copied(), shape::items(schema), depth + 1)
        };
        let mut below = match (old.len(), new.len()) {
            (0 | 1, 0 | 1) => one(old.first(), new.first()),
            // Items that share a name are one thing, which comes and goes as such.
            (0, _) | (_, 0) => Delta::default(),
            (1, _) => one(old.first(), None),
            (_, 1) => one(None, new.first()),
            _ => Delta::default(),
        };
        match (old.len() > 1, new.len() > 1) {
            (true, true) => below.modified.member = old != new,
            (true, false) => below.removed.member = true,
            (false, true) => below.added.member = true,
            (false, false) => {}
        }
        if !below.is_empty() {
            changed.push((name, below));
        }
    }
    delta.absorb(changed);
}
