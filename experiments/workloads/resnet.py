"""Residual networks for small images, of depth 6n + 2.

```python
model = cifar_resnet(depth=32, input_shape=(32, 32, 3), classes=10)
```

A convolution, three stages of n basic blocks with 16, 32 and 64 channels, the
mean over all positions and a linear layer: n = 1 is ResNet-8 with 78 k
parameters, n = 5 is ResNet-32 with 470 k.

Source: K. He, X. Zhang, S. Ren, J. Sun, "Deep Residual Learning for Image
Recognition", arXiv 1512.03385, section 4.2. Where the number of channels
changes, the shortcut is a 1x1 convolution (their option B).
"""

import keras

_WIDTHS = (16, 32, 64)


def cifar_resnet(depth, *, input_shape, classes, momentum=0.9):
  """Builds the network; its outputs are logits in float32.

  Args:
    depth: Number of layers with weights: 6n + 2 for an integer n >= 1.
    input_shape: Height, width and channels of an image.
    classes: Number of logits.
    momentum: Of the running means in batch normalization, per step. Runs of a
      few hundred steps need less than Keras' default of 0.99, which would
      still remember the start.

  Returns:
    A `keras.Model` from images, float32 of shape [batch, *input_shape], to
    logits of shape [batch, classes].

  Raises:
    ValueError: If `depth` is not 6n + 2.
  """
  blocks, remainder = divmod(depth - 2, 6)
  if blocks < 1 or remainder:
    raise ValueError(
      f"`depth` must be 6n + 2 for an integer n >= 1, got {depth}"
    )
  images = keras.Input(input_shape)
  x = _normalize(_convolve(images, _WIDTHS[0]), momentum)
  x = keras.layers.Activation("relu")(x)
  for stage, width in enumerate(_WIDTHS):
    for block in range(blocks):
      stride = 2 if stage > 0 and block == 0 else 1
      x = _basic_block(x, width, stride, momentum)
  x = keras.layers.GlobalAveragePooling2D()(x)
  # float32 also under a mixed-precision policy: the loss needs the range.
  logits = keras.layers.Dense(classes, dtype="float32")(x)
  return keras.Model(images, logits, name=f"resnet{depth}")


def _basic_block(x, width, stride, momentum):
  shortcut = x
  if x.shape[-1] != width:
    shortcut = _convolve(x, width, stride, kernel_size=1)
    shortcut = _normalize(shortcut, momentum)
  x = _normalize(_convolve(x, width, stride), momentum)
  x = keras.layers.Activation("relu")(x)
  x = _normalize(_convolve(x, width), momentum)
  return keras.layers.Activation("relu")(keras.layers.Add()([x, shortcut]))


def _convolve(x, width, stride=1, kernel_size=3):
  return keras.layers.Conv2D(
    width,
    kernel_size,
    strides=stride,
    padding="same",
    use_bias=False,
    kernel_initializer="he_normal",
  )(x)


def _normalize(x, momentum):
  return keras.layers.BatchNormalization(momentum=momentum)(x)
