from . import rashomon as rashomon
from . import training as training
from . import trees as trees

__all__ = ["rashomon", "training", "trees"]
