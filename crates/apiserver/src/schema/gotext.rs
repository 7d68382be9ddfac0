//! Values as the original's messages write them.

/// What is said about text that is no quantity at all.
pub(crate) const WRONG_QUANTITY: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
/// What is said about a quantity with a suffix that nobody knows.
pub(crate) const WRONG_QUANTITY_SUFFIX: &str = "unable to parse quantity's suffix";

/// A number as Go's `%v` writes it: exponents only for the very large and very small.
pub(crate) fn float(value: f64) -> String {
    let exponent = if value == 0.0 { 0 } else { value.abs().log10().floor() as i32 };
    if (-4..6).contains(&exponent) {
        return value.to_string();
    }
    let text = format!("{value:e}");
    match text.split_once('e') {
        Some((mantissa, exponent)) => {
            let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |digits| ('-', digits));
            format!("{mantissa}e{sign}{digits:0>2}")
        }
        None => text,
    }
}

/// `%q`: in double quotes, with the unprintable escaped.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if (c as u32) < 0x20 || c as u32 == 0x7f => out.push_str(&format!("\\x{:02x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Whether a character can be seen, as the original's language understands it: of spaces only the plain one.
pub(crate) fn is_printable(c: char) -> bool {
    if c.is_ascii() {
        return c == ' ' || c.is_ascii_graphic();
    }
    // What cannot be seen is escaped; at the beginning of a text also what has to stand on something.
    ['x', c].iter().collect::<String>().escape_debug().nth(1) == Some(c)
}

/// `supported values: "a", "b"`.
pub(crate) fn supported<'a>(values: impl IntoIterator<Item = &'a str>) -> String {
    let listed: Vec<String> = values.into_iter().map(quoted).collect();
    format!("supported values: {}", listed.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_not_printable() {
        for c in ['a', ' ', '"', '\'', '\\', 'ü', '日', '\u{301}', '€', '\u{1f600}'] {
            assert!(is_printable(c), "{c:?}");
        }
        for c in ['\n', '\u{7f}', '\u{a0}', '\u{200b}', '\u{2028}', '\u{feff}', '\u{e000}', '\u{378}'] {
            assert!(!is_printable(c), "{c:?}");
        }
    }

    #[test]
    fn floats_are_written_as_go_writes_them() {
        for (value, text) in [
            (0.0, "0"),
            (1.0, "1"),
            (0.5, "0.5"),
            (-2.25, "-2.25"),
            (999_999.0, "999999"),
            (1e6, "1e+06"),
            (9.223372036854776e18, "9.223372036854776e+18"),
            (1e-7, "1e-07"),
            (0.0001, "0.0001"),
        ] {
            assert_eq!(float(value), text);
        }
    }
}
