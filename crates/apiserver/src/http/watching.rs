//! Watch streams: newline-delimited JSON, pulled from the history by whoever reads.
//!
//! A watcher is a cursor, not a queue. When its reader has room, it is asked for the next chunk; until then nothing is
//! made for it and nothing waits. One that falls behind what the history remembers ends with `410 Expired` and lists
//! anew. One that does not read at all cannot end itself, because nobody asks it: [`crate::serve`] cuts it off.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use futures::stream;
use http::{HeaderValue, Response};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::answer;
use super::frames::framed;
use super::negotiate::Form;
use super::params::ListRequest;
use super::render::Renderer;
use super::shared::Shared;
use crate::api::{Standing, Target, Watch, WatchEvent, WatchOptions};
use crate::refusal::Refusal;
use crate::resource::ResourceId;

/// How often a quiet watcher that takes bookmarks gets one.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// How long a watch lasts when the client does not say. The original draws between 30 and 60 minutes.
const LIFETIME: Duration = Duration::from_secs(45 * 60);
/// About how much one chunk tells: large enough to be efficient, small enough to be kept for each who does not read.
const CHUNK: usize = 64 * 1024;

/// Starts a watch.
pub(super) fn start(
    shared: &Arc<Shared>,
    target: &Target,
    request: &ListRequest,
    options: WatchOptions,
    form: Form,
    renderer: Renderer,
) -> Result<Response<Body>, Refusal> {
    // The bell is taken before the cursor: a change in between rings it, and is not missed.
    let bell = shared.bell(&stored_as(target));
    let bookmarks = options.bookmarks;
    let cursor = shared.read(|api| api.watch(target, &request.query, &options))?;
    let now = Instant::now();
    let lifetime = request.timeout_seconds.map_or(LIFETIME, Duration::from_secs);
    shared.watch_begins();
    let watcher = Watcher {
        stopping: shared.stopping(),
        shared: Arc::clone(shared),
        cursor,
        bell,
        form,
        renderer,
        // Far more than a lifetime, and still something that can be added to the clock.
        deadline: now + lifetime.min(Duration::from_secs(365 * 24 * 3600)),
        next_bookmark: bookmarks.then(|| now + BOOKMARK_EVERY),
        columns_sent: false,
        ended: false,
    };
    let chunks = stream::unfold(watcher, |mut watcher| async move {
        let chunk = watcher.chunk().await?;
        Some((Ok::<Bytes, std::convert::Infallible>(chunk), watcher))
    });
    Ok(answer::with_type(200, HeaderValue::from_static("application/json"), Body::from_stream(chunks)))
}

/// Under which name changes are announced: both groups of events show one store.
fn stored_as(target: &Target) -> ResourceId {
    let resource = &target.resource;
    let group = if resource.plural == "events" && resource.group == "events.k8s.io" { "" } else { &resource.group };
    ResourceId::new(group, &resource.plural)
}

struct Watcher {
    shared: Arc<Shared>,
    cursor: Watch,
    bell: watch::Receiver<()>,
    stopping: watch::Receiver<bool>,
    form: Form,
    renderer: Renderer,
    deadline: Instant,
    next_bookmark: Option<Instant>,
    columns_sent: bool,
    ended: bool,
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.shared.watch_ends();
    }
}

impl Watcher {
    /// The next piece of the stream; nothing when it has ended.
    async fn chunk(&mut self) -> Option<Bytes> {
        loop {
            if self.ended || *self.stopping.borrow() {
                return None;
            }
            // The clock is looked at before every chunk, not only when there is nothing to tell: a watch that is never
            // quiet must get its bookmarks and end in time too.
            let now = Instant::now();
            if now >= self.deadline {
                self.ended = true;
                return self.next_bookmark.and_then(|_| self.bookmark());
            }
            if self.next_bookmark.is_some_and(|due| now >= due) {
                self.next_bookmark = Some(now + BOOKMARK_EVERY);
                if let Some(line) = self.bookmark() {
                    return Some(line);
                }
            }
            self.bell.borrow_and_update();
            let (standing, batch) = self.shared.read(|api| match self.cursor.standing(api) {
                Standing::Changed => (Standing::Changed, Ok(Vec::new())),
                standing => (standing, self.cursor.next(api, CHUNK)),
            });
            match batch {
                Ok(events) if !events.is_empty() => return Some(self.lines(&events)),
                // The definition is not what it was, or gone, and with it what there was to watch.
                Ok(_) if standing != Standing::Same => return None,
                Ok(_) => self.sleep().await,
                Err(refusal) => {
                    self.ended = true;
                    return Some(framed("ERROR", refusal.to_status().to_string().as_bytes()));
                }
            }
        }
    }

    /// Waits until there may be something to do.
    async fn sleep(&mut self) {
        let due = self.next_bookmark.map_or(self.deadline, |bookmark| bookmark.min(self.deadline));
        tokio::select! {
            _ = self.stopping.wait_for(|stopping| *stopping) => {}
            _ = self.bell.changed() => {}
            () = sleep_until(due) => {}
        }
    }

    fn bookmark(&mut self) -> Option<Bytes> {
        let event = self.cursor.bookmark()?;
        Some(self.line(&event))
    }

    /// Events as one chunk. A single one is passed on without copying it.
    fn lines(&mut self, events: &[WatchEvent]) -> Bytes {
        if let [event] = events {
            return self.line(event);
        }
        let mut chunk = BytesMut::new();
        for event in events {
            chunk.extend_from_slice(&self.line(event));
        }
        chunk.freeze()
    }

    fn line(&mut self, event: &WatchEvent) -> Bytes {
        let make = |with_columns| match self.renderer.event(&event.object(), self.shared.now(), with_columns) {
            Ok(object) => framed(event.kind.as_str(), &object),
            Err(refusal) => framed("ERROR", refusal.to_status().to_string().as_bytes()),
        };
        if matches!(self.form, Form::Table(_)) {
            // Tables show ages, so they are made for each reader when it reads.
            let with_columns = !std::mem::replace(&mut self.columns_sent, true);
            return make(with_columns);
        }
        self.shared.frames.line(event, self.form, || make(false))
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;
    use http::Request;
    use http::header::CONTENT_TYPE;
    use serde_json::json;

    use super::*;
    use crate::http::tests::{CONFIG_MAPS, Lines, create, send, server};

    async fn change(shared: &Arc<Shared>, n: usize) {
        let request = Request::patch(format!("{CONFIG_MAPS}/a")).header(CONTENT_TYPE, "application/merge-patch+json");
        let changed = send(shared, request, json!({"data": {"n": n.to_string()}}).to_string()).await;
        assert_eq!(changed.status(), 200);
    }

    #[tokio::test]
    async fn two_watchers_get_the_very_same_line() {
        let shared = server();
        let (mut one, mut two) = (Lines::open(&shared, "").await, Lines::open(&shared, "").await);
        create(&shared, "a").await;
        let (one, two) = (one.chunks.next().await, two.chunks.next().await);
        let (one, two) = (one.expect("a chunk").expect("bytes"), two.expect("a chunk").expect("bytes"));
        assert_eq!(one, two);
        assert_eq!((one.as_ptr(), shared.frames.count()), (two.as_ptr(), 1), "made once");
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_is_never_quiet_has_bookmarks_and_an_end() {
        let shared = server();
        create(&shared, "a").await;
        let mut lines = Lines::open(&shared, "&allowWatchBookmarks=true&timeoutSeconds=100").await;
        assert_eq!(shared.watches(), 1);
        let mut bookmarks = Vec::new();
        for second in 0..200 {
            // Before it is asked for anything, there is something new.
            change(&shared, second).await;
            tokio::time::advance(Duration::from_secs(1)).await;
            match lines.next().await {
                Some(event) if event["type"] == "BOOKMARK" => bookmarks.push(second),
                Some(_) => {}
                None => break,
            }
        }
        // That of the initial state, that of each minute, and the last word.
        assert!(matches!(bookmarks[..], [_, 59 | 60, 98..=101]), "{bookmarks:?}");
        drop(lines);
        assert_eq!(shared.watches(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_large_state_comes_in_chunks_of_bounded_size() {
        let shared = server();
        let text = "x".repeat(20_000);
        for n in 0..40 {
            let object = json!({"metadata": {"name": format!("m{n}")}, "data": {"text": text}});
            assert_eq!(send(&shared, Request::post(CONFIG_MAPS), object.to_string()).await.status(), 201);
        }
        let mut lines = Lines::open(&shared, "&timeoutSeconds=5").await;
        let (mut chunks, mut bytes) = (0, 0);
        while let Some(chunk) = lines.chunks.next().await {
            let length = chunk.expect("bytes").len();
            assert!(length < CHUNK + 25_000, "{length} bytes at once");
            (chunks, bytes) = (chunks + 1, bytes + length);
        }
        assert!(chunks >= 10 && bytes > 40 * 20_000, "{bytes} bytes in {chunks} chunks");
    }
}
