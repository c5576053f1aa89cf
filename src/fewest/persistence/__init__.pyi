from .explainers import load, save
from .models import load_model

__all__ = ["load", "load_model", "save"]
