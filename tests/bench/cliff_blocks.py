"""More block types for cliffs.py: those of current vision, language, audio and detection networks, as exporters write them.

Each method of ModernBlocks continues a network by one block. A block that does not fit the current tensor leaves it as it is.
Where exporters of different age write a layer differently (a normalisation as one operator or as nine, a pixel shuffle as
an operator or as three views), the block draws one of the forms.
"""
import numpy as np
from onnx import TensorProto, helper


class ModernBlocks:
    BLOCKS = ("grid_attention pool_mixer response_norm involution detect_head rotary_attention scanned_state time_mix hard_squeeze "
              "ghost shuffle_unit pixel_shuffle pyramid_pooling merge_patches swiglu rms_norm unet_block deconvolve "
              "weighted_pyramid spectrum bidirectional expert_mixture linear_attention covariance_attention "
              "reduced_attention talking_heads spatial_gate res2net attention_maps coordinate_attention selective_kernel "
              "focal_modulation cross_stage pooling_chain upsample_concat fuse_scales old_norm channel_conv blur_pool "
              "sample_grid conformer_conv shifted_positions cosine_attention vector_quantise keep_best focus "
              "large_kernel mixed_kernels dynamic_weights restyle wavenet video_conv stylised_upsample nested_windows "
              "layer_scale quick_gelu pair_norm").split()

    # Pieces.
    def scalar(self, number):
        return self.const(np.float32(number))

    def reshape(self, x, *shape):
        return self.op("Reshape", x, self.ints(*shape))

    def transpose(self, x, *perm):
        return self.op("Transpose", x, perm=list(perm))

    def cut(self, x, axis, first, last, step=1):
        return self.op("Slice", x, self.ints(first), self.ints(last), self.ints(axis), self.ints(step))

    def product(self, x, width, out, bias=True):
        y = self.op("MatMul", x, self.const(self.rng.standard_normal((width, out)) / width ** 0.5))
        return self.op("Add", y, self.weight(out)) if bias else y

    def conv_of(self, x, into, out, window=1, stride=1, groups=1, dilation=1):
        pad = dilation * (window // 2)
        return self.op("Conv", x, self.weight(out, into // groups, window, window), self.weight(out), group=groups,
                       kernel_shape=[window] * 2, pads=[pad] * 4, strides=[stride] * 2, dilations=[dilation] * 2)

    def silu(self, x):
        return self.op("Mul", x, self.op("Sigmoid", x))

    def norm_of(self, x, width):
        """Over the last axis, in one operator or as older exporters wrote it."""
        if self.rng.random() < 0.5:
            return self.op("LayerNormalization", x, self.weight(width), self.weight(width), axis=-1)
        centred = self.op("Sub", x, self.op("ReduceMean", x, self.ints(-1)))
        square = self.op("Pow", centred, self.scalar(2))
        deviation = self.op("Sqrt", self.op("Add", self.op("ReduceMean", square, self.ints(-1)), self.scalar(1e-5)))
        scaled = self.op("Mul", self.op("Div", centred, deviation), self.weight(width))
        return self.op("Add", scaled, self.weight(width))

    def rms_of(self, x, width):
        square = self.op("Pow", x, self.scalar(2))
        mean = self.op("Add", self.op("ReduceMean", square, self.ints(-1)), self.scalar(1e-6))
        inverse = self.op("Reciprocal", self.op("Sqrt", mean)) if self.rng.random() < 0.5 else None
        scaled = self.op("Mul", x, inverse) if inverse else self.op("Div", x, self.op("Sqrt", mean))
        return self.op("Mul", scaled, self.weight(width))

    def attend(self, q, k, v, each, bias=None):
        """Of [..., length, each]; k is transposed here."""
        rank = 4
        turned = self.op("Transpose", k, perm=[*range(rank - 2), rank - 1, rank - 2])
        scores = self.op("Mul", self.op("MatMul", q, turned), self.scalar(each ** -0.5))
        if bias is not None:
            scores = self.op("Add", scores, bias)
        return self.op("MatMul", self.op("Softmax", scores, axis=-1), v)

    def heads_of(self, x, length, heads, each):
        return self.transpose(self.reshape(x, 1, length, heads, each), 0, 2, 1, 3)

    def add_to(self, before):
        self.value = self.op("Add", before, self.value)

    # Token mixers.
    def grid_attention(self):
        """Windows or a grid of a picture, each attended to by itself with a bias of positions."""
        self.to_picture()
        _, channels, height, width = self.shape
        side = 7 if height % 7 == 0 else 4 if height % 4 == 0 else 5 if height % 5 == 0 else 0
        heads = self.pick(2, 4)
        if not side or height != width or channels % heads or height == side:
            return
        count, each, length = height // side, channels // heads, side * side
        x = self.transpose(self.value, 0, 2, 3, 1)
        grid = self.rng.random() < 0.5
        cut = (1, side, count, side, count, channels) if grid else (1, count, side, count, side, channels)
        to_windows = (0, 2, 4, 1, 3, 5) if grid else (0, 1, 3, 2, 4, 5)
        back = (0, 3, 1, 4, 2, 5) if grid else (0, 1, 3, 2, 4, 5)
        x = self.reshape(self.transpose(self.reshape(x, *cut), *to_windows), count * count, length, channels)
        y = self.product(self.norm_of(x, channels), channels, 3 * channels)
        y = self.transpose(self.reshape(y, count * count, length, 3, heads, each), 2, 0, 3, 1, 4)
        q, k, v = (self.op("Gather", y, self.const(i, np.int64), axis=0) for i in range(3))
        y = self.attend(q, k, v, each, self.weight(1, heads, length, length))
        y = self.reshape(self.transpose(y, 0, 2, 1, 3), count * count, length, channels)
        x = self.op("Add", x, self.product(y, channels, channels))
        x = self.transpose(self.reshape(x, 1, count, count, side, side, channels), *back)
        x = self.reshape(x, 1, height, width, channels)
        self.value = self.transpose(x, 0, 3, 1, 2)

    def pool_mixer(self):
        self.to_picture()
        x, channels = self.value, self.shape[1]
        y = self.op("GroupNormalization", x, self.weight(channels), self.weight(channels), num_groups=1)
        y = self.op("Sub", self.op("AveragePool", y, kernel_shape=[3, 3], strides=[1, 1], pads=[1] * 4,
                                   count_include_pad=0), y)
        self.value = self.op("Add", x, self.op("Mul", y, self.weight(channels, 1, 1)))

    def response_norm(self):
        """ConvNeXt V2: the norm over positions, divided by its mean over channels."""
        self.to_picture()
        x, before, channels = self.transpose(self.value, 0, 2, 3, 1), self.value, self.shape[1]
        y = self.product(self.norm_of(x, channels), channels, 2 * channels)
        y = self.op("Gelu", y)
        norm = self.op("ReduceL2", y, self.ints(1, 2), keepdims=1)
        mean = self.op("Add", self.op("ReduceMean", norm, self.ints(-1), keepdims=1), self.scalar(1e-6))
        z = self.op("Mul", y, self.op("Div", norm, mean))
        z = self.op("Add", self.op("Mul", self.weight(2 * channels), z), self.weight(2 * channels))
        y = self.product(self.op("Add", z, y), 2 * channels, channels)
        self.value = self.op("Add", before, self.transpose(y, 0, 3, 1, 2))

    def unfolded(self, window):
        """Windows of the picture as exporters write torch's unfold: two gathers and a reshape; [1, C, w, w, H, W]."""
        _, channels, height, width = self.shape
        pad = window // 2
        x = self.op("Pad", self.value, self.ints(0, 0, pad, pad, 0, 0, pad, pad))
        rows = np.arange(window)[:, None] + np.arange(height)[None, :]
        columns = np.arange(window)[:, None] + np.arange(width)[None, :]
        x = self.op("Gather", x, self.const(rows, np.int64), axis=2)
        x = self.op("Gather", x, self.const(columns, np.int64), axis=4)
        return self.transpose(x, 0, 1, 2, 4, 3, 5)

    def involution(self):
        self.to_picture()
        _, channels, height, width = self.shape
        groups, window = self.pick(2, 4), 3
        if channels % groups or height > 40:
            return
        kernel = self.conv_of(self.op("Relu", self.conv_of(self.value, channels, 16)), 16, groups * window * window)
        kernel = self.reshape(kernel, 1, groups, 1, window * window, height, width)
        x = self.reshape(self.unfolded(window), 1, groups, channels // groups, window * window, height, width)
        y = self.op("ReduceSum", self.op("Mul", x, kernel), self.ints(3), keepdims=0)
        self.value = self.reshape(y, 1, channels, height, width)

    def rotate(self, x, length, each):
        angles = np.outer(np.arange(length), 1e4 ** (-np.arange(0, each, 2) / each))
        if self.rng.random() < 0.5:
            angles = np.concatenate([angles, angles], -1)
            half = each // 2
            turned = self.op("Concat", self.op("Neg", self.cut(x, 3, half, each)), self.cut(x, 3, 0, half), axis=-1)
        else:  # neighbours are turned, as in GPT-J and EVA
            angles = np.repeat(angles, 2, -1)
            odd, even = self.op("Neg", self.cut(x, 3, 1, each, 2)), self.cut(x, 3, 0, each, 2)
            last = self.const(-1, np.int64)
            pair = self.op("Concat", self.op("Unsqueeze", odd, last), self.op("Unsqueeze", even, last), axis=-1)
            turned = self.op("Reshape", pair, self.op("Shape", x))
        return self.op("Add", self.op("Mul", x, self.const(np.cos(angles))),
                       self.op("Mul", turned, self.const(np.sin(angles))))

    def rotary_attention(self):
        """Queries share keys and values in groups; positions turn both; later positions are hidden."""
        self.to_tokens()
        before, (_, length, width) = self.value, self.shape
        each = self.pick(16, 32)
        if length > 400 or width % each or width // each < 2:
            return
        heads = width // each
        shared = heads // 2 if heads % 2 == 0 else heads
        x = self.rms_of(self.value, width)
        q = self.heads_of(self.product(x, width, width, False), length, heads, each)
        k = self.heads_of(self.product(x, width, shared * each, False), length, shared, each)
        v = self.heads_of(self.product(x, width, shared * each, False), length, shared, each)
        q, k = self.rotate(q, length, each), self.rotate(k, length, each)
        if shared != heads:
            repeat = heads // shared
            k, v = (self.reshape(self.op("Expand", self.op("Unsqueeze", x, self.ints(2)),
                                         self.ints(1, shared, repeat, length, each)), 1, heads, length, each)
                    for x in (k, v))
        mask = np.triu(np.full((1, 1, length, length), -1e9), 1)
        y = self.attend(q, k, v, each, self.const(mask))
        y = self.product(self.reshape(self.transpose(y, 0, 2, 1, 3), 1, length, width), width, width, False)
        self.value = self.op("Add", before, y)

    def linear_attention(self):
        """EfficientViT: a kernel of relu, keys times values first; over a picture's own layout."""
        self.to_picture()
        _, channels, height, width = self.shape
        each = 16
        if channels % each:
            return
        heads, length = channels // each, height * width
        y = self.conv_of(self.value, channels, 3 * channels)
        aggregated = self.conv_of(self.conv_of(y, 3 * channels, 3 * channels, 5, 1, 3 * channels), 3 * channels,
                                  3 * channels, 1, 1, 3 * heads)
        y = self.reshape(self.op("Concat", y, aggregated, axis=1), 1, 2 * heads, 3 * each, length)
        y = self.transpose(y, 0, 1, 3, 2) if self.rng.random() < 0.5 else y
        last = 3 if y.startswith("transpose") else 2
        q, k, v = (self.cut(y, last, i * each, (i + 1) * each) for i in range(3))
        q, k = self.op("Relu", q), self.op("Relu", k)
        if last == 3:
            v = self.op("Pad", v, self.ints(0, 0, 0, 0, 0, 0, 0, 1), self.scalar(1))
            both = self.op("MatMul", q, self.op("MatMul", self.transpose(k, 0, 1, 3, 2), v))
            y = self.op("Div", self.cut(both, 3, 0, each), self.op("Add", self.cut(both, 3, each, each + 1),
                                                                   self.scalar(1e-6)))
            y = self.transpose(y, 0, 1, 3, 2)
        else:
            v = self.op("Pad", v, self.ints(0, 0, 0, 0, 0, 0, 1, 0), self.scalar(1))
            both = self.op("MatMul", self.op("MatMul", v, self.transpose(k, 0, 1, 3, 2)), q)
            y = self.op("Div", self.cut(both, 2, 0, each), self.op("Add", self.cut(both, 2, each, each + 1),
                                                                   self.scalar(1e-6)))
        y = self.reshape(y, 1, 2 * channels, height, width)
        self.value = self.op("Add", self.value, self.conv_of(y, 2 * channels, channels))

    def covariance_attention(self):
        """XCiT: channels attend to channels; queries and keys are normalised along the tokens."""
        self.to_tokens()
        before, (_, length, width) = self.value, self.shape
        heads = self.pick(2, 4)
        if width % heads:
            return
        each = width // heads
        y = self.product(self.norm_of(before, width), width, 3 * width)
        y = self.transpose(self.reshape(y, 1, length, 3, heads, each), 2, 0, 3, 4, 1)
        q, k, v = (self.op("Gather", y, self.const(i, np.int64), axis=0) for i in range(3))
        q, k = (self.op("Div", x, self.op("Clip", self.op("ReduceL2", x, self.ints(-1), keepdims=1), self.scalar(1e-12)))
                for x in (q, k))
        scores = self.op("Mul", self.op("MatMul", q, self.transpose(k, 0, 1, 3, 2)), self.weight(heads, 1, 1))
        y = self.op("MatMul", self.op("Softmax", scores, axis=-1), v)
        y = self.reshape(self.transpose(y, 0, 3, 1, 2), 1, length, width)
        self.value = self.op("Add", before, self.product(y, width, width))

    def reduced_attention(self):
        """PVT and SegFormer: keys and values of a picture that a strided convolution made smaller."""
        self.to_picture()
        _, channels, height, width = self.shape
        ratio, heads = self.pick(2, 4), self.pick(1, 2)
        if height % ratio or width % ratio or channels % heads or height * width > 1600:
            return
        self.to_tokens()
        before, length, each = self.value, height * width, channels // heads
        x = self.norm_of(before, channels)
        q = self.heads_of(self.product(x, channels, channels), length, heads, each)
        picture = self.reshape(self.transpose(x, 0, 2, 1), 1, channels, height, width)
        small = self.op("Conv", picture, self.weight(channels, channels, ratio, ratio), self.weight(channels),
                        kernel_shape=[ratio] * 2, strides=[ratio] * 2)
        few = length // ratio ** 2
        small = self.norm_of(self.transpose(self.reshape(small, 1, channels, few), 0, 2, 1), channels)
        both = self.product(small, channels, 2 * channels)
        both = self.transpose(self.reshape(both, 1, few, 2, heads, each), 2, 0, 3, 1, 4)
        k, v = (self.op("Gather", both, self.const(i, np.int64), axis=0) for i in range(2))
        y = self.reshape(self.transpose(self.attend(q, k, v, each), 0, 2, 1, 3), 1, length, channels)
        self.value = self.op("Add", before, self.product(y, channels, channels))

    def talking_heads(self):
        """CaiT: products over the heads before and behind the softmax."""
        self.to_tokens()
        before, (_, length, width) = self.value, self.shape
        heads = self.pick(4, 8)
        if length > 400 or width % heads:
            return
        each = width // heads
        q, k, v = (self.heads_of(self.product(before, width, width), length, heads, each) for _ in range(3))
        s = self.op("MatMul", q, self.transpose(k, 0, 1, 3, 2))
        s = self.transpose(self.product(self.transpose(s, 0, 2, 3, 1), heads, heads), 0, 3, 1, 2)
        s = self.op("Softmax", s, axis=-1)
        s = self.transpose(self.product(self.transpose(s, 0, 2, 3, 1), heads, heads), 0, 3, 1, 2)
        y = self.reshape(self.transpose(self.op("MatMul", s, v), 0, 2, 1, 3), 1, length, width)
        self.value = self.op("Add", before, self.product(y, width, width))

    def cosine_attention(self):
        """Swin V2: of normalised queries and keys, with a learned scale."""
        self.to_tokens()
        before, (_, length, width) = self.value, self.shape
        heads = self.pick(2, 4)
        if length > 600 or width % heads:
            return
        each = width // heads
        q, k, v = (self.heads_of(self.product(before, width, width), length, heads, each) for _ in range(3))
        q, k = (self.op("Div", x, self.op("Clip", self.op("ReduceL2", x, self.ints(-1), keepdims=1), self.scalar(1e-12)))
                for x in (q, k))
        s = self.op("Mul", self.op("MatMul", q, self.transpose(k, 0, 1, 3, 2)), self.weight(heads, 1, 1))
        s = self.op("Softmax", self.op("Add", s, self.weight(heads, length, length)), axis=-1)
        y = self.reshape(self.transpose(self.op("MatMul", s, v), 0, 2, 1, 3), 1, length, width)
        y = self.norm_of(self.product(y, width, width), width)
        self.value = self.op("Add", before, y)

    def shifted_positions(self):
        """Transformer-XL: scores of relative positions, shifted by a pad and two reshapes."""
        self.to_tokens()
        before, (_, length, width) = self.value, self.shape
        heads = self.pick(2, 4)
        if length > 400 or width % heads:
            return
        each = width // heads
        q, k, v = (self.heads_of(self.product(before, width, width), length, heads, each) for _ in range(3))
        p = self.op("MatMul", self.op("Add", q, self.weight(heads, 1, each)), self.weight(heads, each, 2 * length - 1))
        p = self.op("Pad", p, self.ints(0, 0, 0, 1, 0, 0, 0, 0))
        p = self.cut(self.reshape(p, 1, heads, 2 * length, length), 2, 1, 2 * length)
        p = self.cut(self.reshape(p, 1, heads, length, 2 * length - 1), 3, 0, length)
        y = self.attend(q, k, v, each, p)
        y = self.reshape(self.transpose(y, 0, 2, 1, 3), 1, length, width)
        self.value = self.op("Add", before, self.product(y, width, width))

    def scanned_state(self):
        """Mamba: a causal depthwise convolution along the tokens, gates, and a state that each token decays."""
        self.to_tokens()
        before, (_, length, width) = self.value, self.shape
        states = self.pick(4, 8, 16)
        if length > 200 or width > 64:
            return
        both = self.product(self.rms_of(before, width), width, 2 * width, False)
        x, z = self.cut(both, 2, 0, width), self.cut(both, 2, width, 2 * width)
        x = self.op("Conv", self.transpose(x, 0, 2, 1), self.weight(width, 1, 4), self.weight(width), group=width,
                    kernel_shape=[4], pads=[3, 3])
        x = self.silu(self.transpose(self.cut(x, 2, 0, length), 0, 2, 1))
        step = self.op("Softplus", self.product(x, width, width))
        into, out = self.product(x, width, states, False), self.product(x, width, states, False)
        last, third = self.ints(-1), self.ints(2)
        decay = self.op("Exp", self.op("Mul", self.op("Unsqueeze", step, last),
                                       self.const(-np.abs(self.rng.standard_normal((width, states))))))
        update = self.op("Mul", self.op("Unsqueeze", self.op("Mul", step, x), last), self.op("Unsqueeze", into, third))
        info = helper.make_tensor_value_info
        shape = [1, width, states]
        body = helper.make_graph(
            [helper.make_node("Mul", ["state", "decay"], ["kept"]), helper.make_node("Add", ["kept", "update"], ["next"]),
             helper.make_node("Identity", ["next"], ["seen"])], "step",
            [info(n, TensorProto.FLOAT, shape) for n in ("state", "decay", "update")],
            [info(n, TensorProto.FLOAT, shape) for n in ("next", "seen")])
        _, seen = self.op("Scan", self.const(np.zeros(shape)), decay, update, outputs=2, body=body, num_scan_inputs=2,
                          scan_input_axes=[1, 1], scan_output_axes=[1])
        y = self.op("Squeeze", self.op("MatMul", seen, self.op("Unsqueeze", out, last)), last)
        y = self.op("Add", y, self.op("Mul", x, self.weight(width)))
        self.value = self.op("Add", before, self.product(self.op("Mul", y, self.silu(z)), width, width, False))

    def time_mix(self):
        """RWKV: each token mixed with the one before, channel by channel."""
        self.to_tokens()
        before, (_, length, width) = self.value, self.shape
        x = self.norm_of(before, width)
        if self.rng.random() < 0.5:
            late = self.op("Concat", self.const(np.zeros((1, 1, width))), self.cut(x, 1, 0, length - 1), axis=1)
        else:
            late = self.op("Pad", x, self.ints(0, 1, 0, 0, -1, 0))
        mixed = []
        for _ in range(2):
            share = self.const(self.rng.random((1, 1, width)))
            mixed.append(self.op("Add", self.op("Mul", x, share),
                                 self.op("Mul", late, self.op("Sub", self.scalar(1), share))))
        key = self.op("Pow", self.op("Relu", self.product(mixed[0], width, 3 * width, False)), self.scalar(2))
        gate = self.op("Sigmoid", self.product(mixed[1], width, width, False))
        self.value = self.op("Add", before, self.op("Mul", gate, self.product(key, 3 * width, width, False)))

    def spatial_gate(self):
        """gMLP: half of the channels, mixed along the tokens, gates the other half."""
        self.to_tokens()
        before, (_, length, width) = self.value, self.shape
        if length > 800:
            return
        y = self.op("Gelu", self.product(self.norm_of(before, width), width, 2 * width))
        a, b = self.op("Split", y, outputs=2, axis=-1, num_outputs=2)
        b = self.transpose(self.norm_of(b, width), 0, 2, 1)
        b = self.transpose(self.product(b, length, length), 0, 2, 1)
        self.value = self.op("Add", before, self.product(self.op("Mul", a, b), width, width))

    # Layers of transformers that mix channels.
    def swiglu(self):
        self.to_tokens()
        before, (_, _, width) = self.value, self.shape
        hidden = 8 * (width * 8 // 3 // 8)
        x = self.norm_of(before, width)
        if self.rng.random() < 0.5:
            both = self.product(x, width, 2 * hidden)
            gate, up = self.op("Split", both, outputs=2, axis=-1, num_outputs=2)
        else:
            gate, up = self.product(x, width, hidden), self.product(x, width, hidden)
        y = self.op("Mul", self.silu(gate), up)
        if self.rng.random() < 0.5:
            y = self.norm_of(y, hidden)
        self.value = self.op("Add", before, self.product(y, hidden, width))

    def rms_norm(self):
        self.to_tokens()
        self.value = self.rms_of(self.value, self.shape[2])

    def old_norm(self):
        self.to_tokens()
        self.value = self.norm_of(self.value, self.shape[2])

    def pair_norm(self):
        """A sum of two branches, normalised behind it: post-norm."""
        self.to_tokens()
        width = self.shape[2]
        y = self.product(self.op("Gelu", self.product(self.value, width, 2 * width)), 2 * width, width)
        self.value = self.norm_of(self.op("Add", self.value, y), width)

    def quick_gelu(self):
        self.to_tokens()
        width = self.shape[2]
        y = self.product(self.value, width, 2 * width)
        y = self.op("Mul", y, self.op("Sigmoid", self.op("Mul", y, self.scalar(1.702))))
        self.value = self.op("Add", self.value, self.product(y, 2 * width, width))

    def expert_mixture(self):
        """Every token through the two experts that its gate prefers: all are computed and weighed, or gates pick weights."""
        self.to_tokens()
        before, (_, length, width) = self.value, self.shape
        count = 4
        gates = self.op("Softmax", self.product(before, width, count, False), axis=-1)
        best, where = self.op("TopK", gates, self.ints(2), outputs=2, axis=-1)
        best = self.op("Div", best, self.op("ReduceSum", best, self.ints(-1), keepdims=1))
        zeros = self.const(np.zeros((1, length, count)))
        dense = self.op("ScatterElements", zeros, where, best, axis=-1)
        x = self.reshape(before, 1, length, width)
        y = self.op("MatMul", x, self.const(self.rng.standard_normal((count, width, 2 * width)) / width ** 0.5))
        y = self.op("MatMul", self.silu(y), self.const(self.rng.standard_normal((count, 2 * width, width)) / width ** 0.5))
        weights = self.transpose(dense, 2, 1, 0)
        y = self.op("ReduceSum", self.op("Mul", y, weights), self.ints(0), keepdims=1)
        self.value = self.op("Add", before, y)

    def vector_quantise(self):
        """The nearest row of a table in each token's place."""
        self.to_tokens()
        _, length, width = self.shape
        table = self.rng.standard_normal((128, width)).astype(np.float32)
        scores = self.op("Sub", self.const((table ** 2).sum(1)),
                         self.op("Mul", self.op("MatMul", self.value, self.const(table.T)), self.scalar(2)))
        self.value = self.op("Gather", self.const(table), self.op("ArgMin", scores, axis=-1, keepdims=0), axis=0)

    def keep_best(self):
        """DETR's two stages: the tokens of the best scores."""
        self.to_tokens()
        _, length, width = self.shape
        side = int(length ** 0.5)
        keep = (side * 3 // 4) ** 2
        if keep < 16:
            return
        scores = self.op("ReduceMax", self.product(self.value, width, 10), self.ints(-1), keepdims=0)
        _, where = self.op("TopK", scores, self.ints(keep), outputs=2, axis=-1)
        if self.rng.random() < 0.5:
            where = self.op("Expand", self.op("Unsqueeze", where, self.ints(-1)), self.ints(1, keep, width))
            self.value = self.op("GatherElements", self.value, where, axis=1)
        else:
            picked = self.op("Gather", self.op("Squeeze", self.value, self.ints(0)),
                             self.op("Squeeze", where, self.ints(0)), axis=0)
            self.value = self.op("Unsqueeze", picked, self.ints(0))
        self.shape = [1, keep, width]

    # Convolutional blocks.
    def hard_squeeze(self):
        self.to_picture()
        x, channels = self.value, self.shape[1]
        inner = max(8, channels // 4)
        y = self.op("GlobalAveragePool", x)
        y = self.op("Relu", self.conv_of(y, channels, inner))
        y = self.op("HardSigmoid", self.conv_of(y, inner, channels), alpha=1 / 6)
        self.value = self.op("HardSwish", self.op("Mul", x, y))

    def ghost(self):
        self.to_picture()
        channels = self.shape[1]
        half = channels // 2
        x = self.op("Relu", self.conv_of(self.value, channels, half))
        y = self.op("Relu", self.conv_of(x, half, half, 3, 1, half))
        self.value = self.op("Concat", x, y, axis=1)
        self.shape = [1, 2 * half, *self.shape[2:]]

    def shuffle_unit(self):
        """ShuffleNet V2: half goes through, the other is convolved, and both are shuffled."""
        self.to_picture()
        _, channels, height, width = self.shape
        if channels % 2:
            return
        half = channels // 2
        a, b = self.op("Split", self.value, outputs=2, axis=1, num_outputs=2)
        b = self.op("Relu", self.conv_of(b, half, half))
        b = self.conv_of(b, half, half, 3, 1, half)
        b = self.op("Relu", self.conv_of(b, half, half))
        x = self.reshape(self.op("Concat", a, b, axis=1), 1, 2, half, height, width)
        self.value = self.reshape(self.transpose(x, 0, 2, 1, 3, 4), 1, channels, height, width)

    def pixel_shuffle(self):
        self.to_picture()
        _, channels, height, width = self.shape
        if height > 40 or channels > 96:
            return
        out = self.pick(16, channels)
        x = self.conv_of(self.value, channels, 4 * out, 3)
        if self.rng.random() < 0.5:
            x = self.op("DepthToSpace", x, blocksize=2, mode="CRD")
        else:
            x = self.transpose(self.reshape(x, 1, out, 2, 2, height, width), 0, 1, 4, 2, 5, 3)
            x = self.reshape(x, 1, out, 2 * height, 2 * width)
        self.value, self.shape = self.op("PRelu", x, self.weight(out, 1, 1)), [1, out, 2 * height, 2 * width]

    def pyramid_pooling(self):
        """DeepLab: dilated convolutions beside each other and the whole picture's mean."""
        self.to_picture()
        _, channels, height, width = self.shape
        if height < 14:
            return
        parts = [self.op("Relu", self.conv_of(self.value, channels, 32))]
        parts += [self.op("Relu", self.conv_of(self.value, channels, 32, 3, 1, 1, rate)) for rate in (3, 6)]
        mean = self.op("Relu", self.conv_of(self.op("GlobalAveragePool", self.value), channels, 32))
        parts.append(self.op("Resize", mean, "", "", self.ints(1, 32, height, width), mode="linear"))
        self.value = self.op("Relu", self.conv_of(self.op("Concat", *parts, axis=1), 128, 48))
        self.shape = [1, 48, height, width]

    def merge_patches(self):
        """Swin: four neighbours side by side, normalised and made narrower."""
        self.to_picture()
        _, channels, height, width = self.shape
        if height % 2 or width % 2 or height < 14:
            return
        x = self.transpose(self.value, 0, 2, 3, 1)
        if self.rng.random() < 0.5:
            parts = [self.cut(self.cut(x, 1, i, height, 2), 2, j, width, 2) for j in (0, 1) for i in (0, 1)]
            x = self.op("Concat", *parts, axis=-1)
        else:
            x = self.transpose(self.reshape(x, 1, height // 2, 2, width // 2, 2, channels), 0, 1, 3, 4, 2, 5)
        x = self.reshape(x, 1, height * width // 4, 4 * channels)
        out = min(2 * channels, 128)
        self.value = self.product(self.norm_of(x, 4 * channels), 4 * channels, out, False)
        self.shape = [1, height * width // 4, out]

    def unet_block(self):
        """A diffusion U-Net's: group normalisation as exporters write it, twice, with an added embedding."""
        self.to_picture()
        _, channels, height, width = self.shape
        before = self.value
        groups = self.pick(4, 8)
        if channels % groups:
            return
        for _ in range(2):
            x = self.reshape(self.value, 1, groups, -1)
            x = self.op("InstanceNormalization", x, self.const(np.ones(groups)), self.const(np.zeros(groups)))
            x = self.reshape(x, 1, channels, height, width)
            x = self.op("Add", self.op("Mul", x, self.weight(channels, 1, 1)), self.weight(channels, 1, 1))
            self.value = self.conv_of(self.silu(x), channels, channels, 3)
        self.add_to(before)

    def deconvolve(self):
        self.to_picture()
        _, channels, height, width = self.shape
        if height > 28:
            return
        out, kind = self.pick(16, 32, channels), self.pick("2", "4", "3", "depthwise")
        window = {"2": 2, "4": 4, "3": 3, "depthwise": 4}[kind]
        groups = channels if kind == "depthwise" else 1
        out = channels if kind == "depthwise" else out
        self.value = self.op("ConvTranspose", self.value, self.weight(channels, out // groups, window, window),
                             self.weight(out), kernel_shape=[window] * 2, strides=[2, 2], group=groups,
                             pads=[0 if kind == "2" else 1] * 4, output_padding=[1, 1] if kind == "3" else [0, 0])
        self.shape = [1, out, 2 * height, 2 * width]
        self.activation()

    def weighted_pyramid(self):
        """EfficientDet: a picture and its half, resized, summed by weights, convolved apart."""
        self.to_picture()
        _, channels, height, width = self.shape
        if height % 2 or width % 2:
            return
        x = self.value
        small = self.op("MaxPool", self.conv_of(x, channels, channels), kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
        up = self.op("Resize", small, "", self.const([1, 1, 2, 2]), mode="nearest",
                     coordinate_transformation_mode="asymmetric", nearest_mode="floor")
        y = self.op("Add", self.op("Mul", x, self.scalar(0.6)), self.op("Mul", up, self.scalar(0.4)))
        y = self.conv_of(self.silu(y), channels, channels, 3, 1, channels)
        self.value = self.conv_of(y, channels, channels)

    def res2net(self):
        self.to_picture()
        channels = self.shape[1]
        if channels % 4 or channels < 32:
            return
        each = channels // 4
        parts = self.op("Split", self.value, outputs=4, axis=1, num_outputs=4)
        done = [parts[0]]
        for part in parts[1:]:
            part = part if len(done) == 1 else self.op("Add", part, done[-1])
            done.append(self.op("Relu", self.conv_of(part, each, each, 3)))
        self.value = self.conv_of(self.op("Concat", *done, axis=1), channels, channels)

    def attention_maps(self):
        """CBAM: gates of channels, then of positions from the channels' mean and maximum."""
        self.to_picture()
        channels = self.shape[1]
        inner, shared = max(4, channels // 8), None
        weights = (self.weight(inner, channels, 1, 1), self.weight(channels, inner, 1, 1))
        sums = [self.op("Conv", self.op("Relu", self.op("Conv", self.op(kind, self.value), weights[0])), weights[1])
                for kind in ("GlobalAveragePool", "GlobalMaxPool")]
        x = self.op("Mul", self.value, self.op("Sigmoid", self.op("Add", *sums)))
        maps = self.op("Concat", self.op("ReduceMean", x, self.ints(1), keepdims=1),
                       self.op("ReduceMax", x, self.ints(1), keepdims=1), axis=1)
        self.value = self.op("Mul", x, self.op("Sigmoid", self.conv_of(maps, 2, 1, 7)))

    def coordinate_attention(self):
        self.to_picture()
        _, channels, height, width = self.shape
        x, inner = self.value, max(8, channels // 8)
        rows = self.op("ReduceMean", x, self.ints(3), keepdims=1)
        columns = self.transpose(self.op("ReduceMean", x, self.ints(2), keepdims=1), 0, 1, 3, 2)
        y = self.op("HardSwish", self.conv_of(self.op("Concat", rows, columns, axis=2), channels, inner))
        rows, columns = self.op("Split", y, self.ints(height, width), outputs=2, axis=2)
        rows = self.op("Sigmoid", self.conv_of(rows, inner, channels))
        columns = self.op("Sigmoid", self.conv_of(self.transpose(columns, 0, 1, 3, 2), inner, channels))
        self.value = self.op("Mul", self.op("Mul", x, rows), columns)

    def selective_kernel(self):
        self.to_picture()
        _, channels, height, width = self.shape
        parts = [self.op("Relu", self.conv_of(self.value, channels, channels, 3, 1, self.pick(1, channels), rate))
                 for rate in (1, 2)]
        both = self.op("Concat", *(self.op("Unsqueeze", p, self.ints(1)) for p in parts), axis=1)
        mean = self.op("ReduceMean", self.op("ReduceSum", both, self.ints(1), keepdims=0), self.ints(2, 3), keepdims=1)
        gate = self.conv_of(self.op("Relu", self.conv_of(mean, channels, 16)), 16, 2 * channels)
        gate = self.op("Softmax", self.reshape(gate, 1, 2, channels, 1, 1), axis=1)
        self.value = self.op("ReduceSum", self.op("Mul", both, gate), self.ints(1), keepdims=0)

    def focal_modulation(self):
        """Contexts of growing windows, each with its gate, modulate the queries."""
        self.to_picture()
        _, channels, height, width = self.shape
        levels = 2
        x = self.product(self.transpose(self.value, 0, 2, 3, 1), channels, 2 * channels + levels + 1)
        x = self.transpose(x, 0, 3, 1, 2)
        q, context, gates = self.op("Split", x, self.ints(channels, channels, levels + 1), outputs=3, axis=1)
        total = None
        for level in range(levels):
            context = self.op("Gelu", self.conv_of(context, channels, channels, 3 + 2 * level, 1, channels))
            gated = self.op("Mul", context, self.cut(gates, 1, level, level + 1))
            total = gated if total is None else self.op("Add", total, gated)
        mean = self.op("Gelu", self.op("ReduceMean", context, self.ints(2, 3), keepdims=1))
        total = self.op("Add", total, self.op("Mul", mean, self.cut(gates, 1, levels, levels + 1)))
        self.value = self.op("Mul", q, self.conv_of(total, channels, channels))

    def cross_stage(self):
        """YOLO's C2f: halves, bottlenecks one behind the other, all of them joined."""
        self.to_picture()
        channels = self.shape[1]
        half = channels // 2
        x = self.silu(self.conv_of(self.value, channels, 2 * half))
        parts = list(self.op("Split", x, outputs=2, axis=1, num_outputs=2))
        for _ in range(2):
            y = self.silu(self.conv_of(parts[-1], half, half, 3))
            parts.append(self.op("Add", parts[-1], self.silu(self.conv_of(y, half, half, 3))))
        self.value = self.silu(self.conv_of(self.op("Concat", *parts, axis=1), 4 * half, channels))

    def pooling_chain(self):
        self.to_picture()
        channels = self.shape[1]
        half = channels // 2
        parts = [self.silu(self.conv_of(self.value, channels, half))]
        for _ in range(3):
            parts.append(self.op("MaxPool", parts[-1], kernel_shape=[5, 5], strides=[1, 1], pads=[2] * 4))
        self.value = self.silu(self.conv_of(self.op("Concat", *parts, axis=1), 4 * half, channels))

    def detect_head(self):
        """YOLO's head: boxes as distributions, classes beside them, all positions in rows."""
        self.to_picture()
        _, channels, height, width = self.shape
        length = height * width
        boxes = self.conv_of(self.silu(self.conv_of(self.value, channels, 64, 3)), 64, 64)
        classes = self.conv_of(self.silu(self.conv_of(self.value, channels, 32, 3)), 32, 20)
        x = self.reshape(self.op("Concat", boxes, classes, axis=1), 1, 84, length)
        boxes, classes = self.op("Split", x, self.ints(64, 20), outputs=2, axis=1)
        if self.rng.random() < 0.5:
            boxes = self.transpose(self.reshape(boxes, 1, 4, 16, length), 0, 2, 1, 3)
            boxes = self.op("Softmax", boxes, axis=1)
        else:
            boxes = self.op("Softmax", self.transpose(self.reshape(boxes, 1, 4, 16, length), 0, 3, 1, 2), axis=3)
            boxes = self.transpose(boxes, 0, 3, 2, 1)
        boxes = self.op("Conv", boxes, self.const(np.arange(16).reshape(1, 16, 1, 1)), kernel_shape=[1, 1])
        boxes = self.reshape(boxes, 1, 4, length)
        low, high = self.cut(boxes, 1, 0, 2), self.cut(boxes, 1, 2, 4)
        anchors = self.const(self.rng.random((1, 2, length)))
        first, second = self.op("Sub", anchors, low), self.op("Add", anchors, high)
        centre = self.op("Div", self.op("Add", first, second), self.scalar(2))
        rows = self.op("Concat", centre, self.op("Sub", second, first), self.op("Sigmoid", classes), axis=1)
        self.value = self.product(self.transpose(rows, 0, 2, 1), 24, 32)
        self.shape = [1, length, 32]

    def upsample_concat(self):
        """A decoder's step: the small picture resized and joined with what it came from."""
        self.to_picture()
        _, channels, height, width = self.shape
        if height % 2 or width % 2:
            return
        small = self.op("Relu", self.conv_of(self.value, channels, channels, 3, 2))
        mode, place = self.pick(("nearest", "asymmetric"), ("linear", "align_corners"), ("linear", "half_pixel"),
                                ("cubic", "half_pixel"))
        up = self.op("Resize", small, "", "", self.ints(1, channels, height, width), mode=mode,
                     coordinate_transformation_mode=place)
        self.value = self.op("Relu", self.conv_of(self.op("Concat", up, self.value, axis=1), 2 * channels, channels, 3))

    def fuse_scales(self):
        """HRNet: each resolution is the sum of all, resized or strided."""
        self.to_picture()
        _, channels, height, width = self.shape
        if height % 2 or width % 2:
            return
        low = self.op("Relu", self.conv_of(self.value, channels, 2 * channels, 3, 2))
        high = self.op("Relu", self.conv_of(self.value, channels, channels, 3))
        up = self.op("Resize", self.conv_of(low, 2 * channels, channels), "", self.const([1, 1, 2, 2]), mode="nearest",
                     coordinate_transformation_mode="asymmetric", nearest_mode="floor")
        self.value = self.op("Relu", self.op("Add", high, up))

    def channel_conv(self):
        """ECA: a convolution along the channels' means."""
        self.to_picture()
        channels = self.shape[1]
        y = self.reshape(self.op("GlobalAveragePool", self.value), 1, 1, channels)
        y = self.op("Conv", y, self.weight(1, 1, 3), kernel_shape=[3], pads=[1, 1])
        self.value = self.op("Mul", self.value, self.op("Sigmoid", self.reshape(y, 1, channels, 1, 1)))

    def blur_pool(self):
        self.to_picture()
        _, channels, height, width = self.shape
        if height < 14:
            return
        x = self.op("Pad", self.value, self.ints(0, 0, 1, 1, 0, 0, 1, 1), mode="reflect")
        filters = np.tile(np.outer([1, 2, 1], [1, 2, 1]) / 16, (channels, 1, 1, 1))
        self.value = self.op("Conv", x, self.const(filters), kernel_shape=[3, 3], strides=[2, 2], group=channels)
        self.shape = [1, channels, (height + 2 - 3) // 2 + 1, (width + 2 - 3) // 2 + 1]

    def sample_grid(self):
        """Positions that the network computes itself are sampled."""
        self.to_picture()
        _, channels, height, width = self.shape
        if height > 40:
            return
        offsets = self.op("Tanh", self.conv_of(self.value, channels, 2, 3))
        grid = self.transpose(offsets, 0, 2, 3, 1)
        self.value = self.op("GridSample", self.value, grid, mode=self.pick("linear", "nearest"),
                             padding_mode=self.pick("zeros", "border"), align_corners=0)

    def large_kernel(self):
        self.to_picture()
        channels = self.shape[1]
        x = self.conv_of(self.value, channels, channels, 5, 1, channels)
        x = self.conv_of(x, channels, channels, 7, 1, channels, 3) if self.rng.random() < 0.5 else \
            self.conv_of(x, channels, channels, 13, 1, channels)
        self.value = self.op("Mul", self.value, self.conv_of(x, channels, channels))

    def mixed_kernels(self):
        self.to_picture()
        channels = self.shape[1]
        sizes = [channels // 2, channels // 4, channels - channels // 2 - channels // 4]
        parts = self.op("Split", self.value, self.ints(*sizes), outputs=3, axis=1)
        done = [self.conv_of(part, size, size, window, 1, size)
                for part, size, window in zip(parts, sizes, (3, 5, 7))]
        self.value = self.silu(self.op("Concat", *done, axis=1))

    def dynamic_weights(self):
        """CondConv: the convolution's weights are a mixture that the picture's mean chooses."""
        self.to_picture()
        _, channels, height, width = self.shape
        if channels > 64:
            return
        experts, window = 4, self.pick(1, 3)
        mean = self.op("Flatten", self.op("GlobalAveragePool", self.value))
        routes = self.op("Sigmoid", self.product(mean, channels, experts))
        count = channels * channels * window * window
        kernel = self.op("MatMul", routes, self.const(self.rng.standard_normal((experts, count)) / channels))
        kernel = self.reshape(kernel, channels, channels, window, window)
        self.value = self.op("Conv", self.value, kernel, kernel_shape=[window] * 2, pads=[window // 2] * 4)

    def restyle(self):
        """AdaIN: each channel normalised, then scaled and moved by numbers made of another mean."""
        self.to_picture()
        channels = self.shape[1]
        style = self.product(self.op("Flatten", self.op("GlobalMaxPool", self.value)), channels, 2 * channels)
        scale, shift = (self.reshape(self.cut(style, 1, i * channels, (i + 1) * channels), 1, channels, 1, 1)
                        for i in range(2))
        mean = self.op("ReduceMean", self.value, self.ints(2, 3), keepdims=1)
        centred = self.op("Sub", self.value, mean)
        variance = self.op("ReduceMean", self.op("Mul", centred, centred), self.ints(2, 3), keepdims=1)
        x = self.op("Div", centred, self.op("Sqrt", self.op("Add", variance, self.scalar(1e-5))))
        self.value = self.op("LeakyRelu", self.op("Add", self.op("Mul", x, scale), shift), alpha=0.2)

    def stylised_upsample(self):
        """Style transfer's decoder: resized, padded by reflection, convolved, normalised by instance."""
        self.to_picture()
        _, channels, height, width = self.shape
        if height > 28:
            return
        out = self.pick(16, 32)
        x = self.op("Resize", self.value, "", self.const([1, 1, 2, 2]), mode="nearest")
        x = self.op("Pad", x, self.ints(0, 0, 1, 1, 0, 0, 1, 1), mode="reflect")
        x = self.op("Conv", x, self.weight(out, channels, 3, 3), self.weight(out), kernel_shape=[3, 3])
        x = self.op("InstanceNormalization", x, self.weight(out), self.weight(out))
        self.value, self.shape = self.op("Relu", x), [1, out, 2 * height, 2 * width]

    def focus(self):
        self.to_picture()
        _, channels, height, width = self.shape
        if height % 2 or width % 2 or channels > 48:
            return
        parts = [self.cut(self.cut(self.value, 2, i, height, 2), 3, j, width, 2) for j in (0, 1) for i in (0, 1)]
        x = self.op("Concat", *parts, axis=1)
        self.value, self.shape = self.silu(self.conv_of(x, 4 * channels, 64, 3)), [1, 64, height // 2, width // 2]

    def layer_scale(self):
        """ConvNeXt: depthwise, channels last, two products, a scale for each channel, and back."""
        self.to_picture()
        channels = self.shape[1]
        x = self.conv_of(self.value, channels, channels, 7, 1, channels)
        x = self.norm_of(self.transpose(x, 0, 2, 3, 1), channels)
        x = self.product(self.op("Gelu", self.product(x, channels, 4 * channels)), 4 * channels, channels)
        x = self.op("Mul", x, self.weight(channels))
        self.value = self.op("Add", self.value, self.transpose(x, 0, 3, 1, 2))

    def nested_windows(self):
        """MobileViT: pixels of 2 x 2 patches, the same place of all patches in a row."""
        self.to_picture()
        _, channels, height, width = self.shape
        if height % 2 or width % 2:
            return
        rows, columns = height // 2, width // 2
        x = self.transpose(self.reshape(self.value, channels * rows, 2, columns, 2), 0, 2, 1, 3)
        x = self.transpose(self.reshape(x, 1, channels, rows * columns, 4), 0, 3, 2, 1)
        y = self.norm_of(self.reshape(x, 4, rows * columns, channels), channels)
        q, k, v = (self.reshape(self.product(y, channels, channels), 4, 1, rows * columns, channels) for _ in range(3))
        y = self.reshape(self.attend(q, k, v, channels), 1, 4, rows * columns, channels)
        y = self.op("Add", x, y)
        y = self.transpose(self.reshape(self.transpose(y, 0, 3, 2, 1), channels * rows, columns, 2, 2), 0, 2, 1, 3)
        self.value = self.reshape(y, 1, channels, height, width)

    def video_conv(self):
        """(2 + 1)-D: planes, then through time; channels are cut into frames."""
        self.to_picture()
        _, channels, height, width = self.shape
        frames = 4
        if channels % frames or channels < 32 or height > 28:
            return
        each = channels // frames
        x = self.reshape(self.value, 1, each, frames, height, width)
        x = self.op("Relu", self.op("Conv", x, self.weight(2 * each, each, 1, 3, 3), kernel_shape=[1, 3, 3],
                                    pads=[0, 1, 1, 0, 1, 1]))
        x = self.op("Conv", x, self.weight(each, 2 * each, 3, 1, 1), kernel_shape=[3, 1, 1], pads=[1, 0, 0, 1, 0, 0])
        self.value = self.reshape(x, 1, channels, height, width)

    # Sequences of sound.
    def spectrum(self):
        """Tokens as one wave: frames times sines, their power, bands and a logarithm."""
        self.to_tokens()
        _, length, width = self.shape
        if length * width < 8000 or length * width > 200000:
            return
        wave = self.reshape(self.value, 1, 1, length * width)
        window, hop, bins = 400, 160, 101
        frames = (length * width - window) // hop + 1
        x = self.op("Conv", wave, self.weight(2 * bins, 1, window), kernel_shape=[window], strides=[hop])
        real, imaginary = self.op("Split", x, outputs=2, axis=1, num_outputs=2)
        power = self.op("Add", self.op("Pow", real, self.scalar(2)), self.op("Pow", imaginary, self.scalar(2)))
        mel = self.op("MatMul", self.const(np.abs(self.rng.standard_normal((40, bins)))), power)
        mel = self.op("Log", self.op("Clip", mel, self.scalar(1e-5)))
        self.value, self.shape = self.transpose(mel, 0, 2, 1), [1, frames, 40]

    def conformer_conv(self):
        """A gated product, a long depthwise convolution along the tokens, and a product."""
        self.to_tokens()
        before, (_, length, width) = self.value, self.shape
        x = self.transpose(self.norm_of(before, width), 0, 2, 1)
        x = self.op("Conv", x, self.weight(2 * width, width, 1), self.weight(2 * width), kernel_shape=[1])
        a, b = self.op("Split", x, outputs=2, axis=1, num_outputs=2)
        window = self.pick(15, 31)
        x = self.op("Conv", self.op("Mul", a, self.op("Sigmoid", b)), self.weight(width, 1, window), self.weight(width),
                    kernel_shape=[window], pads=[window // 2] * 2, group=width)
        x = self.op("Conv", self.silu(x), self.weight(width, width, 1), self.weight(width), kernel_shape=[1])
        self.value = self.op("Add", before, self.transpose(x, 0, 2, 1))

    def wavenet(self):
        """Dilated causal convolutions along the tokens, gated."""
        self.to_tokens()
        before, (_, length, width) = self.value, self.shape
        x = self.transpose(before, 0, 2, 1)
        for rate in (1, 2, 4):
            y = self.op("Pad", x, self.ints(0, 0, 2 * rate, 0, 0, 0))
            y = self.op("Conv", y, self.weight(2 * width, width, 3), self.weight(2 * width), kernel_shape=[3],
                        dilations=[rate])
            a, b = self.op("Split", y, outputs=2, axis=1, num_outputs=2)
            y = self.op("Mul", self.op("Tanh", a), self.op("Sigmoid", b))
            x = self.op("Add", x, self.op("Conv", y, self.weight(width, width, 1), kernel_shape=[1]))
        self.value = self.transpose(x, 0, 2, 1)

    def bidirectional(self):
        self.to_tokens()
        _, length, width = self.shape
        if length > 400 or width > 128:
            return
        hidden = self.pick(16, 32)
        x = self.transpose(self.value, 1, 0, 2)
        kind, gates = self.pick(("GRU", 3), ("LSTM", 4))
        more = {"linear_before_reset": 1} if kind == "GRU" else {}
        y = self.op(kind, x, self.weight(2, gates * hidden, width), self.weight(2, gates * hidden, hidden),
                    self.weight(2, 2 * gates * hidden), hidden_size=hidden, direction="bidirectional", **more)
        y = self.reshape(self.transpose(y, 0, 2, 1, 3), length, 1, 2 * hidden)
        self.value, self.shape = self.transpose(y, 1, 0, 2), [1, length, 2 * hidden]
