//! Which Kubernetes the server says it is. Clients take the text apart, so it has to be one that they can.

use std::fmt;
use std::str::FromStr;

/// A version such as `v1.35.0`, perhaps with a suffix such as `-rc.1` or `+k3s1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KubernetesVersion {
    text: String,
    major: String,
    minor: String,
}

/// The text is no version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("that is no version; write vMAJOR.MINOR.PATCH, such as v1.35.0")]
pub struct NoVersion;

impl KubernetesVersion {
    /// With its `v`.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub(super) fn major(&self) -> &str {
        &self.major
    }

    pub(super) fn minor(&self) -> &str {
        &self.minor
    }
}

impl Default for KubernetesVersion {
    /// The version whose schemas are built in.
    fn default() -> Self {
        Self { text: "v1.35.0".into(), major: "1".into(), minor: "35".into() }
    }
}

impl fmt::Display for KubernetesVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for KubernetesVersion {
    type Err = NoVersion;

    /// Takes it with or without the `v`.
    fn from_str(text: &str) -> Result<Self, NoVersion> {
        let bare = text.strip_prefix('v').unwrap_or(text);
        let (numbers, suffix) = bare.split_at(bare.find(['-', '+']).unwrap_or(bare.len()));
        let is_number = |part: &&str| part.parse::<u32>().is_ok() && part.bytes().all(|b| b.is_ascii_digit());
        let numbers: Vec<&str> = numbers.split('.').collect();
        let suffix_fits = suffix.is_empty()
            || suffix.len() > 1 && suffix.bytes().all(|b| b.is_ascii_alphanumeric() || b"-+.".contains(&b));
        match numbers[..] {
            [major, minor, patch] if numbers.iter().all(is_number) && suffix_fits => Ok(Self {
                text: format!("v{major}.{minor}.{patch}{suffix}"),
                major: major.to_owned(),
                minor: minor.to_owned(),
            }),
            _ => Err(NoVersion),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_taken_with_and_without_the_letter_and_told_with_it() {
        let told = |text: &str| text.parse::<KubernetesVersion>().map(|v| (v.major().to_owned(), v.to_string()));
        assert_eq!(told("v1.29.3"), Ok(("1".into(), "v1.29.3".into())));
        assert_eq!(told("1.29.3"), told("v1.29.3"));
        assert_eq!(told("v1.29.3+k3s1"), Ok(("1".into(), "v1.29.3+k3s1".into())));
        assert_eq!(told("v1.36.0-rc.1"), Ok(("1".into(), "v1.36.0-rc.1".into())));
        let default = KubernetesVersion::default();
        assert_eq!(default.as_str().parse(), Ok(default));
    }

    #[test]
    fn what_is_no_version_is_refused() {
        let none = [
            "",
            "v",
            "bogus",
            "1",
            "v1.35",
            "v1.35.x",
            "v1.35.0.0",
            "v1.35.x.0",
            "v1..0",
            "vv1.35.0",
            "1.35.0-",
            "v+1.2.3",
        ];
        let odd = ["v1.35.99999999999", "1.+2.3", "1.35.0 ", "v1.35.0+k 3", "v1.35.0\n", "-1.2.3", "v1.35.0-\u{e9}"];
        for text in none.into_iter().chain(odd) {
            assert_eq!(text.parse::<KubernetesVersion>(), Err(NoVersion), "{text:?}");
        }
    }
}
