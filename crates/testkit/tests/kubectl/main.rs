//! kubectl as people use it: real binaries of two minors against the server, and the output that people rely on.
//!
//! Each scene is one function over a [`terminal::Terminal`] and runs with every chosen kubectl against the embedded
//! server over TLS, and (feature `real-kube`) against the real one. Where no kubectl is installed the suite says in one
//! line that it skipped; in CI that is a failure. The kubectl of the very version that the embedded server says it has
//! comes with the real control plane, so it meets the embedded server there too.

/// Makes three tests of each scene, one per arm.
macro_rules! scenes {
    ($($name:ident),+ $(,)?) => {
        mod embedded_arm {
            $( #[test] fn $name() { $crate::stage::embedded().play(super::$name) } )+
        }
        #[cfg(feature = "real-kube")]
        mod real_arm {
            $( #[test] fn $name() { $crate::stage::real().play(super::$name) } )+
        }
        #[cfg(feature = "real-kube")]
        mod newest_kubectl_arm {
            $( #[test] fn $name() { $crate::stage::embedded_and_newest_kubectl().play(super::$name) } )+
        }
    };
}

mod stage;
mod terminal;

mod applying;
mod changing;
mod deleting;
mod learning;
mod looking;
mod resources;
