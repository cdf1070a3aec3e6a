"""Tensors, kernels and what opaque calls give, as functions that end in launches see them.

A tensor is a layout that follows it through views, slices and copies. Nothing else is known: what
is asked of anything else gives a `Value`, and calling that is for the recorder to note.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tests.engines.stubs import Device, Dtype, Library, Stub, Tensor, decorated

# -- values --------------------------------------------------------------------------------------


class Value(Stub):
    """What an opaque call gives: any operation on it gives another such value."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Value(f"{self._name}.{name}")

    def __call__(self, *args: object, **kwargs: object) -> Any:
        kernel = decorated(args, kwargs)
        return Value(f"{self._name}(...)") if kernel is None else kernel

    def __getitem__(self, key: object) -> Any:
        return Value(f"{self._name}[...]")

    def _operation(self, *args: object) -> Any:
        return Value(f"({self._name} op)")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = (
        _operation
    )
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __neg__ = __pow__ = __and__ = __or__ = (
        _operation
    )
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = _operation
    __hash__ = Stub.__hash__


class Sheet(Tensor):
    """A tensor whose layout follows it through views, slices and copies."""

    def _made(
        self, shape: Any, strides: Any = None, dtype: Dtype | None = None, device: Any = None
    ) -> Sheet:
        where = self.device if device is None or isinstance(device, Stub) else device
        return Sheet(
            tuple(shape),
            dtype or self.dtype,
            str(where),
            None if strides is None else tuple(strides),
        )

    def _rebuilt(self, shape: tuple[int, ...]) -> Sheet:
        return self._made(shape)

    def size(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[dim]

    def stride(self, dim: int | None = None) -> Any:
        return self._strides if dim is None else self._strides[dim]

    def view(self, *shape: Any) -> Any:
        if any(isinstance(s, (Dtype, Stub)) for s in shape):
            return Value("tensor.view")
        wanted = (
            tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        )
        known = math.prod(s for s in wanted if s != -1)
        if (
            wanted.count(-1) > 1
            or (known == 0 and -1 in wanted)
            or (self.numel() % known if -1 in wanted else self.numel() != known)
        ):
            raise RuntimeError(f"shape {wanted} is invalid for {self.shape}")
        if not self.is_contiguous():
            return Value("tensor.view")
        return self._made(self.numel() // known if s == -1 else s for s in wanted)

    reshape = view

    def _swapped(self, i: int, j: int) -> Sheet:
        shape, strides = list(self.shape), list(self._strides)
        shape[i], shape[j] = shape[j], shape[i]
        strides[i], strides[j] = strides[j], strides[i]
        return self._made(shape, strides)

    def t(self) -> Sheet:
        return self._swapped(0, 1)

    def transpose(self, i: int, j: int) -> Sheet:
        return self._swapped(i, j)

    T = property(t)
    mT = property(lambda self: self._swapped(-2, -1))  # noqa: N815  # torch's name

    def to(self, *args: Any, **kwargs: Any) -> Sheet:
        given = [*args, *kwargs.values()]
        dtype = next((a for a in given if isinstance(a, Dtype)), None)
        device = next((a for a in given if isinstance(a, Device)), None)
        return self._made(self.shape, self._strides, dtype, device)

    def unsqueeze(self, dim: int) -> Sheet:
        shape = list(self.shape)
        shape.insert(dim % (len(shape) + 1), 1)
        return self._made(shape)

    def flatten(self) -> Sheet:
        return self._made((self.numel(),))

    def clone(self) -> Sheet:
        return self._made(self.shape)

    def detach(self) -> Sheet:
        return self._made(self.shape, self._strides)

    def zero_(self) -> Sheet:
        return self

    def is_floating_point(self) -> bool:
        return self.dtype.is_floating_point

    def _new(self, *size: Any, dtype: Dtype | None = None, device: Any = None, **_: Any) -> Sheet:
        sizes = size[0] if isinstance(size[0], (tuple, list)) else size
        return self._made(sizes, None, dtype, device)

    new_empty = new_zeros = new_ones = _new

    def __matmul__(self, other: object) -> Any:
        raise AssertionError("`@` is recorded before it is computed")

    def _operation(self, *args: object) -> Any:
        return Value("tensor op")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = (
        _operation
    )
    __lt__ = __le__ = __gt__ = __ge__ = _operation

    def __getitem__(self, key: Any) -> Any:
        keys = list(key) if isinstance(key, tuple) else [key]
        if any(
            not (k is None or k is Ellipsis or isinstance(k, slice) or type(k) is int) for k in keys
        ):
            return Value("tensor[...]")
        taken = sum(k is not None and k is not Ellipsis for k in keys)
        if Ellipsis not in keys:
            keys.append(Ellipsis)
        shape: list[int] = []
        strides: list[int] = []
        axis = 0
        for k in keys:
            if k is Ellipsis:
                rest = len(self.shape) - taken
                shape += self.shape[axis : axis + rest]
                strides += self._strides[axis : axis + rest]
                axis += rest
            elif k is None:
                shape.append(1)
                strides.append(1)
            elif isinstance(k, slice):
                shape.append(len(range(self.shape[axis])[k]))
                strides.append(self._strides[axis])
                axis += 1
            else:
                range(self.shape[axis])[k]
                axis += 1
        return self._made(shape, strides)


# -- libraries -----------------------------------------------------------------------------------


def allocate(*size: Any, dtype: Dtype | None = None, device: Any = None, **kwargs: Any) -> Any:
    """torch.empty and its kin."""
    shape = kwargs.get("size", size[0] if len(size) == 1 else size)
    sizes = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    if dtype is None or isinstance(dtype, Stub):
        return Value("tensor")
    return Sheet(sizes, dtype, "cuda" if isinstance(device, Stub) else str(device or "cpu"), None)


def fill(size: Any, value: object, **kwargs: Any) -> Any:
    """torch.full."""
    return allocate(size, **kwargs)


def alike(other: Any, dtype: Dtype | None = None, device: Any = None, **kwargs: Any) -> Any:
    """torch.empty_like and its kin."""
    return (
        other._made(other.shape, None, dtype, device)
        if isinstance(other, Sheet)
        else Value("tensor")
    )


def cond(
    pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Any = ()
) -> Any:
    """torch.cond on a bool."""
    return (true_fn if pred else false_fn)(*operands)


def keep(*args: Any, **kwargs: Any) -> Any:
    """A decorator that leaves functions as they are, with or without options."""
    return (
        args[0]
        if len(args) == 1 and callable(args[0]) and not kwargs
        else lambda function: function
    )


TORCH = {
    "Tensor": Tensor, "cond": cond, "compile": keep, "inference_mode": keep, "no_grad": keep,
    "full": fill,
    **dict.fromkeys(("empty_like", "zeros_like", "ones_like", "full_like", "rand_like"), alike),
    **dict.fromkeys(("empty", "zeros", "ones", "rand", "randn"), allocate),
    "library": Library("torch.library", {"custom_op": keep}),
}  # fmt: skip
