"""fewest: the fewest facts that decide.

Exact, verified sparse explanations of a classifier's decisions (Sparse Explanation Value). `__init__.pyi` lists what is
here; each name is imported when it is asked for, so that `fewest --help` and the explorer do not wait for the rest.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
