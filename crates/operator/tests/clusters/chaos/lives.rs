//! Operators one after another: whoever dies is followed by another one, which knows nothing but what is on record.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use evenkeel_kafka as kafka;
use evenkeel_operator::seams::{
    BoxFuture, ClusterRef, Context, EngineError, EngineService, Engines, Kafkas, Trust, Unreachable,
};
use evenkeel_testkit::mortal;
use tokio::time::sleep;
use tower::{BoxError, ServiceExt, service_fn};

use crate::engine_room::EngineRoom;
use crate::machines::Machines;
use crate::play::{Play, controllers};
use crate::seams::{Fate, Server};

/// How long nobody is there, usually.
const BETWEEN_LIVES: Duration = Duration::from_secs(1);

/// What becomes of one life of an operator: at its calls to Kubernetes and to the engine, and at those to Kafka.
#[derive(Clone)]
pub(crate) struct Life {
    pub(crate) fate: Fate,
    pub(crate) at_kafka: Arc<mortal::Fate>,
    /// After how many more questions of this operator the engine dies, before it hears the last of them or after it did what
    /// was asked.
    pub(crate) until_engine_dies: Arc<Mutex<Option<(usize, bool)>>>,
    /// How long nobody is there after it.
    pub(crate) then_nobody: Arc<Mutex<Duration>>,
}

impl Default for Life {
    fn default() -> Self {
        let at_kafka = mortal::Fate::of(mortal::Death::Never);
        let then_nobody = Arc::new(Mutex::new(BETWEEN_LIVES));
        Self { fate: Fate::default(), at_kafka, until_engine_dies: Arc::default(), then_nobody }
    }
}

impl Life {
    /// Returns when it dies.
    pub(crate) async fn died(&self) {
        tokio::select! {
            () = self.fate.died.notified() => {}
            () = self.at_kafka.died() => {}
        }
    }

    /// What an operator that leads this life has at hand.
    pub(crate) fn context(&self, play: &Play) -> Context {
        let mut context = play.stage.context.clone();
        context.client = self.fate.kube(Server::Embedded(play.stage.server()));
        context.kafkas = Arc::new(Dialled { machines: play.machines.clone(), fate: Arc::clone(&self.at_kafka) });
        context.engines = Arc::new(Asked { room: play.room.clone(), life: self.clone() });
        context
    }
}

/// The operator of the moment.
#[derive(Clone, Default)]
pub(crate) struct Lives(Arc<Mutex<Life>>);

impl Lives {
    pub(crate) fn present(&self) -> Life {
        self.0.lock().unwrap().clone()
    }

    /// One operator after another, until dropped. Tells of every end: an operator that ends without having to is broken.
    pub(crate) async fn run(self, born: impl Fn(&Life) -> Context, tell: impl Fn(Result<(), String>)) {
        loop {
            let life = self.present();
            let mut operator = tokio::spawn(controllers(born(&life)));
            tokio::select! {
                () = life.died() => tell(Ok(())),
                ended = &mut operator => {
                    tell(Err(format!("the operator has ended by itself: {ended:?}")));
                    return;
                }
            }
            operator.abort();
            let _ = operator.await;
            let nobody = *life.then_nobody.lock().unwrap();
            sleep(nobody).await;
            *self.0.lock().unwrap() = Life { fate: life.fate.reborn(), ..Life::default() };
        }
    }
}

/// The way to Kafka.
#[derive(Debug)]
struct Dialled {
    machines: Machines,
    fate: Arc<mortal::Fate>,
}

impl Kafkas for Dialled {
    fn client<'a>(&'a self, of: &'a ClusterRef, _: &'a Trust) -> BoxFuture<'a, Result<kafka::Client, Unreachable>> {
        let mortal = mortal::Mortal { memory: self.machines.connector(), fate: Arc::clone(&self.fate) };
        let client = self.machines.client_over(Arc::new(mortal));
        Box::pin(async move { client.ok_or_else(|| Unreachable::NoWay(of.clone())) })
    }

    fn forget(&self, _: &ClusterRef) {}
}

/// The way to the engine.
#[derive(Clone)]
struct Asked {
    room: EngineRoom,
    life: Life,
}

impl Asked {
    /// Whether the engine dies at the question that is asked now, and if so, whether after it.
    fn engine_dies(&self) -> Option<bool> {
        let mut left = self.life.until_engine_dies.lock().unwrap();
        let (number, after) = (*left)?;
        *left = number.checked_sub(1).map(|number| (number, after));
        (number == 0).then_some(after)
    }
}

impl fmt::Debug for Asked {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Asked")
    }
}

impl Engines for Asked {
    fn service<'a>(
        &'a self,
        of: &'a ClusterRef,
        trust: &'a Trust,
    ) -> BoxFuture<'a, Result<EngineService, Unreachable>> {
        Box::pin(async move {
            let (asked, engine) = (self.clone(), self.room.service(of, trust).await?);
            let service = service_fn(move |request| {
                let (asked, engine) = (asked.clone(), engine.clone());
                async move {
                    let dies = asked.engine_dies();
                    if dies == Some(false) {
                        asked.room.kill();
                    }
                    let answer = asked.life.fate.ask_engine(request, |request| engine.oneshot(request)).await;
                    if dies == Some(true) {
                        asked.room.kill();
                        return Err(EngineError::from(BoxError::from("connection reset")));
                    }
                    answer
                }
            });
            Ok(EngineService::new(service))
        })
    }

    fn forget(&self, _: &ClusterRef) {}
}
