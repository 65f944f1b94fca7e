"""Operators that ONNX Runtime has on accelerators alone, or in its extensions, for the reference evaluator of the `onnx`
package: each as its published contract says, in numpy and 64 bits."""
import math

import numpy as np
from onnx.reference.op_run import OpRun


def rounded(value, like):
    return value.astype(like.dtype)


class GroupNorm(OpRun):
    """Groups of channels are standardised; the channels come last unless channels_last is 0. activation 1 is SiLU."""

    op_domain = "com.microsoft"

    def _run(self, x, gamma, beta, activation=None, channels_last=None, epsilon=None, groups=None):
        last = channels_last is None or channels_last != 0
        y = x.astype(np.float64) if last else np.moveaxis(x.astype(np.float64), 1, -1)
        grouped = y.reshape(y.shape[0], -1, groups, y.shape[-1] // groups)
        mean = grouped.mean((1, 3), keepdims=True)
        deviation = np.sqrt(grouped.var((1, 3), keepdims=True) + (1e-5 if epsilon is None else epsilon))
        y = ((grouped - mean) / deviation).reshape(y.shape)
        y = y * gamma.astype(np.float64) + beta.astype(np.float64)
        y = y / (1 + np.exp(-y)) if activation else y
        return (rounded(y if last else np.moveaxis(y, -1, 1), x),)


class NegPos(OpRun):
    """What is negative, and what is positive; 0 elsewhere."""

    op_domain = "ai.onnx.contrib"

    def _run(self, x):
        return np.minimum(x, 0), np.maximum(x, 0)


class FastGelu(OpRun):
    """Gelu by tanh, of x and a bias."""

    op_domain = "ai.onnx.contrib"

    def _run(self, x, bias=None):
        wide = x.astype(np.float64) + (0 if bias is None else bias.astype(np.float64))
        inner = math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)
        return (rounded(0.5 * wide * (1 + np.tanh(inner)), x),)


ALL = [GroupNorm, NegPos, FastGelu]
