//! Ways to clusters that were used lately: connections are kept while somebody uses them and the certificates stay the same.
//! Of a hundred clusters at rest each is asked every other minute, and in between nothing is kept for it.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use tokio::time::{Instant, sleep};

use super::{ClusterRef, Trust};

/// What nobody has used for so long goes.
const KEPT: Duration = Duration::from_secs(30);

/// A way to each cluster that was used lately.
#[derive(Debug)]
pub(super) struct Lately<T>(Arc<Mutex<Ways<T>>>);

#[derive(Debug)]
struct Ways<T> {
    known: BTreeMap<ClusterRef, Way<T>>,
    /// Whether somebody is about to look which of them are old.
    watched: bool,
}

#[derive(Debug)]
struct Way<T> {
    trust: Trust,
    there: T,
    used: Instant,
}

impl<T> Default for Lately<T> {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Ways { known: BTreeMap::new(), watched: false })))
    }
}

impl<T: Clone + Send + 'static> Lately<T> {
    /// The way to a cluster: the one that is known, or a new one.
    pub(super) fn find<E>(&self, of: &ClusterRef, trust: &Trust, make: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let (mut ways, used) = (lock(&self.0), Instant::now());
        if let Some(way) = ways.known.get_mut(of).filter(|way| way.trust == *trust) {
            way.used = used;
            return Ok(way.there.clone());
        }
        let there = make()?;
        ways.known.insert(of.clone(), Way { trust: trust.clone(), there: there.clone(), used });
        if !std::mem::replace(&mut ways.watched, true) {
            tokio::spawn(let_go(Arc::downgrade(&self.0)));
        }
        Ok(there)
    }

    /// Nobody will ask for this cluster again soon.
    pub(super) fn forget(&self, of: &ClusterRef) {
        lock(&self.0).known.remove(of);
    }
}

/// Lets go of what nobody has used for a while, as long as there is anything.
async fn let_go<T>(of: Weak<Mutex<Ways<T>>>) {
    loop {
        sleep(KEPT / 2).await;
        let Some(ways) = of.upgrade() else { return };
        let mut ways = lock(&ways);
        ways.known.retain(|_, way| way.used.elapsed() < KEPT);
        if ways.known.is_empty() {
            ways.watched = false;
            return;
        }
    }
}

fn lock<T>(ways: &Mutex<Ways<T>>) -> MutexGuard<'_, Ways<T>> {
    ways.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, convert::Infallible};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_way_is_kept_while_it_is_used_and_the_certificates_stay_the_same() {
        let (ways, made) = (Lately::default(), Cell::new(0));
        let trust = |text: &str| Trust { authorities: text.into(), identity: None };
        let find = |cluster: &str, by: &str| -> Arc<i32> {
            let made = || {
                made.set(made.get() + 1);
                Ok::<_, Infallible>(Arc::new(made.get()))
            };
            ways.find(&ClusterRef::new("ns", cluster), &trust(by), made).unwrap()
        };
        let seldom = Arc::downgrade(&find("seldom", "x"));
        let often = find("often", "x");
        for _ in 0..6 {
            sleep(KEPT / 3).await;
            assert_eq!(find("often", "x"), often);
        }
        assert_eq!(seldom.strong_count(), 0, "and with it go its connections");
        assert_ne!(find("often", "y"), often, "it is another authority");
        let before = Arc::downgrade(&find("often", "y"));
        sleep(KEPT * 2).await;
        assert_eq!(before.strong_count(), 0, "though nobody has asked for any");
        let again = find("often", "y");
        assert_eq!(find("often", "y"), again);
        ways.forget(&ClusterRef::new("ns", "often"));
        assert_ne!(find("often", "y"), again);
    }
}
