//! What a path is about: when the request comes, and again when it is carried out.
//!
//! In between, its body is read, which may take a client a minute. A definition may be gone by then, and its name may
//! even be another's: what was found at first is good for reading the body, but not for writing to the store.

use std::sync::Arc;

use super::path::ResourcePath;
use crate::api::{Api, EventKind, Part, Query, Target, WatchOptions};
use crate::refusal::Refusal;
use crate::select::FieldSelector;

/// What a path was about at some revision.
#[derive(Debug)]
pub(super) struct Resolved {
    /// The resource, in the version and namespace of the path.
    pub(super) target: Target,
    /// The part of the object.
    pub(super) part: Part,
    at: u64,
}

impl Resolved {
    /// Looks the path up; nothing if such a thing is not served.
    pub(super) fn now(path: &ResourcePath, api: &Api) -> Option<Self> {
        let namespace = path.namespace.as_deref();
        let target = api.target(&path.at.group, &path.at.version, &path.plural, namespace)?;
        let scope_fits = match (target.resource.namespaced, namespace) {
            (true, None) => path.name.is_none(),
            (true, Some(_)) | (false, None) => true,
            (false, Some(_)) => false,
        };
        let is_namespace = path.at.group.is_empty() && path.plural == "namespaces";
        let part = match path.subresource.as_deref() {
            None => Part::Main,
            Some("status") if target.version().status => Part::Status,
            Some("scale") if target.version().scale.is_some() => Part::Scale,
            Some("finalize") if is_namespace => Part::Finalize,
            Some(_) => return None,
        };
        scope_fits.then_some(Self { target, part, at: api.revision() })
    }

    /// Looks the path up once more, under the lock of the write. The definition may have been changed since, and the
    /// write follows it; it may not have been deleted, not even if there is one of that name again.
    pub(super) fn again(&self, path: &ResourcePath, api: &Api) -> Result<Target, Refusal> {
        let now = Self::now(path, api).ok_or_else(Refusal::unknown_path)?;
        if Arc::ptr_eq(&now.target.resource, &self.target.resource) || !self.was_deleted(api) {
            return Ok(now.target);
        }
        Err(Refusal::unknown_path())
    }

    /// Whether the definition was deleted since. Only asked when it is not the same any more.
    fn was_deleted(&self, api: &Api) -> bool {
        let resource = &self.target.resource;
        let name = format!("metadata.name={}.{}", resource.plural, resource.group);
        let Some(definitions) = api.target("apiextensions.k8s.io", "v1", "customresourcedefinitions", None) else {
            return true;
        };
        let events = FieldSelector::parse(&name).and_then(|fields| {
            let query = Query { fields, resource_version: Some(self.at.to_string()), ..Query::default() };
            api.watch(&definitions, &query, &WatchOptions::default())?.next(api, usize::MAX)
        });
        // What the history does not know any more may have been anything.
        !events.is_ok_and(|events| events.iter().all(|event| event.kind != EventKind::Deleted))
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use bytes::Bytes;
    use http::header::CONTENT_TYPE;
    use http::{Request, StatusCode};
    use serde_json::{Value, json};
    use tokio::sync::oneshot;
    use tokio::task::JoinHandle;

    use super::*;
    use crate::http::Shared;
    use crate::http::tests::{get, send, server, taken};

    const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    const WIDGETS: &str = "/apis/t.io/v1/namespaces/default/widgets";

    async fn define(shared: &Arc<Shared>) {
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.t.io"},
            "spec": {"group": "t.io", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]},
        });
        let made = send(shared, Request::post(DEFINITIONS), definition.to_string()).await;
        assert_eq!(made.status(), 201);
    }

    async fn undefine(shared: &Arc<Shared>) {
        let gone = send(shared, Request::delete(format!("{DEFINITIONS}/widgets.t.io")), "").await;
        assert_eq!(gone.status(), 200);
    }

    /// A request whose body comes when it is sent, and what it is answered.
    async fn slowly(
        shared: &Arc<Shared>,
        request: http::request::Builder,
    ) -> (oneshot::Sender<Value>, JoinHandle<StatusCode>) {
        let (rest, body) = oneshot::channel::<Value>();
        let body = futures::stream::once(async move { body.await.map(|value| Bytes::from(value.to_string())) });
        let shared = Arc::clone(shared);
        let answered = tokio::spawn(async move { send(&shared, request, Body::from_stream(body)).await.status() });
        // One thread, so it now waits for its body.
        tokio::task::yield_now().await;
        (rest, answered)
    }

    fn widget() -> Value {
        json!({"apiVersion": "t.io/v1", "kind": "Widget", "metadata": {"name": "w"}})
    }

    #[tokio::test]
    async fn a_kind_that_goes_while_a_body_comes_is_not_written_to_even_if_it_comes_back() {
        for comes_back in [false, true] {
            let shared = server();
            define(&shared).await;
            let (rest, answered) = slowly(&shared, Request::post(WIDGETS)).await;
            undefine(&shared).await;
            if comes_back {
                define(&shared).await;
            }
            rest.send(widget()).expect("it still waits");
            assert_eq!(answered.await.expect("an answer"), 404);
            if !comes_back {
                define(&shared).await;
            }
            assert_eq!(get(&shared, WIDGETS).await.1["items"], json!([]), "nothing was stored");
        }
    }

    #[tokio::test]
    async fn every_write_looks_again() {
        let shared = server();
        define(&shared).await;
        let one = format!("{WIDGETS}/w");
        let requests = [
            Request::put(&one),
            Request::patch(&one).header(CONTENT_TYPE, "application/merge-patch+json"),
            Request::delete(&one),
            Request::delete(WIDGETS),
        ];
        for request in requests {
            assert_eq!(send(&shared, Request::post(WIDGETS), widget().to_string()).await.status(), 201);
            let (rest, answered) = slowly(&shared, request).await;
            undefine(&shared).await;
            define(&shared).await;
            assert_eq!(send(&shared, Request::post(WIDGETS), widget().to_string()).await.status(), 201);
            rest.send(json!({})).expect("it still waits");
            assert_eq!(answered.await.expect("an answer"), 404);
            assert_eq!(send(&shared, Request::delete(&one), "").await.status(), 200, "it was left alone");
        }
    }

    #[tokio::test]
    async fn a_definition_that_changes_while_a_body_comes_is_followed() {
        let change = json!({"spec": {"versions": [{"name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"size": {"type": "integer"}}}}}]}});
        for (size, answer) in [(json!(1), 201), (json!("large"), 422)] {
            let shared = server();
            define(&shared).await;
            let (rest, answered) = slowly(&shared, Request::post(WIDGETS)).await;
            let request = Request::patch(format!("{DEFINITIONS}/widgets.t.io"));
            let request = request.header(CONTENT_TYPE, "application/merge-patch+json");
            let (status, _, body) = taken(send(&shared, request, change.to_string()).await).await;
            assert_eq!(status, 200, "{body}");
            let mut object = widget();
            object["size"] = size;
            rest.send(object).expect("it still waits");
            assert_eq!(answered.await.expect("an answer"), answer, "checked by the schema of now");
        }
    }
}
