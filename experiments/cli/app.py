"""The typer application, and the one place where errors become one line and an exit status."""

from __future__ import annotations

import sys

import typer

from experiments.cli import _calibrate, _claims, _data, _simulate, _sweep, _verify
from theory import InvalidInput

app = typer.Typer(
    name="wgm",
    help="Do the theorems on missing mass hold on your data? Bounds, simulations, verdicts.",
    epilog="Exit status: 0 as claimed, 1 a claim fails, 2 bad input, 3 undecided within the cap.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for module in (_verify, _simulate, _sweep, _data, _calibrate, _claims):
    module.register(app)

# Arguments whose option has another name.
_OPTIONS = {
    "num_trials": "trials",
    "user": "user-column",
    "item": "item-column",
    "text": "text-column",
    "DATA": "DATA",
}


def describe(error: InvalidInput) -> str:
    """`--delta 1.5: delta must be in (0, 0.5]`."""
    option = _OPTIONS.get(error.name, error.name.replace("_", "-"))
    flag = option if option == "DATA" else f"--{option}"
    return f"{flag} {error.value}: {option.replace('-', '_')} {error.accepted}".replace("\n", " ")


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; never a traceback for bad input."""
    command = typer.main.get_command(app)
    usage_error = typer.BadParameter.__mro__[1]
    try:
        status = command.main(arguments, prog_name="wgm", standalone_mode=False)
    except InvalidInput as error:
        status = _complain(describe(error))
    except usage_error as error:
        status = _complain(error.format_message())  # pyright: ignore[reportAttributeAccessIssue]
    except typer.Abort:
        status = _complain("interrupted")
    except BrokenPipeError:
        sys.stderr.close()
        status = 0
    except _bad_input() as error:
        status = _complain(str(error))
    sys.exit(status if isinstance(status, int) else 0)


def _bad_input() -> tuple[type[Exception], ...]:
    """Errors about files, known only once the loaders were imported."""
    loading = sys.modules.get("experiments.loading")
    return (loading.DataError,) if loading is not None else ()


def _complain(message: str) -> int:
    sys.stderr.write(f"wgm: {' '.join(message.split())}\n")
    return 2
