//! Watch events as lines of text, each made once however many watch.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use bytes::{Bytes, BytesMut};

use super::negotiate::Form;
use crate::api::EventKind;

/// How many lines are remembered. Watchers of one resource wake together and ask for the same few lines at once; who
/// comes later makes their own.
const REMEMBERED: usize = 64;

/// The lines made last.
#[derive(Debug, Default)]
pub(super) struct Frames(Mutex<VecDeque<Frame>>);

#[derive(Debug)]
struct Frame {
    /// The text the line was made from. Holding it keeps its address from being used for another.
    source: Bytes,
    kind: EventKind,
    form: Form,
    line: Bytes,
}

impl Frames {
    /// The line for an event, made by `make` unless another watcher has just made it.
    pub(super) fn line(&self, source: &Bytes, kind: EventKind, form: Form, make: impl FnOnce() -> Bytes) -> Bytes {
        let same = |f: &&Frame| {
            f.kind == kind && f.form == form && f.source.len() == source.len() && f.source.as_ptr() == source.as_ptr()
        };
        if let Some(frame) = self.recent().iter().rev().find(same) {
            return frame.line.clone();
        }
        let line = make();
        let mut recent = self.recent();
        if recent.len() == REMEMBERED {
            recent.pop_front();
        }
        recent.push_back(Frame { source: source.clone(), kind, form, line: line.clone() });
        line
    }

    fn recent(&self) -> std::sync::MutexGuard<'_, VecDeque<Frame>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
    use super::*;

    #[test]
    fn a_line_is_made_once_per_text_and_form() {
        let (frames, source) = (Frames::default(), Bytes::from_static(b"{\"a\":1}"));
        let mut made = 0;
        for _ in 0..1000 {
            frames.line(&source, EventKind::Added, Form::Whole, || {
                made += 1;
                framed("ADDED", &source)
            });
        }
        assert_eq!(made, 1);
        let deleted = frames.line(&source, EventKind::Deleted, Form::Whole, || framed("DELETED", &source));
        assert_eq!(deleted, "{\"type\":\"DELETED\",\"object\":{\"a\":1}}\n");
    }

    #[test]
    fn memory_of_lines_is_bounded() {
        let frames = Frames::default();
        for n in 0..REMEMBERED * 3 {
            let source = Bytes::from(format!("{n}"));
            frames.line(&source, EventKind::Added, Form::Whole, || framed("ADDED", &source));
        }
        assert_eq!(frames.recent().len(), REMEMBERED);
    }
}
