"""Counterfactual methods that users know, behind one interface: the same model, the same raw rows, the same re-scoring.

``peer.fit(decision, X_train, y_train).explain(X)`` gives `Counterfactuals`; `check_counterfactuals` checks the claim.
"""

from fewest.peers.base import Counterfactuals, FittedPeer, Peer, check_counterfactuals, turns_alone
from fewest.peers.dice import DiCE
from fewest.peers.nice import NICE
from fewest.peers.revise import REVISE
from fewest.peers.shapley import shapley_values
from fewest.peers.space import Space
from fewest.peers.spheres import GrowingSpheres
from fewest.peers.top_shap import TopSHAP
from fewest.peers.wachter import Wachter

__all__ = [
    "NICE",
    "REVISE",
    "Counterfactuals",
    "DiCE",
    "FittedPeer",
    "GrowingSpheres",
    "Peer",
    "Space",
    "TopSHAP",
    "Wachter",
    "check_counterfactuals",
    "shapley_values",
    "turns_alone",
]
