"""Control flow, functions and sequences as exporters write them. exported_cases.py runs them."""

from onnx import helper
import numpy as np
import onnx

from exported_shared import HEAD, case, f32, parsed, weights


@case
def if_diff_ranks():
    m = parsed(HEAD % 16 + """
        g (float[2,3] x, bool c) => (float y) { q=If(c)<then_branch=tg() => (float[3,2] o1)
        {o1=Transpose<perm=[1,0]>(x)}, else_branch=eg() => (float[1,6] o2) { s=Constant<value=int64[2]
        {1,6}>() o2=Reshape(x,s)}> y=ReduceSum<keepdims=0>(q) }""")
    return m, {"x": f32(2, 3), "c": np.array(True)}, []


@case
def if_const_ranks():
    m = parsed(HEAD % 16 + """
        g (float[1,3] x) => (float[k] y) { s=Shape(x) z=Constant<value=int64 {0}>() d=Gather(s,z)
        one=Constant<value=int64 {1}>() c=Equal(d,one) y=If(c)<then_branch=tg() => (float[3] o1)
        {ax=Constant<value=int64[1] {0}>() o1=Squeeze(x,ax)}, else_branch=eg() => (float[1,3] o2) {
        o2=Identity(x)}> }""")
    return m, {"x": f32(1, 3)}, []


@case
def loop_const():
    m = parsed(HEAD % 13 + """
        g (float[3] x) => (float[3] last, float[4,1] all) { n=Constant<value=int64 {4}>()
        c=Constant<value=bool {1}>() last,all=Loop(n,c,x)<body=b(int64 i, bool ci, float[3] v) => (bool co,
        float[3] vo, float[1] so) { co=Identity(ci) f=Cast<to=1>(i) vo=Add(v,f) so=ReduceMax<keepdims=1>(vo)
        }> }""")
    return m, {"x": f32(3)}, []


@case
def loop_while():
    m = parsed(HEAD % 13 + """
        g (float[1] x) => (float[1] last, int64 cnt) { n=Constant<value=int64 {50}>() c=Constant<value=bool
        {1}>() z=Constant<value=int64 {0}>() o=Constant<value=int64 {1}>() last,cnt=Loop(n,c,x,z)<body=b(int64
        i, bool ci, float[1] v, int64 k) => (bool co, float[1] vo, int64 ko) { vo=Add(v,v) s=Squeeze(vo)
        hundred=Constant<value=float {100.0}>() co=Less(s,hundred) ko=Add(k,o) }> }""")
    return m, {"x": np.array([1.5], np.float32)}, []


@case
def loop_noM():
    m = parsed(HEAD % 13 + """
        g (float[1] x) => (float[1] last) { c=Constant<value=bool {1}>() last=Loop("",c,x)<body=b(int64 i,
        bool ci, float[1] v) => (bool co, float[1] vo) { vo=Add(v,v) s=Squeeze(vo)
        hundred=Constant<value=float {100.0}>() co=Less(s,hundred) }> }""")
    m.graph.node[1].input[0] = ""
    return m, {"x": np.array([1.5], np.float32)}, []


@case
def scan_rev():
    m = parsed(HEAD % 16 + """
        g (float[2] s0, float[5,2] xs) => (float[2] s, float[2,5] ys) {
        s,ys=Scan<num_scan_inputs=1,scan_input_directions=[1],scan_output_directions=[1],scan_output_axes=[1],
        body=b(float[2] a, float[2] e) => (float[2] ao, float[2] yo) {ao=Add(a,e) yo=Mul(ao,e)}>(s0,xs) }""")
    return m, {"s0": f32(2), "xs": f32(5, 2)}, []


@case
def nested_functions():
    m = parsed("""
        <ir_version: 9, opset_import: ["":18,"my":1]> g (float[2,4] x) => (float[2,4] y) {
        y=my.outer<alpha=0.3>(x,x) } <domain:"my",opset_import:["":18,"my":1]> inner <alpha> (a) => (b) {
        t=LeakyRelu<alpha: float=@alpha>(a) b=Neg(t) } <domain:"my",opset_import:["":18,"my":1]> outer <alpha>
        (p,q) => (r) { t=my.inner<alpha: float=@alpha>(p) u=my.inner<alpha=0.5>(q) r=Sub(t,u) }""")
    return m, {"x": f32(2, 4)}, []


@case
def function_default_attr():
    f = helper.make_function(
        "my",
        "lr",
        ["a"],
        ["b"],
        [helper.make_node("LeakyRelu", ["a"], ["b"])],
        [helper.make_opsetid("", 18)],
        [],
        [helper.make_attribute("alpha", 0.25)],
    )
    a = onnx.AttributeProto()
    a.name = "alpha"
    a.ref_attr_name = "alpha"
    a.type = onnx.AttributeProto.FLOAT
    f.node[0].attribute.append(a)
    g = helper.make_graph(
        [
            helper.make_node("lr", ["x"], ["t"], domain="my"),
            helper.make_node("lr", ["t"], ["y"], domain="my", alpha=0.5),
        ],
        "g",
        [helper.make_tensor_value_info("x", 1, [3, 3])],
        [helper.make_tensor_value_info("y", 1, [3, 3])],
    )
    return (
        helper.make_model(
            g, functions=[f], opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("my", 1)], ir_version=9
        ),
        {"x": f32(3, 3)},
        [],
    )


@case
def function_with_if():
    m = parsed("""
        <ir_version: 9, opset_import: ["":18,"my":1]> g (float[2,4] x, bool c) => (float[2,4] y) { y=my.f(x,c)
        } <domain:"my",opset_import:["":18]> f (a,c) => (r) { t=Abs(a) r=If(c)<then_branch=tb() => (float[2,4]
        o) {o=Sqrt(t)},else_branch=eb() => (float[2,4] o) {o=Neg(a)}> }""")
    return m, {"x": f32(2, 4), "c": np.array(False)}, []


@case
def function_optional_input():
    m = parsed("""
        <ir_version: 9, opset_import: ["":18,"my":1]> g (float[2,4] x) => (float[2,4] y) { y=my.f(x) }
        <domain:"my",opset_import:["":18]> f (a,lo,hi) => (r) { r=Clip(a,lo,hi) }""")
    return m, {"x": f32(2, 4)}, []


@case
def dup_names_subgraphs():
    m = parsed(HEAD % 16 + """
        g (float[3] x, bool c) => (float[3] y) { a=If(c)<then_branch=tb() => (float[3] o) {t=Neg(x)
        o=Exp(t)},else_branch=eb() => (float[3] o) {t=Abs(x) o=Sqrt(t)}> d=Not(c) b=If(d)<then_branch=tb() =>
        (float[3] o) {t=Sin(a) o=Cos(t)},else_branch=eb() => (float[3] o) {t=Tanh(a) o=Identity(t)}>
        y=Add(a,b) }""")
    return m, {"x": f32(3), "c": np.array(True)}, []


@case
def sequence_split():
    m = parsed(HEAD % 13 + """
        g (float[7,3] x) => (float[3,3] y, int64 n) { s=SplitToSequence<axis=0,keepdims=1>(x,three)
        n=SequenceLength(s) i=Constant<value=int64 {1}>() y=SequenceAt(s,i) }""")
    weights(m, three=np.array(3, np.int64))
    return m, {"x": f32(7, 3)}, []


@case
def sequence_loop():
    m = parsed(HEAD % 13 + """
        g (float[4,3] x) => (float[4,3] y) { e=SequenceEmpty() n=Constant<value=int64 {4}>()
        c=Constant<value=bool {1}>() s=Loop(n,c,e)<body=b(int64 i,bool ci, seq(float) q) => (bool co,
        seq(float) qo) { co=Identity(ci) r=Gather(x,i) t=Neg(r) qo=SequenceInsert(q,t) }>
        y=ConcatFromSequence<axis=0,new_axis=1>(s) }""")
    return m, {"x": f32(4, 3)}, []


@case
def loop_growing_concat():
    m = parsed(HEAD % 16 + """
        g (float[1,3] x) => (float[k,3] y) { n=Constant<value=int64 {4}>() c=Constant<value=bool {1}>()
        y=Loop(n,c,x)<body=b(int64 i, bool ci, float[k,3] v) => (bool co, float[k2,3] vo) { co=Identity(ci)
        s=ReduceSum(v,ax) vo=Concat<axis=0>(v,s) }> }""")
    weights(m, ax=np.array([0], np.int64))
    return m, {"x": f32(1, 3)}, []


@case
def nested_if_in_loop():
    m = parsed(HEAD % 16 + """
        g (float[3] x, int64 n) => (float[3] y) { c=Constant<value=bool {1}>() y=Loop(n,c,x)<body=b(int64 i,
        bool ci, float[3] v) => (bool co, float[3] vo) { co=Identity(ci) two=Constant<value=int64 {2}>()
        md=Mod(i,two) z=Constant<value=int64 {0}>() ev=Equal(md,z) vo=If(ev)<then_branch=tb() => (float[3] o)
        {o=Add(v,x)},else_branch=eb() => (float[3] o) {p=Neg(v) o=Mul(p,x)}> }> }""")
    return m, {"x": f32(3), "n": np.array(5, np.int64)}, []


@case
def scan_opset8():
    m = parsed('<ir_version: 3, opset_import: ["":8]>' + """
        g (float[1,2] s0, float[1,5,2] xs) => (float[1,2] s, float[1,5,2] ys) {
        s,ys=Scan<num_scan_inputs=1,body=b(float[2] a, float[2] e) => (float[2] ao, float[2] yo) {ao=Add(a,e)
        yo=Mul(ao,e)}>("",s0,xs) }""")
    m.graph.node[0].input[0] = ""
    return m, {"s0": f32(1, 2), "xs": f32(1, 5, 2)}, []


@case
def if_no_else_capture_outer_init():
    m = parsed(HEAD % 13 + """
        g (float[2,3] x, float[1] t) => (float[2,3] y) { s=ReduceMax<keepdims=0>(x) ts=Squeeze(t)
        c=Greater(s,ts) y=If(c)<then_branch=tb() => (float[2,3] o) {o=MatMul(x,w)},else_branch=eb() =>
        (float[2,3] w2) {w2=Identity(x)}> }""")
    weights(m, w=f32(3, 3))
    return m, {"x": f32(2, 3), "t": np.array([0.1], np.float32)}, []


@case
def optional_ops():
    m = parsed(HEAD % 18 + """
        g (float[2,3] x) => (float[2,3] y, bool h) { o=Optional(x) h=OptionalHasElement(o)
        y=OptionalGetElement(o) }""")
    return m, {"x": f32(2, 3)}, []


@case
def seq_map_fn():
    m = parsed('<ir_version: 8, opset_import: ["":17]>' + """
        g (float[6,3] x) => (float[6,3] y) { s=SplitToSequence(x,two) t=SequenceMap<body=b(float[a,3] e) =>
        (float[a,3] r) {r=Neg(e)}>(s) y=ConcatFromSequence<axis=0>(t) }""")
    weights(m, two=np.array(2, np.int64))
    return m, {"x": f32(6, 3)}, []


@case
def initializer_shadow_subgraph():
    m = parsed(HEAD % 16 + """
        g (float[3] x, bool c) => (float[3] y) { y=If(c)<then_branch=tb() => (float[3] o) <float[3] w={1,2,3}>
        {o=Mul(x,w)},else_branch=eb() => (float[3] o) <float[3] w={4,5,6}> {o=Mul(x,w)}> }""")
    return m, {"x": f32(3), "c": np.array(False)}, []


@case
def nested_loops():
    m = parsed(HEAD % 16 + """
        g (float[3] x) => (float[3] y, float[3,3] s) { n=Constant<value=int64 {3}>() c=Constant<value=bool
        {1}>() y,s=Loop(n,c,x)<body=b(int64 i, bool ci, float[3] v) => (bool co, float[3] vo, float[3] so) {
        co=Identity(ci) i1=Add(i,one) vo=Loop(i1,ci,v)<body=b2(int64 j, bool cj, float[3] u) => (bool cjo,
        float[3] uo) {cjo=Identity(cj) f=Cast<to=1>(j) g=Mul(f,q) uo=Add(u,g)}> so=Identity(vo) }> }""")
    weights(m, one=np.array(1, np.int64), q=np.float32(0.5))
    return m, {"x": f32(3)}, []


@case
def loop_state_changing_rank_const():
    m = parsed(HEAD % 16 + """
        g (float[2,3] x) => (float y) { n=Constant<value=int64 {3}>() c=Constant<value=bool {1}>()
        q=Loop(n,c,x)<body=b(int64 i, bool ci, float v) => (bool co, float vo) {co=Identity(ci)
        vo=Unsqueeze(v,ax)}> y=ReduceSum<keepdims=0>(q) }""")
    weights(m, ax=np.array([0], np.int64))
    return m, {"x": f32(2, 3)}, []


@case
def rank0_reshape_loop():
    m = parsed(HEAD % 13 + """
        g (float[1] x) => (float y) { e=Constant<value=int64[0] {}>() s=Reshape(x,e) y=Exp(s) }""")
    return m, {"x": f32(1)}, []


@case
def dup_init_and_const_names_in_functions():
    m = parsed("""
        <ir_version: 9, opset_import: ["":18,"a":1,"b":1]> g (float[4] x) => (float[4] y) { t=a.f(x) u=b.f(t)
        y=a.f(u) } <domain:"a",opset_import:["":18]> f (x) => (y) { t=Constant<value=float {2.0}>() y=Mul(x,t)
        } <domain:"b",opset_import:["":17,"a":1]> f (x) => (y) { t=a.f(x) c=Constant<value=float {3.0}>()
        y=Add(t,c) }""")
    return m, {"x": f32(4)}, []


@case
def function_overload():
    f1 = helper.make_function(
        "my",
        "f",
        ["a"],
        ["b"],
        [helper.make_node("Neg", ["a"], ["b"])],
        [helper.make_opsetid("", 18)],
        overload="one",
    )
    f2 = helper.make_function(
        "my",
        "f",
        ["a"],
        ["b"],
        [helper.make_node("Exp", ["a"], ["b"])],
        [helper.make_opsetid("", 18)],
        overload="two",
    )
    g = helper.make_graph(
        [
            helper.make_node("f", ["x"], ["t"], domain="my", overload="one"),
            helper.make_node("f", ["t"], ["y"], domain="my", overload="two"),
        ],
        "g",
        [helper.make_tensor_value_info("x", 1, [3, 3])],
        [helper.make_tensor_value_info("y", 1, [3, 3])],
    )
    return (
        helper.make_model(
            g,
            functions=[f1, f2],
            opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("my", 1)],
            ir_version=10,
        ),
        {"x": f32(3, 3)},
        [],
    )


@case
def function_shadows_standard():
    f1 = helper.make_function(
        "custom.relu", "Relu", ["a"], ["b"], [helper.make_node("Neg", ["a"], ["b"])], [helper.make_opsetid("", 18)]
    )
    g = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["t"], domain="custom.relu"), helper.make_node("Relu", ["t"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", 1, [3, 3])],
        [helper.make_tensor_value_info("y", 1, [3, 3])],
    )
    return (
        helper.make_model(
            g,
            functions=[f1],
            opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("custom.relu", 1)],
            ir_version=9,
        ),
        {"x": f32(3, 3)},
        [],
    )


@case
def function_in_subgraph_and_loop():
    m = parsed("""
        <ir_version: 9, opset_import: ["":18,"my":1]> g (float[3] x) => (float[3] y) { n=Constant<value=int64
        {3}>() c=Constant<value=bool {1}>() y=Loop(n,c,x)<body=b(int64 i, bool ci, float[3] v) => (bool co,
        float[3] vo) {co=Identity(ci) vo=my.step(v,x)}> } <domain:"my",opset_import:["":18]> step (a,b) => (r)
        { t=Tanh(a) r=Add(t,b) }""")
    return m, {"x": f32(3)}, []


@case
def beam_while_argmax():
    m = parsed(HEAD % 16 + """
        g (int64[1,1] start) => (int64[1,k] toks) { n=Constant<value=int64 {6}>() c=Constant<value=bool {1}>()
        cur,toks0=Loop(n,c,start)<body=b(int64 i, bool ci, int64[1,1] t) => (bool co, int64[1,1] to, int64[1]
        ts) { e=Gather(emb,t) lg=MatMul(e,w) a=ArgMax<axis=-1,keepdims=0>(lg) to=Identity(a) ts=Squeeze(a,ax)
        five=Constant<value=int64 {5}>() sc=ReduceMax<keepdims=0>(a) ne=Equal(sc,five) co=Not(ne) }>
        toks=Transpose<perm=[1,0]>(toks0) }""")
    weights(m, emb=f32(9, 4), w=f32(4, 9), ax=np.array([1], np.int64))
    return m, {"start": np.array([[2]], np.int64)}, []


@case
def if_shape_branch_dyn_output():
    m = parsed(HEAD % 16 + """
        g (float[a,4] x) => (float[b,4] y) { s=Shape(x) z=Constant<value=int64 {0}>() n=Gather(s,z)
        k=Constant<value=int64 {3}>() c=Less(n,k) y=If(c)<then_branch=tb() => (float[q,4] o)
        {o=Concat<axis=0>(x,x)},else_branch=eb() => (float[q,4] o) { st=Constant<value=int64[1] {0}>()
        en=Constant<value=int64[1] {3}>() o=Slice(x,st,en)}> }""")
    return m, {"x": f32(2, 4)}, ["--shape", "a=2"]


@case
def if_runtime_diff_shapes():
    m = parsed(HEAD % 16 + """
        g (float[2,4] x, bool c) => (float[b,4] y) { y=If(c)<then_branch=tb() => (float[q,4] o)
        {o=Concat<axis=0>(x,x)},else_branch=eb() => (float[q,4] o) { st=Constant<value=int64[1] {0}>()
        en=Constant<value=int64[1] {1}>() o=Slice(x,st,en)}> }""")
    return m, {"x": f32(2, 4), "c": np.array(True)}, []


@case
def limited_sizes():
    """Sizes that are inputs, with the bound of an option."""
    m = parsed(HEAD % 18 + """
        g (float[2,6] x, int64 n, int64[2] s, int64[1] k, int64[4] p) => (int64[a] r, float[b,c] e, float[d] z,
        float[f,h] w) { zero=Constant<value=int64 {0}>() one=Constant<value=int64 {1}>() r=Range(zero,n,one)
        e=Reshape(x,s) z=ConstantOfShape(k) w=Pad(x,p) }""")
    inputs = {"x": f32(2, 6), "n": np.int64(5), "s": np.array([4, 3]), "k": np.array([7]), "p": np.array([0, 2, 1, 0])}
    return m, inputs, ["--limit-size", "16"]


@case
def limited_loop_stacks():
    m = parsed(HEAD % 18 + """
        g (float[2] x, int64 n) => (float[k,2] y, float[2] last) { c=Constant<value=bool {1}>()
        last,y=Loop(n,c,x)<body=b(int64 i, bool ci, float[2] v) => (bool co, float[2] vo, float[2] so) {
        co=Identity(ci) vo=Add(v,v) so=Neg(vo) }> }""")
    return m, {"x": f32(2), "n": np.int64(6)}, ["--limit-size", "16"]


@case
def limited_while_stacks():
    m = parsed(HEAD % 18 + """
        g (float[1] x) => (float[k,1] y) { c=Constant<value=bool {1}>() l,y=Loop("",c,x)<body=b(int64 i, bool ci,
        float[1] v) => (bool co, float[1] vo, float[1] so) { vo=Add(v,v) so=Identity(vo) q=Squeeze(vo)
        h=Constant<value=float {100.0}>() co=Less(q,h) }> }""")
    m.graph.node[1].input[0] = ""
    return m, {"x": np.array([1.5], np.float32)}, ["--limit-size", "16"]
