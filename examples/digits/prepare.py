"""Writes digits.bin and digits.json from the data set that scikit-learn ships.

    python3 -m venv .venv && .venv/bin/pip install -r requirements.txt
    .venv/bin/python prepare.py

digits.bin holds `count` images of height * width bytes (0 to 16, row-major), then `count` labels of one byte.
The held-back images come last: a quarter of the set, a fair share of each class, chosen by a seeded shuffle.
"""
import hashlib
import json
from pathlib import Path

import numpy as np
import sklearn
from sklearn.datasets import load_digits

HERE = Path(__file__).resolve().parent
SEED = 1998
HELD_BACK = 450


def held_back_counts(labels):
    """How many images of each class to hold back; largest remainders make the sum exact."""
    shares = np.bincount(labels) * HELD_BACK / len(labels)
    counts = np.floor(shares).astype(int)
    most_cut = np.argsort(counts - shares, kind="stable")
    counts[most_cut[: HELD_BACK - counts.sum()]] += 1
    return counts


def split(labels):
    """Row numbers of the training part and of the held-back part, both shuffled."""
    random = np.random.default_rng(SEED)
    training, held_back = [], []
    for digit, count in enumerate(held_back_counts(labels)):
        rows = random.permutation(np.flatnonzero(labels == digit))
        held_back.append(rows[:count])
        training.append(rows[count:])
    return [random.permutation(np.concatenate(part)) for part in (training, held_back)]


def main():
    digits = load_digits()
    images = digits.images.astype(np.uint8)
    labels = digits.target.astype(np.uint8)
    assert images.shape == (1797, 8, 8) and images.max() == 16
    assert np.array_equal(images, digits.images)

    training, held_back = split(labels)
    order = np.concatenate([training, held_back])
    blob = images[order].tobytes() + labels[order].tobytes()
    (HERE / "digits.bin").write_bytes(blob)
    manifest = {
        "count": len(order),
        "training": len(training),
        "heldBack": len(held_back),
        "height": 8,
        "width": 8,
        "maximum": 16,
        "classes": 10,
        "seed": SEED,
        "source": f"scikit-learn {sklearn.__version__}, load_digits",
        "sha256": hashlib.sha256(blob).hexdigest(),
    }
    (HERE / "digits.json").write_text(json.dumps(manifest, indent=2) + "\n")
    print(f"digits.bin: {len(blob):,} bytes, {len(training)} for training, {len(held_back)} held back")


if __name__ == "__main__":
    main()
