"""Residual networks: those for small images, and those with bottlenecks.

```python
model = cifar_resnet(depth=32, input_shape=(32, 32, 3), classes=10)
model = patch_resnet(
  8, patch_size=16, pixel_stride=4, input_shape=(128, 128, 3), classes=10
)
model = bottleneck_resnet((3, 4, 6, 3), input_shape=(224, 224, 3), classes=1000)
```

The first is a convolution, three stages of n basic blocks with 16, 32 and 64
channels, the mean over all positions and a linear layer: n = 1 is ResNet-8 with
78 k parameters, n = 5 is ResNet-32 with 464 k. The second is the first behind
patches of larger images. The third is ResNet-50 with 25.6 M.

Source: K. He, X. Zhang, S. Ren, J. Sun, "Deep Residual Learning for Image
Recognition", arXiv 1512.03385, sections 4.1 and 4.2.
"""

import keras

_CIFAR_WIDTHS = (16, 32, 64)

SHORTCUTS = ("padding", "projection")


def cifar_resnet(
  depth, *, input_shape, classes, shortcuts="projection", momentum=0.9
):
  """Builds a network for small images; its outputs are logits in float32.

  Args:
    depth: Number of layers with weights: 6n + 2 for an integer n >= 1.
    input_shape: Height, width and channels of an image.
    classes: Number of logits.
    shortcuts: What they are where the number of channels changes: "padding"
      with zeros, which has no parameters and is what the paper does here (its
      option A), or a "projection", a 1x1 convolution (its option B).
    momentum: Of the running means in batch normalization, per step. Runs of a
      few hundred steps need less than Keras' default of 0.99, which would
      still remember the start.

  Returns:
    A `keras.Model` from images, float32 of shape [batch, *input_shape], to
    logits of shape [batch, classes].

  Raises:
    ValueError: If `depth` is not 6n + 2, or there are no such shortcuts.
  """
  blocks, remainder = divmod(depth - 2, 6)
  if blocks < 1 or remainder:
    raise ValueError(
      f"`depth` must be 6n + 2 for an integer n >= 1, got {depth}"
    )
  if shortcuts not in SHORTCUTS:
    raise ValueError(
      f"`shortcuts` must be one of {', '.join(SHORTCUTS)}, got {shortcuts!r}"
    )
  images = keras.Input(input_shape)
  x = _normalize(_convolve(images, _CIFAR_WIDTHS[0]), momentum)
  x = keras.layers.Activation("relu")(x)
  for stage, width in enumerate(_CIFAR_WIDTHS):
    for block in range(blocks):
      stride = 2 if stage > 0 and block == 0 else 1
      x = _basic_block(x, width, stride, shortcuts, momentum)
  return _classifier(images, x, classes, name=f"resnet{depth}")


def patch_resnet(
  depth, *, patch_size, pixel_stride, input_shape, classes, momentum=0.9
):
  """Builds a network for small images on patches of large ones.

  A patch becomes a position with as many channels as the first stage has, by a
  linear layer, as in vision transformers (Dosovitskiy et al., arXiv
  2010.11929), that looks at some of its pixels: as little work as an
  accelerator would make of it, for images that are dear to prepare.

  Args:
    depth: As for `cifar_resnet`, and so are `classes` and `momentum`.
    patch_size: Height and width of a patch, in pixels, which divide those of
      the image.
    pixel_stride: Pixels from one that is looked at to the next one; it divides
      `patch_size`.
    input_shape: Height, width and channels of an image.
    classes: Number of logits.
    momentum: Of the running means in batch normalization.

  Returns:
    A `keras.Model` from images, uint8 of shape [batch, *input_shape], to logits
    of shape [batch, classes].
  """
  images = keras.Input(input_shape, dtype="uint8")
  x = images[:, ::pixel_stride, ::pixel_stride]
  x = keras.layers.Rescaling(1 / 127.5, offset=-1)(x)
  side = patch_size // pixel_stride
  x = _convolve(x, _CIFAR_WIDTHS[0], stride=side, kernel_size=side)
  network = cifar_resnet(
    depth, input_shape=tuple(x.shape[1:]), classes=classes, momentum=momentum
  )
  return keras.Model(images, network(x), name=f"patch_resnet{depth}")


def bottleneck_resnet(
  blocks, *, input_shape, classes, width=64, momentum=0.9
):
  """Builds a network of bottleneck blocks; its outputs are logits in float32.

  Unlike the one in `keras.applications` it halves the image in the 3x3
  convolutions, not before, has no biases beside batch normalization, and every
  block begins as the identity: what ResNet-50 needs to reach 76 %, as reported
  since (Goyal et al., arXiv 1706.02677, section 5.1).

  Args:
    blocks: Number of blocks in each stage; (3, 4, 6, 3) is ResNet-50. The image
      has half the height and width in each stage, and twice the channels.
    input_shape: Height, width and channels of an image.
    classes: Number of logits.
    width: Channels inside of the blocks in the first stage.
    momentum: As for `cifar_resnet`.

  Returns:
    A `keras.Model` from images, uint8 of shape [batch, *input_shape], to logits
    of shape [batch, classes].
  """
  images = keras.Input(input_shape, dtype="uint8")
  x = _stem(images, width, momentum)
  for stage, count in enumerate(blocks):
    for block in range(count):
      stride = 2 if stage > 0 and block == 0 else 1
      x = _bottleneck_block(x, width * 2**stage, stride, momentum)
  depth = 3 * sum(blocks) + 2
  return _classifier(images, x, classes, name=f"resnet{depth}")


def basic_trunk(images, blocks, *, strides, width=64, momentum=0.9):
  """Returns the last feature map of basic blocks, for what is built on it.

  Three stages of (3, 4, 6) blocks are ResNet-34 without its fourth.

  Args:
    images: Keras tensor of uint8, of shape [batch, height, width, channels].
    blocks: Number of blocks in each stage. The first one gets the image at a
      quarter of its height and width.
    strides: Of the first block in each stage.
    width: Channels of the first stage; each has twice those of the last.
    momentum: As for `cifar_resnet`.
  """
  x = _stem(images, width, momentum)
  for stage, (count, stride) in enumerate(zip(blocks, strides)):
    for block in range(count):
      x = _basic_block(
        x,
        width * 2**stage,
        stride if block == 0 else 1,
        shortcuts="projection",
        momentum=momentum,
      )
  return x


def _stem(images, width, momentum):
  x = keras.layers.Rescaling(1 / 127.5, offset=-1)(images)
  x = _normalize(_convolve(x, width, stride=2, kernel_size=7), momentum)
  x = keras.layers.Activation("relu")(x)
  return keras.layers.MaxPooling2D(3, strides=2, padding="same")(x)


def _classifier(images, x, classes, name):
  x = keras.layers.GlobalAveragePooling2D()(x)
  # float32 also under a mixed-precision policy: the loss needs the range.
  logits = keras.layers.Dense(classes, dtype="float32")(x)
  return keras.Model(images, logits, name=name)


def _basic_block(x, width, stride, shortcuts, momentum):
  shortcut = x
  if x.shape[-1] != width:
    if shortcuts == "padding":
      shortcut = pad_channels(x, stride)
    else:
      shortcut = _project(x, width, stride, momentum)
  x = _normalize(_convolve(x, width, stride), momentum)
  x = keras.layers.Activation("relu")(x)
  x = _normalize(_convolve(x, width), momentum)
  return keras.layers.Activation("relu")(keras.layers.Add()([x, shortcut]))


def _bottleneck_block(x, width, stride, momentum):
  shortcut = x
  if x.shape[-1] != 4 * width:
    shortcut = _project(x, 4 * width, stride, momentum)
  x = _normalize(_convolve(x, width, kernel_size=1), momentum)
  x = keras.layers.Activation("relu")(x)
  x = _normalize(_convolve(x, width, stride), momentum)
  x = keras.layers.Activation("relu")(x)
  x = _convolve(x, 4 * width, kernel_size=1)
  # Nothing is added to the shortcut at first.
  x = _normalize(x, momentum, gamma_initializer="zeros")
  return keras.layers.Activation("relu")(keras.layers.Add()([x, shortcut]))


def _project(x, width, stride, momentum):
  return _normalize(_convolve(x, width, stride, kernel_size=1), momentum)


def pad_channels(x, stride):
  """Returns every `stride`-th position, beside as many channels of zeros."""
  x = keras.layers.MaxPooling2D(1, strides=stride)(x)
  zeros = keras.layers.Rescaling(0.0)(x)
  return keras.layers.Concatenate()([x, zeros])


def _convolve(x, width, stride=1, kernel_size=3):
  return keras.layers.Conv2D(
    width,
    kernel_size,
    strides=stride,
    padding="same",
    use_bias=False,
    kernel_initializer="he_normal",
  )(x)


def _normalize(x, momentum, **options):
  return keras.layers.BatchNormalization(momentum=momentum, **options)(x)
