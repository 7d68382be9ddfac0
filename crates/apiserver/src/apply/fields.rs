//! Sets of fields: who owns what, as a tree.
//!
//! A set is a tree of path elements; each node says whether the field itself is a member, and which fields below it
//! are. Owning a field does not mean owning what is below it. The JSON form is `fieldsV1`:
//! `{"f:spec":{"f:replicas":{},"f:tags":{".":{},"v:\"x\"":{}}}}`.

use std::cmp::Ordering;
use std::ops::ControlFlow;

use serde_json::{Map, Value};

use super::path::{ElementError, Path, PathElement};

/// Deeper trees are refused. No decoder of ours lets a document through that nests as deeply.
pub(super) const MAX_DEPTH: usize = 256;

/// A set of fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSet {
    /// Ordered by path element. Every node is a member or has members below it.
    nodes: Vec<(PathElement, Node)>,
}

/// One field of a set, and what is below it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Node {
    /// The field itself is a member.
    pub(super) member: bool,
    /// Members below it.
    pub(super) below: FieldSet,
}

impl Node {
    pub(super) fn leaf() -> Self {
        Self { member: true, below: FieldSet::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.member && self.below.is_empty()
    }
}

impl FieldSet {
    /// The set of these paths of field names.
    pub fn of_fields(paths: &[&[&str]]) -> Self {
        let mut set = Self::default();
        paths.iter().for_each(|path| set.add(path));
        set
    }

    /// Adds a path of field names.
    pub fn add(&mut self, path: &[&str]) {
        self.insert(&path.iter().map(|name| PathElement::field(*name)).collect::<Path>());
    }

    /// Adds a path. The root of the object belongs to nobody, so the empty path adds nothing.
    pub fn insert(&mut self, path: &[PathElement]) {
        let Some((first, rest)) = path.split_first() else { return };
        let node = self.node_mut(first);
        if rest.is_empty() {
            node.member = true;
        } else {
            node.below.insert(rest);
        }
    }

    /// There is no member.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The path is a member.
    pub fn contains(&self, path: &[PathElement]) -> bool {
        let Some((last, parents)) = path.split_last() else { return false };
        let parent = parents.iter().try_fold(self, |set, element| set.get(element).map(|node| &node.below));
        parent.and_then(|set| set.get(last)).is_some_and(|node| node.member)
    }

    /// Members of either set.
    pub fn union(&self, other: &Self) -> Self {
        let mut nodes = Vec::with_capacity(self.nodes.len().max(other.nodes.len()));
        let (mut mine, mut theirs) = (self.nodes.iter().peekable(), other.nodes.iter().peekable());
        loop {
            let order = match (mine.peek(), theirs.peek()) {
                (None, None) => return Self { nodes },
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some((a, _)), Some((b, _))) => a.cmp(b),
            };
            let a = if order.is_le() { mine.next() } else { None };
            let b = if order.is_ge() { theirs.next() } else { None };
            match (a, b) {
                (Some((element, a)), Some((_, b))) => {
                    let both = Node { member: a.member || b.member, below: a.below.union(&b.below) };
                    nodes.push((element.clone(), both));
                }
                (one, other) => nodes.extend(one.or(other).cloned()),
            }
        }
    }

    /// Members of any of the sets. Taken together in pairs, so that no set is copied once for every other.
    pub fn union_of(mut sets: Vec<Self>) -> Self {
        while sets.len() > 1 {
            let pairs = sets.chunks(2).map(|pair| match pair {
                [a, b] => a.union(b),
                rest => rest.first().cloned().unwrap_or_default(),
            });
            sets = pairs.collect();
        }
        sets.pop().unwrap_or_default()
    }

    /// Members of both sets.
    pub fn intersection(&self, other: &Self) -> Self {
        self.beside(other, |a, b| match b {
            Some(b) => Node { member: a.member && b.member, below: a.below.intersection(&b.below) },
            None => Node::default(),
        })
    }

    /// Members of this set that are not members of the other. A member below a member of the other stays.
    pub fn difference(&self, other: &Self) -> Self {
        self.beside(other, |a, b| match b {
            Some(b) => Node { member: a.member && !b.member, below: a.below.difference(&b.below) },
            None => a.clone(),
        })
    }

    /// Members of this set that neither are members of the other nor lie below one.
    pub fn recursive_difference(&self, other: &Self) -> Self {
        self.beside(other, |a, b| match b {
            Some(b) if b.member => Node::default(),
            Some(b) => Node { member: a.member, below: a.below.recursive_difference(&b.below) },
            None => a.clone(),
        })
    }

    /// Members that have no members below them.
    pub fn leaves(&self) -> Self {
        self.map(|_, node| Node { member: node.member && node.below.is_empty(), below: node.below.leaves() })
    }

    /// How many members there are.
    pub fn len(&self) -> usize {
        self.nodes.iter().map(|(_, node)| usize::from(node.member) + node.below.len()).sum()
    }

    /// All members: those of a level first, then those below them, as the original lists conflicts.
    pub fn paths(&self) -> Vec<Path> {
        let mut paths = Vec::new();
        _ = self.visit(|path| {
            paths.push(path.iter().copied().cloned().collect());
            ControlFlow::Continue(())
        });
        paths
    }

    /// Shows all members in the order of [`Self::paths`], until somebody has seen enough.
    pub(super) fn visit<'s>(&'s self, mut see: impl FnMut(&[&'s PathElement]) -> ControlFlow<()>) -> ControlFlow<()> {
        self.visit_below(&mut Vec::new(), &mut see)
    }

    fn visit_below<'s>(
        &'s self,
        path: &mut Vec<&'s PathElement>,
        see: &mut dyn FnMut(&[&'s PathElement]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        for (element, _) in self.nodes.iter().filter(|(_, node)| node.member) {
            path.push(element);
            see(path)?;
            path.pop();
        }
        for (element, node) in &self.nodes {
            path.push(element);
            node.below.visit_below(path, see)?;
            path.pop();
        }
        ControlFlow::Continue(())
    }

    /// Reads `fieldsV1`.
    pub fn parse(value: &Value) -> Result<Self, String> {
        Ok(read(value, 0)?.below)
    }

    /// Writes `fieldsV1`. Keys are ordered by the map they are put in, so `k:` elements with numbers come in the order
    /// of their text, where the original has the order of the numbers; no reader can tell.
    pub fn to_value(&self) -> Value {
        let fields = self.nodes.iter().map(|(element, node)| {
            let mut below = node.below.to_value();
            if let (true, false, Value::Object(map)) = (node.member, node.below.is_empty(), &mut below) {
                map.insert(".".into(), Value::Object(Map::new()));
            }
            (element.to_text(), below)
        });
        Value::Object(fields.collect())
    }

    /// The nodes of the first level.
    pub(super) fn nodes(&self) -> impl Iterator<Item = &(PathElement, Node)> {
        self.nodes.iter()
    }

    pub(super) fn get(&self, element: &PathElement) -> Option<&Node> {
        self.find(element).ok().map(|at| &self.nodes[at].1)
    }

    /// What is known about a field by name, without making a path element of it.
    pub(super) fn get_field(&self, name: &str) -> Option<&Node> {
        let order = |(element, _): &(PathElement, Node)| match element {
            PathElement::Field(field) => field.as_str().cmp(name),
            _ => Ordering::Greater,
        };
        self.nodes.binary_search_by(order).ok().map(|at| &self.nodes[at].1)
    }

    /// The set of these nodes, in whatever order they come; empty ones are left out, and of several for one element
    /// the last counts. Sorted once: putting nodes in one by one moves all that are behind them, every time.
    pub(super) fn of_nodes(mut nodes: Vec<(PathElement, Node)>) -> Self {
        nodes.retain(|(_, node)| !node.is_empty());
        nodes.sort_by(|(a, _), (b, _)| a.cmp(b));
        nodes.dedup_by(|later, kept| {
            let same = later.0 == kept.0;
            if same {
                std::mem::swap(later, kept);
            }
            same
        });
        Self { nodes }
    }

    /// The set made of its nodes, changed one by one; nodes that come back empty are left out.
    pub(super) fn map(&self, change: impl Fn(&PathElement, &Node) -> Node) -> Self {
        let changed = self.nodes.iter().map(|(element, node)| (element.clone(), change(element, node)));
        Self { nodes: changed.filter(|(_, node)| !node.is_empty()).collect() }
    }

    fn find(&self, element: &PathElement) -> Result<usize, usize> {
        // Most sets are built in order, so look at the end first.
        match self.nodes.last() {
            Some((last, _)) if last < element => Err(self.nodes.len()),
            _ => self.nodes.binary_search_by(|(e, _)| e.cmp(element)),
        }
    }

    fn node_mut(&mut self, element: &PathElement) -> &mut Node {
        let at = self.find(element).unwrap_or_else(|at| {
            self.nodes.insert(at, (element.clone(), Node::default()));
            at
        });
        &mut self.nodes[at].1
    }

    /// Walks this set beside the other; nodes that come back empty are left out. What only the other has is skipped in
    /// strides, so that many small sets can be held against a large one.
    fn beside(&self, other: &Self, combine: impl Fn(&Node, Option<&Node>) -> Node) -> Self {
        let (mut nodes, mut ahead) = (Vec::new(), other.nodes.as_slice());
        for (element, node) in &self.nodes {
            ahead = skip_to(ahead, element);
            let theirs = ahead.first().filter(|(e, _)| e == element).map(|(_, node)| node);
            let node = combine(node, theirs);
            if !node.is_empty() {
                nodes.push((element.clone(), node));
            }
        }
        Self { nodes }
    }
}

/// The nodes from this element on. Costs little where they are few steps away, and the logarithm of the steps where
/// they are many.
fn skip_to<'n>(nodes: &'n [(PathElement, Node)], element: &PathElement) -> &'n [(PathElement, Node)] {
    let mut stride = 1;
    while nodes.get(stride - 1).is_some_and(|(e, _)| e < element) {
        stride *= 2;
    }
    // All up to half of the stride are before it; the one at its end is not, or is not there.
    let (start, end) = (stride / 2, (stride - 1).min(nodes.len()));
    let found = nodes[start..end].partition_point(|(e, _)| e < element);
    &nodes[start + found..]
}

/// A node of `fieldsV1`: a member if it says so by `.`, or if there is nothing else in it.
fn read(value: &Value, depth: usize) -> Result<Node, String> {
    if depth > MAX_DEPTH {
        return Err("fieldsV1 nests too deeply".to_owned());
    }
    let map = match value {
        Value::Object(map) => map,
        Value::Null => return Ok(Node::leaf()),
        other => return Err(format!("fieldsV1 holds objects only, got {other}")),
    };
    let (mut member, mut nodes) = (false, Vec::with_capacity(map.len()));
    for (key, child) in map {
        if key == "." {
            member = true;
            continue;
        }
        match PathElement::parse(key) {
            Ok(element) => nodes.push((element, read(child, depth + 1)?)),
            Err(ElementError::UnknownKind) => {}
            Err(ElementError::Malformed(why)) => return Err(why),
        }
    }
    // The keys come in the order of their text, which for numbers is another than theirs.
    let below = FieldSet::of_nodes(nodes);
    Ok(Node { member: member || below.is_empty(), below })
}
