//! The operator put on a cluster, and taken off again.
//!
//! [`Manifests`] are what stands in `deploy/`, for whoever wants to look before applying. [`put()`] applies them, and
//! [`remove()`] takes away what they made: whatever carries somebody else's marks, such as CRDs of a Strimzi that is
//! there already, is neither overwritten nor removed.

pub mod definitions;
mod kinds;
mod manifests;
mod marks;
mod predecessor;
mod put;
mod remove;
mod residence;
mod scope;

pub use manifests::{DEFAULT_NAMESPACE, Invalid, Manifests};
pub use put::put;
pub use remove::{Extent, remove};

use std::fmt;

/// What became of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// Its kind, in small letters, and its name.
    pub what: String,
    /// What became of it.
    pub outcome: Outcome,
}

/// What became of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is as the manifests say.
    Applied,
    /// It is as the manifests say, but for the image, which is the one that it had.
    Kept(String),
    /// Its finalizers of ours are off, so nobody waits for us.
    Released,
    /// It is gone.
    Removed,
    /// It is still going, because something else holds it.
    Going,
    /// It was not touched, and why.
    Left(String),
}

impl fmt::Display for Done {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, outcome } = self;
        match outcome {
            Outcome::Applied => write!(out, "{what} applied"),
            Outcome::Kept(image) => write!(out, "{what} applied; it keeps the image {image}: --image names no other"),
            Outcome::Released => write!(out, "{what} released"),
            Outcome::Removed => write!(out, "{what} removed"),
            Outcome::Going => write!(out, "{what} is being removed; something else still holds it"),
            Outcome::Left(why) => write!(out, "{what} left as it is: {why}"),
        }
    }
}

/// Why something could not be put or removed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The manifests cannot be made.
    #[error(transparent)]
    Manifests(#[from] Invalid),
    /// An object could not be read.
    #[error("could not read {what}")]
    Read {
        /// Which.
        what: String,
        /// Why.
        source: kube::Error,
    },
    /// An object could not be written.
    #[error("could not write {what}")]
    Write {
        /// Which.
        what: String,
        /// Why.
        source: kube::Error,
    },
    /// There is no image to run.
    #[error("no image is named, and none is published")]
    NoImage,
    /// Somebody else runs these, and our operator would look at them.
    #[error("{0} belong to another operator, in namespaces that ours would look after")]
    Taken(String),
    /// There are resources, and nobody said that they may go.
    #[error("{0} would go with the CRDs")]
    Clusters(String),
    /// These are not our operator's, and would go with the CRDs.
    #[error("{0} would go with the CRDs, and our operator did not look after them")]
    Others(String),
    /// The operator is installed in that namespace, and there can be only one.
    #[error("the operator lives in the namespace {0}")]
    Elsewhere(String),
    /// What the operator looked after cannot be told.
    #[error("what the operator looked after stands in {0}, which only its pod can read")]
    Unclear(String),
    /// What runs under our operator's name is not ours to end.
    #[error("{0} was not installed by this program")]
    Foreign(String),
    /// The operator does not end, and would put back whatever is taken off.
    #[error("{0} does not end")]
    Running(String),
    /// Somebody else writes it all the time.
    #[error("{0} was written by somebody else again and again")]
    Contested(String),
}

impl Error {
    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Manifests(_) => "Name another namespace, image or selector",
            Self::Read { source, .. } | Self::Write { source, .. } => match source {
                kube::Error::Api(status) if status.is_forbidden() => "Use an account that may administer the cluster",
                _ => "Look at the cluster, and do it again: what is done already stays done",
            },
            Self::NoImage => "Build one, as docs/install.md says, and name it with --image",
            Self::Taken(_) => {
                "Name the namespaces that it is to look after with --watch, and leave out those; or the labels of its \
                 Kafkas with --selector"
            }
            Self::Clusters(_) => "Remove them first, or use --crds-and-clusters, which deletes them with their data",
            Self::Others(_) => "Remove them first, or leave the CRDs where they are: leave --crds-and-clusters out",
            Self::Elsewhere(_) => "Name that namespace with --namespace; to move it, uninstall it there first",
            Self::Unclear(_) => {
                "Write the value itself into the Deployment, or use --force: then it looked after everything"
            }
            Self::Foreign(_) => "End it by the way it was installed, or use --force",
            Self::Running(_) => "Look at its node; if it is lost, and the pod with it, use --force",
            Self::Contested(_) => "Find out who writes it, and do it again: what is done already stays done",
        }
    }

    fn reading(what: &str) -> impl FnOnce(kube::Error) -> Self {
        let what = what.to_owned();
        move |source| Self::Read { what, source }
    }

    fn writing(what: &str) -> impl FnOnce(kube::Error) -> Self {
        let what = what.to_owned();
        move |source| Self::Write { what, source }
    }
}
