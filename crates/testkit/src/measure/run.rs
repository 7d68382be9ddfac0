//! One run of a bench: what every bench is told on its command line, and what it says at its end.

use std::{fs, path::PathBuf, time::Instant};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{Report, cores, load_average};

/// What every bench can be told; `Part` are the parts of this one.
#[derive(Args)]
// What flattens these has a name of its own.
#[group(skip)]
pub struct Options<Part: ValueEnum + Clone + Send + Sync + 'static> {
    /// Small sizes: shows that it works, not how fast anything is.
    #[arg(long)]
    pub quick: bool,
    /// Runs these parts alone (repeatable).
    #[arg(long = "part", value_name = "PART")]
    parts: Vec<Part>,
    /// Writes the numbers, the sizes and the machine here.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// `cargo bench` says so to every bench.
    #[arg(long, hide = true)]
    bench: bool,
}

impl<Part: ValueEnum + Clone + PartialEq + Send + Sync + 'static> Options<Part> {
    /// Whether this part is to run: all of them, unless some were named.
    pub fn wants(&self, part: Part) -> bool {
        self.parts.is_empty() || self.parts.contains(&part)
    }
}

/// From its beginning on, so that it can tell how long it took and how busy the machine was.
pub struct Run {
    began: Instant,
    load_before: String,
}

impl Run {
    /// Begins now.
    pub fn begin() -> Self {
        Self { began: Instant::now(), load_before: load_average() }
    }

    /// Prints the tables, and writes them where the options say, each by its name.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    #[allow(clippy::print_stdout, reason = "a bench talks to the terminal it was started from")]
    pub fn end<Part: ValueEnum + Clone + Send + Sync + 'static>(
        self,
        options: &Options<Part>,
        sizes: &impl Serialize,
        tables: &[(&str, &Report)],
    ) -> Result<()> {
        let load = [self.load_before, load_average()];
        for (_, table) in tables {
            println!("\n{table}");
        }
        println!("{} cores, {:.0} s", cores(), self.began.elapsed().as_secs_f64());
        println!("load average before: {}; after: {}", load[0], load[1]);
        let Some(file) = &options.json else { return Ok(()) };
        let rows: Map<String, Value> =
            tables.iter().map(|(name, table)| ((*name).to_owned(), json!(table.rows()))).collect();
        let mut numbers = json!({"cores": cores(), "loadAverages": load, "quick": options.quick, "sizes": sizes});
        if let Some(numbers) = numbers.as_object_mut() {
            numbers.extend(rows);
        }
        fs::write(file, format!("{numbers:#}\n")).with_context(|| format!("could not write {}", file.display()))
    }
}
