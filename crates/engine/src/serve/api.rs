//! One request of the API: who asks, what, and what has become of it.
//!
//! A request makes a task, or asks about one. The task is worked on by itself; whoever asked waits a
//! while and gets the answer, or how far it is (202). A client that goes away changes nothing.

use std::{sync::Arc, time::Duration};

use axum::body::Body;
use evenkeel_rest::{
    Endpoint, Failure, Method, Presentation, Query, Refusal, Role,
    body::{Body as _, Step},
    headers, reason,
    request::Request as Asks,
};
use http::{HeaderMap, Request, Response, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use jiff::Timestamp;
use tokio::{
    sync::watch,
    time::{Instant, timeout},
};
use uuid::Uuid;

use super::{Answered, Asked, Desk, Door, JOURNAL, Peer, Steps, Work, guard::Visitor, reply};
use crate::{
    answers,
    aside::aside,
    said::chain,
    tasks::{Admission, Answer, Question, Refused, Status, UserTask},
};

/// What a form may be long.
const BODY_MAX: usize = 64 * 1024;
/// What an answer may be long to go on record without a run.
const RECORDED_MAX: usize = 1024 * 1024;
/// How long a client may take to send it.
const BODY_PATIENCE: Duration = Duration::from_secs(30);
/// Longest name of a session or a client that is taken over.
const NAME_MAX: usize = 128;
/// Headers in which proxies say for whom they ask, most telling first.
const FORWARDED: [&str; 4] = ["x-forwarded-for", "proxy-client-ip", "wl-proxy-client-ip", "http_x_forwarded_for"];

/// Answers a request.
pub(super) async fn answer<D: Desk>(door: &Arc<Door<D>>, request: Request<Body>) -> Response<Body> {
    let Some(path) = path_of(request.uri().path(), &door.settings.prefix).map(str::to_owned) else {
        return reply::nothing_here();
    };
    let (began, asks) = (Instant::now(), request.method() == http::Method::OPTIONS);
    let (method, client) = (request.method().clone(), client(&request));
    let session = session(request.headers());
    let mut response = match *request.method() {
        http::Method::GET => of_method(door, Method::Get, &path, session.as_deref(), &client, request).await,
        http::Method::POST => of_method(door, Method::Post, &path, session.as_deref(), &client, request).await,
        http::Method::OPTIONS => reply::empty(200),
        http::Method::HEAD => reply::of_api(400, String::new(), &Presentation::default(), None),
        _ => reply::empty(405),
    };
    if let Some(cors) = &door.settings.cors {
        reply::allow_others(&mut response, cors, asks);
    }
    if door.settings.access_log {
        let (status, spent) = (response.status().as_u16(), began.elapsed());
        tracing::info!(%method, path, client, status, ms = spent.as_millis(), "request");
    }
    response
}

/// What comes after the prefix, with its slash; `None` outside of it.
fn path_of<'p>(path: &'p str, prefix: &str) -> Option<&'p str> {
    let rest = path.strip_prefix(prefix)?;
    match rest {
        "" => Some("/"),
        _ => rest.starts_with('/').then_some(rest),
    }
}

/// Who asks: as a proxy says, or the address that the connection came from.
fn client(request: &Request<Body>) -> String {
    let said = FORWARDED.iter().find_map(|name| request.headers().get(*name)?.to_str().ok());
    let peer = || request.extensions().get::<Peer>().map(|peer| peer.0.clone());
    let name = said.map(str::to_owned).or_else(peer).unwrap_or_else(|| "unknown".to_owned());
    name.chars().take(NAME_MAX).collect()
}

fn session(headers: &HeaderMap) -> Option<String> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let named = cookies.into_iter().find_map(headers::session_of)?;
    (!named.is_empty() && named.len() <= NAME_MAX).then(|| named.to_owned())
}

async fn of_method<D: Desk>(
    door: &Arc<Door<D>>,
    method: Method,
    path: &str,
    session: Option<&str>,
    client: &str,
    request: Request<Body>,
) -> Response<Body> {
    let (head, body) = request.into_parts();
    let mut query = Query::parse(head.uri.query().unwrap_or(""));
    // Whoever asks for what is not there need not say who he is.
    let role = match Endpoint::find(method, path).map(|endpoint| visitor(door, &head.headers, endpoint)) {
        Some(Err(TurnedAway::Unknown)) => return reply::unknown_visitor(),
        Some(Err(TurnedAway::NotAllowed)) => return reply::not_allowed(),
        Some(Ok(role)) => role,
        None => None,
    };
    let fresh = Uuid::new_v4().simple().to_string();
    let visit = Visit { door, method, path, session: session.unwrap_or(&fresh), client, role };
    let form = Presentation::of(&query);
    let read = if is_form(&head.headers) { form_body(body).await } else { Ok(String::new()) };
    let mut response = match read {
        Ok(body) => {
            query = query.with_form(&body);
            visit.answer(&query, &head.headers).await
        }
        Err(refusal) => reply::refused(&refusal, &form, None),
    };
    if session.is_none() {
        reply::begin_session(&mut response, &fresh, &door.settings.session_path);
    }
    response
}

/// Why somebody may not ask.
enum TurnedAway {
    /// Nobody knows who it is.
    Unknown,
    /// The role is not enough.
    NotAllowed,
}

/// The role of whoever asks, if roles matter.
fn visitor<D: Desk>(door: &Door<D>, headers: &HeaderMap, endpoint: Endpoint) -> Result<Option<Role>, TurnedAway> {
    let Some(guard) = &door.guard else { return Ok(None) };
    match guard.look(headers) {
        Visitor::Stranger => Err(TurnedAway::Unknown),
        Visitor::Known(role) if role >= Some(endpoint.facts().role) => Ok(role),
        Visitor::Known(_) => Err(TurnedAway::NotAllowed),
    }
}

fn is_form(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/x-www-form-urlencoded"))
}

async fn form_body(body: Body) -> Result<String, Refusal> {
    let refused = |status, message: &str| Refusal { status, message: message.to_owned() };
    let read = timeout(BODY_PATIENCE, Limited::new(body, BODY_MAX).collect());
    let whole = read.await.map_err(|_| refused(408, "The body of the request did not come in time."))?;
    let whole = whole.map_err(|error| {
        if error.downcast_ref::<LengthLimitError>().is_some() {
            refused(413, &format!("The body of the request is larger than {BODY_MAX} bytes."))
        } else {
            refused(400, "The body of the request could not be read.")
        }
    })?;
    Ok(String::from_utf8_lossy(&whole.to_bytes()).into_owned())
}

/// The task that a request is about.
struct Admitted {
    id: Uuid,
    endpoint: Endpoint,
    question: Question,
    /// Whether the request named it.
    named: bool,
    /// If it is still being worked on.
    work: Option<Work>,
}

/// A visit of somebody who may ask what he asks.
struct Visit<'v, D> {
    door: &'v Arc<Door<D>>,
    method: Method,
    path: &'v str,
    session: &'v str,
    client: &'v str,
    role: Option<Role>,
}

impl<D: Desk> Visit<'_, D> {
    async fn answer(&self, query: &Query, headers: &HeaderMap) -> Response<Body> {
        let form = Presentation::of(query);
        match self.admitted(query, headers, &form) {
            Ok(admitted) => self.wait(&admitted, &form).await,
            Err(refusal) => reply::refused(&refusal, &form, None),
        }
    }

    /// The task that the request is about, which is worked on from now on if it was not before.
    fn admitted(&self, query: &Query, headers: &HeaderMap, form: &Presentation) -> Result<Admitted, Refusal> {
        let failed = |failure: &Failure| Refusal::failed(self.method, self.path, failure);
        let request = Asks::parse(self.method, self.path, query)?;
        let endpoint = request.endpoint();
        if self.door.settings.wants_reason && request.executes() && request.reason().is_none() {
            return Err(Refusal::bad_parameter("Reason is required: request.reason.required is set."));
        }
        // Probes ask how it is, and must not take an engine that waits for Kafka for a dead one.
        let shut = self.door.readiness.of(JOURNAL).filter(|_| endpoint != Endpoint::State);
        if let Some(why) = shut {
            return Err(failed(&Failure::not_now(why)));
        }
        let asked_id = match headers.get(headers::USER_TASK_ID).map(|value| String::from_utf8_lossy(value.as_bytes())) {
            None => None,
            Some(id) => Some(Uuid::try_parse(id.trim()).map_err(|_| failed(&Failure::malformed_task(&id)))?),
        };
        let (now, fresh) = (self.door.clock.now(), Uuid::new_v4());
        let question = Question {
            method: self.method.to_string(),
            endpoint: endpoint.name().to_owned(),
            parameters: query.canonical(),
        };
        let task = UserTask {
            question: question.clone(),
            written: self.written(query),
            client: self.client.to_owned(),
            class: endpoint.facts().class.into(),
            started: now,
            status: Status::Active,
            ended: None,
        };
        let (admission, forgotten) = {
            let mut tasks = self.door.tasks();
            let forgotten = tasks.forget(now);
            (tasks.admit(task.clone(), asked_id, self.session, fresh), forgotten)
        };
        self.forget(forgotten);
        let (id, work) = match admission {
            Ok(Admission::Known(id)) => (id, self.door.works().get(&id).cloned()),
            Ok(Admission::New) => {
                self.door.requests.asked(endpoint);
                let at = Timestamp::from_millisecond(now).unwrap_or(Timestamp::UNIX_EPOCH);
                let reason = reason::stamped(request.reason(), self.client, at);
                let asked = Asked { request, presentation: form.clone(), id: fresh, reason, task };
                (fresh, Some(self.begin(asked)))
            }
            Err(Refused::UnexpectedId(id)) => return Err(failed(&Failure::unexpected_task(id))),
            Err(Refused::TooMany(active)) => return Err(failed(&Failure::tasks_exhausted(active))),
        };
        Ok(Admitted { id, endpoint, question, named: asked_id.is_some(), work })
    }

    fn written(&self, query: &Query) -> String {
        let (method, prefix, path) = (self.method, &self.door.settings.prefix, self.path);
        let question_mark = if query.is_empty() { "" } else { "?" };
        format!("{method} {prefix}{path}{question_mark}{}", query.decoded())
    }

    /// Takes tasks off the record that were kept long enough.
    fn forget(&self, forgotten: Vec<(Uuid, Arc<UserTask>)>) {
        let recorded: Vec<(Uuid, Arc<UserTask>)> =
            forgotten.into_iter().filter(|(_, task)| is_recorded(task)).collect();
        if recorded.is_empty() {
            return;
        }
        let desk = Arc::clone(&self.door.desk);
        tokio::spawn(async move {
            if let Err(error) = desk.forget(&recorded).await {
                tracing::warn!(error = chain(&error), "user tasks that are over are still on record");
            }
        });
    }

    /// Has a task worked on, whether or not anybody waits for it.
    fn begin(&self, asked: Asked) -> Work {
        let (done, waiting) = watch::channel(None);
        let steps = Steps::default();
        steps.begin(Step::Pending);
        let work = Work { operation: asked.request.operation(asked.task.started), steps: steps.clone(), done: waiting };
        self.door.works().insert(asked.id, work.clone());
        let (door, role, path) = (Arc::clone(self.door), self.role, self.path.to_owned());
        tokio::spawn(async move {
            let (id, endpoint, began) = (asked.id, asked.request.endpoint(), Instant::now());
            let form = asked.presentation.clone();
            let worker = Arc::clone(&door);
            let task_path = path.clone();
            // By itself, so that a fault of ours ends the task and not the waiting.
            let worked = tokio::spawn(async move { worker.work(asked, steps, role, &task_path).await }).await;
            let (answer, executes) = match worked {
                Ok(Ok(answered)) => {
                    door.requests.answered(endpoint, began.elapsed());
                    (Answer { code: 200, body: answered.body }, answered.executes)
                }
                Ok(Err(refusal)) => (Answer { code: refusal.status, body: reply::error_body(&refusal, &form) }, false),
                Err(fault) => {
                    tracing::error!(error = %fault, %endpoint, "a request made us fail");
                    let failure = Failure::illegal_state("The engine failed while it worked on the request.");
                    let refusal = Refusal::failed(endpoint.method(), &path, &failure);
                    (Answer { code: refusal.status, body: reply::error_body(&refusal, &form) }, false)
                }
            };
            let (kept, answer) = (answer.clone(), Arc::new(answer));
            let answered = {
                let mut tasks = door.tasks();
                tasks.answered(id, kept, executes, door.clock.now());
                tasks.get(id)
            };
            door.works().remove(&id);
            // Nobody may be waiting.
            let _ = done.send(Some(answer));
            // What is carried out went on record with its run.
            if let Some(task) = answered.filter(|task| is_recorded(task) && !executes && !is_long(task))
                && let Err(error) = door.desk.record(id, &task).await
            {
                tracing::warn!(error = chain(&error), "an answer is not on record");
            }
        });
        work
    }

    /// The answer, or how far it is.
    async fn wait(&self, admitted: &Admitted, form: &Presentation) -> Response<Body> {
        let Admitted { id, endpoint, question, named, work } = admitted;
        let (id, endpoint, mut answer) = (*id, *endpoint, None);
        if let Some(Work { mut done, .. }) = work.clone() {
            let patience = if endpoint.facts().is_async { self.door.answer_within } else { Duration::MAX };
            if let Ok(Ok(there)) = timeout(patience, done.wait_for(Option::is_some)).await {
                answer = there.clone();
            }
        }
        let task = self.door.tasks().get(id);
        let known = task.as_ref().and_then(|task| task.status.answer());
        if let Some(answer) = answer.as_deref().or(known) {
            self.door.tasks().taken(self.session, question);
            let mut response = reply::of_api(answer.code, answer.body.clone(), form, Some(id));
            if !named {
                reply::come_again(&mut response);
            }
            return response;
        }
        match task.map(|task| task.status == Status::Active) {
            Some(true) => {
                let progress = self.door.progress(id, endpoint);
                let body = if form.json { progress.json() } else { progress.text() };
                reply::of_api(202, body, form, Some(id))
            }
            _ => {
                let refusal = Refusal::failed(self.method, self.path, &Failure::unexpected_task(id));
                reply::refused(&refusal, form, None)
            }
        }
    }
}

impl<D: Desk> Door<D> {
    async fn work(&self, asked: Asked, steps: Steps, role: Option<Role>, path: &str) -> Result<Answered, Refusal> {
        let method = asked.request.endpoint().method();
        match &asked.request {
            Asks::UserTasks(request) => {
                // Nobody else waits while the answer is made: it may hold plans of large clusters.
                let (request, tasks) = (request.clone(), self.tasks().latest_first());
                let written = move || {
                    let body = answers::user_tasks(&request, tasks.iter().map(|(id, task)| (*id, &**task)));
                    asked.answered(|| body.json(), || body.text())
                };
                Ok(aside(written).await)
            }
            Asks::Permissions(_) => {
                let body = answers::permissions(role.ok_or_else(|| Refusal::no_permissions(path))?);
                Ok(asked.answered(|| body.json(), || body.text()))
            }
            _ => {
                let answered = self.desk.answer(asked, steps).await;
                answered.map_err(|failure| Refusal::failed(method, path, &failure))
            }
        }
    }
}

/// Whether an answer is too long to be worth a record: a plan that nobody carries out can be made again.
fn is_long(task: &UserTask) -> bool {
    task.status.answer().is_some_and(|answer| answer.body.len() > RECORDED_MAX)
}

/// Tasks that a next life has to know: those that could have changed the cluster, and the plans for it.
fn is_recorded(task: &UserTask) -> bool {
    Endpoint::named(&task.question.endpoint)
        .is_some_and(|endpoint| endpoint.method() == Method::Post && endpoint.facts().is_async)
}
