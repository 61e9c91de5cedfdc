"""Forward and backward passes of the network's layers in plain numpy, NCHW. Used by train.py only."""
import numpy as np


def patches(x):
    """Every 3x3 neighbourhood of x padded by one: [n, h, w, c * 9]."""
    n, c, h, w = x.shape
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    return windows.transpose(0, 2, 3, 1, 4, 5).reshape(n, h, w, c * 9)


class Conv:
    """3x3 convolution with padding 1 and relu; weight [out, in, 3, 3]."""

    def __init__(self, random, inputs, outputs):
        deviation = np.sqrt(2 / (inputs * 9))
        self.weight = random.normal(0, deviation, (outputs, inputs, 3, 3)).astype(np.float32)
        self.bias = np.zeros(outputs, np.float32)

    def forward(self, x):
        self.columns = patches(x)
        y = self.columns @ self.weight.reshape(len(self.bias), -1).T + self.bias
        self.positive = y > 0
        return np.where(self.positive, y, 0).transpose(0, 3, 1, 2)

    def backward(self, gradient):
        outputs, inputs = self.weight.shape[:2]
        flat = (gradient.transpose(0, 2, 3, 1) * self.positive).reshape(-1, outputs)
        self.gradients = [
            (flat.T @ self.columns.reshape(len(flat), -1)).reshape(self.weight.shape),
            flat.sum(0),
        ]
        n, h, w = self.positive.shape[:3]
        spread = (flat @ self.weight.reshape(outputs, -1)).reshape(n, h, w, inputs, 3, 3)
        padded = np.zeros((n, inputs, h + 2, w + 2), np.float32)
        for i in range(3):
            for j in range(3):
                padded[:, :, i : i + h, j : j + w] += spread[..., i, j].transpose(0, 3, 1, 2)
        return padded[:, :, 1:-1, 1:-1]

    def parameters(self):
        return [self.weight, self.bias]


class MaxPool:
    """2x2 maximum with stride 2."""

    def forward(self, x):
        n, c, h, w = x.shape
        cells = x.reshape(n, c, h // 2, 2, w // 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(n, c, h // 2, w // 2, 4)
        self.chosen = cells.argmax(-1)[..., None]
        self.shape = cells.shape
        return cells.max(-1)

    def backward(self, gradient):
        n, c, h, w, _ = self.shape
        cells = np.zeros(self.shape, np.float32)
        np.put_along_axis(cells, self.chosen, gradient[..., None], -1)
        return cells.reshape(n, c, h, w, 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(n, c, h * 2, w * 2)

    def parameters(self):
        return []


class Dense:
    """Flatten, drop out while training, multiply by weight [in, out], add bias."""

    def __init__(self, random, inputs, outputs, drop):
        self.weight = random.normal(0, np.sqrt(1 / inputs), (inputs, outputs)).astype(np.float32)
        self.bias = np.zeros(outputs, np.float32)
        self.random, self.drop, self.training = random, drop, True

    def forward(self, x):
        self.shape = x.shape
        flat = x.reshape(len(x), -1)
        self.mask = np.float32(1)
        if self.training:
            kept = self.random.random(flat.shape, np.float32) >= self.drop
            self.mask = kept.astype(np.float32) / np.float32(1 - self.drop)
        self.x = flat * self.mask
        return self.x @ self.weight + self.bias

    def backward(self, gradient):
        self.gradients = [self.x.T @ gradient, gradient.sum(0)]
        return (gradient @ self.weight.T * self.mask).reshape(self.shape)

    def parameters(self):
        return [self.weight, self.bias]


def softmax(scores):
    powers = np.exp(scores - scores.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


class Adam:
    """Adam over a flat list of parameter arrays, updated in place."""

    def __init__(self, parameters):
        self.parameters = parameters
        self.mean = [np.zeros_like(p) for p in parameters]
        self.square = [np.zeros_like(p) for p in parameters]
        self.steps = 0

    def step(self, gradients, rate):
        self.steps += 1
        scale = np.float32(rate * np.sqrt(1 - 0.999**self.steps) / (1 - 0.9**self.steps))
        for p, g, m, s in zip(self.parameters, gradients, self.mean, self.square):
            m += np.float32(0.1) * (g - m)
            s += np.float32(0.001) * (g * g - s)
            p -= scale * m / (np.sqrt(s) + np.float32(1e-7))
