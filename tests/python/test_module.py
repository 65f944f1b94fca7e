#!/usr/bin/env python3
"""The Python module on small models: what goes through without copies, what is refused and how, many threads at once.

Skipped without NumPy and onnx, which the build has in its folder onnx-python.
"""
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import threading
import unittest

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("SVOD_BUILD", SOURCE / "build")).resolve()
sys.path.insert(0, str(SOURCE / "packager" / "python"))
sys.path.append(os.environ.get("SVOD_ONNX_PYTHON") or str(BUILD / "onnx-python"))
os.environ["SVOD_PACK_EXECUTABLE"] = str(BUILD / "svod-pack")
os.environ["SVOD_CACHE_DIR"] = str(BUILD / "e2e" / "cache")
try:
    import numpy as np
    import onnx
    from onnx import TensorProto, helper
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)
import svod_pack

DIGITS = SOURCE / "models" / "digits.onnx"
SAMPLE = np.load(SOURCE / "models" / "samples" / "digit_7.npy")


def model(nodes, inputs, outputs, initializers=()):
    """A model of opset 18; inputs and outputs are (name, type, shape)."""
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(*x) for x in inputs],
                              [helper.make_tensor_value_info(*y) for y in outputs], list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def two_outputs():
    return model([helper.make_node("Add", ["a", "b"], ["sum"]), helper.make_node("Sub", ["a", "b"], ["difference"])],
                 [("a", TensorProto.FLOAT, [2, 3]), ("b", TensorProto.FLOAT, [2, 3])],
                 [("sum", TensorProto.FLOAT, [2, 3]), ("difference", TensorProto.FLOAT, [2, 3])])


class OnlyDLPack:
    """A tensor of some other library."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **asked):
        return self.array.__dlpack__(**asked)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Digits(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.model = svod_pack.compile(DIGITS, cache_dir=cls.folder.name)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_answer(self):
        scores = self.model(SAMPLE)
        self.assertEqual((scores.shape, scores.dtype, scores.argmax()), ((1, 10), np.float32, 7))
        for again in (self.model({"image": SAMPLE}), self.model(image=SAMPLE), self.model(SAMPLE.tolist()),
                      self.model.run({"image": SAMPLE})["scores"], self.model(OnlyDLPack(SAMPLE))):
            np.testing.assert_array_equal(scores, again)

    def test_facts(self):
        image, = self.model.inputs
        self.assertEqual((image.name, image.dtype, image.shape, image.bounded),
                         ("image", np.float32, (1, 1, 8, 8), False))
        self.assertEqual(len(self.model.info["model"]["sha256"]), 64)
        self.assertIn("image: float32[1, 1, 8, 8]", repr(self.model))

    def test_output_of_the_caller(self):
        scores = np.zeros((1, 10), np.float32)
        self.assertIs(self.model(SAMPLE, out=scores), scores)
        self.assertEqual(scores.argmax(), 7)
        self.model(SAMPLE, out={"scores": scores})
        read_only = np.zeros((1, 10), np.float32)
        read_only.flags.writeable = False
        for given, error in ((np.zeros((1, 10)), TypeError), (np.zeros(10, np.float32), ValueError),
                             (read_only, ValueError), ([0] * 10, TypeError),
                             ({"score": scores}, TypeError)):
            with self.assertRaises(error):
                self.model(SAMPLE, out=given)

    def test_wrong_inputs_name_input_type_and_shape(self):
        wanted = r"input 'image' is float32\[1, 1, 8, 8\]"
        for given, error, text in (
                (SAMPLE.astype(np.float64), TypeError, wanted + r", float64\[1, 1, 8, 8\] was given"),
                (SAMPLE[0], ValueError, wanted + r", float32\[1, 8, 8\] was given"),
                (SAMPLE.astype(">f4"), TypeError, wanted),
                (SAMPLE[..., ::-1], ValueError, "'image' is not contiguous"),
                (OnlyDLPack(SAMPLE.astype(np.float64)), TypeError, wanted),
                ("seven", TypeError, wanted), (None, TypeError, "'image' is missing")):
            with self.assertRaisesRegex(error, text):
                self.model(given)
        for call in (lambda: self.model(), lambda: self.model(SAMPLE, SAMPLE), lambda: self.model(picture=SAMPLE),
                     lambda: self.model(SAMPLE, image=SAMPLE)):
            with self.assertRaises(TypeError):
                call()

    def test_threads(self):
        inputs = [np.random.default_rng(i).random((1, 1, 8, 8), np.float32) for i in range(8)]
        expected = [self.model(x) for x in inputs]
        wrong = []

        def call_often(i):
            for _ in range(300):
                if not np.array_equal(self.model(inputs[i]), expected[i]):
                    wrong.append(i)

        threads = [threading.Thread(target=call_often, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_copies_of_the_model(self):
        self.assertEqual(pickle.loads(pickle.dumps(self.model))(SAMPLE).argmax(), 7)
        self.assertEqual(svod_pack.load(self.model.path)(SAMPLE).argmax(), 7)
        with self.assertRaisesRegex(ValueError, "no library of svod-pack with the name other"):
            svod_pack.load(self.model.path, "other")

    def test_second_time_from_the_cache(self):
        made = self.model.path.stat().st_ino
        os.utime(self.model.path, (0, 0))
        self.assertEqual(svod_pack.compile(DIGITS, cache_dir=self.folder.name).path, self.model.path)
        self.assertEqual(self.model.path.stat().st_ino, made, "it is not packed again")
        self.assertGreater(self.model.path.stat().st_mtime, 0, "it was used, so it goes later")
        other = svod_pack.compile(DIGITS.read_bytes(), cache_dir=self.folder.name, optimize=1)
        self.assertNotEqual(other.path, self.model.path)
        self.assertEqual(sorted(path.suffix for path in pathlib.Path(self.folder.name).iterdir()),
                         [".json", ".json", ".so", ".so"])


class Packing(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_program_and_summary(self):
        summary = svod_pack.pack(DIGITS, self.folder / "digits", verify="off")
        self.assertEqual(summary["entries"][0]["inputs"][0]["shape"], [1, 1, 8, 8])
        self.assertTrue(os.access(self.folder / "digits", os.X_OK))

    def test_names_like_options(self):
        (self.folder / "-q.onnx").write_bytes(DIGITS.read_bytes())
        here = os.getcwd()
        self.addCleanup(os.chdir, here)
        os.chdir(self.folder)
        svod_pack.pack("-q.onnx", "-o", verify="off")
        self.assertTrue(os.access("-o", os.X_OK))

    def test_exit_codes_are_classes(self):
        (self.folder / "bad.onnx").write_bytes(b"no model" * 9)
        unknown = model([helper.make_node("NoSuchThing", ["a"], ["b"])], [("a", TensorProto.FLOAT, [2])],
                        [("b", TensorProto.FLOAT, [2])])
        for error, code, packing in (
                (svod_pack.InvalidModel, 1, lambda out: svod_pack.pack(self.folder / "bad.onnx", out)),
                (svod_pack.UsageError, 2, lambda out: svod_pack.pack(DIGITS, out, no_such_option=1)),
                (svod_pack.Unsupported, 3, lambda out: svod_pack.pack(unknown, out)),
                (svod_pack.FileError, 4, lambda out: svod_pack.pack(self.folder / "none.onnx", out)),
                (svod_pack.BudgetExceeded, 8, lambda out: svod_pack.pack(DIGITS, out, max_ram="1K"))):
            with self.assertRaises(error) as raised:
                packing(self.folder / "out")
            self.assertEqual(raised.exception.exit_code, code)
            self.assertGreater(len(str(raised.exception)), 10)
            self.assertIn(raised.exception.diagnostics[0]["text"].split(":")[0], str(raised.exception))
            self.assertFalse((self.folder / "out").exists())
        with self.assertRaisesRegex(NotImplementedError, "NoSuchThing"):
            svod_pack.pack(unknown, self.folder / "out")

    def test_file_beside_the_model_changes(self):
        path = self.folder / "m.onnx"
        weights = onnx.numpy_helper.from_array(np.full((4, 4), 2, np.float32), "w")
        product = model([helper.make_node("MatMul", ["x", "w"], ["y"])], [("x", TensorProto.FLOAT, [1, 4])],
                        [("y", TensorProto.FLOAT, [1, 4])], [weights])
        onnx.save(product, path, save_as_external_data=True, location="w.bin", size_threshold=0)
        ones = np.ones((1, 4), np.float32)
        self.assertEqual(svod_pack.compile(path, cache_dir=self.folder / "c")(ones)[0, 0], 8)
        (self.folder / "w.bin").write_bytes(np.full((4, 4), 3, np.float32).tobytes())
        self.assertEqual(svod_pack.compile(path, cache_dir=self.folder / "c2")(ones)[0, 0], 12)
        self.assertEqual(svod_pack.compile(path, cache_dir=self.folder / "c")(ones)[0, 0], 12)


class Documentation(unittest.TestCase):
    def test_what_install_md_shows(self):
        text = (SOURCE / "docs" / "install.md").read_text()
        code = text.split("```python\n")[1].split("```")[0]
        expected = [line.split("# ")[1].strip() for line in code.splitlines() if "    # " in line]
        with tempfile.TemporaryDirectory() as folder:
            env = dict(os.environ, SVOD_CACHE_DIR=folder, PYTHONPATH=os.pathsep.join(sys.path))
            done = subprocess.run([sys.executable, "-c", code], cwd=SOURCE, env=env, capture_output=True, text=True)
        self.assertEqual(done.stdout.splitlines(), expected, done.stderr)


class Tensors(unittest.TestCase):
    """Other inputs and outputs than one float32 array each."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def compile(self, proto, **options):
        return svod_pack.compile(proto, cache_dir=self.folder, **options)

    def test_several_outputs_by_name(self):
        m = self.compile(two_outputs())
        a, b = np.full((2, 3), 5, np.float32), np.full((2, 3), 3, np.float32)
        result = m(a, b=b)
        self.assertEqual((list(result), result["sum"][0, 0], result["difference"][1, 2]), (["sum", "difference"], 8, 2))
        mine = np.zeros((2, 3), np.float32)
        self.assertIs(m(a, b, out={"difference": mine})["difference"], mine)
        with self.assertRaisesRegex(ValueError, "overlaps"):
            m(a, b, out={"sum": a})
        with self.assertRaisesRegex(TypeError, "'sum', 'difference'"):
            m(a, b, out=mine)

    def test_weights_that_a_start_makes(self):
        rng = np.random.default_rng(1)
        weights = [onnx.numpy_helper.from_array(rng.normal(0, 0.05, (64, 64, 3, 3)).astype(np.float32), "w")]
        proto = model([helper.make_node("Conv", ["x", "w"], ["y"], pads=[1] * 4)],
                      [("x", TensorProto.FLOAT, [1, 64, 28, 28])], [("y", TensorProto.FLOAT, [1, 64, 28, 28])], weights)
        image = rng.normal(0, 1, (1, 64, 28, 28)).astype(np.float32)
        there, made = self.compile(proto), self.compile(proto, weights="expand")
        self.assertLess(made.path.stat().st_size, 0.6 * there.path.stat().st_size)
        want, got = there(image), [None] * 4
        runs = [threading.Thread(target=lambda i=i: got.__setitem__(i, made(image))) for i in range(4)]
        for run in runs:
            run.start()
        for run in runs:
            run.join()
        self.assertTrue(all(np.array_equal(want, one) for one in got))

    def test_named_dimension(self):
        proto = model([helper.make_node("Relu", ["x"], ["y"])], [("x", TensorProto.FLOAT, ["batch", 3])],
                      [("y", TensorProto.FLOAT, ["batch", 3])])
        self.assertEqual(self.compile(proto, shapes={"batch": 4}).inputs[0].shape, (4, 3))
        self.assertEqual(self.compile(proto, shapes={"x": (5, 3)}).outputs[0].shape, (5, 3))

    def test_every_numpy_type(self):
        for name in ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
                     "float32", "float64", "complex64"):
            dtype = np.dtype(name)
            kind = helper.np_dtype_to_tensor_dtype(dtype)
            m = self.compile(model([helper.make_node("Transpose", ["x"], ["y"], perm=[1, 0])], [("x", kind, [2, 3])],
                                   [("y", kind, [3, 2])]))
            x = np.arange(6).reshape(2, 3).astype(dtype)
            np.testing.assert_array_equal(m(x), x.T, err_msg=name)

    def test_bfloat16(self):
        import ml_dtypes
        kind = TensorProto.BFLOAT16
        m = self.compile(model([helper.make_node("Relu", ["x"], ["y"])], [("x", kind, [3])], [("y", kind, [3])]))
        x = np.array([-1, 0.5, 2], ml_dtypes.bfloat16)
        np.testing.assert_array_equal(m(x), np.maximum(x, 0))

    def test_output_of_a_bounded_size(self):
        m = self.compile(model([helper.make_node("NonZero", ["x"], ["y"])], [("x", TensorProto.FLOAT, [2, 3])],
                               [("y", TensorProto.INT64, [2, "n"])]))
        self.assertEqual(([y.name for y in m.outputs], m.outputs[0].bounded), (["y"], True))
        for x in (np.array([[0, 1, 0], [2, 0, 3]], np.float32), np.zeros((2, 3), np.float32)):
            np.testing.assert_array_equal(m(x), np.nonzero(x))

    def test_strings(self):
        m = self.compile(model([helper.make_node("Concat", ["a", "b"], ["y"], axis=0)],
                               [("a", TensorProto.STRING, [1]), ("b", TensorProto.STRING, [2])],
                               [("y", TensorProto.STRING, [3])]))
        got = m(np.array(["żółw"]), np.array(["b", "cc"], object))
        self.assertEqual([text.decode() for text in got], ["żółw", "b", "cc"])
        self.assertEqual(list(m(["x"], ["y", "z"])), [b"x", b"y", b"z"])
        with self.assertRaisesRegex(ValueError, "at most"):
            m(["x" * 100], ["y", "z"])

    def test_value_that_was_packed(self):
        m = self.compile(model([helper.make_node("ReduceSum", ["x", "axes"], ["y"])],
                               [("x", TensorProto.FLOAT, [2, 3]), ("axes", TensorProto.INT64, [1])],
                               [("y", TensorProto.FLOAT, None)]), values={"axes": [1]})
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        np.testing.assert_array_equal(m(x).ravel(), x.sum(1))
        np.testing.assert_array_equal(m(x, np.array([1], np.int64)).ravel(), x.sum(1))
        with self.assertRaisesRegex(ValueError, "not the packed value"):
            m(x, np.array([0], np.int64))

    def test_index_out_of_range(self):
        m = self.compile(model([helper.make_node("Gather", ["x", "i"], ["y"])],
                               [("x", TensorProto.FLOAT, [4]), ("i", TensorProto.INT64, [1])],
                               [("y", TensorProto.FLOAT, [1])]))
        x = np.arange(4, dtype=np.float32)
        self.assertEqual(m(x, [3])[0], 3)
        with self.assertRaisesRegex(IndexError, "out of range"):
            m(x, [4])


if __name__ == "__main__":
    unittest.main()
