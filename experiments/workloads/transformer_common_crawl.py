"""A language model of passages from longer texts.

| preset | Transformer | data | vocabulary |
|---|---|---|---|
| `small` | 2 layers, 64 wide | 29,763 passages of written messages | 1,000 |

The stages: read a text, decode what it begins with into tokens, batch; nothing
is augmented. Two CPU cores reach the targets of `small` in minutes.
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


PRESETS = {"small": small}
