"""The text of a facts-file skeleton: guesses for parameters, sections, comments."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from selc.frontend import dsl

if TYPE_CHECKING:
    from selc.frontend.source import ModuleSource
    from selc.frontend.values import Cls, Func

BATCH: Final = re.compile(
    r"^(m|bs|b|n_tokens|num_tokens|tokens|batch|batch_size|rows|n_rows|nbytes|grid_size"
    r"|num_(seqs|reqs|requests|rows|valid_tokens|decodes|prefills)|num_\w*tokens\w*"
    r"|max_(seq_?len|query_len|kv_len|num_tokens)\w*|max_seqlen_\w+|total_(q|k|bytes|tokens)"
    r"|seq_?lens?\w*|query_lens?\w*|common_prefix_len|bsz|nnz|numel|num_batch\w*"
    r"|(kv|q|qo|context|prefix|extend|input)_lens?|(inp|input|message|msg|total)_(size|bytes))$",
    re.IGNORECASE,
)
"""Parameter names that usually carry the batch."""

_TENSOR_ATTRIBUTES: Final = frozenset(
    {
        "shape",
        "dtype",
        "device",
        "numel",
        "element_size",
        "nbytes",
        "stride",
        "is_contiguous",
        "dim",
        "ndim",
        "size",
    }
)
_RESERVED: Final = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n", "~"})


@dataclass(slots=True)
class Found:
    """What was found, by section: name -> guess and comment."""

    inputs: dict[str, str] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)
    optional: dict[str, str] = field(default_factory=dict)
    tensors: dict[str, str] = field(default_factory=dict)
    optional_tensors: dict[str, str] = field(default_factory=dict)
    functions: dict[str, str] = field(default_factory=dict)
    overrides: dict[str, str] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    globals: dict[str, str] = field(default_factory=dict)
    answers: dict[str, str] = field(default_factory=dict)
    """Methods of parameters, and whether they have an attribute."""
    read: dict[str, None] = field(default_factory=dict)
    """Attribute chains that start at a parameter's name, in helpers too."""
    objects: dict[str, str] = field(default_factory=dict)
    """Attributes that hold objects: chain -> class."""
    results: dict[str, dict[str, None]] = field(default_factory=dict)
    """Attributes read of what a call returns, by callee."""


# -- parameters ----------------------------------------------------------------------------------

Resolve = Callable[[ast.expr], "Cls | None"]
Members = Callable[["Cls"], "list[str] | None"]


def parameters(func: Func, found: Found, resolve: Resolve, members: Members) -> None:
    """Guess what each parameter is from its name, annotation and use."""
    node = func.node
    assert isinstance(node, ast.FunctionDef)
    spec = node.args
    positional = [*spec.posonlyargs, *spec.args]
    optional = {a.arg for a in positional[len(positional) - len(spec.defaults) :]}
    keywords = zip(spec.kwonlyargs, spec.kw_defaults, strict=True)
    optional |= {a.arg for a, d in keywords if d is not None}
    for n, a in enumerate([*positional, *spec.kwonlyargs]):
        if n == 0 and func.cls is not None and func.flavour != "static":
            _self(func.cls, a.arg, found, members)
            continue
        _Parameter(node, a, a.arg in optional).guess(found, resolve, members)


def _self(cls: Cls, name: str, found: Found, members: Members) -> None:
    symbols = members(cls)
    if symbols and name == "self":
        found.facts = {k: v for k, v in found.facts.items() if not k.startswith("self.")}
        found.facts["self"] = f"{cls.qualname}.{symbols[0]}   # or {', '.join(symbols[1:])}"


@dataclass(frozen=True, slots=True)
class _Parameter:
    """One parameter of the target."""

    node: ast.FunctionDef
    arg: ast.arg
    optional: bool

    def guess(self, found: Found, resolve: Resolve, members: Members) -> None:
        """Put it where it seems to belong."""
        name = self.arg.arg
        kind, _, inner = dsl.annotation(self.arg.annotation)
        text = "" if inner is None else ast.unparse(inner)
        where = f"line {self.arg.lineno}" + (f", {text}" if text else "")
        cls = None if inner is None else resolve(inner)
        if cls is not None and _is_record(cls):
            _record(name, cls, found)
            return
        symbols = None if cls is None else members(cls)
        if cls is not None and symbols:
            found.facts[name] = f"{cls.qualname}.{symbols[0]}   # {where}; or {_more(symbols)}"
        elif self.is_tensor(text):
            section = found.optional_tensors if self.optional else found.tensors
            section[name] = f"{{shape: {self.shape()}, dtype: torch.bfloat16}}   # {where}"
        elif kind not in ("", "fact") or (BATCH.match(name) and text in ("", "int", "int | None")):
            found.inputs[name] = f"{_declaration(name, kind or 'runtime', text)}   # {where}"
        elif read := self.attributes(found):
            found.facts[name] = f"{{{', '.join(f'{a}: null' for a in read)}}}   # {where}"
        elif self.optional:
            found.optional[name] = f"{_guess(name, text)}   # {where}; has a default"
        else:
            found.facts[name] = f"{_guess(name, text)}   # {where}"

    def is_tensor(self, annotation: str) -> bool:
        """Whether the parameter is annotated or used as a tensor."""
        if annotation:
            return "Tensor" in annotation
        return bool(_TENSOR_ATTRIBUTES & {n.attr for n in self.reads()})

    def reads(self) -> list[ast.Attribute]:
        """The attributes that the function reads of the parameter."""
        return [
            n
            for n in ast.walk(self.node)
            if isinstance(n, ast.Attribute)
            and isinstance(n.ctx, ast.Load)
            and isinstance(n.value, ast.Name)
            and n.value.id == self.arg.arg
        ]

    def attributes(self, found: Found) -> list[str]:
        """Attributes that are data, read here or in a helper that calls the parameter the same."""
        head = f"{self.arg.arg}."
        called = {a.partition("(")[0] for a in found.answers}
        methods = {
            ast.unparse(n.func) for n in ast.walk(self.node) if isinstance(n, ast.Call)
        } | called
        chains = [c.removeprefix(head) for c in found.read if c.startswith(head)]
        chains = [c for c in chains if head + c not in methods]
        return list(dict.fromkeys(c.partition(".")[0] for c in chains))

    def shape(self) -> str:
        """A shape of the rank that the function's own reads show; two dimensions if they do not."""
        rank = 0
        for n in ast.walk(self.node):
            if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Tuple):
                if self.is_shape(n.value):
                    rank = max(rank, len(n.targets[0].elts))
            elif isinstance(n, ast.Subscript) and isinstance(n.slice, ast.Constant):
                index = n.slice.value
                if self.is_shape(n.value) and isinstance(index, int):
                    rank = max(rank, index + 1)
        sizes = ["num_tokens", "4096", *["128"] * 8]
        return "[" + ", ".join(sizes[: rank or 2]) + "]"

    def is_shape(self, e: ast.expr) -> bool:
        """Whether an expression is the parameter's shape."""
        if not (isinstance(e, ast.Attribute) and e.attr == "shape"):
            return False
        return isinstance(e.value, ast.Name) and e.value.id == self.arg.arg


def _more(symbols: list[str]) -> str:
    return ", ".join(symbols[1:8]) + (", ..." if len(symbols) > 8 else "")


def _is_record(cls: Cls) -> bool:
    texts = [ast.unparse(d).rpartition(".")[2] for d in cls.node.decorator_list]
    return any(t == "record" or t.startswith("record(") for t in texts)


def _record(parameter: str, cls: Cls, found: Found) -> None:
    """The fields of a record of the selection language: inputs by kind, the others facts."""
    for item in cls.node.body:
        if not (isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)):
            continue
        kind, _, inner = dsl.annotation(item.annotation)
        text = "" if inner is None else ast.unparse(inner)
        name = item.target.id
        where = f"line {item.lineno}" + (f", {text}" if text else "")
        if kind not in ("", "fact"):
            found.inputs[name] = f"{_declaration(name, '', text)}   # {where}, {kind}"
        elif item.value is None:
            found.facts[f"{parameter}.{name}"] = f"{_guess(name, text)}   # {where}"
        else:
            key = f"{parameter}.{name}"
            found.optional[key] = f"{_guess(name, text)}   # {where}; has a default"


def _declaration(name: str, kind: str, annotation: str) -> str:
    """An input with a guessed domain; without a kind if the source states it."""
    head = f"kind: {kind}, " if kind else ""
    if annotation == "bool":
        return f"{{{head}type: bool, values: [false, true]}}"
    if annotation.startswith(("list", "tuple", "Sequence")):
        return f"{{{head}length: [1, 1024], element: {{type: int, range: [1, 131072]}}}}"
    return f"{{{head}type: int, range: [1, {131072 if 'len' in name else 16384}]}}"


_SIZES: Final = (
    (r"head_(dim|size)", "128"),
    (r"hidden|intermediate|embed|^[nk]$|_dim$", "4096"),
    (r"kv_heads", "8"),
    (r"heads", "32"),
    (r"experts|^e$", "64"),
    (r"top_?k", "8"),
    (r"(block|page)_size", "16"),
    (r"num_(sms|cus|compute_units)|sm_count", "132"),
)
"""What sizes usually are, by parts of their names."""


def _guess(name: str, annotation: str) -> str:
    if "bool" in annotation or name.startswith(("use_", "is_", "has_", "enable")):
        return "false"
    if "str" in annotation.split(" | "):
        return '""'
    if annotation.startswith(("list", "tuple", "Sequence")):
        return "[128, 128]"
    if annotation in ("int", "int | None", ""):
        last = name.rpartition(".")[2].lower()
        usual = next((v for pattern, v in _SIZES if re.search(pattern, last)), None)
        if usual is not None or annotation == "int":
            return usual or "1"
    if annotation == "float":
        return "1.0"
    if "dtype" in name or "dtype" in annotation:
        return "torch.bfloat16"
    return "null"


# -- text ----------------------------------------------------------------------------------------


def written(found: Found, module: ModuleSource, func: Func) -> str:
    """The whole file."""
    sized = any("num_tokens" in text for text in found.tensors.values())
    if sized and "num_tokens" not in found.inputs:
        note = "sizes of the tensors below"
        found.inputs["num_tokens"] = f"{_declaration('num_tokens', 'runtime', 'int')}   # {note}"
    for callee, read in found.results.items():
        inner = "{value: {" + ", ".join(f"{_key(a)}: null" for a in read) + "}}"
        for section in (found.functions, found.overrides):
            if callee in section:
                section[callee] = section[callee].replace("null", inner, 1)
    inputs = {*found.tensors, *found.inputs}
    for spelling, text in found.answers.items():
        if not any(re.search(rf"\b{re.escape(i)}\b", spelling) for i in inputs):
            found.functions.setdefault(spelling, text)
    found.overrides = {k: v for k, v in found.overrides.items() if k not in found.functions}
    name = f"{module.module_name}:{func.qualname}" if module.module_name else func.qualname
    file = module.path.rpartition("/")[2]
    lines = [
        f"# Facts for {func.qualname} in {file}.",
        "# Every value here is a guess: replace it by your deployment's.",
    ]
    assert isinstance(func.node, ast.FunctionDef)
    if dsl.decoration(func.node) is None:
        lines += ["selection:", f"  function: {_key(name)}", "  scope: launch"]
        lines += ["  returns: {'*': bits}    # field -> bits, neutral or aux"]
    facts = _longest(found.facts)
    kinds = "what the batch determines: kind runtime, unpinnable or request"
    lines += _section("inputs", found.inputs, {}, kinds, "")
    objects = _objects(found, facts)
    lines += _section("facts", facts, found.optional, "known before serving", "have defaults")
    lines += objects
    lines += _section(
        "tensors",
        found.tensors,
        found.optional_tensors,
        "sizes may be inputs, facts or arithmetic",
        "have defaults",
    )
    lines += _section(
        "functions",
        found.functions,
        found.overrides,
        "what these return in your deployment",
        "followed in source; state one to stand for it",
    )
    lines += _section("env", found.env, {}, "environment variables; null is unset", "")
    lines += _section("globals", found.globals, {}, "names that selc cannot follow", "")
    return "\n".join(lines) + "\n"


def _objects(found: Found, facts: dict[str, str]) -> list[str]:
    """Objects with their classes and attributes; the attributes are taken out of the facts."""
    lines: list[str] = []
    for chain, cls in found.objects.items():
        inner = [o for o in found.objects if o.startswith(chain + ".")]
        read = {k: v for k, v in facts.items() if k == chain or k.startswith(chain + ".")}
        attributes = {
            k.removeprefix(chain + "."): v
            for k, v in read.items()
            if k != chain and not any(k == o or k.startswith(o + ".") for o in inner)
        }
        for key in (chain, *(f"{chain}.{a}" for a in attributes)):
            facts.pop(key, None)
        lines += [f"  {_key(chain)}:", f"    class: {json.dumps(cls)}"]
        lines += ["    attrs:"] if attributes else []
        lines += [f"      {_key(k)}: {v}" for k, v in attributes.items()]
    if not lines:
        return []
    return ["objects:    # if one is None in your deployment, state that under facts", *lines]


def _longest(facts: Mapping[str, str]) -> dict[str, str]:
    """Without `self.a` where `self.a.b` is asked for."""
    return {k: v for k, v in facts.items() if not any(o.startswith(k + ".") for o in facts)}


def _section(
    title: str, entries: Mapping[str, str], commented: Mapping[str, str], what: str, more: str
) -> list[str]:
    if not entries and not commented:
        return []
    head = f"{title}:" if entries else f"# {title}:"
    lines = [f"{head}    # {what}", *[f"  {_key(k)}: {v}" for k, v in entries.items()]]
    if commented:
        lines += [f"#  -- {more} --", *[f"#   {_key(k)}: {v}" for k, v in commented.items()]]
    return lines


def _key(name: str) -> str:
    plain = re.fullmatch(r"[A-Za-z_][\w.]*", name) and name.lower() not in _RESERVED
    return name if plain else json.dumps(name, ensure_ascii=False)
