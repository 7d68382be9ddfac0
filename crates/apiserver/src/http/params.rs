//! Query parameters: reading them, and refusing bad ones in the words of the original.

use serde_json::{Value, json};

use super::path::percent_bytes;
use crate::api::{DeleteOptions, FieldValidation, Propagation, Query, WatchOptions, WriteOptions};
use crate::refusal::{Fault, FieldError, Refusal};
use crate::resource::builtin::decode::check_delete_options;
use crate::schema::gotext::is_printable;
use crate::select::{FieldSelector, LabelSelector};

/// Longest `fieldManager`, the original's limit.
const MANAGER_MAX: usize = 128;

/// Decoded query parameters, in the order given.
#[derive(Debug, Clone, Default)]
pub struct Params(Vec<(String, String)>);

impl Params {
    /// Reads a query string. Some clients start theirs with `&`, so empty pairs are skipped; so is what cannot be decoded.
    pub fn parse(query: Option<&str>) -> Self {
        let pairs = query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty() && !pair.contains(';'));
        let decoded = pairs.filter_map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((decode(key)?, decode(value)?))
        });
        Self(decoded.collect())
    }

    /// The first value of a parameter; an empty value counts as given.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    /// All values of a parameter.
    pub fn all(&self, key: &str) -> Vec<&str> {
        self.0.iter().filter(|(k, _)| k == key).map(|(_, v)| v.as_str()).collect()
    }

    /// A truth value: everything but `0` and `false` is true, also nothing at all after the key.
    pub fn flag(&self, key: &str) -> Option<bool> {
        self.get(key).map(|value| value != "0" && !value.eq_ignore_ascii_case("false"))
    }

    /// A whole number.
    pub fn number(&self, key: &str) -> Result<Option<i64>, Refusal> {
        let Some(text) = self.get(key) else { return Ok(None) };
        text.parse().map(Some).map_err(|e: std::num::ParseIntError| {
            let why = match e.kind() {
                std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow => "value out of range",
                _ => "invalid syntax",
            };
            Refusal::bad_request(format!("strconv.ParseInt: parsing {text:?}: {why}"))
        })
    }

    fn set(&mut self, key: &str, value: String) {
        self.0.retain(|(known, _)| known != key);
        self.0.push((key.to_owned(), value));
    }

    fn text(&self, key: &str) -> Option<String> {
        self.get(key).filter(|text| !text.is_empty()).map(ToOwned::to_owned)
    }
}

/// Query-string decoding: `+` is a space, and bytes that are no text are replaced.
fn decode(text: &str) -> Option<String> {
    let bytes = if text.contains('+') { percent_bytes(&text.replace('+', " ")) } else { percent_bytes(text) };
    bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// What a list or watch asks for.
#[derive(Debug, Clone)]
pub struct ListRequest {
    /// Selectors, paging, revision.
    pub query: Query,
    /// `watch=true`, with its own options.
    pub watch: Option<WatchOptions>,
    /// `timeoutSeconds`, where it is more than 0.
    pub timeout_seconds: Option<u64>,
}

/// Reads the parameters of a list, a watch, or a delete of a collection.
pub fn list_request(params: &Params) -> Result<ListRequest, Refusal> {
    let limit = params.number("limit")?.unwrap_or(0);
    let timeout = params.number("timeoutSeconds")?.unwrap_or(0);
    let mut query = Query {
        labels: LabelSelector::parse(params.get("labelSelector").unwrap_or_default())?,
        fields: FieldSelector::parse(params.get("fieldSelector").unwrap_or_default())?,
        resource_version: params.text("resourceVersion"),
        version_match: params.text("resourceVersionMatch"),
        limit: usize::try_from(limit).unwrap_or(0),
        page: params.text("continue"),
    };
    let watching = params.flag("watch") == Some(true);
    let send_initial = params.flag("sendInitialEvents");
    if watching {
        // Watches know no pages.
        query.limit = 0;
    } else if send_initial.is_some() {
        let error = forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list");
        refuse_options("ListOptions", &[error])?;
    }
    let bookmarks = params.flag("allowWatchBookmarks") == Some(true);
    Ok(ListRequest {
        query,
        watch: watching.then_some(WatchOptions { bookmarks, send_initial }),
        timeout_seconds: u64::try_from(timeout).ok().filter(|seconds| *seconds > 0),
    })
}

/// Reads the parameters of a watch that its path asks for (`/api/v1/watch/…`), perhaps of one object only.
pub fn watch_request(params: &Params, name: Option<&str>) -> Result<ListRequest, Refusal> {
    let mut params = params.clone();
    params.set("watch", "true".to_owned());
    if let Some(name) = name {
        let selector = format!("metadata.name={name}");
        let given = params.get("fieldSelector").unwrap_or_default();
        if !given.is_empty() && !given.split(',').any(|term| term == selector) {
            return Err(Refusal::bad_request("fieldSelector metadata.name doesn't match requested name"));
        }
        if params.get("fieldSelector").unwrap_or_default().is_empty() {
            params.set("fieldSelector", selector);
        }
    }
    list_request(&params)
}

/// The writes that take [`WriteOptions`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Write {
    /// POST.
    Create,
    /// PUT.
    Update,
    /// PATCH that merges.
    Patch,
    /// PATCH by server-side apply.
    Apply,
}

/// Reads the parameters of a write. `user_agent` names the manager where the request does not.
pub fn write_options(params: &Params, write: Write, user_agent: &str) -> Result<WriteOptions, Refusal> {
    let mut errors = Vec::new();
    let manager = params.get("fieldManager").unwrap_or_default();
    let force = params.flag("force");
    if write == Write::Apply && manager.is_empty() {
        errors.push(FieldError::new("fieldManager", Fault::Required, "is required for apply patch"));
    }
    if write == Write::Patch && force.is_some() {
        errors.push(forbidden("force", "may not be specified for non-apply patch"));
    }
    check_manager(manager, &mut errors);
    let dry_run = check_dry_run(&params.all("dryRun"), &mut errors);
    let validation = match params.get("fieldValidation").unwrap_or_default() {
        "" | "Warn" => FieldValidation::Warn,
        "Ignore" => FieldValidation::Ignore,
        "Strict" => FieldValidation::Strict,
        other => {
            errors.push(unsupported("fieldValidation", &json!(other), &["", "Ignore", "Strict", "Warn"]));
            FieldValidation::Warn
        }
    };
    let kind = match write {
        Write::Create => "CreateOptions",
        Write::Update => "UpdateOptions",
        Write::Patch | Write::Apply => "PatchOptions",
    };
    refuse_options(kind, &errors)?;
    let manager = if manager.is_empty() { manager_of(user_agent) } else { manager.to_owned() };
    Ok(WriteOptions { dry_run, manager, validation, force: write == Write::Apply && force == Some(true) })
}

/// The product in a user agent, which is who wrote if nobody says otherwise.
fn manager_of(user_agent: &str) -> String {
    let product = user_agent.split('/').next().unwrap_or_default();
    let printable = product.chars().filter(|c| is_printable(*c));
    let mut manager = String::new();
    for c in printable {
        if manager.len() + c.len_utf8() > MANAGER_MAX {
            break;
        }
        manager.push(c);
    }
    if manager.is_empty() { "unknown".to_owned() } else { manager }
}

fn check_manager(manager: &str, errors: &mut Vec<FieldError>) {
    if manager.len() > MANAGER_MAX {
        let why = format!("may not be more than {MANAGER_MAX} bytes");
        errors.push(FieldError::new("fieldManager", Fault::TooLong, why));
    }
    for (position, c) in manager.char_indices().filter(|(_, c)| !is_printable(*c)) {
        let why = format!("invalid character U+{:04X} (at position {position})", u32::from(c));
        errors.push(FieldError::with_value("fieldManager", Fault::Invalid, &json!(manager), why));
    }
}

fn check_dry_run(given: &[&str], errors: &mut Vec<FieldError>) -> bool {
    if given.iter().any(|value| *value != "All") {
        errors.push(unsupported("dryRun", &json!(given), &["All"]));
    }
    !given.is_empty()
}

/// Options of a delete: from the body where there is one, else from the query.
pub fn delete_options(params: &Params, body: Option<&Value>) -> Result<DeleteOptions, Refusal> {
    let given = match body {
        Some(body) => from_body(body)?,
        None => GivenDelete {
            dry_run: params.all("dryRun").into_iter().map(ToOwned::to_owned).collect(),
            propagation: params.get("propagationPolicy").map(ToOwned::to_owned),
            orphan: params.flag("orphanDependents"),
            grace_seconds: params.number("gracePeriodSeconds")?,
            uid: params.text("uid"),
            resource_version: params.text("resourceVersion"),
        },
    };
    given.checked()
}

/// Delete options before they were checked.
struct GivenDelete {
    dry_run: Vec<String>,
    propagation: Option<String>,
    orphan: Option<bool>,
    grace_seconds: Option<i64>,
    uid: Option<String>,
    resource_version: Option<String>,
}

fn from_body(body: &Value) -> Result<GivenDelete, Refusal> {
    let kind = body.get("kind").and_then(Value::as_str).unwrap_or("DeleteOptions");
    if !body.is_object() || kind != "DeleteOptions" {
        return Err(Refusal::bad_request("decoded object cannot be converted to DeleteOptions"));
    }
    // What cannot be read must not be passed over: a dry run would delete, and a precondition would not hold.
    check_delete_options(body).map_err(Refusal::bad_request)?;
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(ToOwned::to_owned);
    let precondition = |key: &str| text(body.get("preconditions").and_then(|p| p.get(key)));
    Ok(GivenDelete {
        dry_run: body
            .get("dryRun")
            .and_then(Value::as_array)
            .map(|list| list.iter().map(|v| v.as_str().unwrap_or_default().to_owned()).collect())
            .unwrap_or_default(),
        propagation: text(body.get("propagationPolicy")),
        orphan: body.get("orphanDependents").and_then(Value::as_bool),
        grace_seconds: body.get("gracePeriodSeconds").and_then(Value::as_i64),
        uid: precondition("uid"),
        resource_version: precondition("resourceVersion"),
    })
}

impl GivenDelete {
    fn checked(self) -> Result<DeleteOptions, Refusal> {
        let mut errors = Vec::new();
        let field = "propagationPolicy";
        if let (Some(policy), Some(_)) = (&self.propagation, self.orphan) {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            errors.push(FieldError::with_value(field, Fault::Invalid, &json!(policy), why));
        }
        let propagation = match self.propagation.as_deref() {
            Some("Background") => Some(Propagation::Background),
            Some("Foreground") => Some(Propagation::Foreground),
            Some("Orphan") => Some(Propagation::Orphan),
            Some(other) => {
                errors.push(unsupported(field, &json!(other), &["Foreground", "Background", "Orphan", "nil"]));
                None
            }
            None => self.orphan.map(|orphan| if orphan { Propagation::Orphan } else { Propagation::Background }),
        };
        let given: Vec<&str> = self.dry_run.iter().map(String::as_str).collect();
        let dry_run = check_dry_run(&given, &mut errors);
        refuse_options("DeleteOptions", &errors)?;
        Ok(DeleteOptions {
            dry_run,
            propagation,
            uid: self.uid,
            resource_version: self.resource_version,
            grace_seconds: self.grace_seconds,
        })
    }
}

fn refuse_options(kind: &str, errors: &[FieldError]) -> Result<(), Refusal> {
    if errors.is_empty() { Ok(()) } else { Err(Refusal::invalid("meta.k8s.io", kind, "", errors)) }
}

fn forbidden(field: &str, why: &str) -> FieldError {
    FieldError::new(field, Fault::Forbidden, why)
}

fn unsupported(field: &str, value: &Value, supported: &[&str]) -> FieldError {
    let listed = supported.iter().map(|s| format!("{s:?}")).collect::<Vec<_>>().join(", ");
    FieldError::with_value(field, Fault::NotSupported, value, format!("supported values: {listed}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(query: &str) -> Params {
        Params::parse(Some(query))
    }

    #[test]
    fn a_query_may_start_with_an_ampersand_and_decodes_plus_and_percent() {
        let params = params("&labelSelector=a%3Db%2Cc+in+(d)&watch&limit=");
        assert_eq!(params.get("labelSelector"), Some("a=b,c in (d)"));
        assert_eq!(params.flag("watch"), Some(true), "a key without a value is true");
        let odd = self::params("a=%g1&limit=5;c=6&d=%ff&e=1");
        assert_eq!(
            (odd.get("a"), odd.get("limit"), odd.get("d"), odd.get("e")),
            (None, None, Some("\u{fffd}"), Some("1"))
        );
    }

    #[test]
    fn numbers_that_are_none_are_named_as_the_original_names_them() {
        let message = |query: &str| list_request(&params(query)).expect_err("a bad number").message;
        assert_eq!(message("limit=abc"), "strconv.ParseInt: parsing \"abc\": invalid syntax");
        let long = "99999999999999999999";
        assert_eq!(
            message(&format!("limit={long}")),
            format!("strconv.ParseInt: parsing {long:?}: value out of range")
        );
        assert_eq!(message("timeoutSeconds="), "strconv.ParseInt: parsing \"\": invalid syntax");
    }

    #[test]
    fn initial_events_are_for_watches_only() {
        let refusal = list_request(&params("sendInitialEvents=true")).expect_err("a list");
        assert_eq!(
            refusal.message,
            "ListOptions.meta.k8s.io \"\" is invalid: sendInitialEvents: Forbidden: \
             sendInitialEvents is forbidden for list"
        );
        let watch =
            list_request(&params("watch=1&sendInitialEvents=true&allowWatchBookmarks=true&limit=5&timeoutSeconds=9"));
        let watch = watch.expect("a watch");
        assert_eq!((watch.query.limit, watch.timeout_seconds), (0, Some(9)));
        assert!(watch.watch.is_some_and(|options| options.bookmarks && options.send_initial == Some(true)));
        assert!(list_request(&params("watch=false")).expect("a list").watch.is_none());
    }

    #[test]
    fn unsupported_dry_runs_and_validations_are_refused_together() {
        let refusal = write_options(&params("dryRun=Some&fieldValidation=Maybe"), Write::Create, "curl/8")
            .expect_err("two bad values");
        assert_eq!(
            refusal.message,
            "CreateOptions.meta.k8s.io \"\" is invalid: [dryRun: Unsupported value: [\"Some\"]: \
             supported values: \"All\", fieldValidation: Unsupported value: \"Maybe\": \
             supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"]"
        );
    }

    #[test]
    fn apply_names_its_manager_and_only_apply_may_force() {
        let apply = write_options(&params("force=true"), Write::Apply, "kubectl/v1.35.0").expect_err("no manager");
        assert!(apply.message.contains("fieldManager: Required value: is required for apply patch"), "{apply}");
        let merge = write_options(&params("force=true"), Write::Patch, "kubectl/v1.35.0").expect_err("no force here");
        assert!(merge.message.contains("force: Forbidden: may not be specified for non-apply patch"), "{merge}");
        let forced = write_options(&params("force=true&fieldManager=me"), Write::Apply, "").expect("a forced apply");
        assert!(forced.force);
    }

    #[test]
    fn the_user_agent_stands_in_for_a_missing_manager() {
        let manager = |agent: &str| write_options(&params(""), Write::Update, agent).expect("no options").manager;
        assert_eq!(manager("kubectl/v1.33.0 (linux/amd64) kubernetes/abc"), "kubectl");
        assert_eq!(manager(""), "unknown");
        assert_eq!(manager(&"ü".repeat(100)).len(), MANAGER_MAX);
        assert_eq!(manager("a\u{200b}b\u{a0}c d/1"), "abc d", "what cannot be seen is left out");
    }

    #[test]
    fn a_delete_body_wins_over_the_query() {
        let body = json!({"propagationPolicy": "Orphan", "preconditions": {"uid": "u"}});
        let options = delete_options(&params("propagationPolicy=Foreground"), Some(&body)).expect("good options");
        assert_eq!(options.propagation, Some(Propagation::Orphan));
        assert_eq!(options.uid.as_deref(), Some("u"));
        let options =
            delete_options(&params("orphanDependents=true&gracePeriodSeconds=3"), None).expect("good options");
        assert_eq!((options.propagation, options.grace_seconds), (Some(Propagation::Orphan), Some(3)));
        let options = delete_options(&params("uid=u&resourceVersion=5"), None).expect("good options");
        assert_eq!((options.uid.as_deref(), options.resource_version.as_deref()), (Some("u"), Some("5")));
        let options = delete_options(&params("uid=&resourceVersion="), None).expect("good options");
        assert_eq!((options.uid, options.resource_version), (None, None), "nothing is no precondition");
        let options = delete_options(&params("uid=u&resourceVersion=5"), Some(&json!({}))).expect("good options");
        assert_eq!((options.uid, options.resource_version), (None, None), "of the query nothing counts beside a body");
    }

    #[test]
    fn contradicting_and_unknown_propagations_are_refused() {
        let both = delete_options(&params("orphanDependents=true&propagationPolicy=Orphan"), None);
        assert!(both.is_err());
        let unknown = delete_options(&params("propagationPolicy=Sideways"), None).expect_err("no such policy");
        assert!(unknown.message.contains("Unsupported value: \"Sideways\""), "{unknown}");
        assert!(delete_options(&params(""), Some(&json!({"kind": "Pod"}))).is_err());
        assert!(delete_options(&params("propagationPolicy="), None).is_err());
    }
}
