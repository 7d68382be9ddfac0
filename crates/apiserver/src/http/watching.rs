//! Watch streams: newline-delimited JSON, pulled from the history by whoever reads.
//!
//! A watcher is a cursor, not a queue. Nothing is kept for one that does not read; when it falls behind what the
//! history remembers, its stream ends with `410 Expired` and it lists anew.

use std::collections::VecDeque;
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
use crate::api::{Target, Watch, WatchEvent, WatchOptions};
use crate::refusal::Refusal;
use crate::resource::ResourceId;

/// How often a quiet watcher that takes bookmarks gets one.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// How long a watch lasts when the client does not say. The original draws between 30 and 60 minutes.
const LIFETIME: Duration = Duration::from_secs(45 * 60);
/// A chunk is sent when it has grown to this: large enough to be efficient, small enough to share memory fairly.
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
        pending: VecDeque::new(),
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
    pending: VecDeque<WatchEvent>,
    ended: bool,
}

/// Why a watcher that has nothing to send woke up.
enum Woken {
    Changed,
    BookmarkDue,
    TimeUp,
    Stopping,
}

impl Watcher {
    /// The next piece of the stream; nothing when it has ended.
    async fn chunk(&mut self) -> Option<Bytes> {
        loop {
            if !self.pending.is_empty() {
                return Some(self.drain());
            }
            if self.ended || *self.stopping.borrow() {
                return None;
            }
            self.bell.borrow_and_update();
            let (events, served) = self.shared.read(|api| (self.cursor.next(api), self.cursor.is_served(api)));
            match events {
                Ok(events) => self.pending.extend(events),
                Err(refusal) => {
                    self.ended = true;
                    return Some(framed("ERROR", refusal.to_status().to_string().as_bytes()));
                }
            }
            // The definition is gone, and with it what there was to watch.
            self.ended |= !served;
            if self.ended || !self.pending.is_empty() {
                continue;
            }
            match self.sleep().await {
                Woken::Changed => {}
                Woken::Stopping => return None,
                Woken::BookmarkDue => {
                    self.next_bookmark = Some(Instant::now() + BOOKMARK_EVERY);
                    self.bookmark();
                }
                Woken::TimeUp => {
                    self.ended = true;
                    if self.next_bookmark.is_some() {
                        self.bookmark();
                    }
                }
            }
        }
    }

    async fn sleep(&mut self) -> Woken {
        let bookmark = self.next_bookmark.unwrap_or(self.deadline);
        tokio::select! {
            biased;
            _ = self.stopping.wait_for(|stopping| *stopping) => Woken::Stopping,
            () = sleep_until(self.deadline) => Woken::TimeUp,
            _ = self.bell.changed() => Woken::Changed,
            () = sleep_until(bookmark) => Woken::BookmarkDue,
        }
    }

    fn bookmark(&mut self) {
        self.pending.push_back(self.cursor.bookmark());
    }

    /// As many pending events as one chunk takes. A single event is passed on without copying it.
    fn drain(&mut self) -> Bytes {
        let mut chunk = BytesMut::new();
        while let Some(event) = self.pending.pop_front() {
            let line = self.line(&event);
            if chunk.is_empty() && self.pending.is_empty() {
                return line;
            }
            chunk.extend_from_slice(&line);
            if chunk.len() >= CHUNK {
                break;
            }
        }
        // A watch that is never quiet must still end in time.
        self.ended |= Instant::now() >= self.deadline;
        chunk.freeze()
    }

    fn line(&mut self, event: &WatchEvent) -> Bytes {
        let kind = event.kind.as_str();
        let make = |with_columns| match self.renderer.event(&event.object, self.shared.now(), with_columns) {
            Ok(object) => framed(kind, &object),
            Err(refusal) => framed("ERROR", refusal.to_status().to_string().as_bytes()),
        };
        if matches!(self.form, Form::Table(_)) {
            // Tables show ages, so they are made for each reader when it reads.
            let with_columns = !std::mem::replace(&mut self.columns_sent, true);
            return make(with_columns);
        }
        self.shared.frames.line(&event.object, event.kind, self.form, || make(false))
    }
}
