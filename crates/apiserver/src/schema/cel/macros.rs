//! Macros of the original that the interpreter's parser does not know, spelt out in what it does know.

use kube_cel::cel::common::ast::{CallExpr, ComprehensionExpr, Expr, IdedExpr, ListExpr, LiteralValue, operators};

/// How many of them may be in what another one is called on: each is written out twice in the next.
const MOST_CHAINED: usize = 4;

/// `a.optMap(x, e)` and `a.optFlatMap(x, e)`: `e` of what is in `a`, if there is something.
///
/// `chained` is how many macros stand in a row in `a`, at most; the answer is how many with this one.
pub(super) fn expand(expression: &mut Expr, chained: usize) -> usize {
    let Expr::Call(call) = expression else { return chained };
    let wraps = match call.func_name.as_str() {
        "optMap" => true,
        "optFlatMap" => false,
        _ => return chained,
    };
    let (Some(target), [IdedExpr { expr: Expr::Ident(variable), .. }, mapped]) = (&call.target, call.args.as_slice())
    else {
        return chained;
    };
    if chained > MOST_CHAINED {
        return chained;
    }
    let on_it = |method: &str| called(method, Some((**target).clone()), Vec::new());
    let inside = bound(variable, on_it("value"), mapped.clone());
    let inside = if wraps { called("of", Some(identifier("optional")), vec![inside]) } else { inside };
    let nothing = called("none", Some(identifier("optional")), Vec::new());
    *expression = called(operators::CONDITIONAL, None, vec![on_it("hasValue"), inside, nothing]).expr;
    chained + 1
}

/// `body` with a variable in it: a loop over nothing that ends with it.
fn bound(variable: &str, value: IdedExpr, body: IdedExpr) -> IdedExpr {
    node(Expr::Comprehension(Box::new(ComprehensionExpr {
        iter_range: node(Expr::List(ListExpr::new(Vec::new()))),
        iter_var: "#unused".to_owned(),
        iter_var2: None,
        accu_var: variable.to_owned(),
        accu_init: value,
        loop_cond: node(Expr::Literal(LiteralValue::Boolean(false.into()))),
        loop_step: identifier(variable),
        result: body,
    })))
}

fn called(name: &str, target: Option<IdedExpr>, args: Vec<IdedExpr>) -> IdedExpr {
    node(Expr::Call(CallExpr { func_name: name.to_owned(), target: target.map(Box::new), args }))
}

fn identifier(name: &str) -> IdedExpr {
    node(Expr::Ident(name.to_owned()))
}

fn node(expr: Expr) -> IdedExpr {
    IdedExpr { id: 0, expr }
}

#[cfg(test)]
mod tests {
    use kube_cel::cel::objects::Value;

    use crate::schema::cel::{Decl, Expression, Kind, scope};

    #[test]
    fn what_is_in_an_optional_is_mapped() {
        for expression in [
            "optional.of(1).optMap(x, x + 1).value() == 2",
            "!optional.none().optMap(x, x + 1).hasValue()",
            "optional.of(1).optFlatMap(x, optional.of(x + 1)).value() == 2",
            "optional.of(1).optMap(x, x + 1).optMap(y, y * 2).orValue(0) == 4",
            "optional.of([1]).optMap(list, list.all(x, optional.of(x).optMap(y, y == 1).orValue(false))).value()",
        ] {
            let parsed = Expression::parse(expression).expect("an expression");
            assert_eq!(parsed.run(&scope(Value::Null, None, false)), Ok(Value::Bool(true)), "{expression}");
        }
    }

    #[test]
    fn too_many_in_a_row_are_refused_wherever_they_stand() {
        // Written out, thirty in a row would fill any memory.
        for (before, after) in [
            ("", ".optMap(x, x)"),
            ("oldSelf.or(", ").optMap(x, x)"),
            ("[", "][?0].optFlatMap(x, x)"),
            ("{'a': ", "}[?'a'].optFlatMap(x, x)"),
            ("[1].map(y, ", ")[?0].optFlatMap(x, x)"),
        ] {
            let rule = format!("{}oldSelf{}", before.repeat(30), after.repeat(30));
            let parsed = Expression::parse(&rule).expect("an expression");
            let errors = parsed.estimate(&Decl::of_kind(Kind::Dyn), true).errors.to_string();
            assert!(errors.contains("undeclared reference to 'opt"), "{rule}: {errors}");
        }
    }
}
