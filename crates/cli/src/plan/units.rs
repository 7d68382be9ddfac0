//! Sizes, rates, counts and times: read from the command line, and written for people.
//!
//! A kilobyte is 1,024 bytes everywhere, as in Kafka's and Cruise Control's figures.

const UNITS: [(&str, f64); 6] = [
    ("B", 1.0 / (1024.0 * 1024.0)),
    ("KB", 1.0 / 1024.0),
    ("MB", 1.0),
    ("GB", 1024.0),
    ("TB", 1024.0 * 1024.0),
    ("PB", 1024.0 * 1024.0 * 1024.0),
];

/// What a size may look like, for errors.
pub(crate) const SIZE: &str = "not a size with its unit, such as 500MB or 1.5TB";
/// What a rate may look like, for errors.
pub(crate) const RATE: &str = "not a rate with its unit, such as 50MB/s";

/// A size in MB: `500MB`, `1.5 GiB`, `2t`.
pub(crate) fn size(text: &str) -> Option<f64> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    let unit = text[end..].trim().to_ascii_uppercase().replace("IB", "B");
    let (_, factor) =
        UNITS.iter().find(|(name, _)| !unit.is_empty() && (*name == unit || name.strip_suffix('B') == Some(&unit)))?;
    Some(number * factor).filter(|size| size.is_finite())
}

/// A rate in KB per second, with or without `/s`.
pub(crate) fn rate(text: &str) -> Option<f64> {
    let text = text.trim();
    let megabytes = size(text.strip_suffix("/s").unwrap_or(text)).filter(|rate| *rate > 0.0);
    megabytes.map(|megabytes| megabytes * 1024.0)
}

/// MB for people: three digits, in the largest unit that leaves something before the point.
pub(crate) fn megabytes(size: f64) -> String {
    let (name, factor) = UNITS.iter().rev().find(|(_, factor)| size >= *factor).unwrap_or(&UNITS[0]);
    let size = size / factor;
    match size {
        _ if *name == "B" || size >= 100.0 => format!("{size:.0} {name}"),
        _ if size >= 10.0 => format!("{size:.1} {name}"),
        _ => format!("{size:.2} {name}"),
    }
}

/// A count with its thousands told apart.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count and what is counted.
pub(super) fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// Minutes for people.
pub(super) fn minutes(minutes: f64) -> String {
    let seconds = (minutes * 60.0).round() as u64;
    match (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60) {
        (0, 0, 0, 0) => "less than a second".to_owned(),
        (0, 0, 0, seconds) => format!("{seconds} s"),
        (0, 0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (0, hours, minutes, _) => format!("{hours} h {minutes} min"),
        (days, hours, ..) => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_any_usual_unit() {
        assert_eq!(size("500MB"), Some(500.0));
        assert_eq!(size("1.5 GiB"), Some(1536.0));
        assert_eq!(size("2t"), Some(2.0 * 1024.0 * 1024.0));
        assert_eq!(size("512kb"), Some(0.5));
        for wrong in ["", "500", "MB", "5XB", "-5MB", "1.2.3MB", "i", "5iMB"] {
            assert_eq!(size(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_rate_is_a_size_per_second_and_never_none() {
        assert_eq!(rate("50MB/s"), Some(51_200.0));
        assert_eq!(rate("50KB"), Some(50.0));
        assert_eq!(rate("0MB/s"), None);
    }

    #[test]
    fn what_people_read_is_short() {
        assert_eq!(
            [0.0, 0.5, 1.0, 99.96, 140_514.0].map(megabytes),
            ["0 B", "512 KB", "1.00 MB", "100.0 MB", "137 GB"]
        );
        assert_eq!([0, 999, 1_000, 50_081, 2_800_429].map(count), ["0", "999", "1,000", "50,081", "2,800,429"]);
        assert_eq!([0.5, 23.5, 61.0, 1_500.0].map(minutes), ["30 s", "23 min 30 s", "1 h 1 min", "1 d 1 h"]);
        assert_eq!(minutes(0.001), "less than a second");
    }
}
