//! Numbers as somebody may have written them.
//!
//! The API server takes `format: int32` for a remark: without a `maximum` any number of 64 bits is admitted. Our
//! definitions have one ([`crate::crd`]), others do not. One resource that cannot be read makes every list that it is in
//! unreadable, and whoever watches the kind goes blind. So every number can be read, and one that is too large becomes one
//! that is refused in words by whoever judges the resource.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error, Visitor},
};

/// What a number becomes that is none: no broker, no disk and no limit is negative.
pub(crate) const NONE_SUCH: i32 = -1;

/// A whole number, the nearest that there is in 64 bits.
struct Whole(i64);

impl Whole {
    fn or_none_such(self) -> i32 {
        i32::try_from(self.0).unwrap_or(NONE_SUCH)
    }

    fn nearest(self) -> i32 {
        i32::try_from(self.0).unwrap_or(if self.0 < 0 { i32::MIN } else { i32::MAX })
    }
}

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;

        impl Visitor<'_> for Any {
            type Value = Whole;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number")
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Whole, E> {
                Ok(Whole(number))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Whole, E> {
                Ok(Whole(i64::try_from(number).unwrap_or(i64::MAX)))
            }
        }

        deserializer.deserialize_any(Any)
    }
}

/// A number that is judged by its size: one that is too large becomes the largest.
pub(crate) fn nearest<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i32, D::Error> {
    Ok(Whole::deserialize(deserializer)?.nearest())
}

/// The same, if it is there.
pub(crate) fn optional_nearest<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i32>, D::Error> {
    Ok(Option::<Whole>::deserialize(deserializer)?.map(Whole::nearest))
}

/// A number that names something or is passed on: one that is too large becomes [`NONE_SUCH`].
pub(crate) fn valid<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i32, D::Error> {
    Ok(Whole::deserialize(deserializer)?.or_none_such())
}

/// The same, if it is there.
pub(crate) fn optional_valid<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i32>, D::Error> {
    Ok(Option::<Whole>::deserialize(deserializer)?.map(Whole::or_none_such))
}

/// A list of them, if it is there.
pub(crate) fn optional_valid_list<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<i32>>, D::Error> {
    let list = Option::<Vec<Whole>>::deserialize(deserializer)?;
    Ok(list.map(|list| list.into_iter().map(Whole::or_none_such).collect()))
}

/// A list of them that is empty if it is not there.
pub(crate) fn valid_list<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<i32>, D::Error> {
    Ok(optional_valid_list(deserializer)?.unwrap_or_default())
}

/// What an operator has recorded: ids that no node can have are passed over.
pub(crate) fn recorded_ids<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<i32>, D::Error> {
    Ok(valid_list(deserializer)?.into_iter().filter(|id| *id >= 0).collect())
}
