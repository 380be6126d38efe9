"""A calibrated flow as plain data for a JSON file, and back, bit by bit."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from theory._check import InvalidInput, invalid
from theory.flow.certificate import FlowCertificate
from theory.flow.fields import FlowFields
from theory.flow.grid import ProbabilityGrid
from theory.flow.group import FlowGroup

if TYPE_CHECKING:
    from theory.flow.calibration import FlowCalibration

Read = TypeVar("Read")
# Changes whenever equal numbers would mean another mechanism.
FORMAT = "bernoulli-flow 1"


def flow_to_dict(flow: FlowCalibration) -> dict[str, Any]:
    """`FlowCalibration.to_dict`."""
    shared = flow.fields
    known = {field.name: getattr(flow.certificate, field.name) for field in fields(FlowCertificate)}
    content = {
        "format": FORMAT,
        "eps": flow.eps,
        "delta": flow.delta,
        "max_items_per_user": flow.max_items_per_user,
        "half_cells": shared.grid.half_cells,
        "cell_width": shared.grid.cell_width,
        "last_of_block": shared.last_of_block.tolist(),
        "jump_cells": shared.jump_cells.tolist(),
        "half_durations": _packed(shared.half_durations),
        "groups": [
            {
                "classes": [group.first_class, group.last_class],
                "time_constants": group.time_constants.tolist(),
                "starts": group.starts.tolist(),
            }
            for group in flow.groups
        ],
        "structures": [list(parts) for parts in flow.structures],
        "certificate": {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in known.items()
        },
    }
    return with_digest(content)


def flow_arguments(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of `FlowCalibration` from what `flow_to_dict` wrote."""
    return read_stored(stored, FORMAT, _arguments, "flow calibration")


def _arguments(content: dict[str, Any]) -> dict[str, Any]:
    grid = ProbabilityGrid(int(content["half_cells"]), float(content["cell_width"]))
    ends = np.array(content["last_of_block"], np.int64)
    half = _unpacked(content["half_durations"]).reshape(ends.size, grid.half_cells + 1)
    shared = FlowFields(grid, ends, half, np.array(content["jump_cells"], np.int64))
    groups = []
    for group in content["groups"]:
        first, last = group["classes"]
        groups.append(
            FlowGroup(
                grid,
                first,
                ends[shared.blocks(first, last)],
                shared.monotone(first, last),
                np.array(group["time_constants"], np.float64),
                np.array(group["starts"], np.float64),
            )
        )
    known = content["certificate"]
    per_class = ("adding", "removing", "orders", "jump_shares", "spacings")
    certificate = FlowCertificate(
        *(np.array(known[name], np.float64) for name in per_class),
        rounding=float(known["rounding"]),
        floor=float(known["floor"]),
    )
    return {
        "eps": float(content["eps"]),
        "delta": float(content["delta"]),
        "max_items_per_user": int(content["max_items_per_user"]),
        "fields": shared,
        "groups": tuple(groups),
        "structures": tuple(tuple(parts) for parts in content["structures"]),
        "certificate": certificate,
    }


def with_digest(content: Mapping[str, Any]) -> dict[str, Any]:
    """The content to be stored, with what tells whether it has changed."""
    return {**content, "digest": _digest(content)}


def read_stored(
    stored: Mapping[str, Any], form: str, read: Callable[[dict[str, Any]], Read], what: str
) -> Read:
    """What `with_digest` marked, if it is of this form and has not changed.

    Args:
        stored: Content with its digest.
        form: Expected "format".
        read: Makes the object of the content.
        what: What it is, for the message.

    Raises:
        InvalidInput: Another form, changed content, or content that cannot be read.
    """
    content = {name: value for name, value in stored.items() if name != "digest"}
    if content.get("format") != form:
        invalid("format", content.get("format"), f"must be {form!r}")
    if stored.get("digest") != _digest(content):
        invalid("digest", stored.get("digest"), "must match what was stored, which has changed")
    try:
        return read(content)
    except InvalidInput:
        raise
    except (KeyError, TypeError, ValueError) as error:
        invalid("stored", type(error).__name__, f"must be a stored {what} ({error})")


def _digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _packed(values: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(values, "<f8").tobytes()).decode()


def _unpacked(text: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), "<f8").astype(np.float64)
