//! What the original's compiler minds: types that do not go together, and literals that cannot be read.

use std::sync::Arc;

use kube_cel::cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue};

use super::super::decl::{Decl, Kind};
use super::super::facts::Facts;
use super::super::operands::{fits_beside, takes_items};
use super::super::{format, locate, run_alone, signatures};
use super::Walk;
use crate::schema::pattern;

impl Walk<'_> {
    /// A literal that can never be read as what it is given for is found when the rule is admitted.
    pub(super) fn must_be_readable(&mut self, node: &IdedExpr, call: &CallExpr) {
        let name = call.func_name.as_str();
        let Some(Expr::Literal(argument)) = call.args.first().map(|argument| &argument.expr) else { return };
        let unreadable = match (name, &call.target, argument) {
            // When it runs it has been admitted.
            _ if self.running => false,
            ("matches", Some(_), LiteralValue::String(text)) => pattern::compile(text.inner()).is_err(),
            ("duration" | "timestamp", None, LiteralValue::String(_)) => run_alone(node).is_err(),
            // A number of what, is not said. One that is computed is found out only when the rule runs.
            ("duration", None, LiteralValue::Int(_)) => true,
            _ => false,
        };
        if unreadable {
            self.error(|source| locate::of_call(source, name) + 1, &format!("invalid {name} argument"));
        }
    }

    /// A format that is written out must be for the values that are written out with it, which were looked at last.
    pub(super) fn must_be_filled(&mut self, call: &CallExpr) {
        let format = call.target.as_ref().map(|target| &target.expr);
        let (Some(Expr::Literal(LiteralValue::String(format))), [IdedExpr { expr: Expr::List(_), .. }]) =
            (format, call.args.as_slice())
        else {
            return;
        };
        // When it runs it has been admitted.
        if self.running {
            return;
        }
        if let Err(why) = format::check(format.inner(), &self.listed) {
            self.error(|source| locate::of_call(source, "format"), &why);
        }
    }

    /// The type of what is listed so far and of one more of it. What is written out must be of one type.
    pub(super) fn joined(&mut self, before: Option<Arc<Decl>>, node: &IdedExpr, now: Arc<Decl>) -> Arc<Decl> {
        match before {
            None => now,
            Some(before) if before.kind == Kind::Dyn || now.kind == Kind::Dyn => Decl::of_kind(Kind::Dyn),
            Some(before) if fits_beside(&before, &now) => self.larger(&before, &now),
            Some(before) => {
                if self.formats == 0 {
                    self.expected(&signatures::written(&before), node, &now);
                }
                Decl::of_kind(Kind::Dyn)
            }
        }
    }

    fn expected(&mut self, wanted: &str, node: &IdedExpr, found: &Decl) {
        // When it runs it has been admitted.
        if self.running {
            return;
        }
        let at = |source: &str| match &node.expr {
            Expr::Select(select) => locate::of_field(source, &select.field),
            Expr::Ident(name) => locate::of_name(source, name),
            Expr::Call(call) => locate::of_call(source, &call.func_name),
            Expr::Literal(LiteralValue::String(text)) => locate::of_text(source, text.inner()),
            _ => 0,
        };
        self.error(at, &format!("expected type '{wanted}' but found '{}'", signatures::written(found)));
    }

    pub(super) fn must_be_bool(&mut self, node: &IdedExpr, facts: &Facts) {
        if !matches!(facts.ty.kind, Kind::Bool | Kind::Dyn) {
            self.expected("bool", node, &facts.ty);
        }
    }

    pub(super) fn must_be_called_on(&mut self, name: &str, target: Option<&Facts>, args: &[Facts]) {
        let fits = |kinds: Option<&'static [Kind]>, facts: Option<&Facts>| match (kinds, facts) {
            (Some(kinds), Some(facts)) => facts.ty.kind == Kind::Dyn || kinds.contains(&facts.ty.kind),
            _ => true,
        };
        let takes = signatures::takes(name, target.is_some());
        let pattern = args.get(1).filter(|_| name == "matches");
        let fits_all = fits(signatures::called_on(name), target) && fits(takes, args.first()) && fits(takes, pattern);
        if fits_all && takes_items(name, target, args) {
            return;
        }
        let types: Vec<String> = args.iter().map(|facts| signatures::written(&facts.ty)).collect();
        let on = target.map(|target| format!("{}.", signatures::written(&target.ty))).unwrap_or_default();
        let message = format!("found no matching overload for '{name}' applied to '{on}({})'", types.join(", "));
        self.error(|source| locate::of_call(source, name), &message);
    }

    pub(super) fn must_match(&mut self, operator: &str, args: &[Facts], matches: bool) {
        if !matches {
            let types: Vec<String> = args.iter().map(|facts| signatures::written(&facts.ty)).collect();
            let types = types.join(", ");
            let message = format!("found no matching overload for '{operator}' applied to '({types})'");
            self.error(|source| locate::of_operator(source, operator), &message);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::schema::Schema;
    use crate::schema::cel::{Decl, Expression};

    /// What is said against a rule when it is admitted; nothing if it can be afforded, too.
    fn complaints(rule: &str) -> String {
        let schema = json!({"type": "object", "properties": {
            "n": {"type": "integer"}, "any": {"x-kubernetes-int-or-string": true},
            "list": {"type": "array", "maxItems": 10, "items": {"type": "integer"}},
            "map": {"type": "object", "maxProperties": 5, "additionalProperties": {"type": "string", "maxLength": 20}},
        }});
        let schema = Schema::parse(&schema, "").expect("a schema");
        let scope = Decl::of_schema(&schema, false).expect("a type");
        let estimate = Expression::parse(rule).expect("an expression").estimate(&scope, false);
        if estimate.cost > 10_000_000 { "too costly".to_owned() } else { estimate.errors.to_string() }
    }

    #[test]
    fn what_fits_together_is_admitted() {
        for rule in [
            "self.n in {1: true} && {1: 'a'}[self.n] == 'a' && {true: 'a'}[self.n == 1] == 'a'",
            "{1: 2}.all(k, k > 0) && {}.all(k, k > 0) && !(self.n in {})",
            "self.list == [] && self.list + [1] == [1] && self.map == {} && self.map == {'a': 'b'}",
            "string(self.any).matches('^[0-9]+%?$') && isQuantity(string(self.any))",
            "int(string(self.any).replace('%', '')) <= 100",
            "[duration('1s')].sum() == duration(self.n)",
        ] {
            assert_eq!(complaints(rule), "", "{rule}");
        }
    }

    #[test]
    fn what_does_not_fit_together_is_not() {
        for (rule, types) in [
            ("'a' in {1: 1}", "'@in' applied to '(string, map(int, int))'"),
            ("{1: 'a'}['x'] == 'a'", "'_[_]' applied to '(map(int, string), string)'"),
            ("{1: 2}.all(k, k.startsWith('a'))", "'startsWith' applied to 'int.(string)'"),
            ("self.list == ['a']", "'_==_' applied to '(list(int), list(string))'"),
            ("[1] + ['a'] == [1]", "'_+_' applied to '(list(int), list(string))'"),
            ("self == {'n': 1}", "'_==_' applied to '(object, map(string, int))'"),
            ("matches(self.n, 'a')", "'matches' applied to '(int, string)'"),
            ("matches('a', self.n)", "'matches' applied to '(string, int)'"),
            ("['a'].sum() == 'a'", "'sum' applied to 'list(string).()'"),
            ("self.list.flatten() == [1]", "'flatten' applied to 'list(int).()'"),
        ] {
            let told = complaints(rule);
            assert!(told.contains(&format!("found no matching overload for {types}")), "{rule}: {told}");
        }
        let misfit = "decimal clause can only be used on integers, was given double";
        assert!(complaints("'%s: %d'.format([[1.5], 1.5]) == ''").contains(misfit));
        assert!(complaints("'%d'.format(['%s'.format([1]), 1]) == ''").contains("integers, was given string"));
        assert!(complaints("'%d'.format([1, 2]) == ''").contains("too many arguments supplied to string.format"));
        assert!(complaints("duration(5) == duration('5s')").contains("invalid duration argument"));
        assert!(complaints("self.list.existsOne(x, x == 1)").contains("undeclared reference to 'existsOne'"));
    }
}
