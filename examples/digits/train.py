"""Trains the digits network on the training part of digits.bin and writes weights.bin and weights.json.

    .venv/bin/python train.py

Seeded, numpy only, about 20 seconds on one core. The held-back part is looked at once, after the last step.
weights.bin holds the arrays of weights.json one after the other, little-endian float32, row-major.
"""
import json
import re
from pathlib import Path

import numpy as np

from layers import Adam, Conv, Dense, MaxPool, softmax

HERE = Path(__file__).resolve().parent
SEED = 7
EPOCHS = 60
BATCH = 64
PEAK_RATE = 3e-3


def load():
    """Images [n, 1, 8, 8] in 0..1 and labels, as (training, held back) pairs."""
    manifest = json.loads((HERE / "digits.json").read_text())
    count, cut = manifest["count"], manifest["training"]
    pixels = manifest["height"] * manifest["width"]
    blob = np.fromfile(HERE / "digits.bin", np.uint8)
    images = blob[: count * pixels].reshape(count, 1, manifest["height"], manifest["width"])
    images = images.astype(np.float32) / np.float32(manifest["maximum"])
    labels = blob[count * pixels :].astype(np.int64)
    return (images[:cut], labels[:cut]), (images[cut:], labels[cut:])


def sample(images, rows, columns):
    """Bilinear samples of images [n, h, w] at points [n, h, w]; zero outside."""
    n, h, w = images.shape
    padded = np.pad(images, ((0, 0), (1, 2), (1, 2)))
    rows, columns = np.clip(rows, -1, h), np.clip(columns, -1, w)
    top, left = np.floor(rows).astype(int), np.floor(columns).astype(int)
    down, right = (rows - top).astype(np.float32), (columns - left).astype(np.float32)
    index = np.arange(n)[:, None, None]

    def pick(i, j):
        return padded[index, top + 1 + i, left + 1 + j]

    upper = pick(0, 0) * (1 - right) + pick(0, 1) * right
    lower = pick(1, 0) * (1 - right) + pick(1, 1) * right
    return upper * (1 - down) + lower * down


def augment(random, images):
    """Small random turns, stretches, slants, shifts and changes of stroke strength."""
    n = len(images)
    angle = random.uniform(-0.2, 0.2, (n, 1, 1))
    stretch = random.uniform(0.88, 1.12, (2, n, 1, 1))
    slant = random.uniform(-0.15, 0.15, (n, 1, 1))
    shift = random.uniform(-0.8, 0.8, (2, n, 1, 1))
    y, x = np.mgrid[0:8, 0:8] - 3.5
    rows = (np.cos(angle) * y + np.sin(angle) * x) * stretch[0] + 3.5 + shift[0]
    columns = (np.cos(angle) * x - np.sin(angle) * y + slant * y) * stretch[1] + 3.5 + shift[1]
    strength = random.uniform(0.85, 1.15, (n, 1, 1)).astype(np.float32)
    return np.minimum(sample(images[:, 0], rows, columns) * strength, 1)[:, None]


def forward(layers, x):
    for layer in layers:
        x = layer.forward(x)
    return x


def gradients_of(layers, images, labels):
    """Gradients of the mean cross entropy, in the order of the parameters."""
    gradient = softmax(forward(layers, images))
    gradient[np.arange(len(labels)), labels] -= 1
    gradient /= np.float32(len(labels))
    for layer in reversed(layers):
        gradient = layer.backward(gradient)
    return [g for layer in layers if layer.parameters() for g in layer.gradients]


def train(layers, images, labels, random):
    """Adam under a warm-up and cosine rate; ends on the running mean of the weights."""
    parameters = [p for layer in layers for p in layer.parameters()]
    averages = [p.copy() for p in parameters]
    optimizer = Adam(parameters)
    total = EPOCHS * -(-len(labels) // BATCH)
    for epoch in range(EPOCHS):
        order = random.permutation(len(labels))
        for start in range(0, len(labels), BATCH):
            rows = order[start : start + BATCH]
            progress = optimizer.steps / total
            rate = PEAK_RATE * min(1, progress * 20) * 0.5 * (1 + np.cos(np.pi * progress))
            optimizer.step(gradients_of(layers, augment(random, images[rows]), labels[rows]), rate)
            for average, p in zip(averages, parameters):
                average += np.float32(0.01) * (p - average)
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1} of {EPOCHS}: training accuracy {accuracy(layers, images, labels):.4f}")
    for average, p in zip(averages, parameters):
        p[...] = average


def accuracy(layers, images, labels):
    layers[-1].training = False
    right = np.mean(forward(layers, images).argmax(1) == labels)
    layers[-1].training = True
    return right


def write(named, held_back_accuracy):
    arrays = [p for layer in named.values() for p in layer.parameters()]
    (HERE / "weights.bin").write_bytes(b"".join(p.astype("<f4").tobytes() for p in arrays))
    tensors = {}
    for name, layer in named.items():
        tensors[f"{name}.weight"] = list(layer.weight.shape)
        tensors[f"{name}.bias"] = list(layer.bias.shape)
    manifest = {"type": "float32", "tensors": tensors, "seed": SEED, "heldBackAccuracy": round(held_back_accuracy, 4)}
    text = json.dumps(manifest, indent=2)
    compact = re.sub(r"\[[\s\d,]+\]", lambda dims: " ".join(dims[0].split()).replace("[ ", "[").replace(" ]", "]"), text)
    (HERE / "weights.json").write_text(compact + "\n")


def main():
    random = np.random.default_rng(SEED)
    (images, labels), held_back = load()
    named = {
        "conv1": Conv(random, 1, 16),
        "conv2": Conv(random, 16, 32),
        "conv3": Conv(random, 32, 48),
        "dense": Dense(random, 48 * 2 * 2, 10, drop=0.3),
    }
    conv1, conv2, conv3, dense = named.values()
    layers = [conv1, conv2, MaxPool(), conv3, MaxPool(), dense]
    train(layers, images, labels, random)
    reached = accuracy(layers, *held_back)
    write(named, reached)
    print(f"held-back accuracy {reached:.4f} on {len(held_back[1])} images")


if __name__ == "__main__":
    main()
