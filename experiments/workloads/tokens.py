"""From text to what a language model learns: tokens, and what follows them.

```python
vocabulary = Vocabulary("lm1b-32000.model", 32_000, sentences)
decode = vocabulary.decoder(length=128)
inputs, labels = decode("Prices are too high.")  # two int32 tensors
```

A text becomes `BEGIN`, its tokens and `END`, cut off or filled up with
`PADDING`; the labels are the inputs one token later.

Source: T. Kudo, J. Richardson, "SentencePiece", arXiv 1808.06226, with tokens
made by merging pairs: R. Sennrich, B. Haddow, A. Birch, "Neural Machine
Translation of Rare Words with Subword Units", arXiv 1508.07909.
"""

import functools
import io
import os
import pathlib

import numpy as np
import sentencepiece
import tensorflow as tf

PADDING, UNKNOWN, BEGIN, END = range(4)


class Vocabulary:
  """So many tokens, learned from text once, and kept in a file.

  Attributes:
    path: The file, a SentencePiece model.
    size: Number of tokens, the four special ones included.
  """

  def __init__(self, path, size, texts):
    """Says where a vocabulary is; it is learned when it is first needed.

    Args:
      path: Of a file that is there, or will be.
      size: Number of tokens.
      texts: Called if there is no file yet; returns an iterable of str.
    """
    self.path = pathlib.Path(path)
    self.size = size
    self._texts = texts

  def decoder(self, length):
    """Returns a function from a text to an example.

    Args:
      length: Tokens in a sequence.

    Returns:
      A function that takes a text, a scalar string, and returns a pair of
      inputs and labels, both int32 of shape [length]. It has no state, so that
      a pipeline with it can be checkpointed.
    """

    def encode(text):
      text = np.array(text, object).item()  # an array, outside of graphs
      pieces = self._processor.encode(text.decode(errors="replace"))
      ids = [BEGIN, *pieces, END][: length + 1]
      return np.array(ids + [PADDING] * (length + 1 - len(ids)), np.int32)

    def decode(text):
      text = tf.convert_to_tensor(text, tf.string)
      ids = tf.numpy_function(encode, [text], tf.int32, stateful=False)
      ids = tf.ensure_shape(ids, [length + 1])
      return ids[:-1], ids[1:]

    return decode

  @functools.cached_property
  def _processor(self):
    if not self.path.exists():
      self._learn()
    return sentencepiece.SentencePieceProcessor(model_file=str(self.path))

  def _learn(self):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
      sentence_iterator=iter(self._texts()),
      model_writer=model,
      model_type="bpe",
      vocab_size=self.size,
      pad_id=PADDING,
      unk_id=UNKNOWN,
      bos_id=BEGIN,
      eos_id=END,
      minloglevel=2,  # errors
    )
    # Another process may be learning the same: what appears is whole.
    self.path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = self.path.with_suffix(f".{os.getpid()}.tmp")
    unfinished.write_bytes(model.getvalue())
    unfinished.replace(self.path)
