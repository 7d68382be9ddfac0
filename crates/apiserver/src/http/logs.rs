//! What containers print: where it comes from is not the server's business, how it is asked for is.
//!
//! Whoever runs containers hands the server a [`LogSource`]. The server knows what `kubectl logs` can ask for and picks
//! from the lines it is given.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt, future};
use jiff::{SignedDuration, Timestamp};

use super::params::Params;
use crate::refusal::Refusal;

/// Gives out what containers have printed.
pub trait LogSource: fmt::Debug + Send + Sync {
    /// What a container has printed, in chunks: everything so far in the first one, which comes at once and may be
    /// empty; with `follow` all that comes until it ends. Nothing if there is no such log.
    fn open(&self, of: &LogOf<'_>) -> Option<BoxStream<'static, Vec<LogLine>>>;
}

/// Which log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogOf<'a> {
    /// The pod's namespace.
    pub namespace: &'a str,
    /// The pod.
    pub pod: &'a str,
    /// Its container.
    pub container: &'a str,
    /// That of the run before.
    pub previous: bool,
    /// Go on with what is printed from now on.
    pub follow: bool,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// When it was printed.
    pub at: Timestamp,
    /// Without its end.
    pub text: Arc<str>,
}

/// What is asked for of a log.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Excerpt {
    pub(super) follow: bool,
    pub(super) previous: bool,
    timestamps: bool,
    /// So many lines of those that are there at the beginning.
    tail: Option<usize>,
    since: Option<Timestamp>,
    bytes: Option<usize>,
}

impl Excerpt {
    pub(super) fn read(params: &Params, now: Timestamp) -> Result<Self, Refusal> {
        let flag = |name| params.flag(name).unwrap_or_default();
        let count = |name: &str, least: i64| match params.number(name)? {
            Some(number) if number < least => Err(Refusal::bad_request(format!("{name} must be at least {least}"))),
            number => Ok(number.and_then(|number| usize::try_from(number).ok())),
        };
        let seconds = params.number("sinceSeconds")?;
        let since = match (seconds, params.get("sinceTime")) {
            (Some(_), Some(_)) => {
                return Err(Refusal::bad_request("at most one of `sinceTime` or `sinceSeconds` may be specified"));
            }
            (Some(seconds), None) if seconds < 1 => {
                return Err(Refusal::bad_request("sinceSeconds must be at least 1"));
            }
            (Some(seconds), None) => now.checked_sub(SignedDuration::from_secs(seconds)).ok(),
            (None, Some(time)) => {
                let parsed: Result<Timestamp, _> = time.parse();
                Some(parsed.map_err(|error| Refusal::bad_request(format!("sinceTime is no time: {error}")))?)
            }
            (None, None) => None,
        };
        let (follow, previous, timestamps) = (flag("follow"), flag("previous"), flag("timestamps"));
        Ok(Self { follow, previous, timestamps, tail: count("tailLines", 0)?, since, bytes: count("limitBytes", 1)? })
    }

    /// What is asked for, of the lines there are, as text.
    pub(super) fn of(self, lines: BoxStream<'static, Vec<LogLine>>) -> impl Stream<Item = Bytes> + Send + 'static {
        let mut first = true;
        let mut room = self.bytes.unwrap_or(usize::MAX);
        let texts = lines.map(move |mut chunk| {
            chunk.retain(|line| self.since.is_none_or(|since| line.at >= since));
            if std::mem::take(&mut first) {
                let skip = self.tail.map_or(0, |tail| chunk.len().saturating_sub(tail));
                chunk.drain(..skip);
            }
            let mut text = String::new();
            for line in chunk {
                if self.timestamps {
                    text.push_str(&format!("{:.9} ", line.at));
                }
                text.push_str(&line.text);
                text.push('\n');
            }
            let mut bytes = Bytes::from(text);
            bytes.truncate(room);
            room -= bytes.len();
            (bytes, room)
        });
        // The chunk that fills the room is the last one, and is still sent.
        let mut full = false;
        let texts = texts.take_while(move |(_, room)| future::ready(!std::mem::replace(&mut full, *room == 0)));
        texts.map(|(bytes, _)| bytes).filter(|bytes| future::ready(!bytes.is_empty()))
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt, stream};

    use super::*;

    const NOW: i64 = 1000;

    fn shown(query: &str) -> Result<String, String> {
        let params = Params::parse(Some(query));
        let excerpt =
            Excerpt::read(&params, Timestamp::from_second(NOW).unwrap()).map_err(|refusal| refusal.message)?;
        let line = |(second, text): &(i64, &str)| LogLine {
            at: Timestamp::from_second(*second).unwrap(),
            text: Arc::from(*text),
        };
        let chunks = [&[(990, "a"), (995, "b"), (1000, "c")][..], &[(1001, "d")], &[(1002, "e")]];
        let chunks: Vec<Vec<LogLine>> = chunks.iter().map(|chunk| chunk.iter().map(line).collect()).collect();
        let text = excerpt.of(stream::iter(chunks).boxed()).collect::<Vec<Bytes>>().now_or_never().unwrap();
        Ok(String::from_utf8(text.concat()).unwrap())
    }

    #[test]
    fn lines_are_picked_as_asked_for() {
        for (query, expected) in [
            ("", "a\nb\nc\nd\ne\n"),
            ("tailLines=1", "c\nd\ne\n"),
            ("tailLines=0", "d\ne\n"),
            ("tailLines=9", "a\nb\nc\nd\ne\n"),
            ("sinceSeconds=5", "b\nc\nd\ne\n"),
            ("sinceSeconds=5&tailLines=1", "c\nd\ne\n"),
            ("sinceTime=1970-01-01T00:16:41Z", "d\ne\n"),
            ("limitBytes=3", "a\nb"),
            ("limitBytes=6", "a\nb\nc\n"),
            ("timestamps=true&tailLines=1&limitBytes=33", "1970-01-01T00:16:40.000000000Z c\n"),
        ] {
            assert_eq!(shown(query).as_deref(), Ok(expected), "{query}");
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for query in ["tailLines=-1", "limitBytes=0", "sinceSeconds=0", "sinceTime=now", "tailLines=x"] {
            assert!(shown(query).is_err(), "{query}");
        }
        assert!(shown("sinceSeconds=1&sinceTime=1970-01-01T00:00:00Z").is_err());
    }
}
