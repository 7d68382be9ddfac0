//! The bytes of a snapshot: counted on the way in, and unpacked if they are packed.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use flate2::bufread::MultiGzDecoder;

const GZIP: [u8; 2] = [0x1f, 0x8b];
const BUFFER: usize = 128 * 1024;

/// How far the reading of a file has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes taken from the file, before unpacking.
    pub read: u64,
    /// The size of the file, if it is known.
    pub total: Option<u64>,
}

/// The text in `input`, whether that is compressed or not.
pub(super) fn open<'i>(
    input: impl Read + 'i,
    total: Option<u64>,
    progress: impl FnMut(Progress) + 'i,
) -> io::Result<Box<dyn BufRead + 'i>> {
    let mut counted = Counted { input, progress, so_far: Progress { read: 0, total } };
    let mut magic = Vec::with_capacity(GZIP.len());
    counted.by_ref().take(GZIP.len() as u64).read_to_end(&mut magic)?;
    let packed = magic == GZIP;
    let whole = BufReader::with_capacity(BUFFER, Cursor::new(magic).chain(counted));
    Ok(if packed {
        // Several members, as parallel compressors write them, are one file.
        Box::new(BufReader::with_capacity(BUFFER, Unpacked(MultiGzDecoder::new(whole))))
    } else {
        Box::new(whole)
    })
}

struct Counted<R, P> {
    input: R,
    progress: P,
    so_far: Progress,
}

impl<R: Read, P: FnMut(Progress)> Read for Counted<R, P> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        self.so_far.read += count as u64;
        (self.progress)(self.so_far);
        Ok(count)
    }
}

/// Tells what is wrong with compressed data from what is wrong with the system: both are IO errors.
struct Unpacked<R>(MultiGzDecoder<R>);

impl<R: BufRead> Read for Unpacked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
                io::Error::new(io::ErrorKind::InvalidData, error)
            }
            _ => error,
        })
    }
}
