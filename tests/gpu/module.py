#!/usr/bin/env python3
"""The Python module on libraries for a GPU, without one: against the driver of stand_in_driver.cpp. Each case is a process of
its own, since the driver reads its settings once: module.py CASE FOLDER."""
import ctypes
import os
import pathlib
import pickle
import sys
import threading

SUPPORT = pathlib.Path(__file__).resolve().parent.parent / "support"
sys.path.insert(0, str(SUPPORT))
from onnx_writer import INT64, model, node, value
from packing import BUILD, DIGITS, PACKER, SOURCE, check, pack, run, sample, work_folder

sys.path.insert(0, str(SOURCE / "packager" / "python"))
sys.path.append(os.environ.get("SVOD_ONNX_PYTHON") or str(BUILD / "onnx-python"))
try:
    import numpy as np
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)
import svod_pack

WORDS = ["--device", "cuda:sm_80", "--ptxas", "off"]


class Driver:
    """The stand-in, as a caller's own code uses it."""

    def __init__(self):
        self.code = ctypes.CDLL("libcuda.so.1")

    def left(self):
        return self.code.svod_stand_in_left()

    def up(self, pointer, array):
        check(self.code.cuMemcpyHtoDAsync_v2(pointer, ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.nbytes),
                                             None) == 0, "a copy up")

    def new(self, bytes):
        pointer = ctypes.c_void_p()
        check(self.code.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(bytes)) == 0, "memory on the GPU")
        return pointer


class OnGpu:
    """An array of some library. offset: elements that it begins behind its memory."""

    def __init__(self, driver, array, offset=0):
        self.driver, self.dtype, self.shape = driver, array.dtype, array.shape
        self.pointer = driver.new(array.nbytes + 256)
        self.address = self.pointer.value + offset * array.itemsize
        driver.up(ctypes.c_void_p(self.address), array)

    def __del__(self):
        self.driver.code.cuMemFree_v2(self.pointer)

    def here(self):
        out = np.empty(self.shape, self.dtype)
        self.driver.code.cuMemcpyDtoHAsync_v2(ctypes.c_void_p(out.ctypes.data), ctypes.c_void_p(self.address),
                                              ctypes.c_size_t(out.nbytes), None)
        return out


class ByInterface(OnGpu):
    strides, stream, read_only = None, None, False

    @property
    def __cuda_array_interface__(self):
        return {"shape": self.shape, "typestr": self.dtype.str, "data": (self.address, self.read_only), "version": 3,
                "strides": self.strides, "stream": self.stream}


class DLTensor(ctypes.Structure):
    """With what follows it in a DLManagedTensor."""
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64),
                ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class ByDLPack(OnGpu):
    strides, asked = None, None

    def __dlpack_device__(self):
        return 2, 0

    def __dlpack__(self, stream=None):
        self.asked = stream
        numbers = ctypes.c_int64 * len(self.shape)
        self.sizes = numbers(*self.shape), numbers(*(self.strides or ()))
        code = {"f": 2, "i": 0}[self.dtype.kind]
        self.tensor = DLTensor(self.pointer.value, 2, 0, len(self.shape), code, 8 * self.dtype.itemsize, 1,
                               ctypes.addressof(self.sizes[0]), ctypes.addressof(self.sizes[1]) if self.strides else None,
                               self.address - self.pointer.value)
        make = ctypes.pythonapi.PyCapsule_New
        make.argtypes, make.restype = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p], ctypes.py_object
        return make(ctypes.addressof(self.tensor), b"dltensor", None)


class Case:
    """What the cases have: the bundled model, its input, and what it is to answer."""

    def __init__(self, folder):
        self.folder = folder
        self.library = folder / "libnet.so"
        self.image = np.load(sample("digit_7.npy"))
        self.expected = np.load(folder / "expected.npy")

    def load(self, place="auto"):
        return svod_pack.load(self.library, "net", place=place)

    def raises(self, error, text, call):
        try:
            call()
        except error as raised:
            check(type(raised) is error and text in str(raised), f"{error.__name__}: {raised}")
            return
        check(False, f"{error.__name__} is raised: {text}")

    def right(self, scores, what):
        check(np.array_equal(scores, self.expected), what)


def there(case):
    driver = Driver()
    net = case.load()
    check(net.runs_on_device and net.device_text == "stand-in GPU, kernels of sm_80", f"it says where it runs: {net.device_text}")
    case.right(net(case.image), "the program's bits")
    held, wrong = driver.left(), []

    def call_often():
        for _ in range(5):
            if not np.array_equal(net(case.image), case.expected):
                wrong.append(1)

    threads = [threading.Thread(target=call_often) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check(not wrong and driver.left() == held, "four threads take turns, and hold what one does")
    other = pickle.loads(pickle.dumps(case.load("cpu")))
    check(not other.runs_on_device and "asked for" in other.device_text, "a place goes with a copy of the model")
    check(other(case.image).argmax() == 7, "the processor reads it, too")
    net.close()
    net.close()
    check(not net.runs_on_device and driver.left() == 0, "closed, it leaves nothing behind")
    check(net(case.image).argmax() == 7, "and runs on the processor")
    case.raises(svod_pack.NoDevice, "closed", lambda: net.run_device({"image": ByDLPack(driver, case.image)},
                                                                     {"scores": ByDLPack(driver, case.expected)}))
    net = case.load("cuda")
    check(driver.left() > 0, "opened again")
    del net
    check(driver.left() == 0, "with the model goes what it held")
    case.raises(ValueError, "place is 'auto', 'cpu', 'cuda', not 'gpu'", lambda: case.load("gpu"))
    case.raises(svod_pack.NoDevice, "packed without --device",
                lambda: svod_pack.load(case.folder / "libplain.so", "plain", place="cuda"))
    plain = svod_pack.load(case.folder / "libplain.so", "plain")
    check(not plain.runs_on_device and "without --device" in plain.device_text, plain.device_text)


def in_place(case):
    driver = Driver()
    net = case.load("cuda")
    empty = np.zeros_like(case.expected)
    stream = ctypes.c_void_p()
    driver.code.cuStreamCreate(ctypes.byref(stream), 1)

    class Stream:
        def __cuda_stream__(self):
            return 0, stream.value

    for kind in ByDLPack, ByInterface:
        for where in None, 0, stream.value, Stream():
            image, scores = kind(driver, case.image), kind(driver, empty)
            image.stream = None if where is None else 2
            if kind is ByDLPack:
                image.strides = (640, 64, 8, 1)  # of one picture, the first says nothing
            net.run_device({"image": image}, {"scores": scores}, stream=where)
            net.finish_device()
            case.right(scores.here(), f"{kind.__name__}: the program's bits")
            if kind is ByDLPack:
                check(image.asked == scores.asked == (stream.value if where else 1), "its library knows the stream")
    net.run_device({"image": image}, {"scores": scores}, stream=stream.value)
    case.right(net(case.image), "a call behind a run that nobody waited for")

    def refuses(error, text, image=image, scores=scores, **more):
        case.raises(error, text, lambda: net.run_device({"image": image, **more}, {"scores": scores}))

    crooked = ByDLPack(driver, case.image, offset=1)
    turned = ByInterface(driver, case.image)
    turned.strides = (256, 256, 4, 32)
    read_only = ByInterface(driver, empty)
    read_only.read_only = True
    wanted = "input 'image' is float32[1, 1, 8, 8]"
    refuses(TypeError, f"{wanted} on the GPU, a ndarray that is not there was given", case.image)
    refuses(TypeError, f"{wanted}, elements of another type were given (float64)", ByDLPack(driver, case.image.astype(float)))
    refuses(TypeError, "there is no input 'picture'", picture=image)
    refuses(TypeError, "output 'scores' is missing", scores=None)
    refuses(ValueError, f"{wanted}, the shape [1, 10] was given", ByInterface(driver, empty))
    refuses(ValueError, "'image' does not begin at a multiple of 64 bytes", crooked)
    refuses(ValueError, "'image' is not contiguous", turned)
    refuses(ValueError, "'scores' is read-only", scores=read_only)
    case.raises(TypeError, "a stream is a number", lambda: net.run_device({"image": image}, {"scores": scores}, stream="first"))
    case.raises(TypeError, "lies on a GPU; run_device takes it there", lambda: net(image))
    del image, scores, crooked, turned, read_only, net, refuses
    driver.code.cuStreamDestroy_v2(stream)
    check(driver.left() == 0, "nothing is left")


def nowhere(case):
    net = case.load()
    check(not net.runs_on_device and net(case.image).argmax() == 7, f"the processor runs: {net.device_text}")
    refuses = os.environ.get("SVOD_STAND_IN_REFUSES")
    if refuses:
        case.raises(svod_pack.DeviceFault, f"in kernel {refuses}_sm_80 of node", lambda: case.load("cuda"))
    else:
        case.raises(svod_pack.NoDevice, net.device_text, lambda: case.load("cuda"))


def lost(case):
    net = case.load("cuda")
    net(case.image)
    case.raises(svod_pack.DeviceFault, "a run: unspecified launch failure", lambda: net(case.image))
    check(net.device_text.startswith("stand-in GPU"), "the model still says where it runs")


def out_of_range(case):
    driver = Driver()
    net = svod_pack.load(case.folder / "libgather.so", "gather", place="cuda")
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    check(net(x, [1, 3])[1, 2] == 11, "indices in range")
    case.raises(IndexError, "node pick", lambda: net(x, [1, 9]))
    arrays = {"x": ByDLPack(driver, x), "i": ByDLPack(driver, np.array([9, 1]))}
    y = ByDLPack(driver, np.zeros((2, 3), np.float32))
    net.run_device(arrays, {"y": y})
    case.raises(IndexError, "node pick", net.finish_device)
    net.finish_device()


def packed(case):
    """svod_pack.compile makes such a library, too."""
    os.environ["SVOD_PACK_EXECUTABLE"] = str(PACKER)
    net = svod_pack.compile(DIGITS, device="cuda:sm_80", ptxas="off", cache_dir=case.folder / "cache", place="cuda")
    case.right(net(case.image), "compile, load, run")


def main():
    from program import StandIn, kernels
    folder = work_folder("gpu_module")
    side, gather = folder / "digits.so", folder / "gather_kernels.so"
    pack(DIGITS, folder / "libnet.so", "--name", "net", *WORDS)
    pack(DIGITS, folder / "libplain.so", "--name", "plain")
    pack(DIGITS, folder / "program", *WORDS)
    kernels(DIGITS, side)
    path = folder / "gather.onnx"
    path.write_bytes(model([node("Gather", ["x", "i"], ["y"], "pick")], [value("x", [4, 3]), value("i", [2], INT64)],
                           [value("y", [2, 3])]))
    pack(path, folder / "libgather.so", "--name", "gather", *WORDS)
    kernels(path, gather)
    driver = StandIn(folder, side)
    run(folder / "program", f"image=@{sample('digit_7.npy')}", "--output", f"scores=@{folder / 'expected.npy'}",
        "--device=cuda", env=driver.env())

    def child(name, env):
        print(run(sys.executable, __file__, name, folder, env=env).stdout.decode(), end="")

    for name in ("there", "in_place", "packed"):
        child(name, driver.env())
    for settings in ({"ARCH": "75"}, {"GPUS": "0"}, {"REFUSES": "k3"}):
        child("nowhere", driver.env(**settings))
    child("lost", driver.env(LOST="2"))
    child("out_of_range", StandIn(folder, gather).env())


if __name__ == "__main__":
    if len(sys.argv) == 3:
        globals()[sys.argv[1]](Case(pathlib.Path(sys.argv[2])))
    else:
        main()
