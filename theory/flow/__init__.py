"""Bernoulli flow selection: a set union accounted for as a set, with its certificate."""

from theory.flow.accountant import adaptive_delta, majorant
from theory.flow.calibration import FlowCalibration, calibrate_flow
from theory.flow.certificate import FlowCertificate
from theory.flow.fields import FlowFields
from theory.flow.gaussian_law import SetOnlyWeights, gaussian_step_map, set_only_weights
from theory.flow.group import FlowGroup
from theory.flow.pairs import OneStepMap, one_item_delta
from theory.flow.renyi import RenyiRegion
from theory.flow.state import FlowComponent, FlowState
from theory.flow.two_rounds import TwoRoundFlow
from theory.flow.two_rounds_calibration import calibrate_two_rounds

__all__ = [
    "FlowCalibration",
    "FlowCertificate",
    "FlowComponent",
    "FlowFields",
    "FlowGroup",
    "FlowState",
    "OneStepMap",
    "RenyiRegion",
    "SetOnlyWeights",
    "TwoRoundFlow",
    "adaptive_delta",
    "calibrate_flow",
    "calibrate_two_rounds",
    "gaussian_step_map",
    "majorant",
    "one_item_delta",
    "set_only_weights",
]
