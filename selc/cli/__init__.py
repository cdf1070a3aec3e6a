"""The commands: parse options, call the driver, print, exit. Imports click and no other package."""

from __future__ import annotations

from selc.cli.app import app, main

__all__ = ["app", "main"]
