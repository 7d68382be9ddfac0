//! How the tour looks: on a terminal with colours and a line that changes in place, elsewhere as plain lines that never
//! change, each said once.

use std::io::{self, Write};

/// Lines are broken here, so that they can be read.
const WIDTH: usize = 96;
/// Cells of a bar.
const BAR: usize = 24;

/// What a line is, which decides how it looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    Heading,
    Command,
    Kept,
    Broken,
    Quiet,
    Plain,
}

impl Look {
    fn code(self) -> &'static str {
        match self {
            Self::Heading => "\u{1b}[1;36m",
            Self::Command => "\u{1b}[1m",
            Self::Kept => "\u{1b}[32m",
            Self::Broken => "\u{1b}[1;31m",
            Self::Quiet => "\u{1b}[2m",
            Self::Plain => "",
        }
    }
}

/// Where the tour is shown.
#[derive(Debug)]
pub(crate) struct Show<W> {
    to: W,
    /// A terminal: colours, and a line that is written over.
    lively: bool,
    /// What stands in the changing line.
    status: String,
}

impl<W: Write> Show<W> {
    pub(crate) fn new(to: W, lively: bool) -> Self {
        Self { to, lively, status: String::new() }
    }

    /// What was shown, where that is in memory.
    #[cfg(test)]
    pub(crate) fn into_inner(self) -> W {
        self.to
    }

    /// The title of a chapter.
    pub(crate) fn heading(&mut self, text: &str) -> io::Result<()> {
        self.line(Look::Plain, "")?;
        self.line(Look::Heading, text)?;
        self.line(Look::Heading, &"─".repeat(text.chars().count()))
    }

    /// What a reader should know.
    pub(crate) fn tell(&mut self, text: &str) -> io::Result<()> {
        for line in wrapped(text, WIDTH) {
            self.line(Look::Plain, &line)?;
        }
        Ok(())
    }

    /// A command that does what is done now. What it reads stands below it as it is, so that it can be pasted.
    pub(crate) fn command(&mut self, text: &str) -> io::Result<()> {
        let mut lines = text.lines();
        self.line(Look::Command, &format!("  $ {}", lines.next().unwrap_or_default()))?;
        for line in lines {
            self.line(Look::Command, line)?;
        }
        Ok(())
    }

    /// Something that was seen to be so, or not.
    pub(crate) fn promise(&mut self, kept: bool, text: &str) -> io::Result<()> {
        let (look, mark) = if kept { (Look::Kept, '✓') } else { (Look::Broken, '✗') };
        self.line(look, &format!("  {mark} {text}"))
    }

    /// Something that happened meanwhile.
    pub(crate) fn event(&mut self, text: &str) -> io::Result<()> {
        self.line(Look::Quiet, &format!("    · {text}"))
    }

    /// Lines as they are: a table, a picture.
    pub(crate) fn picture(&mut self, text: &str) -> io::Result<()> {
        for line in text.lines() {
            self.line(Look::Plain, &format!("    {line}"))?;
        }
        Ok(())
    }

    /// Where something stands that takes a while; 0 to 100 if that much is known of it. Said anew, it replaces what was
    /// said before where lines can be replaced, and is left out elsewhere unless it says something new.
    pub(crate) fn status(&mut self, text: &str, percent: Option<u8>) -> io::Result<()> {
        let said = match percent {
            Some(percent) if self.lively => format!("    {} {percent:>3} %  {text}", bar(percent)),
            // Steps of a tenth are news enough for a log.
            Some(percent) => format!("    … {text} {} %", percent / 10 * 10),
            None => format!("    … {text}"),
        };
        // A changing line must be one line: what a terminal wraps it does not take back.
        let said = if self.lively { cut(&said, WIDTH) } else { said };
        if said == self.status {
            return Ok(());
        }
        if self.lively {
            write!(self.to, "\r\u{1b}[2K{said}")?;
        } else {
            writeln!(self.to, "{said}")?;
        }
        self.status = said;
        self.to.flush()
    }

    /// What was waited for is over.
    pub(crate) fn settled(&mut self) -> io::Result<()> {
        if self.lively && !self.status.is_empty() {
            write!(self.to, "\r\u{1b}[2K")?;
        }
        self.status.clear();
        self.to.flush()
    }

    fn line(&mut self, look: Look, text: &str) -> io::Result<()> {
        let status = std::mem::take(&mut self.status);
        if !self.lively {
            writeln!(self.to, "{text}")?;
            self.status = status;
            return self.to.flush();
        }
        let end = if look == Look::Plain { "" } else { "\u{1b}[0m" };
        writeln!(self.to, "\r\u{1b}[2K{}{text}{end}", look.code())?;
        // The changing line stays the last.
        write!(self.to, "{status}")?;
        self.status = status;
        self.to.flush()
    }
}

/// A bar of blocks.
pub(crate) fn bar(percent: u8) -> String {
    let full = usize::from(percent.min(100)) * BAR / 100;
    format!("{}{}", "█".repeat(full), "░".repeat(BAR - full))
}

/// The first line of the text, no longer than this.
fn cut(text: &str, width: usize) -> String {
    let first = text.lines().next().unwrap_or_default();
    if first.chars().count() <= width && first.len() == text.len() {
        return first.to_owned();
    }
    first.chars().take(width - 1).chain(['…']).collect()
}

/// The text in lines of at most so many characters; what stands in one word stays whole.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let wider = line.chars().count() + 1 + word.chars().count();
        if !line.is_empty() && wider > width {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(lively: bool, deeds: impl FnOnce(&mut Show<Vec<u8>>) -> io::Result<()>) -> String {
        let mut show = Show::new(Vec::new(), lively);
        deeds(&mut show).expect("memory takes everything");
        String::from_utf8(show.to).expect("text")
    }

    #[test]
    fn a_log_says_each_standing_once_and_progress_in_tenths() {
        let text = shown(false, |show| {
            show.status("brokers ready: 1 of 3", None)?;
            show.status("brokers ready: 1 of 3", None)?;
            show.event("Normal Scaled: one more")?;
            show.status("brokers ready: 1 of 3", None)?;
            for percent in [11, 15, 19, 20] {
                show.status("moving", Some(percent))?;
            }
            show.settled()?;
            show.promise(true, "all are ready")
        });
        assert_eq!(
            text,
            "    … brokers ready: 1 of 3\n    · Normal Scaled: one more\n    … moving 10 %\n    … moving 20 %\n  ✓ all are ready\n"
        );
    }

    #[test]
    fn a_terminal_has_one_changing_line_below_all_others() {
        let text = shown(true, |show| {
            show.status("waiting", None)?;
            show.event("something")?;
            show.settled()
        });
        let clear = "\r\u{1b}[2K";
        assert_eq!(text, format!("{clear}    … waiting{clear}\u{1b}[2m    · something\u{1b}[0m\n    … waiting{clear}"));
    }

    #[test]
    fn a_changing_line_is_cut_to_one() {
        let text = shown(true, |show| show.status(&format!("{}\nmore", "x".repeat(300)), None));
        assert_eq!(text, format!("\r\u{1b}[2K    … {}…", "x".repeat(WIDTH - 7)));
        assert_eq!((cut("short", 9), cut("", 9), cut("two\nlines", 9)), ("short".into(), "".into(), "two…".into()));
    }

    #[test]
    fn what_a_command_reads_stands_below_it_as_it_is() {
        let text = shown(false, |show| show.command("kubectl create -f - <<'END'\nkind: Kafka\nEND"));
        assert_eq!(text, "  $ kubectl create -f - <<'END'\nkind: Kafka\nEND\n");
    }

    #[test]
    fn words_are_never_cut() {
        assert_eq!(wrapped("one two  three", 7), ["one two", "three"]);
        assert_eq!(wrapped("incomprehensibilities are words", 5), ["incomprehensibilities", "are", "words"]);
        assert_eq!(wrapped("", 5), [""]);
    }

    #[test]
    fn a_bar_is_full_at_the_end_only() {
        assert_eq!(bar(0), "░".repeat(BAR));
        assert!(bar(99).ends_with('░'));
        assert_eq!(bar(100), "█".repeat(BAR));
        assert_eq!(bar(255), bar(100));
    }
}
