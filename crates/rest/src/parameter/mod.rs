//! Parameters as data: what kinds of values there are, and structs of parameters that can read themselves from a query,
//! write themselves into one, and list themselves for the documentation. One declaration gives all three.

mod choices;
mod kinds;
mod pattern;

pub(crate) use choices::choice;
pub use choices::{AdjusterType, AnomalyType, DataFrom, Resource, Substate, TaskStatus};
pub use kinds::{LogDirs, PartitionRange, TimeOrNow};
pub use pattern::TopicPattern;

pub use kinds::{
    Adjusters, Anomalies, BrokerIds, Concurrency, Endpoints, Entries, Flag, LogDirsOfBrokers, Megabytes, Millis, Names,
    Partitions, Pattern, Ratio, ResourceName, ReviewId, Sources, Substates, TaskIds, TaskStatuses, Text, Throttle,
    Time,
};

use crate::query::Query;

/// A value that cannot be what it should be. The text is the whole message of a 400.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unfit(pub(crate) String);

/// How values of one sort are read and written.
pub trait Kind {
    /// What they are here.
    type Value;
    /// What they are to a reader of the documentation.
    const NAME: &'static str;
    /// Reads one.
    fn parse(text: &str) -> Result<Self::Value, Unfit>;
    /// Writes one, so that it is read as the same.
    fn write(value: &Self::Value) -> String;
}

/// One line of the documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// As it stands in queries; any case is accepted.
    pub name: &'static str,
    /// What sort of value it takes.
    pub kind: &'static str,
    /// What holds when it is not given; empty if nothing does.
    pub default: String,
    /// What it is for.
    pub help: &'static str,
}

/// A set of parameters.
pub(crate) trait Parameters: Sized {
    fn list(into: &mut Vec<Parameter>);
    fn read(query: &Query) -> Result<Self, Unfit>;
    fn write(&self, into: &mut Query);
}

/// Declares a struct of parameters: `groups` are structs that several endpoints share, what is `optional` may be absent,
/// and `defaults` have a value when they are not given. A field's name is the parameter's; its comment is the help.
macro_rules! parameters {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $(groups { $( $(#[doc = $group_help:literal])* $group:ident: $group_type:ty, )* })?
            $(optional { $( $(#[doc = $option_help:literal])* $option:ident: $option_kind:ty, )* })?
            $(defaults { $( $(#[doc = $help:literal])* $field:ident: $kind:ty = $default:expr, )* })?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            $($( $(#[doc = $group_help])* pub $group: $group_type, )*)?
            $($( $(#[doc = $option_help])* pub $option: Option<<$option_kind as $crate::parameter::Kind>::Value>, )*)?
            $($( $(#[doc = $help])* pub $field: <$kind as $crate::parameter::Kind>::Value, )*)?
        }

        impl Default for $name {
            fn default() -> Self {
                Self {
                    $($( $group: <$group_type>::default(), )*)?
                    $($( $option: None, )*)?
                    $($( $field: $default, )*)?
                }
            }
        }

        impl $crate::parameter::Parameters for $name {
            fn list(into: &mut Vec<$crate::parameter::Parameter>) {
                $($( <$group_type as $crate::parameter::Parameters>::list(into); )*)?
                $($( into.push($crate::parameter::Parameter {
                    name: stringify!($option),
                    kind: <$option_kind as $crate::parameter::Kind>::NAME,
                    default: String::new(),
                    help: concat!($($option_help),*).trim_ascii(),
                }); )*)?
                $($( into.push($crate::parameter::Parameter {
                    name: stringify!($field),
                    kind: <$kind as $crate::parameter::Kind>::NAME,
                    default: <$kind as $crate::parameter::Kind>::write(&$default),
                    help: concat!($($help),*).trim_ascii(),
                }); )*)?
            }

            fn read(query: &$crate::query::Query) -> Result<Self, $crate::parameter::Unfit> {
                Ok(Self {
                    $($( $group: <$group_type as $crate::parameter::Parameters>::read(query)?, )*)?
                    $($( $option: query
                        .get(stringify!($option))
                        .map(<$option_kind as $crate::parameter::Kind>::parse)
                        .transpose()?, )*)?
                    $($( $field: match query.get(stringify!($field)) {
                        Some(text) => <$kind as $crate::parameter::Kind>::parse(text)?,
                        None => $default,
                    }, )*)?
                })
            }

            fn write(&self, into: &mut $crate::query::Query) {
                $($( $crate::parameter::Parameters::write(&self.$group, into); )*)?
                $($( if let Some(value) = &self.$option {
                    into.push(stringify!($option), <$option_kind as $crate::parameter::Kind>::write(value));
                } )*)?
                // What is the default is left out: servers that do not know a parameter are asked only if it matters.
                $($( let default: <$kind as $crate::parameter::Kind>::Value = $default;
                if self.$field != default {
                    into.push(stringify!($field), <$kind as $crate::parameter::Kind>::write(&self.$field));
                } )*)?
            }
        }
    };
}

pub(crate) use parameters;
