//! A cron expression as Quartz reads it: seconds, minutes, hours, day of month, month, day of week
//! and perhaps a year.

use std::{collections::BTreeSet, str::FromStr};

use jiff::{Timestamp, civil, tz::TimeZone};

use super::{field, whole_second};

/// No expression of a sane author is silent for longer; `29 2 ? 2100` is not one.
const YEARS_AHEAD: i32 = 9;

/// When something is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expression {
    seconds: BTreeSet<u16>,
    minutes: BTreeSet<u16>,
    hours: BTreeSet<u16>,
    months: BTreeSet<u16>,
    years: BTreeSet<u16>,
    days: Days,
}

/// Days of a month: by their number or by the day of the week, never by both.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Days {
    Numbers(BTreeSet<u16>),
    /// `L-n`: so many days before the last.
    BeforeLast(i8),
    /// `nW`: the working day nearest to a day, in the same month.
    WorkingDayNear(i8),
    /// `LW`, `LW-n`: the working day nearest to the last day, or to one before it.
    WorkingDayNearLast(i8),
    /// From 1 = Sunday.
    Weekdays(BTreeSet<u16>),
    /// `nL`.
    LastWeekday(u16),
    /// `n#k`.
    NthWeekday(u16, i8),
}

/// Why a text is no cron expression.
#[derive(thiserror::Error, Clone, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// The number of fields is wrong.
    #[error("it has {0} fields; write seconds, minutes, hours, day of month, month, day of week and perhaps a year")]
    Fields(usize),
    /// A field cannot be read.
    #[error("`{text}` is no {field}")]
    Field {
        /// The field.
        field: &'static str,
        /// What stands there.
        text: String,
    },
    /// Both or neither of the two kinds of days are named.
    #[error("write `?` for either day of month or day of week")]
    Days,
}

impl FromStr for Expression {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        let text = text.to_ascii_uppercase();
        let fields: Vec<&str> = text.split_ascii_whitespace().collect();
        let (second, minute, hour, day, month, weekday, year) = match fields[..] {
            [second, minute, hour, day, month, weekday] => (second, minute, hour, day, month, weekday, "*"),
            [second, minute, hour, day, month, weekday, year] => (second, minute, hour, day, month, weekday, year),
            _ => return Err(Malformed::Fields(fields.len())),
        };
        let days = match (day, weekday) {
            ("?", "?") => return Err(Malformed::Days),
            (day, "?") => days_of_month(day)?,
            ("?", weekday) => days_of_week(weekday)?,
            _ => return Err(Malformed::Days),
        };
        Ok(Self {
            seconds: field::SECOND.numbers(second)?,
            minutes: field::MINUTE.numbers(minute)?,
            hours: field::HOUR.numbers(hour)?,
            months: field::MONTH.numbers(month)?,
            years: field::YEAR.numbers(year)?,
            days,
        })
    }
}

fn days_of_month(text: &str) -> Result<Days, Malformed> {
    let wrong = || field::DAY.malformed(text);
    if let Some(rest) = text.strip_prefix('L') {
        let (near, rest) = match rest.strip_prefix('W') {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        let back = match (rest, rest.strip_prefix('-')) {
            ("", _) => 0,
            // Quartz takes up to 30.
            (_, Some(back)) => back.parse().ok().filter(|back| (0..=30).contains(back)).ok_or_else(wrong)?,
            _ => return Err(wrong()),
        };
        return Ok(if near { Days::WorkingDayNearLast(back) } else { Days::BeforeLast(back) });
    }
    if let Some(day) = text.strip_suffix('W') {
        return Ok(Days::WorkingDayNear(field::DAY.number(day)? as i8));
    }
    field::DAY.numbers(text).map(Days::Numbers)
}

fn days_of_week(text: &str) -> Result<Days, Malformed> {
    if text == "L" {
        // Quartz: `L` alone is the last day of a week, which is Saturday.
        return Ok(Days::Weekdays([field::WEEKDAY.high].into()));
    }
    if let Some(day) = text.strip_suffix('L') {
        return Ok(Days::LastWeekday(field::WEEKDAY.number(day)?));
    }
    if let Some((day, nth)) = text.split_once('#') {
        let nth = nth.parse().ok().filter(|nth| (1..=5).contains(nth));
        let nth = nth.ok_or_else(|| field::WEEKDAY.malformed(text))?;
        return Ok(Days::NthWeekday(field::WEEKDAY.number(day)?, nth));
    }
    field::WEEKDAY.numbers(text).map(Days::Weekdays)
}

impl Expression {
    /// The first second that is due, at `from` or after it. None if there is none in the next years.
    pub fn next_from(&self, from: Timestamp) -> Option<Timestamp> {
        let from = whole_second(from).to_zoned(TimeZone::UTC).datetime();
        let mut date = from.date();
        let end = i32::from(date.year()) + YEARS_AHEAD;
        while i32::from(date.year()) < end {
            if !self.takes_month(date) {
                // Nothing in this month: on to the next.
                date = date.last_of_month().tomorrow().ok()?;
                continue;
            }
            let earliest = if date == from.date() { from.time() } else { civil::Time::midnight() };
            if self.days.take(date)
                && let Some(time) = self.time_from(earliest)
            {
                return date.to_datetime(time).to_zoned(TimeZone::UTC).ok().map(|due| due.timestamp());
            }
            date = date.tomorrow().ok()?;
        }
        None
    }

    fn takes_month(&self, date: civil::Date) -> bool {
        let year = u16::try_from(date.year()).unwrap_or_default();
        self.years.contains(&year) && self.months.contains(&(date.month() as u16))
    }

    /// The first time of a day that is due, at `earliest` or after it.
    fn time_from(&self, earliest: civil::Time) -> Option<civil::Time> {
        let (hour, minute, second) = (earliest.hour() as u16, earliest.minute() as u16, earliest.second() as u16);
        let candidates = [
            self.hours.contains(&hour).then_some(hour).and_then(|hour| {
                let same_minute = self.minutes.contains(&minute).then_some(minute);
                let in_it = same_minute.and_then(|minute| Some((hour, minute, from(&self.seconds, second)?)));
                in_it.or_else(|| Some((hour, from(&self.minutes, minute + 1)?, *self.seconds.first()?)))
            }),
            from(&self.hours, hour + 1).and_then(|hour| Some((hour, *self.minutes.first()?, *self.seconds.first()?))),
        ];
        let (hour, minute, second) = candidates.into_iter().flatten().next()?;
        civil::Time::new(hour as i8, minute as i8, second as i8, 0).ok()
    }
}

fn from(numbers: &BTreeSet<u16>, low: u16) -> Option<u16> {
    numbers.range(low..).next().copied()
}

impl Days {
    fn take(&self, date: civil::Date) -> bool {
        let last = date.days_in_month();
        let weekday = |date: civil::Date| date.weekday().to_sunday_one_offset() as u16;
        match self {
            Self::Numbers(days) => days.contains(&(date.day() as u16)),
            Self::BeforeLast(back) => date.day() == last - back,
            Self::WorkingDayNear(day) => *day <= last && Some(date.day()) == working_day_near(date, *day),
            Self::WorkingDayNearLast(back) => *back < last && Some(date.day()) == working_day_near(date, last - back),
            Self::Weekdays(days) => days.contains(&weekday(date)),
            Self::LastWeekday(day) => weekday(date) == *day && date.day() + 7 > last,
            Self::NthWeekday(day, nth) => weekday(date) == *day && (date.day() - 1) / 7 + 1 == *nth,
        }
    }
}

/// The working day nearest to this day of the month of `date`, without leaving that month.
fn working_day_near(date: civil::Date, day: i8) -> Option<i8> {
    let last = date.days_in_month();
    let near = civil::Date::new(date.year(), date.month(), day).ok()?;
    Some(match near.weekday() {
        civil::Weekday::Saturday if day == 1 => 3,
        civil::Weekday::Saturday => day - 1,
        civil::Weekday::Sunday if day == last => day - 2,
        civil::Weekday::Sunday => day + 1,
        _ => day,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The next times after midnight of 2026-03-01, a Sunday.
    fn next(text: &str, count: usize) -> Vec<String> {
        let expression: Expression = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        let mut from: Timestamp = "2026-03-01T00:00:00Z".parse().unwrap();
        let mut found = Vec::new();
        while let (true, Some(due)) = (found.len() < count, expression.next_from(from)) {
            found.push(due.to_string().trim_end_matches(":00Z").replace('T', " "));
            from = due.checked_add(jiff::SignedDuration::from_secs(1)).unwrap();
        }
        found
    }

    #[test]
    fn times_of_a_day() {
        for (text, expected) in [
            ("0 30 8 ? * * *", ["2026-03-01 08:30", "2026-03-02 08:30"]),
            ("0 0/45 1 * * ?", ["2026-03-01 01:00", "2026-03-01 01:45"]),
            ("0 59 23,0 * * ?", ["2026-03-01 00:59", "2026-03-01 23:59"]),
            ("0 0 22-1 ? * SUN", ["2026-03-01 00:00", "2026-03-01 01:00"]),
            ("0,30 0 0 ? * MON-FRI", ["2026-03-02 00:00", "2026-03-02T00:00:30Z".trim_end_matches(":00Z")]),
        ] {
            let expected = expected.map(|time| time.replace('T', " "));
            assert_eq!(next(text, 2), expected, "{text}");
        }
    }

    #[test]
    fn days_in_the_dialect_of_quartz() {
        for (text, expected) in [
            ("0 0 0 L * ?", ["03-31", "04-30", "05-31"]),
            ("0 0 0 L-3 * ?", ["03-28", "04-27", "05-28"]),
            // The 15th of March is a Sunday, of August a Saturday.
            ("0 0 0 15W 3,8,9 ?", ["03-16", "08-14", "09-15"]),
            // The 1st of August is a Saturday, of November a Sunday.
            ("0 0 0 1W 8,11,12 ?", ["08-03", "11-02", "12-01"]),
            // The 31st of May is a Sunday, of October a Saturday.
            ("0 0 0 LW 5,10,12 ?", ["05-29", "10-30", "12-31"]),
            ("0 0 0 ? * 6L", ["03-27", "04-24", "05-29"]),
            ("0 0 0 ? * FRI#1", ["03-06", "04-03", "05-01"]),
            ("0 0 0 ? * 1#5", ["03-29", "05-31", "08-30"]),
            ("0 0 0 ? * L", ["03-07", "03-14", "03-21"]),
            ("0 0 0 ? * fri-mon", ["03-01", "03-02", "03-06"]),
            ("0 0 0 31 * ?", ["03-31", "05-31", "07-31"]),
        ] {
            let found: Vec<String> = next(text, 3).iter().map(|due| due[5..10].to_owned()).collect();
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn years_pass_and_some_days_never_come() {
        assert_eq!(next("0 0 0 1 1 ? 2028", 2), ["2028-01-01 00:00"]);
        assert_eq!(next("0 0 0 29 2 ?", 2), ["2028-02-29 00:00", "2032-02-29 00:00"]);
        assert_eq!(next("0 0 0 30 2 ?", 1), [""; 0]);
        assert_eq!(next("0 0 0 1 1 ? 2020", 1), [""; 0]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, expected) in [
            ("", "it has 0 fields"),
            ("* * * * ?", "it has 5 fields"),
            ("* * * * * ? * *", "it has 8 fields"),
            ("* * * * * *", "write `?`"),
            ("* * * ? * ?", "write `?`"),
            ("* * * 1 * MON", "write `?`"),
            ("60 * * * * ?", "`60` is no seconds"),
            ("* * 25 * * ?", "`25` is no hours"),
            ("* * * ? * FUN", "`FUN` is no day of week"),
            ("* * * ? * 2#6", "`2#6` is no day of week"),
            ("* * * L-31 * ?", "`L-31` is no day of month"),
            ("* * * LX * ?", "`LX` is no day of month"),
            ("? * * * * ?", "`?` is no seconds"),
        ] {
            let error = text.parse::<Expression>().unwrap_err().to_string();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
    }
}
