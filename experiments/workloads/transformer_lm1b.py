"""A language model of single sentences.

| preset | Transformer | data | vocabulary |
|---|---|---|---|
| `small` | 2 layers, 64 wide | 25,784 sentences of spoken addresses | 1,000 |
| `paper` | 6 layers, 512 wide | LM1B, 30 million sentences of news | 32,000 |

The stages: read a sentence, decode it into tokens, batch; nothing is augmented.
Two CPU cores reach the targets of `small` in minutes. The last target of
`paper` is that of the paper on data echoing (arXiv 1907.05550), to our
knowledge; network, warm-up and tokens in a batch are those of "Attention Is All
You Need" (arXiv 1706.03762).
"""

from experiments.data import addresses
from experiments.workloads import corpora
from experiments.workloads.language import SMALL, language_model
from tfecho.training import schedules

_NAME = "transformer_lm1b"


def small():
  """A Transformer of 164 k weights on what presidents said since 1913."""
  train, validation = addresses.spoken()
  corpus = corpora.in_memory(
    f"spoken-{addresses.version()}",
    train,
    validation,
    validation_texts=512,
    vocabulary=1_000,
  )
  return language_model(
    corpus,
    name=_NAME,
    preset="small",
    description="Transformer of 2 layers on sentences of spoken addresses",
    sizes=SMALL,
    sequence_length=64,
    batch_size=16,
    learning_rate=schedules.cosine(0.003, warmup="0.1ep"),
    length="4ep",
    targets=(4.6, 4.3, 4.1, 4.0, 3.9),
    max_steps=12_000,
    evaluation_steps=50,
  )


def paper(
  *, vocabulary=32_000, sequence_length=128, batch_size=256, sizes=None
):
  """The base Transformer, 35 million weights, on LM1B.

  Args:
    vocabulary: Number of tokens.
    sequence_length: Tokens of a sentence; few sentences have more.
    batch_size: Sentences in a batch.
    sizes: Dict of arguments of `transformer`, where not those of the paper.

  Raises:
    ValueError: If LM1B is not on this machine.
  """
  corpus = corpora.on_disk(
    "lm1b",
    validation_split="test",
    validation_texts=10_000,
    vocabulary=vocabulary,
  )
  return language_model(
    corpus,
    name=_NAME,
    preset="paper",
    description="Transformer, base size, on LM1B",
    sizes=sizes or {},
    sequence_length=sequence_length,
    batch_size=batch_size,
    shuffle_buffer=65_536,  # The files were shuffled when they were prepared.
    learning_rate=schedules.cosine(0.001, warmup="4_000ba"),
    length="1ep",
    targets=(5.0, 4.5, 4.2, 4.0, 3.9),
    max_steps=400_000,
    evaluation_steps=1_000,
  )


PRESETS = {"small": small, "paper": paper}
