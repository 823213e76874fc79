"""The order rule: no code that a simulation runs may depend on the iteration order of a set.

A seed must always give the same history, but the order of a set of strings or objects differs between processes. So
from model/ up to doors/ no set is iterated over, and the parts of asyncio that keep tasks in sets are not used: `wait`,
`TaskGroup`, `all_tasks`, `as_completed`. Iterating is fine if the order does not matter: inside `sorted`, `min`, `sum`
and the like, or to build another set.

The rule recognises a set by its expression (`{a, b}`, `set(...)`, a comprehension, `a | b` of those), or by a
declaration in the same module: an annotation or assignment of a local name, a parameter, or `self.name`. It cannot see
other sets.
"""

import ast
from collections.abc import Iterator
from typing import Final

from checks.finding import Finding
from checks.names import used
from checks.ports import ROOMS_ON_PORTS
from checks.tree import Source

USES_SETS: Final = ("asyncio.wait", "asyncio.TaskGroup", "asyncio.all_tasks", "asyncio.as_completed")
SET_TYPES: Final = ("set", "frozenset", "AbstractSet", "MutableSet")
SET_METHODS: Final = ("union", "intersection", "difference", "symmetric_difference")
ORDER_MATTERS: Final = ("list", "tuple", "iter", "enumerate", "zip", "map", "filter", "reversed", "next")
ORDER_IRRELEVANT: Final = ("sorted", "min", "max", "sum", "any", "all", "len", *SET_TYPES)

Function = ast.FunctionDef | ast.AsyncFunctionDef


def depends_on_set_order(source: Source) -> list[Finding]:
    if source.room not in ROOMS_ON_PORTS and source.room != "ports":
        return []
    iterations = [
        Finding(
            source.path, line, f"{how} iterates over a set, whose order differs per run", "Use sorted(...), or a dict."
        )
        for line, how in dict.fromkeys(_iterations(source.syntax))
    ]
    tasks = [
        Finding(
            source.path, line, f"uses {name}, which keeps its tasks in a set", "Use asyncio.gather, or wait for each."
        )
        for line, name in dict.fromkeys(used(source.nodes))
        if name in USES_SETS
    ]
    return iterations + tasks


def _iterations(module: ast.Module) -> Iterator[tuple[int, str]]:
    yield from _iterations_in(module, _declared(module.body))
    for owner in ast.walk(module):
        if isinstance(owner, ast.ClassDef):
            yield from _iterations_in(owner, _attributes(owner))
        elif isinstance(owner, Function):
            yield from _iterations_in(owner, _parameters(owner) | _declared(owner.body))


def _iterations_in(owner: ast.AST, sets: set[str]) -> Iterator[tuple[int, str]]:
    """Where code inside `owner` iterates over a set; `sets` are the names that `owner` declares as sets."""
    harmless = {id(part) for node in ast.walk(owner) for part in _order_free(node)}
    for node in ast.walk(owner):
        for iterated, how in _iterated(node):
            if id(node) not in harmless and _is_set(iterated, sets):
                yield iterated.lineno, how


def _order_free(node: ast.AST) -> list[ast.expr]:
    """Expressions whose iteration order does not affect the result."""
    if isinstance(node, ast.SetComp):
        return [node]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ORDER_IRRELEVANT:
        return node.args
    return []


def _iterated(node: ast.AST) -> list[tuple[ast.expr, str]]:
    match node:
        case ast.For() | ast.AsyncFor():
            return [(node.iter, "this loop")]
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
            return [(part.iter, "this comprehension") for part in node.generators]
        case ast.Starred(value=value) | ast.YieldFrom(value=value):
            return [(value, "unpacking")]
        case ast.Call(func=ast.Name(id=name), args=args) if name in ORDER_MATTERS:
            return [(argument, f"{name}()") for argument in args]
        case ast.Call(func=ast.Attribute(attr="join"), args=args):
            return [(argument, "join()") for argument in args]
        case ast.Call(func=ast.Attribute(attr="pop", value=value), args=[]):
            return [(value, "pop()")]
    return []


def _is_set(node: ast.expr, sets: set[str]) -> bool:
    match node:
        case ast.Set() | ast.SetComp():
            return True
        case ast.Call(func=ast.Name(id=name)):
            return name in ("set", "frozenset")
        case ast.Call(func=ast.Attribute(attr=name, value=value)):
            return name in SET_METHODS and _is_set(value, sets)
        case ast.BinOp(left=left, op=ast.BitOr() | ast.BitAnd() | ast.Sub() | ast.BitXor(), right=right):
            return _is_set(left, sets) or _is_set(right, sets)
        case ast.Name() | ast.Attribute():
            return ast.unparse(node) in sets
    return False


def _declared(body: list[ast.stmt]) -> set[str]:
    """Names that these statements declare as sets, without those of nested functions and classes."""
    found: set[str] = set()
    todo: list[ast.AST] = list(body)
    while todo:
        node = todo.pop()
        found |= _declared_by(node)
        if not isinstance(node, Function | ast.ClassDef | ast.Lambda):
            todo.extend(ast.iter_child_nodes(node))
    return found


def _declared_by(node: ast.AST) -> set[str]:
    match node:
        case ast.AnnAssign(target=target, annotation=annotation) if _is_set_type(annotation):
            return {ast.unparse(target)}
        case ast.Assign(targets=targets, value=value) if _is_set(value, set()):
            return {ast.unparse(target) for target in targets}
    return set()


def _attributes(owner: ast.ClassDef) -> set[str]:
    """`self.name` of each attribute that a class declares as a set, in its body or in a method."""
    in_body = {f"self.{name}" for name in _declared(owner.body)}
    methods = [node for node in owner.body if isinstance(node, Function)]
    in_methods = {name for method in methods for name in _declared(method.body)}
    return in_body | {name for name in in_methods if name.startswith("self.")}


def _parameters(function: Function) -> set[str]:
    every = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return {one.arg for one in every if one.annotation is not None and _is_set_type(one.annotation)}


def _is_set_type(annotation: ast.expr) -> bool:
    """`set[int]`, `"set[int]"`, `AbstractSet[int]`, `typing.AbstractSet[int]`."""
    text = annotation.value if isinstance(annotation, ast.Constant) else ast.unparse(annotation)
    return str(text).split("[")[0].split(".")[-1] in SET_TYPES
