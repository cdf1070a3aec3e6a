"""SARIF 2.1.0: rules with help, paths as code flows, fingerprints without line numbers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from selc import __version__
from selc.lint.model import Finding, Place, Step, fingerprints
from selc.lint.registry import LintRule, all_rules

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {"error": "error", "warning": "warning", "note": "note"}


def sarif(findings: Sequence[Finding], suppressed: Sequence[Finding] = ()) -> str:
    """One run of one tool."""
    rules = all_rules()
    places = {rule.code: number for number, rule in enumerate(rules)}
    whole = [*findings, *suppressed]
    prints = fingerprints(whole)
    results = []
    for number, (finding, mark) in enumerate(zip(whole, prints, strict=True)):
        result = _result(finding, mark, places)
        if number >= len(findings):
            result["suppressions"] = [{"kind": "inSource"}]
        results.append(result)
    driver = {
        "name": "selc",
        "version": __version__,
        "semanticVersion": __version__,
        "rules": [_rule(rule) for rule in rules],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {"%SRCROOT%": {"description": {"text": "Where selc was run."}}},
        "results": results,
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _rule(rule: LintRule) -> dict[str, Any]:
    text = "\n\n".join(f"{heading}: {body}" for heading, body in rule.sections if body)
    return {
        "id": rule.code,
        "name": "".join(word.capitalize() for word in rule.name.split("-")),
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.what},
        "help": {"text": text},
        "defaultConfiguration": {"level": _LEVELS[rule.level], "enabled": rule.default},
    }


def _result(finding: Finding, mark: str, places: dict[str, int]) -> dict[str, Any]:
    text = f"{finding.message}. {finding.help}." if finding.help else f"{finding.message}."
    out: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": places[finding.code],
        "level": _LEVELS[finding.level],
        "message": {"text": text},
        "locations": [{"physicalLocation": _physical(finding.place)}],
        "partialFingerprints": {"selc/v1": mark},
    }
    if finding.trace:
        steps = [{"location": _location(step)} for step in finding.trace]
        out["codeFlows"] = [{"threadFlows": [{"locations": steps}]}]
    return out


def _location(step: Step) -> dict[str, Any]:
    place = {"artifactLocation": _artifact(step.path), "region": {"startLine": max(step.line, 1)}}
    return {"physicalLocation": place, "message": {"text": step.text or "here"}}


def _physical(place: Place) -> dict[str, Any]:
    return {
        "artifactLocation": _artifact(place.path),
        "region": {
            "startLine": max(place.line, 1),
            "startColumn": max(place.column, 1),
            "endLine": max(place.end_line, 1),
            "endColumn": max(place.end_column, 1),
        },
    }


def _artifact(path: str) -> dict[str, str]:
    from urllib.parse import quote

    if path.startswith("/"):
        return {"uri": f"file://{quote(path)}"}
    return {"uri": quote(path), "uriBaseId": "%SRCROOT%"}
