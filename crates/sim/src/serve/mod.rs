//! The shell: a cluster that lives in tokio's time, and connections to its brokers over any stream.
//!
//! Nothing ticks in the background. Whoever touches the cluster first moves it on to the present
//! moment, so an idle cluster costs nothing and paused time works. The lock is held for one call
//! into the heart and never while waiting.

mod listen;
mod pipes;
pub mod tls;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, timeout};

pub use listen::{ListenError, Listener, Port};
pub use pipes::Pipes;

use crate::cluster::Cluster;
use crate::ids::{BrokerId, Millis};

/// What waits looks this often even if nothing was reported: copies go on by themselves.
const LOOK_AGAIN: Millis = 50;

/// A world that may not work for long at once is moved on by so much at a time.
const SLICE: Millis = 1_000;

/// More connections than this are not let in.
const CONNECTIONS: usize = 10_000;
/// What long requests may take together before they are handled, and as much what long answers may take until they are
/// read, in kilobytes.
const ROOM: usize = 512 * 1024;

/// A cluster in tokio's time, shared by all that serve it or tamper with it.
#[derive(Clone, Debug)]
pub struct World(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    cluster: Mutex<Cluster>,
    /// The moment that was the cluster's `began` milliseconds.
    start: Instant,
    began: Millis,
    /// Milliseconds of the cluster in each of ours.
    speed: f64,
    /// How much of our time may go at once into what the cluster has missed, and how many of its milliseconds were left
    /// out because that was not enough.
    diligence: Option<Duration>,
    left_out: AtomicI64,
    changes: watch::Sender<u64>,
    /// Only when a broker's process has begun or ended: every connection waits for that, and is not woken by all else.
    processes: watch::Sender<u64>,
    /// Answers to be lost after the deed: whose, and to which call.
    losses: Mutex<VecDeque<(BrokerId, i16)>>,
    /// Connections that may still be opened over sockets.
    connections: Arc<Semaphore>,
    /// Kilobytes that long requests may still take while they arrive.
    room: Arc<Semaphore>,
    /// Kilobytes that long answers may still take while nobody has read them.
    room_for_answers: Semaphore,
}

impl World {
    /// From now on the cluster's time is tokio's.
    pub fn new(cluster: Cluster) -> Self {
        Self::with_speed(cluster, 1.0)
    }

    /// The same, with so many of the cluster's seconds in each of ours. What clients and brokers wait
    /// for on a connection is not simulated, and takes its own time.
    pub fn with_speed(cluster: Cluster, speed: f64) -> Self {
        Self::with_diligence(cluster, speed, None)
    }

    /// The same for a world that people watch: nobody waits for longer than about `diligence` until the cluster is where
    /// its clock says. If that does not do, the clock is turned back: [`World::left_out`] says by how much. Without it a
    /// cluster that takes longer than its time would take ever longer, and hold up everything else meanwhile.
    pub fn with_diligence(cluster: Cluster, speed: f64, diligence: Option<Duration>) -> Self {
        let began = cluster.now();
        let (changes, _) = watch::channel(0);
        Self(Arc::new(Inner {
            cluster: Mutex::new(cluster),
            start: Instant::now(),
            began,
            speed,
            diligence,
            left_out: AtomicI64::new(0),
            changes,
            processes: watch::Sender::new(0),
            losses: Mutex::default(),
            connections: Arc::new(Semaphore::new(CONNECTIONS)),
            room: Arc::new(Semaphore::new(ROOM)),
            room_for_answers: Semaphore::new(ROOM),
        }))
    }

    /// Does something with the cluster as it is at this moment; everybody who waits looks again.
    pub fn with<T>(&self, deed: impl FnOnce(&mut Cluster) -> T) -> T {
        let mut cluster = self.present();
        let before = cluster.process_changes();
        let done = deed(&mut cluster);
        let processes_changed = cluster.process_changes() != before;
        drop(cluster);
        if processes_changed {
            self.0.processes.send_modify(|count| *count += 1);
        }
        self.0.changes.send_modify(|count| *count += 1);
        done
    }

    /// Looks at the cluster as it is at this moment.
    pub fn look<T>(&self, look: impl FnOnce(&mut Cluster) -> T) -> T {
        look(&mut self.present())
    }

    /// Waits until the cluster is so. Looks whenever somebody has touched it, and now and then: much happens by itself.
    pub async fn until(&self, mut holds: impl FnMut(&mut Cluster) -> bool) {
        let mut changes = self.changes();
        while !self.look(&mut holds) {
            // Either way it is looked at again; the sender lives as long as `self`.
            let _either = timeout(millis(LOOK_AGAIN), changes.changed()).await;
        }
    }

    /// Waits until a broker's process is another one than that of this epoch, or none.
    pub async fn until_ended(&self, broker: BrokerId, epoch: Option<i64>) {
        listen::wait_until(self.0.processes.subscribe(), || {
            self.look(|cluster| cluster.is_down(broker) || cluster.broker_epoch(broker) != epoch)
        })
        .await;
    }

    /// The next answer of `broker` to a call with this API key is lost, and the connection with it;
    /// what was asked for is done all the same.
    pub fn lose_answer(&self, broker: BrokerId, api_key: i16) {
        lock(&self.0.losses).push_back((broker, api_key));
    }

    /// How many of the cluster's milliseconds have not come to pass because it takes longer than its time.
    pub fn left_out(&self) -> Millis {
        self.0.left_out.load(Ordering::Relaxed)
    }

    fn present(&self) -> MutexGuard<'_, Cluster> {
        let mut cluster = lock(&self.0.cluster);
        let passed = (self.0.start.elapsed().as_secs_f64() * 1_000.0 * self.0.speed) as Millis;
        let now = self.0.began.saturating_add(passed).saturating_sub(self.left_out());
        let processes = cluster.process_changes();
        match self.0.diligence {
            None => {
                let since = now - cluster.now();
                cluster.tick(since);
            }
            Some(diligence) => {
                // Of the machine, not of tokio: it is about work.
                let begun = std::time::Instant::now();
                while cluster.now() < now && begun.elapsed() < diligence {
                    let since = (now - cluster.now()).min(SLICE);
                    cluster.tick(since);
                }
                self.0.left_out.fetch_add((now - cluster.now()).max(0), Ordering::Relaxed);
            }
        }
        if cluster.process_changes() != processes {
            // A full disk ends a broker inside a tick, and those who speak with it wait to be told.
            self.0.processes.send_modify(|count| *count += 1);
            self.0.changes.send_modify(|count| *count += 1);
        }
        cluster
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    /// Whether this answer is one of those to be lost.
    fn is_lost(&self, broker: BrokerId, api_key: i16) -> bool {
        let mut losses = lock(&self.0.losses);
        let at = losses.iter().position(|loss| *loss == (broker, api_key));
        at.and_then(|at| losses.remove(at)).is_some()
    }
}

/// What is behind the lock is consistent between calls, even if a caller of ours panicked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn millis(millis: Millis) -> Duration {
    Duration::from_millis(u64::try_from(millis).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{BrokerSpec, Options};

    fn cluster() -> Cluster {
        Cluster::new(Options::default(), [BrokerSpec::new(0)])
    }

    #[tokio::test(start_paused = true)]
    async fn what_there_is_no_time_for_is_left_out() {
        const NIGHT: Duration = Duration::from_secs(8 * 3_600);
        // No time at all, so that it does not matter how fast this machine is.
        let lazy = World::with_diligence(cluster(), 100.0, Some(Duration::ZERO));
        tokio::time::advance(NIGHT).await;
        assert_eq!(lazy.look(|cluster| cluster.now()), 0);
        let missed = 100 * NIGHT.as_millis() as Millis;
        assert_eq!(lazy.left_out(), missed);
        assert_eq!((lazy.look(|cluster| cluster.now()), lazy.left_out()), (0, missed), "and is not asked for again");
        // As much time as it takes, and without a word about it.
        for diligence in [Some(Duration::MAX), None] {
            let world = World::with_diligence(cluster(), 100.0, diligence);
            tokio::time::advance(NIGHT).await;
            assert_eq!((world.look(|cluster| cluster.now()), world.left_out()), (missed, 0));
        }
    }
}
