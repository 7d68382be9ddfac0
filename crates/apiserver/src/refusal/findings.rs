//! What is told of everything that is wrong with one request: as much as anybody reads.
//!
//! A fault names the whole path to it, so a long name near the root stands in every fault below it, and a body of a few
//! megabytes could ask for an answer of as many gigabytes. Whoever looks for faults tells them to [`Findings`], which
//! asks for the text of one only while there is room for it.

use super::{Cause, FieldError};

/// More findings than this are not told.
pub(crate) const MAX_FOUND: usize = 256;

/// Nor is any once this much text was made for those before it.
const MAX_TEXT: usize = 1 << 20;

/// Something that can be told.
pub(crate) trait Told {
    /// How much text it is.
    fn length(&self) -> usize;
}

impl Told for String {
    fn length(&self) -> usize {
        self.len()
    }
}

impl Told for FieldError {
    fn length(&self) -> usize {
        self.field.len() + self.value.len() + self.detail.len()
    }
}

impl Told for Cause {
    fn length(&self) -> usize {
        self.field.len() + self.message.len()
    }
}

/// What was found, as far as it is told. The first finding always is.
#[derive(Debug)]
pub(crate) struct Findings<T> {
    told: Vec<T>,
    text: usize,
    more: bool,
}

impl<T> Default for Findings<T> {
    fn default() -> Self {
        Self { told: Vec::new(), text: 0, more: false }
    }
}

impl<T: Told> Findings<T> {
    /// Tells a finding, which is made only if there is room for it.
    pub(crate) fn tell(&mut self, make: impl FnOnce() -> T) {
        if self.is_full() {
            self.more = true;
            return;
        }
        let finding = make();
        self.text += finding.length();
        self.told.push(finding);
    }

    /// Tells a finding that may have been told before, and then is not told again. Its text counts all the same.
    pub(crate) fn tell_once(&mut self, make: impl FnOnce() -> T)
    where
        T: PartialEq,
    {
        let full = self.is_full();
        self.tell(make);
        // Where nothing was added, looking through what is there again and again would take the longest.
        if full {
            return;
        }
        if let Some((last, before)) = self.told.split_last()
            && before.contains(last)
        {
            self.told.pop();
        }
    }

    /// Nothing more will be told.
    pub(crate) fn is_full(&self) -> bool {
        self.told.len() >= MAX_FOUND || self.text >= MAX_TEXT
    }

    /// Nothing was found.
    pub(crate) fn is_empty(&self) -> bool {
        self.told.is_empty()
    }

    /// Something was found and is not told.
    pub(crate) fn has_more(&self) -> bool {
        self.more
    }

    /// What is told so far.
    pub(crate) fn told(&self) -> &[T] {
        &self.told
    }

    /// What is told.
    pub(crate) fn into_told(self) -> Vec<T> {
        self.told
    }
}

impl<T: Told> Extend<T> for Findings<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, findings: I) {
        findings.into_iter().for_each(|finding| self.tell(|| finding));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_told_however_long_and_what_has_no_room_is_not_even_made() {
        let mut findings = Findings::default();
        findings.tell(|| "x".repeat(2 * MAX_TEXT));
        findings.tell(|| unreachable!("there is no room for it"));
        assert_eq!((findings.told().len(), findings.has_more()), (1, true));
        let mut findings = Findings::default();
        findings.extend((0..MAX_FOUND).map(|n| n.to_string()));
        assert!(findings.is_full() && !findings.has_more());
        findings.tell(|| unreachable!("there is no room for it"));
        assert_eq!((findings.told().len(), findings.has_more()), (MAX_FOUND, true));
    }

    #[test]
    fn what_is_found_again_and_again_is_told_once_and_counts_each_time() {
        let mut findings = Findings::default();
        for _ in 0..8 {
            findings.tell_once(|| "x".repeat(MAX_TEXT / 4));
        }
        assert_eq!((findings.told().len(), findings.has_more()), (1, true));
    }
}
