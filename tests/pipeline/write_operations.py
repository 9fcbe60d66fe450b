"""What PyTorch computes for the FX targets of the pipeline's graphs, for operations_test.cpp: DTYPE FILE writes
{tensors: {name: tensor}, cases: [{target, inputs: {placeholder: name}, graph, outputs: [tensor]}]}, a tensor being
{dtype, shape, hex}. Floats of 8 and 16 bits are computed in f32 and rounded once: PyTorch's CPU has few kernels of
f16, and 1.13 no f8 at all, whose values are made here from their definition. Integers are exact."""
import ctypes
import json
import sys

import torch

kinds = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16,
         "f8e4m3": torch.float32, "f8e5m2": torch.float32, "i64": torch.int64, "i32": torch.int32, "i16": torch.int16,
         "i8": torch.int8, "bool": torch.bool}
name_of = {kind: name for name, kind in kinds.items() if not name.startswith("f8")}
torch_name = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "f8e4m3": "float8_e4m3fn",
              "f8e5m2": "float8_e5m2", "i64": "int64", "i32": "int32", "i16": "int16", "i8": "int8", "bool": "bool"}


def f8_values(exponent_bits, mantissa_bits, bias):
    """Of codes 0 to 127. Source: OCP 8-bit Floating Point Specification, revision 1.0, table 1."""
    values = []
    for code in range(128):
        exponent, mantissa = code >> mantissa_bits, code & ((1 << mantissa_bits) - 1)
        fraction = mantissa / (1 << mantissa_bits)
        values.append((1 + fraction) * 2.0 ** (exponent - bias) if exponent else fraction * 2.0 ** (1 - bias))
    return torch.tensor(values, dtype=torch.float64)


f8 = {"f8e4m3": f8_values(4, 3, 7)[:127], "f8e5m2": f8_values(5, 2, 15)[:124]}  # the finite ones


def f8_codes(tensor, name):
    """Nearest, of two that are equally near the even code."""
    table, size = f8[name], tensor.double().abs()
    assert not (size > table[-1]).any(), "the cases stay inside the range"
    above = torch.searchsorted(table, size.contiguous()).clamp(max=len(table) - 1)
    below = (above - 1).clamp(min=0)
    up, down = table[above] - size, size - table[below]
    code = torch.where((up < down) | ((up == down) & (above % 2 == 0)), above, below)
    return (code + 128 * tensor.signbit()).to(torch.uint8)


def rounded(tensor, name):
    """Values of a type, for f8 in an f32."""
    if name not in f8:
        return tensor.to(kinds[name])
    sizes = f8[name][(f8_codes(tensor, name) % 128).long()].float()
    return torch.where(tensor.signbit(), -sizes, sizes)


def described(tensor, name):
    dense = (f8_codes(tensor, name) if name in f8 else tensor).contiguous().clone()
    raw = ctypes.string_at(dense.data_ptr(), dense.numel() * dense.element_size())
    return {"dtype": name, "shape": list(tensor.shape), "hex": raw.hex()}


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


class Type:
    """A type among the arguments, by the project's name."""
    def __init__(self, name):
        self.name = name


class Number:
    """A number where PyTorch wants a tensor of one element."""
    def __init__(self, value):
        self.value = value


x, y, w, m, v, z = (Node(name) for name in "xywmvz")
k, i, j, t, p, one, row, q, e, a, g, square, far, odd = (
    Node(name) for name in ["k", "i", "j", "t", "p", "one", "row", "q", "e", "a", "g", "square", "far", "odd"])
end = 9223372036854775807


def movements(b, l, c, n):
    """And what else every type has."""
    return [("embedding", "default", [t, i]), ("embedding", "default", [t, j]), ("view", "default", [x, [b * l, -1]]),
            ("_unsafe_view", "default", [x, [l, b, c]]), ("reshape", "default", [x, [c, b * l]]),
            ("unsqueeze", "default", [x, -1]), ("squeeze", "dim", [one, 1]), ("clone", "default", [x]),
            ("transpose", "int", [x, 0, -1]), ("t", "default", [w]), ("permute", "default", [x, [1, 2, 0]]),
            ("expand", "default", [one, [2, -1, 4]]), ("cat", "default", [[x, y], -2]), ("cat", "default", [[w, w]]),
            ("split", "Tensor", [x, 3, 2]), ("split_with_sizes", "default", [x, [1, c - 1], 2]),
            ("slice", "Tensor", [x, 2, 1, end, 2]), ("slice", "Tensor", [x, 1, -3]), ("select", "int", [x, 2, -2]),
            ("where", "self", [k, x, v]), ("amax", "default", [x, [1, 2]]), ("amax", "default", [x, [0], True]),
            ("add", "Tensor", [x, y]), ("mul", "Tensor", [one, v])] + [
                ("to", "dtype", [p, Type(name)]) for name in kinds] + [
                    ("_to_copy", "default", [p], {"dtype": Type("bf16")})]


def numbers(b, l, c, n):
    """Of every type but bool."""
    return [("add", "Tensor", [x, one], {"alpha": 3}), ("add", "Scalar", [x, 2]), ("sub", "Tensor", [x, v]),
            ("sub", "Tensor", [x, y], {"alpha": 3}), ("sub", "Scalar", [x, 1, 2]), ("mul", "Scalar", [x, -3]),
            ("neg", "default", [x]), ("relu", "default", [x])]


def integers(b, l, c, n):
    return [("sum", "dim_IntList", [x, [1]]), ("sum", "dim_IntList", [x, [0, 1], True]),
            ("to", "dtype", [x, Type("f32")]), ("to", "dtype", [x, Type("f64")]), ("to", "dtype", [x, Type("i64")]),
            ("to", "dtype", [x, Type("bool")])]


def floats(b, l, c, n):
    return [("mm", "default", [w, m]), ("bmm", "default", [x, z]), ("addmm", "default", [row, w, square]),
            ("addmm", "default", [row, w, square], {"beta": 0.5, "alpha": 2}), ("linear", "default", [x, w]),
            ("linear", "default", [x, w, row]), ("matmul", "default", [x, m]), ("matmul", "default", [x, v]),
            ("matmul", "default", [x, z]), ("matmul", "default", [v, m]),
            ("add", "Tensor", [x, one], {"alpha": 0.5}), ("add", "Scalar", [x, 2.5]),
            ("div", "Tensor", [x, p]), ("div", "Scalar", [x, 8]), ("pow", "Tensor_Scalar", [x, 3]),
            ("pow", "Tensor_Scalar", [p, -0.5]), ("pow", "Tensor_Tensor", [p, y]), ("rsqrt", "default", [p]),
            ("sqrt", "default", [p]), ("exp", "default", [x]), ("gelu", "default", [x]),
            ("gelu", "default", [x], {"approximate": "tanh"}), ("silu", "default", [x]), ("sigmoid", "default", [x]),
            ("tanh", "default", [x]), ("softmax", "int", [x, -1]), ("softmax", "int", [x, 1]),
            ("_softmax", "default", [x, 0, False]), ("layer_norm", "default", [x, [c], v, v, 0.001]),
            ("layer_norm", "default", [x, [l, c]]), ("rms_norm", "default", [x, [c], v, 0.001]),
            ("rms_norm", "default", [x, [l, c]], {"eps": 0.01}), ("mean", "dim", [x, [0, 2]]),
            ("mean", "dim", [x, [-1], True]), ("sum", "dim_IntList", [x, [1]]),
            ("sum", "dim_IntList", [x, [0, 1], True]),
            ("to", "dtype", [far, Type("i64")]), ("to", "dtype", [far, Type("i32")]),
            ("where", "self", [k, odd, Number(0.5)]), ("where", "self", [k, Number(-2.0), odd]),
            ("scaled_dot_product_attention", "default", [q, e, e]),
            ("scaled_dot_product_attention", "default", [q, q, q, None, 0.0, True]),
            ("scaled_dot_product_attention", "default", [q, e, e, a], {"scale": 0.3}),
            ("scaled_dot_product_attention", "default", [q, e, e, g])]


def some(shape, name):
    """All of the range of integers: their last bit counts beyond 2^53, and what overflows wraps."""
    if name == "bool":
        return torch.rand(shape) > 0.5
    if name.startswith("f") or name == "bf16":
        return rounded(torch.rand(shape, dtype=torch.float64) * 2 - 1, name)
    limits = torch.iinfo(kinds[name])
    values = torch.randint(limits.min, limits.max, shape, dtype=torch.int64)
    values.view(-1)[0], values.view(-1)[-1] = limits.min, limits.max
    return values.to(kinds[name])


def values_of(b, l, c, n, name):
    shapes = {"x": (b, l, c), "y": (b, l, c), "w": (n, c), "m": (c, n), "v": (c,), "z": (b, c, 3), "row": (n,),
              "t": (9, n), "one": (l, 1), "q": (b, 4, c), "e": (b, 6, c), "a": (4, 6), "p": (b, l, c),
              "square": (c, n), "far": (b, l, c)}
    values = {key: some(shape, name) for key, shape in shapes.items()}
    values.update(k=torch.rand(b, l, c) > 0.5, g=torch.arange(24).reshape(4, 6) % 3 != 1,
                  i=torch.randint(0, 9, (2, 5)), j=torch.randint(0, 9, (7,)).int())
    # In the range of every type that p is cast to; far: fractions; odd: what is no number, too.
    if name.startswith("f") or name == "bf16":
        values["p"] = rounded(values["p"].double().abs() + 0.5, name)
        values["far"] = rounded(torch.arange(b * l * c, dtype=torch.float64).reshape(b, l, c) % 13 / 2 - 3, name)
        values["odd"] = values["far"].clone()
        if name not in f8:
            values["odd"].view(-1)[:3] = torch.tensor([torch.inf, torch.nan, -torch.inf])
    elif name != "bool":
        values["p"] = values["p"] % 100
    return values


def wide(value, name):
    small = value.is_floating_point() and name not in ("f64", "f32")
    return value.float() if small else value


def made(value, values, name):
    if isinstance(value, Node):
        return wide(values[value.name], name)
    if isinstance(value, list):
        return [made(item, values, name) for item in value]
    if isinstance(value, Number):
        return torch.tensor(value.value, dtype=wide(values["x"], name).dtype)
    return kinds[value.name] if isinstance(value, Type) else value


def written(value):
    if isinstance(value, Node):
        return {"node": value.name}
    if isinstance(value, Type):
        return "torch." + torch_name[value.name]
    if isinstance(value, Number):
        return value.value
    return [written(item) for item in value] if isinstance(value, list) else value


def used(value):
    if isinstance(value, Node):
        return [value.name]
    return [name for item in value for name in used(item)] if isinstance(value, list) else []


def cases_of(name, prefix, sizes):
    values = values_of(*sizes, name)
    calls = movements(*sizes)
    if name != "bool":
        calls += numbers(*sizes)
    calls += floats(*sizes) if values["x"].is_floating_point() else integers(*sizes)
    for call, overload, args, *kwargs in calls:
        target, kwargs = f"aten.{call}.{overload}", kwargs[0] if kwargs else {}
        result = function(target)(*made(args, values, name),
                                  **{key: made(value, values, name) for key, value in kwargs.items()})
        results = list(result) if isinstance(result, (list, tuple)) else [result]
        casts = [value.name for value in args + list(kwargs.values()) if isinstance(value, Type)]
        inputs = sorted(set(used(args)))
        nodes = [{"name": key, "op": "placeholder"} for key in inputs]
        nodes.append({"name": "call", "op": "call_function", "target": target, "args": written(args),
                      "kwargs": {key: written(value) for key, value in kwargs.items()}})
        outputs = [{"node": "call"}]
        if isinstance(result, (list, tuple)):
            outputs = [{"node": f"part{at}"} for at in range(len(results))]
            nodes += [{"name": f"part{at}", "op": "call_function", "target": "operator.getitem",
                       "args": [{"node": "call"}, at]} for at in range(len(results))]
        nodes.append({"name": "output", "op": "output", "args": [outputs]})
        own = [casts[0] if casts else name if part.is_floating_point() else name_of[part.dtype] for part in results]
        yield {"target": target, "inputs": [prefix + key for key in inputs], "graph": json.dumps({"nodes": nodes}),
               "outputs": [described(rounded(part, kind), kind) for part, kind in zip(results, own)]}
    type_of = {"k": "bool", "g": "bool", "i": "i64", "j": "i32"}
    tensors.update({prefix + key: described(value, type_of.get(key, name)) for key, value in values.items()})


torch.manual_seed(1)
tensors, cases = {}, []
for number, sizes in enumerate([(2, 5, 8, 6), (3, 4, 7, 1)]):
    cases += cases_of(sys.argv[1], f"s{number}_", sizes)
with open(sys.argv[2], "w") as file:
    json.dump({"tensors": tensors, "cases": cases}, file)
