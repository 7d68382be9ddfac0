//! Requests about objects: from HTTP's words to the verbs of the API, and back.

use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, Method, Response};
use serde_json::{Value, json};

use super::answer::{self, header};
use super::negotiate::{self, Accepted, Form, PatchForm};
use super::params::{self, Params, Write};
use super::path::ResourcePath;
use super::render::{Renderer, RowObject, recoded};
use super::resolve::Resolved;
use super::shared::Shared;
use super::{body, pods, watching};
use crate::api::{Api, DELETED_AT_ONCE, Deleted, Part, Target, Written, is_crd};
use crate::object::Object;
use crate::refusal::Refusal;
use crate::resource::{Origin, builtin};
use crate::store::Key;

/// A request about objects, with everything but its body.
pub(super) struct Request<'a> {
    /// The server.
    pub(super) shared: &'a Arc<Shared>,
    /// The method.
    pub(super) method: &'a Method,
    /// Headers.
    pub(super) headers: &'a HeaderMap,
    /// Query parameters.
    pub(super) params: &'a Params,
    /// The path.
    pub(super) path: &'a ResourcePath,
}

/// What a request wants, once method and path are put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Get,
    List,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
}

impl Request<'_> {
    /// Carries the request out.
    pub(super) async fn answer(&self, incoming: &mut Body) -> Result<Response<Body>, Refusal> {
        if let Some(part) = pods::PodPart::of(self.path) {
            return self.of_pod(part, incoming).await;
        }
        let Some(resolved) = self.shared.read(|api| Resolved::now(self.path, api)) else { return self.nothing_there() };
        let verb = self.verb(&resolved.target, resolved.part)?;
        // Said of every answer, also of a refusal.
        let mut warnings: Vec<String> = resolved.target.version().deprecation.iter().cloned().collect();
        match self.carry_out(verb, &resolved, incoming, &mut warnings).await {
            Ok(mut response) => {
                answer::warn(&mut response, warnings.iter().map(String::as_str));
                Ok(response)
            }
            Err(mut refusal) => {
                warnings.append(&mut refusal.warnings);
                Err(Refusal { warnings, ..refusal })
            }
        }
    }

    async fn carry_out(
        &self,
        verb: Verb,
        resolved: &Resolved,
        incoming: &mut Body,
        warnings: &mut Vec<String>,
    ) -> Result<Response<Body>, Refusal> {
        let Resolved { target, part, .. } = resolved;
        // Bodies are read before anything is locked.
        let bytes = match verb {
            Verb::Get | Verb::List => Bytes::new(),
            _ => body::read(incoming).await?,
        };
        match verb {
            Verb::List => self.list(target),
            Verb::Get => self.get(target, *part),
            Verb::Create => self.create(resolved, &bytes, warnings).await,
            Verb::Update => self.update(resolved, &bytes, warnings).await,
            Verb::Patch => self.patch(resolved, &bytes, warnings).await,
            Verb::Delete => self.delete(resolved, &bytes),
            Verb::DeleteCollection => self.delete_collection(resolved, &bytes),
        }
    }

    /// The original answers below its own group versions with a `Status`, and with a bare page elsewhere.
    fn nothing_there(&self) -> Result<Response<Body>, Refusal> {
        let at = &self.path.at;
        let builtin = self.shared.read(|api| {
            let mut resources = api.registry().iter();
            resources.any(|r| r.origin == Origin::Builtin && r.group == at.group && r.served(&at.version).is_some())
        });
        if builtin { Err(Refusal::unknown_path()) } else { Ok(answer::page_not_found()) }
    }

    fn verb(&self, target: &Target, part: Part) -> Result<Verb, Refusal> {
        // Namespaced objects are only written inside a namespace.
        let writable = !target.resource.namespaced || target.namespace.is_some();
        let question = builtin::is_question(&target.resource);
        if self.path.watch {
            // An object is watched as a list of one.
            let watched = *self.method == Method::GET && !question;
            return if watched { Ok(Verb::List) } else { Err(Refusal::method_not_allowed()) };
        }
        let verb = match (self.method, self.path.name.is_some(), part) {
            (&Method::GET, false, _) if !question => Some(Verb::List),
            (&Method::POST, false, _) if writable => Some(Verb::Create),
            (&Method::DELETE, false, _) if writable && !question => Some(Verb::DeleteCollection),
            _ if question => None,
            (&Method::PUT, true, _) => Some(Verb::Update),
            (_, true, Part::Finalize) => None,
            (&Method::GET, true, _) => Some(Verb::Get),
            (&Method::PATCH, true, _) => Some(Verb::Patch),
            (&Method::DELETE, true, Part::Main) => Some(Verb::Delete),
            _ => None,
        };
        let without_collection = target.resource.plural == "namespaces" && target.resource.group.is_empty();
        verb.filter(|verb| !(without_collection && *verb == Verb::DeleteCollection))
            .ok_or_else(Refusal::method_not_allowed)
    }

    pub(super) fn accepted(&self) -> Result<Accepted, Refusal> {
        let mut accepted = negotiate::answer(header(self.headers, ACCEPT))?;
        accepted.pretty |= answer::wants_pretty(self.params.get("pretty"), self.user_agent());
        Ok(accepted)
    }

    pub(super) fn user_agent(&self) -> &str {
        header(self.headers, USER_AGENT).unwrap_or_default()
    }

    fn renderer(&self, target: &Target, form: Form) -> Result<Renderer, Refusal> {
        let row_object = match form {
            Form::Table(_) => RowObject::parse(self.params.get("includeObject"))?,
            _ => RowObject::Metadata,
        };
        Ok(Renderer::new(target, form, row_object))
    }

    pub(super) fn name(&self) -> &str {
        self.path.name.as_deref().unwrap_or_default()
    }

    fn custom(target: &Target) -> bool {
        target.resource.origin == Origin::Custom
    }

    fn list(&self, target: &Target) -> Result<Response<Body>, Refusal> {
        let mut request = if self.path.watch {
            params::watch_request(self.params, self.path.name.as_deref())?
        } else {
            params::list_request(self.params)?
        };
        if let Some(options) = request.watch.take() {
            let form = negotiate::stream(header(self.headers, ACCEPT))?;
            let renderer = self.renderer(target, form)?;
            return watching::start(self.shared, target, &request, options, form, renderer);
        }
        let accepted = self.accepted()?;
        let renderer = self.renderer(target, accepted.form)?;
        let page = self.shared.read(|api| api.list(target, &request.query))?;
        let list = renderer.list(&page.shown(target), self.shared.now())?;
        Ok(answer::text(200, accepted.encoding, recoded(list, accepted)?))
    }

    fn get(&self, target: &Target, part: Part) -> Result<Response<Body>, Refusal> {
        let accepted = self.accepted()?;
        let seen = self.params.get("resourceVersion").unwrap_or_default();
        let object = self.shared.read(|api| {
            api.is_as_new_as(seen)?;
            api.get(target, self.name(), part)
        })?;
        self.object(target, part, 200, accepted, object)
    }

    /// Answers with an object in the form asked for. A `Scale` is no object of the resource, so it has no table.
    fn object(
        &self,
        target: &Target,
        part: Part,
        code: u16,
        accepted: Accepted,
        object: Value,
    ) -> Result<Response<Body>, Refusal> {
        let shown = match part {
            Part::Scale => object,
            _ => self.renderer(target, accepted.form)?.object(object, self.shared.now())?,
        };
        answer::value(code, accepted, &shown)
    }

    fn written(
        &self,
        target: &Target,
        part: Part,
        accepted: Accepted,
        written: Written,
        warnings: &mut Vec<String>,
    ) -> Result<Response<Body>, Refusal> {
        warnings.extend(written.warnings);
        self.object(target, part, if written.created { 201 } else { 200 }, accepted, written.object)
    }

    async fn create(
        &self,
        resolved: &Resolved,
        bytes: &[u8],
        warnings: &mut Vec<String>,
    ) -> Result<Response<Body>, Refusal> {
        let target = &resolved.target;
        let accepted = self.accepted()?;
        let form = negotiate::body(header(self.headers, CONTENT_TYPE), Self::custom(target))?;
        let options = params::write_options(self.params, Write::Create, self.user_agent())?;
        let body = body::object(form, bytes, &target.resource.kind)?;
        let write = |api: &mut Api, body, moment| api.create(&resolved.again(self.path, api)?, body, &options, moment);
        let written = self.shared.write_object(target, body, write).await?;
        self.written(target, Part::Main, accepted, written, warnings)
    }

    async fn update(
        &self,
        resolved: &Resolved,
        bytes: &[u8],
        warnings: &mut Vec<String>,
    ) -> Result<Response<Body>, Refusal> {
        let Resolved { target, part, .. } = resolved;
        let accepted = self.accepted()?;
        let form = negotiate::body(header(self.headers, CONTENT_TYPE), Self::custom(target))?;
        let options = params::write_options(self.params, Write::Update, self.user_agent())?;
        let body = body::object(form, bytes, kind_of(target, *part))?;
        let write = |api: &mut Api, body, moment| {
            api.update(&resolved.again(self.path, api)?, self.name(), *part, body, &options, moment)
        };
        let written = self.shared.write_object(target, body, write).await?;
        self.written(target, *part, accepted, written, warnings)
    }

    async fn patch(
        &self,
        resolved: &Resolved,
        bytes: &[u8],
        warnings: &mut Vec<String>,
    ) -> Result<Response<Body>, Refusal> {
        let Resolved { target, part, .. } = resolved;
        let form = negotiate::patch(header(self.headers, CONTENT_TYPE), Self::custom(target))?;
        let accepted = self.accepted()?;
        let write = if form == PatchForm::Apply { Write::Apply } else { Write::Patch };
        let options = params::write_options(self.params, write, self.user_agent())?;
        let (patch, duplicates) = body::patch(form, bytes)?;
        let write = |api: &mut Api, patch, moment| {
            api.patch(&resolved.again(self.path, api)?, self.name(), *part, patch, &duplicates, &options, moment)
        };
        let written = self.shared.write_object(target, patch, write).await?;
        self.written(target, *part, accepted, written, warnings)
    }

    fn delete_options(&self, bytes: &[u8]) -> Result<crate::api::DeleteOptions, Refusal> {
        if bytes.is_empty() {
            return params::delete_options(self.params, None);
        }
        // Delete options are no object of the resource: they have every form, also for custom resources.
        let form = negotiate::body(header(self.headers, CONTENT_TYPE), false)?;
        params::delete_options(self.params, Some(&body::delete_options(form, bytes)?))
    }

    fn delete(&self, resolved: &Resolved, bytes: &[u8]) -> Result<Response<Body>, Refusal> {
        let target = &resolved.target;
        let accepted = self.accepted()?;
        let options = self.delete_options(bytes)?;
        let deleted = self
            .shared
            .write(|api, moment| api.delete(&resolved.again(self.path, api)?, self.name(), &options, moment))?;
        if is_crd(&target.resource) {
            self.clear_instances(self.name());
        }
        match deleted {
            Deleted::Pending(object) => self.object(target, Part::Main, 200, accepted, object),
            Deleted::Gone(object) if builtin::habits::is_shown_when_deleted(&target.resource) => {
                self.object(target, Part::Main, 200, accepted, object)
            }
            Deleted::Gone(object) => {
                let mut details =
                    json!({"name": object.name(), "kind": target.resource.plural, "uid": object.meta("uid")});
                if !target.resource.group.is_empty() {
                    details["group"] = json!(target.resource.group);
                }
                let status = json!({
                    "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details,
                });
                answer::value(200, accepted, &status)
            }
        }
    }

    /// Deletes what is left of the instances of a definition that is being deleted.
    fn clear_instances(&self, definition: &str) {
        let mut after = None;
        loop {
            after = self.shared.write(|api, moment| api.clear_instances(definition, after.as_ref(), moment));
            if after.is_none() {
                return;
            }
        }
    }

    fn delete_collection(&self, resolved: &Resolved, bytes: &[u8]) -> Result<Response<Body>, Refusal> {
        let accepted = self.accepted()?;
        let request = params::list_request(self.params)?;
        let options = self.delete_options(bytes)?;
        let renderer = self.renderer(&resolved.target, accepted.form)?;
        let (target, page) = self.shared.read(|api| {
            let target = resolved.again(self.path, api)?;
            let page = api.list(&target, &request.query)?;
            Ok::<_, Refusal>((target, page))
        })?;
        let keys: Vec<Key> = page.keys().cloned().collect();
        // Not all at once: others have their turn in between, as with the original.
        let definitions = is_crd(&target.resource);
        for keys in keys.chunks(if definitions { 1 } else { DELETED_AT_ONCE }) {
            self.shared
                .write(|api, moment| api.delete_each(&resolved.again(self.path, api)?, keys, &options, moment))?;
            keys.iter().filter(|_| definitions).for_each(|key| self.clear_instances(key.name()));
        }
        let list = renderer.list(&page.shown(&target), self.shared.now())?;
        Ok(answer::text(200, accepted.encoding, recoded(list, accepted)?))
    }
}

/// The kind of the body that a write to that part takes.
fn kind_of(target: &Target, part: Part) -> &str {
    if part == Part::Scale { "Scale" } else { &target.resource.kind }
}
