# ruff: noqa: E501 - a table of cases, one a line
"""Facts files that are wrong: the code, the place and the words of every error."""

from __future__ import annotations

from pathlib import Path

import pytest

from selc.diag.diagnostic import Diagnostic, Sink
from selc.frontend.facts import Facts, load_facts


def wrong(folder: Path, text: str | bytes, *more: str) -> tuple[Facts, list[Diagnostic]]:
    paths = [folder / "f.yaml"]
    paths[0].write_bytes(text if isinstance(text, bytes) else text.encode())
    for i, other in enumerate(more):
        paths.append(folder / f"g{i}.yaml")
        paths[-1].write_text(other, encoding="utf-8")
    sink = Sink()
    return load_facts(paths, sink), list(sink)


# (text, code, line, column, part of the message, part of the help)
CASES: dict[str, tuple[str, str, int, int, str, str]] = {
    # sections and keys
    "section": ("facts: {}\ninput: {}\n", "SEL910", 2, 1, "unknown section `input`", "`inputs`?"),
    "section, far": ("facts: {}\nqqq: 1\n", "SEL910", 2, 1, "`qqq`", "sections: layer, selection"),
    "section, misplaced": ("returns: {k: bits}\n", "SEL910", 1, 1, "`returns`", "under `selection:`"),
    "section, number": ("1: {}\n", "SEL911", 1, 1, "a section must be text, not `1`", "quotes"),
    "section, type": ("facts: 3\n", "SEL911", 1, 8, "`facts` must be a mapping", ""),
    "layer": ("layer: 3\n", "SEL911", 1, 8, "layer must be text, not the number 3", "what is shared"),
    "twice": ("facts:\n  a: 1\n  a: 2\n", "SEL911", 3, 3, "`a` is set twice in one mapping, first on line 2", "keep"),
    "twice, deep": ("facts: {a: [{b: 1,\n b: 2}]}\n", "SEL911", 2, 2, "`b` is set twice", "keep"),
    "twice, equal keys": ("facts: {a: {1: x,\n true: y}}\n", "SEL911", 2, 2, "`true` is set twice", ""),
    "twice, dotted": ("facts:\n  a: {b: 1}\n  a.b: 2\n", "SEL911", 3, 3, "`a.b` is set twice in this file, first on line 2", ""),
    "twice, dotted scalar": ("facts:\n  a: 1\n  a.b: 2\n", "SEL911", 3, 3, "`a.b` is set twice", ""),
    # selection
    "selection key": ("selection: {functoin: f}\n", "SEL910", 1, 13, "unknown key `functoin` in selection", "`function`?"),
    "function": ("selection: {function: a b}\n", "SEL911", 1, 23, "`a b` does not name", "Class.method"),
    "function type": ("selection: {function: [f]}\n", "SEL911", 1, 23, "must be text, not a list", ""),
    "scope": ("selection: {scope: lunch}\n", "SEL911", 1, 20, "`lunch` is no selection.scope", "`launch`?"),
    "role": ("selection:\n  returns:\n    k: bit\n", "SEL911", 3, 8, "`bit` is no role of `k`", "`bits`?"),
    "role, far": ("selection: {returns: {k: 7}}\n", "SEL911", 1, 26, "role of `k` must be text", "bits, neutral, aux"),
    "returns": ("selection: {returns: bits}\n", "SEL911", 1, 22, "must be a mapping", "'*' in quotes"),
    "returns key": ("selection: {returns: {0: bits}}\n", "SEL911", 1, 23, "not `0`", "quotes"),
    "guards": ("selection: {require: a > 0}\n", "SEL911", 1, 22, "selection.require must be a list", "write a list"),
    "guard": ("selection: {require: ['a >']}\n", "SEL911", 1, 23, "`a >`, is not a Python expression", "one expression"),
    "guard =": ("selection: {assume: ['a = 1']}\n", "SEL911", 1, 22, "not a Python expression", "write =="),
    "guard, bool": ("selection: {assume: [true]}\n", "SEL911", 1, 22, "must be text, not the truth value true", "expression"),
    "guard, mapping": ("selection: {assume: [{a: b}]}\n", "SEL911", 1, 22, "not a mapping", ""),
    "guard, statement": ("selection: {assume: ['assert a']}\n", "SEL911", 1, 22, "not a Python expression", ""),
    "guard, empty": ("selection: {assume: ['']}\n", "SEL911", 1, 22, "is empty", ""),
    # inputs
    "input": ("inputs: {m: 3}\n", "SEL911", 1, 13, "input `m` must be a mapping, not the number 3", "kind: runtime"),
    "input, null": ("inputs:\n  m:\n", "SEL911", 2, 5, "not null", "kind: runtime"),
    "input key": ("inputs:\n  m: {kind: runtime, rnage: [1, 2]}\n", "SEL910", 2, 22, "unknown key `rnage` in input `m`", "`range`?"),
    "input name": ("inputs:\n  a-b: {kind: runtime, values: [1]}\n", "SEL911", 2, 3, "`a-b` in `inputs` is not a Python name", "`a_b`?"),
    "input name, dots": ("inputs:\n  a..b: {kind: runtime, values: [1]}\n", "SEL911", 2, 3, "not a Python name", ""),
    "kind": ("inputs:\n  m: {kind: runtim, range: [1, 2]}\n", "SEL911", 2, 13, "`runtim` is no kind of input `m`", "`runtime`?"),
    "kind, none": ("selection: {function: f}\ninputs:\n  m: {range: [1, 2]}\n", "SEL912", 3, 3, "input `m` has no kind", "runtime, request"),
    "type": ("inputs:\n  m: {kind: runtime, type: integer, range: [1, 2]}\n", "SEL911", 2, 28, "`integer` is no type of input `m`", "int"),
    "domain, none": ("inputs:\n  m: {kind: runtime}\n", "SEL912", 2, 3, "does not say what it can be", "range"),
    "domain, both": ("inputs:\n  m: {kind: runtime, values: [1], range: [1, 2]}\n", "SEL911", 2, 22, "in two ways", "keep one"),
    "domain, length": ("inputs:\n  m: {kind: runtime, values: [1], length: [1, 2]}\n", "SEL911", 2, 35, "in two ways", "keep one"),
    "range, empty": ("inputs:\n  m: {kind: runtime, range: [5, 1]}\n", "SEL911", 2, 29, "is empty: 5 > 1", "[1, 5]"),
    "range, multiple": ("inputs:\n  m: {kind: runtime, range: [1, 63], multiple_of: 64}\n", "SEL911", 2, 29, "no multiple of 64 in [1, 63]", "widen"),
    "range, three": ("inputs:\n  m: {kind: runtime, range: [1, 2, 3]}\n", "SEL911", 2, 29, "two integers, not 3 values", "[lo, hi]"),
    "range, no list": ("inputs:\n  m: {kind: runtime, range: 5}\n", "SEL911", 2, 29, "must be a list, not the number 5", "[lo, hi]"),
    "range, bool": ("inputs:\n  m: {kind: runtime, range: [1, true]}\n", "SEL911", 2, 33, "integer, not the truth value true", ""),
    "range, float": ("inputs:\n  m: {kind: runtime, range: [1, 1e3]}\n", "SEL911", 2, 33, "integer, not the number 1e3", "write 1000"),
    "range, nan": ("inputs:\n  m: {kind: runtime, range: [1, .nan]}\n", "SEL911", 2, 33, "integer, not the number .nan", ""),
    "range, inf": ("inputs:\n  m: {kind: runtime, range: [1, .inf]}\n", "SEL911", 2, 33, "integer, not the number .inf", ""),
    "range, text": ("inputs:\n  m: {kind: runtime, range: ['1', 2]}\n", "SEL911", 2, 30, 'integer, not the text "1"', ""),
    "range, octal": ("inputs:\n  m: {kind: runtime, range: [010, 20]}\n", "SEL911", 2, 30, "`010` is octal to some", "leading zero"),
    "range of str": ("inputs:\n  m: {kind: runtime, type: str, range: [1, 2]}\n", "SEL911", 2, 40, "declared str, and a range holds integers", "values"),
    "range of float": ("inputs:\n  m: {kind: runtime, type: float, range: [1, 2]}\n", "SEL911", 2, 42, "declared float", "type: int"),
    "multiple, zero": ("inputs:\n  m: {kind: runtime, range: [1, 2], multiple_of: 0}\n", "SEL911", 2, 50, "at least 1, not 0", "positive"),
    "multiple, bool": ("inputs:\n  m: {kind: runtime, range: [1, 2], multiple_of: true}\n", "SEL911", 2, 50, "must be an integer", ""),
    "multiple, alone": ("inputs:\n  m: {kind: runtime, values: [8], multiple_of: 8}\n", "SEL911", 2, 35, "needs a range", "add `range`"),
    "values, empty": ("inputs:\n  m: {kind: runtime, values: []}\n", "SEL911", 2, 30, "`values` of input `m` is empty", "at least one"),
    "values, no list": ("inputs:\n  m: {kind: runtime, values: 3}\n", "SEL911", 2, 30, "must be a list", "values: [...]"),
    "values, nan": ("inputs:\n  m: {kind: runtime, values: [1, .nan]}\n", "SEL911", 2, 34, "cannot be NaN", "remove"),
    "values, yes": ("inputs:\n  m: {kind: runtime, values: [yes, x]}\n", "SEL911", 2, 31, "`yes` is a truth value to some readers", 'write true, or "yes"'),
    "values, type": ("inputs:\n  m: {kind: runtime, type: int, values: [1, true]}\n", "SEL911", 2, 45, "declared int, and the truth value true is not", "leave out"),
    "values, int as float": ("inputs:\n  m: {kind: runtime, type: float, values: [1]}\n", "SEL911", 2, 44, "declared float, and the number 1 is not", "write 1.0"),
    "values, null": ("inputs:\n  m: {kind: runtime, type: int, values: [null]}\n", "SEL911", 2, 42, "null is not", "leave out `type`"),
    "length, alone": ("inputs:\n  m: {kind: runtime, length: [1, 2]}\n", "SEL912", 2, 3, "has no `element`", "element: {range"),
    "element, alone": ("inputs:\n  m: {kind: runtime, element: {range: [1, 2]}}\n", "SEL912", 2, 3, "has no `length`", ""),
    "length, negative": ("inputs:\n  m: {kind: runtime, length: [-1, 2], element: {range: [1, 2]}}\n", "SEL911", 2, 30, "cannot be negative", ""),
    "element, key": ("inputs:\n  m: {kind: runtime, length: [1, 2], element: {range: [1, 2], x: 1}}\n", "SEL910", 2, 63, "unknown key `x` in `element`", "range"),
    "element, no range": ("inputs:\n  m: {kind: runtime, length: [1, 2], element: {}}\n", "SEL912", 2, 38, "has no range", ""),
    "element, empty": ("inputs:\n  m: {kind: runtime, length: [1, 2], element: {range: [3, 2]}}\n", "SEL911", 2, 55, "is empty: 3 > 2", ""),
    "length, int": ("inputs:\n  m: {kind: runtime, type: int, length: [1, 2], element: {range: [1, 2]}}\n", "SEL911", 2, 33, "`length` makes it a sequence", "tuple"),
    "default": ("inputs:\n  m: {kind: runtime, values: [1], default: 1}\n", "SEL911", 2, 35, "is no knob", "remove"),
    # knobs and offers
    "knob key": ("knobs:\n  k: {fixd: 1}\n", "SEL910", 2, 7, "unknown key `fixd` in knob `k`", "`fixed`?"),
    "knob, empty": ("knobs:\n  k: {}\n", "SEL912", 2, 3, "knob `k` has no setting", "fixed"),
    "knob, null": ("knobs:\n  k:\n", "SEL912", 2, 3, "knob `k` has no setting", "fixed"),
    "knob, choice": ("inputs: {k: {kind: knob, values: [1, 2]}}\nknobs:\n  k: 3\n", "SEL911", 3, 3, "cannot be set to 3", "choices are 1, 2"),
    "knob, typed choice": ("inputs: {k: {kind: knob, values: [1, 2]}}\nknobs:\n  k: true\n", "SEL911", 3, 3, "cannot be set to True", "1, 2"),
    "knob, default": ("inputs:\n  k: {kind: knob, values: [1, 2], default: 3}\n", "SEL911", 2, 3, "cannot be set to 3", "1, 2"),
    "knob, wide": ("inputs:\n  k: {kind: knob, range: [1, 5000]}\n", "SEL911", 2, 3, "a knob with 5,000 choices", "values"),
    "knob, sequence": ("inputs:\n  k: {kind: knob, length: [1, 2], element: {range: [1, 2]}}\n", "SEL911", 2, 3, "choices are listed", "values"),
    "knob, input": ("inputs: {k: {kind: runtime, values: [1]}}\nknobs:\n  k: 1\n", "SEL911", 3, 3, "is an input of kind runtime", "kind: knob"),
    "offer": ("offer: {x: 3}\n", "SEL911", 1, 12, "offer for `x` must be a list", "[...]"),
    "offer, empty": ("offer: {x: []}\n", "SEL911", 1, 12, "offer for `x` is empty", "at least one"),
    # functions
    "function key": ("functions:\n  f: {kind: runtime, rang: [1, 2]}\n", "SEL910", 2, 22, "unknown key `rang`", "`range`?"),
    "function, mapping": ("functions:\n  f: {a: 1}\n", "SEL911", 2, 6, "does not say what the call gives", "{value: {...}}"),
    "function, empty": ("functions:\n  f: {}\n", "SEL912", 2, 3, "says neither", "`value:`"),
    "function, domain only": ("functions:\n  f: {range: [1, 2]}\n", "SEL912", 2, 3, "says neither", "`kind:`"),
    "function, both": ("functions:\n  f: {value: 1, table: [[1, 2]]}\n", "SEL911", 2, 17, "`value` and `table`", "keep one"),
    "function, value and range": ("functions:\n  f: {value: 1, range: [1, 2]}\n", "SEL911", 2, 17, "`value` and `range`", "keep one"),
    "function, kind": ("functions:\n  f: {kind: knob, values: [1]}\n", "SEL911", 2, 13, "`knob` is no kind of function `f`", "runtime"),
    "function, no domain": ("functions:\n  f: {kind: runtime}\n", "SEL912", 2, 3, "what it can be", ""),
    "table": ("functions:\n  f: {table: 1}\n", "SEL911", 2, 14, "`table` of function `f` must be a list", "rows"),
    "table, empty": ("functions:\n  f: {table: []}\n", "SEL911", 2, 14, "is empty", "rows"),
    "table, row": ("functions:\n  f: {table: [[1, 2], 3]}\n", "SEL911", 2, 23, "a row of function `f` must be a list", "rows"),
    "table, empty row": ("functions:\n  f: {table: [[]]}\n", "SEL911", 2, 15, "a row of function `f` is empty", ""),
    "table, twice": ("functions:\n  f: {table: [[1, 2],\n    [1, 3]]}\n", "SEL911", 3, 5, "two rows for the same arguments, first on line 2", "keep"),
    # env, globals
    "env, bool": ("env: {A: true}\n", "SEL911", 1, 10, "must be text, not the truth value true", '"1"'),
    "env, list": ("env: {A: [1]}\n", "SEL911", 1, 10, "must be text, not a list", "null"),
    "globals": ("globals: {'pkg:X': 1}\n", "SEL911", 1, 11, "`pkg:X` in `globals` is not a Python name", "dots"),
    # tensors
    "tensor": ("tensors: {x: 1}\n", "SEL911", 1, 14, "tensor `x` must be a mapping", "shape"),
    "tensor key": ("tensors: {x: {shap: [], dtype: torch.int8}}\n", "SEL910", 1, 15, "unknown key `shap`", "`shape`?"),
    "tensor, shape": ("tensors: {x: {dtype: torch.int8}}\n", "SEL912", 1, 11, "tensor `x` has no shape", "shape"),
    "tensor, dtype": ("tensors: {x: {shape: [1]}}\n", "SEL912", 1, 11, "tensor `x` has no dtype", "dtype"),
    "tensor, bad dtype": ("tensors: {x: {shape: [1], dtype: torch.bfloat61}}\n", "SEL911", 1, 34, "`torch.bfloat61` is no dtype", "`torch.bfloat16`?"),
    "tensor, size": ("tensors: {x: {shape: [m +], dtype: torch.int8}}\n", "SEL911", 1, 23, "not a Python expression", ""),
    "tensor, negative": ("tensors: {x: {shape: [-1], dtype: torch.int8}}\n", "SEL911", 1, 23, "cannot be negative", ""),
    "tensor, bool size": ("tensors: {x: {shape: [true], dtype: torch.int8}}\n", "SEL911", 1, 23, "must be an integer", ""),
    "tensor, strides": ("tensors: {x: {shape: [2, 2], dtype: torch.int8, strides: [1]}}\n", "SEL911", 1, 58, "2 dimensions and 1 strides", "each dimension"),
    # objects
    "object": ("objects: {self.c: 1}\n", "SEL911", 1, 19, "object `self.c` must be a mapping", "class"),
    "object, empty": ("objects: {self.c: {}}\n", "SEL912", 1, 11, "neither class nor attrs", ""),
    "object key": ("objects: {self.c: {clas: a}}\n", "SEL910", 1, 20, "unknown key `clas`", "`class`?"),
    "object class": ("objects: {self.c: {class: 'a:b:c'}}\n", "SEL911", 1, 27, "does not name a function or class", ""),
    "object attrs": ("objects: {self.c: {attrs: 1}}\n", "SEL911", 1, 27, "must be a mapping", ""),
    # bit classes
    "class, fields": ("classes: {c: {file: f.yaml}}\n", "SEL912", 1, 11, "bit class `c` has no fields", "fields"),
    "class, file": ("classes: {c: {fields: [a]}}\n", "SEL912", 1, 11, "bit class `c` has no file", "file"),
    "class, gone": ("classes: {c: {fields: [a], file: no.json}}\n", "SEL914", 1, 34, "does not exist", "path"),
    "class, no fields": ("classes: {c: {fields: [], file: f.yaml}}\n", "SEL911", 1, 23, "is empty", ""),
    "class, field twice": ("classes: {c: {fields: [a, a], file: f.yaml}}\n", "SEL911", 1, 27, "named twice", ""),
    "class, shared": ("classes:\n  c: {fields: [a], file: f.yaml}\n  d: {fields: [a], file: f.yaml}\n", "SEL911", 3, 3, "`a` stands in the bit classes `c` and `d`", "one of them"),
    "class, given": ("classes: {c: {fields: [a], file: f.yaml, given: {a: 1}}}\n", "SEL911", 1, 50, "both a field", ""),
    "class, given nan": ("classes: {c: {fields: [a], file: f.yaml, given: {b: .nan}}}\n", "SEL911", 1, 53, "cannot be NaN", ""),
    # files and tables
    "table file": ("tables: {t: no.json}\n", "SEL914", 1, 13, "does not exist", "check the path"),
    "table, data": ("tables: {t: {1: 2}}\n", "SEL911", 1, 13, "table `t` must be a path", "facts"),
    "table, number": ("tables: {t: 1}\n", "SEL911", 1, 13, "table `t` must be text", ""),
    "table, folder": ("tables: {t: .}\n", "SEL914", 1, 13, "is a directory", "name a file"),
    "files": ("files: {'a/*': nowhere}\n", "SEL914", 1, 16, "does not exist", "check"),
    # one name, one thing
    "fact and input": ("facts: {m: 1}\ninputs: {m: {kind: runtime, values: [1]}}\n", "SEL911", 2, 10, "`m` stands under `inputs` and under `facts`", "keep one"),
    "fact and tensor": ("facts: {m: 1}\ntensors: {m: {shape: [1], dtype: torch.int8}}\n", "SEL911", 2, 11, "under `tensors` and under `facts`", ""),
    "fact and knob": ("facts: {m: 1}\nknobs: {m: 1}\n", "SEL911", 2, 9, "under `knobs` and under `facts`", ""),
    "input and tensor": ("inputs: {m: {kind: runtime, values: [1]}}\ntensors: {m: {shape: [1], dtype: torch.int8}}\n", "SEL911", 2, 11, "under `tensors` and under `inputs`", ""),
    # YAML's own
    "date": ("facts: {a: 2024-01-01}\n", "SEL911", 1, 12, "`2024-01-01` reads as a date", 'quotes: "2024-01-01"'),
    "time": ("facts: {a: 2024-01-01 10:00:00}\n", "SEL911", 1, 12, "reads as a date", ""),
    "off": ("facts: {a: Off}\n", "SEL911", 1, 12, "`Off` is a truth value to some", 'write false, or "Off"'),
    "base 60": ("facts: {a: 12:30:00}\n", "SEL911", 1, 12, "base 60", "quotes"),
    "octal": ("facts: {a: 017}\n", "SEL911", 1, 12, "`017` is octal to some readers", "0o"),
    "underscores": ("facts: {a: 1__0}\n", "SEL911", 1, 12, "`1__0` is a number to some readers", "underscores"),
    "too large": ("facts: {a: 1e999}\n", "SEL911", 1, 12, "too large for a float", ".inf"),
    "too many digits": (f"facts: {{a: {'9' * 5000}}}\n", "SEL911", 1, 12, "5000 digits", "4,300"),
    "tag": ("facts: {a: !!python/object:x.Y {}}\n", "SEL911", 1, 12, "the tag !!python/object:x.Y is not supported", "remove"),
    "tag, own": ("facts: {a: !thing 1}\n", "SEL911", 1, 12, "the tag !thing is not supported", "remove"),
    "tag, mismatch": ("facts: {a: !!int x}\n", "SEL911", 1, 12, "`x` is not a int", "tag"),
    "key, mapping": ("facts: {a: {? {b: 1} : 2}}\n", "SEL911", 1, 15, "a key must be a scalar", "quotes"),
    "key, date": ("facts: {a: {2024-01-01: 2}}\n", "SEL911", 1, 13, "reads as a date", "quotes"),
    "key, nan": ("facts: {a: {.nan: 2}}\n", "SEL911", 1, 13, "cannot be NaN", ""),
    "merge": ("facts: {<<: 3}\n", "SEL911", 1, 13, "`<<` takes a mapping", "*name"),
    "surrogate": ('facts: {a: "\\ud800"}\n', "SEL911", 1, 12, "surrogate", ""),
    "syntax": ("facts: {a: 1\nb: [\n", "SEL914", 2, 2, "this is not YAML", ""),
    "tab": ("facts:\n\ta: 1\n", "SEL914", 2, 1, "this is not YAML", "spaces"),
    "star": ("selection: {returns: {*: bits}}\n", "SEL914", 1, 24, "this is not YAML", "'*'"),
    "colon": ("facts: a: b\n", "SEL914", 1, 9, "this is not YAML", "quotes"),
    "alias": ("facts: {a: *b}\n", "SEL914", 1, 12, "undefined alias", ""),
    "documents": ("facts: {}\n---\nfacts: {}\n", "SEL914", 2, 1, "this is not YAML", "one document"),
    "control": ("facts: {a: \x07}\n", "SEL914", 1, 12, "is not allowed in YAML", "remove"),
    "cycle": ("facts: {a: &x [*x]}\n", "SEL914", 1, 12, "contains itself", "write the values out"),
    "deep": (f"facts: {{a: {'[' * 90}{']' * 90}}}\n", "SEL914", 1, 74, "more than 64 deep", ""),
    "very deep": (f"facts: {{a: {'[' * 5000}{']' * 5000}}}\n", "SEL914", 1, 1, "nested too deeply", ""),
    "empty": ("# nothing\n", "SEL911", 1, 1, "this facts file is empty", "section"),
    "list": ("- a\n", "SEL911", 1, 1, "a facts file must be a mapping, not a list", "section"),
    "text": ("hello\n", "SEL911", 1, 1, 'not the text "hello"', "section"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_error(tmp_path: Path, name: str) -> None:
    text, code, line, column, message, hint = CASES[name]
    _, found = wrong(tmp_path, text)
    told = [(d.code, str(d.span), d.message, d.help) for d in found]
    assert len(found) == 1, told
    (d,) = found
    assert (d.code, d.span.path) == (code, str(tmp_path / "f.yaml"))
    assert (d.span.line, d.span.column) == (line, column), told
    assert message in d.message
    assert hint in d.help
    assert d.help or code == "SEL911", told


def test_several_errors_in_one_run_and_the_rest_is_understood(tmp_path: Path) -> None:
    facts, found = wrong(
        tmp_path,
        "inptus: {}\nfacts: {a: 1, b: yes}\ninputs:\n  m: {kind: runtime, range: [2, 1]}\n"
        "  n: {kind: runtime, range: [1, 2]}\n",
    )
    assert [(d.code, d.span.line) for d in found] == [("SEL910", 1), ("SEL911", 2), ("SEL911", 4)]
    assert (list(facts.inputs), facts.facts["a"]) == (["n"], 1)


def test_an_error_names_the_file_it_is_in(tmp_path: Path) -> None:
    good = "inputs: {m: {kind: runtime, range: [1, 2]}}\n"
    _, found = wrong(tmp_path, good, "inputs:\n  m: {range: [3, 1]}\n")
    assert [(Path(d.span.path).name, d.span.line) for d in found] == [("g0.yaml", 2)]


def test_a_lone_null_takes_nothing_away(tmp_path: Path) -> None:
    _, found = wrong(tmp_path, "facts: {a: 1}\n", "offer: {x: null}\n")
    assert [d.message for d in found] == ["offer for `x` must be a list, not null"]


def test_facts_and_inputs_of_two_plain_files_conflict(tmp_path: Path) -> None:
    _, found = wrong(tmp_path, "facts: {m: 1}\n", "inputs: {m: {kind: runtime, values: [1]}}\n")
    assert [d.span.path for d in found] == [str(tmp_path / "g0.yaml")]
    assert f"({tmp_path / 'f.yaml'}:1:9)" in found[0].message


def test_aliases_cannot_blow_up(tmp_path: Path) -> None:
    lines = ["facts:", "  a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for i in range(1, 10):
        refs = ", ".join(f"*a{i - 1}" for _ in range(10))
        lines.append(f"  a{i}: &a{i} [{refs}]")
    _, found = wrong(tmp_path, "\n".join(lines) + "\n")
    assert [(d.code, d.span.path) for d in found] == [("SEL914", str(tmp_path / "f.yaml"))]
    assert "expands to more than 500,000 values" in found[0].message


@pytest.mark.parametrize(
    ("data", "line", "column", "message"),
    [
        (b"facts:\n  a: \xff\n", 2, 6, "is not UTF-8"),
        ("facts: {}\n".encode("utf-16"), 1, 1, "is not UTF-8"),
        (b"", 1, 1, "is empty"),
    ],
)
def test_bytes(tmp_path: Path, data: bytes, line: int, column: int, message: str) -> None:
    _, found = wrong(tmp_path, data)
    assert [(d.span.line, d.span.column) for d in found] == [(line, column)]
    assert message in found[0].message


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    sink = Sink()
    facts = load_facts([tmp_path / "none.yaml", tmp_path, tmp_path / "none.yaml" / "x"], sink)
    assert facts.facts == {}
    assert [(d.code, d.span.path) for d in sink] == [
        ("SEL914", str(tmp_path / "none.yaml")),
        ("SEL914", str(tmp_path)),
        ("SEL914", str(tmp_path / "none.yaml/x")),
    ]
    assert [("does not exist" in d.message, "a directory" in d.message) for d in sink] == [
        (True, False),
        (False, True),
        (True, False),
    ]


@pytest.mark.parametrize(
    ("text", "code", "line", "column", "message"),
    [
        ('{"a": 1,\n "a": 2}', "SEL911", 2, 2, "`a` is set twice"),
        ('{"x": "a\\": NaN {",\n "b": {"k": 1, "k": 2}, "b": 3}', "SEL911", 2, 16, "`k` is set twice"),
        ('[{"a": 1}, {"a": 2},\n {"a": {"a": 1}, "\\u0061": 2}]', "SEL911", 2, 18, "`a` is set twice"),
        ('{"a": "NaN",\n "b": NaN}', "SEL911", 2, 7, "NaN is not JSON"),
        ('{"a": [1,\n -Infinity]}', "SEL911", 2, 2, "-Infinity is not JSON"),
        ('{"a": 1e999}', "SEL911", 1, 7, "too large for a float"),
        (f'{{"a": {"9" * 5000}}}', "SEL911", 1, 7, "5000 digits"),
        ('{"a": 1,\n}', "SEL914", 2, 1, "this is not JSON"),
        ("", "SEL914", 1, 1, "this is not JSON"),
        ("[" * 100000, "SEL914", 1, 1, "nested more than 64 deep"),
    ],
)  # fmt: skip
def test_json(tmp_path: Path, text: str, code: str, line: int, column: int, message: str) -> None:
    (tmp_path / "t.json").write_text(text)
    facts, found = wrong(tmp_path, "tables: {t: t.json}\n")
    assert facts.tables == {}
    assert [(d.code, d.span.path) for d in found] == [(code, str(tmp_path / "t.json"))]
    assert (found[0].span.line, found[0].span.column) == (line, column)
    assert message in found[0].message
    assert found[0].help
