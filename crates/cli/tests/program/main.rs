//! `evenkeel` as people start it: one program of tests, so that its libraries are linked once.

mod crd;
mod docs;
mod engine;
mod generate;
mod install;
mod kube;
mod local;
mod operator;
mod pictures;
mod plan;
mod plan_page;
mod reference_pages;
mod sim;
mod snapshot;
mod status;
mod strimzi;
