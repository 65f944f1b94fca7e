"""Cases for contrib_cases.py: attention over packed tokens, over blocks and windows and inside decoders, and operators
around such models. ONNX Runtime's CPU provider has some of them; the others are written here from their contracts.
"""
import numpy as np

RNG = np.random.default_rng(21)


def f32(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def attend(q, k, v, allowed, scale, bias=0.0):
    scores = np.where(allowed, q @ k.swapaxes(-1, -2) * scale + bias, -np.inf)
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    return shares / shares.sum(-1, keepdims=True) @ v


def heads_of(x, heads):  # [batch, length, width]
    return x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3)


def joined(y):
    return y.transpose(0, 2, 1, 3).reshape(y.shape[0], y.shape[2], -1)


def packed(case, constant):
    batch, length, width, heads = 3, 4, 8, 2
    counts = np.array([1, 2, 4])
    places = [b * length + i for b in range(batch) for i in range(counts[b])]
    offset = np.array(places + [i for i in range(batch * length) if i not in places], np.int32)
    offset, starts = offset.reshape(batch, length), np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)

    def padded(x):
        out = np.zeros((batch * length, x.shape[1]), np.float32)
        out[places] = x
        return out.reshape(batch, length, -1)

    def attention(q, k, v, bias=0.0):
        allowed = (np.arange(length) < counts[:, None])[:, None, None]
        y = attend(*(heads_of(padded(x), heads) for x in (q, k, v)), allowed, (width // heads) ** -0.5, bias)
        return joined(y).reshape(batch * length, -1)[places]

    x, w, bias, more = f32(len(places), 6), f32(6, 3 * width), f32(3 * width), f32(1, heads, length, length)
    q, k, v = np.split(x @ w + bias, 3, 1)
    case("PackedAttention", [x, constant(w), constant(bias), offset, starts, more], num_heads=heads,
         expect=[attention(q, k, v, more)])
    case("PackedMultiHeadAttention", [q, k, v, None, offset, starts], num_heads=heads, expect=[attention(q, k, v)])
    joint = np.stack([part.reshape(len(places), heads, -1) for part in (q, k, v)], 2)
    case("PackedMultiHeadAttention", [joint, None, None, None, offset, starts], label="joint", num_heads=heads,
         expect=[attention(q, k, v)])
    whole = f32(batch, length, width)
    rows = whole.reshape(batch * length, width)
    case("RemovePadding", [whole, counts.astype(np.int32)], outputs=4,
         expect=[rows[places], offset, starts, np.array([4], np.int32)])
    case("RestorePadding", [rows[places], offset], expect=[padded(rows[places])])
    q, bias, positions = f32(2, 4, 6), f32(6), f32(1, 2, 4, 4)
    w, b, scale = f32(3, 8), f32(8), f32(1, 2, 1, 1)
    sums = (heads_of(q + bias, 2) @ w + b).reshape(2, 2, 4, 2, 4).sum(-1)
    gate, other = np.split(1 / (1 + np.exp(-sums)), 2, -1)
    case("GatedRelativePositionBias", [q, bias, positions, w, b, scale], num_heads=2,
         expect=[(gate * (other * scale - 1) + 2) * positions])


def sparse(case, constant):
    layouts, rows, block, size, heads, pairs = 2, 4, 16, 16, 4, 2
    seen = np.tril(np.ones((layouts, rows, rows), int))
    seen[1, 2:, 1] = seen[0, 3, 0] = 0
    starts = np.array([[0, *np.cumsum(layout.sum(1))] for layout in seen], np.int32)
    columns = [np.nonzero(layout)[1] for layout in seen]
    most = max(map(len, columns))
    columns = np.array([[*c, *[-1] * (most - len(c))] for c in columns], np.int32)
    length, room = 40, rows * block
    for batch, lengths in ((1, [40]), (2, [40, 37])):
        q, k, v = f32(batch, length, heads * size), f32(batch, length, pairs * size), f32(batch, length, pairs * size)
        past = np.zeros((batch, pairs, room, size), np.float32)
        at = np.arange(length)
        allowed = np.stack([(at <= at[:, None]) & (seen[h % layouts][at[:, None] // block, at // block] == 1)
                            for h in range(heads)])
        keys, values = heads_of(k, pairs), heads_of(v, pairs)
        y = attend(heads_of(q, heads), keys.repeat(2, 1), values.repeat(2, 1), allowed, 0.3)
        caches = [np.concatenate([x, past[:, :, length:]], 2) for x in (keys, values)]
        case("SparseAttention", [q, k, v, past, past, constant(starts), constant(columns), np.array([40], np.int32),
                                 np.array(lengths, np.int32)], outputs=3, label=f"batch{batch}", num_heads=heads,
             kv_num_heads=pairs, sparse_block_size=block, scale=0.3, expect=[joined(y), *caches])
    x, w, bias, other, last = f32(2, 8, 8), f32(8, 24), f32(24), f32(8, 24), f32(24)
    mask, everywhere = np.zeros((2, 8), np.float32), np.zeros((2, 8), np.int32)
    mask[1, 6:], everywhere[:, 0], everywhere[0, 5] = -10000, 1, 1
    at = np.arange(8)
    near = (abs(at - at[:, None]) <= 2) | (everywhere[:, None, None] == 1)
    local, full = ([heads_of(p, 2) for p in np.split(x @ a + b, 3, 2)] for a, b in ((w, bias), (other, last)))
    y = np.where(everywhere[:, None, :, None] == 1, attend(*full, True, 0.5, mask[:, None, None]),
                 attend(*local, near, 0.5, mask[:, None, None]))
    case("LongformerAttention", [x, w, bias, mask, other, last, everywhere], num_heads=2, window=2, expect=[joined(y)])


def decoders(case, constant):
    length, batch, width, heads, past = 3, 2, 8, 2, 5
    x, key = f32(length, batch, width), f32(4, batch, width)
    w, pair, bias = f32(width, width), f32(width, 2 * width), f32(3 * width)
    cache = [f32(batch, heads, past, width // heads) for _ in range(2)]

    def in_heads(y):
        return heads_of(y.transpose(1, 0, 2), heads)

    for cross in (False, True):
        for cached in (False, True):
            source = key if cross else x
            fresh = [in_heads(source @ pair[:, i * width:(i + 1) * width] + bias[(i + 1) * width:(i + 2) * width])
                     for i in range(2)]
            both = cache if cached and cross else [np.concatenate(p, 2) for p in zip(cache, fresh)] if cached else fresh
            hidden = np.zeros((batch, both[0].shape[2]), bool)
            hidden[1, :2] = True
            y = attend(in_heads(x @ w + bias[:width]), *both, True, (width // heads) ** -0.5,
                       np.where(hidden, -10000.0, 0.0)[:, None, None])
            flags = [constant(np.array([flag])) for flag in (cross, cached, cached, True)]
            case("DecoderAttention", [x, key, w, pair, bias, hidden, *(cache if cached else [None, None]), *flags],
                 outputs=3, label=f"{'cross' if cross else 'self'}{'_past' if cached else ''}", num_heads=heads,
                 expect=[joined(y).transpose(1, 0, 2).astype(np.float32), *both])
    x, w, bias, before = f32(batch, 1, width), f32(width, 3 * width), f32(3 * width), f32(2, batch, heads, past, 4)
    fresh = [heads_of(p, heads) for p in np.split(x @ w + bias, 3, 2)]
    after = np.stack([np.concatenate(p, 2) for p in zip(before, fresh[1:])])
    case("DecoderMaskedSelfAttention", [x, w, bias, None, before, None, np.array([past], np.int32)], outputs=2,
         num_heads=heads, expect=[joined(attend(fresh[0], *after, True, 0.5)), after])


def around(case, constant):
    position, angle = RNG.integers(0, 20, (3, 2, 3)), f32(20, 6)
    for layout, sections in ((0, [2, 3, 1]), (1, [2, 2, 2])):
        case("MRotaryEmbedding", [f32(2, 3, 24), position, constant(np.cos(angle)), constant(np.sin(angle))],
             label=f"layout{layout}", mrope_section=sections, mrope_layout=layout, num_heads=2)
    case("LinearAttention", [f32(2, 4, 8), 0.3 * f32(2, 4, 16), f32(2, 4, 12), None, -abs(f32(2, 4, 4)),
                             1 / (1 + abs(f32(2, 4, 4)))], outputs=2, label="shared_queries", q_num_heads=2,
         kv_num_heads=4)
    case("CausalConvWithState", [f32(2, 3, 7), f32(3, 1, 4), f32(3), f32(2, 3, 6)], outputs=2, dilation=2,
         activation="silu")
    case("ConvTransposeWithDynamicPads", [f32(1, 3, 4, 4), constant(f32(3, 2, 3, 3)),
                                          constant(np.array([1, 0, 1, 1])), constant(f32(2))], strides=[2, 2])
    case("Unique", [np.array([2, 1, 1, 3, 4, 3], np.float32)], outputs=3)
    streams, gates, mix = f32(2, 3, 4, 8), f32(2, 3, 4), f32(2, 3, 4, 4)
    case("HyperConnectionPreMix", [streams, gates], reduction_scale=0.5)
    case("HyperConnectionPostMix", [streams, f32(2, 3, 8), gates, mix])
    case("EngramGate", [f32(2, 3, 4, 8), f32(2, 3, 4, 8), f32(2, 3, 8), f32(4, 8), f32(4, 8), f32(4, 8)], outputs=2)
    signal = f32(2, 3, 10)
    spectrum = np.fft.rfft(signal)
    bins = np.stack([spectrum.real, spectrum.imag], -1).astype(np.float32)
    case("Rfft", [signal], signal_ndim=1, expect=[bins])
    case("Irfft", [bins], signal_ndim=1, expect=[signal])


def add_cases(case, constant):
    for group in (packed, sparse, decoders, around):
        group(case, constant)
