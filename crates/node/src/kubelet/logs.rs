//! What containers print: one bounded ring for each run of a container, who reads along, and where the rings are found.
//!
//! A ring forgets its oldest lines when it is full. Whoever follows it and is too slow misses lines and goes on with the
//! oldest that are left: a program never waits for its readers.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use tokio::sync::watch;

use crate::clock::Clock;

/// Most lines that a ring holds.
const LINES: usize = 10_000;

/// Most bytes that a ring holds.
const BYTES: usize = 1 << 20;

/// A longer line is cut here, as container runtimes do.
const LINE: usize = 16 << 10;

/// One line that a container has printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// When.
    pub at: Timestamp,
    /// Without its end.
    pub text: String,
}

/// Where one run of a container prints to. Clones write to the same ring.
#[derive(Clone)]
pub struct Log(Arc<Ring>);

struct Ring {
    clock: Clock,
    held: Mutex<Held>,
    /// Changes whenever there is something new to read.
    news: watch::Sender<()>,
}

#[derive(Default)]
struct Held {
    lines: VecDeque<Line>,
    bytes: usize,
    /// How many lines were forgotten: the number of the first one that is held.
    forgotten: u64,
    closed: bool,
}

impl fmt::Debug for Log {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Log({} lines)", self.held().lines.len())
    }
}

impl Log {
    /// An empty ring.
    pub fn new(clock: Clock) -> Self {
        Self(Arc::new(Ring { clock, held: Mutex::default(), news: watch::Sender::new(()) }))
    }

    /// Prints a text of one or more lines.
    pub fn line(&self, text: &str) {
        let at = self.0.clock.now();
        let mut held = self.held();
        if held.closed {
            return;
        }
        for line in text.lines() {
            for text in pieces(line) {
                held.bytes += text.len();
                held.lines.push_back(Line { at, text: text.to_owned() });
            }
        }
        while held.bytes > BYTES || held.lines.len() > LINES {
            let Some(oldest) = held.lines.pop_front() else { break };
            held.bytes -= oldest.text.len();
            held.forgotten += 1;
        }
        drop(held);
        self.0.news.send_replace(());
    }

    /// Nothing more comes: the run has ended.
    pub fn close(&self) {
        self.held().closed = true;
        self.0.news.send_replace(());
    }

    /// Nothing was ever printed.
    fn is_empty(&self) -> bool {
        let held = self.held();
        held.lines.is_empty() && held.forgotten == 0
    }

    /// Reads from the beginning of what is held.
    pub fn reader(&self) -> Reader {
        Reader { log: self.clone(), next: 0, news: self.0.news.subscribe() }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody who reads a log from its beginning to its end.
#[derive(Debug)]
pub struct Reader {
    log: Log,
    next: u64,
    news: watch::Receiver<()>,
}

impl Reader {
    /// What has come since the last call, without waiting.
    pub fn read(&mut self) -> Vec<Line> {
        self.news.mark_unchanged();
        let held = self.log.held();
        let skip = self.next.saturating_sub(held.forgotten);
        self.next = held.forgotten + held.lines.len() as u64;
        held.lines.iter().skip(usize::try_from(skip).unwrap_or(usize::MAX)).cloned().collect()
    }

    /// Waits for more lines; nothing when the run has ended and all was read.
    pub async fn more(&mut self) -> Option<Vec<Line>> {
        loop {
            // Before the reading: a line that comes in between is then read, or its news is still news.
            let closed = self.log.held().closed;
            let lines = self.read();
            if !lines.is_empty() {
                return Some(lines);
            }
            if closed || self.news.changed().await.is_err() {
                return None;
            }
        }
    }
}

/// The rings of all containers: of the run that is, and of the one before it. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Logs(Arc<Mutex<BTreeMap<Place, Runs>>>);

/// Namespace, pod, container.
type Place = (String, String, String);

#[derive(Debug)]
struct Runs {
    current: Log,
    previous: Option<Log>,
}

impl Logs {
    /// The log of a container's run, or of the run before.
    pub fn find(&self, namespace: &str, pod: &str, container: &str, previous: bool) -> Option<Log> {
        let place = (namespace.to_owned(), pod.to_owned(), container.to_owned());
        let runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let runs = runs.get(&place)?;
        if previous { runs.previous.clone() } else { Some(runs.current.clone()) }
    }

    /// A container's next run prints here. One before it that printed nothing, because it did not start, does not push
    /// out what was printed before that.
    pub(super) fn begin(&self, namespace: &str, pod: &str, container: &str, log: Log) {
        let place = (namespace.to_owned(), pod.to_owned(), container.to_owned());
        let mut runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let previous = runs
            .remove(&place)
            .and_then(|runs| if runs.current.is_empty() { runs.previous } else { Some(runs.current) });
        runs.insert(place, Runs { current: log, previous });
    }

    /// The pod is gone, and what it printed with it.
    pub(super) fn forget(&self, namespace: &str, pod: &str) {
        let mut runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        runs.retain(|(of_namespace, of_pod, _), runs| {
            let goes = of_namespace == namespace && of_pod == pod;
            if goes {
                runs.current.close();
            }
            !goes
        });
    }
}

/// A line in pieces that are not too long, cut between characters.
fn pieces(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let text = rest?;
        let (piece, left) = text.split_at(text.floor_char_boundary(LINE));
        rest = Some(left).filter(|left| !left.is_empty());
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log() -> Log {
        Log::new(Clock::new(|| Timestamp::UNIX_EPOCH))
    }

    fn texts(lines: &[Line]) -> Vec<&str> {
        lines.iter().map(|line| line.text.as_str()).collect()
    }

    #[test]
    fn a_ring_forgets_its_oldest_lines_and_a_slow_reader_goes_on_with_what_is_left() {
        let log = log();
        let mut reader = log.reader();
        log.line("first\nsecond");
        assert_eq!(texts(&reader.read()), ["first", "second"]);
        assert_eq!(reader.read(), []);
        for number in 0..LINES + 5 {
            log.line(&number.to_string());
        }
        let lines = reader.read();
        assert_eq!((lines.len(), lines[0].text.as_str()), (LINES, "5"));
    }

    #[test]
    fn neither_lines_nor_rings_grow_without_end() {
        let log = log();
        log.line(&"ä".repeat(LINE));
        let lines = log.reader().read();
        assert_eq!(lines.iter().map(|line| line.text.len()).collect::<Vec<_>>(), [LINE, LINE]);
        for _ in 0..200 {
            log.line(&"x".repeat(LINE));
        }
        assert!(log.reader().read().iter().map(|line| line.text.len()).sum::<usize>() <= BYTES);
    }

    #[test]
    fn the_run_before_is_kept_until_the_pod_goes() {
        let logs = Logs::default();
        for text in ["first", "second", "third"] {
            let run = log();
            run.line(text);
            logs.begin("ns", "pod", "main", run);
        }
        let read = |previous| logs.find("ns", "pod", "main", previous).map(|log| log.reader().read()[0].text.clone());
        assert_eq!((read(false), read(true)), (Some("third".into()), Some("second".into())));
        for _ in 0..3 {
            logs.begin("ns", "pod", "main", log());
        }
        let last = logs.find("ns", "pod", "main", true).map(|log| log.reader().read()[0].text.clone());
        assert_eq!(last.as_deref(), Some("third"), "starts that failed print nothing and push nothing out");
        let run = log();
        run.line("fourth");
        logs.begin("ns", "pod", "main", run);
        logs.forget("ns", "other");
        assert!(read(false).is_some());
        logs.forget("ns", "pod");
        assert_eq!((read(false), read(true)), (None, None));
    }

    #[tokio::test(start_paused = true)]
    async fn a_follower_is_woken_and_told_of_the_end() {
        let log = log();
        let mut reader = log.reader();
        let writer = log.clone();
        let follow = tokio::spawn(async move {
            let mut all = Vec::new();
            while let Some(lines) = reader.more().await {
                all.extend(lines);
            }
            texts(&all).join(",")
        });
        tokio::task::yield_now().await;
        writer.line("a");
        tokio::task::yield_now().await;
        writer.line("b");
        writer.close();
        writer.line("after the end");
        assert_eq!(follow.await.unwrap(), "a,b");
    }
}
