"""Wrong facts of every kind: code, place, and a message that names what is wrong."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.robust.conftest import FACTS, HEAD, SOURCE, Try

INPUTS = "inputs:\n  m: {kind: runtime, range: [1, 4096]}\n"


def selection(more: str) -> str:
    return f"selection: {{function: f, scope: launch, returns: {{w: bits}}, {more}}}\n{INPUTS}"


def one(text: str) -> str:
    return f"{HEAD}inputs:\n  m: {text}\n"


def added(text: str) -> str:
    return FACTS + text + "\n"


def at(line: int, column: int) -> tuple[int, int]:
    return line, column


LAUGHS = "facts:\n  a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"  a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 40)
)

CASES: list[tuple[str, str, str, tuple[int, int], str]] = [
    # unknown keys, at every level
    ("section", added("factz: {a: 1}"), "SEL910", at(4, 1), "`factz`"),
    ("selection key", f"selection: {{scop: launch}}\n{INPUTS}", "SEL910", at(1, 13), "`scop`"),
    ("input key", one("{kind: runtime, rnge: [1, 2]}"), "SEL910", at(3, 22), "`rnge`"),
    ("object key", added("objects: {m: {clas: 'a:b'}}"), "SEL910", at(4, 15), "`clas`"),
    ("tensor key", added("tensors: {x: {shap: [1]}}"), "SEL910", at(4, 15), "`shap`"),
    ("class key", added("classes: {c: {field: [w]}}"), "SEL910", at(4, 15), "`field`"),
    ("knob key", added("knobs: {m: {fixd: 1}}"), "SEL910", at(4, 13), "`fixd`"),
    ("answer key", added("functions: {g: {tabel: 1}}"), "SEL911", at(4, 16), "`g`"),
    # wrong types
    ("a section that is a list", f"{HEAD}inputs: [1, 2]\n", "SEL911", at(2, 9), "a list"),
    ("an input that is a number", one("3"), "SEL911", at(3, 6), "the number 3"),
    ("a bound of text", one("{kind: runtime, range: [a, 3]}"), "SEL911", at(3, 30), '"a"'),
    ("a bound of float", one("{kind: runtime, range: [1.5, 3]}"), "SEL911", at(3, 30), "1.5"),
    ("an offer of one", added("offer: {w: 3}"), "SEL911", at(4, 12), "the number 3"),
    ("a table of a number", added("tables: {t: 3}"), "SEL911", at(4, 13), "`t`"),
    ("a truth as a variable", added("env: {M: true}"), "SEL911", at(4, 10), "`M`"),
    ("assumes of text", selection("assume: 'm < 3'"), "SEL911", at(1, 69), "list"),
    ("assumes of numbers", selection("assume: [3]"), "SEL911", at(1, 70), "the number 3"),
    ("a document of a list", "- 1\n", "SEL911", at(1, 1), "a list"),
    ("a document of text", "hello\n", "SEL911", at(1, 1), "the text"),
    ("values of another type", one("{kind: runtime, type: int, values: [1.0]}"), "SEL911",
     at(3, 42), "1.0"),
    ("a type that is none", one("{kind: runtime, type: integer, range: [1, 2]}"), "SEL911",
     at(3, 28), "`integer`"),
    # ranges
    ("no bounds", one("{kind: runtime, range: []}"), "SEL911", at(3, 29), "0 values"),
    ("three bounds", one("{kind: runtime, range: [1, 2, 3]}"), "SEL911", at(3, 29), "3 values"),
    ("inverted", one("{kind: runtime, range: [9, 1]}"), "SEL911", at(3, 29), "9 > 1"),
    ("no multiple", one("{kind: runtime, range: [1, 7], multiple_of: 8}"), "SEL911", at(3, 29),
     "no multiple of 8"),
    ("multiples of zero", one("{kind: runtime, range: [1, 7], multiple_of: 0}"), "SEL911",
     at(3, 50), "at least 1"),
    ("no values", one("{kind: runtime, values: []}"), "SEL911", at(3, 30), "is empty"),
    ("two ways", one("{kind: runtime, range: [1, 4], values: [1]}"), "SEL911", at(3, 37),
     "two ways"),
    ("more than can be counted", one(f"{{kind: runtime, range: [1, {'9' * 400}]}}"), "SEL911",
     at(3, 29), "2**63"),
    ("as many below zero", one(f"{{kind: runtime, range: [-{2**62}, {2**62}]}}"), "SEL911",
     at(3, 29), "2**63"),
    ("too many digits", one(f"{{kind: runtime, range: [1, {'9' * 5000}]}}"), "SEL911", at(3, 33),
     "5000 digits"),
    ("not a number", one("{kind: runtime, values: [.nan, 1.0]}"), "SEL911", at(3, 31), "NaN"),
    ("a length alone", one("{kind: runtime, length: [1, 4]}"), "SEL912", at(3, 3), "`element`"),
    ("an element alone", one("{kind: runtime, element: {range: [1, 4]}}"), "SEL912", at(3, 3),
     "`length`"),
    # names
    ("twice", added("  m: {kind: runtime, range: [1, 4096]}"), "SEL911", at(4, 3), "twice"),
    ("a section twice", FACTS + INPUTS, "SEL911", at(4, 1), "twice"),
    ("one name to Python", added("  ﬁ: {kind: runtime, range: [1, 4]}\n"
     "  fi: {kind: runtime, range: [1, 4]}"), "SEL911", at(5, 3), "one name"),
    ("an input and a fact", added("facts: {m: 1}"), "SEL911", at(3, 3), "`m`"),
    ("a fact unread", added("facts: {hiden: 1}"), "SEL913", at(4, 9), "`hiden`"),
    ("an input unread", added("  mm: {kind: runtime, range: [1, 4]}"), "SEL913", at(4, 3), "`mm`"),
    ("a knob unread", added("knobs: {nope: 1}"), "SEL913", at(4, 9), "`nope`"),
    ("a tensor unread", added("tensors: {nope: {shape: [1], dtype: torch.half}}"), "SEL913",
     at(4, 11), "`nope`"),
    ("an object unread", added("objects: {nope: {class: 'k:f'}}"), "SEL913", at(4, 11), "`nope`"),
    ("a function that is nowhere", added("functions: {pkg.nope: 1}"), "SEL913", at(4, 13),
     "`pkg.nope`"),
    ("a global that is nowhere", added("globals: {NOPE: 1}"), "SEL913", at(4, 11), "`NOPE`"),
    ("a variable that is nowhere", added("env: {NOPE: 1}"), "SEL913", at(4, 7), "`NOPE`"),
    ("an offer for nothing", added("offer: {nope: [1]}"), "SEL911", at(4, 9), "`nope`"),
    ("a field that is not returned", HEAD.replace("'*'", "ww") + INPUTS, "SEL911", at(1, 51),
     "`ww`"),
    ("a function that is not there", HEAD.replace("f,", "ff,") + INPUTS, "SEL907", at(1, 1),
     "`ff`"),
    ("a module that is not there", HEAD.replace("f,", "'a.b:ff',") + INPUTS, "SEL908", at(1, 13),
     "`a.b`"),
    ("no input", HEAD, "SEL912", at(1, 7), "`m`"),
    ("a name that is a number", added("facts: {1: 2}"), "SEL911", at(4, 9), "`1`"),
    ("a name that is null", added("facts: {null: 2}"), "SEL911", at(4, 9), "`null`"),
    ("a name that is true", one("3").replace("m:", "true:"), "SEL911", at(3, 3), "`true`"),
    ("a name that is a list", added("facts: {[1, 2]: 2}"), "SEL911", at(4, 9), "(1, 2)"),
    ("a name that is a mapping", added("facts: {? {a: 1} : 2}"), "SEL911", at(4, 11), "key"),
    ("a name with a space", added("facts: {a b: 2}"), "SEL911", at(4, 9), "`a b`"),
    # kinds, roles, scopes
    ("kind", one("{kind: runtme, range: [1, 4]}"), "SEL911", at(3, 13), "`runtme`"),
    ("role", HEAD.replace("'*': bits", "w: bit") + INPUTS, "SEL911", at(1, 54), "`bit`"),
    ("scope", HEAD.replace("launch", "lunch") + INPUTS, "SEL911", at(1, 33), "`lunch`"),
    # expressions
    ("half an expression", selection("assume: ['m <']"), "SEL911", at(1, 70), "`m <`"),
    ("an assignment", selection("assume: ['m = 3']"), "SEL911", at(1, 70), "`m = 3`"),
    ("a name of nowhere", selection("assume: ['mm < 3']"), "SEL904", at(1, 70), "`mm`"),
    ("a contradiction", selection("assume: ['m < 0']"), "SEL921", at(1, 70), "no declared input"),
    ("two that disagree", selection("assume: ['m < 10', 'm > 20']"), "SEL921", at(1, 70),
     "no declared input"),
    ("a require that fails", selection("require: ['m < 3']"), "SEL920", at(1, 71), "m=3"),
    ("a field of nowhere", selection("require: [\"result['q'] < 3\"]"), "SEL920", at(1, 71),
     "`result['q']`"),
    # YAML
    ("nothing", "", "SEL911", at(1, 1), "is empty"),
    ("two documents", FACTS + "---\n" + FACTS, "SEL914", at(4, 1), "single document"),
    ("an open list", added("facts: {a: [1, 2"), "SEL914", at(5, 1), "not YAML"),
    ("a tab", added("facts:\n\ta: 1"), "SEL914", at(5, 1), "not YAML"),
    ("a tag that runs", added("facts: {a: !!python/object/apply:os.system ['exit 1']}"), "SEL911",
     at(4, 12), "tag"),
    ("a tag that makes", added("facts: !!python/object:os.system {}"), "SEL911", at(4, 8), "tag"),
    ("a tag of one's own", added("facts: {a: !mine 3}"), "SEL911", at(4, 12), "tag"),
    ("a value within itself", added("facts: &a {x: *a}"), "SEL914", at(4, 8), "itself"),
    ("an alias of nothing", added("facts: {x: *a}"), "SEL914", at(4, 12), "alias"),
    ("aliases without end", added(LAUGHS), "SEL914", at(5, 30), "500,000"),
    ("500 levels", added(f"facts: {{a: {'[' * 500}{']' * 500}}}"), "SEL914", at(4, 74), "64 deep"),
    ("a date", added("facts: {a: 2024-01-01}"), "SEL911", at(4, 12), "date"),
    ("yes", added("facts: {a: yes}"), "SEL911", at(4, 12), "`yes`"),
    # files
    ("a table that is not there", added("tables: {t: nope.json}"), "SEL914", at(4, 13), "nope"),
    ("a folder that is not there", added("files: {'a/*.json': nope}"), "SEL914", at(4, 21),
     "nope"),
    ("a partition that is not there", added("classes: {c: {fields: [w], file: nope.json}}"),
     "SEL914", at(4, 34), "nope"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("facts", "code", "place", "words"), [pytest.param(*c[1:], id=c[0]) for c in CASES]
)
def test_wrong_facts(
    attempt: Try, facts: str, code: str, place: tuple[int, int], words: str
) -> None:
    made = attempt(facts=facts)
    assert (made.code, made.first["code"]) == (2, code)
    assert made.place()[1:] == place
    assert words in made.first["message"]


@pytest.mark.parametrize(
    ("data", "column"),
    [(FACTS.encode() + b"facts: {a: \xe4}\n", 12), (FACTS.encode("utf-16"), 1)],
)
def test_facts_that_are_not_utf8(attempt: Try, data: bytes, column: int) -> None:
    made = attempt(facts=data)
    assert (made.code, made.first["code"], made.place()[2]) == (2, "SEL914", column)
    assert "UTF-8" in made.first["message"]


def test_a_null_byte(attempt: Try) -> None:
    made = attempt(facts=FACTS.encode() + b'facts: {a: "\0"}\n')
    assert (made.code, made.first["code"], made.place()) == (2, "SEL914", ("f.yaml", 4, 13))


@pytest.mark.parametrize("data", [b"\xef\xbb\xbf" + FACTS.encode(), FACTS.replace("\n", "\r\n")])
def test_marks_and_line_ends_of_other_systems(attempt: Try, data: str) -> None:
    assert attempt(facts=data).code == 0


def test_several_mistakes_are_one_run(attempt: Try) -> None:
    made = attempt(facts=added("factz: {}\nfacts: {a: yes, b: 017}\nenv: {X: true}"))
    assert [e["line"] for e in made.errors] == [4, 5, 5, 6]


def test_suggestions(attempt: Try) -> None:
    wrong = {
        "did you mean `range`?": one("{kind: runtime, rnge: [1, 2]}"),
        "did you mean `m`?": added("facts: {mm: 1}"),
        "did you mean `f`?": HEAD.replace("f,", "ff,") + INPUTS,
        "did you mean `runtime`?": one("{kind: runtme, range: [1, 4]}"),
        "did you mean `BLOCK`?": added("globals: {BLOKC: 1}"),
    }
    for words, facts in wrong.items():
        assert words in attempt("BLOCK = 3\n" + SOURCE, facts).told


def test_a_function_on_a_path_not_taken_may_be_stated(attempt: Try) -> None:
    source = "def g():\n    return 1\n\ndef f(m, big):\n    return {'w': g() if big else 2}\n"
    assert attempt(source, added("facts: {big: false}\nfunctions: {g: 4}")).code == 0


def test_a_layer_may_state_more(attempt: Try) -> None:
    layer = "layer: h100\nfunctions: {nope: 1}\nenv: {NOPE: 1}\nfacts: {nope: 1}\n"
    assert attempt(SOURCE, FACTS, "--facts", "l.yaml", files={"l.yaml": layer}).code == 0


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("{", "SEL914", "JSON"),
        ('{"a": 1, "a": 2}', "SEL911", "twice"),
        ('{"a": NaN}', "SEL911", "NaN"),
        ("[" * 65 + "]" * 65, "SEL914", "64 deep"),
        ("[" * 100_000, "SEL914", "64 deep"),
    ],
)
def test_a_table_that_is_wrong(attempt: Try, text: str, code: str, words: str) -> None:
    source = "def f(m, t):\n    return {'w': t['a'] if m > 3 else 1}\n"
    made = attempt(source, added("tables: {t: t.json}"), files={"t.json": text})
    assert (made.code, made.first["code"], made.place()[0]) == (2, code, "t.json")
    assert words in made.first["message"]


@pytest.mark.parametrize("text", ['{"b": 1}', "[]", "[[1]]", "3", "null", '{"a": []}'])
def test_a_table_of_another_shape(attempt: Try, text: str) -> None:
    source = "def f(m, t):\n    return {'w': t['a'] + 1 if m > 3 else 1}\n"
    made = attempt(source, added("tables: {t: t.json}"), files={"t.json": text})
    assert made.code == 2
    assert made.place()[:2] == ("k.py", 2)


@pytest.fixture
def small_memory() -> Iterator[None]:
    """One gigabyte above what is in use."""
    status = Path("/proc/self/status").read_text().split()
    used = int(status[status.index("VmSize:") + 1])
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used * 1024 + 2**30, hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@pytest.mark.usefixtures("small_memory")
def test_aliases_do_not_fill_the_memory(attempt: Try) -> None:
    assert attempt(facts=added(LAUGHS)).first["code"] == "SEL914"
