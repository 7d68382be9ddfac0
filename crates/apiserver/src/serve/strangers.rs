//! Those who have not yet said who they are.
//!
//! Anyone who reaches the port can open a connection. Until a client has shown a certificate or the token, its
//! connection is a stranger's: it has seconds to change that, and there is room for few. When there is none left, the
//! one that has waited longest has to go, so that strangers can keep out neither each other nor the administrator.

use std::collections::VecDeque;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until};

/// All strangers at the door.
#[derive(Debug)]
pub(super) struct Strangers {
    waiting: Mutex<Waiting>,
    most: usize,
    patience: Duration,
}

#[derive(Debug, Default)]
struct Waiting {
    /// Longest first, with what tells each to go.
    all: VecDeque<(u64, Arc<Notify>)>,
    /// Number of the next one.
    next: u64,
}

impl Strangers {
    /// Room for so many, each for so long.
    pub(super) fn new(most: usize, patience: Duration) -> Arc<Self> {
        Arc::new(Self { waiting: Mutex::default(), most, patience })
    }

    /// A connection has come.
    pub(super) fn welcome(self: &Arc<Self>) -> Stranger {
        let told_to_go = Arc::new(Notify::new());
        let mut waiting = self.waiting();
        let number = waiting.next;
        waiting.next += 1;
        waiting.all.push_back((number, Arc::clone(&told_to_go)));
        if waiting.all.len() > self.most
            && let Some((_, longest)) = waiting.all.pop_front()
        {
            longest.notify_one();
        }
        drop(waiting);
        let deadline = Instant::now() + self.patience;
        Stranger { all: Arc::clone(self), number, told_to_go, deadline, known: watch::Sender::new(false) }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn forget(&self, number: u64) {
        self.waiting().all.retain(|(other, _)| *other != number);
    }
}

/// One connection, a stranger's until it is recognised.
#[derive(Debug)]
pub(super) struct Stranger {
    all: Arc<Strangers>,
    number: u64,
    told_to_go: Arc<Notify>,
    deadline: Instant,
    known: watch::Sender<bool>,
}

impl Stranger {
    /// It is the administrator's, from now on.
    pub(super) fn recognise(&self) {
        if !*self.known.borrow() {
            self.all.forget(self.number);
            self.known.send_replace(true);
        }
    }

    /// Returns when the stranger has to go; never once it is recognised.
    pub(super) async fn outstayed(&self) {
        let mut known = self.known.subscribe();
        let stays = tokio::select! {
            biased;
            _ = known.wait_for(|known| *known) => true,
            () = self.told_to_go.notified() => false,
            () = sleep_until(self.deadline) => false,
        };
        if stays {
            pending().await
        }
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.all.forget(self.number);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn a_stranger_has_seconds_and_a_friend_all_the_time() {
        let strangers = Strangers::new(8, PATIENCE);
        let (stranger, friend) = (strangers.welcome(), strangers.welcome());
        let before = Instant::now();
        stranger.outstayed().await;
        assert_eq!(before.elapsed(), PATIENCE);
        friend.recognise();
        tokio::time::sleep(100 * PATIENCE).await;
        assert!(friend.outstayed().now_or_never().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn when_there_is_no_room_the_longest_stranger_goes() {
        let strangers = Strangers::new(2, PATIENCE);
        let friend = strangers.welcome();
        friend.recognise();
        let all: Vec<Stranger> = (0..4).map(|_| strangers.welcome()).collect();
        let gone: Vec<bool> = all.iter().map(|s| s.outstayed().now_or_never().is_some()).collect();
        assert_eq!(gone, [true, true, false, false]);
        assert!(friend.outstayed().now_or_never().is_none());
        drop(all);
        assert!(strangers.waiting().all.is_empty());
    }
}
