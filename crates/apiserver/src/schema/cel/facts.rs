//! What is known about the value of an expression before it runs.

use std::sync::Arc;

use kube_cel::cel::common::ast::LiteralValue;

use super::decl::{Decl, Kind};

/// How large a value can be: items, entries or characters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Range {
    pub(super) min: u64,
    pub(super) max: u64,
}

impl Range {
    pub(super) const UNKNOWN: Self = Self { min: 0, max: u64::MAX };
    pub(super) const ONE: Self = Self { min: 1, max: 1 };

    pub(super) fn exactly(size: usize) -> Self {
        Self { min: size as u64, max: size as u64 }
    }

    pub(super) fn union(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

/// What is known about one expression.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    pub(super) ty: Arc<Decl>,
    pub(super) size: Range,
    pub(super) cost: u64,
}

pub(super) fn var(name: &str, ty: Arc<Decl>) -> (String, Facts) {
    (name.to_owned(), declared(ty, 1))
}

/// A value whose size its declaration bounds.
pub(super) fn declared(ty: Arc<Decl>, cost: u64) -> Facts {
    Facts { size: Range { min: 0, max: ty.max }, ty, cost }
}

/// A value that an expression made: scalars have size one, and of others nothing is known unless told.
pub(super) fn made(kind: Kind, size: Option<Range>, cost: u64) -> Facts {
    let scalar = matches!(
        kind,
        Kind::Bool
            | Kind::Double
            | Kind::Duration
            | Kind::Int
            | Kind::Timestamp
            | Kind::Uint
            | Kind::Null
            | Kind::Optional
    );
    let size = size.unwrap_or(if scalar { Range::ONE } else { Range::UNKNOWN });
    Facts { ty: Decl::simple(kind, size.max, 1), size, cost }
}

pub(super) fn literal_facts(literal: &LiteralValue) -> Facts {
    let (kind, size) = match literal {
        LiteralValue::Boolean(_) => (Kind::Bool, None),
        LiteralValue::Bytes(bytes) => (Kind::Bytes, Some(Range::exactly(bytes.inner().len()))),
        LiteralValue::Double(_) => (Kind::Double, None),
        LiteralValue::Int(_) => (Kind::Int, None),
        LiteralValue::Null => (Kind::Null, None),
        LiteralValue::String(text) => (Kind::String, Some(Range::exactly(text.inner().chars().count()))),
        LiteralValue::UInt(_) => (Kind::Uint, None),
    };
    made(kind, size, 0)
}

pub(super) fn sum(facts: &[Facts]) -> u64 {
    facts.iter().map(|facts| facts.cost).fold(0, u64::saturating_add)
}

/// The type with the size that the expression has.
pub(super) fn sized(facts: &Facts) -> Arc<Decl> {
    resized(&facts.ty, facts.size)
}

pub(super) fn resized(ty: &Arc<Decl>, size: Range) -> Arc<Decl> {
    if ty.max == size.max { ty.clone() } else { Arc::new(ty.resized(size.max)) }
}
