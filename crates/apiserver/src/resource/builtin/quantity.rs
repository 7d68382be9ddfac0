//! Amounts such as `500m`, `1.5Gi` or `12e3`: reading, and the one way of writing each.

use serde_json::Value;

pub(crate) use crate::schema::gotext::{WRONG_QUANTITY as WRONG_FORMAT, WRONG_QUANTITY_SUFFIX as WRONG_SUFFIX};

/// Amounts are counted in billionths: nothing finer can be written.
const NANO: i128 = 1_000_000_000;
/// The original caps at what 63 bits hold.
const LARGEST: i128 = i64::MAX as i128 * NANO;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Binary,
    Decimal,
    Exponent,
}

/// The amount in billionths, or what is wrong with the text.
pub fn parse(text: &str) -> Result<i128, &'static str> {
    read(text).map(|(nanos, _)| nanos)
}

/// How the original writes a quantity given as text or number; `None` where it is not one.
pub(crate) fn canonical(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    let (nanos, form) = read(&text).ok()?;
    Some(write(nanos, form))
}

fn read(text: &str) -> Result<(i128, Form), &'static str> {
    let (negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let end = digits.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(digits.len());
    let (number, suffix) = digits.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
        return Err(WRONG_FORMAT);
    }
    let (multiplier, form) = suffix_of(suffix)?;
    // Digits beyond the cap change nothing but the length; reading them all would be the sender's to decide.
    let mut nanos: i128 = 0;
    let mut scale = NANO;
    for digit in whole.bytes() {
        nanos = nanos.saturating_mul(10).saturating_add(i128::from(digit - b'0') * NANO).min(LARGEST);
    }
    let mut rest = false;
    for digit in fraction.bytes() {
        scale /= 10;
        let part = i128::from(digit - b'0');
        nanos += part * scale;
        rest |= scale == 0 && part > 0;
    }
    let mut nanos = match multiplier {
        Multiplier::Times(factor) => nanos.saturating_mul(factor),
        Multiplier::Over(divisor) => {
            rest |= nanos % divisor > 0;
            nanos / divisor
        }
    };
    // What is finer than a billionth is rounded away from zero.
    if rest {
        nanos += 1;
    }
    let nanos = nanos.min(LARGEST);
    Ok((if negative { -nanos } else { nanos }, form))
}

enum Multiplier {
    Times(i128),
    Over(i128),
}

fn suffix_of(suffix: &str) -> Result<(Multiplier, Form), &'static str> {
    let binary = |power: u32| Ok((Multiplier::Times(1 << (10 * power)), Form::Binary));
    let decimal = |power: u32| Ok((Multiplier::Times(10_i128.pow(power)), Form::Decimal));
    let small = |power: u32| Ok((Multiplier::Over(10_i128.pow(power)), Form::Decimal));
    match suffix {
        "" => decimal(0),
        "n" => small(9),
        "u" => small(6),
        "m" => small(3),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "Ki" => binary(1),
        "Mi" => binary(2),
        "Gi" => binary(3),
        "Ti" => binary(4),
        "Pi" => binary(5),
        "Ei" => binary(6),
        _ => {
            let known = |c: char| c.is_ascii_digit() || "eEinumkKMGTP+-".contains(c);
            let Some(exponent) = suffix.strip_prefix(['e', 'E']) else {
                return Err(if suffix.chars().all(known) { WRONG_SUFFIX } else { WRONG_FORMAT });
            };
            // Larger exponents would say nothing more: the amount is capped, or below a billionth.
            let exponent: i32 = exponent.parse().map_err(|_| WRONG_SUFFIX)?;
            let power = 10_i128.pow(exponent.unsigned_abs().min(18));
            let multiplier = if exponent < 0 { Multiplier::Over(power) } else { Multiplier::Times(power) };
            Ok((multiplier, Form::Exponent))
        }
    }
}

/// The largest suffix that leaves no fraction.
fn write(nanos: i128, form: Form) -> String {
    if nanos == 0 {
        return "0".into();
    }
    let whole = nanos % NANO == 0;
    let amount = nanos / NANO;
    if form == Form::Binary && whole && amount.abs() >= 1024 {
        let (mut amount, mut step) = (amount, 0);
        let suffixes = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
        while amount % 1024 == 0 && step + 1 < suffixes.len() {
            amount /= 1024;
            step += 1;
        }
        return format!("{amount}{}", suffixes[step]);
    }
    let (mut amount, mut power) = (nanos, -9);
    while amount % 1000 == 0 && power < 18 {
        amount /= 1000;
        power += 3;
    }
    let suffix = match (form, power) {
        (_, 0) => return amount.to_string(),
        (Form::Exponent, power) => return format!("{amount}e{power}"),
        (_, -9) => "n",
        (_, -6) => "u",
        (_, -3) => "m",
        (_, 3) => "k",
        (_, 6) => "M",
        (_, 9) => "G",
        (_, 12) => "T",
        (_, 15) => "P",
        _ => "E",
    };
    format!("{amount}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_way_to_write_an_amount() {
        for (given, written) in [
            ("1", "1"),
            ("0.5", "500m"),
            ("1.5Gi", "1536Mi"),
            ("1024Mi", "1Gi"),
            ("1000m", "1"),
            ("1000", "1k"),
            ("1024", "1024"),
            ("0", "0"),
            ("0Gi", "0"),
            ("12e3", "12e3"),
            ("1e3", "1e3"),
            ("-5", "-5"),
            ("+5", "5"),
            (".5", "500m"),
            ("5.", "5"),
            ("0.1n", "1n"),
            ("100000000000000000000000000", "9223372036854775807"),
        ] {
            assert_eq!(canonical(&Value::from(given)).as_deref(), Some(written), "{given}");
        }
        assert_eq!(canonical(&Value::from(2000)).as_deref(), Some("2k"));
    }

    #[test]
    fn what_is_no_amount_is_refused_in_the_originals_words() {
        for text in ["", "x", "1.2.3", "1 Gi", "five", "-", "."] {
            assert_eq!(parse(text), Err(WRONG_FORMAT), "{text:?}");
        }
        for text in ["1i", "1KiB", "5mm", "1e", "1e99999999999"] {
            assert!(parse(text).is_err(), "{text:?}");
        }
        assert_eq!(parse("1mm"), Err(WRONG_SUFFIX));
    }
}
