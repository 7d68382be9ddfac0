//! Where in an object a check stands, written out only when something is wrong.
//!
//! The original has two ways of writing map keys: its type checks say `spec.labels.app`, its other checks say
//! `spec.labels[app]`. One path can be written both ways.

use std::fmt::Write;

/// A place in an object, linked to the places it lies in.
#[derive(Clone, Copy)]
pub(crate) struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    /// The checked value itself, which lies somewhere (`prefix`, often empty).
    Root(&'a str),
    Field(&'a str),
    Key(&'a str),
    Index(usize),
}

impl<'a> Path<'a> {
    /// The checked value itself.
    pub(crate) fn root(prefix: &'a str) -> Self {
        Self { parent: None, step: Step::Root(prefix) }
    }

    /// A named field.
    pub(crate) fn field(&'a self, name: &'a str) -> Self {
        Self { parent: Some(self), step: Step::Field(name) }
    }

    /// A key of a map.
    pub(crate) fn key(&'a self, key: &'a str) -> Self {
        Self { parent: Some(self), step: Step::Key(key) }
    }

    /// An item of a list.
    pub(crate) fn index(&'a self, index: usize) -> Self {
        Self { parent: Some(self), step: Step::Index(index) }
    }

    /// Whether this is the checked value itself.
    pub(crate) fn is_root(&self) -> bool {
        self.parent.is_none()
    }

    /// `prefix.spec.labels[app]`.
    pub(crate) fn bracketed(&self) -> String {
        let mut out = self.prefix().to_owned();
        self.write(&mut out, false);
        out
    }

    /// `prefix.spec.labels.app`.
    pub(crate) fn dotted(&self) -> String {
        let mut out = self.prefix().to_owned();
        self.write(&mut out, true);
        out
    }

    /// `spec.labels.app`, as the messages of type checks have it: without the prefix.
    pub(crate) fn within(&self) -> String {
        let mut out = String::new();
        self.write(&mut out, true);
        out
    }

    fn prefix(&self) -> &'a str {
        match (self.parent, self.step) {
            (_, Step::Root(prefix)) => prefix,
            (Some(parent), _) => parent.prefix(),
            (None, _) => "",
        }
    }

    fn write(&self, out: &mut String, dotted_keys: bool) {
        if let Some(parent) = self.parent {
            parent.write(out, dotted_keys);
        }
        match self.step {
            Step::Root(_) => {}
            Step::Field(name) => push_name(out, name),
            Step::Key(key) if dotted_keys => push_name(out, key),
            Step::Key(key) => _ = write!(out, "[{key}]"),
            Step::Index(index) => _ = write!(out, "[{index}]"),
        }
    }
}

fn push_name(out: &mut String, name: &str) {
    if !out.is_empty() {
        out.push('.');
    }
    out.push_str(name);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn map_keys_are_written_in_two_ways() {
        let root = Path::root("");
        let (spec, labels, app, item);
        spec = root.field("spec");
        labels = spec.field("labels");
        app = labels.key("app");
        item = app.index(3);
        assert_eq!(item.bracketed(), "spec.labels[app][3]");
        assert_eq!(item.dotted(), "spec.labels.app[3]");
    }

    #[test]
    fn a_prefix_is_not_part_of_what_messages_say() {
        let root = Path::root("spec.default");
        let name = root.field("name");
        assert_eq!(name.dotted(), "spec.default.name");
        assert_eq!(name.within(), "name");
        assert_eq!(root.bracketed(), "spec.default");
    }
}
