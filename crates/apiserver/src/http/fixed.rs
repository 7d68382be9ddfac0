//! Paths that are always there: version, health, discovery, OpenAPI.

use axum::body::Body;
use http::header::{ACCEPT, CACHE_CONTROL, ETAG, HOST, HeaderValue, IF_NONE_MATCH, LOCATION, VARY};
use http::{HeaderMap, Response};
use serde_json::{Value, json};

use super::answer::{self, header};
use super::discovery;
use super::negotiate::{self, Accepted, Discovery};
use super::openapi;
use super::params::Params;
use super::path::{GroupVersion, Route};
use super::shared::Shared;
use super::version::KubernetesVersion;
use crate::refusal::Refusal;

/// A request to one of the fixed paths.
pub(super) struct Fixed<'a> {
    /// The server.
    pub(super) shared: &'a Shared,
    /// Headers of the request.
    pub(super) headers: &'a HeaderMap,
    /// Query parameters.
    pub(super) params: &'a Params,
    /// How a plain document is written.
    pub(super) accepted: Accepted,
}

impl Fixed<'_> {
    /// Answers, or gives nothing when there is nothing behind the path.
    pub(super) fn answer(&self, route: &Route) -> Result<Option<Response<Body>>, Refusal> {
        if matches!(
            route,
            Route::CoreVersions | Route::Groups | Route::Group(_) | Route::GroupVersion(_) | Route::Version
        ) {
            negotiate::reads_discovery(header(self.headers, ACCEPT))?;
        }
        let document = match route {
            Route::Index => Some(self.index()),
            Route::Version => Some(version(self.shared.version())),
            Route::Health(check) => return Ok(Some(self.health(check))),
            Route::CoreVersions | Route::Groups => return self.discovery(*route == Route::CoreVersions).map(Some),
            Route::Group(name) => self.shared.read(|api| discovery::group(api.registry(), name)),
            Route::GroupVersion(at) => self.shared.read(|api| discovery::resource_list(api.registry(), at)),
            Route::OpenApiV2 => return Ok(Some(self.openapi_v2())),
            Route::OpenApiIndex => Some(self.openapi_index()),
            Route::OpenApi(at) => return Ok(self.openapi(at)),
            Route::Resource(_) | Route::Unknown => None,
        };
        document.map(|document| answer::value(200, self.accepted, &document)).transpose()
    }

    fn index(&self) -> Value {
        let fixed = ["/api", "/apis", "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"];
        let mut paths: Vec<String> = fixed.iter().map(ToString::to_string).collect();
        for (at, _) in self.shared.read(|api| discovery::group_versions(api.registry())) {
            paths.push(at.path());
            if !at.group.is_empty() {
                paths.push(format!("/apis/{}", at.group));
            }
        }
        paths.sort();
        paths.dedup();
        json!({"paths": paths})
    }

    fn health(&self, check: &str) -> Response<Body> {
        if self.params.get("verbose").is_some() {
            return answer::plain(200, format!("[+]ping ok\n[+]log ok\n{check} check passed\n"));
        }
        answer::plain(200, "ok")
    }

    fn discovery(&self, core: bool) -> Result<Response<Body>, Refusal> {
        let (api_version, content_type) = match negotiated(self.headers) {
            Discovery::Legacy => {
                let host = header(self.headers, HOST).unwrap_or("localhost");
                let document = if core {
                    discovery::core_versions(host)
                } else {
                    self.shared.read(|api| discovery::group_list(api.registry()))
                };
                let mut response = answer::value(200, self.accepted, &document)?;
                response.headers_mut().insert(VARY, HeaderValue::from_static("Accept"));
                return Ok(response);
            }
            // Clients compare this type letter by letter.
            Discovery::V2 => {
                ("apidiscovery.k8s.io/v2", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
            }
            Discovery::V2beta1 => (
                "apidiscovery.k8s.io/v2beta1",
                "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
            ),
        };
        let document = self.shared.read(|api| discovery::aggregated(api.registry(), core, api_version));
        let body = document.to_string();
        let tag = format!("{:?}", openapi::hash(body.as_bytes()));
        let mut response = if self.is_known(&tag) {
            answer::with_type(304, HeaderValue::from_static(content_type), Body::empty())
        } else {
            answer::with_type(200, HeaderValue::from_static(content_type), body)
        };
        response.headers_mut().insert(VARY, HeaderValue::from_static("Accept"));
        tagged(&mut response, &tag);
        Ok(response)
    }

    /// kubectl looks here for a kind that v3 does not tell of, and takes the answer for the last word: nothing is told
    /// here either, so it says that there is no such kind.
    fn openapi_v2(&self) -> Response<Body> {
        let version = self.shared.version().as_str();
        let accept = header(self.headers, ACCEPT).unwrap_or_default();
        if accept.contains(openapi::V2_PROTOBUF) || accept.contains(openapi::V2_PROTOBUF_ASKED) {
            let content_type = HeaderValue::from_static(openapi::V2_PROTOBUF);
            return answer::with_type(200, content_type, openapi::empty_v2_protobuf(version));
        }
        let document = openapi::empty_v2(version).to_string();
        answer::with_type(200, HeaderValue::from_static("application/json"), document)
    }

    fn openapi_index(&self) -> Value {
        let served = self.shared.read(|api| discovery::group_versions(api.registry()));
        self.shared.documents.index(&served, self.shared.version().as_str())
    }

    fn openapi(&self, at: &GroupVersion) -> Option<Response<Body>> {
        let served = self.shared.read(|api| discovery::group_versions(api.registry()));
        let document = self.shared.documents.get(at, &served, self.shared.version().as_str())?;
        let asked = self.params.get("hash").filter(|hash| !hash.is_empty());
        if let Some(asked) = asked
            && asked != document.hash
        {
            let mut moved = answer::plain(301, Body::empty());
            let address = format!("/openapi/v3{}?hash={}", at.path(), document.hash);
            moved.headers_mut().insert(LOCATION, HeaderValue::from_str(&address).ok()?);
            return Some(moved);
        }
        let tag = format!("{:?}", document.hash);
        let json = HeaderValue::from_static("application/json");
        let mut response = if self.is_known(&tag) {
            answer::with_type(304, json, Body::empty())
        } else {
            answer::with_type(200, json, document.text)
        };
        if asked.is_some() {
            // The address names the content, so it never changes.
            response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
        }
        tagged(&mut response, &tag);
        Some(response)
    }

    fn is_known(&self, tag: &str) -> bool {
        header(self.headers, IF_NONE_MATCH).is_some_and(|known| known.split(',').any(|one| one.trim() == tag))
    }
}

fn negotiated(headers: &HeaderMap) -> Discovery {
    super::negotiate::discovery(header(headers, ACCEPT))
}

fn tagged(response: &mut Response<Body>, tag: &str) {
    if let Ok(tag) = HeaderValue::from_str(tag) {
        response.headers_mut().insert(ETAG, tag);
    }
}

fn version(version: &KubernetesVersion) -> Value {
    json!({
        "major": version.major(), "minor": version.minor(), "gitVersion": version.as_str(), "gitCommit": "",
        "gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z", "goVersion": "none", "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, platform()),
    })
}

/// Kubernetes' word for this machine's architecture.
fn platform() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
