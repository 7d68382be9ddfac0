//! A simulated cluster on loopback ports that has been alive for a while, and engines over it as processes of their own.

use std::{
    env,
    fmt::Debug,
    net::SocketAddr,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use evenkeel_kafka::{Client as Kafka, Settings, connect::Tcp};
use evenkeel_rest::{
    Answer,
    body::state::Phase,
    client::{Asks, Client, HttpService, Limits, http_service, trusting},
    request,
};
use evenkeel_sim::{
    BrokerId, Cluster, Options,
    cluster::{BrokerSpec, NewTopic, Reporter},
    serve::{Listener, World},
    traffic::Load,
};
use evenkeel_testkit::{evenkeel_engine::EvenkeelEngine, evenkeel_kube::EVENKEEL, measure::Cost};
use http_body_util::Full;
use tokio::time::sleep;
use tower::ServiceExt as _;

/// Partitions of each topic.
pub(crate) const OF_A_TOPIC: i32 = 50;
/// How often brokers report, in milliseconds, as the plug-in does unless told otherwise: as often as the engine samples.
pub(crate) const USUAL: i64 = 60_000;
/// For how long there has been load, in milliseconds.
const LOADED_FOR: i64 = 3_600_000;
/// Anything that takes longer will not come.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// A terabyte, eight cores, and links of 1 Gbit/s, as simulated brokers have them.
const CAPACITIES: &str = r#"{"brokerCapacities": [{"brokerId": "-1", "capacity":
    {"DISK": "953674", "CPU": {"num.cores": "8"}, "NW_IN": "122070", "NW_OUT": "122070"}}]}"#;
/// Windows of five minutes, as in installations that follow their load. Topics that the engine and the reporter keep for
/// themselves have no past here, and are not waited for. All else is as it is unless told otherwise.
const PROPERTIES: &str = "partition.metrics.window.ms=300000\nmin.valid.partition.ratio=0.8\n";

/// The cluster.
pub(crate) struct Stand {
    pub(crate) world: World,
    listener: Listener,
}

/// An engine over it.
pub(crate) struct Served {
    engine: EvenkeelEngine,
    http: HttpService,
    pub(crate) client: Client<HttpService>,
    began: Instant,
}

impl Stand {
    /// Brokers in three racks, the last tenth of them, or the last one, new and empty, and topics of different loads. The first reports are
    /// in the reporter's topic already; the next ones come each `interval` milliseconds.
    pub(crate) async fn built([brokers, partitions]: [i32; 2], interval: i64) -> Result<Self> {
        let reporter = Reporter { interval, partitions: 8, factor: 2, ..Reporter::default() };
        let options = Options {
            wall_start: now()? - interval - 1_000,
            reporter: Some(reporter),
            memory: 4 << 30,
            ..Options::default()
        };
        let racks = ["a", "b", "c"];
        let spec = |id: i32| BrokerSpec::new(id).in_rack(racks[id as usize % racks.len()]);
        let older = brokers - (brokers / 10).max(1);
        let mut cluster = Cluster::new(options, (0..older).map(spec));
        for n in 0..partitions / OF_A_TOPIC {
            let topic = NewTopic::new(&topic(n), OF_A_TOPIC, 3).loaded(load(n), LOADED_FOR);
            cluster.create_topic(&topic, false).map_err(|refusal| anyhow::anyhow!("{refusal:?}"))?;
        }
        (older..brokers).for_each(|id| cluster.add_broker(spec(id)));
        cluster.tick(interval + 1_000);
        let world = World::new(cluster);
        let listener = Listener::plain(world.clone());
        for id in 0..brokers {
            // A machine for each, as in real clusters. Where loopback has but one address, all share it.
            let [high, low] = u16::try_from(id + 2)?.to_be_bytes();
            if listener.open_on(BrokerId(id), SocketAddr::from(([127, 0, high, low], 0))).await.is_err() {
                listener.open_tcp(BrokerId(id), 0).await?;
            }
        }
        Ok(Self { world, listener })
    }

    /// A client of its brokers.
    pub(crate) fn kafka(&self) -> Result<Kafka> {
        let addresses = self.listener.bootstrap().split(',').map(str::parse).collect::<Result<Vec<_>, _>>()?;
        Ok(Kafka::new(Arc::new(Tcp), Settings::new(addresses)))
    }

    /// Starts an engine.
    pub(crate) async fn engine(&self, more: &str) -> Result<Served> {
        let bootstrap = self.listener.bootstrap();
        let some: Vec<&str> = bootstrap.split(',').take(3).collect();
        let properties = format!("bootstrap.servers={}\n{PROPERTIES}{more}", some.join(","));
        let binary = env::var_os(EVENKEEL).map(PathBuf::from);
        let binary = binary.with_context(|| format!("{EVENKEEL} is not set; `cargo xtask bench engine` sets it"))?;
        let began = Instant::now();
        let engine = EvenkeelEngine::start(&std::path::absolute(binary)?, &properties, CAPACITIES).await?;
        let http = http_service(trusting(b"")?, Duration::from_secs(5));
        let limits = Limits { time: Duration::from_secs(60), ..Limits::default() };
        let client = Client::new(http.clone(), engine.base().parse()?).with_limits(limits);
        Ok(Served { engine, http, client, began })
    }
}

impl Served {
    /// Waits until it says that it is ready, and tells how long that took from its start.
    pub(crate) async fn ready(&self) -> Result<Duration> {
        let uri: http::Uri = self.engine.base().parse()?;
        let uri = format!("http://{}/readyz", uri.authority().context("an address")?);
        self.until("it is ready", async || {
            let request = http::Request::get(&uri).body(Full::<Bytes>::default())?;
            Ok(self.http.clone().oneshot(request).await?.status().is_success())
        })
        .await?;
        Ok(self.began.elapsed())
    }

    /// The answer, which must come at once.
    pub(crate) async fn answer<Q: Asks>(&self, asked: &Q) -> Result<Q::Answer>
    where
        Q::Answer: Debug,
    {
        match self.client.ask_and_wait(asked, PATIENCE, LOOK_AGAIN).await.answer {
            Answer::Ready(body) => Ok(body),
            other => bail!("{other:?}; the end of its log:\n{}", self.engine.log_tail()),
        }
    }

    /// The answer, as soon as enough is known for it.
    pub(crate) async fn first_answer<Q: Asks>(&self, asked: &Q) -> Result<()>
    where
        Q::Answer: Debug,
    {
        self.until("there is an answer", async || Ok(self.answer(asked).await.is_ok())).await
    }

    /// What is being carried out.
    pub(crate) async fn phase(&self) -> Result<Phase> {
        let state = self.answer(&request::State::default()).await?;
        Ok(state.executor_state.context("the executor tells nothing")?.phase)
    }

    pub(crate) async fn until(&self, what: &str, holds: impl AsyncFn() -> Result<bool>) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while !holds().await? {
            if Instant::now() > deadline {
                bail!("never: {what}; the end of its log:\n{}", self.engine.log_tail());
            }
            sleep(LOOK_AGAIN).await;
        }
        Ok(())
    }

    /// What its process holds in memory now, in bytes.
    pub(crate) fn resident(&self) -> Result<u64> {
        Ok(Cost::of(self.engine.process())?.memory.resident)
    }
}

/// A topic's name, as long as such names are.
pub(crate) fn topic(n: i32) -> String {
    format!("some-topic-with-a-name-{n}")
}

/// Some topics carry ten times what others do, and one partition of each more than the rest.
pub(crate) fn load(n: i32) -> Load {
    let weight = 1 + n * 7 % 10;
    Load { hot: vec![(n % OF_A_TOPIC, 5.0)], ..Load::steady(f64::from(weight) * 100_000.0) }
}

/// Milliseconds since 1970.
pub(crate) fn now() -> Result<i64> {
    Ok(i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis())?)
}
