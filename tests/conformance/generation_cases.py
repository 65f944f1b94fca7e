"""Cases of the operators that generate text, over small decoders with random weights in the forms that exporters write."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

RNG = np.random.default_rng(11)
LAST = 32  # positions that a decoder knows


def _weight(name, *shape, scale=1.0):
    return numpy_helper.from_array((RNG.standard_normal(shape) * scale).astype(np.float32), name)


def _ints(name, *values):
    return numpy_helper.from_array(np.array(values, np.int64), name)


def _value(name, kind, shape):
    return helper.make_tensor_value_info(name, kind, shape)


def _heads(nodes, x, width, heads, label):
    """x [batch, length, width] as [batch, heads, length, head]."""
    nodes.append(helper.make_node("Reshape", [x, "split"], [label + "_split"]))
    nodes.append(helper.make_node("Transpose", [label + "_split"], [label], perm=[0, 2, 1, 3]))


def _attend_by_parts(nodes, layer, width, heads):
    """Attention as an exporter writes it out: a causal mask cut to the run's lengths, and a bias for padding."""
    add = lambda op, inputs, output, **more: nodes.append(helper.make_node(op, inputs, output, **more))
    add("Split", [f"all{layer}"], [f"{p}{layer}" for p in "qkv"], axis=2, num_outputs=3)
    for part in "qkv":
        _heads(nodes, f"{part}{layer}", width, heads, f"{part}h{layer}")
    add("Split", [f"past_{layer}"], [f"pk{layer}", f"pv{layer}"], axis=0, num_outputs=2)
    for part in "kv":
        add("Squeeze", [f"p{part}{layer}", "axis0"], [f"ps{part}{layer}"])
        add("Concat", [f"ps{part}{layer}", f"{part}h{layer}"], [f"{part}c{layer}"], axis=2)
        add("Unsqueeze", [f"{part}c{layer}", "axis0"], [f"{part}u{layer}"])
    add("Concat", [f"ku{layer}", f"vu{layer}"], [f"present_{layer}"], axis=0)
    add("Transpose", [f"kc{layer}"], [f"kt{layer}"], perm=[0, 1, 3, 2])
    add("MatMul", [f"qh{layer}", f"kt{layer}"], [f"s{layer}"])
    add("Shape", [f"kc{layer}"], [f"end{layer}"], start=2, end=3)
    add("Shape", [f"qh{layer}"], [f"new{layer}"], start=2, end=3)
    add("Sub", [f"end{layer}", f"new{layer}"], [f"begin{layer}"])
    add("Slice", ["causal", f"begin{layer}", f"end{layer}", "axis2"], [f"rows{layer}"])
    add("Slice", [f"rows{layer}", "axis0", f"end{layer}", "axis3"], [f"seen{layer}"])
    add("Where", [f"seen{layer}", f"s{layer}", "filter"], [f"sc{layer}"])
    add("Cast", ["attention_mask"], [f"m{layer}"], to=TensorProto.FLOAT)
    add("Sub", ["one", f"m{layer}"], [f"mi{layer}"])
    add("Unsqueeze", [f"mi{layer}", "axes12"], [f"mu{layer}"])
    add("Mul", [f"mu{layer}", "filter"], [f"mb{layer}"])
    add("Add", [f"sc{layer}", f"mb{layer}"], [f"sb{layer}"])
    add("Softmax", [f"sb{layer}"], [f"w{layer}"], axis=-1)
    add("MatMul", [f"w{layer}", f"vc{layer}"], [f"o{layer}"])
    add("Transpose", [f"o{layer}"], [f"ot{layer}"], perm=[0, 2, 1, 3])
    add("Reshape", [f"ot{layer}", "joined"], [f"a{layer}"])


def gpt(vocabulary=17, width=8, heads=2, layers=1, fused=True):
    """input_ids, position_ids, attention_mask, one cache per layer; attention as one operator, or in parts."""
    head = width // heads
    nodes = [helper.make_node("Gather", ["words", "input_ids"], ["we"]),
             helper.make_node("Gather", ["places", "position_ids"], ["pe"]),
             helper.make_node("Add", ["we", "pe"], ["hidden0"])]
    weights = [_weight("words", vocabulary, width, scale=2), _weight("places", LAST, width),
               _weight("out", width, vocabulary, scale=width ** -0.5)]
    if not fused:
        weights += [_ints("split", 0, 0, heads, head), _ints("joined", 0, 0, width), _ints("axis0", 0),
                    _ints("axis2", 2), _ints("axis3", 3), _ints("axes12", 1, 2),
                    numpy_helper.from_array(np.tril(np.ones((1, 1, LAST, LAST), bool)), "causal"),
                    numpy_helper.from_array(np.array(-10000, np.float32), "filter"),
                    numpy_helper.from_array(np.array(1, np.float32), "one")]
    for i in range(layers):
        weights += [_weight(f"qkv{i}", width, 3 * width, scale=1.5 * width ** -0.5), _weight(f"bias{i}", 3 * width),
                    _weight(f"back{i}", width, width, scale=1.5 * width ** -0.5)]
        if fused:
            nodes.append(helper.make_node("Attention", [f"hidden{i}", f"qkv{i}", f"bias{i}", "attention_mask", f"past_{i}"],
                                          [f"a{i}", f"present_{i}"], domain="com.microsoft", num_heads=heads,
                                          unidirectional=1))
        else:
            nodes += [helper.make_node("MatMul", [f"hidden{i}", f"qkv{i}"], [f"p{i}"]),
                      helper.make_node("Add", [f"p{i}", f"bias{i}"], [f"all{i}"])]
            _attend_by_parts(nodes, i, width, heads)
        nodes += [helper.make_node("MatMul", [f"a{i}", f"back{i}"], [f"b{i}"]),
                  helper.make_node("Add", [f"hidden{i}", f"b{i}"], [f"hidden{i + 1}"])]
    nodes.append(helper.make_node("MatMul", [f"hidden{layers}", "out"], ["logits"]))
    inputs = [_value("input_ids", TensorProto.INT32, ["b", "s"]), _value("position_ids", TensorProto.INT32, ["b", "s"]),
              _value("attention_mask", TensorProto.INT32, ["b", "t"])]
    inputs += [_value(f"past_{i}", TensorProto.FLOAT, [2, "b", heads, "p", head]) for i in range(layers)]
    outputs = [_value("logits", TensorProto.FLOAT, ["b", "s", vocabulary])]
    outputs += [_value(f"present_{i}", TensorProto.FLOAT, [2, "b", heads, "t", head]) for i in range(layers)]
    return helper.make_graph(nodes, "decoder", inputs, outputs, weights)


def _t5_self(nodes, width, past):
    """Attention of `q` to all tokens so far, in parts: o [batch, 1, width]."""
    add = lambda op, inputs, output, **more: nodes.append(helper.make_node(op, inputs, output, **more))
    for part in "kv":
        _heads(nodes, part, width, 2, f"{part}h")
        name = {"k": "present_key_self_0", "v": "present_value_self_0"}[part]
        add("Concat", ([f"past_{part}"] if past else []) + [f"{part}h"], [name], axis=2)
    add("Transpose", ["present_key_self_0"], ["kt"], perm=[0, 1, 3, 2])
    add("MatMul", ["qh", "kt"], ["s"])
    add("Shape", ["present_key_self_0"], ["length"], start=2, end=3)
    add("Slice", ["places", "axis0", "length", "axis3"], ["at"])
    add("Add", ["s", "at"], ["sb"])
    add("Softmax", ["sb"], ["p"], axis=-1)
    add("MatMul", ["p", "present_value_self_0"], ["oh"])
    add("Transpose", ["oh"], ["ot"], perm=[0, 2, 1, 3])
    add("Reshape", ["ot", "joined"], ["o"])


def _t5_fused(nodes, past):
    """The same as an operator of com.microsoft; the bias is that of the last of all positions."""
    add = lambda op, inputs, output, **more: nodes.append(helper.make_node(op, inputs, output, **more))
    if past:
        add("Shape", ["past_k"], ["before"], start=2, end=3)
        add("Add", ["before", "single"], ["length"])
    else:
        add("Identity", ["single"], ["length"])
    add("Slice", ["places", "axis0", "length", "axis3"], ["to"])
    add("Concat", ["to", "to"], ["rows"], axis=2)
    add("Slice", ["rows", "minus1", "end", "axis2"], ["at"])
    add("MultiHeadAttention", ["q", "k", "v", "", "", "at"] + (["past_k", "past_v"] if past else []),
        ["o", "present_key_self_0", "present_value_self_0"], domain="com.microsoft", num_heads=2)


def _t5_step(nodes, width, past, fused):
    """The decoder of T5's form for the tokens `ids` [batch, 1]: itself and the encoder, with biases by position."""
    add = lambda op, inputs, output, **more: nodes.append(helper.make_node(op, inputs, output, **more))
    add("Gather", ["words", "ids"], ["x"])
    for part in "qkv":
        add("MatMul", ["x", f"w{part}"], [part])
    _heads(nodes, "q", width, 2, "qh")
    _t5_fused(nodes, past) if fused else _t5_self(nodes, width, past)
    add("Transpose", ["cross_k"], ["ct"], perm=[0, 1, 3, 2])
    add("MatMul", ["qh", "ct"], ["c"])
    add("Cast", ["encoder_attention_mask"], ["m"], to=TensorProto.FLOAT)
    add("Sub", ["m", "one"], ["mi"])
    add("Mul", ["mi", "large"], ["ml"])
    add("Unsqueeze", ["ml", "axes12"], ["mu"])
    add("Add", ["c", "mu"], ["cb"])
    add("Softmax", ["cb"], ["cp"], axis=-1)
    add("MatMul", ["cp", "cross_v"], ["co"])
    add("Transpose", ["co"], ["back"], perm=[0, 2, 1, 3])
    add("Reshape", ["back", "joined"], ["flat"])
    add("Add", ["o", "flat"], ["both"])
    add("Add", ["x", "both"], ["y"])
    add("MatMul", ["y", "out"], ["logits"])


def t5(vocabulary=13, width=8, starts=True, fused=False):
    """Encoder and decoder. `starts`: the encoder takes the first token, as the older form does."""
    head, kind = width // 2, TensorProto.FLOAT
    weights = [_weight("words", vocabulary, width, scale=2), _weight("out", width, vocabulary, scale=0.4),
               _weight("places", 1, 2, 1, LAST), _ints("split", 0, 0, 2, head), _ints("joined", 0, 0, width),
               _ints("axis0", 0), _ints("axis3", 3), _ints("axes12", 1, 2),
               numpy_helper.from_array(np.array(1, np.float32), "one"),
               numpy_helper.from_array(np.array(10000, np.float32), "large")]
    weights += [_ints("single", 1), _ints("minus1", -1), _ints("end", 2 ** 31), _ints("axis2", 2)]
    weights += [_weight(f"w{part}", width, width, scale=0.5) for part in ("q", "k", "v", "ck", "cv")]
    encode = [helper.make_node("Gather", ["words", "encoder_input_ids"], ["e"])]
    for part, name in (("k", "present_key_cross_0"), ("v", "present_value_cross_0")):
        encode.append(helper.make_node("MatMul", ["e", f"wc{part}"], [f"e{part}"]))
        _heads(encode, f"e{part}", width, 2, name)
    decode = []
    _t5_step(decode, width, True, fused)
    ids, mask = TensorProto.INT32, _value("encoder_attention_mask", TensorProto.INT32, ["b", "e"])
    inputs = [_value("encoder_input_ids", ids, ["b", "e"]), mask]
    cross = [_value(f"present_{part}_cross_0", kind, ["b", 2, "e", head]) for part in ("key", "value")]
    own = [_value(f"present_{part}_self_0", kind, ["b", 2, "t", head]) for part in ("key", "value")]
    logits = _value("logits", kind, ["b", 1, vocabulary])
    if starts:
        encode += [helper.make_node("Identity", [f"present_{part}_cross_0"], [f"cross_{part[0]}"])
                   for part in ("key", "value")]
        encode.append(helper.make_node("Identity", ["decoder_input_ids"], ["ids"]))
        _t5_step(encode, width, False, fused)
        encode.append(helper.make_node("Identity", ["e"], ["encoder_hidden_states"]))
        inputs.append(_value("decoder_input_ids", ids, ["b", 1]))
        cross = [logits, _value("encoder_hidden_states", kind, ["b", "e", width]), *own, *cross]
    encoder = helper.make_graph(encode, "encoder", inputs, cross, weights)
    decode.insert(0, helper.make_node("Identity", ["input_ids"], ["ids"]))
    given = [_value("input_ids", ids, ["b", 1]), mask]
    given += [_value(f"past_{part}", kind, ["b", 2, "p", head]) for part in "kv"]
    given += [_value(f"cross_{part}", kind, ["b", 2, "e", head]) for part in "kv"]
    return encoder, helper.make_graph(decode, "decoder", given, [logits, *own], weights)


def add_cases(case, const):
    """Searches whose sequences do not all end early: what ONNX Runtime leaves behind such an end is not defined."""
    i32 = lambda *values: const(np.array(values, np.int32))
    prompt, most = np.array([[3, 5, 7], [9, 9, 2]], np.int32), i32(9)
    ends = {"eos_token_id": 16, "pad_token_id": 9, "model_type": 0}
    allowed = const((np.arange(17) % 5 != 1).astype(np.int32))
    first = const(np.array([[1] * 8 + [0] * 9, [0] * 10 + [1] * 7], np.int32))
    penalty = const(np.array([1.7], np.float32))
    beams, f32 = [i32(3), i32(2)], lambda value: const(np.array([value], np.float32))
    for label, decoder in (("fused", gpt()), ("parts", gpt(layers=2, fused=False))):
        case("GreedySearch", [prompt, most], label=label, version=18, decoder=decoder, **ends)
        case("GreedySearch", [prompt, most, i32(7), penalty, allowed, first], label=f"{label}_penalties", version=18,
             decoder=decoder, no_repeat_ngram_size=2, **ends)
        case("Sampling", [prompt, most, i32(1), f32(1.2)], label=label, version=18, decoder=decoder, temperature=0.7,
             top_p=0.001, custom=1, **ends)  # one token is left
        case("BeamSearch", [prompt, most, i32(1), *beams, f32(1.0)], outputs=3, label=label, version=18,
             decoder=decoder, **ends)
        case("BeamSearch", [prompt, most, i32(6), *beams, f32(0.6), penalty, allowed, first], outputs=2,
             label=f"{label}_penalties", version=18, decoder=decoder, no_repeat_ngram_size=2, early_stopping=1, **ends)
    ids = np.array([[3, 5, 7, 1], [0, 0, 9, 2]], np.int32)
    for label, starts, fused in (("t5_first", True, False), ("t5", False, False), ("t5_fused", True, True)):
        encoder, decoder = t5(starts=starts, fused=fused)
        case("BeamSearch", [ids, most, i32(3), *beams, f32(0.8)], outputs=2, label=label, version=18, encoder=encoder,
             decoder=decoder, decoder_start_token_id=0, eos_token_id=4, pad_token_id=0, model_type=1)
