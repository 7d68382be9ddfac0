//! `format` of texts: what the original accepts for each name it knows. Unknown names are ignored, as it ignores them.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use base64::Engine as _;
use regex::Regex;

/// Whether `text` is of the format; `None` where the original does not know the format. Dashes in the name do not
/// count, so `datetime` is `date-time`.
pub(crate) fn accepts(format: &str, text: &str) -> Option<bool> {
    let check: fn(&str) -> bool = match format {
        "date-time" | "datetime" => is_date_time,
        "date" => is_date,
        "duration" => is_duration,
        "byte" => is_base64,
        "password" => |_| true,
        "uri" => is_uri,
        "email" => is_email,
        "hostname" => is_hostname,
        "ipv4" => is_ipv4,
        "ipv6" => |text| text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_cidr,
        "mac" => is_mac,
        "uuid" => |text| is_uuid(text, None, false),
        "uuid3" => |text| is_uuid(text, Some(b'3'), false),
        "uuid4" => |text| is_uuid(text, Some(b'4'), true),
        "uuid5" => |text| is_uuid(text, Some(b'5'), true),
        "isbn" => |text| is_isbn10(text) || is_isbn13(text),
        "isbn10" => is_isbn10,
        "isbn13" => is_isbn13,
        "creditcard" => is_credit_card,
        "ssn" => |text| SSN.is_match(text),
        "hexcolor" => |text| HEX_COLOR.is_match(text),
        "rgbcolor" => |text| RGB_COLOR.is_match(text),
        "bsonobjectid" => |text| text.len() == 24 && text.bytes().all(|b| b.is_ascii_hexdigit()),
        "k8s-short-name" => |text| text.len() <= 63 && SHORT_NAME.is_match(text),
        "k8s-long-name" => |text| text.len() <= 253 && text.split('.').all(|part| SHORT_NAME.is_match(part)),
        _ => return None,
    };
    Some(check(text))
}

/// Whether the original knows the format.
pub(crate) fn is_known(format: &str) -> bool {
    accepts(format, "").is_some()
}

fn fixed(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a pattern written here")
}

static SSN: LazyLock<Regex> = LazyLock::new(|| fixed(r"^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$"));
static HEX_COLOR: LazyLock<Regex> = LazyLock::new(|| fixed(r"^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"));
static RGB_COLOR: LazyLock<Regex> = LazyLock::new(|| {
    let part = r"\s*(0|[1-9][0-9]?|1[0-9][0-9]|2[0-4][0-9]|25[0-5])\s*";
    fixed(&format!(r"^rgb\({part},{part},{part}\)$"))
});
static SHORT_NAME: LazyLock<Regex> = LazyLock::new(|| fixed("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"));
static HOST_NAME: LazyLock<Regex> = LazyLock::new(|| {
    let c = r"a-zA-Z0-9\p{S}\p{L}";
    fixed(&format!(
        r"^([{c}]((-?[{c}]{{0,62}})?)|([{c}](([{c}\-]{{0,61}}[{c}])?)(\.)){{1,}}([a-zA-Z\p{{L}}]){{2,63}})$"
    ))
});
static TIME: LazyLock<Regex> =
    LazyLock::new(|| fixed("^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$"));
static CREDIT_CARD: LazyLock<Regex> = LazyLock::new(|| {
    fixed(
        r"^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11})$",
    )
});
/// Go's `time.ParseDuration`, as a pattern.
static GO_DURATION: LazyLock<Regex> =
    LazyLock::new(|| fixed(r"^[-+]?(0|(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$"));
/// The looser form that is accepted too: `3 days 2 hours`.
static WORDY_DURATION: LazyLock<Regex> = LazyLock::new(|| {
    fixed(
        r"(?i)[0-9]+\s*(ns|nano[a-zµ]*|us|µs|micro[a-zµ]*|ms|milli[a-zµ]*|s|sec[a-zµ]*|m|min[a-zµ]*|h|hr|hour[a-zµ]*|d|day[a-zµ]*|w|wk|week[a-zµ]*)([^A-Za-zµ]|$)",
    )
});

fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == 10 && bytes[4] == b'-' && bytes[7] == b'-' && text.parse::<jiff::civil::Date>().is_ok()
}

fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    let Some(found) = TIME.captures(time).filter(|_| is_date(date)) else { return false };
    &found[1] <= "23" && &found[2] <= "59" && &found[3] <= "59"
}

fn is_duration(text: &str) -> bool {
    GO_DURATION.is_match(text) || WORDY_DURATION.is_match(text)
}

fn is_base64(text: &str) -> bool {
    !text.is_empty() && base64::engine::general_purpose::STANDARD.decode(text).is_ok()
}

/// An absolute URI or an absolute path.
fn is_uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|b| b < 0x20 || b == 0x7f || b == b' ') {
        return false;
    }
    if text.starts_with('/') {
        return true;
    }
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let starts = scheme.bytes().next().is_some_and(|b| b.is_ascii_alphabetic());
    starts && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b)) && !rest.is_empty()
}

fn is_email(text: &str) -> bool {
    let address = match text.trim().strip_suffix('>').and_then(|text| text.rsplit_once('<')) {
        Some((_, address)) => address,
        None => text.trim(),
    };
    let Some((local, domain)) = address.rsplit_once('@') else { return false };
    let plain =
        |part: &str| !part.is_empty() && !part.contains(|c: char| c.is_whitespace() || "<>(),;:\"@".contains(c));
    plain(local) && plain(domain)
}

fn is_hostname(text: &str) -> bool {
    text.len() <= 255 && HOST_NAME.is_match(text) && text.split('.').all(|part| part.len() <= 63)
}

/// Leading zeros are tolerated, as the original still does.
fn is_ipv4(text: &str) -> bool {
    let octets: Vec<&str> = text.split('.').collect();
    let octet = |part: &&str| {
        !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()) && part.parse::<u32>().is_ok_and(|n| n <= 255)
    };
    octets.len() == 4 && octets.iter().all(octet)
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let Ok(bits) = bits.parse::<u8>() else { return false };
    if address.parse::<Ipv4Addr>().is_ok() || is_ipv4(address) {
        bits <= 32
    } else {
        address.parse::<Ipv6Addr>().is_ok() && bits <= 128
    }
}

fn is_mac(text: &str) -> bool {
    let separator = if text.contains(':') { ':' } else { '-' };
    let parts: Vec<&str> = text.split(separator).collect();
    let hex = |part: &&str| part.len() == 2 && part.bytes().all(|b| b.is_ascii_hexdigit());
    matches!(parts.len(), 6 | 8 | 20) && parts.iter().all(hex)
}

fn is_uuid(text: &str, version: Option<u8>, check_variant: bool) -> bool {
    let mut digits = Vec::with_capacity(32);
    for byte in text.bytes() {
        match byte {
            b'-' if matches!(digits.len(), 8 | 12 | 16 | 20) => {}
            byte if byte.is_ascii_hexdigit() => digits.push(byte.to_ascii_lowercase()),
            _ => return false,
        }
    }
    digits.len() == 32
        && !text.contains("--")
        && version.is_none_or(|version| digits[12] == version)
        && (!check_variant || b"89ab".contains(&digits[16]))
}

fn isbn_digits(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace() && *c != '-').collect()
}

fn is_isbn10(text: &str) -> bool {
    let digits = isbn_digits(text);
    if digits.len() != 10 || !digits.bytes().enumerate().all(|(i, b)| b.is_ascii_digit() || (i == 9 && b == b'X')) {
        return false;
    }
    let value = |b: u8| if b == b'X' { 10 } else { u32::from(b - b'0') };
    digits.bytes().zip(1..).map(|(b, weight)| value(b) * weight).sum::<u32>().is_multiple_of(11)
}

fn is_isbn13(text: &str) -> bool {
    let digits = isbn_digits(text);
    digits.len() == 13
        && digits.bytes().all(|b| b.is_ascii_digit())
        && digits.bytes().zip([1, 3].into_iter().cycle()).map(|(b, w)| u32::from(b - b'0') * w).sum::<u32>() % 10 == 0
}

fn is_credit_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let luhn = digits.bytes().rev().enumerate().map(|(index, b)| {
        let digit = u32::from(b - b'0') * if index % 2 == 1 { 2 } else { 1 };
        if digit > 9 { digit - 9 } else { digit }
    });
    CREDIT_CARD.is_match(&digits) && luhn.sum::<u32>().is_multiple_of(10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(format: &str, good: &[&str], bad: &[&str]) {
        for text in good {
            assert_eq!(accepts(format, text), Some(true), "{format} {text:?}");
        }
        for text in bad {
            assert_eq!(accepts(format, text), Some(false), "{format} {text:?}");
        }
    }

    #[test]
    fn formats_accept_what_the_original_accepts() {
        check(
            "date-time",
            &["2014-12-15T19:30:20.000Z", "2014-12-15t19:30:20z", "2014-12-15T19:30:20+02:00"],
            &["2014-12-15", "2014-13-15T19:30:20Z", "2014-12-15T24:30:20Z", "", "t"],
        );
        check("date", &["2014-12-15"], &["2014-12-32", "20141215", ""]);
        check("duration", &["1h30m", "22 ns", "3 days", "-1.5s", "0"], &["", "1", "h", "1x"]);
        check("byte", &["aGVsbG8="], &["a", "$$$"]);
        check("ipv4", &["1.2.3.4", "01.2.3.4"], &["1.2.3", "1.2.3.256", "::1"]);
        check("ipv6", &["::1", "fe80::1"], &["1.2.3.4"]);
        check("cidr", &["10.0.0.0/8", "fe80::/10"], &["10.0.0.0", "10.0.0.0/33"]);
        check("uuid", &["123e4567-e89b-12d3-a456-426614174000"], &["123e4567", "123e4567-e89b-12d3-a456-42661417400g"]);
        check("uuid4", &["123e4567-e89b-42d3-a456-426614174000"], &["123e4567-e89b-12d3-a456-426614174000"]);
        check("email", &["a@b.c", "A <a@b.c>"], &["a", "@b", "a b@c"]);
        check("hostname", &["a.example.com", "a-b"], &["-a", "a..b"]);
        check("uri", &["https://a/b", "/a"], &["a", "", "a b"]);
        check("mac", &["00:00:5e:00:53:01"], &["00:00"]);
        check("isbn", &["0321751043", "978-0321751041"], &["0321751044"]);
        check("creditcard", &["4111 1111 1111 1111"], &["4111 1111 1111 1112"]);
        check("rgbcolor", &["rgb(255,0,1)"], &["rgb(256,0,1)"]);
        check("k8s-short-name", &["a-b"], &["A", "a.b"]);
    }

    #[test]
    fn unknown_formats_are_ignored() {
        for format in ["int32", "int64", "float", "whatever"] {
            assert_eq!(accepts(format, "x"), None);
        }
    }
}
