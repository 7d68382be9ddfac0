//! The API over HTTP: paths, parameters, forms of answers, streams.
//!
//! Deciding is done in pure functions ([`path`], [`params`], [`negotiate`], discovery, rendering); what is left here
//! reads a body, takes the lock, and writes an answer. [`router`] is a tower service: serve it on a socket with
//! [`crate::serve`], or hand it to a client in the same process.

mod answer;
pub(crate) mod body;
mod compress;
mod discovery;
mod fixed;
mod frames;
pub mod logs;
pub mod moment;
pub mod negotiate;
mod objects;
mod openapi;
pub mod params;
pub mod path;
mod pods;
pub mod protobuf;
mod render;
mod resolve;
mod shared;
pub mod table;
mod version;
mod watching;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use futures::FutureExt;
use http::header::{ACCEPT, USER_AGENT};
use http::request::Parts;
use http::{Method, Request, Response};
pub use shared::{Options, Shared};
pub use version::{KubernetesVersion, NoVersion};

use self::answer::header;
use self::negotiate::{Accepted, Encoding, Form};
use self::params::Params;
use self::path::Route;
use crate::refusal::Refusal;

/// The API as a service. It asks nobody who they are: that is [`crate::serve`]'s.
pub fn router(shared: Arc<Shared>) -> Router {
    Router::new().fallback(handle).with_state(shared)
}

async fn handle(State(shared): State<Arc<Shared>>, request: Request<Body>) -> Response<Body> {
    let audit_id = answer::audit_id(request.headers(), shared.request_number());
    let (method, uri) = (request.method().clone(), request.uri().clone());
    // One broken request must not end the connection, let alone the server.
    let outcome = AssertUnwindSafe(respond(shared, request)).catch_unwind().await;
    let mut response = outcome.unwrap_or_else(|_| {
        tracing::error!(%method, path = uri.path(), audit_id, "a request made the server panic");
        answer::plain(500, "This request caused apiserver to panic. Look in the logs for details.\n")
    });
    answer::finish(&mut response, &audit_id);
    response
}

async fn respond(shared: Arc<Shared>, request: Request<Body>) -> Response<Body> {
    let (parts, mut body) = request.into_parts();
    let accepted = plainly(&parts);
    let answered = answered(&shared, &parts, accepted, &mut body).await;
    body::drain(&mut body).await;
    let response = answered.unwrap_or_else(|refusal| answer::refused(&refusal, accepted));
    compress::if_wanted(response, &parts.headers).await
}

async fn answered(
    shared: &Arc<Shared>,
    parts: &Parts,
    plain: Accepted,
    body: &mut Body,
) -> Result<Response<Body>, Refusal> {
    let Parts { method, headers, .. } = parts;
    let params = &Params::parse(parts.uri.query());
    match &Route::parse(parts.uri.path()) {
        // It names a host and no path: nobody is connected to others here.
        _ if method == Method::CONNECT => Ok(answer::page_not_found()),
        Route::Resource(path) => objects::Request { shared, method, headers, params, path }.answer(body).await,
        Route::Unknown => Ok(answer::page_not_found()),
        route if method != Method::GET && !route.takes_any_method() => Err(Refusal::method_not_allowed()),
        route => {
            let found = fixed::Fixed { shared, headers, params, accepted: plain }.answer(route)?;
            Ok(found.unwrap_or_else(answer::page_not_found))
        }
    }
}

/// How refusals and fixed documents are written: they have one form, whatever else the client accepts.
fn plainly(parts: &Parts) -> Accepted {
    let encoding =
        negotiate::answer(header(&parts.headers, ACCEPT)).map_or(Encoding::Json, |accepted| accepted.encoding);
    let params = Params::parse(parts.uri.query());
    let agent = header(&parts.headers, USER_AGENT).unwrap_or_default();
    Accepted { encoding, form: Form::Whole, pretty: answer::wants_pretty(params.get("pretty"), agent) }
}

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;
