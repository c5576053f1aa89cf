"""What holds for all tests and doctests, and for the processes they start."""

import os

# Threads of OpenMP spin while they wait. Where more processes run than there are cores, four small boosting fits took
# 5 to 10 CPU seconds that take 0.5 with threads that wait passively; as many of them compute the same. The library
# reads this when it is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
