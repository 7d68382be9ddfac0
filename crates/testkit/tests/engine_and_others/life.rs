//! One life of an engine, on a port, over any Kafka.

use std::{collections::BTreeMap, fmt::Debug, sync::Arc, time::Duration};

use axum::Router;
use evenkeel_engine::{
    clock::WallClock,
    config::{capacity::Capacities, properties::Properties, settings::Settings},
    engine::{Engine, Parts, Running},
    notify::Courier,
    serve::{listen::Server, router},
};
use evenkeel_rest::{
    Answer,
    body::state::Phase,
    client::{Asks, Client, Reply},
    parameter::TaskStatus,
    request,
};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

/// How long anything may take: brokers of two cores, and others want them too.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);
const LOOK_AGAIN: Duration = Duration::from_millis(300);

/// An engine that clients reach. Dropping it ends it without a word, as a crash would: nothing is told to Kafka.
pub(crate) struct Life {
    client: Client<Router>,
    server: Server,
    _running: Running,
}

impl Life {
    /// Starts one over the brokers at `bootstrap`; `more` are further lines of its properties.
    pub(crate) async fn begin(bootstrap: &str, brokers: &[i32], more: &str) -> Self {
        let whole = brokers.iter().map(|id| (*id, r#""100000""#.to_owned())).collect();
        Self::begin_with(bootstrap, &whole, more).await
    }

    /// The same, with the room on each broker's disks as the file of capacities has it.
    pub(crate) async fn begin_with(bootstrap: &str, disks: &BTreeMap<i32, String>, more: &str) -> Self {
        let text = format!(
            "bootstrap.servers={bootstrap}\n\
             webserver.http.address=127.0.0.1\n\
             webserver.http.port=0\n\
             metric.sampling.interval.ms=2000\n\
             partition.metrics.window.ms=4000\n\
             num.partition.metrics.windows=2\n\
             min.samples.per.partition.metrics.window=1\n\
             partition.sample.store.topic.partition.count=2\n\
             broker.sample.store.topic.partition.count=2\n\
             {more}"
        );
        let properties = Properties::read(&text, |_| None).expect("properties");
        let settings = Arc::new(Settings::read(&properties).expect("settings").settings);
        // cccli insists on capacities that are listed for each broker.
        let rest = r#""CPU": {"num.cores": "8"}, "NW_IN": "100000", "NW_OUT": "100000""#;
        let listed =
            disks.iter().map(|(id, disk)| format!(r#"{{"brokerId": "{id}", "capacity": {{"DISK": {disk}, {rest}}}}}"#));
        let capacities = format!(r#"{{"brokerCapacities": [{}]}}"#, listed.collect::<Vec<_>>().join(", "));
        let parts = Parts {
            client: settings.connection.client().expect("a client"),
            settings: Arc::clone(&settings),
            capacities: Arc::new(Capacities::read(&capacities).expect("capacities")),
            courier: Courier::silent(),
            clock: WallClock::system(),
        };
        let running = Engine::start(parts).expect("an engine");
        let router = router(running.door());
        let server = Server::start(&settings.webserver, router.clone()).await.expect("a free port");
        let base = "http://engine:9090/kafkacruisecontrol".parse().expect("a URI");
        Self { client: Client::new(router, base), server, _running: running }
    }

    /// Where it listens, without a scheme.
    pub(crate) fn address(&self) -> String {
        self.server.address().to_string()
    }

    /// Asks until it can answer: at first its journal is not open, and then nothing is known.
    pub(crate) async fn answers<Q: Asks>(&self, asked: &Q) -> (Q::Answer, Option<Uuid>)
    where
        Q::Answer: Debug,
    {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let Reply { task, answer } = self.client.ask_and_wait(asked, PATIENCE, LOOK_AGAIN).await;
            match answer {
                Answer::Ready(body) => return (body, task),
                answer => assert!(Instant::now() < deadline, "there is never an answer: {answer:?}"),
            }
            sleep(LOOK_AGAIN).await;
        }
    }

    /// Waits until the executor is so.
    pub(crate) async fn until(&self, what: &str, is_so: impl Fn(&Phase) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let (state, _) = self.answers(&request::State::default()).await;
            // Before the journal is open nobody knows.
            let phase = state.executor_state.map(|it| it.phase);
            if phase.as_ref().is_some_and(&is_so) {
                return;
            }
            assert!(Instant::now() < deadline, "{what}: {phase:?}");
            sleep(LOOK_AGAIN).await;
        }
    }

    pub(crate) async fn status_of(&self, task: Uuid) -> Option<TaskStatus> {
        let asked = request::UserTasks { user_task_ids: [task].into(), ..Default::default() };
        self.answers(&asked).await.0.user_tasks.first().map(|task| task.status)
    }
}
