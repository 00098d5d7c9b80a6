"""The C++ tf.data ops: built for the TensorFlow that is installed, and loaded.

    $ python -m tfecho.native build      # once, optional: `load` does it too

    library = tfecho.native.load()       # builds if there is none yet
    library.ops                          # one Python function for every op

Importing this never compiles anything. `TFECHO_CACHE_DIR` says where libraries
are kept, `TFECHO_LIBRARY` names one that was built elsewhere, `CXX` names the
compiler.
"""

from tfecho.native.errors import NativeUnavailableError
from tfecho.native.loading import Library, available, load, try_load

__all__ = [
  "Library",
  "NativeUnavailableError",
  "available",
  "load",
  "try_load",
]
