"""The typer application, and the one place where errors become one line and an exit status."""

from __future__ import annotations

import os
import re
import sys
from typing import Annotated, Any

import typer

from experiments.cache import cache_folder
from experiments.cli import (
    _audit,
    _bench,
    _calibrate,
    _claims,
    _compare,
    _data,
    _errata,
    _figure,
    _hitting_set,
    _plan,
    _report,
    _simulate,
    _sweep,
    _topk,
    _verify,
)
from experiments.cli._help import App, HelpGroup

_EPILOG = """
Exit status: 0 done, or as claimed; 1 a claim, an erratum or a cell of a sweep fails, or a mechanism
that claims to be private is accused; 2 bad input; 3 undecided within the trials allowed; 130
interrupted.

Results go to stdout, progress and hints to stderr; --json prints one object for scripts. Colours
only on a terminal, and not with NO_COLOR set. wgm --install-completion lets the shell complete
commands and options.
"""

app = App(
    name="wgm",
    help="Do the theorems on missing mass hold on your data? Bounds, simulations, verdicts.",
    epilog=_EPILOG,
    cls=HelpGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for module in (
    _verify,
    _report,
    _simulate,
    _sweep,
    _data,
    _plan,
    _compare,
    _topk,
    _hitting_set,
    _figure,
    _audit,
    _bench,
    _calibrate,
    _claims,
    _errata,
):
    module.register(app)

# Options with another name than the Python argument they set.
_OPTIONS = {
    "num_trials": "trials",
    "user": "user-column",
    "item": "item-column",
    "text": "text-column",
}
_BAD_INPUT = 2
_MOST_NAMES = 40
_INTERRUPTED = 130


def _show_version(asked: bool) -> bool:
    if asked:
        from importlib.metadata import version

        typer.echo(f"wgm {version('wgm-jax')}")
        raise typer.Exit
    return asked


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    pass


def describe(error: Any) -> str:
    """An `InvalidInput` as `--delta 1.5: delta must be in (0, 0.5]`."""
    name = str(error.name)
    option = _OPTIONS.get(name, name.replace("_", "-"))
    value = error.value
    # A number as it was typed: 2, not 2.0.
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 1e15
    value = str(int(value)) if whole else str(value)
    accepted = _shorter(error.accepted, value)
    value = value if len(value) <= 80 else value[:77] + "..."
    if option.isupper():  # an argument, not an option
        return f"{option}{f' {value}:' if value else ''} {accepted}"
    return f"--{option} {value}: {option.replace('-', '_')} {accepted}"


def _shorter(accepted: str, value: str) -> str:
    """A long list of names as its first ones, and the one that was perhaps meant."""
    start, found, listed = accepted.partition("one of ")
    names = listed.split(", ")
    if not found or len(names) <= _MOST_NAMES:
        return accepted
    import difflib

    near = difflib.get_close_matches(value, names, n=1)
    meant = f"; did you mean {near[0]}?" if near else ""
    return f"{start}one of {', '.join(names[:4])}, ... ({len(names)} in all){meant}"


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; never a traceback for bad input."""
    # Names and symbols that an old terminal lacks must not stop the results.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # pyright: ignore[reportAttributeAccessIssue]
    _keep_compiled_programs()
    command = typer.main.get_command(app)
    status: Any = 0
    try:
        status = command.main(arguments, prog_name="wgm", standalone_mode=False)
        sys.stdout.flush()
        if status == _INTERRUPTED:  # typer has turned the interrupt into a status
            _complain("interrupted")
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (typer.Abort, KeyboardInterrupt):
        status = _complain("interrupted", _INTERRUPTED)
    except MemoryError as error:
        status = _complain(f"not enough memory ({error})" if str(error) else "not enough memory")
    except Exception as error:
        message = _message(error, sys.argv[1:] if arguments is None else arguments)
        if message is None:
            raise
        # Without a command the help has been shown, and there is nothing to add.
        status = _complain(message) if message else _BAD_INPUT
    sys.exit(status if isinstance(status, int) else 0)


def _keep_compiled_programs() -> None:
    """Let JAX find the programs of earlier runs; its own variables overrule this."""
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(cache_folder("programs")))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")


def _message(error: Exception, arguments: list[str]) -> str | None:
    """One line about bad input; None for an error that is ours."""
    # Looked up where they are loaded already, so that `wgm --help` need not import them.
    checks, loading = (sys.modules.get(n) for n in ("theory._check", "experiments.loading.errors"))
    if checks is not None and isinstance(error, checks.InvalidInput):
        return describe(error)
    if loading is not None and isinstance(error, loading.DataError):
        return str(error)
    if isinstance(error, OSError):
        return f"{error.filename or 'output'}: {(error.strerror or str(error)).lower()}"
    usage_error = typer.BadParameter.__mro__[1]
    if type(error).__name__ == "NoArgsIsHelpError":
        sys.stderr.write(f"{error.format_message()}\n")  # pyright: ignore[reportAttributeAccessIssue]
        return ""
    if isinstance(error, usage_error):
        return _usage(error.format_message(), arguments)  # pyright: ignore[reportAttributeAccessIssue]
    return None


def _usage(message: str, arguments: list[str]) -> str:
    """Messages of the option parser in the form of all others."""
    # Such as: Invalid value for '--trials': Input should be a valid number, ...
    bad = re.match(r"Invalid value for '(--[\w-]+)[^:]*: .*valid (number|float|int)", message)
    if bad:
        kind = "a whole number" if bad[2] == "int" else "a number"
        value = _value_of(bad[1], arguments)
        return f"{bad[1]} {value}: {bad[1][2:].replace('-', '_')} must be {kind}"
    missing = re.match(r"Missing (?:option|argument) '([^']*)'", message)
    if missing:
        return f"{missing[1]} must be given; it has no default"
    return message


def _value_of(flag: str, arguments: list[str]) -> str:
    """What was typed as the value of an option: its last occurrence counts."""
    for place in range(len(arguments) - 1, -1, -1):
        if arguments[place].startswith(f"{flag}="):
            return arguments[place].split("=", 1)[1]
        if arguments[place] == flag:
            return "".join(arguments[place + 1 : place + 2])
    return ""


def _complain(message: str, status: int = _BAD_INPUT) -> int:
    sys.stderr.write(f"wgm: {' '.join(message.split())}\n")
    return status
