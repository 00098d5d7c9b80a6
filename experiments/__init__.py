"""What echoing is worth on real workloads, as scripts with absl flags.

Run from a checkout; nothing in here is part of the installed package:

```sh
python -m experiments.compare --help
```
"""

import os

# Read when TensorFlow is imported: its start-up notes would bury the progress.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
