"""advise: measures a pipeline, and says where to echo and how much.

    advice = tfecho.advise(pipeline, train_step=train_step)
    print(advice)                                # a table and what follows
    train = pipeline.dataset(**advice.echo)      # as it recommends

The modules, in the order that numbers take: `probes` take times, `measuring`
says of what, `model` predicts from them, `choosing` and `remedies` draw the
conclusions, `table` shows them.
"""

from tfecho.advice.advising import Advice, advise

__all__ = ["Advice", "advise"]
