//! Numbers of variable length: seven bits a byte, the lowest first. Records have them with the sign in the lowest bit.

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// More bytes than this are no number of 32 bits, or of 64.
const LONGEST_OF_32: usize = 5;
const LONGEST_OF_64: usize = 10;

/// Cut off, or longer than such a number can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a number of variable length is malformed")]
pub(crate) struct NoNumber;

/// The number that the bytes begin with, and how many of them it takes.
fn first(bytes: &[u8], longest: usize) -> Result<(u64, usize), NoNumber> {
    let mut number: u64 = 0;
    for (position, &byte) in bytes.iter().enumerate().take(longest) {
        number |= u64::from(byte & 0x7f) << (7 * position);
        if byte < 0x80 {
            return Ok((number, position + 1));
        }
    }
    Err(NoNumber)
}

/// An unsigned number of 32 bits at the beginning, and how many bytes it takes.
pub(crate) fn first_unsigned(bytes: &[u8]) -> Result<(u32, usize), NoNumber> {
    let (number, length) = first(bytes, LONGEST_OF_32)?;
    Ok((u32::try_from(number).map_err(|_| NoNumber)?, length))
}

/// Takes a signed number off the bytes.
pub(crate) fn read_signed(bytes: &mut Bytes) -> Result<i64, NoNumber> {
    let (number, length) = first(bytes, LONGEST_OF_64)?;
    bytes.advance(length);
    Ok((number >> 1) as i64 ^ -((number & 1) as i64))
}

pub(crate) fn write_signed(out: &mut BytesMut, number: i64) {
    write_unsigned(out, ((number << 1) ^ (number >> 63)) as u64);
}

pub(crate) fn write_unsigned(out: &mut BytesMut, mut left: u64) {
    while left >= 0x80 {
        out.put_u8(left as u8 | 0x80);
        left >>= 7;
    }
    out.put_u8(left as u8);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_was_written_is_read(number: i64, unsigned: u32) {
            let mut out = BytesMut::new();
            write_signed(&mut out, number);
            let mut bytes = out.freeze();
            prop_assert_eq!(read_signed(&mut bytes).unwrap(), number);
            prop_assert!(bytes.is_empty());

            let mut out = BytesMut::new();
            write_unsigned(&mut out, unsigned.into());
            prop_assert_eq!(first_unsigned(&out).unwrap(), (unsigned, out.len()));
        }
    }

    #[test]
    fn what_does_not_fit_or_is_cut_off_is_no_number() {
        for wrong in [&[][..], &[0x80], &[0xff, 0xff, 0xff, 0xff, 0x10], &[0x80, 0x80, 0x80, 0x80, 0x80, 0]] {
            assert_eq!(first_unsigned(wrong), Err(NoNumber), "{wrong:?}");
        }
        assert_eq!(first_unsigned(&[0xff, 0xff, 0xff, 0xff, 0x0f]), Ok((u32::MAX, 5)));
        assert_eq!(read_signed(&mut Bytes::from_static(&[0x80; 11])), Err(NoNumber));
    }
}
