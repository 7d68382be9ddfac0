//! A client through which nothing is refused unseen.

use std::sync::{Arc, Mutex};

use http::{Method, Request, Response, StatusCode, Uri};
use kube::Client;
use kube::client::Body;
use tower::service_fn;

/// What the server did not want of a client.
#[derive(Clone, Debug)]
pub(crate) struct Refusals {
    all: Arc<Mutex<Vec<String>>>,
    is_strict: bool,
}

impl Refusals {
    /// The server is to be strict with what is written: a field that no such object has is refused instead of dropped.
    pub(crate) fn strict() -> Self {
        Self { all: Arc::default(), is_strict: true }
    }

    /// The server drops fields that it does not know, as it does for the operator that people install.
    pub(crate) fn lenient() -> Self {
        Self { all: Arc::default(), is_strict: false }
    }

    /// All so far.
    pub(crate) fn all(&self) -> Vec<String> {
        self.all.lock().unwrap().clone()
    }

    /// The same client, but every refusal is written down.
    pub(crate) fn of(&self, client: Client) -> Client {
        let refusals = self.clone();
        let service = service_fn(move |mut request: Request<Body>| {
            let (client, refusals) = (client.clone(), refusals.clone());
            async move {
                if refusals.is_strict && request.method() != Method::GET && request.method() != Method::DELETE {
                    *request.uri_mut() = strict(request.uri());
                }
                let asked = format!("{} {}", request.method(), request.uri());
                let answer = client.send(request).await?;
                if !matches!(
                    answer.status(),
                    StatusCode::FORBIDDEN
                        | StatusCode::UNAUTHORIZED
                        | StatusCode::BAD_REQUEST
                        | StatusCode::UNPROCESSABLE_ENTITY
                        | StatusCode::METHOD_NOT_ALLOWED
                        | StatusCode::UNSUPPORTED_MEDIA_TYPE
                ) {
                    return Ok(answer);
                }
                let (head, body) = answer.into_parts();
                let body = body.collect_bytes().await?;
                let text = String::from_utf8_lossy(&body).into_owned();
                // Nobody's fault: where everything is being deleted, nothing can be made.
                if !text.contains("is being terminated") {
                    refusals.all.lock().unwrap().push(format!("{asked}: {} {text}", head.status));
                }
                Ok::<_, kube::Error>(Response::from_parts(head, Body::from(body.to_vec())))
            }
        });
        Client::new(service, "default")
    }
}

/// The same place, asking for strictness.
fn strict(uri: &Uri) -> Uri {
    let separator = if uri.query().is_some() { '&' } else { '?' };
    format!("{uri}{separator}fieldValidation=Strict").parse().expect("a query was added to a URI")
}
