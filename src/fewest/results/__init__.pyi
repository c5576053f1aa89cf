from . import metrics as metrics

__all__ = ["metrics"]
