//! The reason of a request as it is kept and shown: the client's words, who it was and when. Clients read the date back.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// What the original keeps of the client's words.
const LONGEST: usize = 50;
const NONE: &str = "No reason provided";

/// The text for `triggeredTaskReason` and for the reason of a pause.
pub fn stamped(reason: Option<&str>, client: &str, at: Timestamp) -> String {
    let words: String = match reason {
        Some(reason) => reason.chars().take(LONGEST).collect(),
        None => NONE.to_owned(),
    };
    format!("{words} (Client: {client}, Date: {})", date(at))
}

/// `2026-11-15T20:12:33Z`, as all dates in texts are.
pub fn date(at: Timestamp) -> String {
    at.to_zoned(TimeZone::UTC).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// When the request came that gave this reason, if the text says so.
pub fn date_of(stamped: &str) -> Option<Timestamp> {
    let (_, rest) = stamped.rsplit_once("Date: ")?;
    rest.trim_end().strip_suffix(')')?.parse().ok()
}

/// The client's own words in it.
pub fn words_of(stamped: &str) -> &str {
    stamped.rsplit_once(" (Client: ").map_or(stamped, |(words, _)| words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stamped_can_be_read_back() {
        let at: Timestamp = "2026-11-15T20:12:33Z".parse().expect("a date");
        let text = stamped(Some("capture run"), "127.0.0.1", at);
        assert_eq!(text, "capture run (Client: 127.0.0.1, Date: 2026-11-15T20:12:33Z)");
        assert_eq!((date_of(&text), words_of(&text)), (Some(at), "capture run"));
        let tricky = stamped(Some("x (Client: y, Date: z)"), "10.0.0.1", at);
        assert_eq!((date_of(&tricky), words_of(&tricky)), (Some(at), "x (Client: y, Date: z)"));
    }

    #[test]
    fn no_reason_and_long_ones() {
        let at = Timestamp::UNIX_EPOCH;
        assert_eq!(stamped(None, "a", at), "No reason provided (Client: a, Date: 1970-01-01T00:00:00Z)");
        assert_eq!(words_of(&stamped(Some(&"ä".repeat(60)), "a", at)), "ä".repeat(50));
    }

    #[test]
    fn texts_without_a_date_have_none() {
        for text in ["", "N/A", "Date: ", "x (Client: y, Date: yesterday)"] {
            assert_eq!(date_of(text), None, "{text}");
        }
    }
}
