//! The four compressions of Kafka, with an end to what a batch may grow to.

use std::io::{Cursor, Read, Write};

use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::RecordsError;

/// The most a batch may hold when decompressed, and the most it may take in memory with its records read. Brokers take
/// batches of one megabyte by default; the rest is for clusters that raised it. It is an end to bytes that grow a
/// thousandfold, and to records of seven bytes each that take a hundred when read.
pub(super) const MOST: usize = 128 * 1024 * 1024;

/// How snappy-java, and so Kafka, frames snappy: magic, two versions, then blocks with a length.
const SNAPPY_MAGIC: &[u8] = b"\x82SNAPPY\0";
const SNAPPY_HEAD: usize = 16;
const SNAPPY_BLOCK: usize = 32 * 1024;

/// How a batch is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// gzip.
    Gzip,
    /// snappy, framed as snappy-java does.
    Snappy,
    /// LZ4 frames.
    Lz4,
    /// Zstandard.
    Zstd,
}

impl Compression {
    pub(super) fn of(attributes: i16) -> Result<Self, RecordsError> {
        Ok(match attributes & 7 {
            0 => Self::None,
            1 => Self::Gzip,
            2 => Self::Snappy,
            3 => Self::Lz4,
            4 => Self::Zstd,
            other => return Err(RecordsError::UnknownCompression(other)),
        })
    }

    pub(super) fn bits(self) -> i16 {
        match self {
            Self::None => 0,
            Self::Gzip => 1,
            Self::Snappy => 2,
            Self::Lz4 => 3,
            Self::Zstd => 4,
        }
    }

    pub(super) fn decompress(self, bytes: Bytes) -> Result<Bytes, RecordsError> {
        match self {
            Self::None => Ok(bytes),
            Self::Gzip => read_all(flate2::read::MultiGzDecoder::new(Cursor::new(bytes))),
            Self::Lz4 => read_all(lz4_flex::frame::FrameDecoder::new(Cursor::new(bytes))),
            Self::Zstd => {
                let decoder = zstd::stream::read::Decoder::new(Cursor::new(bytes)).map_err(decompressed)?;
                read_all(decoder)
            }
            Self::Snappy => unsnap(bytes),
        }
    }

    pub(super) fn compress(self, bytes: Bytes) -> Result<Bytes, RecordsError> {
        let compressed = |error| RecordsError::Compression("compressed", error);
        match self {
            Self::None => Ok(bytes),
            Self::Gzip => {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
                encoder.write_all(&bytes).and_then(|()| encoder.finish()).map(Bytes::from).map_err(compressed)
            }
            Self::Lz4 => {
                let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
                encoder.write_all(&bytes).map_err(compressed)?;
                encoder.finish().map(Bytes::from).map_err(|error| compressed(std::io::Error::other(error)))
            }
            Self::Zstd => zstd::stream::encode_all(Cursor::new(bytes), 0).map(Bytes::from).map_err(compressed),
            Self::Snappy => snap(&bytes).map_err(|error| compressed(error.into())),
        }
    }
}

fn decompressed(error: std::io::Error) -> RecordsError {
    RecordsError::Compression("decompressed", error)
}

fn read_all(decoder: impl Read) -> Result<Bytes, RecordsError> {
    let mut out = Vec::new();
    decoder.take(MOST as u64 + 1).read_to_end(&mut out).map_err(decompressed)?;
    if out.len() > MOST { Err(RecordsError::TooLarge(MOST)) } else { Ok(out.into()) }
}

fn unsnap(mut bytes: Bytes) -> Result<Bytes, RecordsError> {
    let mut out = Vec::new();
    // librdkafka sends bare snappy, everybody else frames it.
    if !bytes.starts_with(SNAPPY_MAGIC) {
        unsnap_block(&bytes, &mut out)?;
        return Ok(out.into());
    }
    if bytes.len() < SNAPPY_HEAD {
        return Err(RecordsError::Malformed);
    }
    bytes.advance(SNAPPY_HEAD);
    while bytes.has_remaining() {
        let length = bytes.try_get_u32().map_err(|_| RecordsError::Malformed)? as usize;
        if length > bytes.len() {
            return Err(RecordsError::Malformed);
        }
        unsnap_block(&bytes.split_to(length), &mut out)?;
    }
    Ok(out.into())
}

fn unsnap_block(block: &[u8], out: &mut Vec<u8>) -> Result<(), RecordsError> {
    let wrong = |error: snap::Error| decompressed(error.into());
    let start = out.len();
    let end = start + snap::raw::decompress_len(block).map_err(wrong)?;
    if end > MOST {
        return Err(RecordsError::TooLarge(MOST));
    }
    out.resize(end, 0);
    snap::raw::Decoder::new().decompress(block, &mut out[start..]).map_err(wrong)?;
    Ok(())
}

fn snap(bytes: &[u8]) -> Result<Bytes, snap::Error> {
    let mut out = BytesMut::new();
    out.extend_from_slice(SNAPPY_MAGIC);
    // The version, and the oldest version that reads it.
    out.put_u32(1);
    out.put_u32(1);
    let mut encoder = snap::raw::Encoder::new();
    for block in bytes.chunks(SNAPPY_BLOCK) {
        let block = encoder.compress_vec(block)?;
        out.put_u32(block.len() as u32);
        out.extend_from_slice(&block);
    }
    Ok(out.freeze())
}
