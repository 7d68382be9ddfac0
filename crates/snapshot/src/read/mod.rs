//! From a file to a [`Snapshot`], line by line, refusing with the place and the reason.

mod header;
mod lines;
mod partition;
mod records;
mod source;

use std::fs::File;
use std::io::{self, BufRead, Read};
use std::path::Path;

use crate::{Error, Place, Problem, STANDARD_STREAM, Snapshot};
use header::Header;
use lines::Lines;
use records::Records;

pub use source::Progress;

/// Reads the file at `path`; `-` is standard input. Compressed files are recognised by what is in them.
pub fn read_path(path: &Path, progress: impl FnMut(Progress)) -> Result<Snapshot, Error> {
    let file = path.display().to_string();
    if path.as_os_str() == STANDARD_STREAM {
        return read(&file, io::stdin(), None, progress);
    }
    let failed = |source| Error::Open { file: file.clone(), source };
    let opened = File::open(path).map_err(failed)?;
    let about = opened.metadata().map_err(failed)?;
    // A pipe has no length that means anything.
    let total = about.is_file().then_some(about.len());
    read(&file, opened, total, progress)
}

/// Reads a snapshot from `input`, plain or compressed. `file` is what errors call it, and `total` its
/// size in bytes if that is known.
pub fn read(
    file: &str,
    input: impl Read + Send,
    total: Option<u64>,
    progress: impl FnMut(Progress),
) -> Result<Snapshot, Error> {
    let unread = |source| Error::Read { place: Place { file: file.to_owned(), line: 1 }, source };
    source::with_text(input, total, progress, |text| parse(file, text)).map_err(unread)?
}

fn parse(file: &str, text: impl BufRead) -> Result<Snapshot, Error> {
    let place = |line| Place { file: file.to_owned(), line };
    let failed = |line: u64, failure: Failure| match failure {
        Failure::Input(source) => Error::Read { place: place(line), source },
        Failure::Problem(problem) => Error::Parse { place: place(line), problem },
    };
    let mut lines = Lines::new(text);
    let header = lines.first().and_then(|line| Ok(Header::parse(line)?)).map_err(|failure| failed(1, failure))?;
    let mut records = Records::default();
    loop {
        match lines.next() {
            Ok(None) => break,
            Ok(Some((number, line))) => records.take(number, line).map_err(Flaw::into_parts),
            Err(failure) => Err((lines.number(), failure)),
        }
        .map_err(|(line, failure)| failed(line, failure))?;
    }
    let last = lines.number();
    let problem_at_end = |problem| failed(last, Failure::Problem(problem));
    let totals = records.totals();
    header.check_announced(&totals).map_err(|problem| failed(1, Failure::Problem(problem)))?;
    header.check(&totals).map_err(problem_at_end)?;
    let cluster = records.finish(last).map_err(Flaw::into_parts).map_err(|(line, failure)| failed(line, failure))?;
    header.check_topics(cluster.topics().len()).map_err(problem_at_end)?;
    Ok(Snapshot { notes: header.notes, cluster })
}

/// Why no further line can be had: the system's fault, or the file's.
enum Failure {
    Input(io::Error),
    Problem(Problem),
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Failure::Problem(problem)
    }
}

/// A problem, and the line it is about, which need not be the one that was read last.
struct Flaw {
    line: u64,
    problem: Problem,
}

impl Flaw {
    fn into_parts(self) -> (u64, Failure) {
        (self.line, Failure::Problem(self.problem))
    }
}
