//! Walks a message along its shape and believes no length in it.
//!
//! A message that was walked to its end really holds every element it announces, so what the codec
//! sets aside for arrays is bounded by what has arrived. Elements are counted besides: in memory
//! they are larger than on the wire, some fifty times at worst.

use super::{
    Hostile, Limits,
    shape::{Field, Kind},
};
use crate::varint::first_unsigned;

pub(super) struct Walk<'a> {
    rest: &'a [u8],
    version: i16,
    flexible: bool,
    elements_left: usize,
}

impl<'a> Walk<'a> {
    pub(super) fn new(body: &'a [u8], version: i16, flexible: bool, limits: Limits) -> Self {
        Self { rest: body, version, flexible, elements_left: limits.elements }
    }

    /// Walks the whole message.
    pub(super) fn message(mut self, fields: &[Field]) -> Result<(), Hostile> {
        self.structure("message", fields)?;
        match self.rest.len() {
            0 => Ok(()),
            extra => Err(Hostile::Trailing { extra }),
        }
    }

    /// Walks nothing but tagged fields, none of them known, and tells their length.
    pub(super) fn header_tags(mut self) -> Result<usize, Hostile> {
        let before = self.rest.len();
        self.tagged("header", &[])?;
        Ok(before - self.rest.len())
    }

    fn structure(&mut self, name: &'static str, fields: &[Field]) -> Result<(), Hostile> {
        for field in fields {
            if field.tag.is_none() && field.versions.contains(&self.version) {
                self.value(field.name, &field.kind)?;
            }
        }
        if self.flexible { self.tagged(name, fields) } else { Ok(()) }
    }

    fn value(&mut self, name: &'static str, kind: &Kind) -> Result<(), Hostile> {
        match kind {
            Kind::Bool => self.skip(name, 1),
            Kind::Fixed(size) => self.skip(name, *size),
            Kind::String => {
                let length = if self.flexible { self.compact_length(name)? } else { self.length::<2>(name)? };
                self.skip(name, length)
            }
            Kind::Bytes => {
                let length = if self.flexible { self.compact_length(name)? } else { self.length::<4>(name)? };
                self.skip(name, length)
            }
            Kind::Array(element) => {
                let count = if self.flexible { self.compact_length(name)? } else { self.length::<4>(name)? };
                self.spend(name, count)?;
                match **element {
                    // Numbers need no loop.
                    Kind::Fixed(size) => self.skip(name, count.saturating_mul(size)),
                    ref element => (0..count).try_for_each(|_| self.value(name, element)),
                }
            }
            Kind::Struct(fields) => self.structure(name, fields),
            Kind::Maybe(fields) => match self.byte(name)? {
                1 => self.structure(name, fields),
                _ => Ok(()),
            },
        }
    }

    fn tagged(&mut self, name: &'static str, fields: &[Field]) -> Result<(), Hostile> {
        let count = self.varint(name)? as usize;
        self.spend(name, count)?;
        for _ in 0..count {
            let tag = self.varint(name)?;
            let size = self.varint(name)? as usize;
            match fields.iter().find(|field| field.tag == Some(tag)) {
                None => self.skip(name, size)?,
                // The codec reads a tag that it knows and never looks at the size: they must agree.
                Some(field) => {
                    let before = self.rest.len();
                    self.value(field.name, &field.kind)?;
                    if before - self.rest.len() != size {
                        return Err(Hostile::TagSize { field: field.name });
                    }
                }
            }
        }
        Ok(())
    }

    /// Takes `count` elements from what is allowed; each is at least one byte of what has arrived.
    fn spend(&mut self, field: &'static str, count: usize) -> Result<(), Hostile> {
        if count > self.rest.len() {
            return Err(Hostile::Length { field, announced: count, there: self.rest.len() });
        }
        self.elements_left = self.elements_left.checked_sub(count).ok_or(Hostile::TooMany { field })?;
        Ok(())
    }

    fn skip(&mut self, field: &'static str, size: usize) -> Result<(), Hostile> {
        let Some(rest) = self.rest.get(size..) else {
            return Err(Hostile::Length { field, announced: size, there: self.rest.len() });
        };
        self.rest = rest;
        Ok(())
    }

    fn byte(&mut self, field: &'static str) -> Result<u8, Hostile> {
        let [byte] = self.take(field)?;
        Ok(byte)
    }

    fn take<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], Hostile> {
        let Some((bytes, rest)) = self.rest.split_first_chunk() else {
            return Err(Hostile::Length { field, announced: N, there: self.rest.len() });
        };
        self.rest = rest;
        Ok(*bytes)
    }

    /// A signed length of `N` bytes; null counts as nothing.
    fn length<const N: usize>(&mut self, field: &'static str) -> Result<usize, Hostile> {
        let bytes: [u8; N] = self.take(field)?;
        let signed = i8::from_be_bytes([bytes[0]]) as i32;
        match bytes[1..].iter().fold(signed, |number, byte| number << 8 | i32::from(*byte)) {
            -1 => Ok(0),
            number => usize::try_from(number).map_err(|_| Hostile::Negative { field }),
        }
    }

    /// A length plus one; null is zero.
    fn compact_length(&mut self, field: &'static str) -> Result<usize, Hostile> {
        Ok((self.varint(field)? as usize).saturating_sub(1))
    }

    fn varint(&mut self, field: &'static str) -> Result<u32, Hostile> {
        let (number, length) = first_unsigned(self.rest).map_err(|_| Hostile::Varint { field })?;
        self.rest = &self.rest[length..];
        Ok(number)
    }
}
