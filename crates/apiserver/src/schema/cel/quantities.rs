//! Amounts such as `500m` or `1.5Gi` as rules count with them: exactly, however many digits it takes.

use std::cmp::Ordering;
use std::sync::Arc;

use kube_cel::cel::extractors::This;
use kube_cel::cel::objects::{Opaque, Value};
use kube_cel::cel::{Context, ExecutionError, ResolveResult};

use super::functions::failed;
use crate::schema::gotext::{WRONG_QUANTITY as WRONG_FORMAT, WRONG_QUANTITY_SUFFIX as WRONG_SUFFIX};

const WRONG_NUMBER: &str = "unable to parse numeric part of quantity";

/// Amounts with more digits than this are not counted with. The original has no limit, and takes `1e1000000000` at its
/// word.
const MAX_DIGITS: usize = 128;
const TOO_LONG: &str = "quantities of more than 128 digits are not supported by this server";

/// Nothing finer than a billionth is kept.
const NANO: i32 = -9;

/// What the original caps amounts with a binary suffix at.
const LARGEST_BINARY: i64 = i64::MAX;

/// An amount: digits, times a power of ten.
#[derive(Debug, Clone)]
pub(super) struct Quantity {
    negative: bool,
    /// From the most significant one, which is no zero. Zero has none.
    digits: Vec<u8>,
    power: i32,
    /// Whether the original keeps it as a number of 64 bits. Only such can be integers: `1.5Ki` is not one.
    is_small: bool,
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.compare(other) == Ordering::Equal
    }
}

impl Eq for Quantity {}

impl Opaque for Quantity {
    fn runtime_type_name(&self) -> &str {
        "kubernetes.Quantity"
    }
}

impl From<i64> for Quantity {
    fn from(number: i64) -> Self {
        Self { negative: number < 0, digits: digits_of(number.unsigned_abs()), power: 0, is_small: true }
    }
}

impl Quantity {
    /// Reads an amount, or says what is wrong with the text in the original's words.
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        if text.is_empty() {
            return Err(WRONG_FORMAT);
        }
        let (negative, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (whole, rest) = leading_digits(unsigned.trim_start_matches('0'));
        let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), leading_digits);
        let suffix = Suffix::read(suffix)?;
        let amount = match small(whole, fraction, suffix) {
            Some(amount) => amount,
            // Nothing but a point and a suffix is something only as long as nobody looks at the digits.
            None if !unsigned.starts_with(|c: char| c.is_ascii_digit()) && fraction.is_empty() => {
                return Err(WRONG_NUMBER);
            }
            None => large(whole, fraction, suffix).ok_or(TOO_LONG)?,
        };
        Ok(Self { negative: negative && !amount.digits.is_empty(), ..amount })
    }

    fn sign(&self) -> i64 {
        match (self.digits.is_empty(), self.negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        }
    }

    fn compare(&self, other: &Self) -> Ordering {
        let magnitudes = || {
            let places = |of: &Self| of.digits.len() as i64 + i64::from(of.power);
            let digit = |of: &Self, at: usize| of.digits.get(at).copied().unwrap_or_default();
            let longest = self.digits.len().max(other.digits.len());
            let digits = || (0..longest).map(|at| digit(self, at)).cmp((0..longest).map(|at| digit(other, at)));
            places(self).cmp(&places(other)).then_with(digits)
        };
        match self.sign().cmp(&other.sign()) {
            Ordering::Equal if self.digits.is_empty() => Ordering::Equal,
            Ordering::Equal if self.negative => magnitudes().reverse(),
            Ordering::Equal => magnitudes(),
            unequal => unequal,
        }
    }

    /// The digits if they stood for multiples of a smaller power of ten.
    fn at_power(&self, power: i32) -> Option<Vec<u8>> {
        let mut digits = self.digits.clone();
        if !digits.is_empty() {
            let zeros = usize::try_from(i64::from(self.power) - i64::from(power)).ok()?;
            let length = digits.len().checked_add(zeros).filter(|length| *length <= MAX_DIGITS)?;
            digits.resize(length, 0);
        }
        Some(digits)
    }

    /// The sum; nothing if it takes too many digits.
    fn plus(&self, other: &Self) -> Option<Self> {
        if self.is_small && other.is_small {
            match (self.digits.is_empty(), other.digits.is_empty()) {
                (_, true) => return Some(self.clone()),
                (true, false) => return Some(other.clone()),
                (false, false) => {}
            }
        }
        let power = self.power.min(other.power);
        let (ours, theirs) = (self.at_power(power)?, other.at_power(power)?);
        let mut is_small = self.is_small && other.is_small;
        for (digits, negative) in [(&ours, self.negative), (&theirs, other.negative)] {
            is_small &= number_of(digits, negative).is_some();
        }
        let (digits, negative) = if self.negative == other.negative {
            (added(&ours, &theirs), self.negative)
        } else {
            match by_size(&ours, &theirs) {
                Ordering::Less => (subtracted(&theirs, &ours), other.negative),
                _ => (subtracted(&ours, &theirs), self.negative),
            }
        };
        let negative = negative && !digits.is_empty();
        is_small &= number_of(&digits, negative).is_some();
        Some(Self { negative, digits, power, is_small })
    }

    fn minus(&self, other: &Self) -> Option<Self> {
        let negative = !other.negative && !other.digits.is_empty();
        self.plus(&Self { negative, ..other.clone() })
    }

    /// A whole number of 64 bits, if it is one for the original, which does not look for factors of ten: `1000m` is none.
    fn integer(&self) -> Option<i64> {
        let number = number_of(&self.digits, self.negative).filter(|_| self.is_small)?;
        match u32::try_from(self.power).ok()? {
            _ if number == 0 => Some(0),
            power => number.checked_mul(10_i64.checked_pow(power)?),
        }
    }

    fn approximately(&self) -> f64 {
        let digits: String = self.digits.iter().map(|digit| char::from(b'0' + digit)).collect();
        let base: f64 = digits.parse().unwrap_or_default();
        let base = if self.negative { -base } else { base };
        if self.power == 0 { base } else { base * power_of_ten(self.power) }
    }
}

/// What follows the digits.
#[derive(Clone, Copy)]
enum Suffix {
    Ten(i32),
    Two(u32),
}

impl Suffix {
    fn read(text: &str) -> Result<Self, &'static str> {
        let rest = text.trim_start_matches(|c: char| "eEinumkKMGTP".contains(c));
        let rest = rest.strip_prefix(['-', '+']).unwrap_or(rest);
        if !rest.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(WRONG_FORMAT);
        }
        Ok(match text {
            "n" => Self::Ten(-9),
            "u" => Self::Ten(-6),
            "m" => Self::Ten(-3),
            "" => Self::Ten(0),
            "k" => Self::Ten(3),
            "M" => Self::Ten(6),
            "G" => Self::Ten(9),
            "T" => Self::Ten(12),
            "P" => Self::Ten(15),
            "E" => Self::Ten(18),
            "Ki" => Self::Two(10),
            "Mi" => Self::Two(20),
            "Gi" => Self::Two(30),
            "Ti" => Self::Two(40),
            "Pi" => Self::Two(50),
            "Ei" => Self::Two(60),
            _ => {
                let exponent = text.strip_prefix(['e', 'E']).ok_or(WRONG_SUFFIX)?;
                let exponent: i64 = exponent.parse().map_err(|_| WRONG_SUFFIX)?;
                // The original keeps 32 bits of it, whatever is in the others.
                Self::Ten(exponent as i32)
            }
        })
    }
}

/// What the original keeps as a number of 64 bits, because it surely fits.
fn small(whole: &str, fraction: &str, suffix: Suffix) -> Option<Quantity> {
    let length = whole.len().max(1) + fraction.len();
    let fraction_places = i32::try_from(fraction.len()).ok()?;
    let (power, factor) = match suffix {
        Suffix::Ten(power) if length <= 18 => (power.wrapping_sub(fraction_places), 1),
        Suffix::Two(power) if fraction.is_empty() && length + power as usize * 3 / 10 <= 14 => (0, 1_i64 << power),
        _ => return None,
    };
    let number: i64 =
        if whole.is_empty() && fraction.is_empty() { 0 } else { [whole, fraction].concat().parse().ok()? };
    let number = number.checked_mul(factor).filter(|_| power >= NANO)?;
    Some(Quantity { power, ..Quantity::from(number) })
}

/// What it keeps as a decimal of any length: in billionths, rounded up.
fn large(whole: &str, fraction: &str, suffix: Suffix) -> Option<Quantity> {
    let digits = whole.bytes().chain(fraction.bytes()).map(|digit| digit - b'0');
    // A digit more than is counted with is too many, unless it is rounded away.
    let digits: Vec<u8> = digits.skip_while(|digit| *digit == 0).collect();
    let (digits, power) = match suffix {
        Suffix::Ten(power) => (digits, i64::from(power) - fraction.len() as i64),
        Suffix::Two(_) if digits.len() > 2 * MAX_DIGITS => return None,
        Suffix::Two(power) => (multiplied(&digits, 1 << power), -(fraction.len() as i64)),
    };
    if digits.is_empty() {
        return Some(Quantity { is_small: false, ..Quantity::from(0) });
    }
    let kept = digits.len() as i64 + power - i64::from(NANO);
    let mut rounded: Vec<u8> = match usize::try_from(kept) {
        Ok(kept) if kept > MAX_DIGITS => return None,
        Ok(kept) => digits.iter().copied().chain(std::iter::repeat(0)).take(kept).collect(),
        Err(_) => Vec::new(),
    };
    if digits.iter().skip(rounded.len()).any(|digit| *digit > 0) {
        rounded = added(&rounded, &[1]);
    }
    let amount = Quantity { negative: false, digits: rounded, power: NANO, is_small: false };
    let cap = Quantity { is_small: false, ..Quantity::from(LARGEST_BINARY) };
    let is_capped = matches!(suffix, Suffix::Two(_)) && amount.compare(&cap) == Ordering::Greater;
    Some(if is_capped { cap } else { amount })
}

fn leading_digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

fn digits_of(mut number: u64) -> Vec<u8> {
    let mut digits = Vec::new();
    while number > 0 {
        digits.push((number % 10) as u8);
        number /= 10;
    }
    digits.reverse();
    digits
}

/// The number that digits make, if 64 bits hold it.
fn number_of(digits: &[u8], negative: bool) -> Option<i64> {
    let number = digits
        .iter()
        .try_fold(0_i128, |number, digit| Some(number * 10 + i128::from(*digit)).filter(|number| *number <= 1 << 63))?;
    i64::try_from(if negative { -number } else { number }).ok()
}

fn by_size(a: &[u8], b: &[u8]) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

/// The digit at a place, counted from the last.
fn at_place(digits: &[u8], place: usize) -> u8 {
    digits.len().checked_sub(place + 1).map_or(0, |at| digits[at])
}

fn added(a: &[u8], b: &[u8]) -> Vec<u8> {
    let (mut sum, mut carry) = (Vec::with_capacity(a.len().max(b.len()) + 1), 0);
    for place in 0..a.len().max(b.len()) {
        let total = at_place(a, place) + at_place(b, place) + carry;
        sum.push(total % 10);
        carry = total / 10;
    }
    if carry > 0 {
        sum.push(carry);
    }
    sum.reverse();
    sum
}

/// What is left of the larger.
fn subtracted(large: &[u8], small: &[u8]) -> Vec<u8> {
    let (mut rest, mut borrowed) = (Vec::with_capacity(large.len()), 0);
    for place in 0..large.len() {
        let less = at_place(small, place) + borrowed;
        let digit = at_place(large, place);
        borrowed = u8::from(digit < less);
        rest.push(digit + 10 * borrowed - less);
    }
    while rest.last() == Some(&0) {
        rest.pop();
    }
    rest.reverse();
    rest
}

fn multiplied(digits: &[u8], factor: u64) -> Vec<u8> {
    let (mut product, mut carry) = (Vec::with_capacity(digits.len() + 20), 0_u128);
    for digit in digits.iter().rev() {
        let total = u128::from(*digit) * u128::from(factor) + carry;
        product.push((total % 10) as u8);
        carry = total / 10;
    }
    while carry > 0 {
        product.push((carry % 10) as u8);
        carry /= 10;
    }
    product.reverse();
    product
}

/// As the original's library makes it, of two powers that it has in tables: so it is off by as much.
fn power_of_ten(power: i32) -> f64 {
    let exactly = |power: i32| format!("1e{power}").parse::<f64>().unwrap_or_default();
    match power {
        0..=308 => exactly(power / 32 * 32) * exactly(power % 32),
        -323..=-1 => exactly(power / 32 * 32) / exactly(-(power % 32)),
        309.. => f64::INFINITY,
        _ => 0.0,
    }
}

/// Puts the functions of amounts in the place of the interpreter's own.
pub(super) fn add(context: &mut Context<'_>) {
    context.add_function("quantity", |text: Arc<String>| -> ResolveResult {
        Quantity::parse(&text).map(made).map_err(|why| failed("quantity", why))
    });
    context.add_function("isQuantity", |text: Arc<String>| -> ResolveResult {
        Ok(Value::Bool(matches!(Quantity::parse(&text), Ok(_) | Err(TOO_LONG))))
    });
    context.add_function("sign", |This(of): This<Value>| -> ResolveResult { Ok(Value::Int(amount(&of)?.sign())) });
    context.add_function("isInteger", |This(of): This<Value>| -> ResolveResult {
        Ok(Value::Bool(amount(&of)?.integer().is_some()))
    });
    context.add_function("asInteger", |This(of): This<Value>| -> ResolveResult {
        let integer = amount(&of)?.integer();
        integer.map(Value::Int).ok_or_else(|| failed("asInteger", "cannot convert value to integer"))
    });
    context.add_function("asApproximateFloat", |This(of): This<Value>| -> ResolveResult {
        Ok(Value::Float(amount(&of)?.approximately()))
    });
    context.add_function("add", |This(of): This<Value>, other: Value| -> ResolveResult {
        let sum = amount(&of)?.plus(&amount_or_number(other)?);
        sum.map(made).ok_or_else(|| failed("add", TOO_LONG))
    });
    context.add_function("sub", |This(of): This<Value>, other: Value| -> ResolveResult {
        let rest = amount(&of)?.minus(&amount_or_number(other)?);
        rest.map(made).ok_or_else(|| failed("sub", TOO_LONG))
    });
}

/// How two amounts compare; nothing if one of them is something else.
pub(super) fn compared(a: &Value, b: &Value) -> Option<Ordering> {
    Some(amount(a).ok()?.compare(amount(b).ok()?))
}

fn made(quantity: Quantity) -> Value {
    Value::Opaque(Arc::new(quantity))
}

fn amount(value: &Value) -> Result<&Quantity, ExecutionError> {
    match value {
        Value::Opaque(opaque) => opaque.downcast_ref().ok_or(ExecutionError::NoSuchOverload),
        _ => Err(ExecutionError::NoSuchOverload),
    }
}

fn amount_or_number(value: Value) -> Result<Quantity, ExecutionError> {
    match value {
        Value::Int(number) => Ok(Quantity::from(number)),
        other => amount(&other).cloned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Quantity {
        Quantity::parse(text).unwrap_or_else(|why| panic!("{text}: {why}"))
    }

    #[test]
    fn amounts_are_compared_exactly_however_they_are_written() {
        for (a, b) in [
            ("1000m", "1"),
            ("1.5Gi", "1536Mi"),
            ("1k", "1e3"),
            ("100E", "100000000000000000000"),
            ("0.1n", "1n"),
            ("-0.1n", "-1n"),
            ("-0", "0m"),
            ("+5", "5."),
            ("00.5", ".5"),
            ("16Ei", "9223372036854775807"),
            ("-16Ei", "-9223372036854775807"),
            // Neither has digits, and both are taken for nothing.
            ("-", "Ki"),
            ("1e4294967299", "1k"),
        ] {
            assert_eq!(read(a), read(b), "{a} and {b}");
        }
        for (less, more) in [
            ("-1", "-999m"),
            ("-1", "0"),
            ("100000000000000000000000000000000000000001", "100000000000000000000000000000000000000002"),
            ("99999999999999999999E", "1e40"),
            ("1e-9", "1.1e-9"),
            ("1e2000000000", "1.1e2000000000"),
        ] {
            assert_eq!(read(less).compare(&read(more)), Ordering::Less, "{less} and {more}");
            assert_eq!(read(more).compare(&read(less)), Ordering::Greater, "{more} and {less}");
        }
    }

    #[test]
    fn amounts_are_added_and_taken_away_exactly() {
        let nines = "9".repeat(40);
        for (a, b, sum) in [
            ("1", "500m", "1.5"),
            ("5", "-7", "-2"),
            ("-5", "5", "0"),
            ("9223372036854775807", "1", "9223372036854775808"),
            ("9223372036854775807", "1n", "9223372036854775807.000000001"),
            (nines.as_str(), "1", "1e40"),
            ("1e40", "-1", nines.as_str()),
            ("0", "1e100", "1e100"),
        ] {
            let (a, b, sum) = (read(a), read(b), read(sum));
            assert_eq!(a.plus(&b), Some(sum.clone()), "{a:?} + {b:?}");
            assert_eq!(sum.minus(&b), Some(a.clone()), "{sum:?} - {b:?}");
        }
        assert_eq!(read("1").minus(&Quantity::from(i64::MIN)), Some(read("9223372036854775809")));
        // Nobody has the digits for this.
        assert_eq!(read("1e1000000000").plus(&read("1")), None);
        assert_eq!(Quantity::parse(&"1".repeat(200)).err(), Some(TOO_LONG));
    }

    #[test]
    fn whole_numbers_are_what_the_original_takes_for_them() {
        for (text, integer) in [
            ("5", Some(5)),
            ("50k", Some(50_000)),
            ("2Ki", Some(2048)),
            ("9E", Some(9_000_000_000_000_000_000)),
            ("10E", None),
            ("1000m", None),
            ("1.0", None),
            ("1.5Ki", None),
            ("0m", None),
            ("0e300", Some(0)),
            ("1e300", None),
            ("999999999999999999", Some(999_999_999_999_999_999)),
            ("1000000000000000000", None),
            ("-7", Some(-7)),
        ] {
            assert_eq!(read(text).integer(), integer, "{text}");
        }
        assert_eq!(read("9E").plus(&read("1")).and_then(|sum| sum.integer()), Some(9_000_000_000_000_000_001));
        assert_eq!(read("9E").plus(&read("9E")).and_then(|sum| sum.integer()), None);
    }

    #[test]
    fn amounts_are_roughly_floats() {
        for (text, float) in
            [("50703k", 50_703_000.0), ("-2500m", -2.5), ("0", 0.0), ("1e400", f64::INFINITY), ("1e30", 1e30)]
        {
            assert_eq!(read(text).approximately(), float, "{text}");
        }
        let long = read("123456789012345678901234567890").approximately();
        assert!((long / 1.234_567_890_123_456_8e29 - 1.0).abs() < 1e-15, "{long}");
    }

    #[test]
    fn what_is_no_amount_is_refused_in_the_originals_words() {
        for (text, why) in [
            ("", WRONG_FORMAT),
            ("x", WRONG_FORMAT),
            ("1.2.3", WRONG_FORMAT),
            (" 1", WRONG_FORMAT),
            ("1 Gi", WRONG_FORMAT),
            ("--1", WRONG_SUFFIX),
            ("1KiB", WRONG_FORMAT),
            ("1mm", WRONG_SUFFIX),
            ("1e", WRONG_SUFFIX),
            ("1e99999999999999999999", WRONG_SUFFIX),
            (".e-10", WRONG_NUMBER),
        ] {
            assert_eq!(Quantity::parse(text).err(), Some(why), "{text:?}");
        }
    }
}
