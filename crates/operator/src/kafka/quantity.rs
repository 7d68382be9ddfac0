//! Amounts as people write them in Kubernetes: `100Gi`, `500m`, `1.5`, `12e3`.

/// An amount in thousandths. None if the text is none, or is negative.
pub fn milli(text: &str) -> Option<u128> {
    let text = text.trim();
    let number_end = text.find(|character| !number(character)).unwrap_or(text.len());
    let (number, suffix) = text.split_at(number_end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    let decimals = u32::try_from(fraction.len()).ok()?;
    // All that follows is one fraction: digits · 1000 · scale / 10^decimals, rounded up as Kubernetes does.
    let (scale, divisor): (u128, u128) = match suffix {
        "" => (1, 1),
        "n" => (1, 1_000_000_000),
        "u" => (1, 1_000_000),
        "m" => (1, 1_000),
        "k" => (1_000, 1),
        "M" => (1_000_000, 1),
        "G" => (1_000_000_000, 1),
        "T" => (1_000_000_000_000, 1),
        "P" => (1_000_000_000_000_000, 1),
        "E" => (1_000_000_000_000_000_000, 1),
        "Ki" => (1 << 10, 1),
        "Mi" => (1 << 20, 1),
        "Gi" => (1 << 30, 1),
        "Ti" => (1 << 40, 1),
        "Pi" => (1 << 50, 1),
        "Ei" => (1 << 60, 1),
        _ => exponent(suffix)?,
    };
    let divisor = divisor.checked_mul(10_u128.checked_pow(decimals)?)?;
    Some(digits.checked_mul(1000)?.checked_mul(scale)?.div_ceil(divisor))
}

/// `e3`, `E-2`.
fn exponent(suffix: &str) -> Option<(u128, u128)> {
    let power: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    let scale = 10_u128.checked_pow(power.unsigned_abs())?;
    Some(if power < 0 { (1, scale) } else { (scale, 1) })
}

/// An amount of bytes. None if the text is none.
pub fn bytes(text: &str) -> Option<u128> {
    milli(text).map(|milli| milli.div_ceil(1000))
}

/// The amount as the API server writes it back: `1024Mi` becomes `1Gi`, `1.5` becomes `1500m`. What it would not
/// understand, and what is finer than a thousandth or has an exponent, stays as it is.
///
/// Objects that hold amounts in another form would seem changed by somebody each time they are looked at.
pub fn canonical(text: &str) -> String {
    let written = text.trim();
    let is_fine = written.ends_with(['n', 'u']) || exponent(written.trim_start_matches(number)).is_some();
    let Some(amount) = milli(written).filter(|_| !is_fine) else { return written.to_owned() };
    let whole = amount / 1000;
    if written.ends_with('i') && amount.is_multiple_of(1000) && whole >= 1024 {
        scaled(whole, 1024, &["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"])
    } else {
        scaled(amount, 1000, &["m", "", "k", "M", "G", "T", "P", "E"])
    }
}

/// With the largest unit that leaves a whole number.
fn scaled(amount: u128, step: u128, units: &[&str]) -> String {
    if amount == 0 {
        return "0".to_owned();
    }
    let (mut amount, mut unit) = (amount, 0);
    while amount.is_multiple_of(step) && unit + 1 < units.len() {
        amount /= step;
        unit += 1;
    }
    format!("{amount}{}", units[unit])
}

fn number(character: char) -> bool {
    character.is_ascii_digit() || character == '.'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_written_as_the_api_server_does() {
        for (text, expected) in [
            ("8Gi", "8Gi"),
            ("1024Mi", "1Gi"),
            ("1.5Gi", "1536Mi"),
            ("0.5Ki", "512"),
            ("1.5", "1500m"),
            ("1000m", "1"),
            ("1000", "1k"),
            ("0", "0"),
            ("12e3", "12e3"),
            ("100n", "100n"),
            ("lots", "lots"),
            (" 2 ", "2"),
        ] {
            assert_eq!(canonical(text), expected, "{text}");
        }
    }

    #[test]
    fn amounts_are_read_as_kubernetes_reads_them() {
        for (text, expected) in [
            ("0", 0),
            ("1", 1_000),
            ("1.5", 1_500),
            ("500m", 500),
            (".5", 500),
            ("1.", 1_000),
            ("1Ki", 1_024_000),
            ("1.5Gi", 1_610_612_736_000),
            ("2k", 2_000_000),
            ("12e3", 12_000_000),
            ("5E-1", 500),
            ("1E", 1_000_000_000_000_000_000_000),
            ("100n", 1),
        ] {
            assert_eq!(milli(text), Some(expected), "{text}");
        }
        assert_eq!(bytes("100Gi"), Some(107_374_182_400));
        assert_eq!(bytes("1500m"), Some(2));
    }

    #[test]
    fn what_is_no_amount_is_none() {
        for text in
            ["", "Gi", "-1", "1GB", "1 Gi", "ten", "1.2.3", "1e", "1ee3", "1e99", "99999999999999999999999999Ei"]
        {
            assert_eq!(milli(text), None, "{text}");
        }
    }
}
