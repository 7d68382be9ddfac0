//! Names of topics. A large cluster has some thousand of them and a hundred times as many partitions, each of which is
//! spoken of by its topic's name: so a name is kept once, and whoever speaks of it holds on to that.

use std::{borrow::Borrow, fmt, ops::Deref, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A topic's name. A clone is the same text and not another one.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicName(Arc<str>);

impl TopicName {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Deref for TopicName {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for TopicName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for TopicName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl From<&str> for TopicName {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<String> for TopicName {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl From<&String> for TopicName {
    fn from(text: &String) -> Self {
        Self(text.as_str().into())
    }
}

impl From<&TopicName> for TopicName {
    fn from(name: &TopicName) -> Self {
        name.clone()
    }
}

impl From<TopicName> for String {
    fn from(name: TopicName) -> Self {
        name.as_str().to_owned()
    }
}

impl PartialEq<str> for TopicName {
    fn eq(&self, text: &str) -> bool {
        self.as_str() == text
    }
}

impl PartialEq<&str> for TopicName {
    fn eq(&self, text: &&str) -> bool {
        self.as_str() == *text
    }
}

impl PartialEq<String> for TopicName {
    fn eq(&self, text: &String) -> bool {
        self.as_str() == text
    }
}

impl fmt::Display for TopicName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

impl fmt::Debug for TopicName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, out)
    }
}

impl Serialize for TopicName {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self)
    }
}

impl<'de> Deserialize<'de> for TopicName {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from).map(Self::from)
    }
}
