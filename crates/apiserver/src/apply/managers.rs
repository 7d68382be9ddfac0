//! The entries of `metadata.managedFields`: who owns which fields, and since when.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Slot;

use jiff::{Timestamp, Unit};
use serde_json::{Map, Value};

use super::fields::FieldSet;

/// Updaters beyond this number are folded together, the longest unheard of first.
const MAX_UPDATERS: usize = 10;

/// The manager that they are folded into.
const ANCIENT: &str = "ancient-changes";

/// How the fields came to be owned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// By server-side apply.
    Apply,
    /// By any other write.
    Update,
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// Who manages fields. An applier is the same in every version; an updater is another one in each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manager {
    /// Name given by the client.
    pub name: String,
    /// How it writes.
    pub operation: Operation,
    /// Version through which it wrote last.
    pub api_version: String,
    /// Subresource through which it writes; empty for the object itself.
    pub subresource: String,
}

impl Manager {
    fn is(&self, other: &Self) -> bool {
        let same_version = self.operation == Operation::Apply || self.api_version == other.api_version;
        let (a, b) = (self, other);
        same_version && a.operation == b.operation && a.name == b.name && a.subresource == b.subresource
    }

    /// What tells managers apart, as something that can be looked up.
    fn identity(&self) -> (String, Operation, String, String) {
        let version = match self.operation {
            Operation::Apply => String::new(),
            Operation::Update => self.api_version.clone(),
        };
        (self.name.clone(), self.operation, version, self.subresource.clone())
    }

    /// The order in which the original lists conflicts.
    pub(super) fn order(&self) -> (&str, Operation, &str, &str) {
        (&self.name, self.operation, &self.api_version, &self.subresource)
    }
}

/// As conflict messages name it: `"kubectl" using apps/v1`.
impl std::fmt::Display for Manager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.name)?;
        if !self.subresource.is_empty() {
            write!(f, " with subresource {:?}", self.subresource)?;
        }
        match self.operation {
            Operation::Apply => Ok(()),
            Operation::Update => write!(f, " using {}", self.api_version),
        }
    }
}

/// One entry of `metadata.managedFields`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Who.
    pub manager: Manager,
    /// When its set last grew or its fields last changed; none if it only ever agreed with what was there.
    pub time: Option<Timestamp>,
    /// What.
    pub set: FieldSet,
}

/// All entries of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Managers {
    entries: Vec<Entry>,
}

impl Managers {
    /// Reads `metadata.managedFields`.
    pub fn parse(list: &Value) -> Result<Self, String> {
        let list = match list {
            Value::Array(list) => list.as_slice(),
            Value::Null => &[],
            _ => return Err("managedFields must be a list".to_owned()),
        };
        let mut last = BTreeMap::new();
        for (n, value) in list.iter().enumerate() {
            let entry = parse_entry(value, n)?;
            last.insert(entry.manager.identity(), (n, entry));
        }
        // Of a manager that is named twice the last entry counts, where it stands.
        let mut entries: Vec<(usize, Entry)> = last.into_values().collect();
        entries.sort_by_key(|(n, _)| *n);
        Ok(Self { entries: entries.into_iter().map(|(_, entry)| entry).collect() })
    }

    /// Writes `metadata.managedFields`, in the original's order: appliers first, then by time and name.
    pub fn to_value(&self) -> Value {
        let mut entries: Vec<&Entry> = self.entries.iter().collect();
        let age = |e: &Entry| e.time.map_or(0, Timestamp::as_second);
        entries.sort_by(|a, b| {
            let key = |e: &Entry| (e.manager.operation, age(e));
            key(a).cmp(&key(b)).then_with(|| {
                let (a, b) = (&a.manager, &b.manager);
                (&a.name, &a.api_version, &a.subresource).cmp(&(&b.name, &b.api_version, &b.subresource))
            })
        });
        entries.into_iter().map(print_entry).collect()
    }

    /// Nobody owns anything.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All entries.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.entries.iter_mut()
    }

    /// What a manager owns.
    pub fn get(&self, manager: &Manager) -> Option<&Entry> {
        self.entries.iter().find(|e| e.manager.is(manager))
    }

    /// Takes a manager's entry out.
    pub(super) fn take(&mut self, manager: &Manager) -> Option<Entry> {
        let at = self.entries.iter().position(|e| e.manager.is(manager))?;
        Some(self.entries.remove(at))
    }

    /// Puts an entry in for a manager that has none. Whoever owns nothing is not remembered.
    pub(super) fn put(&mut self, entry: Entry) {
        if !entry.set.is_empty() {
            self.entries.push(entry);
        }
    }

    pub(super) fn forget_idle(&mut self) {
        self.entries.retain(|e| !e.set.is_empty());
    }

    /// Folds the oldest updaters together until few enough are left. They are folded per version.
    pub(super) fn fold_ancient(&mut self) {
        let (appliers, mut updaters): (Vec<_>, Vec<_>) =
            self.entries.drain(..).partition(|e| e.manager.operation == Operation::Apply);
        self.entries = appliers;
        let mut surplus = updaters.len().saturating_sub(MAX_UPDATERS);
        updaters.sort_by(|a, b| {
            let key = |e: &Entry| e.time.map_or(0, Timestamp::as_second);
            key(a).cmp(&key(b)).then_with(|| a.manager.order().cmp(&b.manager.order()))
        });
        // The first updater of a version becomes the bucket only once a second one is folded into it.
        let mut kept: Vec<Entry> = Vec::with_capacity(updaters.len());
        let mut buckets: BTreeMap<String, usize> = BTreeMap::new();
        let mut folded: BTreeMap<usize, Vec<FieldSet>> = BTreeMap::new();
        for updater in updaters {
            match buckets.entry(updater.manager.api_version.clone()) {
                Slot::Occupied(first) if surplus > 0 => {
                    surplus -= 1;
                    let bucket = &mut kept[*first.get()];
                    bucket.manager.name = ANCIENT.to_owned();
                    bucket.manager.subresource.clear();
                    bucket.time = updater.time;
                    folded.entry(*first.get()).or_default().push(updater.set);
                }
                slot => {
                    slot.or_insert(kept.len());
                    kept.push(updater);
                }
            }
        }
        for (bucket, mut sets) in folded {
            let bucket = &mut kept[bucket].set;
            sets.push(std::mem::take(bucket));
            *bucket = FieldSet::union_of(sets);
        }
        self.entries.extend(kept);
    }
}

fn parse_entry(value: &Value, n: usize) -> Result<Entry, String> {
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let operation = match text("operation").as_str() {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        _ => return Err("operation must be `Apply` or `Update`".to_owned()),
    };
    let api_version = text("apiVersion");
    if api_version.is_empty() {
        return Err("apiVersion must not be empty".to_owned());
    }
    match text("fieldsType").as_str() {
        "FieldsV1" => {}
        "" => return Err(format!("missing fieldsType in managed fields entry {n}")),
        other => return Err(format!("invalid fieldsType {other:?} in managed fields entry {n}")),
    }
    let time = match value.get("time") {
        None | Some(Value::Null) => None,
        Some(time) => Some(time.as_str().and_then(|t| t.parse().ok()).ok_or("time must be an RFC 3339 time")?),
    };
    let set = match value.get("fieldsV1") {
        None | Some(Value::Null) => FieldSet::default(),
        Some(fields) => FieldSet::parse(fields)?,
    };
    let manager = Manager { name: text("manager"), operation, api_version, subresource: text("subresource") };
    Ok(Entry { manager, time, set })
}

fn print_entry(entry: &Entry) -> Value {
    let Manager { name, operation, api_version, subresource } = &entry.manager;
    let mut map = Map::new();
    for (key, text) in [("manager", name), ("apiVersion", api_version), ("subresource", subresource)] {
        if !text.is_empty() {
            map.insert(key.into(), Value::from(text.as_str()));
        }
    }
    map.insert("operation".into(), operation.name().into());
    map.insert("fieldsType".into(), "FieldsV1".into());
    map.insert("fieldsV1".into(), entry.set.to_value());
    if let Some(time) = entry.time {
        map.insert("time".into(), seconds(time).to_string().into());
    }
    Value::Object(map)
}

/// Times are kept to the second.
pub(super) fn seconds(time: Timestamp) -> Timestamp {
    let floor = jiff::TimestampRound::new().smallest(Unit::Second).mode(jiff::RoundMode::Floor);
    time.round(floor).unwrap_or(time)
}
