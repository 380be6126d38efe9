from types import SimpleNamespace

import pytest

import wgm_jax
from theory import InvalidInput
from wgm_jax import registry

MINE = registry.MechanismInfo(
    "mine", "set-union", False, "none", "A plug-in.", "nowhere", "wgm_jax.wgm:WeightedGaussian"
)


def point(name, load):
    return SimpleNamespace(name=name, load=load)


def broken():
    raise ImportError("no such module")


def test_public_names_exist_and_others_do_not():
    for name in wgm_jax.__all__:
        assert getattr(wgm_jax, name) is not None
    assert set(wgm_jax.__all__) == set(wgm_jax._HOME) == set(dir(wgm_jax))
    with pytest.raises(AttributeError, match="no attribute 'simulat'"):
        wgm_jax.simulat  # noqa: B018


def test_unknown_names_list_the_known_ones():
    with pytest.raises(InvalidInput, match="wgm") as error:
        registry.get("wmg")
    assert error.value.name == "mechanism"


def test_entry_points_are_mechanisms(monkeypatch):
    monkeypatch.setattr(registry, "entry_points", lambda group: [point("mine", lambda: MINE)])
    assert MINE in wgm_jax.mechanisms()
    assert repr(registry.get("mine")) == "WeightedGaussian()"


def test_a_broken_plug_in_is_reported_and_skipped(monkeypatch):
    points = [point("bad", broken), point("mine", lambda: MINE), point("odd", lambda: 3)]
    monkeypatch.setattr(registry, "entry_points", lambda group: points)
    with pytest.warns(UserWarning, match="'bad' cannot be loaded|'odd' is no"):
        names = [info.name for info in wgm_jax.mechanisms()]
    assert names[-1] == "mine" and "bad" not in names
