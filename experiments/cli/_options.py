"""Options that several commands share, each group one dataclass."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, get_type_hints

import typer

if TYPE_CHECKING:
    from theory import Profile, UserItems

# Options that several commands take one by one. No default for eps, delta and Delta0: none is
# right for everybody, and a wrong delta goes unnoticed.
EPS_HELP = "Privacy parameter ε, 0 to 1e5; one or several."
MAX_ITEMS_HELP = "Contribution bound Δ0; one or several; max: the largest set of the data."
Epsilons: TypeAlias = Annotated[list[str], typer.Option("--eps", metavar="E[,E...]", help=EPS_HELP)]
Delta: TypeAlias = Annotated[
    float, typer.Option(metavar="D", help="Privacy parameter δ in (0, 0.5], well below 1/users.")
]
MaxItems: TypeAlias = Annotated[
    list[str],
    typer.Option("--max-items-per-user", metavar="K[,K...]", help=MAX_ITEMS_HELP),
]
Method: TypeAlias = Annotated[
    str, typer.Option(metavar="split|full", help="δ/2 for each condition, or all of δ for both.")
]
Beta: TypeAlias = Annotated[
    float, typer.Option(metavar="B", help="Failure probability of the upper bounds, in (0, 1).")
]
NumTrials: TypeAlias = Annotated[
    float, typer.Option("--trials", metavar="R", help="Number of trials.")
]
Seed: TypeAlias = Annotated[
    int, typer.Option(metavar="S", help="Seed; equal seeds give equal numbers.")
]
OutFolder: TypeAlias = Annotated[
    Path | None, typer.Option("--out", "-o", metavar="DIR", help="Folder to write results to.")
]


@dataclasses.dataclass(frozen=True)
class DataOptions:
    """Where the data set is, and how to read it."""

    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DATA",
            help="One data set: a file, several files of one layout, or a folder of them.",
            show_default=False,
        ),
    ] = None
    preset: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Layout of a named data set; without DATA it is read from WGM_DATA.",
        ),
    ] = None
    format: Annotated[
        str | None,
        typer.Option(
            metavar="LAYOUT", help="pairs, adjacency, baskets, text or posts-xml; else guessed."
        ),
    ] = None
    user_column: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="User column: name, or number from 0.")
    ] = None
    item_column: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Item column: name, or number from 0.")
    ] = None
    text_column: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN[,...]", help="Text column(s) to split into words, separated by commas."
        ),
    ] = None
    separator: Annotated[
        str | None, typer.Option(metavar="SEP", help="Column separator, such as ',' or tab.")
    ] = None
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

    @property
    def settings(self) -> dict[str, Any]:
        """What was given, for a manifest; of paths only the last part."""
        given = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        given["paths"] = [Path(path) for path in self.paths or []]
        return {name: value for name, value in given.items() if value is not None}

    @property
    def shell(self) -> str:
        """The data arguments as one would type them again."""
        typed = list(self.paths or [])
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name == "paths" or value is None:
                continue
            flag = field.name.replace("_", "-")
            if isinstance(value, bool):
                typed.append(f"--{'' if value else 'no-'}{flag}")
            else:
                typed += [f"--{flag}", value]
        return shlex.join(typed)

    def load(self) -> UserItems:
        """Read the data set."""
        from experiments.loading import load
        from theory._check import invalid

        if not self.given:
            invalid("DATA", "", "must name a file, a folder, or a data set by --preset NAME")
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

    def scan(self) -> Profile:
        """Sizes of a plain table, however large: read in passes, without its pairs in memory."""
        from experiments.loading.scan import scan
        from theory import Profile
        from theory._check import invalid

        plain = self.format in (None, "pairs") and self.preset is None and self.text_column is None
        if not self.paths or not plain:
            invalid("scan", "", "needs DATA that is a plain table with a user and an item column")
        found = scan(
            *self.paths,
            user=self.user_column,
            item=self.item_column,
            separator=self.separator,
            header=self.header,
        )
        return Profile.from_classes(
            found.classes, max_items_per_user=found.max_set_size, num_users=found.num_users
        )


@dataclasses.dataclass(frozen=True)
class OutputOptions:
    """What a command prints."""

    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else.")
    ] = False
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bars and no hints.")] = (
        False
    )


def grouped(command: Callable[..., Any]) -> Callable[..., Any]:
    """Let a command take whole option groups: each dataclass parameter becomes its fields."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {
        name: hint for name, hint in hints.items() if dataclasses.is_dataclass(hint)
    }
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
                default=parameter.empty if field.default is dataclasses.MISSING else field.default,
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


def check_output(name: str, file: Path | None) -> None:
    """Refuse a file that cannot be written, before anything is read or computed."""
    from theory._check import invalid

    if file is not None and (file.is_dir() or not file.parent.is_dir()):
        invalid(name, str(file), "must be a file in a folder that exists")


def numbers(name: str, texts: list[str] | None, default: list[float]) -> list[float]:
    """Numbers given as repeated options or as comma-separated lists."""
    from theory._check import invalid

    if not texts:
        return default
    found: list[float] = []
    for part in ",".join(texts).split(","):
        try:
            found.append(float(part))
        except ValueError:
            invalid(name, part, "must be a number, or numbers with commas")
    return list(dict.fromkeys(found))


def contribution_bounds(texts: list[str] | None, default: list[int | str]) -> list[int | str]:
    """Contribution bounds: whole numbers or "max", repeated or comma-separated."""
    from theory import InvalidInput
    from theory._check import check_max_items_per_user, invalid

    if not texts:
        return default
    found: list[int | str] = []
    for part in ",".join(texts).split(","):
        if part.strip() == "max":
            found.append("max")
            continue
        try:
            found.append(int(check_max_items_per_user(float(part))))
        except (InvalidInput, ValueError):
            invalid("max_items_per_user", part, 'must be a whole number from 1 to 1e9, or "max"')
    return list(dict.fromkeys(found))
