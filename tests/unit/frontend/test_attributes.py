"""What outlives a call: class attributes, module-level objects, variables of an env module."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.frontend.lifting import agree, lift, refusal, write

ENVIRON = """
import os
import warnings

class Field:
    _allowed = True

    def __init__(self, default):
        self.default = default
        self._none = False

    def __set_name__(self, owner, name):
        assert Field._allowed, "not here"
        self.name = name

    def get(self):
        value = os.getenv(self.name)
        if self._none:
            assert value == str(None)
            return None
        if value is None:
            return self.default
        try:
            return self.parse(value)
        except ValueError as e:
            warnings.warn(f"{self.name}: {e}")
            return self.default

    def is_set(self):
        return self.name in os.environ

    def set(self, value):
        self._none = value is None
        os.environ[self.name] = str(value)

class Flag(Field):
    def parse(self, value):
        value = value.lower()
        if value in ["true", "1"]:
            return True
        if value in ["false", "0"]:
            return False
        raise ValueError(f"{value!r} is no bool")

class Number(Field):
    def parse(self, value):
        return int(value)

class Envs:
    PKG_FAST = Flag(False)
    PKG_SIZE = Number(64)

envs = Envs()
Field._allowed = False
"""

FACTS = """
selection: {function: "pkg.mod:choose", scope: launch, returns: {result: bits}}
inputs: {m: {kind: runtime, range: [0, 9]}}
"""


@pytest.mark.parametrize(
    ("fast", "size"), [(None, None), ("1", "128"), ("False", "8"), ("maybe", None)]
)
def test_variables_of_an_env_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fast: str | None, size: str | None
) -> None:
    body = "(envs.PKG_FAST.get(), envs.PKG_FAST.is_set(), envs.PKG_SIZE.get() + m)"
    write(
        tmp_path,
        {
            "environ.py": ENVIRON,
            "mod.py": f"from pkg.environ import envs\ndef choose(m):\n    return {body}\n",
        },
    )
    shown = [
        f"  {n}: {'null' if v is None else repr(v)}\n"
        for n, v in (("PKG_FAST", fast), ("PKG_SIZE", size))
    ]
    for name, value in (("PKG_FAST", fast), ("PKG_SIZE", size)):
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    program = lift(tmp_path, "pkg.mod:choose", FACTS + "env:\n" + "".join(shown))
    with pytest.warns(UserWarning, match="PKG_FAST") if fast == "maybe" else _quiet():
        assert agree(tmp_path, program, "pkg.mod:choose", {"m": list(range(10))}) == 10


class _quiet:  # noqa: N801  # reads as a context
    def __enter__(self) -> None:
        return

    def __exit__(self, *_: object) -> None:
        return


def test_objects_that_only_constructors_set(tmp_path: Path) -> None:
    text = """
    class Limits:
        def __init__(self, big):
            self.big = big
            self.seen = 0
        def see(self):
            self.seen += 1
    limits = Limits(4)
    def choose(m):
        return m > limits.big
    """
    write(tmp_path, {"mod.py": text})
    program = lift(tmp_path, "pkg.mod:choose", FACTS)
    assert agree(tmp_path, program, "pkg.mod:choose", {"m": list(range(10))}) == 10


SETS = """
class A:
    def __init__(self):
        self.x = 1
"""
STATE = {
    "a method sets it": (SETS + "    def on(self):\n        self.x = 2\na = A()\n", "a.x"),
    "the module sets it": (SETS + "a = A()\ndef on():\n    a.x = 2\n", "a.x"),
    "a class attribute is set": ("class A:\n    x = 1\ndef on():\n    A.x = 2\n", "A.x"),
    "a classmethod sets it": (
        "class A:\n    x = 1\n    @classmethod\n    def on(cls):\n        cls.x = 2\n",
        "A.x",
    ),
    "a class attribute is filled": (
        "class A:\n    x = {}\ndef on():\n    A.x[1] = 2\n",
        "A.x.get(1, 0)",
    ),
}


@pytest.mark.parametrize(("text", "read"), STATE.values(), ids=list(STATE))
def test_what_may_change_between_calls_is_refused(tmp_path: Path, text: str, read: str) -> None:
    write(tmp_path, {"mod.py": text + f"def choose(m):\n    return m if {read} > 1 else 0\n"})
    assert refusal(tmp_path, "pkg.mod:choose", FACTS).startswith(("SEL905", "SEL906"))


def test_a_class_attribute_that_the_facts_state(tmp_path: Path) -> None:
    text, _ = STATE["a class attribute is set"]
    write(tmp_path, {"mod.py": text + "def choose(m):\n    return m > A.x\n"})
    program = lift(tmp_path, "pkg.mod:choose", FACTS + 'globals: {"pkg.mod.A.x": 1}\n')
    assert agree(tmp_path, program, "pkg.mod:choose", {"m": list(range(10))}) == 10


def test_classes_and_functions_are_choices(tmp_path: Path) -> None:
    text = """
    class A:
        pass
    def f():
        return 1
    def choose(m):
        if m > 4:
            return A
        return f if m > 2 else None
    """
    write(tmp_path, {"mod.py": text})
    program = lift(tmp_path, "pkg.mod:choose", FACTS)
    assert agree(tmp_path, program, "pkg.mod:choose", {"m": list(range(10))}) == 10


def test_attributes_of_none(tmp_path: Path) -> None:
    text = "def choose(m, spec):\n    return getattr(spec, 'mode', None) is not None and m > 3\n"
    write(tmp_path, {"mod.py": text})
    program = lift(tmp_path, "pkg.mod:choose", FACTS + "facts: {spec: null}\n")
    assert agree(tmp_path, program, "pkg.mod:choose", {"m": list(range(10)), "spec": [None]}) == 10
