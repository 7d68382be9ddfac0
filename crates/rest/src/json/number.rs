//! Java's `double`: how it is spelled, and how it gets through serde when it is not a number.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::{Serialize, Serializer};

/// What stands for numbers that JSON does not have, between [`Double`] and the writer. No body has integers of this size.
pub(super) const NOT_A_NUMBER: i128 = i128::MAX;
pub(super) const INFINITE: i128 = i128::MAX - 1;
pub(super) const NEGATIVE_INFINITE: i128 = i128::MIN;

/// A fraction in a body. Equal if the bits are, so that bodies can be compared.
#[derive(Clone, Copy, Debug, Default)]
pub struct Double(pub f64);

impl From<f64> for Double {
    fn from(value: f64) -> Self {
        Self(value)
    }
}

impl PartialEq for Double {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0 || (self.0.is_nan() && other.0.is_nan())
    }
}

/// In Java's spelling.
impl fmt::Display for Double {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&java_double(self.0))
    }
}

impl Serialize for Double {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_finite() {
            serializer.serialize_f64(self.0)
        } else if self.0.is_nan() {
            serializer.serialize_i128(NOT_A_NUMBER)
        } else if self.0.is_sign_positive() {
            serializer.serialize_i128(INFINITE)
        } else {
            serializer.serialize_i128(NEGATIVE_INFINITE)
        }
    }
}

impl<'de> Deserialize<'de> for Double {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;

        impl Visitor<'_> for Any {
            type Value = Double;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number")
            }

            fn visit_f64<E>(self, value: f64) -> Result<Double, E> {
                Ok(Double(value))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Double, E> {
                Ok(Double(value as f64))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Double, E> {
                Ok(Double(value as f64))
            }

            fn visit_unit<E>(self) -> Result<Double, E> {
                Ok(Double(f64::NAN))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Double, E> {
                match text {
                    "NaN" => Ok(Double(f64::NAN)),
                    "Infinity" => Ok(Double(f64::INFINITY)),
                    "-Infinity" => Ok(Double(f64::NEG_INFINITY)),
                    other => Err(E::invalid_value(de::Unexpected::Str(other), &self)),
                }
            }
        }

        deserializer.deserialize_any(Any)
    }
}

/// A number as `Double.toString` writes it: at least one digit after the point, an exponent for the very small and the
/// very large.
pub fn java_double(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let size = value.abs();
    if size == 0.0 || (1e-3..1e7).contains(&size) {
        return with_point(&value.to_string());
    }
    let scientific = format!("{value:E}");
    match scientific.split_once('E') {
        Some((mantissa, exponent)) => format!("{}E{exponent}", with_point(mantissa)),
        None => scientific,
    }
}

fn with_point(digits: &str) -> String {
    if digits.contains('.') { digits.to_owned() } else { format!("{digits}.0") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_spelled_as_java_spells_them() {
        let cases = [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (100000.0, "100000.0"),
            (9999999.0, "9999999.0"),
            (1e7, "1.0E7"),
            (123456789.0, "1.23456789E8"),
            (0.001, "0.001"),
            (0.00099, "9.9E-4"),
            (-7.105427357601002e-15, "-7.105427357601002E-15"),
            (1.3713704347610474, "1.3713704347610474"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ];
        for (value, text) in cases {
            assert_eq!(java_double(value), text);
        }
    }
}
