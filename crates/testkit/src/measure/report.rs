//! Two contestants side by side.

use std::{
    fmt::{self, Write as _},
    time::Duration,
};

use serde::Serialize;

/// What a number counts, and with it whether more is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Unit {
    /// How often.
    #[serde(rename = "1/s")]
    PerSecond,
    /// How many bytes go through, in decimal millions.
    #[serde(rename = "MB/s")]
    MegabytesPerSecond,
    /// How long.
    #[serde(rename = "ms")]
    Milliseconds,
    /// How long, for what is quick.
    #[serde(rename = "µs")]
    Microseconds,
    /// How much memory.
    #[serde(rename = "MiB")]
    Mebibytes,
    /// How much of what could be.
    #[serde(rename = "%")]
    Percent,
    /// How much of one core is used, where less is better.
    #[serde(rename = "% of a core")]
    PercentOfCore,
    /// How often something was written, where less is better.
    #[serde(rename = "writes")]
    Writes,
}

impl Unit {
    fn more_is_better(self) -> bool {
        matches!(self, Self::PerSecond | Self::MegabytesPerSecond | Self::Percent)
    }

    fn name(self) -> &'static str {
        match self {
            Self::PerSecond => "/s",
            Self::MegabytesPerSecond => "MB/s",
            Self::Milliseconds => "ms",
            Self::Microseconds => "µs",
            Self::Mebibytes => "MiB",
            Self::Percent => "%",
            Self::PercentOfCore => "% of a core",
            Self::Writes => "writes",
        }
    }
}

/// One number that one contestant reached.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// What was measured; the same words for both contestants.
    pub what: String,
    /// What the number counts.
    pub unit: Unit,
    /// The number.
    pub value: f64,
}

impl Measurement {
    /// A number with its name.
    pub fn new(what: impl Into<String>, unit: Unit, value: f64) -> Self {
        Self { what: what.into(), unit, value }
    }

    /// A time with its name, told in milliseconds unless the unit says microseconds.
    pub fn time(what: impl Into<String>, unit: Unit, time: Duration) -> Self {
        let scale = if unit == Unit::Microseconds { 1e6 } else { 1e3 };
        Self::new(what, unit, time.as_secs_f64() * scale)
    }
}

impl fmt::Display for Measurement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} {}", self.what, number(self.value), self.unit.name())
    }
}

/// All numbers of both contestants, or of ours alone; shown, it is a Markdown table.
#[derive(Clone, Debug)]
pub struct Report {
    /// Who ours is compared with.
    other: Option<String>,
    rows: Vec<Row>,
}

#[derive(Clone, Debug, Serialize)]
struct Row {
    what: String,
    unit: Unit,
    ours: Option<f64>,
    real: Option<f64>,
    /// How many times better ours is, above 1 whichever way better lies.
    advantage: Option<f64>,
}

impl Report {
    /// Puts numbers with the same name into one row. The order is that of the real contestant, which has numbers of
    /// its own parts in between; what only ours has comes last.
    pub fn new(ours: &[Measurement], real: &[Measurement]) -> Self {
        Self::beside("real", ours, real)
    }

    /// The same beside somebody else than the real thing.
    pub fn beside(other: &str, ours: &[Measurement], real: &[Measurement]) -> Self {
        let value_in = |side: &[Measurement], what: &str| side.iter().find(|one| one.what == what).map(|one| one.value);
        let only_ours = ours.iter().filter(|one| value_in(real, &one.what).is_none());
        let rows = real
            .iter()
            .chain(only_ours)
            .map(|one| Row::new(one, value_in(ours, &one.what), value_in(real, &one.what)))
            .collect();
        Self { other: Some(other.to_owned()), rows }
    }

    /// Numbers that nobody else has.
    pub fn alone(ours: &[Measurement]) -> Self {
        Self { other: None, rows: ours.iter().map(|one| Row::new(one, Some(one.value), None)).collect() }
    }

    /// The rows, for programs.
    pub fn rows(&self) -> impl Serialize + '_ {
        &self.rows
    }
}

impl Row {
    fn new(named: &Measurement, ours: Option<f64>, real: Option<f64>) -> Self {
        let advantage = ours.zip(real).map(|(ours, real)| match named.unit.more_is_better() {
            true => ours / real,
            false => real / ours,
        });
        // A time too short to be seen makes a ratio that is no number, and that JSON has no word for.
        let advantage = advantage.filter(|ratio| ratio.is_finite());
        Self { what: named.what.clone(), unit: named.unit, ours, real, advantage }
    }

    fn cells(&self) -> [String; 4] {
        let with_unit = |value: Option<f64>| match value {
            Some(value) => format!("{} {}", number(value), self.unit.name()),
            None => "–".to_owned(),
        };
        let advantage = self.advantage.map_or_else(|| "–".to_owned(), |ratio| format!("{} ×", number(ratio)));
        [self.what.clone(), with_unit(self.ours), with_unit(self.real), advantage]
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let other = self.other.as_deref().unwrap_or_default();
        let head = ["", "ours", other, "ours is better by"].map(str::to_owned);
        let columns = if self.other.is_some() { head.len() } else { 2 };
        let cells: Vec<[String; 4]> = self.rows.iter().map(Row::cells).collect();
        let width = |column: usize| {
            let longest = cells.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
            longest.max(head[column].chars().count())
        };
        let widths: [usize; 4] = std::array::from_fn(width);
        let line = |cells: &[String; 4]| {
            let mut line = format!("| {:<1$} |", cells[0], widths[0]);
            for (cell, width) in cells.iter().zip(widths).take(columns).skip(1) {
                let _ = write!(line, " {cell:>width$} |");
            }
            line + "\n"
        };
        let mut text = line(&head);
        let _ = write!(text, "|-{}-|", "-".repeat(widths[0]));
        for width in widths.iter().take(columns).skip(1) {
            let _ = write!(text, "-{}:|", "-".repeat(*width));
        }
        text.push('\n');
        text.extend(cells.iter().map(line));
        f.write_str(&text)
    }
}

/// Three digits that mean something, thousands apart.
fn number(value: f64) -> String {
    let decimals = match value {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    let text = format!("{value:.decimals$}");
    match text.split_once('.') {
        Some((whole, fraction)) => format!("{}.{fraction}", grouped(whole)),
        None => grouped(&text),
    }
}

/// A whole number with its thousands apart.
pub fn grouped(whole: impl ToString) -> String {
    let digits = whole.to_string();
    let mut shown = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn report() -> Report {
        let ours = [
            Measurement::new("creates", Unit::PerSecond, 12_345.6),
            Measurement::new("list", Unit::Milliseconds, 10.0),
            Measurement::new("only ours", Unit::Microseconds, 0.0),
        ];
        let real = [
            Measurement::new("creates", Unit::PerSecond, 1_234.5),
            Measurement::new("list", Unit::Milliseconds, 125.4),
            Measurement::new("etcd alone", Unit::Mebibytes, 99.5),
        ];
        Report::new(&ours, &real)
    }

    #[test]
    fn the_table_can_be_read_and_pasted() {
        expect![[r#"
            |            |      ours |     real | ours is better by |
            |------------|----------:|---------:|------------------:|
            | creates    | 12,346 /s | 1,234 /s |            10.0 × |
            | list       |   10.0 ms |   125 ms |            12.5 × |
            | etcd alone |         – | 99.5 MiB |                 – |
            | only ours  |   0.00 µs |        – |                 – |
        "#]]
        .assert_eq(&report().to_string());
    }

    #[test]
    fn numbers_without_a_contestant_have_one_column() {
        let alone = Report::alone(&[Measurement::new("decode", Unit::Milliseconds, 10.0)]);
        expect![[r#"
            |        |    ours |
            |--------|--------:|
            | decode | 10.0 ms |
        "#]]
        .assert_eq(&alone.to_string());
    }

    #[test]
    fn better_is_above_one_whichever_way_better_lies() {
        let json = serde_json::to_value(report().rows()).unwrap();
        assert!(json[0]["advantage"].as_f64().is_some_and(|ratio| ratio > 10.0));
        assert!(json[1]["advantage"].as_f64().is_some_and(|ratio| (12.5..12.6).contains(&ratio)));
        assert_eq!(json[1]["unit"], "ms");
        assert_eq!(json[2]["ours"], serde_json::Value::Null);
    }

    #[test]
    fn a_ratio_to_nothing_is_left_out() {
        let nothing = [Measurement::new("x", Unit::Milliseconds, 0.0)];
        let json = serde_json::to_value(Report::new(&nothing, &nothing).rows()).unwrap();
        assert_eq!(json[0]["advantage"], serde_json::Value::Null);
    }

    #[test]
    fn a_number_can_be_told_before_the_table_is_there() {
        let written = Measurement::new("at rest", Unit::Writes, 0.0);
        assert_eq!(written.to_string(), "at rest: 0.00 writes");
    }

    #[test]
    fn numbers_show_what_matters() {
        for (value, shown) in
            [(0.0, "0.00"), (9.876, "9.88"), (98.76, "98.8"), (987.6, "988"), (1_234_567.0, "1,234,567")]
        {
            assert_eq!(number(value), shown);
        }
    }
}
