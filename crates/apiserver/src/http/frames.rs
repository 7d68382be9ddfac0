//! Watch events as lines of text, each made once however many watch.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use bytes::{Bytes, BytesMut};

use super::negotiate::Form;
use crate::api::{Identity, WatchEvent};

/// How much is remembered, of lines and of the objects that they show. Watchers of one resource wake together and ask
/// for the same few lines at once; who comes later makes their own.
const REMEMBERED: usize = 4 << 20;

/// The lines made last.
#[derive(Debug, Default)]
pub(super) struct Frames(Mutex<Recent>);

#[derive(Debug, Default)]
struct Recent {
    lines: HashMap<(Identity, Form), Frame>,
    /// Oldest first.
    order: VecDeque<(Identity, Form)>,
    bytes: usize,
}

#[derive(Debug)]
struct Frame {
    line: Bytes,
    /// What the line was made from. Keeping it keeps its identity from being another's.
    event: WatchEvent,
}

impl Frame {
    fn bytes(&self) -> usize {
        self.line.len() + self.event.weight()
    }
}

impl Frames {
    /// The line for an event, made by `make` unless another watcher has just made it.
    pub(super) fn line(&self, event: &WatchEvent, form: Form, make: impl FnOnce() -> Bytes) -> Bytes {
        let Some(identity) = event.identity() else { return make() };
        let key = (identity, form);
        if let Some(frame) = self.recent().lines.get(&key) {
            return frame.line.clone();
        }
        // Made without the lock: that two make the same line at once is rare and harmless.
        let line = make();
        self.recent().keep(key, Frame { line: line.clone(), event: event.clone() });
        line
    }

    fn recent(&self) -> std::sync::MutexGuard<'_, Recent> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many lines are remembered.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.recent().lines.len()
    }
}

impl Recent {
    fn keep(&mut self, key: (Identity, Form), frame: Frame) {
        if frame.bytes() > REMEMBERED {
            return;
        }
        self.bytes += frame.bytes();
        match self.lines.insert(key, frame) {
            Some(same) => self.bytes -= same.bytes(),
            None => self.order.push_back(key),
        }
        while self.bytes > REMEMBERED {
            let Some(frame) = self.order.pop_front().and_then(|oldest| self.lines.remove(&oldest)) else { break };
            self.bytes -= frame.bytes();
        }
    }
}

/// `{"type":…,"object":…}` and a line break.
pub(super) fn framed(kind: &str, object: &[u8]) -> Bytes {
    let mut line = BytesMut::with_capacity(object.len() + 40);
    line.extend_from_slice(b"{\"type\":\"");
    line.extend_from_slice(kind.as_bytes());
    line.extend_from_slice(b"\",\"object\":");
    line.extend_from_slice(object);
    line.extend_from_slice(b"}\n");
    line.freeze()
}

#[cfg(test)]
mod tests {
    use super::super::negotiate::MetaVersion;
    use super::*;
    use crate::api::{Query, Target, WatchOptions};
    use crate::http::{Options, Shared};

    /// One event for each of the namespaces that every cluster has.
    fn events() -> Vec<WatchEvent> {
        let shared = Shared::new(Options::default());
        shared.read(|api| {
            let target: Target = api.target("", "v1", "namespaces", None).expect("namespaces are built in");
            let mut watch = api.watch(&target, &Query::default(), &WatchOptions::default()).expect("a watch");
            watch.next(api, usize::MAX).expect("events")
        })
    }

    #[test]
    fn a_line_is_made_once_per_event_and_form() {
        let (frames, events) = (Frames::default(), events());
        let mut made = 0;
        for _ in 0..1000 {
            for form in [Form::Whole, Form::Partial(MetaVersion::V1)] {
                let line = frames.line(&events[0], form, || {
                    made += 1;
                    framed("ADDED", b"{}")
                });
                assert_eq!(line, "{\"type\":\"ADDED\",\"object\":{}}\n");
            }
        }
        assert_eq!(made, 2);
        frames.line(&events[1], Form::Whole, || framed("ADDED", b"[]"));
        assert_eq!(frames.count(), 3);
    }

    #[test]
    fn memory_of_lines_is_bounded_by_their_bytes() {
        let (frames, events) = (Frames::default(), events());
        let large = Bytes::from(vec![b' '; REMEMBERED / 2]);
        for event in &events {
            frames.line(event, Form::Whole, || large.clone());
            assert!(frames.recent().bytes <= REMEMBERED);
        }
        assert_eq!(frames.count(), 1, "two do not fit");
        frames.line(&events[0], Form::Whole, || Bytes::from(vec![b' '; REMEMBERED]));
        assert_eq!(frames.count(), 1, "what is larger than everything does not push the others out");
    }
}
