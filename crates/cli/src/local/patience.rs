//! How long anything is waited for here.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// How often it is looked at meanwhile.
const GLANCE: Duration = Duration::from_millis(100);
/// When waiting is given up. Nothing takes nearly as long; it is there so that a run comes to an end on any machine.
pub(super) const PATIENCE: Duration = Duration::from_secs(300);

/// Looks again and again until there is something to be seen, but not for ever. `what` says it in words.
pub(super) async fn until_seen<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> anyhow::Result<T> {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return Ok(found);
        }
        anyhow::ensure!(Instant::now() < end, "{what}: not within {} s", PATIENCE.as_secs());
        sleep(GLANCE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_comes_is_waited_for_and_what_does_not_is_given_up() {
        let mut looks = 0;
        let come = until_seen("it comes", || {
            looks += 1;
            (looks > 3).then_some(looks)
        });
        assert_eq!(come.await.expect("it came"), 4);
        let begun = Instant::now();
        let never = until_seen("it comes", || None::<()>).await.expect_err("it does not");
        assert_eq!(never.to_string(), "it comes: not within 300 s");
        assert!(begun.elapsed() >= PATIENCE);
    }
}
