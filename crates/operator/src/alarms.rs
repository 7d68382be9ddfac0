//! Which reconciliations came of the clock alone: nothing had happened, their time had come.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use kube::core::ObjectMeta;
use tokio::time::Instant;

/// When each object of a controller is to be looked at though nothing happens to it, by namespace and name.
#[derive(Debug, Default)]
pub(crate) struct Alarms(Mutex<BTreeMap<(String, String), Instant>>);

impl Alarms {
    /// Whether the time of an object has come.
    pub(crate) fn has_rung(&self, of: &ObjectMeta) -> bool {
        self.lock().get(&key(of)).is_some_and(|due| *due <= Instant::now())
    }

    /// An object is to be looked at after a while; None: not before something happens to it.
    pub(crate) fn set(&self, of: &ObjectMeta, pause: Option<Duration>) {
        match pause {
            Some(pause) => drop(self.lock().insert(key(of), Instant::now() + pause)),
            None => drop(self.lock().remove(&key(of))),
        }
    }

    /// An object is gone.
    pub(crate) fn forget(&self, namespace: Option<&str>, name: &str) {
        self.lock().remove(&(namespace.unwrap_or_default().to_owned(), name.to_owned()));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<(String, String), Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(of: &ObjectMeta) -> (String, String) {
    (of.namespace.clone().unwrap_or_default(), of.name.clone().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_alarm_rings_when_its_time_has_come() {
        let alarms = Alarms::default();
        let of = |name: &str| ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
        alarms.set(&of("a"), Some(Duration::from_secs(2)));
        assert!(!alarms.has_rung(&of("a")));
        tokio::time::advance(Duration::from_secs(2)).await;
        assert!(alarms.has_rung(&of("a")) && !alarms.has_rung(&of("b")));
        alarms.set(&of("a"), None);
        assert!(!alarms.has_rung(&of("a")));
        alarms.set(&of("a"), Some(Duration::ZERO));
        alarms.forget(None, "a");
        assert!(!alarms.has_rung(&of("a")), "whoever comes after it has its own");
    }
}
