"""Data echoing for tf.data: items already in memory are used again.

    read -> decode -> augment -> batch -> train
         ^         ^          ^        ^
         one echo, where what stands upstream of it costs most and a repeat
         is still worth most: the earlier, the fresher a repeat looks

Synopsis:

    dataset = dataset.map(decode, num_parallel_calls=tf.data.AUTOTUNE)
    dataset = dataset.apply(tfecho.echo(4))
    dataset = dataset.apply(tfecho.shuffle_after_echo(1024, min_distance=256))
    dataset = dataset.map(augment, num_parallel_calls=tf.data.AUTOTUNE)
    dataset = dataset.batch(256).prefetch(tf.data.AUTOTUNE)

or, with every stage in its place, `tfecho.Pipeline`.

Source: Choi, Passos, Shallue, Dahl, "Faster Neural Network Training with Data
Echoing", arXiv 1907.05550.
"""

from tfecho import images, native, remote
from tfecho.advice import Advice, advise
from tfecho.echoing import echo
from tfecho.factors import factor_variable
from tfecho.pipeline import Pipeline
from tfecho.shuffling import shuffle_after_echo
from tfecho.stalling import echo_on_stall
from tfecho.stats import Stats, monitor

__version__ = "0.1.0"

__all__ = [
  "Advice",
  "Pipeline",
  "Stats",
  "advise",
  "echo",
  "echo_on_stall",
  "factor_variable",
  "images",
  "monitor",
  "native",
  "remote",
  "shuffle_after_echo",
]
