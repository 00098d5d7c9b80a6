"""Single shot detection: a network that says of fixed boxes what is in them.

    objects            what is in an image, as one array
    boxes              the default boxes; overlap
    windows            parts of an image, and what is in them
    augmentation       expand, crop, mirror and recolour, boxes and all
    network            a residual network with outputs at several scales
    encoding           a box as an offset from a default box
    matching           which object each default box stands for
    loss               cross entropy of the hardest, distance of the offsets
    detections         the outputs, decoded, without what is found twice
    average_precision  COCO's

An image of 300x300 pixels has 8,732 default boxes. Boxes are (top, left,
bottom, right), as parts of the height and width of the image.

Source: W. Liu, D. Anguelov, D. Erhan, C. Szegedy, S. Reed, C.-Y. Fu, A. C.
Berg, "SSD: Single Shot MultiBox Detector", arXiv 1512.02325, in the form that
MLPerf's training benchmark gave to it (arXiv 1910.01500).
"""
