"""Options that several commands share, each group one dataclass."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, get_type_hints

import typer

from theory import InvalidInput, UserItems


@dataclasses.dataclass(frozen=True)
class DataOptions:
    """Where the data set is, and how to read it."""

    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[DATA]...",
            help="One data set: a file, several files of one layout, or a folder of them.",
            show_default=False,
        ),
    ] = None
    preset: Annotated[
        str | None,
        typer.Option(help="Layout of a named data set; without DATA it is read from WGM_DATA."),
    ] = None
    format: Annotated[
        str | None, typer.Option(help="pairs, adjacency, baskets, text or posts-xml.")
    ] = None
    user_column: Annotated[str | None, typer.Option(help="User column: name, or number from 0.")] = (
        None
    )
    item_column: Annotated[str | None, typer.Option(help="Item column: name, or number from 0.")] = (
        None
    )
    text_column: Annotated[
        str | None, typer.Option(help="Text column(s) to split into words, separated by commas.")
    ] = None
    separator: Annotated[str | None, typer.Option(help="Column separator, such as ',' or tab.")] = (
        None
    )
    header: Annotated[
        bool | None,
        typer.Option("--header/--no-header", help="Whether the first line names the columns."),
    ] = None

    @property
    def given(self) -> bool:
        """Whether any data were named."""
        return bool(self.paths) or self.preset is not None

    @property
    def name(self) -> str:
        """Short name of the data set for tables and plots."""
        if self.preset is not None:
            return self.preset
        first = (self.paths or ["data"])[0].rstrip("/").rsplit("/", 1)[-1]
        return first.split(".", 1)[0] or first

    def load(self) -> UserItems:
        """Read the data set."""
        from experiments.loading import load

        if not self.given:
            raise InvalidInput("DATA", "", "must name a file, a folder, or --preset NAME")
        choices = {
            "preset": self.preset,
            "format": self.format,
            "user": self.user_column,
            "item": self.item_column,
            "text": self.text_column,
            "separator": self.separator,
            "header": self.header,
        }
        given = {name: value for name, value in choices.items() if value is not None}
        return load(*(self.paths or []), **given)


@dataclasses.dataclass(frozen=True)
class OutputOptions:
    """What a command prints."""

    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else.")
    ] = False
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No progress bars and no hints.")
    ] = False


def grouped(command: Callable[..., Any]) -> Callable[..., Any]:
    """Let a command take whole option groups: each dataclass parameter becomes its fields."""
    hints = get_type_hints(command, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if dataclasses.is_dataclass(hint)}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        if parameter.name not in groups:
            kind = inspect.Parameter.KEYWORD_ONLY
            hint = hints[parameter.name]
            parameters.append(parameter.replace(kind=kind, annotation=hint))
            continue
        group = groups[parameter.name]
        fields = get_type_hints(group, include_extras=True)
        parameters += [
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=field.default,
                annotation=fields[field.name],
            )
            for field in dataclasses.fields(group)
        ]

    @functools.wraps(command)
    def expanded(**values: Any) -> Any:
        packed = {
            name: group(**{f.name: values.pop(f.name) for f in dataclasses.fields(group)})
            for name, group in groups.items()
        }
        return command(**packed, **values)

    expanded.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportAttributeAccessIssue]
    expanded.__annotations__ = {p.name: p.annotation for p in parameters}
    return expanded


def numbers(name: str, texts: list[str] | None, default: list[float]) -> list[float]:
    """Numbers given as repeated options or as comma-separated lists."""
    if not texts:
        return default
    found: list[float] = []
    for part in ",".join(texts).split(","):
        try:
            found.append(float(part))
        except ValueError:
            raise InvalidInput(name, part, "must be a number, or numbers with commas") from None
    return found


def contribution_bounds(texts: list[str] | None, default: list[int | str]) -> list[int | str]:
    """Contribution bounds: whole numbers or "max", repeated or comma-separated."""
    from theory._check import check_max_items_per_user

    if not texts:
        return default
    found: list[int | str] = []
    for part in ",".join(texts).split(","):
        if part.strip() == "max":
            found.append("max")
            continue
        try:
            number = float(part)
        except ValueError:
            accepted = 'must be a whole number from 1 to 1e9, or "max"'
            raise InvalidInput("max_items_per_user", part, accepted) from None
        found.append(int(check_max_items_per_user(number)))
    return found
