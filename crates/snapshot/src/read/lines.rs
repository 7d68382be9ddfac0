//! Lines of text, one at a time in one buffer, each complete.

use std::io::{self, BufRead, Read};

use super::Failure;
use crate::error::Quoted;
use crate::{MAGIC, Problem};

/// Far more than 255 replicas need; a file without line ends must not fill the memory.
const LONGEST: usize = 1 << 20;

pub(super) struct Lines<R> {
    input: R,
    line: Vec<u8>,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(input: R) -> Self {
        Lines { input, line: Vec::with_capacity(1024), number: 0 }
    }

    /// The number of the line that was read last, counted from 1.
    pub(super) fn number(&self) -> u64 {
        self.number.max(1)
    }

    /// The next line without its end, and its number.
    pub(super) fn next(&mut self) -> Result<Option<(u64, &str)>, Failure> {
        self.line.clear();
        let mut limited = self.input.by_ref().take(LONGEST as u64 + 1);
        let count = match limited.read_until(b'\n', &mut self.line) {
            Ok(0) => return Ok(None),
            Ok(count) => count,
            Err(error) => {
                self.number += 1;
                return Err(unreadable(error));
            }
        };
        self.number += 1;
        if self.line.pop() != Some(b'\n') {
            return Err(if count > LONGEST { Problem::TooLong(LONGEST) } else { Problem::CutOff }.into());
        }
        match std::str::from_utf8(&self.line) {
            Ok(line) => Ok(Some((self.number, line))),
            Err(error) => Err(Problem::NotText(error.valid_up_to() + 1).into()),
        }
    }

    /// The first line. A file that is something else altogether is called that, whatever else is wrong with it.
    pub(super) fn first(&mut self) -> Result<&str, Failure> {
        let failure = match self.next() {
            Ok(None) => return Err(Problem::Empty.into()),
            Ok(Some(_)) => None,
            Err(failure) => Some(failure),
        };
        let begins_otherwise = !self.line.starts_with(MAGIC.as_bytes()) && !MAGIC.as_bytes().starts_with(&self.line);
        match failure {
            Some(Failure::Problem(_)) if begins_otherwise => {
                let shown = &self.line[..self.line.len().min(64)];
                let shown = String::from_utf8_lossy(shown);
                Err(Problem::NotASnapshot(Quoted::new(shown.split(' ').next().unwrap_or_default())).into())
            }
            Some(failure) => Err(failure),
            // Was found to be text a moment ago.
            None => std::str::from_utf8(&self.line).map_err(|_| Problem::NotText(1).into()),
        }
    }
}

fn unreadable(error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Problem::CutOff.into(),
        io::ErrorKind::InvalidData => Problem::Damaged(error.to_string()).into(),
        _ => Failure::Input(error),
    }
}
