//! Kubernetes' way of writing sizes, as far as bytes go.

/// Bytes of a quantity such as `10Gi`, `1.5T`, `1e9` or `500`; a fraction of a byte counts as a whole one. Nothing if it
/// is none, negative, or more than can be counted.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '+').unwrap_or(text.len());
    let (number, suffix) = text.split_at(split);
    let (whole, fraction) = number.trim_start_matches('+').split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{fraction}");
    let digits: u128 = if digits.is_empty() { return None } else { digits.parse().ok()? };
    let scale = 10u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let (factor, divisor) = factor(suffix)?;
    let product = digits.checked_mul(factor)?;
    u64::try_from(product.div_ceil(scale.checked_mul(divisor)?)).ok()
}

/// What a suffix multiplies and divides by.
fn factor(suffix: &str) -> Option<(u128, u128)> {
    let decimal = |power: u32| Some((10u128.pow(power), 1));
    let binary = |power: u32| Some((1u128 << (10 * power), 1));
    match suffix {
        "" => Some((1, 1)),
        "n" => Some((1, 1_000_000_000)),
        "u" => Some((1, 1_000_000)),
        "m" => Some((1, 1_000)),
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
        exponent => {
            let power: i32 = exponent.strip_prefix(['e', 'E'])?.parse().ok()?;
            let amount = 10u128.checked_pow(power.unsigned_abs())?;
            Some(if power < 0 { (1, amount) } else { (amount, 1) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_in_all_their_forms() {
        for (text, expected) in [
            ("500", 500),
            ("10Gi", 10 << 30),
            ("1.5Ki", 1536),
            ("1.5k", 1500),
            ("2T", 2_000_000_000_000),
            ("1e3", 1000),
            ("5E3", 5000),
            ("15e-1", 2),
            ("100m", 1),
            ("+7", 7),
            ("0", 0),
        ] {
            assert_eq!(bytes(text), Some(expected), "{text}");
        }
        for text in ["", ".", "Gi", "-1", "1GiB", "1 Gi", "1e", "99999999999999999999Ei", "1e99"] {
            assert_eq!(bytes(text), None, "{text}");
        }
    }
}
