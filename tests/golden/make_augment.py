#!/usr/bin/env python3
"""Writes augment.txt: an image and what augmentation makes of it, in fp64, by PyTorch (resizing) and Python's colorsys (hue);
brightness, contrast and saturation are torchvision's formulas written out.

    python3 tests/golden/make_augment.py > tests/golden/augment.txt      (needs PyTorch)

Each line: a name, then numbers; images channel by channel, row by row.
"""
import colorsys

import torch

CHANNELS, HEIGHT, WIDTH, WHITE = 3, 5, 7, 255.0


def show(name, values):
    print(name, *(repr(float(v)) for v in torch.as_tensor(values).flatten()))


def blend(a, b, factor):
    return (factor * a + (1 - factor) * b).clamp(0, WHITE)


def hue(image, shift):
    out = torch.empty_like(image)
    for y in range(HEIGHT):
        for x in range(WIDTH):
            h, s, v = colorsys.rgb_to_hsv(*(image[:, y, x] / WHITE).tolist())
            out[:, y, x] = torch.tensor(colorsys.hsv_to_rgb((h + shift) % 1.0, s, v), dtype=torch.float64) * WHITE
    return out


def main():
    torch.manual_seed(5)
    image = torch.randint(0, 256, (CHANNELS, HEIGHT, WIDTH)).double()
    image[:, 0, 0] = 128  # a grey pixel, a black one, two of pure colours
    image[:, 1, 1] = 0
    image[:, 2, 2] = torch.tensor([255, 0, 0])
    image[:, 3, 3] = torch.tensor([0, 255, 255])
    show("image", image)
    grey = (torch.tensor([0.2989, 0.587, 0.114], dtype=torch.float64)[:, None, None] * image).sum(0)
    for factor in (0.3, 1.7):
        show(f"brightness_{factor}", blend(image, torch.zeros_like(image), factor))
        show(f"contrast_{factor}", blend(image, grey.mean(), factor))
        show(f"saturation_{factor}", blend(image, grey, factor))
    for shift in (-0.5, -0.2, 0.35):
        show(f"hue_{shift}", hue(image, shift))
    for size in ((5, 3), (2, 7), (3, 4), (11, 9), (4, 16), (1, 1)):
        resized = torch.nn.functional.interpolate(image[None], size, mode="bilinear", align_corners=False, antialias=True)
        show("resized_{}_{}".format(*size), resized)


if __name__ == "__main__":
    main()
