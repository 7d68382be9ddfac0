//! The bytes of a snapshot: counted on the way in, and unpacked if they are packed.

use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;

use flate2::bufread::MultiGzDecoder;

const GZIP: [u8; 2] = [0x1f, 0x8b];
const BUFFER: usize = 128 * 1024;
/// Unpacked blocks that wait to be understood.
const BLOCKS_AHEAD: usize = 8;

/// How far the reading of a file has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes taken from the file, before unpacking.
    pub read: u64,
    /// The size of the file, if it is known.
    pub total: Option<u64>,
}

/// Hands the text in `input`, whether that is compressed or not, to `take`. What is compressed is unpacked by a thread
/// of its own, a few blocks ahead: unpacking and understanding take about as long as each other.
pub(super) fn with_text<T>(
    mut input: impl Read + Send,
    total: Option<u64>,
    mut progress: impl FnMut(Progress),
    take: impl FnOnce(&mut dyn BufRead) -> T,
) -> io::Result<T> {
    let mut magic = Vec::with_capacity(GZIP.len());
    input.by_ref().take(GZIP.len() as u64).read_to_end(&mut magic)?;
    let packed = magic == GZIP;
    let whole = Cursor::new(magic).chain(input);
    if !packed {
        let told = |read| progress(Progress { read, total });
        return Ok(take(&mut BufReader::with_capacity(BUFFER, Counted { input: whole, told, read: 0 })));
    }
    let read = AtomicU64::new(0);
    let (sender, blocks) = mpsc::sync_channel(BLOCKS_AHEAD);
    thread::scope(|scope| {
        let told = |bytes| read.store(bytes, Ordering::Relaxed);
        scope.spawn(move || unpack(Counted { input: whole, told, read: 0 }, &sender));
        let progress = || progress(Progress { read: read.load(Ordering::Relaxed), total });
        // Ends with the scope: if nobody wants further blocks, the thread stops, too.
        Ok(take(&mut Unpacked { blocks, progress, block: Vec::new(), taken: 0 }))
    })
}

/// Sends the text in `input` block by block, and what went wrong after all that came before it.
fn unpack(input: impl Read, blocks: &SyncSender<io::Result<Vec<u8>>>) {
    // Several members, as parallel compressors write them, are one file.
    let mut text = MultiGzDecoder::new(BufReader::with_capacity(BUFFER, input));
    loop {
        let mut block = Vec::with_capacity(BUFFER);
        let outcome = text.by_ref().take(BUFFER as u64).read_to_end(&mut block);
        let is_last = block.is_empty() || outcome.is_err();
        // An empty block means the end of the text, and what went wrong is not that.
        if (!block.is_empty() || outcome.is_ok()) && blocks.send(Ok(block)).is_err() {
            return;
        }
        if let Err(error) = outcome {
            // Nobody is left to tell if this fails.
            let _ = blocks.send(Err(damaged(error)));
        }
        if is_last {
            return;
        }
    }
}

/// Tells what is wrong with compressed data from what is wrong with the system: both are IO errors.
fn damaged(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => io::Error::new(io::ErrorKind::InvalidData, error),
        _ => error,
    }
}

/// Tells how many bytes were read so far.
struct Counted<R, T> {
    input: R,
    told: T,
    read: u64,
}

impl<R: Read, T: FnMut(u64)> Read for Counted<R, T> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        self.read += count as u64;
        (self.told)(self.read);
        Ok(count)
    }
}

/// What another thread unpacks, as one text.
struct Unpacked<P> {
    blocks: Receiver<io::Result<Vec<u8>>>,
    progress: P,
    block: Vec<u8>,
    taken: usize,
}

impl<P: FnMut()> BufRead for Unpacked<P> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.taken == self.block.len() {
            // The thread is gone when everything was sent: the end of the text, which is an empty block.
            self.block = self.blocks.recv().unwrap_or(Ok(Vec::new()))?;
            self.taken = 0;
            (self.progress)();
        }
        Ok(&self.block[self.taken..])
    }

    fn consume(&mut self, count: usize) {
        self.taken += count;
    }
}

impl<P: FnMut()> Read for Unpacked<P> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(buffer)?;
        self.consume(count);
        Ok(count)
    }
}
