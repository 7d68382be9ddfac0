//! What users, tools and the controllers rely on. One binary, so that it links once.

mod committed_crds;
mod crd_facts;
mod examples;
mod support;
mod types;
