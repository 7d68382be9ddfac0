//! Ways to clusters that were used lately: connections are kept while somebody uses them and the certificates stay the same.
//! Of a hundred clusters at rest each is asked every other minute, and in between nothing is kept for it.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use super::{ClusterRef, Trust};

/// What nobody has used for so long goes as soon as anybody uses anything.
const KEPT: Duration = Duration::from_secs(30);

/// A way to each cluster that was used lately.
#[derive(Debug)]
pub(super) struct Lately<T>(Mutex<BTreeMap<ClusterRef, Way<T>>>);

#[derive(Debug)]
struct Way<T> {
    trust: Trust,
    there: T,
    used: Instant,
}

impl<T> Default for Lately<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> Lately<T> {
    /// The way to a cluster: the one that is known, or a new one.
    pub(super) fn find<E>(&self, of: &ClusterRef, trust: &Trust, make: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let (mut ways, used) = (self.lock(), Instant::now());
        ways.retain(|known, way| known == of || used.duration_since(way.used) < KEPT);
        if let Some(way) = ways.get_mut(of).filter(|way| way.trust == *trust) {
            way.used = used;
            return Ok(way.there.clone());
        }
        let there = make()?;
        ways.insert(of.clone(), Way { trust: trust.clone(), there: there.clone(), used });
        Ok(there)
    }

    /// Nobody will ask for this cluster again soon.
    pub(super) fn forget(&self, of: &ClusterRef) {
        self.lock().remove(of);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ClusterRef, Way<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, convert::Infallible, sync::Arc};

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
        for _ in 0..4 {
            tokio::time::advance(KEPT / 3).await;
            assert_eq!(find("often", "x"), often);
        }
        assert_eq!(seldom.strong_count(), 0, "and with it go its connections");
        assert_ne!(find("often", "y"), often, "it is another authority");
        let before = find("often", "y");
        tokio::time::advance(KEPT * 2).await;
        assert_eq!(find("often", "y"), before, "whoever asks for it is the next to use it");
        ways.forget(&ClusterRef::new("ns", "often"));
        assert_ne!(find("often", "y"), before);
    }
}
