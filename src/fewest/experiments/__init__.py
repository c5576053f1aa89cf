"""The paper's tables and figures, the methods it is compared with, and the benchmarks."""
