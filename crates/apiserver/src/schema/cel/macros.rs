//! Macros of the original that the interpreter's parser does not know, spelt out in what it does know.

use kube_cel::cel::common::ast::{CallExpr, ComprehensionExpr, Expr, IdedExpr, ListExpr, LiteralValue, operators};

/// How many of them may be in what another one is called on: each is written out twice in the next.
const MOST_CHAINED: usize = 4;

/// `a.optMap(x, e)` and `a.optFlatMap(x, e)`: `e` of what is in `a`, if there is something.
pub(super) fn expand(expression: &mut Expr) {
    let Expr::Call(call) = expression else { return };
    let wraps = match call.func_name.as_str() {
        "optMap" => true,
        "optFlatMap" => false,
        _ => return,
    };
    let (Some(target), [IdedExpr { expr: Expr::Ident(variable), .. }, mapped]) = (&call.target, call.args.as_slice())
    else {
        return;
    };
    if chained(target) > MOST_CHAINED {
        return;
    }
    let on_it = |method: &str| called(method, Some((**target).clone()), Vec::new());
    let inside = bound(variable, on_it("value"), mapped.clone());
    let inside = if wraps { called("of", Some(identifier("optional")), vec![inside]) } else { inside };
    let nothing = called("none", Some(identifier("optional")), Vec::new());
    *expression = called(operators::CONDITIONAL, None, vec![on_it("hasValue"), inside, nothing]).expr;
}

/// How many macros stand in a row.
fn chained(node: &IdedExpr) -> usize {
    let mut count = 0;
    let mut next = Some(node);
    while let Some(node) = next {
        next = match &node.expr {
            Expr::Call(call) => {
                count += usize::from(matches!(call.func_name.as_str(), "optMap" | "optFlatMap"));
                // Indexing has what it is about as its first argument.
                call.target.as_deref().or_else(|| call.args.first())
            }
            Expr::Select(select) => Some(&select.operand),
            _ => None,
        };
    }
    count
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

    use crate::schema::cel::{Expression, scope};

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
}
