//! JSON as Gson speaks it: numbers in Java's spelling, bare `NaN` and `Infinity`, HTML characters escaped. Strict parsers
//! reject the bare words, so reading takes them out of the way first.

mod number;
mod read;
mod write;

pub use number::{Double, java_double};
pub use read::from_slice;
pub use write::{schema, to_string};

use std::fmt::Display;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::{Serialize, Serializer};

/// A key of a JSON object that stands for something else than text, such as a broker's number. serde forgets on the way
/// through flattened structs that numbers may be keys; this remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key<T>(pub T);

impl<T: Display> Serialize for Key<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de, T: FromStr> Deserialize<'de> for Key<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FromText<T>(PhantomData<T>);

        impl<T: FromStr> Visitor<'_> for FromText<T> {
            type Value = Key<T>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a key")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Key<T>, E> {
                text.parse().map(Key).map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }

        deserializer.deserialize_str(FromText(PhantomData))
    }
}

/// `version` of every body: always 1. Other numbers are read and forgotten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Version;

impl Serialize for Version {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(1)
    }
}

impl<'de> Deserialize<'de> for Version {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        i64::deserialize(deserializer).map(|_| Self)
    }
}
