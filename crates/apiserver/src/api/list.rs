//! Lists: at which revision, which objects, in which pages.

use std::cell::OnceCell;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::{Api, Listed, Query, Target, revision};
use crate::decode;
use crate::object::Object;
use crate::refusal::{Cause, Fault, FieldError, Refusal};
use crate::resource::Origin;
use crate::store::{Key, Stored};

impl Api {
    /// One page of the objects that a query selects.
    pub fn list(&self, target: &Target, query: &Query) -> Result<Page, Refusal> {
        query.check_fields(target)?;
        let Start { exact, after } = Start::of(query, self.revision())?;
        let revision = exact.unwrap_or(self.revision());
        let rows = self.store.after(&target.storage_id(), target.namespace.as_deref(), after.as_ref(), revision);
        let rows = rows.map_err(|_| if query.page.is_some() { expired_token() } else { expired_revision() })?;
        let mut rows = rows.filter(|(key, stored)| query.selects(target, key, stored));
        let limit = if query.limit == 0 { usize::MAX } else { query.limit };
        let page: Vec<_> = rows.by_ref().take(limit).map(|(key, stored)| (key.clone(), stored.clone())).collect();
        // The original does not count what a selector would have to look at. Then it is enough that there is another.
        let counts = query.selects_everything();
        let left = if counts { rows.count() } else { rows.take(1).count() };
        let next = page.last().filter(|_| left > 0).map(|(key, _)| token(revision, key));
        let remaining = (left > 0 && counts).then_some(left);
        Ok(Page { rows: page, revision, next, remaining })
    }
}

impl Api {
    /// Whether what is known is not older than a version that a reader of one object has seen.
    pub fn is_as_new_as(&self, version: &str) -> Result<(), Refusal> {
        let asked =
            revision::parse(version).map_err(|why| Refusal::new(500, "", not_a_version(version, why).to_string()))?;
        if asked > self.revision() { Err(too_large(asked, self.revision())) } else { Ok(()) }
    }
}

/// One page of a list. It shares its objects with the store: their texts can be made when nobody waits for the store.
#[derive(Debug)]
pub struct Page {
    rows: Vec<(Key, Arc<Stored>)>,
    revision: u64,
    next: Option<String>,
    remaining: Option<usize>,
}

impl Page {
    /// The page as it is answered, in the version of the target it was made for.
    pub fn shown(&self, target: &Target) -> Listed {
        let items = self.rows.iter().map(|(_, stored)| target.item_text(stored)).collect();
        Listed { items, revision: self.revision, next: self.next.clone(), remaining: self.remaining }
    }

    /// Which objects are on it.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.rows.iter().map(|(key, _)| key)
    }
}

impl Query {
    pub(super) fn selects_everything(&self) -> bool {
        self.labels.is_everything() && self.fields.is_everything()
    }

    /// Whether a stored object is wanted.
    pub(super) fn selects(&self, target: &Target, key: &Key, stored: &Stored) -> bool {
        if !self.labels.matches(&stored.labels) {
            return false;
        }
        if self.fields.is_everything() {
            return true;
        }
        // Name and namespace are in the key; only other fields are worth parsing the object for.
        let parsed = OnceCell::new();
        self.fields.matches(|path| match path {
            "metadata.name" => key.name().to_owned(),
            "metadata.namespace" => key.namespace().to_owned(),
            other => match field_text(parsed.get_or_init(|| target.shown(stored)), other) {
                absent if absent.is_empty() && target.is_flag(other) => "false".to_owned(),
                text => text,
            },
        })
    }

    pub(super) fn check_fields(&self, target: &Target) -> Result<(), Refusal> {
        let selectable = &target.version().selectable;
        if target.resource.origin == Origin::Builtin && selectable.is_empty() {
            return self.fields.check_metadata_only();
        }
        self.fields.check(|path| {
            let common = path == "metadata.name" || (path == "metadata.namespace" && target.resource.namespaced);
            common || selectable.iter().any(|s| s.strip_prefix('.').unwrap_or(s) == path)
        })
    }
}

impl Target {
    /// Whether a field of a built-in kind is true or false, and the latter where it is absent. Those of custom resources
    /// are then neither.
    fn is_flag(&self, path: &str) -> bool {
        self.resource.origin == Origin::Builtin && matches!(path, "spec.unschedulable" | "spec.hostNetwork")
    }
}

/// A field as text for a field selector; absent fields read as empty.
fn field_text(object: &Value, path: &str) -> String {
    let parts: Vec<&str> = path.split('.').collect();
    match object.at(&parts) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// Where a list begins.
struct Start {
    /// The past revision to show; `None` = now.
    exact: Option<u64>,
    /// Only keys after this one.
    after: Option<Key>,
}

impl Start {
    fn of(query: &Query, current: u64) -> Result<Self, Refusal> {
        let given = query.resource_version.as_deref().unwrap_or_default();
        let matching = query.version_match.as_deref().unwrap_or_default();
        check_match(given, matching, query.page.is_some())?;
        if let Some(text) = &query.page {
            if !given.is_empty() && given != "0" {
                return Err(Refusal::bad_request("specifying resource version is not allowed when using continue"));
            }
            let (revision, after) = read_token(text)?;
            return Ok(Self { exact: revision.filter(|r| *r != current), after: Some(after) });
        }
        let asked = parse_revision(given)?;
        if asked > current {
            return Err(too_large(asked, current));
        }
        // A limited list of a given revision has always meant exactly that revision.
        let exact = matching == "Exact" || (matching.is_empty() && query.limit > 0 && asked > 0);
        Ok(Self { exact: (exact && asked != current).then_some(asked), after: None })
    }
}

fn check_match(given: &str, matching: &str, paging: bool) -> Result<(), Refusal> {
    let field = "resourceVersionMatch";
    let error = match matching {
        "" => return Ok(()),
        _ if paging => {
            FieldError::new(field, Fault::Forbidden, "resourceVersionMatch is forbidden when continue is provided")
        }
        _ if given.is_empty() => FieldError::new(
            field,
            Fault::Forbidden,
            "resourceVersionMatch is forbidden unless resourceVersion is provided",
        ),
        "Exact" if given == "0" => FieldError::new(
            field,
            Fault::Forbidden,
            "resourceVersionMatch \"Exact\" is forbidden for resourceVersion \"0\"",
        ),
        "Exact" | "NotOlderThan" => return Ok(()),
        other => FieldError::with_value(
            field,
            Fault::NotSupported,
            &Value::from(other),
            "supported values: \"Exact\", \"NotOlderThan\", \"\"",
        ),
    };
    Err(Refusal::invalid("meta.k8s.io", "ListOptions", "", &[error]))
}

/// `resourceVersion` as a number; empty = 0 = any.
fn parse_revision(text: &str) -> Result<u64, Refusal> {
    revision::parse(text)
        .map_err(|why| Refusal::bad_request(format!("invalid resource version: {}", not_a_version(text, why))))
}

/// What is said of a version that is none.
pub(super) fn not_a_version(text: &str, why: String) -> FieldError {
    FieldError::with_value("resourceVersion", Fault::Invalid, &Value::from(text), why)
}

fn too_large(asked: u64, current: u64) -> Refusal {
    let message = format!("Too large resource version: {asked}, current: {current}");
    let cause = Cause {
        reason: "ResourceVersionTooLarge".into(),
        message: "Too large resource version".into(),
        field: String::new(),
    };
    let mut refusal = Refusal::new(504, "Timeout", format!("Timeout: {message}")).because(vec![cause]);
    refusal.details.get_or_insert_default().retry_after_seconds = 1;
    refusal
}

fn expired_revision() -> Refusal {
    Refusal::expired("The resourceVersion for the provided list is too old.")
}

fn expired_token() -> Refusal {
    Refusal::expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list \
         without the continue parameter.",
    )
}

fn token(revision: u64, last: &Key) -> String {
    let value = json!({"v": "meta.k8s.io/v1", "rv": revision, "start": format!("{}\0", last.as_str())});
    URL_SAFE_NO_PAD.encode(value.to_string())
}

fn read_token(text: &str) -> Result<(Option<u64>, Key), Refusal> {
    let refuse = |why: &str| Refusal::bad_request(format!("invalid continue token: continue key is not valid: {why}"));
    let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| refuse("illegal base64 data"))?;
    let value = decode::json(&bytes).map_err(|refusal| refuse(&refusal.message))?.value;
    if value["v"] != "meta.k8s.io/v1" {
        return Err(refuse("server does not recognize this encoded version"));
    }
    let start = value["start"].as_str().filter(|s| !s.is_empty());
    let start = start.ok_or_else(|| refuse("encoded start key empty (version meta.k8s.io/v1)"))?;
    let revision = match value["rv"].as_i64() {
        Some(0) | None => return Err(refuse("incorrect encoded start resourceVersion (version meta.k8s.io/v1)")),
        // A negative revision continues with whatever there is now.
        Some(negative) if negative < 0 => None,
        Some(revision) => Some(revision.unsigned_abs()),
    };
    Ok((revision, Key::from_text(start.trim_end_matches('\0'))))
}
