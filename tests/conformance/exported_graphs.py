"""What exporters write around their layers: shapes computed from shapes, sizes that depend on data, and odd but
valid forms of a graph. exported_cases.py runs them."""

from onnx import helper, numpy_helper
import numpy as np
import onnx

import exported_shared as shared
from exported_shared import HEAD, case, f32, parsed, weights


@case
def named_dims():
    m = parsed(HEAD % 17 + """
        g (float[batch,seq] x, float[batch,seq] z) => (float[batch,one] y) { a=Add(x,z)
        y=ReduceMean<axes=[1],keepdims=1>(a) }""")
    return m, {"x": f32(3, 7), "z": f32(3, 7)}, ["--shape", "batch=3", "--shape", "seq=7"]


@case
def pytorch_view_dynamic():
    # x.view(x.size(0), -1, 4).permute, the exporter's Shape/Gather/Unsqueeze/Concat/Reshape
    m = parsed(HEAD % 11 + """
        g (float[B,S,8] x) => (float[P,Q,R,U] y) { s=Shape(x) i0=Constant<value=int64 {0}>()
        i1=Constant<value=int64 {1}>() b=Gather<axis=0>(s,i0) t=Gather<axis=0>(s,i1) bu=Unsqueeze<axes=[0]>(b)
        tu=Unsqueeze<axes=[0]>(t) h=Constant<value=int64[1] {2}>() d=Constant<value=int64[1] {-1}>()
        sh=Concat<axis=0>(bu,tu,h,d) v=Reshape(x,sh) y=Transpose<perm=[0,2,1,3]>(v) }""")
    return m, {"x": f32(2, 5, 8)}, ["--shape", "B=2", "--shape", "S=5"]


@case
def empty_tensor():
    m = parsed(HEAD % 13 + """
        g (float[0,4] x, float[2,4] z) => (float[2,4] y, float[4] s) { y=Concat<axis=0>(x,z)
        ax=Constant<value=int64[1] {0}>() s=ReduceSum<keepdims=0>(x,ax) }""")
    return m, {"x": f32(0, 4), "z": f32(2, 4)}, []


@case
def zero_dim_matmul():
    m = parsed(HEAD % 13 + """
        g (float[3,0] x, float[0,4] z) => (float[3,4] y, float[3,0] w) { y=MatMul(x,z) w=Relu(x) }""")
    return m, {"x": f32(3, 0), "z": f32(0, 4)}, []


@case
def nonzero_gather():
    m = parsed(HEAD % 13 + """
        g (float[4,5] x) => (int64[2,k] nz, float[k] v) { z=Constant<value=float {0.3}>() c=Greater(x,z)
        nz=NonZero(c) t=Transpose(nz) v=GatherND(x,t) }""")
    return m, {"x": f32(4, 5)}, []


@case
def topk_dyn():
    m = parsed(HEAD % 11 + """
        g (float[3,9] x, int64[1] k) => (float[3,m] v, int64[3,m] i) {
        v,i=TopK<axis=1,largest=0,sorted=1>(x,k) }""")
    return m, {"x": f32(3, 9), "k": np.array([4], np.int64)}, []


@case
def dyn_range_posid():
    m = parsed(HEAD % 13 + """
        g (int64[B,S] ids) => (float[B,S,6] y) { s=Shape(ids) one=Constant<value=int64 {1}>()
        z=Constant<value=int64 {0}>() l=Gather(s,one) r=Range(z,l,one) u=Unsqueeze(r,ax) e=Expand(u,s)
        p=Gather(pe,e) w=Gather(we,ids) y=Add(p,w) }""")
    weights(m, ax=np.array([0], np.int64), pe=f32(32, 6), we=f32(50, 6))
    return m, {"ids": shared.RNG.integers(0, 50, (2, 7)).astype(np.int64)}, ["--shape", "ids=2x7"]


@case
def cumsum_mask_roberta():
    m = parsed(HEAD % 13 + """
        g (int64[B,S] ids) => (int64[B,S] y) { one=Constant<value=int64 {1}>() n=Equal(ids,one) k=Not(n)
        c=Cast<to=6>(k) ax=Constant<value=int32 {1}>() s=CumSum(c,ax) m=Mul(s,c) q=Cast<to=7>(m) y=Add(q,one)
        }""")
    return m, {"ids": shared.RNG.integers(0, 4, (2, 7)).astype(np.int64)}, ["--shape", "ids=2x7"]


@case
def where_broadcast_types():
    m = parsed(HEAD % 16 + """
        g (bool[3,1] c, int64[1,4] a, int64 b) => (int64[3,4] y, float[3,4] z) { y=Where(c,a,b) d=Mod(y,three)
        z=Cast<to=1>(d) }""")
    weights(m, three=np.array(3, np.int64))
    return (
        m,
        {
            "c": np.array([[1], [0], [1]], bool),
            "a": shared.RNG.integers(-9, 9, (1, 4)).astype(np.int64),
            "b": np.array(-5, np.int64),
        },
        [],
    )


@case
def opset7_old_attrs():
    m = parsed('<ir_version: 3, opset_import: ["":7]>' + """
        g (float[2,3,4,4] x, float[3] b) => (float[2,48] y, float[1,2,3,4,4] u) { bb=Unsqueeze<axes=[1,2]>(b)
        a=Add(x,bb) d=Dropout<ratio=0.3>(a) up=Upsample<mode="nearest",scales=[1.0,1.0,1.0,1.0]>(d)
        y=Flatten(up) u=Unsqueeze<axes=[0]>(up) }""")
    return m, {"x": f32(2, 3, 4, 4), "b": f32(3)}, []


@case
def opset9_slice_attr():
    m = parsed('<ir_version: 4, opset_import: ["":9]>' + """
        g (float[4,6,5] x) => (float[a,b,c] y, float[2,a3] z) {
        y=Slice<starts=[1,-3],ends=[-1,1000],axes=[0,2]>(x) r=ReduceL2<axes=[-1,-2],keepdims=0>(x)
        t=Reshape(r,sh) z=Softmax(t) }""")
    weights(m, sh=np.array([2, 2], np.int64))
    return m, {"x": f32(4, 6, 5)}, []


@case
def clip_only_max():
    m = parsed(HEAD % 13 + """
        g (float[5] x) => (float[5] y) { y=Clip(x,"",mx) }""")
    m.graph.node[0].input[1] = ""
    weights(m, mx=np.float32(0.2))
    return m, {"x": f32(5)}, []


@case
def split_uneven18():
    m = parsed('<ir_version: 8, opset_import: ["":18]>' + """
        g (float[7,2] x) => (float[a,2] p, float[b,2] q, float[c,2] r) { p,q,r=Split<num_outputs=3>(x) }""")
    return m, {"x": f32(7, 2)}, []


@case
def unused_inputs_and_initializer_inputs():
    m = parsed('<ir_version: 3, opset_import: ["":8]>' + """
        g (float[2,3] x, float[3,3] w, float[7] unused) => (float[2,3] y) { y=MatMul(x,w) }""")
    weights(m, w=f32(3, 3))
    return m, {"x": f32(2, 3), "unused": f32(7)}, []


@case
def output_is_input_and_const():
    m = parsed(HEAD % 13 + """
        g (float[2,3] x) => (float[2,3] x2, float[2] k, float[2,3] same) { x2=Identity(x) same=Identity(x)
        kk=Constant<value=float[2] {1.0,2.0}>() k=Identity(kk) }""")
    return m, {"x": f32(2, 3)}, []


@case
def output_direct_input():
    m = parsed(HEAD % 13 + """
        g (float[2,3] x) => (float[2,3] x, float[2,3] y) { y=Neg(x) }""")
    return m, {"x": f32(2, 3)}, []


@case
def output_twice_intermediate():
    m = parsed(HEAD % 13 + """
        g (float[2,3] x) => (float[2,3] a, float[2,3] b) { a=Exp(x) b=Log(a) }""")
    return m, {"x": f32(2, 3)}, []


@case
def initializer_output():
    m = parsed(HEAD % 13 + """
        g (float[2] x) => (float[2] y, float[3] w) { y=Neg(x) }""")
    weights(m, w=f32(3))
    return m, {"x": f32(2)}, []


@case
def newer_ir():
    m = parsed(HEAD % 13 + """
        g (float[2,3] x) => (float[2,3] y) { y=Neg(x) }""")
    m.ir_version = 13
    return m, {"x": f32(2, 3)}, []


@case
def gather_neg_scalars_elements():
    m = parsed(HEAD % 13 + """
        g (float[3,4] x, int64[3,2] i, int32[2,2] j) => (float[3,2] y, float[2,2,4] z) {
        y=GatherElements<axis=-1>(x,i) z=Gather(x,j) }""")
    return (
        m,
        {
            "x": f32(3, 4),
            "i": np.array([[0, -1], [2, 1], [-4, 3]], np.int64),
            "j": np.array([[0, -1], [2, 1]], np.int32),
        },
        [],
    )


@case
def unknown_rank_input():
    g = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", 1, None)],
        [helper.make_tensor_value_info("y", 1, None)],
    )
    return (
        helper.make_model(g, opset_imports=[helper.make_opsetid("", 13)], ir_version=8),
        {"x": f32(2, 3)},
        ["--shape", "x=2x3"],
    )


@case
def no_output_shape_types():
    g = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", 1, [2, 3])],
        [onnx.ValueInfoProto(name="y")],
    )
    return helper.make_model(g, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), {"x": f32(2, 3)}, []


@case
def strings_equal():
    g = helper.make_graph(
        [helper.make_node("Equal", ["x", "k"], ["e"]), helper.make_node("Cast", ["e"], ["y"], to=7)],
        "g",
        [helper.make_tensor_value_info("x", 8, [3])],
        [helper.make_tensor_value_info("y", 7, [3])],
        [helper.make_tensor("k", 8, [3], [b"a", b"bb", b"c"])],
    )
    return (
        helper.make_model(g, opset_imports=[helper.make_opsetid("", 19)], ir_version=9),
        {"x": np.array(["a", "b", "c"], dtype=object)},
        [],
    )


@case
def scalar_inputs():
    m = parsed(HEAD % 13 + """
        g (float x, int64 i, float[5,2] t) => (float[2] y, float z) { e=Gather<axis=0>(t,i) y=Mul(e,x)
        z=Sqrt(x) }""")
    return m, {"x": np.array(2.5, np.float32), "i": np.array(-2, np.int64), "t": f32(5, 2)}, []


@case
def external_data():
    m = parsed(HEAD % 13 + """
        g (float[2,64] x) => (float[2,64] y) { y=MatMul(x,w) }""")
    weights(m, w=f32(64, 64))
    return m, {"x": f32(2, 64)}, []


@case
def layernorm_opset11():
    m = parsed(HEAD % 11 + """
        g (float[2,8] x) => (float[2,8] y) { y=LayerNormalization<axis=-1,epsilon=0.1>(x,w) }""")
    weights(m, w=f32(8))
    return m, {"x": f32(2, 8)}, []


@case
def softmax_opset11_axis():
    m = parsed(HEAD % 11 + """
        g (float[2,3,4] x) => (float[2,3,4] y, float[2,3,4] z, float[2,3,4] w) { y=Softmax(x)
        z=LogSoftmax<axis=-1>(x) w=Hardmax<axis=2>(x) }""")
    return m, {"x": f32(2, 3, 4)}, []


@case
def tile_expand_dyn():
    m = parsed(HEAD % 13 + """
        g (float[1,3] x, float[B,1] z) => (float[a,b] y, float[c,d] e) { s=Shape(z) r=Tile(x,s) y=Identity(r)
        t=Concat<axis=0>(s0,three) e=Expand(x,t) }""")
    weights(m, s0=np.array([4], np.int64), three=np.array([3], np.int64))
    return m, {"x": f32(1, 3), "z": f32(5, 1)}, ["--shape", "B=5"]


@case
def many_outputs_shared_dead():
    m = parsed(HEAD % 13 + """
        g (float[2,3] x) => (float[2,3] y) { a,b=Split<axis=0>(x) dead=Exp(a) c=Concat<axis=0>(b,a) y=Neg(c) }""")
    return m, {"x": f32(2, 3)}, []


@case
def reshape_allowzero_and_zero_copy():
    m = parsed(HEAD % 14 + """
        g (float[2,0,3] x, float[2,3,4] z) => (float[3,0,2] y, float[2,12] w) { y=Reshape<allowzero=1>(x,a)
        w=Reshape(z,b) }""")
    weights(m, a=np.array([3, 0, 2], np.int64), b=np.array([0, -1], np.int64))
    return m, {"x": f32(2, 0, 3), "z": f32(2, 3, 4)}, []


@case
def sparse_initializer():
    v = numpy_helper.from_array(np.array([1.5, -2.0, 3.0], np.float32), "w")
    i = numpy_helper.from_array(np.array([1, 5, 10], np.int64), "")
    sp = helper.make_sparse_tensor(v, i, [3, 4])
    g = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", 1, [2, 3])],
        [helper.make_tensor_value_info("y", 1, [2, 4])],
        sparse_initializer=[sp],
    )
    return helper.make_model(g, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), {"x": f32(2, 3)}, []


@case
def const_of_all_kinds():
    g = helper.make_graph(
        [
            helper.make_node("Constant", [], ["a"], value_float=1.5),
            helper.make_node("Constant", [], ["b"], value_floats=[1.0, 2.0, 3.0]),
            helper.make_node("Constant", [], ["c"], value_int=2),
            helper.make_node("Constant", [], ["d"], value_ints=[0]),
            helper.make_node("Mul", ["x", "a"], ["e"]),
            helper.make_node("Add", ["e", "b"], ["f"]),
            helper.make_node("Cast", ["c"], ["cf"], to=1),
            helper.make_node("Pow", ["f", "cf"], ["gg"]),
            helper.make_node("ReduceSum", ["gg", "d"], ["y"], keepdims=0),
        ],
        "g",
        [helper.make_tensor_value_info("x", 1, [2, 3])],
        [helper.make_tensor_value_info("y", 1, [3])],
    )
    return helper.make_model(g, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), {"x": f32(2, 3)}, []


@case
def string_constant_attr():
    g = helper.make_graph(
        [helper.make_node("Constant", [], ["k"], value_string="bb"), helper.make_node("Equal", ["x", "k"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", 8, [3])],
        [helper.make_tensor_value_info("y", 9, [3])],
    )
    return (
        helper.make_model(g, opset_imports=[helper.make_opsetid("", 19)], ir_version=9),
        {"x": np.array(["a", "bb", "c"], dtype=object)},
        [],
    )


def equal_to_constant(**constant):
    """Texts compared with those of a Constant node, which exporters give in more than one form."""
    g = helper.make_graph(
        [
            helper.make_node("Constant", [], ["k"], **constant),
            helper.make_node("Equal", ["x", "k"], ["y"]),
        ],
        "g",
        [helper.make_tensor_value_info("x", 8, [3])],
        [helper.make_tensor_value_info("y", 9, [3])],
    )
    return (
        helper.make_model(g, opset_imports=[helper.make_opsetid("", 19)], ir_version=9),
        {"x": np.array(["a", "bb", "c"], dtype=object)},
        [],
    )


@case
def string_constants_attr():
    return equal_to_constant(value_strings=["a", "bb", "q"])


@case
def string_constant_tensor():
    return equal_to_constant(value=helper.make_tensor("v", 8, [3], [b"a", b"bb", b"q"]))


@case
def scalar_outputs_everywhere():
    m = parsed(HEAD % 13 + """
        g (float[2,3] x) => (float a, int64 b, bool c, float[1] d) { a=ReduceMax<keepdims=0>(x)
        f=Reshape(x,neg) b0=ArgMax<axis=0,keepdims=0>(f) b=Identity(b0) z=Constant<value=float {0.0}>()
        c=Greater(a,z) d=Unsqueeze(a,ax) }""")
    weights(m, neg=np.array([-1], np.int64), ax=np.array([0], np.int64))
    return m, {"x": f32(2, 3)}, []


@case
def torch_dynamo_style():
    # torch.onnx dynamo: opset 18, aten function style, Shape<start,end>, Reshape allowzero, SplitToSequence ...
    m = parsed("""
        <ir_version: 10, opset_import: ["":18,"pkg.onnxscript.torch_lib":1]> main_graph (float[s0,3,8] x) =>
        (float[s0,24] view, float[s0,3] mx) { sz=Shape<end=1,start=0>(x) m1=Constant<value=int64[1] {-1}>()
        sh=Concat<axis=0>(sz,m1) view=Reshape<allowzero=1>(x,sh) ax=Constant<value=int64[1] {-1}>()
        mx=ReduceMax<keepdims=0,noop_with_empty_axes=0>(x,ax) }""")
    m.graph.node[3].attribute[0].i = 0
    return m, {"x": f32(5, 3, 8)}, ["--shape", "s0=5"]


@case
def paddle_style_fill():
    m = parsed(HEAD % 12 + """
        g (float[N,4] x) => (float[N,4] y, int64[N] z) { s=Shape(x) z0=Constant<value=int64[1] {0}>()
        o=Constant<value=int64[1] {1}>() b=Slice(s,z0,o) cs=ConstantOfShape<value=int64[1] {7}>(b)
        z=Identity(cs) f=Constant<value=int64[1] {4}>() bs=Concat<axis=0>(b,f)
        e=ConstantOfShape<value=float[1] {1.0}>(bs) y=Add(x,e) }""")
    for v in list(m.graph.input) + list(m.graph.output):
        v.type.tensor_type.shape.dim[0].dim_value = -1
    return m, {"x": f32(1, 4)}, []


@case
def where_int_cond_chain_mask():
    m = parsed(HEAD % 17 + """
        g (int64[B,S] am, float[B,S,4] x) => (float[B,S,S] y) { u=Unsqueeze(am,a1) f=Cast<to=1>(u)
        inv=Sub(one,f) neg=Mul(inv,mn) xt=Transpose<perm=[0,2,1]>(x) sc=MatMul(x,xt) ms=Add(sc,neg)
        s=Shape(ms) sl=Gather(s,i1) r=Range(i0,sl,i1s) ru=Unsqueeze(r,a1b) rc=Unsqueeze(r,a0)
        cm=LessOrEqual(rc,ru) y0=Where(cm,ms,ninf) y=Softmax<axis=-1>(y0) }""")
    weights(
        m,
        a1=np.array([1], np.int64),
        one=np.float32(1),
        mn=np.float32(-3.4e38),
        i1=np.array(1, np.int64),
        i0=np.array(0, np.int64),
        i1s=np.array(1, np.int64),
        a1b=np.array([1], np.int64),
        a0=np.array([0], np.int64),
        ninf=np.float32(-np.inf),
    )
    return m, {"am": np.array([[1, 1, 1, 0], [1, 1, 0, 0]], np.int64), "x": f32(2, 4, 4)}, ["--shape", "am=2x4"]


@case
def hidden_lstm_stack_pytorch():
    m = parsed(HEAD % 13 + """
        g (float[S,B,4] x) => (float[S,B,10] y, float[2,B,5] hn) { sh=Shape(x) one=Constant<value=int64 {1}>()
        bd=Gather(sh,one) bu=Unsqueeze(bd,a0) two=Constant<value=int64[1] {2}>() five=Constant<value=int64[1]
        {5}>() hs=Concat<axis=0>(two,bu,five) h0=Expand(zero,hs)
        yy,hn=GRU<hidden_size=5,direction="bidirectional",linear_before_reset=1>(x,w,r,b,"",h0)
        t=Transpose<perm=[0,2,1,3]>(yy) y=Reshape(t,s3) }""")
    next(n for n in m.graph.node if n.op_type == "GRU").input[4] = ""
    weights(
        m,
        a0=np.array([0], np.int64),
        zero=np.zeros((1, 1, 1), np.float32),
        w=f32(2, 15, 4),
        r=f32(2, 15, 5),
        b=f32(2, 30),
        s3=np.array([0, 0, -1], np.int64),
    )
    return m, {"x": f32(7, 3, 4)}, ["--shape", "S=7", "--shape", "B=3"]
