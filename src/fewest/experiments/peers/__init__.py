"""Counterfactual methods that users know, behind one interface: the same model, the same raw rows, the same re-scoring.

``peer.fit(decision, X_train, y_train).explain(X)`` gives `Counterfactuals`; `check_counterfactuals` checks the claim.
"""

from fewest.experiments.peers.base import Counterfactuals, FittedPeer, Peer, check_counterfactuals, turns_alone
from fewest.experiments.peers.dice import DiCE
from fewest.experiments.peers.searches import REVISE, GrowingSpheres, Wachter
from fewest.experiments.peers.shapley import shapley_values
from fewest.experiments.peers.space import PeerSpace
from fewest.experiments.peers.taking_values import NICE, TopSHAP

__all__ = [
    "NICE",
    "REVISE",
    "Counterfactuals",
    "DiCE",
    "FittedPeer",
    "GrowingSpheres",
    "Peer",
    "PeerSpace",
    "TopSHAP",
    "Wachter",
    "check_counterfactuals",
    "shapley_values",
    "turns_alone",
]
