"""Other layers as exporters write them, with attributes away from their defaults and in old versions.
exported_cases.py runs them."""

from onnx import helper
import numpy as np
import onnx

import exported_shared as shared
from exported_shared import HEAD, case, f32, parsed, weights


@case
def slice_neg_steps():
    m = parsed(HEAD % 13 + """
        g (float[4,9,6] x) => (float[a,b,c] y) { y=Slice(x,st,en,ax,sp) }""")
    weights(
        m,
        st=np.array([-1, 8], np.int64),
        en=np.array([-100, 0], np.int64),
        ax=np.array([-1, 1], np.int64),
        sp=np.array([-2, -3], np.int64),
    )
    return m, {"x": f32(4, 9, 6)}, []


@case
def lstm_bidir_lens():
    m = parsed(HEAD % 14 + """
        g (float[6,3,4] x, int32[3] l) => (float[6,2,3,5] y, float[2,3,5] yh, float[2,3,5] yc) {
        y,yh,yc=LSTM<hidden_size=5,direction="bidirectional",clip=3.0>(x,w,r,b,l) }""")
    weights(m, w=f32(2, 20, 4), r=f32(2, 20, 5), b=f32(2, 40))
    return m, {"x": f32(6, 3, 4), "l": np.array([6, 2, 4], np.int32)}, []


@case
def gru_lbr_batchfirst():
    m = parsed(HEAD % 14 + """
        g (float[6,3,4] x) => (float[a,b,c] z) { y,yh=GRU<hidden_size=5,linear_before_reset=1>(x,w,r,b,"",h0)
        z=Squeeze(y,ax) }""")
    m.graph.node[0].input[4] = ""
    weights(m, w=f32(1, 15, 4), r=f32(1, 15, 5), b=f32(1, 30), h0=f32(1, 3, 5), ax=np.array([1], np.int64))
    return m, {"x": f32(6, 3, 4)}, []


@case
def transformer_block():
    m = parsed(HEAD % 17 + """
        g (float[B,S,16] x, bool[B,S] mask) => (float[B,S,16] y) {
        ln=LayerNormalization<axis=-1,epsilon=0.00001>(x,g1,b1) q0=MatMul(ln,wq) k0=MatMul(ln,wk)
        v0=MatMul(ln,wv) q1=Reshape(q0,hs) k1=Reshape(k0,hs) v1=Reshape(v0,hs) q=Transpose<perm=[0,2,1,3]>(q1)
        k=Transpose<perm=[0,2,3,1]>(k1) v=Transpose<perm=[0,2,1,3]>(v1) s=MatMul(q,k) sd=Div(s,two)
        m1=Unsqueeze(mask,ax12) ms=Where(m1,sd,ninf) p=Softmax<axis=-1>(ms) o=MatMul(p,v)
        ot=Transpose<perm=[0,2,1,3]>(o) om=Reshape(ot,back) pr=MatMul(om,wo) r=Add(x,pr) h0=MatMul(r,w1)
        e=Div(h0,sq2) er=Erf(e) e1=Add(er,one) hm=Mul(h0,e1) h1=Mul(hm,half) h2=MatMul(h1,w2) y=Add(r,h2) }""")
    weights(
        m,
        g1=f32(16),
        b1=f32(16),
        wq=f32(16, 16),
        wk=f32(16, 16),
        wv=f32(16, 16),
        wo=f32(16, 16) * 0.2,
        hs=np.array([0, -1, 4, 4], np.int64),
        two=np.float32(2),
        ax12=np.array([1, 2], np.int64),
        ninf=np.float32(-3.4e38),
        back=np.array([0, 0, 16], np.int64),
        w1=f32(16, 32) * 0.3,
        w2=f32(32, 16) * 0.3,
        sq2=np.float32(2**0.5),
        one=np.float32(1),
        half=np.float32(0.5),
    )
    return (
        m,
        {"x": f32(2, 6, 16), "mask": shared.RNG.integers(0, 2, (2, 6)).astype(bool)},
        ["--shape", "B=2", "--shape", "S=6"],
    )


@case
def einsum_mix():
    m = parsed(HEAD % 12 + """
        g (float[2,3,4,5] q, float[2,3,6,5] k) => (float[2,3,4,6] y, float[2,4] d) {
        y=Einsum<equation="bhid,bhjd->bhij">(q,k) d=Einsum<equation="b...d,b...d->bd" >(t,t) t2=Identity(q) }""")
    del m.graph.node[:]
    m.graph.node.extend(
        [
            helper.make_node("Einsum", ["q", "k"], ["y"], equation="bhid, bhjd -> bhij"),
            helper.make_node("Einsum", ["q"], ["d"], equation="bhid->bi"),
        ]
    )
    return m, {"q": f32(2, 3, 4, 5), "k": f32(2, 3, 6, 5)}, []


@case
def scatter_kv_cache():
    m = parsed(HEAD % 16 + """
        g (float[1,2,8,4] cache, float[1,2,1,4] new, int64 pos) => (float[1,2,8,4] y) { p=Unsqueeze(pos,ax)
        a=Constant<value=int64[1] {0}>() one=Constant<value=int64[1] {1}>() e=Add(p,one)
        big=Constant<value=int64[1] {9223372036854775807}>() two=Constant<value=int64[1] {2}>()
        l=Slice(cache,a,p,two) r=Slice(cache,e,big,two) y=Concat<axis=2>(l,new,r) }""")
    weights(m, ax=np.array([0], np.int64))
    return m, {"cache": f32(1, 2, 8, 4), "new": f32(1, 2, 1, 4), "pos": np.array(3, np.int64)}, []


@case
def scatternd_update():
    m = parsed(HEAD % 16 + """
        g (float[6,4] x, int64[3,1] i, float[3,4] u) => (float[6,4] y) { y=ScatterND<reduction="add">(x,i,u) }""")
    return m, {"x": f32(6, 4), "i": np.array([[1], [-1], [1]], np.int64), "u": f32(3, 4)}, []


@case
def dyn_quant_matmul():
    m = parsed(HEAD % 13 + """
        g (float[3,16] x) => (float[3,8] y) { q,s,z=DynamicQuantizeLinear(x) mm=MatMulInteger(q,w,z,wz)
        c=Cast<to=1>(mm) sc=Mul(s,ws) y=Mul(c,sc) }""")
    # ONNX Runtime makes one operator of it, which saturates with weights of eight bits where the CPU lacks VNNI.
    weights(m, w=shared.RNG.integers(-64, 64, (16, 8)).astype(np.int8), wz=np.int8(0), ws=np.float32(0.013))
    return m, {"x": f32(3, 16)}, []


@case
def argmax_last_index():
    m = parsed(HEAD % 13 + """
        g (float[3,5] x) => (int64[3] y, int64[1,5] z) { y=ArgMax<axis=1,keepdims=0,select_last_index=1>(x)
        z=ArgMin<axis=0>(x) }""")
    x = shared.RNG.integers(0, 3, (3, 5)).astype(np.float32)
    return m, {"x": x}, []


@case
def fp16_model():
    m = parsed(HEAD % 13 + """
        g (float16[2,8] x) => (float16[2,4] y) { a=MatMul(x,w) b=Add(a,c) y=Gelu0(b) }""")
    m.graph.node[2].op_type = "Sigmoid"
    weights(m, w=f32(8, 4).astype(np.float16), c=f32(4).astype(np.float16))
    return m, {"x": f32(2, 8).astype(np.float16)}, []


@case
def reduce_noop():
    m = parsed('<ir_version: 8, opset_import: ["":18]>' + """
        g (float[2,3] x) => (float[2,3] y, float[1,1] z, float w) { e=Constant<value=int64[0] {}>()
        y=ReduceSumSquare<noop_with_empty_axes=1>(x,e) z=ReduceMean(x) w=ReduceLogSumExp<keepdims=0>(x) }""")
    return m, {"x": f32(2, 3)}, []


@case
def prelu_hardsig_misc():
    m = parsed(HEAD % 16 + """
        g (float[2,3,4] x) => (float[2,3,4] y) { a=PRelu(x,s) b=HardSigmoid<alpha=0.17>(a) c=HardSwish(b)
        d=Mish0(c) e=ThresholdedRelu<alpha=0.1>(c) f=Selu(e) g1=Celu<alpha=0.7>(f) y=Softplus(g1) }""")
    m.graph.node[3].op_type = "Softsign"
    weights(m, s=f32(3, 1))
    return m, {"x": f32(2, 3, 4)}, []


@case
def onehot_unique_trilu():
    m = parsed(HEAD % 14 + """
        g (int64[5] x, float[4,4] t) => (float[5,6] o, int64[k] u, int64[k] c, float[4,4] up) {
        o=OneHot<axis=-1>(x,d,v) u,i,j,c=Unique(x) up=Trilu<upper=0>(t,kk) }""")
    weights(m, d=np.array(6, np.int64), v=np.array([0.5, 2], np.float32), kk=np.array(-1, np.int64))
    return m, {"x": np.array([3, 1, -1, 3, 5], np.int64), "t": f32(4, 4)}, []


@case
def det_inverse_like():
    m = parsed(HEAD % 11 + """
        g (float[2,3,3] x) => (float[2] y, float[2,3,3] z) { y=Det(x)
        z=MeanVarianceNormalization<axes=[1,2]>(x) }""")
    m.opset_import[0].version = 13
    return m, {"x": f32(2, 3, 3)}, []


@case
def bitshift_mod_int_types():
    m = parsed(HEAD % 18 + """
        g (uint8[4] a, uint8[4] b, int32[4] c, int32[4] d) => (uint8[4] s, int32[4] m, int32[4] f, uint8[4] x,
        int32[4] p) { s=BitShift<direction="LEFT">(a,b) m=Mod(c,d) f=Mod<fmod=1>(c,d) x=BitwiseXor(a,b)
        p=Div(c,d) }""")
    return (
        m,
        {
            "a": np.array([1, 2, 200, 7], np.uint8),
            "b": np.array([1, 3, 2, 0], np.uint8),
            "c": np.array([-7, 7, -8, 9], np.int32),
            "d": np.array([3, -3, 5, -4], np.int32),
        },
        [],
    )


@case
def gemm_broadcast_c():
    m = parsed(HEAD % 11 + """
        g (float[3,4] a, float[5,3] b, float[4,1] c) => (float[4,5] y, float[4,5] z) {
        y=Gemm<transA=1,transB=1,beta=0.5>(a,b,c) z=Gemm<transA=1,transB=1>(a,b) }""")
    return m, {"a": f32(3, 4), "b": f32(5, 3), "c": f32(4, 1)}, []


@case
def matmul_vec_batch():
    m = parsed(HEAD % 13 + """
        g (float[5] a, float[2,5,3] b, float[3] c) => (float[2,3] y, float[2] z, float s) { y=MatMul(a,b)
        z=MatMul(y,c) s=MatMul(c,c) }""")
    return m, {"a": f32(5), "b": f32(2, 5, 3), "c": f32(3)}, []


@case
def lstm_peephole_activations():
    m = parsed(HEAD % 14 + """
        g (float[6,3,4] x) => (float[6,1,3,5] y) {
        y=LSTM<hidden_size=5,activations=["HardSigmoid","Tanh","Relu"],
        activation_alpha=[0.3],activation_beta=[0.4],input_forget=0>(x,w,r,b,"",h,c,p)
        }""")
    m.graph.node[0].input[4] = ""
    weights(m, w=f32(1, 20, 4), r=f32(1, 20, 5), b=f32(1, 40), h=f32(1, 3, 5), c=f32(1, 3, 5), p=f32(1, 15))
    return m, {"x": f32(6, 3, 4)}, []


@case
def rnn_reverse():
    m = parsed(HEAD % 14 + """
        g (float[6,3,4] x) => (float[6,1,3,5] y, float[1,3,5] h) {
        y,h=RNN<hidden_size=5,direction="reverse",activations=["Relu"]>(x,w,r) }""")
    weights(m, w=f32(1, 5, 4), r=f32(1, 5, 5))
    return m, {"x": f32(6, 3, 4)}, []


@case
def dft_stft():
    m = parsed('<ir_version: 8, opset_import: ["":17]>' + """
        g (float[1,128,1] x) => (float[1,a,33,2] y, float[1,128,2] d) { y=STFT<onesided=1>(x,step,win)
        d=DFT<axis=1>(x) }""")
    weights(m, step=np.array(32, np.int64), win=np.hanning(64).astype(np.float32))
    return m, {"x": f32(1, 128, 1)}, []


@case
def cast_float_int_sat():
    m = parsed(HEAD % 19 + """
        g (float[6] x) => (int32[6] i, uint8[6] u, bool[6] b, float16[6] h, double[6] d) { i=Cast<to=6>(x)
        u=Cast<to=2>(a) a=Abs(x) b=Cast<to=9>(x) h=Cast<to=10>(x) d=Cast<to=11>(x) }""")
    m.graph.node.insert(0, m.graph.node[2])
    del m.graph.node[3]
    return m, {"x": np.array([1.5, -2.5, 0, 100.9, -0.1, 3], np.float32)}, []


@case
def double_model():
    m = parsed(HEAD % 13 + """
        g (double[2,8] x) => (double[2,4] y) { a=MatMul(x,w) b=Tanh(a) y=Softmax<axis=-1>(b) }""")
    weights(m, w=shared.RNG.standard_normal((8, 4)))
    return m, {"x": shared.RNG.standard_normal((2, 8))}, []


@case
def int_matmul_reduce():
    m = parsed(HEAD % 13 + """
        g (int64[2,3] x) => (int64[2,2] y, int64[2,1] s, int64 mx) { t=Transpose(x) y=MatMul(x,t)
        s=ReduceSum(x,ax) mx=ReduceMax<keepdims=0>(x) }""")
    weights(m, ax=np.array([-1], np.int64))
    return m, {"x": shared.RNG.integers(-9, 9, (2, 3)).astype(np.int64)}, []


@case
def mh_attention23():
    m = parsed('<ir_version: 11, opset_import: ["":23]>' + """
        g (float[1,4,16] q, float[1,6,8] k, float[1,6,8] v, bool[4,6] mk) => (float[1,4,16] y) {
        y=Attention<q_num_heads=4,kv_num_heads=2,is_causal=0,softcap=2.0>(q,k,v,mk) }""")
    return (
        m,
        {
            "q": f32(1, 4, 16),
            "k": f32(1, 6, 8),
            "v": f32(1, 6, 8),
            "mk": np.array(shared.RNG.integers(0, 2, (4, 6)) | np.eye(4, 6, dtype=int), bool),
        },
        [],
    )


@case
def rotary23_rms():
    m = parsed('<ir_version: 11, opset_import: ["":23]>' + """
        g (float[1,2,4,8] x, int64[1,4] p) => (float[1,2,4,8] y, float[1,2,4,8] z) {
        y=RotaryEmbedding(x,cs,sn,p) z=RMSNormalization<axis=-1,epsilon=0.001>(x,s) }""")
    weights(m, cs=f32(16, 4), sn=f32(16, 4), s=f32(8))
    return m, {"x": f32(1, 2, 4, 8), "p": np.array([[3, 1, 4, 9]], np.int64)}, []


@case
def gelu20_swish_iff():
    m = parsed('<ir_version: 10, opset_import: ["":20]>' + """
        g (float[3,4] x) => (float[3,4] y, float[3,4] z, bool[3,4] i, bool[3,4] n, float r) {
        y=Gelu<approximate="tanh">(x) z=Gelu(x) i=IsInf<detect_negative=0>(x) n=IsNaN(x)
        r=ReduceMax<keepdims=0>(x) }""")
    return m, {"x": f32(3, 4)}, []


@case
def group_query_block_quant():
    m = parsed('<ir_version: 10, opset_import: ["":21]>' + """
        g (float[3,8] x) => (float[3,4] y) { w=DequantizeLinear<axis=0,block_size=4>(q,s,z) y=MatMul(x,w) }""")
    weights(m, s=np.abs(f32(2, 4)) + 0.1)
    m.graph.initializer.append(
        helper.make_tensor("q", onnx.TensorProto.INT4, [8, 4], [((i * 7) % 16) - 8 for i in range(32)])
    )
    m.graph.initializer.append(helper.make_tensor("z", onnx.TensorProto.INT4, [2, 4], [1, 0, -1, 2, 0, 0, 3, -2]))
    return m, {"x": f32(3, 8)}, []


@case
def matmulnbits():
    m = parsed('<ir_version: 10, opset_import: ["":21,"com.microsoft":1]>' + """
        g (float[3,64] x) => (float[3,8] y) {
        y=com.microsoft.MatMulNBits<K=64,N=8,bits=4,block_size=32>(x,b,s,z) }""")
    weights(
        m,
        b=shared.RNG.integers(0, 255, (8, 2, 16)).astype(np.uint8),
        s=np.abs(f32(16)) * 0.1,
        z=shared.RNG.integers(0, 255, (8,)).astype(np.uint8),
    )
    return m, {"x": f32(3, 64)}, []


@case
def zipmap_like_ml():
    m = parsed('<ir_version: 8, opset_import: ["":15,"ai.onnx.ml":3]>' + """
        g (float[3,4] x) => (float[3,2] p, int64[3] l) {
        l,p=ai.onnx.ml.LinearClassifier<coefficients=[0.1,0.2,-0.3,0.4,-0.1,-0.2,0.3,-0.4],
        intercepts=[0.1,-0.1],classlabels_ints=[5,9],multi_class=0,post_transform="SOFTMAX">(sx)
        sx=ai.onnx.ml.Scaler<offset=[0.1,0.2,0.3,0.4],scale=[1.0,2.0,3.0,4.0]>(x) }""")
    m.graph.node.append(m.graph.node[0])
    del m.graph.node[0]
    return m, {"x": f32(3, 4)}, []


@case
def gathernd_batch_scatter_elem_red():
    m = parsed(HEAD % 18 + """
        g (float[2,3,4] x, int64[2,1] i, int64[2,3,4] j) => (float[2,4] y, float[2,3,4] z) {
        y=GatherND<batch_dims=1>(x,i) z=ScatterElements<axis=1,reduction="max">(x,j,x) }""")
    return (
        m,
        {
            "x": f32(2, 3, 4),
            "i": np.array([[2], [-1]], np.int64),
            "j": shared.RNG.integers(0, 3, (2, 3, 4)).astype(np.int64),
        },
        [],
    )


@case
def optional_input_none_lstm_names():
    m = parsed(HEAD % 14 + """
        g (float[6,3,4] x, float[1,3,5] h0) => (float[1,3,5] yh, float[1,3,5] yc) {
        unused,yh,yc=LSTM<hidden_size=5>(x,w,r,"","",h0) }""")
    m.graph.node[0].output[0] = ""
    m.graph.node[0].input[3] = ""
    m.graph.node[0].input[4] = ""
    weights(m, w=f32(1, 20, 4), r=f32(1, 20, 5))
    return m, {"x": f32(6, 3, 4), "h0": f32(1, 3, 5)}, []


@case
def big_rank7_transpose_broadcast():
    m = parsed(HEAD % 13 + """
        g (float[2,1,3,1,2,1,2] x, float[1,4,1,2,1,3,1] z) => (float[2,3,4,2,2,3,2] y) { a=Add(x,z)
        y=Transpose<perm=[0,2,1,3,4,5,6]>(a) }""")
    return m, {"x": f32(2, 1, 3, 1, 2, 1, 2), "z": f32(1, 4, 1, 2, 1, 3, 1)}, []


@case
def softmax_ce():
    m = parsed(HEAD % 13 + """
        g (float[3,5] x, int64[3] t) => (float l, float[3,5] lp, float n) {
        l,lp=SoftmaxCrossEntropyLoss<reduction="mean",ignore_index=-1>(x,t)
        n=NegativeLogLikelihoodLoss<reduction="sum">(lp,t2) t2=Abs(t) }""")
    m.graph.node.insert(1, m.graph.node[2])
    del m.graph.node[3]
    return m, {"x": f32(3, 5), "t": np.array([1, -1, 4], np.int64)}, []


@case
def bf16_cast_chain():
    m = parsed(HEAD % 13 + """
        g (float[2,3] x) => (float[2,3] y) { a=Cast<to=16>(x) b=Cast<to=1>(a) y=Mul(b,b) }""")
    return m, {"x": f32(2, 3)}, []


@case
def skip_simplified_mean_out():
    m = parsed("""
        <ir_version: 10, opset_import: ["":17,"com.microsoft":1]> g (float[2,3,8] x, float[2,3,8] s) =>
        (float[2,3,8] y, float[2,3,8] sum) {
        y,m,i,sum=com.microsoft.SkipSimplifiedLayerNormalization<epsilon=0.001>(x,s,w) }""")
    m.graph.node[0].output[1] = ""
    m.graph.node[0].output[2] = ""
    weights(m, w=f32(8))
    return m, {"x": f32(2, 3, 8), "s": f32(2, 3, 8)}, []
