"""Files of PyTorch for torch_test.cpp, written by PyTorch itself: FOLDER/NAME.pt and .pt2, and what is in them as
FOLDER/NAME.json: {tensor: {dtype, shape, hex of its elements in order}}.

torch.export is newer than the PyTorch 1.13 of Debian 12: its archives are put together here as its sources and
docs/source/export/pt2_archive.md say, from torch.save's bytes and with PyTorch's own writer of archives."""
import collections
import ctypes
import io
import json
import os
import sys
import zipfile

import torch

folder = sys.argv[1]
names = {torch.float64: "f64", torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16", torch.int64: "i64",
         torch.int32: "i32", torch.int16: "i16", torch.int8: "i8", torch.bool: "bool"}


def flat(value, prefix=""):
    if isinstance(value, torch.Tensor):
        return {prefix or "tensor": value}
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, (list, tuple)) else []
    made = {}
    for key, item in items:
        made.update(flat(item, f"{prefix}.{key}" if prefix else str(key)))
    return made


def expect(name, tensors):
    described = {}
    for key, tensor in tensors.items():
        if tensor.dtype not in names:
            continue
        dense = tensor.detach().contiguous().clone()
        raw = ctypes.string_at(dense.data_ptr(), dense.numel() * dense.element_size()) if dense.numel() else b""
        described[key] = {"dtype": names[tensor.dtype], "shape": list(tensor.shape), "hex": raw.hex()}
    with open(f"{folder}/{name}.json", "w") as file:
        json.dump(described, file)


def saved(value):
    buffer = io.BytesIO()
    torch.save(value, buffer)
    return buffer.getvalue()


torch.manual_seed(1)
big = torch.randn(6, 8)
types = {name: (torch.randn(3, 5) * 60).to(dtype) for dtype, name in names.items()}
views = {"whole": big, "turned": big.t(), "part": big[1:5:2, 2:7], "row": big[3], "element": big[2, 3],
         "wide": big[0].expand(4, 8), "empty": torch.empty(0, 4), "strided": big.as_strided((3, 4), (9, 2), 1)}
model = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.BatchNorm1d(4), torch.nn.Sequential(torch.nn.Linear(4, 2)))
nested = {"epoch": 3, "rate": 0.5, "name": "run", "none": None, "seed": torch.get_rng_state(),
          "model": model.state_dict(),
          "optimizer": {"state": {0: {"step": torch.tensor(7), "average": torch.randn(4, 8)}}, "groups": [{"lr": 0.1}]},
          "pair": (torch.randn(2), [torch.randn(3)])}
for name, value in [("types", types), ("views", views), ("nested", nested), ("model", model.state_dict()),
                    ("alone", big.half()), ("ordered", collections.OrderedDict(a=big, b=big[1:])),
                    ("plain", {"a": big, "b": big[1:]})]:
    torch.save(value, f"{folder}/{name}.pt")
    expect(name, flat(value))

# What is refused.
torch.save({"w": big}, f"{folder}/legacy.pt", _use_new_zipfile_serialization=False)
torch.save(model, f"{folder}/module.pt")


class Command:
    def __reduce__(self):
        return (os.system, (f"touch {folder}/executed",))


torch.save({"w": big, "x": Command()}, f"{folder}/command.pt")
torch.jit.script(model).save(f"{folder}/script.pt")


def changed(name, edit, compression=zipfile.ZIP_STORED, base="ordered"):
    """A file with other entries; of the edit they are named as in ordered.pt."""
    with zipfile.ZipFile(f"{folder}/{base}.pt") as old, zipfile.ZipFile(f"{folder}/{name}.pt", "w", compression) as new:
        entries = {entry.replace(base, "ordered"): old.read(entry) for entry in old.namelist()}
        edit(entries)
        for entry, data in entries.items():
            new.writestr(entry, data)


def other_pickle(old, new):
    def edit(entries):
        assert old in entries["ordered/data.pkl"]
        entries["ordered/data.pkl"] = entries["ordered/data.pkl"].replace(old, new)
    return edit


changed("compressed", lambda entries: None, zipfile.ZIP_DEFLATED)
changed("storage", lambda entries: entries.pop("ordered/data/0"))
changed("short", lambda entries: entries.update({"ordered/data/0": entries["ordered/data/0"][:100]}))
changed("pickle", lambda entries: entries.update({"ordered/data.pkl": entries["ordered/data.pkl"][:40]}))
changed("plain_short", lambda entries: entries.update({"ordered/data/0": entries["ordered/data/0"][:100]}), base="plain")
changed("endian", lambda entries: entries.update({"ordered/byteorder": b"big"}))
# K: an integer of a byte, J: of four; the offset, size and stride of b follow each other. b is [5, 8] at element 8.
changed("size", other_pickle(b"K\x08K\x05K\x08\x86", b"K\x08J\xff\xff\xff\x7fK\x08\x86"))
changed("negative", other_pickle(b"K\x08K\x05K\x08\x86", b"J\xf8\xff\xff\xffK\x05K\x08\x86"))
changed("stride", other_pickle(b"K\x08K\x05K\x08\x86", b"K\x09K\x05K\x08\x86"))
# A plain dictionary, which libtorch reads (libtorch_trial.cpp).
changed("plain_size", other_pickle(b"K\x08K\x05K\x08\x86", b"K\x08J\xff\xff\xff\x7fK\x08\x86"), base="plain")
changed("plain_negative", other_pickle(b"K\x08K\x05K\x08\x86", b"J\xf8\xff\xff\xffK\x05K\x08\x86"), base="plain")
changed("plain_stride", other_pickle(b"K\x08K\x05K\x08\x86", b"K\x09K\x05K\x08\x86"), base="plain")

# Archives of torch.export. PyTorch 2.1 to 2.7: torch.save's bytes among other files, without compression.
for name, ending in [("export21", "json"), ("export27", "pt")]:
    with zipfile.ZipFile(f"{folder}/{name}.pt2", "w") as archive:
        archive.writestr("serialized_exported_program.json", "{}")
        archive.writestr(f"serialized_state_dict.{ending}", saved(collections.OrderedDict(model.state_dict())))
        archive.writestr(f"serialized_constants.{ending}", saved({"lifted": big[2:4]}))
        archive.writestr("version", "8.1")
    expect(name, {**model.state_dict(), "lifted": big[2:4]})


def archive_of(name, records):
    writer = torch._C.PyTorchFileWriter(f"{folder}/{name}.pt2")
    for record, data in records.items():
        writer.write_record(record, data, len(data))
    writer.write_end_of_file()


def meta(tensor, path, pickled=False):
    """PayloadMeta of torch/_export/serde/schema.py."""
    numbers = {torch.int8: 2, torch.int64: 5, torch.float16: 6, torch.float32: 7, torch.bfloat16: 13}
    return {"path_name": path, "is_param": True, "use_pickle": pickled,
            "tensor_meta": {"dtype": numbers[tensor.dtype], "sizes": [{"as_int": size} for size in tensor.shape],
                            "requires_grad": False, "device": {"type": "cpu", "index": None},
                            "strides": [{"as_int": stride} for stride in tensor.stride()],
                            "storage_offset": {"as_int": tensor.storage_offset()}, "layout": 7}}


def raw(tensor):
    return ctypes.string_at(tensor.storage().data_ptr(), tensor.storage().nbytes())


frame = {"archive_format": b"pt2", "archive_version": b"0", "byteorder": b"little", "models/model.json": b"{}"}
# PyTorch 2.8: a pickled state dict for each model.
archive_of("export28", {**frame, "data/weights/model.pt": saved(model.state_dict()),
                        "data/constants/model.pt": saved({"lifted": big[2:4]})})
expect("export28", {**model.state_dict(), "lifted": big[2:4]})
# PyTorch 2.9 and later: storages as they are, and a list of what lies where.
brief = (torch.randn(4, 4) * 9).bfloat16()
weights = {"w": big, "tied": big.t(), "part": big[1:3, 2:4], "b": brief, "odd": big.half()}
files = {"w": "weight_0", "tied": "weight_0", "part": "weight_0", "b": "weight_1", "odd": "weight_2"}
config = {"config": {key: meta(tensor, files[key], key == "odd") for key, tensor in weights.items()}}
newest = {**frame, "data/weights/weight_0": raw(big), "data/weights/weight_1": raw(brief),
          "data/weights/weight_2": saved(big.half()),
          "data/weights/model_weights_config.json": json.dumps(config).encode(),
          "data/constants/model_constants_config.json": b'{"config": {}}'}
archive_of("export29", newest)
expect("export29", weights)
archive_of("export_cut", {**newest, "data/weights/weight_0": raw(big)[:64]})
archive_of("export_config", {**newest, "data/weights/model_weights_config.json": b'{"config": {"w": 1}}'})
archive_of("export_deep", {**newest, "data/weights/model_weights_config.json": b"[" * 100_000})
archive_of("export_next", {**newest, "archive_version": b"1"})
# Parameters, and other protocols of pickle.
parameters = {"weight": torch.nn.Parameter(big), "size": big.shape, "frozen": torch.nn.Parameter(big[:2], False)}
torch.save(parameters, f"{folder}/parameters.pt")
expect("parameters", {"weight": big, "frozen": big[:2]})
for protocol in 3, 4, 5:
    torch.save(model.state_dict(), f"{folder}/protocol{protocol}.pt", pickle_protocol=protocol)
    expect(f"protocol{protocol}", model.state_dict())
