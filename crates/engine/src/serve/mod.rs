//! The door: HTTP in the original's words, on whatever carries it.
//!
//! [`Door`] is the protocol without a socket: tasks, sessions, security, forms of answers. [`router`]
//! makes a tower service of it, which tests call directly; [`listen`] puts that on a port.
//!
//! ```text
//!   /kafkacruisecontrol/*   the API            roles, if security is on
//!   /metrics                Prometheus         open: nothing in it is secret
//!   /healthz  /readyz       for probes         open
//! ```

mod api;
mod desk;
mod guard;
mod health;
pub mod listen;
mod patient;
mod reply;

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{Router, body::Body};
use evenkeel_rest::{Endpoint, body::Progress};
use http::{Request, Response};
use tokio::sync::{
    broadcast::{self, error::RecvError},
    watch,
};
use uuid::Uuid;

pub use self::{
    desk::{Answered, Asked, Desk, Steps},
    guard::{Guard, NoGuard},
    health::{Readiness, WORK},
};
use crate::{
    aside::aside,
    clock::WallClock,
    config::webserver::Webserver,
    executor::{Ending, Executor, service::Ended},
    metrics::{Page, Requests},
    tasks::{self, Answer, UserTask, UserTasks},
};

/// Requests at once. Who comes later is told to come again: there are more connections than that.
const REQUESTS_MAX: usize = 768;
const _: () = assert!(REQUESTS_MAX < listen::CONNECTIONS_MAX);
/// The part of readiness that is about the journal, and with it about Kafka.
const JOURNAL: &str = "journal";

/// The client's address, put into requests by whoever took the connection.
#[derive(Debug, Clone)]
pub struct Peer(pub String);

/// The protocol, without a socket.
#[derive(Debug)]
pub struct Door<D> {
    desk: Arc<D>,
    settings: Webserver,
    /// Longest wait for an answer before the client is told to come back.
    answer_within: Duration,
    guard: Option<Guard>,
    clock: WallClock,
    tasks: Mutex<UserTasks>,
    /// What is being worked on.
    works: Mutex<BTreeMap<Uuid, Work>>,
    readiness: Readiness,
    requests: Requests,
    in_flight: AtomicUsize,
}

/// A task that is being worked on.
#[derive(Debug, Clone)]
struct Work {
    /// What it is called where its progress is told.
    operation: String,
    steps: Steps,
    /// The answer, once it is there. Whoever waits gets it from here: among very many tasks it may be forgotten
    /// before everybody has looked it up.
    done: watch::Receiver<Option<Arc<Answer>>>,
}

/// What a door needs to know.
#[derive(Debug)]
pub struct DoorSettings {
    /// Where and how requests are taken.
    pub webserver: Webserver,
    /// How user tasks are kept.
    pub tasks: tasks::Limits,
    /// Longest wait for an answer before the client is told to come back, in milliseconds.
    pub answer_within: i64,
}

impl<D: Desk> Door<D> {
    /// A door that is shut: until [`Door::join`] every request of the API is told to wait. Fails if the file of users
    /// cannot be used.
    pub fn new(desk: Arc<D>, settings: DoorSettings, clock: WallClock) -> Result<Arc<Door<D>>, NoGuard> {
        let guard = settings.webserver.credentials.as_deref().map(Guard::load).transpose()?;
        Ok(Door::guarded(desk, settings, clock, guard))
    }

    fn guarded(desk: Arc<D>, settings: DoorSettings, clock: WallClock, guard: Option<Guard>) -> Arc<Door<D>> {
        let readiness = Readiness::default();
        readiness.set(JOURNAL, Some("The journal is not open yet.".to_owned()));
        Arc::new(Door {
            desk,
            settings: settings.webserver,
            answer_within: Duration::from_millis(u64::try_from(settings.answer_within).unwrap_or(0)),
            guard,
            clock,
            tasks: Mutex::new(UserTasks::new(settings.tasks)),
            works: Mutex::default(),
            readiness,
            requests: Requests::default(),
            in_flight: AtomicUsize::new(0),
        })
    }

    /// Whether the engine can do its work.
    pub fn readiness(&self) -> &Readiness {
        &self.readiness
    }

    /// The journal is not open yet, and this is why.
    pub fn waits_for_journal(&self, why: &str) {
        self.readiness.set(JOURNAL, Some(format!("Kafka cannot be reached: {why}")));
    }

    /// The journal is open: takes back the tasks that are on record, opens the door, and follows the executor as long
    /// as both live.
    pub fn join(self: &Arc<Self>, executor: &Executor, recorded: BTreeMap<Uuid, UserTask>) {
        let mut tasks = self.tasks();
        for (id, task) in recorded {
            tasks.restore(id, task);
        }
        drop(tasks);
        let (mut ended, door, source) = (executor.ended(), Arc::downgrade(self), executor.clone());
        // What was carried on may be over already.
        executor.endings().iter().for_each(|run| self.ended(run));
        self.readiness.set(JOURNAL, None);
        tokio::spawn(async move {
            while let Some(runs) = heard(&mut ended, || source.endings()).await {
                let Some(door) = door.upgrade() else { return };
                runs.iter().for_each(|run| door.ended(run));
            }
        });
        let (mut fenced, readiness) = (executor.fenced(), self.readiness.clone());
        tokio::spawn(async move {
            if fenced.wait_for(|fenced| *fenced).await.is_ok() {
                let text = "Another engine has taken over: this one no longer changes anything.";
                readiness.set(JOURNAL, Some(text.to_owned()));
            }
        });
    }

    fn ended(&self, run: &Ended) {
        if let Some(task) = run.task {
            self.tasks().executed(task, run.ending == Ending::Completed, run.at);
        }
    }

    /// The page of metrics.
    fn metrics(&self) -> String {
        let mut page = Page::default();
        self.desk.measure(&mut page);
        self.requests.write(&mut page);
        let tasks = self.tasks();
        page.value("UserTaskManager.num-active-user-tasks", tasks.active() as f64);
        page.value("UserTaskManager.num-active-sessions", tasks.sessions() as f64);
        drop(tasks);
        page.own("evenkeel_ready", "gauge", &[], f64::from(u8::from(self.readiness.troubles().is_none())));
        page.own("evenkeel_requests_in_flight", "gauge", &[], self.in_flight.load(Ordering::Relaxed) as f64);
        page.into_text()
    }

    fn tasks(&self) -> MutexGuard<'_, UserTasks> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn works(&self) -> MutexGuard<'_, BTreeMap<Uuid, Work>> {
        self.works.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How far a task is, for a 202.
    fn progress(&self, id: Uuid, endpoint: Endpoint) -> Progress {
        match self.works().get(&id) {
            Some(work) => work.steps.body(work.operation.clone()),
            // It has its answer by now: whoever comes again gets it.
            None => Steps::default().body(endpoint.operation()),
        }
    }

    /// Answers whatever comes.
    async fn serve(self: Arc<Self>, request: Request<Body>) -> Response<Body> {
        const TEXT: &str = "text/plain;charset=utf-8";
        match request.uri().path() {
            "/healthz" => {
                let broken = self.readiness.of(WORK);
                return reply::plain(
                    if broken.is_none() { 200 } else { 503 },
                    TEXT,
                    broken.map_or_else(|| "ok\n".to_owned(), |why| format!("{WORK}: {why}\n")),
                );
            }
            "/readyz" => {
                let troubles = self.readiness.troubles();
                return reply::plain(
                    if troubles.is_none() { 200 } else { 503 },
                    TEXT,
                    troubles.unwrap_or("ok\n".into()),
                );
            }
            _ => {}
        }
        let in_flight = InFlight::new(&self.in_flight);
        let mut response = if in_flight.number > REQUESTS_MAX {
            let mut response = reply::plain(503, TEXT, "Too many requests at once.\n".to_owned());
            reply::set(&mut response, "retry-after", "1");
            response
        } else if request.uri().path() == "/metrics" {
            // What it counts is counted anew, partition by partition.
            let door = Arc::clone(&self);
            reply::plain(200, "text/plain; version=0.0.4; charset=utf-8", aside(move || door.metrics()).await)
        } else {
            api::answer(&self, request).await
        };
        if let Some(age) = self.settings.tls.as_ref().and_then(|tls| tls.strict_transport.as_deref()) {
            reply::set(&mut response, "strict-transport-security", age);
        }
        response
    }
}

/// The next runs that ended, some perhaps once more; whoever was too slow to hear of all of them gets those that are
/// `kept`. Nothing when there will be no more.
async fn heard(ended: &mut broadcast::Receiver<Ended>, kept: impl Fn() -> Vec<Ended>) -> Option<Vec<Ended>> {
    match ended.recv().await {
        Ok(run) => Some(vec![run]),
        Err(RecvError::Lagged(_)) => Some(kept()),
        Err(RecvError::Closed) => None,
    }
}

/// Counts itself.
struct InFlight<'a> {
    count: &'a AtomicUsize,
    number: usize,
}

impl<'a> InFlight<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        let number = count.fetch_add(1, Ordering::Relaxed) + 1;
        InFlight { count, number }
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The door as a tower service.
pub fn router<D: Desk>(door: &Arc<Door<D>>) -> Router {
    let door = Arc::clone(door);
    Router::new().fallback(move |request: Request<Body>| Arc::clone(&door).serve(request))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_hears_of_endings_too_late_misses_none() {
        let (tell, mut ended) = broadcast::channel(2);
        let runs: Vec<Ended> = (0..5)
            .map(|n| (Uuid::from_u128(n), Ending::Completed))
            .map(|(run, ending)| Ended { run, task: Some(run), ending, at: 0 })
            .collect();
        let kept = || runs.clone();
        tell.send(runs[0]).unwrap();
        assert_eq!(heard(&mut ended, kept).await.unwrap().len(), 1);
        for run in &runs {
            tell.send(*run).unwrap();
        }
        assert_eq!(heard(&mut ended, kept).await.unwrap().len(), 5, "all that are kept");
        // What had not been lost comes all the same.
        assert_eq!(heard(&mut ended, kept).await.unwrap()[0].run, Uuid::from_u128(3));
        assert_eq!(heard(&mut ended, kept).await.unwrap()[0].run, Uuid::from_u128(4));
        drop(tell);
        assert!(heard(&mut ended, kept).await.is_none());
    }
}
