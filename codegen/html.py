"""One self-contained page: data as JSON inside a fixed document. Needs no network."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any


def html_text(data: Mapping[str, Any]) -> str:
    """The page that shows `data`; nothing of it can be read as markup."""
    text = json.dumps(data, ensure_ascii=True, sort_keys=True, allow_nan=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    document = files("selc.codegen").joinpath("rt", "page.html").read_text(encoding="utf-8")
    return document.replace("/*data*/null", text, 1)
