"""The models of device.py, with weights and inputs of a fixed seed: from torchvision, from transformers by their configuration, and
products of matrices alone."""
import contextlib
import dataclasses
import typing

import torch

SEED = 1


@dataclasses.dataclass(frozen=True)
class Row:
    make: typing.Callable  # the module, in f32
    inputs: typing.Callable  # batch -> the module's arguments, in f32
    batches: tuple = (1, 32)


def picture(batch):
    return (torch.randn(batch, 3, 224, 224),)


def vision(name):
    """Random weights alone let values vanish on their way: means and variances are taken from data, as training does, and a last
    layer that begins as zeros gets weights."""
    def make():
        import torchvision
        module = getattr(torchvision.models, name)(weights=None)
        for part in module.modules():
            if isinstance(part, torch.nn.modules.batchnorm._BatchNorm):
                part.momentum = None  # the mean of what is seen
            if isinstance(part, torch.nn.Linear) and not part.weight.any():
                torch.nn.init.normal_(part.weight, std=part.in_features ** -0.5)
        with torch.no_grad():
            module.train()(*picture(4))
        return module
    return Row(make, picture)


class First(torch.nn.Module):
    """Of transformers' modules the tensor that counts, in place of a dictionary."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x).last_hidden_state


def bert():
    import transformers
    return First(transformers.BertModel(transformers.BertConfig(), add_pooling_layer=False))


def whisper():
    import transformers
    from transformers.models.whisper.modeling_whisper import WhisperEncoder
    config = transformers.WhisperConfig(d_model=384, encoder_layers=4, encoder_attention_heads=6, encoder_ffn_dim=1536)
    return First(WhisperEncoder(config))


class Product(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(size, size) / size ** 0.5)

    def forward(self, x):
        return x @ self.weight


def product(size):
    return Row(lambda: Product(size), lambda _: (torch.randn(size, size),), (1,))


ROWS = {
    "resnet18": vision("resnet18"),
    "resnet50": vision("resnet50"),
    "mobilenet_v2": vision("mobilenet_v2"),
    "vit_b_16": vision("vit_b_16"),
    "bert_base": Row(bert, lambda batch: (torch.randint(0, 30000, (batch, 128)),)),
    "whisper_tiny": Row(whisper, lambda batch: (torch.randn(batch, 80, 3000),)),
    "matmul_1024": product(1024),
    "matmul_4096": product(4096),
}


def of_type(tensors, dtype):
    """Numbers that are no indices, in the type that is measured."""
    return tuple(t.to(dtype) if t.is_floating_point() else t for t in tensors)


def build(name, batch, dtype):
    """(module, arguments) on the processor."""
    torch.manual_seed(SEED)
    module = ROWS[name].make().eval().requires_grad_(False)
    torch.manual_seed(SEED)
    return module.to(dtype), of_type(ROWS[name].inputs(batch), dtype)


@contextlib.contextmanager
def plain_attention(module):
    """Attention as operators that ONNX has: products and a softmax, no fused kernel of PyTorch's."""
    inner = getattr(module, "inner", None)
    if inner is not None:
        before = inner.config._attn_implementation
        inner.set_attn_implementation("eager")
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(True)
        if inner is not None:
            inner.set_attn_implementation(before)


def export(module, arguments, path):
    with plain_attention(module), torch.no_grad():
        torch.onnx.export(module, arguments, str(path), dynamo=False, opset_version=17, input_names=["x"], output_names=["y"])
