"""The weights of a safetensors file as PyTorch itself writes them: write_weights.py IN.safetensors OUT.pt OUT.pt2.

A matrix is saved as a view of its transpose, so that its strides matter. The archive is laid out as PyTorch 2.7 does it,
of torch.save's bytes: write_torch.py says why."""
import collections
import io
import json
import struct
import sys
import zipfile

import torch

types = {"F16": torch.float16, "F32": torch.float32}
with open(sys.argv[1], "rb") as file:
    header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    data = file.read()
weights = collections.OrderedDict()
for name, entry in header.items():
    if name == "__metadata__":
        continue
    begin, end = entry["data_offsets"]
    whole = torch.frombuffer(bytearray(data[begin:end]), dtype=types[entry["dtype"]]).reshape(entry["shape"])
    weights[name] = whole.t().contiguous().t() if whole.dim() == 2 else whole
torch.save(weights, sys.argv[2])
saved = io.BytesIO()
torch.save(weights, saved)
with zipfile.ZipFile(sys.argv[3], "w") as archive:
    archive.writestr("serialized_exported_program.json", "{}")
    archive.writestr("serialized_state_dict.pt", saved.getvalue())
    archive.writestr("version", "8.1")
