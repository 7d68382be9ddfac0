//! Resource versions as numbers: what clients may only compare and hand back, the server counts.

/// The number that a version is; an empty one is 0. The complaint is that of Go, which the original passes on.
pub(super) fn parse(text: &str) -> Result<u64, String> {
    if text.is_empty() {
        return Ok(0);
    }
    let why = if text.bytes().all(|byte| byte.is_ascii_digit()) { "value out of range" } else { "invalid syntax" };
    // Rust reads a sign as well.
    let number = text.parse().ok().filter(|_| !text.starts_with('+'));
    number.ok_or_else(|| format!("strconv.ParseUint: parsing {text:?}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_digits_make_a_version() {
        assert_eq!((parse(""), parse("0"), parse("0042")), (Ok(0), Ok(0), Ok(42)));
        assert_eq!(parse("18446744073709551615"), Ok(u64::MAX));
        for (text, why) in [
            ("abc", "invalid syntax"),
            ("+5", "invalid syntax"),
            ("-1", "invalid syntax"),
            ("1_0", "invalid syntax"),
            ("18446744073709551616", "value out of range"),
        ] {
            assert_eq!(parse(text), Err(format!("strconv.ParseUint: parsing {text:?}: {why}")));
        }
    }
}
