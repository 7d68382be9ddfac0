//! The original's syntax of regular expressions (Go's), read and written anew in that of our engine.
//!
//! Both come from RE2. What one takes and the other refuses is little, and all of it is here: what the original refuses
//! is refused, in its words, and what only it knows is spelt out.

/// The most that a repetition may count to, nested ones multiplied.
const MOST_REPEATS: u64 = 1000;

/// The same expression for our engine; or why it is none, as the original says it.
pub(super) fn translated(source: &str) -> Result<String, String> {
    let mut walk =
        Walk { source, at: 0, out: String::with_capacity(source.len() + 16), before: Before::Nothing, groups: vec![1] };
    walk.expression()?;
    Ok(walk.out)
}

/// What stands before the place that is read.
#[derive(Clone, Copy)]
enum Before {
    /// Nothing that could be repeated.
    Nothing,
    /// Something that could, and how often it is repeated inside already.
    Item(u64),
    /// Something that is: no more of that. Where its repetition begins.
    Repetition(usize),
}

struct Walk<'a> {
    source: &'a str,
    at: usize,
    out: String,
    before: Before,
    /// For each open group, and the whole around them, how often something in it is repeated at most.
    groups: Vec<u64>,
}

impl<'a> Walk<'a> {
    fn rest(&self) -> &'a str {
        &self.source[self.at..]
    }

    fn next(&mut self) -> Option<char> {
        let next = self.rest().chars().next()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn takes(&mut self, text: &str) -> bool {
        let there = self.rest().starts_with(text);
        self.at += if there { text.len() } else { 0 };
        there
    }

    fn item(&mut self, repeats: u64) {
        self.before = Before::Item(repeats);
        let most = self.groups.last_mut().expect("the whole is never closed");
        *most = (*most).max(repeats);
    }

    fn literal(&mut self, c: char) {
        self.out.push_str(&regex::escape(c.encode_utf8(&mut [0; 4])));
        self.item(1);
    }

    fn expression(&mut self) -> Result<(), String> {
        loop {
            let start = self.at;
            match self.next() {
                None if self.groups.len() > 1 => return Err(format!("missing closing ): `{}`", self.source)),
                None => return Ok(()),
                Some('\\') => self.escape()?,
                Some('[') => self.class(start)?,
                Some('(') => self.group(start)?,
                Some(')') => {
                    let inside = self.groups.pop().filter(|_| !self.groups.is_empty());
                    let inside = inside.ok_or_else(|| format!("unexpected ): `{}`", self.source))?;
                    self.out.push(')');
                    self.item(inside);
                }
                Some('|') => {
                    self.out.push('|');
                    self.before = Before::Nothing;
                }
                Some('*' | '+' | '?') => self.repetition(start, 1)?,
                Some('{') => match count(self.rest()) {
                    Some((least, most, length)) => {
                        self.at += length;
                        let sound =
                            least <= MOST_REPEATS && most.is_none_or(|most| least <= most && most <= MOST_REPEATS);
                        if !sound {
                            return Err(format!("invalid repeat count: `{}`", &self.source[start..self.at]));
                        }
                        self.repetition(start, most.unwrap_or(least))?;
                    }
                    None => self.literal('{'),
                },
                // Anything may stand at the beginning or the end, even more than once.
                Some(c @ ('^' | '$' | '.')) => {
                    self.out.push(c);
                    self.item(1);
                }
                Some(c) => self.literal(c),
            }
        }
    }

    /// A repetition that begins at `start` and was read but for what makes it lazy.
    fn repetition(&mut self, start: usize, times: u64) -> Result<(), String> {
        self.takes("?");
        let written = &self.source[start..self.at];
        let inside = match self.before {
            Before::Nothing => return Err(format!("missing argument to repetition operator: `{written}`")),
            Before::Repetition(first) => {
                return Err(format!("invalid nested repetition operator: `{}`", &self.source[first..self.at]));
            }
            Before::Item(inside) => inside,
        };
        let repeats = inside.saturating_mul(times.max(1));
        if repeats > MOST_REPEATS {
            return Err(format!("invalid repeat count: `{written}`"));
        }
        self.out.push_str(written);
        self.item(repeats);
        self.before = Before::Repetition(start);
        Ok(())
    }

    /// What follows an opening parenthesis.
    fn group(&mut self, start: usize) -> Result<(), String> {
        self.groups.push(1);
        let before = std::mem::replace(&mut self.before, Before::Nothing);
        if !self.takes("?") {
            self.out.push('(');
            return Ok(());
        }
        if self.takes("P<") || self.takes("<") {
            let (name, length) = match self.rest().find('>') {
                Some(end) => (&self.rest()[..end], end + 1),
                None => ("", self.rest().len()),
            };
            self.at += length;
            if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
                return Err(format!("invalid named capture: `{}`", &self.source[start..self.at]));
            }
            // Nobody asks for it by its name.
            self.out.push('(');
            return Ok(());
        }
        loop {
            match self.next() {
                Some('i' | 'm' | 's' | 'U' | '-') => {}
                Some(end @ (':' | ')')) => {
                    self.out.push_str(&self.source[start..self.at]);
                    if end == ')' {
                        self.groups.pop();
                        self.before = before;
                    }
                    return Ok(());
                }
                _ => {
                    let shown = &self.source[start..self.at];
                    return Err(format!("invalid or unsupported Perl syntax: `{shown}`"));
                }
            }
        }
    }

    /// What follows a backslash outside of brackets.
    fn escape(&mut self) -> Result<(), String> {
        if self.takes("Q") {
            let quoted = self.rest().split("\\E").next().unwrap_or_default();
            self.at += quoted.len();
            self.takes("\\E");
            quoted.chars().for_each(|c| self.literal(c));
            return Ok(());
        }
        let written = match self.rest().chars().next() {
            Some('b') => "(?-u:\\b)",
            Some('B') => "\\B",
            Some('A') => "\\A",
            Some('z') => "\\z",
            next => match next.and_then(perl_class) {
                Some(class) => class,
                None => {
                    self.escaped_character()?;
                    self.item(1);
                    return Ok(());
                }
            },
        };
        self.out.push_str(written);
        self.at += 1;
        self.item(1);
        Ok(())
    }

    /// What follows a backslash anywhere, and is none of [`perl_class`].
    fn escaped_character(&mut self) -> Result<(), String> {
        let start = self.at - 1;
        let octal = |c: &char| ('0'..='7').contains(c);
        match self.next() {
            None => return Err("trailing backslash at end of expression: ``".to_owned()),
            Some(c @ ('a' | 'f' | 'n' | 'r' | 't' | 'v' | 'x' | 'p' | 'P')) => {
                // A number or a name belongs to these, in braces or of two digits and one letter.
                let rest = self.rest();
                let braces = rest.find('}').filter(|_| rest.starts_with('{')).map(|end| end + 1);
                let digits = || rest.chars().take(2).take_while(char::is_ascii_hexdigit).count();
                self.at += match c {
                    'x' => braces.unwrap_or_else(digits),
                    'p' | 'P' => braces.or(rest.chars().next().map(char::len_utf8)).unwrap_or_default(),
                    _ => 0,
                };
                self.out.push_str(&self.source[start..self.at]);
            }
            // A single digit would refer to a group, which there is not.
            Some(first) if first == '0' || (octal(&first) && self.rest().starts_with(|c| octal(&c))) => {
                let more = self.rest().chars().take(2).take_while(octal).count();
                self.at += more;
                let digits = &self.source[self.at - more - 1..self.at];
                let code = u32::from_str_radix(digits, 8).unwrap_or_default();
                self.out.push_str(&format!("\\x{{{code:x}}}"));
            }
            Some(c) if c.is_ascii() && !c.is_ascii_alphanumeric() => {
                self.out.push_str(&regex::escape(c.encode_utf8(&mut [0; 4])));
            }
            Some(_) => return Err(format!("invalid escape sequence: `{}`", &self.source[start..self.at])),
        }
        Ok(())
    }

    /// What stands in brackets, where ours knows sets of sets and the original none.
    fn class(&mut self, start: usize) -> Result<(), String> {
        self.out.push('[');
        if self.takes("^") {
            self.out.push('^');
        }
        // A closing bracket that comes first is an ordinary character.
        let mut is_first = true;
        while is_first || !self.takes("]") {
            is_first = false;
            if self.class_within()? {
                continue;
            }
            self.class_character(start)?;
            let rest = self.rest();
            if rest.len() > 1 && rest.starts_with('-') && !rest.starts_with("-]") {
                self.at += 1;
                self.out.push('-');
                self.class_character(start)?;
            }
        }
        self.out.push(']');
        self.item(1);
        Ok(())
    }

    /// A class that has a name, if there is one next. It begins no range: a dash behind it is an ordinary character.
    fn class_within(&mut self) -> Result<bool, String> {
        let rest = self.rest();
        if let Some(length) = rest.strip_prefix("[:").and_then(|name| name.find(":]")) {
            // `[:alpha:]` reads the same in both.
            let written = &rest[..length + 4];
            self.out.push_str(written);
            self.at += written.len();
            return Ok(true);
        }
        let Some(name) = rest.strip_prefix('\\').and_then(|escaped| escaped.chars().next()) else {
            return Ok(false);
        };
        if let Some(class) = perl_class(name) {
            self.out.push_str(class);
            self.at += 2;
            return Ok(true);
        }
        if matches!(name, 'p' | 'P') {
            self.at += 1;
            self.escaped_character()?;
            return Ok(true);
        }
        Ok(false)
    }

    /// One character in the brackets that begin at `start`. All that means something to our engine is escaped.
    fn class_character(&mut self, start: usize) -> Result<(), String> {
        match self.next() {
            None => return Err(format!("missing closing ]: `{}`", &self.source[start..])),
            Some('\\') => match self.rest().chars().next().filter(|c| "dDwWsSpP".contains(*c)) {
                Some(class) => return Err(format!("invalid escape sequence: `\\{class}`")),
                None => self.escaped_character()?,
            },
            Some(c) => self.out.push_str(&regex::escape(c.encode_utf8(&mut [0; 4]))),
        }
        Ok(())
    }
}

/// What these letters mean behind a backslash, which the original takes for ASCII only.
fn perl_class(letter: char) -> Option<&'static str> {
    Some(match letter {
        'd' => "[0-9]",
        'D' => "[^0-9]",
        'w' => "[0-9A-Za-z_]",
        'W' => "[^0-9A-Za-z_]",
        's' => "[\\t\\n\\f\\r ]",
        'S' => "[^\\t\\n\\f\\r ]",
        _ => return None,
    })
}

/// `2}`, `2,}` or `2,5}`: least, most if there is one, and how long it is written. Everything else in braces is text.
fn count(text: &str) -> Option<(u64, Option<u64>, usize)> {
    let inside = text.split('}').next().filter(|inside| inside.len() < text.len())?;
    let number = |digits: &str| {
        let sound = !digits.is_empty()
            && digits.bytes().all(|b| b.is_ascii_digit())
            && (digits == "0" || !digits.starts_with('0'));
        // One that has too many digits is too large, whatever it is.
        sound.then(|| digits.parse().unwrap_or(u64::MAX))
    };
    let (least, most) = match inside.split_once(',') {
        None => (number(inside)?, Some(number(inside)?)),
        Some((least, "")) => (number(least)?, None),
        Some((least, most)) => (number(least)?, Some(number(most)?)),
    };
    Some((least, most, inside.len() + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_original_refuses_is_refused_in_its_words() {
        for (pattern, why) in [
            ("a++", "invalid nested repetition operator: `++`"),
            ("a**", "invalid nested repetition operator: `**`"),
            ("a{2}{3}", "invalid nested repetition operator: `{2}{3}`"),
            ("a{1001}", "invalid repeat count: `{1001}`"),
            ("a{2,1}", "invalid repeat count: `{2,1}`"),
            ("(a{100}){11}", "invalid repeat count: `{11}`"),
            ("*", "missing argument to repetition operator: `*`"),
            ("a|+", "missing argument to repetition operator: `+`"),
            ("(?x)a", "invalid or unsupported Perl syntax: `(?x`"),
            ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
            ("(?<=a)b", "invalid named capture: `(?<=a)b`"),
            ("(?i", "invalid or unsupported Perl syntax: `(?i`"),
            ("a)", "unexpected ): `a)`"),
            ("(a", "missing closing ): `(a`"),
            ("x[a", "missing closing ]: `[a`"),
            ("a\\", "trailing backslash at end of expression: ``"),
            ("\\1", "invalid escape sequence: `\\1`"),
            ("\\y", "invalid escape sequence: `\\y`"),
            ("[a-\\d]", "invalid escape sequence: `\\d`"),
            ("[a-", "missing closing ]: `[a-`"),
        ] {
            assert_eq!(translated(pattern), Err(why.to_owned()), "{pattern}");
        }
    }

    #[test]
    fn what_only_the_original_takes_is_spelt_out() {
        for (pattern, ours) in [
            ("{", "\\{"),
            ("a{,2}", "a\\{,2\\}"),
            ("a{02}", "a\\{02\\}"),
            ("\\Qa.b\\E+", "a\\.b+"),
            ("\\<a\\>", "<a>"),
            ("\\101", "\\x{41}"),
            ("\\x{41}\\pL\\p{Greek}\\x41", "\\x{41}\\pL\\p{Greek}\\x41"),
            ("(?P<1>a)", "(a)"),
            ("^(a{10}){100}$", "^(a{10}){100}$"),
            ("(?i:a+?)", "(?i:a+?)"),
        ] {
            assert_eq!(translated(pattern).as_deref(), Ok(ours), "{pattern}");
        }
    }
}
