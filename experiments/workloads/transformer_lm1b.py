"""A language model of single sentences.

| preset | Transformer | data | vocabulary |
|---|---|---|---|
| `small` | 2 layers, 64 wide | 25,784 sentences of spoken addresses | 1,000 |

The stages: read a sentence, decode it into tokens, batch; nothing is augmented.
Two CPU cores reach the targets of `small` in minutes.
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


PRESETS = {"small": small}
