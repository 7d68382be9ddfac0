//! Types and costs of operators.

use kube_cel::cel::common::ast::{CallExpr, Expr, LiteralValue, operators};

use super::super::cost_of_calls::scaled;
use super::super::decl::{Decl, Kind};
use super::super::facts::{Facts, Range, declared, made, resized, sum};
use super::super::operands::{
    arithmetic, comparable, compare_cost, equality_cost, fits_beside, indexable, ordered, searchable,
};
use super::{Walk, indexed, optional};

impl Walk<'_> {
    /// Operators, which the parser turns into calls with odd names.
    pub(super) fn operator(&mut self, name: &str, call: &CallExpr, args: &[Facts]) -> Option<Facts> {
        let cost = sum(args);
        Some(match (name, args) {
            (operators::LOGICAL_AND | operators::LOGICAL_OR, [_, _]) => {
                for (arg, facts) in call.args.iter().zip(args) {
                    self.must_be_bool(arg, facts);
                }
                made(Kind::Bool, None, cost)
            }
            (operators::LOGICAL_NOT, [a]) => {
                self.must_match(name, args, matches!(a.ty.kind, Kind::Bool | Kind::Dyn));
                made(Kind::Bool, None, cost.saturating_add(1))
            }
            (operators::NOT_STRICTLY_FALSE, [_]) => made(Kind::Bool, None, cost.saturating_add(1)),
            (operators::CONDITIONAL, [condition, yes, no]) => {
                self.must_be_bool(&call.args[0], condition);
                let same = yes.ty.kind == no.ty.kind;
                let loose = |facts: &Facts| matches!(facts.ty.kind, Kind::Dyn | Kind::Null);
                self.must_match(name, args, same || loose(yes) || loose(no));
                let ty = if same { self.larger(&yes.ty, &no.ty) } else { Decl::of_kind(Kind::Dyn) };
                let cost = condition.cost.saturating_add(yes.cost.max(no.cost));
                Facts { ty, size: yes.size.union(no.size), cost }
            }
            (operators::EQUALS | operators::NOT_EQUALS, [a, b]) => {
                self.must_match(name, args, comparable(a, b));
                let extra = if name == operators::EQUALS { equality_cost(a, b) } else { compare_cost(a, b) };
                // However large they are, the original takes them for no larger than texts.
                let compared = self.deep_size(&a.ty).min(self.deep_size(&b.ty));
                made(Kind::Bool, None, cost.saturating_add(extra.max(compared)))
            }
            (operators::LESS | operators::LESS_EQUALS | operators::GREATER | operators::GREATER_EQUALS, [a, b]) => {
                self.must_match(name, args, ordered(a, b));
                let text = |facts: &Facts| matches!(facts.ty.kind, Kind::String | Kind::Bytes | Kind::Dyn);
                let extra = if text(a) && text(b) { compare_cost(a, b) } else { 1 };
                made(Kind::Bool, None, cost.saturating_add(extra))
            }
            (operators::ADD, [a, b]) => self.add(a, b, args),
            (operators::SUBSTRACT | operators::MULTIPLY | operators::DIVIDE | operators::MODULO, [a, b]) => {
                let kind = arithmetic(name, a.ty.kind, b.ty.kind);
                self.must_match(name, args, kind.is_some());
                made(kind.unwrap_or(Kind::Dyn), None, cost.saturating_add(1))
            }
            (operators::NEGATE, [a]) => {
                self.must_match(name, args, matches!(a.ty.kind, Kind::Int | Kind::Double | Kind::Dyn));
                made(a.ty.kind, None, cost.saturating_add(1))
            }
            (operators::IN, [item, list]) => {
                self.must_match(name, args, searchable(item, list));
                let walks = matches!(list.ty.kind, Kind::List | Kind::Dyn);
                let each = self.deep_size(&item.ty).max(1);
                let extra = if walks { list.size.max.saturating_mul(each) } else { 1 };
                made(Kind::Bool, None, cost.saturating_add(extra))
            }
            (operators::INDEX, [on, by]) => {
                self.must_match(name, args, indexable(&on.ty, by.ty.kind));
                let (item, in_optional) = indexed(on);
                let cost = cost.saturating_add(1).saturating_add(self.copied(&item));
                let facts = if in_optional { optional(item) } else { item };
                Facts { cost, ..facts }
            }
            (operators::OPT_INDEX, [on, _]) => {
                let field = match &call.args[1].expr {
                    Expr::Literal(LiteralValue::String(name)) => self.field(on, name.inner()),
                    _ => indexed(on).0,
                };
                let cost = cost.saturating_add(1).saturating_add(self.copied(&field));
                let facts = if field.ty.kind == Kind::Optional { declared(field.ty, 0) } else { optional(field) };
                Facts { cost, ..facts }
            }
            _ => return None,
        })
    }

    fn add(&mut self, a: &Facts, b: &Facts, args: &[Facts]) -> Facts {
        let cost = a.cost.saturating_add(b.cost);
        let size = Range { min: a.size.min.saturating_add(b.size.min), max: a.size.max.saturating_add(b.size.max) };
        let kind = match (a.ty.kind, b.ty.kind) {
            (Kind::Dyn, other) | (other, Kind::Dyn) => Some(other),
            (Kind::List, Kind::List) => fits_beside(&a.ty, &b.ty).then_some(Kind::List),
            (a, b) if a == b && matches!(a, Kind::String | Kind::Bytes) => Some(a),
            (a, b) => arithmetic(operators::ADD, a, b),
        };
        self.must_match(operators::ADD, args, kind.is_some());
        match kind.unwrap_or(Kind::Dyn) {
            Kind::List => {
                let ty = resized(&self.larger(&a.ty, &b.ty), size);
                let copied = self.deep_size(&ty);
                Facts { ty, size, cost: cost.saturating_add(1).saturating_add(copied) }
            }
            kind @ (Kind::String | Kind::Bytes | Kind::Dyn) => {
                made(kind, Some(size), cost.saturating_add(scaled(size.max, 0.1)))
            }
            kind => made(kind, None, cost.saturating_add(1)),
        }
    }
}
