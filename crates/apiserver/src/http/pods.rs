//! The parts of a pod that are no parts of its object: its binding to a node, and its containers' logs.

use axum::body::Body;
use futures::StreamExt;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Response};
use serde_json::{Value, json};

use super::logs::{Excerpt, LogOf};
use super::objects::Request;
use super::params::{self, Write};
use super::path::ResourcePath;
use super::{answer, body, negotiate};
use crate::api::{Part, Target};
use crate::object::Object;
use crate::refusal::Refusal;

/// Which of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PodPart {
    /// `POST …/binding`: which node it runs on.
    Binding,
    /// `GET …/log`: what a container has printed.
    Log,
}

impl PodPart {
    /// The part that a path is about, if it is about one.
    pub(super) fn of(path: &ResourcePath) -> Option<Self> {
        let pods = path.at.group.is_empty() && path.at.version == "v1" && path.plural == "pods";
        match path.subresource.as_deref().filter(|_| pods && path.namespace.is_some()) {
            Some("binding") => Some(Self::Binding),
            Some("log") => Some(Self::Log),
            _ => None,
        }
    }
}

impl Request<'_> {
    /// Carries out a request about such a part.
    pub(super) async fn of_pod(&self, part: PodPart, incoming: &mut Body) -> Result<Response<Body>, Refusal> {
        match (part, self.method) {
            (PodPart::Binding, &Method::POST) => {
                let bytes = body::read(incoming).await?;
                self.bind(&bytes)
            }
            (PodPart::Log, &Method::GET) => self.log(),
            _ => Err(Refusal::method_not_allowed()),
        }
    }

    fn namespace(&self) -> &str {
        self.path.namespace.as_deref().unwrap_or_default()
    }

    /// A pod's node is written once, and with it that the pod is scheduled.
    fn bind(&self, bytes: &[u8]) -> Result<Response<Body>, Refusal> {
        let accepted = self.accepted()?;
        let form = negotiate::body(answer::header(self.headers, CONTENT_TYPE), false)?;
        let options = params::write_options(self.params, Write::Create, self.user_agent())?;
        let binding = body::object(form, bytes, "Binding")?.value;
        let node = text(&binding, &["target", "name"]);
        if node.is_empty() {
            return Err(Refusal::bad_request("target.name: Required value"));
        }
        if !matches!(text(&binding, &["target", "kind"]), "" | "Node") {
            return Err(Refusal::bad_request(
                "target.kind: Unsupported value: supported values: \"Node\", \"<empty>\"",
            ));
        }
        let uid = Some(text(&binding, &["metadata", "uid"])).filter(|uid| !uid.is_empty());
        if !options.dry_run {
            self.shared.write(|api, moment| {
                let target = api.target("", "v1", "pods", Some(self.namespace())).ok_or_else(Refusal::unknown_path)?;
                api.bind(&target, self.name(), uid, node, moment)
            })?;
        }
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201,
        });
        answer::value(201, accepted, &status)
    }

    fn log(&self) -> Result<Response<Body>, Refusal> {
        let pod = self.shared.read(|api| {
            let target: Target =
                api.target("", "v1", "pods", Some(self.namespace())).ok_or_else(Refusal::unknown_path)?;
            api.get(&target, self.name(), Part::Main)
        })?;
        let excerpt = Excerpt::read(self.params, self.shared.now())?;
        let container = container(&pod, self.params.get("container").filter(|name| !name.is_empty()))?;
        let Some(source) = self.shared.logs() else {
            return Err(Refusal::new(501, "NotImplemented", "no containers run behind this server"));
        };
        let (namespace, previous, follow) = (self.namespace(), excerpt.previous, excerpt.follow);
        let of = LogOf { namespace, pod: self.name(), container: &container, previous, follow };
        let Some(lines) = source.open(&of) else { return Err(absent(&pod, &container, previous)) };
        let mut stopping = self.shared.stopping();
        let stop = async move {
            // An error means that the server is gone already.
            stopping.wait_for(|stopping| *stopping).await.ok();
        };
        let text = excerpt.of(lines).take_until(Box::pin(stop)).map(Ok::<_, std::convert::Infallible>);
        Ok(answer::with_type(200, HeaderValue::from_static("text/plain"), Body::from_stream(text)))
    }
}

fn text<'a>(of: &'a Value, path: &[&str]) -> &'a str {
    of.at(path).and_then(Value::as_str).unwrap_or_default()
}

/// The container that is meant: the one that was named, or the only one.
fn container(pod: &Value, named: Option<&str>) -> Result<String, Refusal> {
    let names = |list: &str| -> Vec<String> {
        let containers = pod.at(&["spec", list]).and_then(Value::as_array);
        containers.into_iter().flatten().map(|container| text(container, &["name"]).to_owned()).collect()
    };
    let (mains, inits) = (names("containers"), names("initContainers"));
    let name = pod.name();
    match (named, mains.as_slice()) {
        (Some(named), _) if mains.iter().chain(&inits).any(|name| name == named) => Ok(named.to_owned()),
        (Some(named), _) => Err(Refusal::bad_request(format!("container {named} is not valid for pod {name}"))),
        (None, [only]) => Ok(only.clone()),
        (None, _) => Err(Refusal::bad_request(format!(
            "a container name must be specified for pod {name}, choose one of: [{}]",
            mains.join(" ")
        ))),
    }
}

/// Why there is no such log.
fn absent(pod: &Value, container: &str, previous: bool) -> Refusal {
    let name = pod.name();
    if previous {
        return Refusal::bad_request(format!(
            "previous terminated container \"{container}\" in pod \"{name}\" not found"
        ));
    }
    let statuses = ["containerStatuses", "initContainerStatuses"].into_iter();
    let mut statuses = statuses.filter_map(|list| pod.at(&["status", list])?.as_array()).flatten();
    let status = statuses.find(|status| text(status, &["name"]) == container);
    let reason = status.map(|status| text(status, &["state", "waiting", "reason"])).filter(|reason| !reason.is_empty());
    let reason = reason.unwrap_or("ContainerCreating");
    Refusal::bad_request(format!("container \"{container}\" in pod \"{name}\" is waiting to start: {reason}"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures::stream::{self, BoxStream};
    use jiff::Timestamp;

    use super::*;
    use crate::http::logs::{LogLine, LogSource};
    use crate::http::tests::{get, send, server, taken};
    use crate::http::{Options, Shared};

    const PODS: &str = "/api/v1/namespaces/default/pods";

    async fn with_pod(shared: &Arc<Shared>, containers: &[&str]) {
        let containers: Vec<_> = containers.iter().map(|name| json!({"name": name, "image": "x"})).collect();
        let pod =
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": containers}});
        assert_eq!(send(shared, http::Request::post(PODS), pod.to_string()).await.status(), 201);
    }

    async fn bind(shared: &Arc<Shared>, binding: Value) -> (u16, String) {
        let mut whole = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}});
        whole.as_object_mut().expect("an object").extend(binding.as_object().cloned().unwrap_or_default());
        let request = http::Request::post(format!("{PODS}/p/binding"));
        let (status, _, body) = taken(send(shared, request, whole.to_string()).await).await;
        (status.as_u16(), body)
    }

    #[tokio::test]
    async fn a_pod_is_bound_once() {
        let shared = server();
        with_pod(&shared, &["a"]).await;
        assert_eq!(bind(&shared, json!({"target": {"kind": "Node"}})).await.0, 400);
        assert_eq!(bind(&shared, json!({"target": {"kind": "Pod", "name": "n"}})).await.0, 400);
        let other = json!({"metadata": {"name": "p", "uid": "other"}, "target": {"kind": "Node", "name": "n"}});
        assert_eq!(bind(&shared, other).await.0, 409);
        let target = json!({"target": {"kind": "Node", "name": "n"}});
        let (status, body) = bind(&shared, target.clone()).await;
        assert_eq!(status, 201, "{body}");
        let (_, pod) = get(&shared, &format!("{PODS}/p")).await;
        assert_eq!(pod["spec"]["nodeName"], "n");
        assert_eq!(pod["status"]["conditions"][0]["type"], "PodScheduled");
        let (status, body) = bind(&shared, target).await;
        assert!(status == 409 && body.contains("is already assigned to node"), "{body}");
        assert_eq!(send(&shared, http::Request::get(format!("{PODS}/p/binding")), "").await.status(), 405);
    }

    #[derive(Debug)]
    struct Echo;

    impl LogSource for Echo {
        fn open(&self, of: &LogOf<'_>) -> Option<BoxStream<'static, Vec<LogLine>>> {
            let line = LogLine { at: Timestamp::UNIX_EPOCH, text: format!("{}/{}", of.pod, of.container).into() };
            (!of.previous).then(|| stream::iter([vec![line]]).boxed())
        }
    }

    #[tokio::test]
    async fn logs_are_asked_for_by_container() {
        let shared = Shared::new(Options { logs: Some(Arc::new(Echo)), ..Options::default() });
        with_pod(&shared, &["a", "b"]).await;
        let log = async |query: &str| {
            let (status, _, body) =
                taken(send(&shared, http::Request::get(format!("{PODS}/p/log{query}")), "").await).await;
            (status.as_u16(), body)
        };
        assert_eq!(log("?container=b").await, (200, "p/b\n".to_owned()));
        let (status, body) = log("").await;
        assert!(status == 400 && body.contains("choose one of: [a b]"), "{body}");
        assert!(log("?container=c").await.1.contains("container c is not valid for pod p"));
        let (status, body) = log("?container=a&previous=true").await;
        assert!(status == 400 && body.contains("previous terminated container"), "{body}");
        let none = send(&shared, http::Request::get(format!("{PODS}/q/log")), "").await;
        assert_eq!(none.status(), 404);
        let nobody = server();
        with_pod(&nobody, &["a"]).await;
        assert_eq!(send(&nobody, http::Request::get(format!("{PODS}/p/log")), "").await.status(), 501);
    }
}
