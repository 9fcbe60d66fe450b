"""Every FX target of the pipeline's graphs as PyTorch computes it, for operations_test.cpp: FILE is a list of
{target, inputs: {name: tensor}, graph, outputs: [tensor]}, a tensor being {dtype, shape, hex}. Values of 16 bits are
computed in f32 and rounded once, since PyTorch's CPU has few kernels of f16."""
import ctypes
import json
import sys

import torch

names = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16", torch.int64: "i64", torch.int32: "i32",
         torch.bool: "bool"}


def described(tensor):
    dense = tensor.contiguous().clone()
    raw = ctypes.string_at(dense.data_ptr(), dense.numel() * dense.element_size())
    return {"dtype": names[tensor.dtype], "shape": list(tensor.shape), "hex": raw.hex()}


def rms_norm(x, shape, weight=None, eps=None):
    dims = tuple(range(-len(shape), 0))
    scaled = x * torch.rsqrt((x * x).mean(dims, keepdim=True) + (torch.finfo(x.dtype).eps if eps is None else eps))
    return scaled if weight is None else scaled * weight


def attention(q, k, v, mask=None, dropout=0.0, causal=False, scale=None):
    scores = q @ k.transpose(-1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:]).triu(1) > 0, -torch.inf)
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask
    return scores.softmax(-1) @ v


# Of PyTorch 2: those that 1.13 does not have, by their definition.
own = {"aten.rms_norm.default": rms_norm, "aten.scaled_dot_product_attention.default": attention}


def function(target):
    if target in own:
        return own[target]
    _, name, overload = target.split(".")
    return getattr(getattr(torch.ops.aten, name), overload)


class Node:
    """A tensor among the arguments, by its name."""
    def __init__(self, name):
        self.name = name


def cases(b, l, c, n):
    x, y, w, m, v, z = (Node(name) for name in "xywmvz")
    k, i, t, p, one, row, q, e, a, g = (Node(name) for name in ["k", "i", "t", "p", "one", "row", "q", "e", "a", "g"])
    shapes = {"x": (b, l, c), "y": (b, l, c), "w": (n, c), "m": (c, n), "v": (c,), "z": (b, c, 3), "row": (n,),
              "t": (9, n), "one": (l, 1), "q": (b, 4, c), "e": (b, 6, c), "a": (4, 6), "p": (b, l, c)}
    calls = [("mm", "default", [w, m]), ("bmm", "default", [x, z]), ("addmm", "default", [row, w, Node("square")]),
             ("addmm", "default", [row, w, Node("square")], {"beta": 0.5, "alpha": 2}), ("linear", "default", [x, w]),
             ("linear", "default", [x, w, row]), ("matmul", "default", [x, m]), ("matmul", "default", [x, v]),
             ("matmul", "default", [x, z]), ("matmul", "default", [v, m]),
             ("add", "Tensor", [x, y]), ("add", "Tensor", [x, one], {"alpha": 0.5}), ("add", "Scalar", [x, 2.5]),
             ("sub", "Tensor", [x, v]), ("sub", "Tensor", [x, y], {"alpha": 3}), ("sub", "Scalar", [x, 1, 2]),
             ("mul", "Tensor", [one, v]), ("mul", "Scalar", [x, -3]), ("div", "Tensor", [x, p]),
             ("div", "Scalar", [x, 8]), ("pow", "Tensor_Scalar", [x, 3]), ("pow", "Tensor_Scalar", [p, -0.5]),
             ("pow", "Tensor_Tensor", [p, y]), ("rsqrt", "default", [p]), ("sqrt", "default", [p]),
             ("neg", "default", [x]), ("exp", "default", [x]), ("relu", "default", [x]), ("gelu", "default", [x]),
             ("gelu", "default", [x], {"approximate": "tanh"}), ("silu", "default", [x]), ("sigmoid", "default", [x]),
             ("tanh", "default", [x]), ("softmax", "int", [x, -1]), ("softmax", "int", [x, 1]),
             ("_softmax", "default", [x, 0, False]), ("layer_norm", "default", [x, [c], v, v, 0.001]),
             ("layer_norm", "default", [x, [l, c]]), ("rms_norm", "default", [x, [c], v, 0.001]),
             ("rms_norm", "default", [x, [l, c]], {"eps": 0.01}), ("embedding", "default", [t, i]),
             ("view", "default", [x, [b * l, -1]]), ("_unsafe_view", "default", [x, [l, b, c]]),
             ("reshape", "default", [x, [c, b * l]]), ("unsqueeze", "default", [x, -1]), ("squeeze", "dim", [one, 1]),
             ("clone", "default", [x]), ("transpose", "int", [x, 0, -1]), ("t", "default", [w]),
             ("permute", "default", [x, [1, 2, 0]]), ("expand", "default", [one, [2, -1, 4]]),
             ("cat", "default", [[x, y], -2]), ("cat", "default", [[w, w]]), ("split", "Tensor", [x, 3, 2]),
             ("split_with_sizes", "default", [x, [1, c - 1], 2]), ("slice", "Tensor", [x, 2, 1, 9223372036854775807, 2]),
             ("slice", "Tensor", [x, 1, -3]), ("select", "int", [x, 2, -2]), ("mean", "dim", [x, [0, 2]]),
             ("mean", "dim", [x, [-1], True]), ("sum", "dim_IntList", [x, [1]]),
             ("sum", "dim_IntList", [x, [0, 1], True]), ("amax", "default", [x, [1, 2]]),
             ("amax", "default", [x, [0], True]), ("where", "self", [k, x, v]), ("to", "dtype", [x, "torch.float16"]),
             ("to", "dtype", [k, "torch.float32"]), ("_to_copy", "default", [x], {"dtype": "torch.bfloat16"}),
             ("scaled_dot_product_attention", "default", [q, e, e]),
             ("scaled_dot_product_attention", "default", [q, q, q, None, 0.0, True]),
             ("scaled_dot_product_attention", "default", [q, e, e, a], {"scale": 0.3}),
             ("scaled_dot_product_attention", "default", [q, e, e, g])]
    for dtype in torch.float32, torch.float16, torch.bfloat16:
        values = {name: (torch.rand(shape) * 2 - 1).to(dtype) for name, shape in shapes.items()}
        values["p"] = values["p"].abs() + 0.5
        values["square"] = (torch.rand(c, n) * 2 - 1).to(dtype)
        values["k"] = torch.rand(b, l, c) > 0.5
        values["g"] = torch.arange(24).reshape(4, 6) % 3 != 1
        values["i"] = torch.randint(0, 9, (2, 5))
        for name, overload, args, *kwargs in calls:
            yield f"aten.{name}.{overload}", args, kwargs[0] if kwargs else {}, values, dtype


def wide(value):
    return value.float() if value.is_floating_point() else value


def made(value, values):
    if isinstance(value, Node):
        return wide(values[value.name])
    if isinstance(value, list):
        return [made(item, values) for item in value]
    return getattr(torch, value[6:]) if isinstance(value, str) and value.startswith("torch.") else value


def written(value):
    if isinstance(value, Node):
        return {"node": value.name}
    return [written(item) for item in value] if isinstance(value, list) else value


def used(value):
    if isinstance(value, Node):
        return [value.name]
    return [name for item in value for name in used(item)] if isinstance(value, list) else []


torch.manual_seed(1)
list_of_cases = []
for sizes in (2, 5, 8, 6), (3, 4, 7, 1):
    for target, args, kwargs, values, dtype in cases(*sizes):
        result = function(target)(*made(args, values), **{key: made(value, values) for key, value in kwargs.items()})
        results = list(result) if isinstance(result, (list, tuple)) else [result]
        cast = "to" in target.split(".")[1].split("_")
        results = [part.to(dtype) if part.is_floating_point() and not cast else part for part in results]
        inputs = sorted(set(used(args)))
        nodes = [{"name": name, "op": "placeholder"} for name in inputs]
        nodes.append({"name": "call", "op": "call_function", "target": target, "args": written(args), "kwargs": kwargs})
        outputs = [{"node": "call"}]
        if isinstance(result, (list, tuple)):
            outputs = [{"node": f"part{at}"} for at in range(len(results))]
            nodes += [{"name": f"part{at}", "op": "call_function", "target": "operator.getitem",
                       "args": [{"node": "call"}, at]} for at in range(len(results))]
        nodes.append({"name": "output", "op": "output", "args": [outputs]})
        list_of_cases.append({"target": target, "inputs": {name: described(values[name]) for name in inputs},
                              "graph": json.dumps({"nodes": nodes}), "outputs": [described(part) for part in results]})
with open(sys.argv[1], "w") as file:
    json.dump(list_of_cases, file)
