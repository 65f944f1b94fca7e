"""Layers and heads of networks for pictures, with attributes away from their defaults. exported_cases.py runs them."""

from onnx import helper
import numpy as np
import onnx

import exported_shared as shared
from exported_shared import HEAD, case, f32, parsed, weights


@case
def cnn_bn_dyn():
    m = parsed(HEAD % 13 + """
        g (float[N,3,H,W] x) => (float[N,C] y) {
        c=Conv<kernel_shape=[3,3],pads=[1,1,1,1],strides=[2,2],group=1>(x,w,b)
        n=BatchNormalization<epsilon=0.001,momentum=0.9>(c,s,bb,mean,var) r=Clip(n,lo,hi)
        p=GlobalAveragePool(r) f=Flatten<axis=1>(p) y=Gemm<transB=1,alpha=0.5,beta=2.0>(f,fw,fb) }""")
    weights(
        m,
        w=f32(8, 3, 3, 3),
        b=f32(8),
        s=f32(8),
        bb=f32(8),
        mean=f32(8),
        var=np.abs(f32(8)) + 0.5,
        lo=np.float32(0),
        hi=np.float32(6),
        fw=f32(5, 8),
        fb=f32(5),
    )
    return m, {"x": f32(2, 3, 11, 13)}, ["--shape", "x=2x3x11x13"]


@case
def optional_inputs_conv_resize():
    m = parsed(HEAD % 13 + """
        g (float[1,2,5,5] x) => (float[1,2,a,b] y) {
        c=Conv<kernel_shape=[3,3],auto_pad="SAME_UPPER",strides=[2,2],dilations=[1,1],group=2>(x,w)
        y=Resize<mode="linear",coordinate_transformation_mode="pytorch_half_pixel">(c,"",sc) }""")
    m.graph.node[1].input[1] = ""
    weights(m, w=f32(2, 1, 3, 3), sc=np.array([1, 1, 2, 1.5], np.float32))
    return m, {"x": f32(1, 2, 5, 5)}, []


@case
def resize_sizes_cubic():
    m = parsed(HEAD % 18 + """
        g (float[1,2,7,5] x) => (float[1,2,a,b] y) {
        y=Resize<mode="cubic",coordinate_transformation_mode="align_corners",
        cubic_coeff_a=-0.5,exclude_outside=1,axes=[2,3]>(x,"","",sz)
        }""")
    m.graph.node[0].input[1] = ""
    m.graph.node[0].input[2] = ""
    weights(m, sz=np.array([10, 9], np.int64))
    return m, {"x": f32(1, 2, 7, 5)}, []


@case
def nms_detect():
    m = parsed(HEAD % 11 + """
        g (float[1,20,4] b, float[1,2,20] s) => (int64[k,3] i) {
        i=NonMaxSuppression<center_point_box=1>(b,s,mx,iou,th) }""")
    weights(m, mx=np.array([5], np.int64), iou=np.array([0.5], np.float32), th=np.array([0.2], np.float32))
    b = np.abs(f32(1, 20, 4))
    return m, {"b": b, "s": np.abs(f32(1, 2, 20))}, []


@case
def qdq_conv():
    m = parsed(HEAD % 13 + """
        g (float[1,4,6,6] x) => (float[1,8,6,6] y) { q=QuantizeLinear(x,sx,zx) d=DequantizeLinear(q,sx,zx)
        wd=DequantizeLinear<axis=0>(w,sw,zw) bd=DequantizeLinear(b,sb) c=Conv<pads=[1,1,1,1]>(d,wd,bd)
        r=Relu(c) q2=QuantizeLinear(r,sy,zy) y=DequantizeLinear(q2,sy,zy) }""")
    sw = np.abs(f32(8)) * 0.01 + 0.01
    sx = np.float32(0.02)
    weights(
        m,
        sx=sx,
        zx=np.uint8(128),
        w=shared.RNG.integers(-127, 127, (8, 4, 3, 3)).astype(np.int8),
        sw=sw,
        zw=np.zeros(8, np.int8),
        b=shared.RNG.integers(-500, 500, 8).astype(np.int32),
        sb=np.float32(0.0005),
        sy=np.float32(0.05),
        zy=np.uint8(0),
    )
    return m, {"x": f32(1, 4, 6, 6)}, []


@case
def maxpool_ceil_idx():
    m = parsed(HEAD % 12 + """
        g (float[1,2,7,7] x) => (float[1,2,a,b] y, int64[1,2,a,b] i) {
        y,i=MaxPool<kernel_shape=[3,3],strides=[2,2],ceil_mode=1,pads=[1,0,1,0],dilations=[1,1]>(x) }""")
    return m, {"x": f32(1, 2, 7, 7)}, []


@case
def convtranspose_outpad():
    m = parsed(HEAD % 11 + """
        g (float[1,4,5,5] x) => (float[1,6,a,b] y, float[1,6,12,12] z) {
        y=ConvTranspose<strides=[2,2],pads=[1,1,1,1],output_padding=[1,1],group=2,dilations=[2,1]>(x,w)
        z=ConvTranspose<strides=[2,2],output_shape=[12,12],group=2>(x,w) }""")
    weights(m, w=f32(4, 3, 3, 3))
    return m, {"x": f32(1, 4, 5, 5)}, []


@case
def pad_modes():
    m = parsed(HEAD % 18 + """
        g (float[1,2,5,4] x) => (float[a,b,c,d] y, float[a2,b2,c2,d2] z, float[a3,b3,c3,d3] w,
        float[a4,b4,c4,d4] v) { y=Pad<mode="reflect">(x,p) z=Pad<mode="edge">(x,p) w=Pad(x,p2,cv)
        v=Pad(x,p3,cv,ax) }""")
    weights(
        m,
        p=np.array([0, 0, 2, 1, 0, 0, 1, 3], np.int64),
        p2=np.array([0, 0, -1, 2, 0, 1, 0, -1], np.int64),
        cv=np.float32(1.5),
        p3=np.array([1, 2], np.int64),
        ax=np.array([-1], np.int64),
    )
    return m, {"x": f32(1, 2, 5, 4)}, []


@case
def gridsample_affine():
    m = parsed("""
        <ir_version: 9, opset_import: ["":20]> g (float[2,3,6,7] x, float[2,2,3] th) => (float[2,3,5,4] y) {
        gr=AffineGrid<align_corners=0>(th,sz)
        y=GridSample<mode="linear",padding_mode="border",align_corners=0>(x,gr) }""")
    weights(m, sz=np.array([2, 3, 5, 4], np.int64))
    return m, {"x": f32(2, 3, 6, 7), "th": f32(2, 2, 3)}, []


@case
def groupnorm_instance():
    m = parsed(HEAD % 17 + """
        g (float[2,6,4,4] x) => (float[2,6,4,4] y) { r=Reshape(x,sh)
        n=InstanceNormalization<epsilon=0.00001>(r,on,ze) sp=Shape(x) b=Reshape(n,sp) m=Mul(b,g) y=Add(m,bt) }""")
    weights(
        m,
        sh=np.array([0, 3, -1], np.int64),
        on=np.ones(3, np.float32),
        ze=np.zeros(3, np.float32),
        g=f32(6, 1, 1),
        bt=f32(6, 1, 1),
    )
    return m, {"x": f32(2, 6, 4, 4)}, []


@case
def groupnorm21_and_ln_outputs():
    m = parsed('<ir_version: 10, opset_import: ["":21]>' + """
        g (float[2,6,4] x) => (float[2,6,4] y, float[2,6,4] l, float[2,1,1] mean, float[2,1,1] isd) {
        y=GroupNormalization<num_groups=3,epsilon=0.001>(x,s,b) l,mean,isd=LayerNormalization<axis=1>(x,ls) }""")
    weights(m, s=f32(6), b=f32(6), ls=f32(6, 4))
    return m, {"x": f32(2, 6, 4)}, []


@case
def depth_space_shapes():
    m = parsed(HEAD % 13 + """
        g (float[1,8,3,4] x) => (float[1,2,6,8] y, float[1,2,6,8] z, float[1,8,3,4] w) {
        y=DepthToSpace<blocksize=2,mode="CRD">(x) z=DepthToSpace<blocksize=2>(x)
        w=SpaceToDepth<blocksize=2>(z) }""")
    return m, {"x": f32(1, 8, 3, 4)}, []


@case
def maxpool_uint8_int8():
    m = parsed(HEAD % 12 + """
        g (uint8[1,2,6,6] x) => (uint8[1,2,3,3] y) { y=MaxPool<kernel_shape=[2,2],strides=[2,2]>(x) }""")
    return m, {"x": shared.RNG.integers(0, 255, (1, 2, 6, 6)).astype(np.uint8)}, []


@case
def conv1d_conv3d():
    m = parsed(HEAD % 11 + """
        g (float[2,3,12] x, float[1,2,5,6,7] v) => (float[2,4,a] y, float[1,3,b,c,d] z) {
        y=Conv<dilations=[2],pads=[2,1],strides=[3]>(x,w)
        z=Conv<auto_pad="SAME_LOWER",strides=[2,2,2]>(v,u,bb) }""")
    weights(m, w=f32(4, 3, 3), u=f32(3, 2, 2, 3, 2), bb=f32(3))
    return m, {"x": f32(2, 3, 12), "v": f32(1, 2, 5, 6, 7)}, []


@case
def dyn_conv_weight_input():
    m = parsed(HEAD % 11 + """
        g (float[1,3,6,6] x, float[4,3,3,3] w) => (float[1,4,4,4] y) { y=Conv(x,w) }""")
    return m, {"x": f32(1, 3, 6, 6), "w": f32(4, 3, 3, 3)}, []


@case
def max_roi_pool_any_box():
    m = parsed(HEAD % 13 + """
        g (float[2,3,9,11] x, float[5,5] r) => (float[5,3,2,3] y) {
        y=MaxRoiPool<pooled_shape=[2,3],spatial_scale=0.5>(x,r) }""")
    boxes = [[0, 0, 0, 15, 17], [1, -9, 3, 4, 9], [0, 18, 14, 40, 30], [1, 60, 60, 70, 70], [0, 9, 9, 3, 3]]
    return m, {"x": f32(2, 3, 9, 11), "r": np.array(boxes, np.float32)}, []


@case
def roialign_maxroi():
    m = parsed(HEAD % 16 + """
        g (float[1,2,8,8] x, float[3,4] r, int64[3] b) => (float[3,2,2,2] y) {
        y=RoiAlign<output_height=2,output_width=2,sampling_ratio=0,spatial_scale=0.5,mode="avg">(x,r,b) }""")
    return (
        m,
        {
            "x": f32(1, 2, 8, 8),
            "r": np.array([[0, 0, 7, 9], [1, 2, 10, 13], [3, 3, 15, 15]], np.float32),
            "b": np.zeros(3, np.int64),
        },
        [],
    )


@case
def resize_nearest_old10():
    m = parsed(HEAD % 10 + """
        g (float[1,2,5,5] x) => (float[1,2,a,b] y, float[1,2,c,d] z) { y=Resize<mode="nearest">(x,sc)
        z=Resize<mode="linear">(x,s2) }""")
    m.ir_version = 5
    weights(m, sc=np.array([1, 1, 2, 1.6], np.float32), s2=np.array([1, 1, 0.6, 2], np.float32))
    return m, {"x": f32(1, 2, 5, 5)}, []


@case
def resize_roi_crop():
    m = parsed(HEAD % 13 + """
        g (float[1,2,5,5] x) => (float[1,2,a,b] y) {
        y=Resize<mode="linear",coordinate_transformation_mode="tf_crop_and_resize",
        extrapolation_value=10.0>(x,roi,"",sz)
        }""")
    m.graph.node[0].input[2] = ""
    weights(m, roi=np.array([0, 0, 0.2, 0.1, 1, 1, 0.8, 1.2], np.float32), sz=np.array([1, 2, 4, 7], np.int64))
    return m, {"x": f32(1, 2, 5, 5)}, []


@case
def negpad_conv_and_constant_fold_shape():
    m = parsed(HEAD % 13 + """
        g (float[N,3,H,W] x) => (float[a,b,c,d] y) { s=Shape(x) hw=Slice(s,two,four) f=Cast<to=1>(hw)
        g=Mul(f,sc) fl=Floor(g) i=Cast<to=7>(fl) nc=Slice(s,zero,two) sz=Concat<axis=0>(nc,i)
        y=Resize<mode="linear",coordinate_transformation_mode="half_pixel",nearest_mode="floor">(x,e,e,sz) }""")
    weights(
        m,
        two=np.array([2], np.int64),
        four=np.array([4], np.int64),
        zero=np.array([0], np.int64),
        sc=np.array([2, 1.5], np.float32),
        e=np.zeros(0, np.float32),
    )
    return m, {"x": f32(1, 3, 5, 6)}, ["--shape", "x=1x3x5x6"]


@case
def image_pre_uint8():
    m = parsed(HEAD % 13 + """
        g (uint8[1,H,W,3] x) => (float[1,3,h,w] y) { t=Transpose<perm=[0,3,1,2]>(x) f=Cast<to=1>(t) d=Div(f,k)
        s=Sub(d,mean) y=Div(s,std) }""")
    weights(
        m,
        k=np.float32(255),
        mean=np.array([0.485, 0.456, 0.406], np.float32).reshape(1, 3, 1, 1),
        std=np.array([0.2, 0.3, 0.25], np.float32).reshape(1, 3, 1, 1),
    )
    return m, {"x": shared.RNG.integers(0, 255, (1, 5, 7, 3)).astype(np.uint8)}, ["--shape", "x=1x5x7x3"]


@case
def yolo_head_dyn():
    m = parsed(HEAD % 12 + """
        g (float[1,255,4,4] x) => (float[1,48,85] y, int64[k,3] sel) { r=Reshape(x,s1)
        t=Transpose<perm=[0,1,3,4,2]>(r) sg=Sigmoid(t) y0=Reshape(sg,s2) y=Identity(y0) bx=Slice(y0,z,f4,two)
        sc=Slice(y0,f4,big,two) st=Transpose<perm=[0,2,1]>(sc) sel=NonMaxSuppression(bx,st,mx,iou,th) }""")
    weights(
        m,
        s1=np.array([1, 3, 85, 4, 4], np.int64),
        s2=np.array([1, -1, 85], np.int64),
        z=np.array([0], np.int64),
        f4=np.array([4], np.int64),
        two=np.array([2], np.int64),
        big=np.array([99999], np.int64),
        mx=np.array([3], np.int64),
        iou=np.array([0.4], np.float32),
        th=np.array([0.8], np.float32),
    )
    return m, {"x": f32(1, 255, 4, 4)}, []


@case
def nms_then_gather_postproc():
    m = parsed(HEAD % 13 + """
        g (float[1,30,4] b, float[1,1,30] s) => (float[k,4] bo, float[k2] so) {
        sel=NonMaxSuppression(b,s,mx,iou,th) id=Gather<axis=1>(sel,two) bs=Squeeze(b,zero)
        bo=Gather<axis=0>(bs,id) ss=Squeeze(s,ax) so=Gather(ss,id) }""")
    weights(
        m,
        mx=np.array([10], np.int64),
        iou=np.array([0.5], np.float32),
        th=np.array([0.1], np.float32),
        two=np.array(2, np.int64),
        zero=np.array([0], np.int64),
        ax=np.array([0, 1], np.int64),
    )
    b = np.sort(np.abs(f32(1, 30, 2, 2)), 2).reshape(1, 30, 4)
    return m, {"b": b, "s": np.abs(f32(1, 1, 30))}, []


@case
def nms_topk_min_k():
    # torchvision-like: K = min(100, number found)
    m = parsed(HEAD % 13 + """
        g (float[20] s) => (float[k] v) { c=Greater(s,th) nz=NonZero(c) f=Squeeze(nz,ax) sc=Gather(s,f)
        sh=Shape(sc) cap=Concat<axis=0>(sh,hundred) k=ReduceMin<keepdims=1>(cap) v,i=TopK(sc,k) }""")
    weights(m, th=np.float32(0.2), ax=np.array([0], np.int64), hundred=np.array([5], np.int64))
    return m, {"s": f32(20)}, []


@case
def keras_tf2onnx_style():
    m = parsed("""
        <ir_version: 7, opset_import: ["":13,"ai.onnx.ml":2]> tf2onnx (float[unk__6,8,8,3] input_1) =>
        (float[unk__7,4] dense) { t=Transpose<perm=[0,3,1,2]>(input_1)
        c=Conv<auto_pad="SAME_UPPER",strides=[2,2],dilations=[1,1],group=1,kernel_shape=[3,3]>(t,w,b)
        r=Relu(c) p=MaxPool<kernel_shape=[2,2],strides=[2,2],auto_pad="VALID">(r)
        t2=Transpose<perm=[0,2,3,1]>(p) sh=Reshape(t2,s) mm=MatMul(sh,fw) ad=Add(mm,fb)
        dense=Softmax<axis=-1>(ad) }""")
    weights(m, w=f32(5, 3, 3, 3), b=f32(5), s=np.array([-1, 20], np.int64), fw=f32(20, 4), fb=f32(4))
    return m, {"input_1": f32(1, 8, 8, 3)}, []


@case
def lrn_lppool_globals():
    m = parsed(HEAD % 18 + """
        g (float[1,5,6,6] x) => (float[1,5,6,6] y, float[1,5,2,2] p, float[1,5,1,1] gm, float[1,5,1,1] gl) {
        y=LRN<size=3,alpha=0.01,beta=0.6,bias=2.0>(x) p=LpPool<kernel_shape=[3,3],strides=[3,3],p=3>(x)
        gm=GlobalMaxPool(x) gl=GlobalLpPool<p=1>(x) }""")
    return m, {"x": f32(1, 5, 6, 6)}, []


@case
def maxunpool():
    m = parsed(HEAD % 11 + """
        g (float[1,1,4,4] x) => (float[1,1,4,4] y) { p,i=MaxPool<kernel_shape=[2,2],strides=[2,2]>(x)
        y=MaxUnpool<kernel_shape=[2,2],strides=[2,2]>(p,i) }""")
    return m, {"x": f32(1, 1, 4, 4)}, []


@case
def col2im_centercrop():
    m = parsed('<ir_version: 8, opset_import: ["":18]>' + """
        g (float[1,5,5] x, float[4,6] z) => (float[1,1,5,5] y, float[2,8] w) {
        y=Col2Im<pads=[0,0,0,0],strides=[1,1]>(x,im,bl) w=CenterCropPad(z,sz) }""")
    weights(m, im=np.array([5, 5], np.int64), bl=np.array([1, 5], np.int64), sz=np.array([2, 8], np.int64))
    return m, {"x": f32(1, 5, 5), "z": f32(4, 6)}, []


@case
def fp16_conv_bn_chain():
    m = parsed(HEAD % 13 + """
        g (float[1,3,8,8] x) => (float[1,4,8,8] y) { xh=Cast<to=10>(x) c=Conv<pads=[1,1,1,1]>(xh,w,b)
        r=Relu(c) y=Cast<to=1>(r) }""")
    weights(m, w=(f32(4, 3, 3, 3) * 0.3).astype(np.float16), b=f32(4).astype(np.float16))
    return m, {"x": f32(1, 3, 8, 8)}, []


@case
def fp8_qdq():
    m = parsed('<ir_version: 9, opset_import: ["":19]>' + """
        g (float[2,3] x) => (float[2,3] y) { q=QuantizeLinear(x,s,z) y=DequantizeLinear(q,s,z) }""")
    weights(m, s=np.float32(0.1))
    m.graph.initializer.append(helper.make_tensor("z", 17, [], [0]))
    return m, {"x": f32(2, 3)}, []


@case
def int4_qdq_perchannel_gather():
    m = parsed('<ir_version: 10, opset_import: ["":21]>' + """
        g (int64[3] i) => (float[3,4] y) { d=DequantizeLinear<axis=1,block_size=2>(q,s) y=Gather(d,i) }""")
    m.graph.initializer.append(helper.make_tensor("q", onnx.TensorProto.UINT4, [5, 4], [i % 16 for i in range(20)]))
    weights(m, s=np.abs(f32(5, 2)) + 0.1)
    return m, {"i": np.array([0, 4, -1], np.int64)}, []


@case
def upsample9_input_scales():
    m = parsed('<ir_version: 4, opset_import: ["":9]>' + """
        g (float[1,1,3,3] x) => (float[1,1,6,9] y) { y=Upsample<mode="linear">(x,s) }""")
    weights(m, s=np.array([1, 1, 2, 3], np.float32))
    return m, {"x": f32(1, 1, 3, 3)}, []


def boxes_of_any_size(opset, images, boxes, owners, rows, columns, **attributes):
    attributes.update(output_height=rows, output_width=columns, sampling_ratio=0, mode="avg")
    node = helper.make_node("RoiAlign", ["x", "r", "b"], ["y"], **attributes)
    count = len(owners)
    graph = helper.make_graph(
        [node],
        "g",
        [
            helper.make_tensor_value_info("x", 1, [images, 4, 9, 11]),
            helper.make_tensor_value_info("r", 1, [count, 4]),
            helper.make_tensor_value_info("b", 7, [count]),
        ],
        [helper.make_tensor_value_info("y", 1, None)],
    )
    m = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    return m, {"x": f32(images, 4, 9, 11), "r": np.array(boxes, np.float32), "b": np.array(owners, np.int64)}, []


BOXES = [
    [0, 0, 7, 9],
    [1.2, 2.7, 10, 13],
    [3, 3, 15, 15],
    [-5, -6, 40, 30],
    [2, 2, 2, 2],
    [5, 5, 3, 2],
    [0.1, 0.2, 100, 3],
    [4, 0, 4.4, 80],
    [-30, -30, -20, -20],
]


@case
def roialign_adaptive():
    return boxes_of_any_size(16, 1, BOXES, [0] * 9, 3, 2, spatial_scale=0.5)


@case
def roialign_adaptive_old():
    return boxes_of_any_size(10, 1, BOXES, [0] * 9, 3, 2)


@case
def roialign_adaptive_of_images():
    return boxes_of_any_size(16, 3, BOXES, [0, 1, 2, 0, 1, 2, 2, 2, 1], 1, 4, spatial_scale=0.7)


@case
def roialign_adaptive_huge_boxes():
    return boxes_of_any_size(16, 1, [[-1000, -500, 3000, 2500], [0, 0, 1e4, 8]], [0] * 2, 3, 2)
