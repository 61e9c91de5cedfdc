"""Writes the networks of the benchmarks that come in no package, with random weights: ResNet-50, MobileNetV3 and MiniLM's shape.

    python3 export_networks.py FOLDER        # needs torch, torchvision, transformers
"""
import os
import sys

import torch
import torchvision
from transformers import BertConfig, BertModel

OPSET = 17


class Encoder(torch.nn.Module):
    """MiniLM-L6: 6 layers of 384 features and 12 heads."""

    def __init__(self):
        super().__init__()
        sizes = dict(hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536)
        self.model = BertModel(BertConfig(vocab_size=30522, attn_implementation="eager", **sizes), add_pooling_layer=False)

    def forward(self, ids, mask):
        return self.model(ids, mask).last_hidden_state


def export(folder, name, model, inputs, free):
    torch.onnx.export(
        model.eval(), tuple(inputs.values()), os.path.join(folder, f"{name}.onnx"), input_names=list(inputs), output_names=["out"],
        dynamic_axes={key: free for key in inputs}, opset_version=OPSET, dynamo=False,
    )


def main(folder):
    os.makedirs(folder, exist_ok=True)
    torch.manual_seed(0)
    image = {"x": torch.randn(1, 3, 224, 224)}
    export(folder, "resnet50", torchvision.models.resnet50(), image, {0: "batch"})
    export(folder, "mobilenetv3", torchvision.models.mobilenet_v3_large(), image, {0: "batch"})
    tokens = torch.ones(1, 8, dtype=torch.long)
    export(folder, "minilm", Encoder(), {"ids": tokens, "mask": tokens}, {0: "batch", 1: "length"})


main(sys.argv[1])
