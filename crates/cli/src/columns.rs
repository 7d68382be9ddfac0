//! Tables for a terminal.

use std::borrow::Cow;

use crate::printable;

/// Rows of cells, each column as wide as its widest cell. Nothing in a cell reaches the terminal but what can be seen.
pub(crate) fn columns(rows: &[Vec<String>]) -> String {
    let rows: Vec<Vec<Cow<'_, str>>> =
        rows.iter().map(|row| row.iter().map(|cell| printable::line(cell)).collect()).collect();
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..count).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in &rows {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_by_what_is_seen() {
        let row = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>();
        let rows = [row(&["TOPIC", "SIZE"]), row(&["a\u{1b}[2Jb\n", "1"]), row(&["zürich"])];
        assert_eq!(columns(&rows), "TOPIC          SIZE\na\\u{1b}[2Jb\\n  1\nzürich\n");
    }
}
