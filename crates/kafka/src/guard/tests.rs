//! Shapes and codec agree, and what passes the guard cannot hurt the codec.
//!
//! Messages are made from the shapes and random bytes: if the codec reads one to its end and writes
//! the same bytes again, the table is right. A wrong table lets a hostile message through, and then
//! the process that runs these tests aborts: that too is a failure one sees.

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::{ApiKey, RequestKind, ResponseKind};
use proptest::prelude::*;

use super::{
    shape::{Field, Kind, Shape},
    *,
};

/// Random choices, from bytes that shrink towards zero.
struct Choices<'a>(std::slice::Iter<'a, u8>);

impl Choices<'_> {
    fn next(&mut self) -> u8 {
        self.0.next().copied().unwrap_or(0)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::from(self.next()) % end
    }
}

struct Maker<'a> {
    choices: Choices<'a>,
    version: i16,
    flexible: bool,
    with_tags: bool,
    out: Vec<u8>,
}

impl Maker<'_> {
    fn structure(&mut self, fields: &[Field]) {
        for field in fields {
            if field.tag.is_none() && field.versions.contains(&self.version) {
                self.value(&field.kind);
            }
        }
        if self.flexible {
            self.tags(fields);
        }
    }

    fn tags(&mut self, fields: &[Field]) {
        let mut tags = Vec::new();
        if self.with_tags {
            for field in fields {
                if let Some(tag) = field.tag
                    && field.versions.contains(&self.version)
                    && self.choices.below(2) == 1
                {
                    let before = std::mem::take(&mut self.out);
                    self.value(&field.kind);
                    tags.push((tag, std::mem::replace(&mut self.out, before)));
                }
            }
            if self.choices.below(4) == 1 {
                tags.push((4000, vec![self.choices.next()]));
            }
        }
        self.varint(tags.len());
        for (tag, value) in tags {
            self.varint(tag as usize);
            self.varint(value.len());
            self.out.extend(value);
        }
    }

    fn value(&mut self, kind: &Kind) {
        match kind {
            Kind::Bool => {
                let truth = self.choices.below(2) as u8;
                self.out.push(truth);
            }
            Kind::Fixed(size) => (0..*size).for_each(|_| {
                let byte = self.choices.next();
                self.out.push(byte);
            }),
            Kind::String => {
                let length = self.choices.below(4);
                self.length(length, 2);
                self.out.extend(std::iter::repeat_n(b'a', length));
            }
            Kind::Bytes => {
                let length = self.choices.below(4);
                self.length(length, 4);
                (0..length).for_each(|_| {
                    let byte = self.choices.next();
                    self.out.push(byte);
                });
            }
            Kind::Array(element) => {
                let count = self.choices.below(3);
                self.length(count, 4);
                (0..count).for_each(|_| self.value(element));
            }
            Kind::Struct(fields) => self.structure(fields),
            Kind::Maybe(fields) if self.choices.below(2) == 1 => {
                self.out.push(1);
                self.structure(fields);
            }
            Kind::Maybe(_) => self.out.push(0xff),
        }
    }

    fn length(&mut self, length: usize, size: usize) {
        if self.flexible {
            self.varint(length + 1);
        } else {
            self.out.extend(&(length as u32).to_be_bytes()[4 - size..]);
        }
    }

    fn varint(&mut self, mut number: usize) {
        while number >= 0x80 {
            self.out.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.out.push(number as u8);
    }
}

fn make(shape: &Shape, version: i16, entropy: &[u8], with_tags: bool) -> Vec<u8> {
    let flexible = shape.is_flexible(version);
    let mut maker = Maker { choices: Choices(entropy.iter()), version, flexible, with_tags, out: Vec::new() };
    maker.structure(&shape.fields);
    maker.out
}

/// Every message and version that the codec knows too.
fn codec_messages() -> impl Iterator<Item = (ApiKey, Direction, &'static Shape, i16)> {
    shape::all().flat_map(|(key, direction, shape)| {
        let key = ApiKey::try_from(key).unwrap();
        let end = if key == ApiKey::DescribeLogDirs { 4 } else { *shape.versions.end() };
        (*shape.versions.start()..=end).map(move |version| (key, direction, shape, version))
    })
}

/// What is left behind the message, and the message written again.
fn through_codec(key: ApiKey, direction: Direction, version: i16, body: &[u8]) -> Result<(usize, Vec<u8>), String> {
    let mut body = Bytes::copy_from_slice(body);
    let mut again = BytesMut::new();
    let done = match direction {
        Direction::Request => {
            RequestKind::decode(key, &mut body, version).and_then(|message| message.encode(&mut again, version))
        }
        Direction::Response => {
            ResponseKind::decode(key, &mut body, version).and_then(|message| message.encode(&mut again, version))
        }
    };
    done.map_err(|error| error.to_string())?;
    Ok((body.len(), again.to_vec()))
}

#[test]
fn an_array_that_would_end_the_process_is_refused() {
    // Metadata v0: the array of topics announces two billion of them, and that is all there is.
    let refused = check_request(3, 0, &[0x7f, 0xff, 0xff, 0xff], Limits::KNOWN_PEER);
    assert_eq!(refused, Err(Hostile::Length { field: "topics", announced: 0x7fff_ffff, there: 0 }));
    // The same, compact, and hidden in a tagged field that the codec knows (ApiVersions v3).
    let hidden = [0, 0, 1, 0, 0, 0, 0, 1, 0, 5, 0xff, 0xff, 0xff, 0xff, 0x0f];
    assert_eq!(
        check_response(18, 3, &hidden, Limits::KNOWN_PEER),
        Err(Hostile::Length { field: "supported_features", announced: 0xffff_fffe, there: 0 })
    );
}

#[test]
fn what_we_do_not_speak_is_refused_before_it_is_read() {
    assert_eq!(check_request(999, 0, &[], Limits::KNOWN_PEER), Err(Hostile::UnknownApi { key: 999 }));
    assert_eq!(
        check_request(3, 14, &[], Limits::KNOWN_PEER),
        Err(Hostile::UnknownVersion { name: "Metadata", version: 14 })
    );
}

#[test]
fn a_stranger_may_not_send_many_elements() {
    let mut body = vec![0, 0, 0x13, 0x88];
    body.extend(std::iter::repeat_n(0, 5000 * 2));
    assert_eq!(check_request(3, 0, &body, Limits::KNOWN_PEER), Ok(()));
    assert_eq!(check_request(3, 0, &body, Limits::STRANGER), Err(Hostile::TooMany { field: "topics" }));
}

#[test]
fn numbers_lengths_and_ends_are_not_believed() {
    let check = |version, body: &[u8]| check_request(3, version, body, Limits::KNOWN_PEER).unwrap_err();
    assert_eq!(check(0, &[0xff, 0xff, 0xff, 0xfe]), Hostile::Negative { field: "topics" });
    assert_eq!(check(0, &[0, 0, 0, 0, 1]), Hostile::Trailing { extra: 1 });
    assert_eq!(check(9, &[0xff, 0xff, 0xff, 0xff, 0xff, 1]), Hostile::Varint { field: "topics" });
    let lying_tag = [0, 0, 1, 0, 0, 0, 0, 1, 3, 2, 1];
    assert_eq!(
        check_response(18, 3, &lying_tag, Limits::KNOWN_PEER),
        Err(Hostile::TagSize { field: "zk_migration_ready" })
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_codec_reads_and_writes_what_the_shapes_say(entropy in prop::collection::vec(any::<u8>(), 0..400)) {
        for (key, direction, shape, version) in codec_messages() {
            let body = make(shape, version, &entropy, false);
            prop_assert_eq!(check(direction, key as i16, version, &body, Limits::KNOWN_PEER), Ok(()));
            let codec = through_codec(key, direction, version, &body);
            prop_assert_eq!(codec, Ok((0, body)), "{:?} {:?} {}", key, direction, version);
        }
    }

    #[test]
    fn tagged_fields_are_where_the_shapes_say(entropy in prop::collection::vec(any::<u8>(), 0..400)) {
        for (key, direction, shape, version) in codec_messages().filter(|(.., shape, version)| shape.is_flexible(*version)) {
            let body = make(shape, version, &entropy, true);
            prop_assert_eq!(check(direction, key as i16, version, &body, Limits::KNOWN_PEER), Ok(()));
            let (left, again) = through_codec(key, direction, version, &body).map_err(TestCaseError::fail)?;
            prop_assert_eq!(left, 0, "{:?} {:?} {}", key, direction, version);
            prop_assert_eq!(check(direction, key as i16, version, &again, Limits::KNOWN_PEER), Ok(()));
        }
    }

    #[test]
    fn what_passes_the_guard_cannot_hurt_the_codec(
        entropy in prop::collection::vec(any::<u8>(), 0..200),
        wounds in prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(vec![0_u8, 1, 0x7f, 0x80, 0xff])), 1..6),
    ) {
        for (key, direction, shape, version) in codec_messages() {
            let mut body = make(shape, version, &entropy, true);
            for (place, byte) in &wounds {
                if !body.is_empty() {
                    let place = place.index(body.len());
                    body[place] = *byte;
                }
            }
            if check(direction, key as i16, version, &body, Limits::KNOWN_PEER).is_ok() {
                let _ = through_codec(key, direction, version, &body);
            }
        }
    }

    #[test]
    fn noise_ends_in_an_error(noise in prop::collection::vec(any::<u8>(), 0..120)) {
        for (key, direction, _, version) in codec_messages() {
            if check(direction, key as i16, version, &noise, Limits::KNOWN_PEER).is_ok() {
                let _ = through_codec(key, direction, version, &noise);
            }
        }
    }
}
