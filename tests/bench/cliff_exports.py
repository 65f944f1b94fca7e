"""Block types for cliffs.py: what current exporters make of masks, slices that are set, skewed views and known queries.

Each method of ExportedBlocks continues a network by one block, as those of ModernBlocks do, whose pieces it uses.
"""
import numpy as np


class ExportedBlocks:
    BLOCKS = ("causal_attention latent_queries set_slice picked_diagonals join_within_block grouped_tokens gated_halves "
              "upsampled pixel_shuffled added_rows").split()

    def causal_attention(self):
        """A mask of the least float on one half of the scores; keys may be shared by several heads."""
        self.to_tokens()
        before, (_, length, width) = self.value, self.shape
        heads = self.pick(2, 4)
        if length > 400 or width % heads:
            return
        each, shared = width // heads, self.pick(1, heads)
        q = self.heads_of(self.product(before, width, width, False), length, heads, each)
        k, v = (self.heads_of(self.product(before, width, shared * each, False), length, shared, each)
                for _ in range(2))
        if shared != heads:
            k, v = (self.op("Expand", x, self.ints(1, heads, length, each)) for x in (k, v))
        mask = np.triu(np.full((1, 1, length, length), self.pick(-3.4028235e38, -1e4, -np.inf)), 1)
        y = self.attend(q, k, v, each, self.const(mask))
        self.value = self.op("Add", before, self.reshape(self.transpose(y, 0, 2, 1, 3), 1, length, width))

    def latent_queries(self):
        """Queries that are weights attend to the tokens and take their place."""
        self.to_tokens()
        _, length, width = self.shape
        heads, count = self.pick(4, 8), self.pick(16, 49, 64)
        if width % heads or length > 800:
            return
        each = width // heads
        k, v = (self.heads_of(self.product(self.value, width, width), length, heads, each) for _ in range(2))
        y = self.attend(self.weight(1, heads, count, each), k, v, each)
        y = self.reshape(self.transpose(y, 0, 2, 1, 3), 1, count, width)
        self.value, self.shape = self.product(y, width, width), [1, count, width]

    def set_slice(self):
        """x[:, a:b] = y, as a scatter of rows that follow each other."""
        self.to_tokens()
        _, length, width = self.shape
        first, count = length // 4, length // 2
        if count < 2:
            return
        rows = self.product(self.cut(self.value, 1, first, first + count), width, width)
        where = self.const(np.arange(first, first + count)[:, None], np.int64)
        x = self.op("ScatterND", self.transpose(self.value, 1, 0, 2), where, self.transpose(rows, 1, 0, 2))
        self.value = self.transpose(x, 1, 0, 2)

    def picked_diagonals(self):
        """Elements of skewed rows, by positions in a flattened view."""
        self.to_tokens()
        _, length, width = self.shape
        if length > 400 or width > 128:
            return
        x = self.op("Pad", self.transpose(self.value, 0, 2, 1), self.ints(0, 0, 0, 0, 0, width))
        x = self.reshape(x, width * (length + width))
        where = (np.arange(width)[:, None] * (length + width - 1) + np.arange(length)[None, :]).clip(0)
        y = self.op("Gather", x, self.const(where.reshape(-1), np.int64))
        self.value = self.op("Add", self.transpose(self.reshape(y, 1, width, length), 0, 2, 1), self.value)

    def join_within_block(self):
        """A join whose second part begins within a block of channels, before a convolution."""
        self.to_picture()
        channels = self.shape[1]
        first, second = self.pick(12, 20, 24, 40), self.pick(12, 24, 36)
        a, b = (self.op("Relu", self.conv_of(self.value, channels, out)) for out in (first, second))
        out = self.pick(16, 24, 48)
        self.value = self.conv_of(self.op("Concat", a, b, axis=1), first + second, out, 3)
        self.shape = [1, out, *self.shape[2:]]

    def grouped_tokens(self):
        """SqueezeBERT: pointwise convolutions of groups, normalised over the channels."""
        self.to_tokens()
        before, (_, length, width) = self.value, self.shape
        groups = self.pick(2, 4)
        if width % groups:
            return
        x = self.op("Conv", self.transpose(before, 0, 2, 1), self.weight(width, width // groups, 1), self.weight(width),
                    kernel_shape=[1], group=groups)
        self.value = self.norm_of(self.op("Add", self.transpose(x, 0, 2, 1), before), width)

    def gated_halves(self):
        """WaveNet: one half of a dilated convolution's channels gates the other, before two readers."""
        self.to_picture()
        channels = self.shape[1]
        if channels % 16:
            return
        both = self.conv_of(self.value, channels, 2 * channels, 3)
        a, b = self.op("Split", both, outputs=2, axis=1, num_outputs=2)
        gate = self.op("Mul", self.op("Tanh", a), self.op("Sigmoid", b))
        self.value = self.op("Add", self.conv_of(gate, channels, channels), self.conv_of(gate, channels, channels, 3))

    def upsampled(self):
        """A transposed convolution of 4 x 4 taps at a stride of 2, as generators have them."""
        self.to_picture()
        _, channels, height, width = self.shape
        if height > 33:
            return
        out = self.pick(16, 24, 64)
        self.value = self.op("Relu", self.op("ConvTranspose", self.value, self.weight(channels, out, 4, 4), kernel_shape=[4, 4],
                                             strides=[2, 2], pads=[1, 1, 1, 1]))
        self.shape = [1, out, 2 * height, 2 * width]

    def pixel_shuffled(self):
        """Four times the channels of a convolution become pixels."""
        self.to_picture()
        _, channels, height, width = self.shape
        if height > 33 or channels > 64:
            return
        wide = self.conv_of(self.value, channels, 4 * channels, 3)
        self.value = self.op("DepthToSpace", wide, blocksize=2, mode="CRD")
        self.shape = [1, channels, 2 * height, 2 * width]

    def added_rows(self):
        """A graph's layer: rows of neighbours are added up, by numbers that the run has."""
        self.to_tokens()
        _, length, width = self.shape
        rows = self.reshape(self.product(self.value, width, width), length, width)
        where = self.op("ArgMax", self.op("MatMul", rows, self.weight(width, 16)), axis=1, keepdims=1)
        zeros = self.const(np.zeros((length, width)))
        summed = self.op("ScatterND", zeros, where, rows, reduction="add")
        self.value = self.op("Add", self.value, self.reshape(summed, 1, length, width))
