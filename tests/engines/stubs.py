"""What engine functions see of the world outside their package: torch, triton, the environment.

Nothing here knows selc. A tensor is a shape with a dtype; asking it for data is an error of the
test. Everything that a facts file states arrives as this module makes it.
"""

from __future__ import annotations

import dataclasses
import math
import operator
import os
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

PACKAGES = ("vllm", "sglang")


class Unstated(Exception):
    """The function asked for something that its facts file does not state."""


class Dtype:
    """A torch dtype: equal to itself alone."""

    def __init__(self, name: str, itemsize: int) -> None:
        self.name = f"torch.{name}"
        self.itemsize = itemsize
        self.is_floating_point = not name.startswith(("int", "uint", "bool", "complex"))

    def __repr__(self) -> str:
        return self.name


_SIZES = {
    "float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "float8_e4m3fn": 1,
    "float8_e4m3fnuz": 1,
    "float8_e5m2": 1, "float8_e5m2fnuz": 1, "float8_e8m0fnu": 1, "float4_e2m1fn_x2": 1, "int64": 8,
    "int32": 4, "int16": 2, "int8": 1, "uint8": 1, "uint16": 2, "uint32": 4, "uint64": 8, "bool": 1,
}  # fmt: skip
DTYPES = {name: Dtype(name, size) for name, size in _SIZES.items()}
DTYPES |= {
    alias: DTYPES[name]
    for alias, name in {
        "double": "float64", "float": "float32", "half": "float16", "long": "int64", "int": "int32",
        "short": "int16",
    }.items()
}  # fmt: skip


class Stub:
    """Something of a library. It can be named, called and subclassed; its value cannot be asked."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Stub(f"{self._name}.{name}")

    def __call__(self, *args: object, **kwargs: object) -> Any:
        kernel = decorated(args, kwargs)
        return Stub(f"{self._name}(...)") if kernel is None else kernel

    def __getitem__(self, key: object) -> Any:
        return Stub(f"{self._name}[...]")

    def __setitem__(self, key: object, value: object) -> None:
        return

    def __eq__(self, other: object) -> bool:
        if (
            isinstance(other, Stub)
            and other._name == self._name
            and not set("([") & set(self._name)
        ):
            return True
        if not isinstance(other, Stub):
            return False
        raise Unstated(f"whether {self._name} is {other._name}")

    def __hash__(self) -> int:
        return hash(self._name)

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
        return ()

    def __or__(self, other: object) -> Stub:
        return self

    __ror__ = __or__

    def _unstated(self, *args: object) -> Any:
        raise Unstated(f"the value of {self._name} is not stated")

    __bool__ = __len__ = __iter__ = __int__ = __float__ = __index__ = _unstated
    __lt__ = __le__ = __gt__ = __ge__ = __add__ = __radd__ = __sub__ = __rsub__ = _unstated
    __mul__ = __rmul__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _unstated


class Kernel(Stub):
    """A function that a library's decorator turned into something else."""

    def __init__(self, name: str, parameters: tuple[str, ...]) -> None:
        super().__init__(name)
        self.__dict__.update(parameters=parameters)

    def __getitem__(self, key: object) -> Any:
        return self  # `kernel[grid]`


def decorated(args: tuple[object, ...], kwargs: Mapping[str, object]) -> Kernel | None:
    """What a library's decorator makes of a function; None if it decorates none."""
    if len(args) != 1 or kwargs:
        return None
    if isinstance(args[0], Kernel):
        return args[0]
    if not isinstance(args[0], types.FunctionType):
        return None
    code = args[0].__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return Kernel(args[0].__name__, names)


class Module:
    """torch.nn.Module without hooks."""

    def __call__(self, *args: object, **kwargs: object) -> Any:
        return self.forward(*args, **kwargs)  # type: ignore[attr-defined]  # subclasses have it


class Quiet:
    """A logger."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: False


class Size(tuple[int, ...]):
    """torch.Size."""

    def numel(self) -> int:
        return math.prod(self)

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        return Size(found) if isinstance(key, slice) else found


class Device:
    """torch.device."""

    def __init__(self, kind: object, index: int | None = None) -> None:
        self.type, _, number = str(kind).partition(":")
        self.index = int(number) if number else index

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


class Tensor:
    """A tensor of which only the layout is known."""

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: Dtype,
        device: str | None,
        strides: tuple[int, ...] | None,
    ) -> None:
        self.shape = Size(shape)
        self.dtype = dtype
        self.device = Device(device or "cuda")
        full: list[int] = []
        step = 1
        for size in reversed(shape):
            full.insert(0, step)
            step *= size
        self._contiguous = tuple(full)
        self._strides = tuple(full) if strides is None else strides

    def size(self, axis: int | None = None) -> Any:
        return self.shape if axis is None else self.shape[axis]

    def stride(self, axis: int | None = None) -> Any:
        return self._strides if axis is None else self._strides[axis]

    def numel(self) -> int:
        return self.shape.numel()

    def dim(self) -> int:
        return len(self.shape)

    def element_size(self) -> int:
        return self.dtype.itemsize

    def is_contiguous(self) -> bool:
        pairs = zip(self.shape, self._strides, self._contiguous, strict=True)
        return self.shape.numel() == 0 or all(size == 1 or a == b for size, a, b in pairs)

    def __len__(self) -> int:
        return int(self.shape[0])

    ndim = property(dim)
    itemsize = property(element_size)
    nbytes = property(lambda self: self.numel() * self.dtype.itemsize)
    is_cuda = property(lambda self: self.device.type == "cuda")
    is_cpu = property(lambda self: self.device.type == "cpu")

    def _rebuilt(self, shape: tuple[int, ...]) -> Tensor:
        return Tensor(shape, self.dtype, str(self.device), None)

    def contiguous(self) -> Tensor:
        return self._rebuilt(self.shape)

    def view(self, *shape: int) -> Tensor:
        known = math.prod(s for s in shape if s != -1)
        return self._rebuilt(tuple(self.numel() // known if s == -1 else s for s in shape))

    reshape = view

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Stub(f"tensor.{name}")

    def __getitem__(self, key: object) -> Any:
        return Stub("tensor[...]")

    def __setitem__(self, key: object, value: object) -> None:
        return


class Number(int):
    """A number that an array gives."""

    def item(self) -> int:
        return int(self)


class Numbers(tuple[Any, ...]):
    """A sequence that may be a list or an array: what both have, and an array's reductions."""

    def max(self) -> Any:
        return Number(max(tuple(self)))

    def min(self) -> Any:
        return Number(min(tuple(self)))

    def sum(self) -> Any:
        return Number(sum(tuple(self)))


class Array(tuple[Any, ...]):
    """A one-dimensional array: it compares element by element."""

    def __bool__(self) -> bool:
        raise ValueError("the truth of an array")

    def _each(self, other: object, compare: Callable[[Any, Any], bool]) -> Array:
        return Array(compare(x, other) for x in self)

    def __eq__(self, other: object) -> Any:
        return self._each(other, operator.eq)

    def __ne__(self, other: object) -> Any:
        return self._each(other, operator.ne)

    def __lt__(self, other: object) -> Any:
        return self._each(other, operator.lt)

    def __le__(self, other: object) -> Any:
        return self._each(other, operator.le)

    def __gt__(self, other: object) -> Any:
        return self._each(other, operator.gt)

    def __ge__(self, other: object) -> Any:
        return self._each(other, operator.ge)

    __hash__ = None  # type: ignore[assignment]  # as in numpy

    def all(self) -> bool:
        return all(tuple(self))

    def any(self) -> bool:
        return any(tuple(self))

    def max(self) -> Any:
        return max(tuple(self))

    def min(self) -> Any:
        return min(tuple(self))

    def sum(self) -> Any:
        return sum(tuple(self))


class Record(dict[str, Any]):
    """A mapping of a facts file: it serves attributes and subscripts alike."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


@dataclasses.dataclass(frozen=True, slots=True)
class Member:
    """An Enum member by the dotted path of its class, looked up where the engine runs."""

    path: str
    name: str


def value_of(stated: object, member: Callable[[str], Any] | None = None) -> Any:
    """A value of a facts file as the program gets it."""
    if isinstance(stated, Mapping):
        if member is not None and stated.keys() == {"class", "attrs"}:
            return member(f"class {stated['class']}")(**value_of(stated["attrs"], member))
        if stated.keys() == {"class", "items"} and stated["class"] == "list":
            return [value_of(v, member) for v in stated["items"]]
        return Record({value_of(k, member): value_of(v, member) for k, v in stated.items()})
    if isinstance(stated, (list, tuple)):
        return tuple(value_of(v, member) for v in stated)
    if isinstance(stated, str):
        if stated.startswith("torch.") and stated.removeprefix("torch.") in DTYPES:
            return DTYPES[stated.removeprefix("torch.")]
        if member is not None and "." in stated:
            found = member(stated)
            return stated if found is None else found
    return stated


class Environment(dict[str, str]):
    """os.environ, with an error for variables that nothing is said of."""

    def __init__(self, stated: Mapping[str, object]) -> None:
        super().__init__({k: str(v) for k, v in stated.items() if v is not None})
        self.stated = frozenset(stated)

    def _known(self, name: object) -> None:
        if name not in self.stated and not super().__contains__(name):
            raise Unstated(f"the environment variable {name}")

    def __contains__(self, name: object) -> bool:
        self._known(name)
        return super().__contains__(name)

    def __missing__(self, name: str) -> str:
        self._known(name)
        raise KeyError(name)

    def get(self, name: str, default: Any = None) -> Any:
        self._known(name)
        return super().get(name, default)


def operating_system(environment: Environment) -> types.ModuleType:
    """`os`, reading files as it does and the environment as stated."""
    out = types.ModuleType("os")
    out.__dict__.update({k: v for k, v in vars(os).items() if not k.startswith("__")})
    out.__dict__.update(environ=environment, getenv=environment.get)
    return out


class Library(Stub):
    """A library of which a few members are modelled."""

    def __init__(self, name: str, members: Mapping[str, Any]) -> None:
        super().__init__(name)
        self.__dict__.update(members)


def next_power_of_2(n: int) -> int:
    """triton.next_power_of_2."""
    return 1 << (n - 1).bit_length() if n > 0 else 0


def cdiv(a: int, b: int) -> int:
    """triton.cdiv."""
    return (a + b - 1) // b


def dataclass(cls: type | None = None, **options: object) -> Any:
    """pydantic.dataclasses.dataclass, without its checks."""
    options.pop("config", None)
    make = dataclasses.dataclass(**options)  # type: ignore[call-overload]  # its options are passed on
    return make if cls is None else make(cls)


def libraries(environment: Environment) -> dict[str, Any]:
    """The modules that engine code imports from outside its package."""
    torch = Library(
        "torch",
        {
            **DTYPES,
            "Tensor": Tensor, "Size": Size, "device": Device, "dtype": Dtype,
            "nn": Library("torch.nn", {"Module": Module}),
        },
    )  # fmt: skip
    triton = Library("triton", {"next_power_of_2": next_power_of_2, "cdiv": cdiv})
    pydantic = Library(
        "pydantic", {"dataclasses": Library("pydantic.dataclasses", {"dataclass": dataclass})}
    )
    numpy = Library(
        "numpy",
        {
            n: (lambda a, f=f: f(tuple(a)))
            for n, f in (("all", all), ("any", any), ("max", max), ("min", min), ("sum", sum))
        },
    )
    return {
        "torch": torch,
        "triton": triton,
        "tl": Library("tl", {}),
        "os": operating_system(environment),
        "pydantic": pydantic,
        "numpy": numpy,
        "init_logger": lambda *_: Quiet(),
    }


REAL = frozenset({
    "math", "functools", "typing", "dataclasses", "enum", "collections", "itertools", "bisect",
    "json", "re", "contextlib", "copy", "abc", "operator", "string", "types", "warnings",
    "typing_extensions",
    "weakref", "logging", "time", "inspect", "textwrap", "hashlib", "numbers", "heapq",
})  # fmt: skip
"""Modules that are what they are."""


def corpus_file(corpus: Path, dotted: str) -> Path | None:
    """The file of an engine's module."""
    base = corpus.joinpath(*dotted.split("."))
    for path in (base / "__init__.py", base.with_suffix(".py")):
        if path.is_file():
            return path
    return None
