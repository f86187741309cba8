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
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

MAX_LENGTH = 400
MAX_DEPTH = 32
MAX_WORK = 300_000
"""Parts evaluated and entries looked through by one expression. Measured lists come from a hostile world."""
MAX_DIGITS = 12

RESERVED = frozenset({"vanilla", "true", "false", "null"})
"""Names with a meaning of their own, which no measured value can have."""


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


def rounded(value: float, digits: int = 0) -> float:
    """``value`` rounded to 0 to 12 decimal digits."""
    if not 0 <= digits <= MAX_DIGITS:
        raise ValueError(f"digits must be 0 to {MAX_DIGITS}")
    return round(value, digits)


def total(values: Iterable[float]) -> float:
    """Sum of the numbers of a list."""
    return sum(values)


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
    "round": rounded,
    "set": set,
    "sorted": sorted,
    "sum": total,
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
    except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
        what = problem.msg if isinstance(problem, SyntaxError) else type(problem).__name__
        raise ExpressionError(f"not an expression: {text!r} ({what})") from None
    pending: list[tuple[ast.AST, int]] = [(tree.body, 1)]
    while pending:
        node, depth = pending.pop()
        if depth > MAX_DEPTH:
            raise ExpressionError(f"nested deeper than {MAX_DEPTH} levels: {text!r}")
        problem_found = _foreign(node)
        if problem_found:
            raise ExpressionError(f"{problem_found}: {text!r}")
        pending += [(child, depth + 1) for child in ast.iter_child_nodes(node)]
    return tree


def _foreign(node: ast.AST) -> str:
    """What makes one node no part of the language; empty when nothing does."""
    match node:
        case ast.Call(func=ast.Name(id=name), keywords=[]) if name in FUNCTIONS:
            return ""
        case ast.Call(func=ast.Name(id=name)) if name in FUNCTIONS:
            return "no keyword arguments in expressions"
        case ast.Call():
            return f"only {', '.join(FUNCTIONS)} can be called"
        case ast.Constant(value=value) if not isinstance(value, str | int | float | None):
            return f"{type(value).__name__} is not part of the expression language"
        case ast.comprehension(target=target, is_async=is_async) if is_async or not isinstance(
            target, ast.Name
        ):
            return "a loop in an expression binds one name"
        case ast.Dict(keys=keys) if None in keys:
            return "no ** in expressions"
    return "" if isinstance(node, _NODES) else f"{type(node).__name__} is not part of the expression language"


def names(text: str) -> set[str]:
    """The measured values an expression reads (``vanilla`` and its own loop variables left out)."""
    return set(_free(parse(text).body, frozenset(RESERVED)))


def _free(node: ast.AST, bound: frozenset[str]) -> Iterator[str]:
    match node:
        case ast.Name(id=name):
            if name not in bound:
                yield name
        case ast.Call(args=args):
            for argument in args:
                yield from _free(argument, bound)
        case ast.GeneratorExp(elt=element, generators=loops) | ast.ListComp(elt=element, generators=loops):
            for loop in loops:
                yield from _free(loop.iter, bound)
                assert isinstance(loop.target, ast.Name)
                bound |= {loop.target.id}
                for test in loop.ifs:
                    yield from _free(test, bound)
            yield from _free(element, bound)
        case _:
            for part in ast.iter_child_nodes(node):
                yield from _free(part, bound)


def evaluate(text: str, values: Mapping[str, Any]) -> Any:
    """Evaluate an expression over measured values.

    Args:
        text: the expression.
        values: name -> measured value (JSON data), ``vanilla`` among them where a control run exists.

    Raises:
        ExpressionError: a name was not measured, a value has the wrong shape, or there is too much of it.
    """
    scope = {**values, "true": True, "false": False, "null": None}
    try:
        return _Evaluation().value(parse(text).body, scope)
    except (
        TypeError,
        ValueError,
        LookupError,
        ArithmeticError,
        AttributeError,
        RecursionError,
        MemoryError,
    ) as problem:
        raise ExpressionError(f"{text}: {type(problem).__name__}: {problem}") from None


@dataclass
class _Evaluation:
    """One evaluation and what it has cost so far."""

    work: int = 0

    def value(self, node: ast.AST, scope: Mapping[str, Any]) -> Any:
        self._charge(1)
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                if name not in scope:
                    raise ExpressionError(f"{name} was not measured")
                return scope[name]
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return [self.value(item, scope) for item in items]
            case ast.Dict(keys=keys, values=parts):
                return {
                    self.value(key, scope): self.value(part, scope)
                    for key, part in zip(keys, parts, strict=True)
                    if key
                }
            case ast.BoolOp(op=ast.And(), values=parts):
                return all(self.value(part, scope) for part in parts)
            case ast.BoolOp(values=parts):
                return any(self.value(part, scope) for part in parts)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return not self.value(operand, scope)
            case ast.UnaryOp(operand=operand):
                return -self.value(operand, scope)
            case ast.BinOp(left=left, op=op, right=right):
                return self._binary(op, self.value(left, scope), self.value(right, scope))
            case ast.Compare(left=left, ops=ops, comparators=rights):
                return self._compare(self.value(left, scope), ops, rights, scope)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self.value(body if self.value(test, scope) else orelse, scope)
            case ast.Attribute(value=value, attr=key):
                return _item(self.value(value, scope), key)
            case ast.Subscript(value=value, slice=key):
                return _item(self.value(value, scope), self.value(key, scope))
            case ast.Call(func=ast.Name(id=name), args=args):
                return self._call(name, [self.value(arg, scope) for arg in args])
            case (
                ast.GeneratorExp(elt=element, generators=loops) | ast.ListComp(elt=element, generators=loops)
            ):
                return [self.value(element, inner) for inner in self._rounds(loops, scope)]
        raise ExpressionError(f"{type(node).__name__} is not part of the expression language")

    def _charge(self, parts: int) -> None:
        self.work += parts
        if self.work > MAX_WORK:
            raise ExpressionError(f"too much to look through (more than {MAX_WORK} values)")

    def _binary(self, op: ast.operator, left: Any, right: Any) -> Any:
        if not isinstance(left, int | float) or not isinstance(right, int | float):
            if not isinstance(op, ast.Add):
                raise TypeError(f"{type(op).__name__} needs two numbers")
            self._charge(_size(left) + _size(right))
        return _BINARY[type(op)](left, right)

    def _call(self, name: str, args: list[Any]) -> Any:
        self._charge(sum(map(_size, args)))
        return FUNCTIONS[name](*args)

    def _compare(
        self, left: Any, ops: list[ast.cmpop], rights: list[ast.expr], scope: Mapping[str, Any]
    ) -> bool:
        for op, expression in zip(ops, rights, strict=True):
            right = self.value(expression, scope)
            self._charge(_size(right))
            if not _COMPARE[type(op)](left, right):
                return False
            left = right
        return True

    def _rounds(
        self, loops: list[ast.comprehension], scope: Mapping[str, Any]
    ) -> Iterator[Mapping[str, Any]]:
        """The scopes in which the element of a comprehension is evaluated, one after another."""
        if not loops:
            yield scope
            return
        loop, inner_loops = loops[0], loops[1:]
        assert isinstance(loop.target, ast.Name)
        for value in self.value(loop.iter, scope):
            self._charge(1)
            inner = {**scope, loop.target.id: value}
            if all(self.value(test, inner) for test in loop.ifs):
                yield from self._rounds(inner_loops, inner)


def _size(value: Any) -> int:
    """What looking through a value costs; texts are compared many characters at a time."""
    if isinstance(value, str):
        return len(value) // 64
    return len(value) if isinstance(value, list | dict | set) else 0


def _item(container: Any, key: Any) -> Any:
    if isinstance(container, Mapping | list | str):
        return container[key]
    raise ExpressionError(f"{str(container)[:80]} has no part {str(key)[:80]!r}")
