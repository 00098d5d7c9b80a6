"""A language model of passages from longer texts.

| preset | Transformer | data | vocabulary |
|---|---|---|---|
| `small` | 2 layers, 64 wide | 29,763 passages of written messages | 1,000 |
| `paper` | 6 layers, 512 wide | C4, 365 million pages of the web | 32,000 |

The stages: read a text, decode what it begins with into tokens, batch; nothing
is augmented. C4 is Common Crawl, cleaned: C. Raffel et al., "Exploring the
Limits of Transfer Learning with a Unified Text-to-Text Transformer", arXiv
1910.10683. For the rest see `transformer_lm1b`.
"""

from experiments.data import addresses
from experiments.workloads import corpora
from experiments.workloads.language import SMALL, language_model
from tfecho.training import schedules

_NAME = "transformer_common_crawl"


def small():
  """A Transformer of 164 k weights on what presidents wrote up to 1912."""
  train, validation = addresses.written()
  corpus = corpora.in_memory(
    f"written-{addresses.version()}",
    train,
    validation,
    validation_texts=512,
    vocabulary=1_000,
  )
  return language_model(
    corpus,
    name=_NAME,
    preset="small",
    description="Transformer of 2 layers on passages of written messages",
    sizes=SMALL,
    sequence_length=64,
    batch_size=16,
    learning_rate=schedules.cosine(0.003, warmup="0.1ep"),
    length="4ep",
    targets=(4.4, 4.1, 3.9, 3.8, 3.7),
    max_steps=12_000,
    evaluation_steps=50,
  )


def paper(
  *, vocabulary=32_000, sequence_length=256, batch_size=128, sizes=None
):
  """The base Transformer, 35 million weights, on English pages of C4.

  Args:
    vocabulary: Number of tokens.
    sequence_length: Tokens that a page is cut off behind.
    batch_size: Pages in a batch.
    sizes: Dict of arguments of `transformer`, where not those of the paper.

  Raises:
    ValueError: If C4 is not on this machine.
  """
  corpus = corpora.on_disk(
    "c4/en",
    validation_split="validation",
    validation_texts=5_000,
    vocabulary=vocabulary,
  )
  return language_model(
    corpus,
    name=_NAME,
    preset="paper",
    description="Transformer, base size, on English pages of Common Crawl",
    sizes=sizes or {},
    sequence_length=sequence_length,
    batch_size=batch_size,
    shuffle_buffer=65_536,  # The files were shuffled when they were prepared.
    learning_rate=schedules.cosine(0.001, warmup="4_000ba"),
    length="15_000_000sp",
    targets=(5.0, 4.5, 4.2, 4.0, 3.9),
    max_steps=400_000,
    evaluation_steps=1_000,
  )


PRESETS = {"small": small, "paper": paper}
