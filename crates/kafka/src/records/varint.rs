//! Zigzag numbers: seven bits a byte, the sign in the lowest bit.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::RecordsError;

pub(super) fn read(bytes: &mut Bytes) -> Result<i64, RecordsError> {
    let mut number: u64 = 0;
    for (position, &byte) in bytes.iter().enumerate().take(10) {
        number |= u64::from(byte & 0x7f) << (7 * position);
        if byte < 0x80 {
            bytes.advance(position + 1);
            return Ok((number >> 1) as i64 ^ -((number & 1) as i64));
        }
    }
    Err(RecordsError::Malformed)
}

pub(super) fn write(out: &mut BytesMut, number: i64) {
    let mut left = ((number << 1) ^ (number >> 63)) as u64;
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
        fn what_was_written_is_read(number: i64) {
            let mut out = BytesMut::new();
            write(&mut out, number);
            let mut bytes = out.freeze();
            prop_assert_eq!(read(&mut bytes).unwrap(), number);
            prop_assert!(bytes.is_empty());
        }
    }
}
