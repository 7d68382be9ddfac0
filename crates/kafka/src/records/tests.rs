//! Batches survive the way there and back, agree with the codec, and hostile ones end in an error.

use kafka_protocol::records::RecordBatchDecoder;
use proptest::prelude::*;

use super::{head::CHECKED_FROM, *};

const ALL: [Compression; 5] =
    [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];

fn options(compression: Compression) -> BatchOptions {
    BatchOptions { compression, producer: Producer { id: 7, epoch: 3, sequence: 40 }, transactional: true }
}

fn bytes() -> impl Strategy<Value = Bytes> {
    prop::collection::vec(any::<u8>(), 0..40).prop_map(Bytes::from)
}

fn record() -> impl Strategy<Value = Record> {
    let headers = prop::collection::vec((bytes(), prop::option::of(bytes())), 0..3);
    (prop::option::of(bytes()), prop::option::of(bytes()), headers, 0..2_000_000_000_000_i64)
        .prop_map(|(key, value, headers, timestamp)| Record { key, value, headers, timestamp })
}

fn read(bytes: Bytes) -> Vec<Batch> {
    decode_batches(bytes).collect::<Result<_, _>>().unwrap()
}

#[test]
fn a_batch_that_the_fetch_cut_off_waits_for_the_next() {
    let whole = encode_batch(&[Record::default(), Record::default()], &options(Compression::None)).unwrap();
    let mut two = BytesMut::from(&whole[..]);
    two.extend_from_slice(&whole);
    for length in whole.len()..two.len() {
        assert_eq!(read(two.clone().freeze().slice(..length)).len(), 1);
    }
    assert_eq!(read(two.freeze()).len(), 2);
}

#[test]
fn a_changed_byte_is_noticed() {
    let whole = encode_batch(&[Record { value: Some("abc".into()), ..Record::default() }], &options(Compression::None));
    let mut changed = BytesMut::from(&whole.unwrap()[..]);
    let last = changed.len() - 2;
    changed[last] ^= 1;
    assert!(matches!(decode_batches(changed.freeze()).next(), Some(Err(RecordsError::Checksum))));
}

#[test]
fn old_formats_are_called_by_their_number() {
    let mut old = BytesMut::from(&encode_batch(&[Record::default()], &options(Compression::None)).unwrap()[..]);
    old[16] = 1;
    assert!(matches!(decode_batches(old.freeze()).next(), Some(Err(RecordsError::Format(1)))));
}

#[test]
fn bytes_that_grow_without_end_are_refused() {
    for compression in [Compression::Gzip, Compression::Lz4, Compression::Zstd, Compression::Snappy] {
        let bomb = compression.compress(Bytes::from(vec![0; 129 * 1024 * 1024])).unwrap();
        let result = compression.decompress(bomb);
        assert!(matches!(result, Err(RecordsError::TooLarge(_))), "{compression:?}");
    }
}

/// A batch around `body`, with a right checksum.
fn sealed(compression: Compression, body: Bytes, count: i32) -> Bytes {
    let empty = encode_batch(&[Record::default()], &options(compression)).unwrap();
    let (head, _) = BatchHead::read(&empty).unwrap().unwrap();
    let head = BatchHead { count, last_offset: i64::from(count) - 1, ..head };
    head.seal(&compression.compress(body).unwrap()).unwrap()
}

/// Length, then attributes, deltas, no key, no value, no headers.
const SMALLEST: [u8; SMALLEST_RECORD] = [12, 0, 0, 0, 1, 1, 0];

#[test]
fn many_small_records_are_refused_before_they_take_memory() {
    // 14 MB that would take 208 when read.
    let count = 2_000_000;
    let body = Bytes::from(SMALLEST.repeat(count));
    for compression in ALL {
        let batch = sealed(compression, body.clone(), count as i32);
        assert!(compression == Compression::None || batch.len() < 1024 * 1024, "{compression:?} is small");
        let result = decode_batches(batch.clone()).next();
        assert!(matches!(result, Some(Err(RecordsError::TooLarge(_)))), "{compression:?}");
        // Who looks at one after the other needs no memory for them.
        let open = open_batches(batch).next().unwrap().unwrap();
        assert_eq!(open.records.take(1000).filter(Result::is_ok).count(), 1000);
    }
}

#[test]
fn many_small_headers_are_refused_too() {
    let of_headers = |count: usize| {
        let mut record = BytesMut::from(&[0, 0, 0, 1, 1][..]);
        write_signed(&mut record, count as i64);
        record.extend(std::iter::repeat_n([0, 1], count).flatten());
        let mut body = BytesMut::new();
        write_signed(&mut body, record.len() as i64);
        body.extend_from_slice(&record);
        body.freeze()
    };
    let alone = sealed(Compression::Zstd, of_headers(3_000_000), 1);
    assert!(matches!(decode_batches(alone).next(), Some(Err(RecordsError::TooLarge(_)))));
    let together = sealed(Compression::Zstd, of_headers(100_000).repeat(30).into(), 30);
    assert!(matches!(decode_batches(together).next(), Some(Err(RecordsError::TooLarge(_)))));
    assert_eq!(read(sealed(Compression::Zstd, of_headers(100_000), 1))[0].records[0].record.headers.len(), 100_000);
}

#[test]
fn a_negative_number_of_headers_is_malformed() {
    let [length, .., headers] = SMALLEST;
    assert_eq!((length, headers), (12, 0));
    let record = Bytes::from_static(&[12, 0, 0, 0, 1, 1, 1]);
    assert!(matches!(decode_batches(sealed(Compression::None, record, 1)).next(), Some(Err(RecordsError::Malformed))));
}

#[test]
fn bare_snappy_is_read_too() {
    let bare = snap::raw::Encoder::new().compress_vec(b"hello hello hello").unwrap();
    assert_eq!(Compression::Snappy.decompress(bare.into()).unwrap(), "hello hello hello");
}

/// As the codec writes and reads it: a second opinion about the layout.
#[test]
fn the_codec_reads_our_batches() {
    let records = [
        Record { key: Some("k".into()), value: Some("v".into()), headers: vec![("h".into(), None)], timestamp: 5 },
        Record { key: None, value: None, headers: vec![], timestamp: 3 },
    ];
    let mut batch = encode_batch(&records, &options(Compression::None)).unwrap();
    let set = RecordBatchDecoder::decode(&mut batch).unwrap();
    assert_eq!(set.records.len(), 2);
    for (ours, theirs) in records.iter().zip(&set.records) {
        assert_eq!((&ours.key, &ours.value, ours.timestamp), (&theirs.key, &theirs.value, theirs.timestamp));
        assert!(theirs.transactional && !theirs.control);
        assert_eq!((theirs.producer_id, theirs.producer_epoch), (7, 3));
    }
    assert_eq!(set.records.iter().map(|record| record.sequence).collect::<Vec<_>>(), [40, 41]);
    assert!(set.records[0].headers.contains_key("h".as_bytes()));
}

#[test]
fn a_batch_at_its_place_is_the_same_batch() {
    let sent = encode_batch(&[Record::default(), Record::default()], &options(Compression::Zstd)).unwrap();
    let placed = &read(place(&sent, 40, 3))[0];
    assert_eq!((placed.head.base_offset, placed.head.last_offset, placed.head.leader_epoch), (40, 41, 3));
    assert_eq!(placed.records.iter().map(|stored| stored.offset).collect::<Vec<_>>(), [40, 41]);
    assert_eq!(placed.head.producer, options(Compression::Zstd).producer);
}

#[test]
fn a_marker_is_read_by_the_codec_too() {
    for commit in [true, false] {
        let marker = encode_marker(Producer { id: 7, epoch: 3, sequence: 40 }, commit, 0, 9).unwrap();
        let head = read(marker.clone())[0].head;
        assert_eq!((head.control, head.transactional, head.producer.sequence), (true, true, -1));
        let theirs = RecordBatchDecoder::decode(&mut marker.clone()).unwrap();
        assert!(theirs.records[0].control);
        assert_eq!(theirs.records[0].key.as_deref(), Some(&[0, 0, 0, u8::from(commit)][..]));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_was_written_is_read(records in prop::collection::vec(record(), 1..6)) {
        for compression in ALL {
            let batches = read(encode_batch(&records, &options(compression)).unwrap());
            prop_assert_eq!(batches.len(), 1);
            let head = batches[0].head;
            prop_assert_eq!((head.compression, head.transactional, head.control), (compression, true, false));
            prop_assert_eq!(head.producer, options(compression).producer);
            prop_assert_eq!(head.last_offset, records.len() as i64 - 1);
            let read: Vec<_> = batches[0].records.iter().map(|stored| stored.record.clone()).collect();
            prop_assert_eq!(&read, &records);
        }
    }

    /// The checksum is made right again, or nothing would get past it.
    #[test]
    fn hostile_batches_end_in_an_error(
        records in prop::collection::vec(record(), 1..4),
        wounds in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
    ) {
        for compression in ALL {
            let mut batch = BytesMut::from(&encode_batch(&records, &options(compression)).unwrap()[..]);
            for (place, byte) in &wounds {
                let place = CHECKED_FROM + place.index(batch.len() - CHECKED_FROM);
                batch[place] = *byte;
            }
            let checksum = crc32c::crc32c(&batch[CHECKED_FROM..]);
            batch[17..CHECKED_FROM].copy_from_slice(&checksum.to_be_bytes());
            for _ in decode_batches(batch.freeze()) {}
        }
    }

    #[test]
    fn noise_ends(noise in prop::collection::vec(any::<u8>(), 0..200)) {
        for _ in decode_batches(Bytes::from(noise)) {}
    }
}
