//! One field of a cron expression: which numbers it takes.

use std::collections::BTreeSet;

use super::Malformed;

/// A field: its name, its numbers and the words that stand for them.
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) low: u16,
    pub(super) high: u16,
    /// The first word stands for `low`.
    pub(super) words: &'static [&'static str],
}

pub(super) const SECOND: Field = Field { name: "seconds", low: 0, high: 59, words: &[] };
pub(super) const MINUTE: Field = Field { name: "minutes", low: 0, high: 59, words: &[] };
pub(super) const HOUR: Field = Field { name: "hours", low: 0, high: 23, words: &[] };
pub(super) const DAY: Field = Field { name: "day of month", low: 1, high: 31, words: &[] };
pub(super) const MONTH: Field = Field {
    name: "month",
    low: 1,
    high: 12,
    words: &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"],
};
pub(super) const WEEKDAY: Field =
    Field { name: "day of week", low: 1, high: 7, words: &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"] };
/// As far as Quartz goes.
pub(super) const YEAR: Field = Field { name: "year", low: 1970, high: 2099, words: &[] };

impl Field {
    /// The numbers of a list such as `1,5-9,0/15,*`.
    pub(super) fn numbers(&self, text: &str) -> Result<BTreeSet<u16>, Malformed> {
        let mut numbers = BTreeSet::new();
        for item in text.split(',') {
            numbers.extend(self.item(item)?);
        }
        Ok(numbers)
    }

    fn item(&self, text: &str) -> Result<Vec<u16>, Malformed> {
        let (range, step) = match text.split_once('/') {
            Some((range, step)) => (range, Some(self.step(step)?)),
            None => (text, None),
        };
        let (first, last) = match range.split_once('-') {
            Some((first, last)) => (self.number(first)?, self.number(last)?),
            None if range == "*" || (range.is_empty() && step.is_some()) => (self.low, self.high),
            // `5/15` begins at 5 and goes on to the end; `5` alone is 5.
            None => {
                let first = self.number(range)?;
                (first, if step.is_some() { self.high } else { first })
            }
        };
        // 22-4 goes on at the other end, except for years.
        let count = self.high - self.low + 1;
        let length = match last.checked_sub(first) {
            Some(length) => length,
            None if self.low == YEAR.low => return Err(self.malformed(text)),
            None => count - (first - last),
        };
        let step = usize::from(step.unwrap_or(1));
        Ok((0..=length).step_by(step).map(|offset| self.low + (first - self.low + offset) % count).collect())
    }

    /// A number or the word for it.
    pub(super) fn number(&self, text: &str) -> Result<u16, Malformed> {
        if let Some(n) = self.words.iter().position(|word| *word == text) {
            return Ok(self.low + n as u16);
        }
        let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number: Option<u16> = plain.then(|| text.parse().ok()).flatten();
        number.filter(|number| (self.low..=self.high).contains(number)).ok_or_else(|| self.malformed(text))
    }

    fn step(&self, text: &str) -> Result<u16, Malformed> {
        let step: u16 = text.parse().map_err(|_| self.malformed(text))?;
        if step == 0 || step > self.high { Err(self.malformed(text)) } else { Ok(step) }
    }

    pub(super) fn malformed(&self, text: &str) -> Malformed {
        Malformed::Field { field: self.name, text: text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(field: &Field, text: &str, expected: Option<&[u16]>) {
        let found = field.numbers(text).ok().map(|numbers| numbers.into_iter().collect::<Vec<_>>());
        assert_eq!(found.as_deref(), expected, "{} {text}", field.name);
    }

    #[test]
    fn lists_ranges_and_steps() {
        check(&MINUTE, "5", Some(&[5]));
        check(&MINUTE, "1,3-5", Some(&[1, 3, 4, 5]));
        check(&MINUTE, "0/20", Some(&[0, 20, 40]));
        check(&MINUTE, "*/30", Some(&[0, 30]));
        check(&MINUTE, "/30", Some(&[0, 30]));
        check(&MINUTE, "50/5", Some(&[50, 55]));
        check(&MINUTE, "10-20/5", Some(&[10, 15, 20]));
        check(&HOUR, "*", Some(&(0..24).collect::<Vec<_>>()));
    }

    #[test]
    fn ranges_wrap_around() {
        check(&HOUR, "22-2", Some(&[0, 1, 2, 22, 23]));
        check(&WEEKDAY, "FRI-MON", Some(&[1, 2, 6, 7]));
        check(&MONTH, "NOV-FEB", Some(&[1, 2, 11, 12]));
        check(&HOUR, "20-4/4", Some(&[0, 4, 20]));
        check(&YEAR, "2030-2028", None);
    }

    #[test]
    fn words_stand_for_numbers() {
        check(&MONTH, "JAN,DEC", Some(&[1, 12]));
        check(&WEEKDAY, "SUN,SAT", Some(&[1, 7]));
        check(&MONTH, "JANUARY", None);
        check(&HOUR, "JAN", None);
    }

    #[test]
    fn whatever_is_out_of_bounds_is_refused() {
        for text in ["60", "-1", "", "1,", "1-", "a", "1/0", "1/x", "1/99", "1-2-3", "+1", "99999999"] {
            check(&MINUTE, text, None);
        }
        check(&DAY, "0", None);
        check(&WEEKDAY, "8", None);
        check(&YEAR, "2026,2030/60", Some(&[2026, 2030, 2090]));
    }
}
