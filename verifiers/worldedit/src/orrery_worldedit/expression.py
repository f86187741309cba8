"""Acceptance expressions: a small, side-effect-free subset of Python over measured values.

A check says ``acceptance = ["dig.seconds == 0.2", "near(light[0], 12)", "drops.count('default:stick') >=
1"]``. Names are
the values that the check's steps bound with ``as``; ``vanilla`` holds the same values measured without the
mod. Nothing
else can be reached: no attributes of objects, no imports, no calls but the functions in :data:`FUNCTIONS`.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

MAX_LENGTH = 400


class ExpressionError(Exception):
    """The expression is not in the language, or the measured values do not have the shape it needs."""


def near(value: float, target: float, tolerance: float = 1e-3) -> bool:
    """Whether two numbers differ by at most ``tolerance`` (inclusive, with room for rounding)."""
    return abs(value - target) <= tolerance + 1e-9


def between(value: float, low: float, high: float) -> bool:
    """Whether ``low <= value <= high``."""
    return low <= value <= high


def count(values: Any, wanted: Any) -> int:
    """How many entries of a list equal ``wanted``."""
    return sum(1 for value in values if value == wanted)


def contains(values: Any, wanted: Any) -> bool:
    """Whether a list has the entry, a table the key, or a text the part (texts ignore case)."""
    if isinstance(values, str) and isinstance(wanted, str):
        return wanted.lower() in values.lower()
    return wanted in values


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "all": all,
    "any": any,
    "between": between,
    "contains": contains,
    "count": count,
    "len": len,
    "max": max,
    "min": min,
    "near": near,
    "round": round,
    "set": set,
    "sorted": sorted,
    "sum": sum,
}

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
_NODES = (
    *(ast.Expression, ast.Name, ast.Load, ast.Constant, ast.List, ast.Tuple, ast.Dict),
    *(ast.Subscript, ast.Attribute, ast.Call, ast.IfExp),
    *(ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.BinOp, ast.Compare),
    *(ast.GeneratorExp, ast.ListComp, ast.comprehension, ast.Store),
    *_BINARY,
    *_COMPARE,
)


@lru_cache(maxsize=4096)
def parse(text: str) -> ast.Expression:
    """Parse and check one expression.

    Raises:
        ExpressionError: outside the language; the message names the part.
    """
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"expression of {len(text)} characters; at most {MAX_LENGTH}")
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError as problem:
        raise ExpressionError(f"not an expression: {text!r} ({problem.msg})") from None
    for node in ast.walk(tree):
        if not isinstance(node, _NODES):
            raise ExpressionError(f"{type(node).__name__} is not part of the expression language: {text!r}")
        if isinstance(node, ast.Call):
            if not isinstance(node.func, ast.Name) or node.func.id not in FUNCTIONS:
                raise ExpressionError(f"only {', '.join(FUNCTIONS)} can be called: {text!r}")
            if node.keywords:
                raise ExpressionError(f"no keyword arguments in expressions: {text!r}")
    return tree


def names(text: str) -> set[str]:
    """The measured values an expression reads (``vanilla`` and loop variables left out)."""
    tree = parse(text)
    bound = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    read = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    return read - bound - set(FUNCTIONS) - {"vanilla", "true", "false", "null"}


def evaluate(text: str, values: Mapping[str, Any]) -> Any:
    """Evaluate an expression over measured values.

    Args:
        text: the expression.
        values: name -> measured value (JSON data), ``vanilla`` among them where a control run exists.

    Raises:
        ExpressionError: a name was not measured, or a value has the wrong shape.
    """
    try:
        return _eval(parse(text).body, {"true": True, "false": False, "null": None, **values})
    except (TypeError, ValueError, KeyError, IndexError, ZeroDivisionError, AttributeError) as problem:
        raise ExpressionError(f"{text}: {type(problem).__name__}: {problem}") from None


def _eval(node: ast.AST, scope: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            if name not in scope:
                raise ExpressionError(f"{name} was not measured")
            return scope[name]
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_eval(item, scope) for item in items]
        case ast.Dict(keys=keys, values=parts):
            return {
                _eval(key, scope): _eval(part, scope) for key, part in zip(keys, parts, strict=True) if key
            }
        case ast.BoolOp(op=ast.And(), values=parts):
            return all(_eval(part, scope) for part in parts)
        case ast.BoolOp(values=parts):
            return any(_eval(part, scope) for part in parts)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _eval(operand, scope)
        case ast.UnaryOp(operand=operand):
            return -_eval(operand, scope)
        case ast.BinOp(left=left, op=op, right=right):
            return _BINARY[type(op)](_eval(left, scope), _eval(right, scope))
        case ast.Compare(left=left, ops=ops, comparators=rights):
            return _compare(_eval(left, scope), ops, rights, scope)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return _eval(body if _eval(test, scope) else orelse, scope)
        case ast.Attribute(value=value, attr=key):
            return _item(_eval(value, scope), key)
        case ast.Subscript(value=value, slice=key):
            return _item(_eval(value, scope), _eval(key, scope))
        case ast.Call(func=ast.Name(id=name), args=args):
            return FUNCTIONS[name](*(_eval(arg, scope) for arg in args))
        case ast.GeneratorExp(elt=element, generators=loops) | ast.ListComp(elt=element, generators=loops):
            return [_eval(element, inner) for inner in _bindings(loops, scope)]
    raise ExpressionError(f"{type(node).__name__} is not part of the expression language")


def _compare(left: Any, ops: list[ast.cmpop], rights: list[ast.expr], scope: Mapping[str, Any]) -> bool:
    for op, expression in zip(ops, rights, strict=True):
        right = _eval(expression, scope)
        if not _COMPARE[type(op)](left, right):
            return False
        left = right
    return True


def _item(container: Any, key: Any) -> Any:
    if isinstance(container, (Mapping, list, str)):
        return container[key]
    raise ExpressionError(f"{container!r} has no part {key!r}")


def _bindings(loops: list[ast.comprehension], scope: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    scopes: list[Mapping[str, Any]] = [scope]
    for loop in loops:
        if not isinstance(loop.target, ast.Name):
            raise ExpressionError("a loop in an expression binds one name")
        name = loop.target.id
        scopes = [
            inner
            for outer in scopes
            for value in _eval(loop.iter, outer)
            if (inner := {**outer, name: value}) and all(_eval(test, inner) for test in loop.ifs)
        ]
    return scopes
