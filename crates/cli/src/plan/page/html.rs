//! Text on its way into the page.

use std::fmt::{self, Display, Formatter, Write};

use crate::printable;

/// Text as it may stand between tags and in quoted attributes, with what people could not see spelled out.
pub(super) fn text(text: &str) -> Text<'_> {
    Text(text)
}

pub(super) struct Text<'a>(&'a str);

impl Display for Text<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        for letter in printable::line(self.0).chars() {
            match letter {
                '&' => out.write_str("&amp;")?,
                '<' => out.write_str("&lt;")?,
                '>' => out.write_str("&gt;")?,
                '"' => out.write_str("&quot;")?,
                '\'' => out.write_str("&#39;")?,
                _ => out.write_char(letter)?,
            }
        }
        Ok(())
    }
}
