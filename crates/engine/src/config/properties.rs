//! Java's properties files, as far as people write them, with values from the environment.

use std::{collections::BTreeMap, fmt};

/// Keys and values.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Properties(BTreeMap<String, String>);

/// Why a file is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// An escape that stands for nothing.
    #[error("line {line}: `\\u` wants four hexadecimal digits")]
    Escape {
        /// Where, counted from 1.
        line: usize,
    },
    /// A variable that is not set.
    #[error("`{key}` asks for the environment variable `{variable}`, which is not set")]
    Variable {
        /// Whose value it is in.
        key: String,
        /// Which.
        variable: String,
    },
    /// Values that are found elsewhere.
    #[error("`{key}`: of `${{{provider}:…}}` only `${{env:…}}` is known")]
    Provider {
        /// Whose value it is in.
        key: String,
        /// What was asked.
        provider: String,
    },
    /// Something that is found elsewhere, and is not there.
    #[error("`{key}` asks for `{asked}`, which is not there")]
    Reference {
        /// Whose value it is in.
        key: String,
        /// What was asked, with its provider.
        asked: String,
    },
}

impl Properties {
    /// Reads a file; `variable` knows the environment. Of a key that is there twice the last counts.
    pub fn read(text: &str, variable: impl Fn(&str) -> Option<String>) -> Result<Properties, Unreadable> {
        Properties::parse(text, |key, value| filled(key, &value, &variable))
    }

    fn parse(text: &str, fill: impl Fn(&str, String) -> Result<String, Unreadable>) -> Result<Properties, Unreadable> {
        let mut found = BTreeMap::new();
        let mut lines = text.lines().enumerate();
        while let Some((number, first)) = lines.next() {
            let mut line = first.trim_start().to_owned();
            if line.is_empty() || line.starts_with(['#', '!']) {
                continue;
            }
            while ends_in_backslash(&line) {
                line.pop();
                line.push_str(lines.next().map_or("", |(_, next)| next.trim_start()));
            }
            let (key, value) = split(&line);
            let unescape = |text: &str| unescaped(text).ok_or(Unreadable::Escape { line: number + 1 });
            let key = unescape(key)?;
            let value = fill(&key, unescape(value)?)?;
            found.insert(key, value.trim_end().to_owned());
        }
        Ok(Properties(found))
    }

    /// The same without a look at variables: what looks like one means itself.
    pub fn read_literally(text: &str) -> Result<Properties, Unreadable> {
        Properties::parse(text, |_, value| Ok(value))
    }

    /// The same where values are found in more places: `ask` gets the key, the provider and what is asked of it.
    pub fn read_asking(
        text: &str,
        ask: impl Fn(&str, &str, &str) -> Result<String, Unreadable>,
    ) -> Result<Properties, Unreadable> {
        Properties::parse(text, |key, value| answered(key, &value, &ask))
    }

    /// A value; one that is empty counts as not given.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// All keys.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

/// Values may be secrets: only keys are shown.
impl fmt::Debug for Properties {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_set().entries(self.0.keys()).finish()
    }
}

/// An odd number of them: the last one is no escaped backslash.
fn ends_in_backslash(line: &str) -> bool {
    line.chars().rev().take_while(|character| *character == '\\').count() % 2 == 1
}

/// Key and value: at the first `=`, `:` or blank that no backslash precedes.
fn split(line: &str) -> (&str, &str) {
    let mut escaped = false;
    for (at, character) in line.char_indices() {
        let separates = matches!(character, '=' | ':') || character.is_whitespace();
        if separates && !escaped {
            let rest = line[at..].trim_start();
            return (&line[..at], rest.strip_prefix(['=', ':']).unwrap_or(rest).trim_start());
        }
        escaped = character == '\\' && !escaped;
    }
    (line, "")
}

fn unescaped(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        if character != '\\' {
            plain.push(character);
            continue;
        }
        match rest.next() {
            Some('n') => plain.push('\n'),
            Some('t') => plain.push('\t'),
            Some('r') => plain.push('\r'),
            Some('f') => plain.push('\u{c}'),
            Some('u') => {
                let digits: String = rest.by_ref().take(4).collect();
                let number = u32::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 4)?;
                plain.push(char::from_u32(number)?);
            }
            Some(other) => plain.push(other),
            None => {}
        }
    }
    Some(plain)
}

/// The value with `${env:NAME}` replaced.
fn filled(key: &str, value: &str, variable: &impl Fn(&str) -> Option<String>) -> Result<String, Unreadable> {
    answered(key, value, &|key: &str, provider: &str, name: &str| {
        if provider != "env" {
            return Err(Unreadable::Provider { key: key.to_owned(), provider: provider.to_owned() });
        }
        variable(name).ok_or_else(|| Unreadable::Variable { key: key.to_owned(), variable: name.to_owned() })
    })
}

/// The value with every `${provider:name}` replaced.
fn answered(
    key: &str,
    value: &str,
    ask: &impl Fn(&str, &str, &str) -> Result<String, Unreadable>,
) -> Result<String, Unreadable> {
    let mut whole = String::with_capacity(value.len());
    let mut rest = value;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((asked, behind)) = after.split_once('}') else { break };
        let Some((provider, name)) = asked.split_once(':') else {
            // Not of the form of a question: means itself.
            whole.push_str(before);
            whole.push_str("${");
            rest = after;
            continue;
        };
        whole.push_str(before);
        whole.push_str(&ask(key, provider, name)?);
        rest = behind;
    }
    whole.push_str(rest);
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Properties, Unreadable> {
        Properties::read(text, |name| (name == "PORT").then(|| "9092".to_owned()))
    }

    #[test]
    fn files_are_read_as_java_reads_them() {
        let properties = read(
            "# a comment\n! another\n\n  bootstrap.servers = a:1,\\\n      b:2\nkey: value # not a comment\nblank value\n\
             empty=\npath=C:\\\\data\\\\\nunicode=\\u00e9\nodd\\=key=1\ntwice=1\ntwice=2\n",
        )
        .unwrap();
        let get = |key| properties.get(key);
        assert_eq!(get("bootstrap.servers"), Some("a:1,b:2"));
        assert_eq!(get("key"), Some("value # not a comment"));
        assert_eq!(get("blank"), Some("value"));
        assert_eq!(get("empty"), None);
        assert_eq!(get("path"), Some("C:\\data\\"));
        assert_eq!(get("unicode"), Some("é"));
        assert_eq!(get("odd=key"), Some("1"));
        assert_eq!(get("twice"), Some("2"));
    }

    #[test]
    fn values_come_from_the_environment() {
        let properties = read("a=host:${env:PORT}/${env:PORT}\nb=${unclosed\nc=$ ${x}").unwrap();
        assert_eq!(properties.get("a"), Some("host:9092/9092"));
        assert_eq!(properties.get("b"), Some("${unclosed"));
        assert_eq!(properties.get("c"), Some("$ ${x}"));
        assert_eq!(
            read("a=${env:NOPE}").unwrap_err().to_string(),
            "`a` asks for the environment variable `NOPE`, which is not set"
        );
        assert_eq!(read("a=${file:/x:y}").unwrap_err().to_string(), "`a`: of `${file:…}` only `${env:…}` is known");
    }

    #[test]
    fn a_broken_escape_says_where() {
        assert_eq!(read("a=1\nb=\\u12").unwrap_err(), Unreadable::Escape { line: 2 });
    }

    #[test]
    fn values_are_not_shown() {
        let properties = read("ssl.key.password=hush").unwrap();
        assert_eq!(format!("{properties:?}"), "{\"ssl.key.password\"}");
    }
}
