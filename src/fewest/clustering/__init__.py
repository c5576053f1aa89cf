"""Groups of like rows: the space they lie in, maps of it, and score-based soft k-means."""

from fewest.clustering.embedding import Embedding, identity, pacmap, pca
from fewest.clustering.soft_kmeans import ScoreSoftKMeans
from fewest.clustering.space import Space

__all__ = ["Embedding", "ScoreSoftKMeans", "Space", "identity", "pacmap", "pca"]
