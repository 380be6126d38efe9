"""The command line as a test sees it."""

import json

import pytest

from experiments.cli import main


@pytest.fixture
def wgm(capsys):
    """Run `wgm`: status, stdout, stderr."""

    def run(*arguments: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stopped:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return int(stopped.value.code or 0), captured.out, captured.err

    return run


@pytest.fixture
def told(wgm):
    """Run `wgm ... --json` and return the one object on stdout."""

    def run(*arguments: object) -> dict:
        status, out, err = wgm(*arguments, "--json")
        assert status == 0, err
        assert out.count("\n") == 1
        return json.loads(out)

    return run
