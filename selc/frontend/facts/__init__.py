"""Facts files: what a deployment says about a selection, read from YAML with positions."""

from selc.frontend.facts.load import load_facts
from selc.frontend.facts.model import (
    ClassesDecl,
    Expr,
    Facts,
    FunctionFact,
    InputDecl,
    KnobDecl,
    ObjectDecl,
    TensorDecl,
    distinct,
    typed_key,
)

__all__ = [
    "ClassesDecl",
    "Expr",
    "Facts",
    "FunctionFact",
    "InputDecl",
    "KnobDecl",
    "ObjectDecl",
    "TensorDecl",
    "distinct",
    "load_facts",
    "typed_key",
]
