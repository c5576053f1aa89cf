"""What a model file may hold: a fixed list of types, each with the one way in which it may be built.

skops trusts every scikit-learn estimator by itself. Some of those open files or index memory by numbers from the file,
so here they are named by package, and everything that is not named is refused.
"""

from __future__ import annotations

PACKAGES = (
    "sklearn._loss", "sklearn.calibration", "sklearn.compose", "sklearn.decomposition", "sklearn.discriminant_analysis",
    "sklearn.dummy", "sklearn.ensemble", "sklearn.feature_selection", "sklearn.frozen", "sklearn.impute",
    "sklearn.isotonic", "sklearn.kernel_approximation", "sklearn.linear_model", "sklearn.model_selection",
    "sklearn.multiclass", "sklearn.naive_bayes", "sklearn.neural_network", "sklearn.pipeline", "sklearn.preprocessing",
    "sklearn.svm", "sklearn.tree",
)  # fmt: skip
# Outlier detectors and nearest neighbours keep training rows and walk trees that are not checked here.
NOT_THESE = frozenset({"sklearn.ensemble._iforest.IsolationForest", "sklearn.impute._knn.KNNImputer"})

# Objects beyond the estimators that skops knows.
OBJECTS = """
fewest.engine.structure.base.Ensemble fewest.engine.structure.base.Reading
fewest.engine.structure.boosted_lightgbm._Values fewest.engine.structure.boosted_xgboost._Codes
fewest.engine.structure.hist_gradient._Prepared
fewest.models.training.leaf_sum.Guarded fewest.models.training.leaf_sum.LeafSumClassifier
lightgbm.basic.Booster lightgbm.sklearn.LGBMClassifier
scipy.interpolate._bsplines.BSpline
sklearn.calibration._CalibratedClassifier sklearn.calibration._SigmoidCalibration
sklearn.compose._column_transformer.make_column_selector
sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor
sklearn.neural_network._stochastic_optimizers.AdamOptimizer sklearn.neural_network._stochastic_optimizers.SGDOptimizer
xgboost.core.Booster xgboost.sklearn.XGBClassifier xgboost.sklearn.XGBRFClassifier
"""
FUNCTIONS = """
fewest.engine.structure.base.as_float32_values fewest.engine.structure.base.as_floats
scipy._lib.array_api_compat.numpy._aliases.asarray
"""
SCALARS = frozenset(
    f"numpy.{kind}" for kind in (
        "bool", "bool_", "str_", "bytes_", "datetime64", "timedelta64", "float16", "float32", "float64", "int8",
        "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    )
)  # fmt: skip
PLAIN = frozenset(f"builtins.{kind}" for kind in ("str", "int", "float", "bool", "list", "tuple", "dict", "set"))

# skops's way of building a thing -> what may be built in that way. A type is safe in one of them and not in another:
# a booster whose state is restored was checked, one whose constructor is called would open a file.
BUILT_BY: dict[str, frozenset[str]] = {
    "BytearrayNode": frozenset({"builtins.bytearray"}),
    "BytesNode": frozenset({"builtins.bytes"}),
    "DTypeNode": frozenset({"numpy.dtype"}),
    "DefaultDictNode": frozenset({"collections.defaultdict"}),
    "DictNode": frozenset({"builtins.dict", "collections.OrderedDict", "sklearn.utils._bunch.Bunch"}),
    "FunctionNode": frozenset(FUNCTIONS.split()),
    "JsonNode": frozenset({"builtins.str"}),
    "ListNode": frozenset({"builtins.list"}),
    "LossNode": frozenset(),
    "NdArrayNode": SCALARS | {"numpy.ndarray"},
    "ObjectNode": frozenset(OBJECTS.split()),
    "SetNode": frozenset({"builtins.set"}),
    "SliceNode": frozenset({"builtins.slice"}),
    "TreeNode": frozenset({"sklearn.tree._tree.Tree"}),
    "TupleNode": frozenset({"builtins.tuple"}),
    "TypeNode": PLAIN | SCALARS | {"collections.OrderedDict"},
}
# Left to skops's own list, inside the packages above.
BY_PACKAGE = {"ObjectNode": PACKAGES, "LossNode": ("sklearn._loss",), "FunctionNode": ("numpy", "scipy.special")}


def is_listed(loader: str, kind: str) -> bool:
    """Whether a type may be built in this way, as far as the fixed list goes."""
    if kind in NOT_THESE or loader not in BUILT_BY:
        return False
    if kind in BUILT_BY[loader]:
        return True
    return any(kind.startswith(f"{package}.") for package in BY_PACKAGE.get(loader, ()))


def trusted() -> list[str]:
    """The types that skops may trust; which of them may be built how, `is_listed` has decided before."""
    return sorted(set().union(*BUILT_BY.values()))
