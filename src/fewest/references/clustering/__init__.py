"""Groups of like rows: the space they lie in, maps of it, and score-based soft k-means."""

from fewest.references.clustering.embedding import ClusterSpace, Embedding, identity, pacmap, pca
from fewest.references.clustering.soft_kmeans import ScoreSoftKMeans

__all__ = ["ClusterSpace", "Embedding", "ScoreSoftKMeans", "identity", "pacmap", "pca"]
