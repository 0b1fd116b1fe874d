"""That Python and C mean the same memory: every struct's size, every field's place and size, every constant, every function, as the
C compiler has them."""
import ctypes
import os
import pathlib
import re
import shlex
import subprocess
import tempfile

from nrg import _abi, _library
from support import Case

INCLUDE = pathlib.Path(__file__).resolve().parents[2] / "include"
# What docs/reference/python.md says is in C only, and what Python has otherwise.
C_ONLY = {"nrg_floater_forward", "nrg_floater_backward", "nrg_floater_workspace", "nrg_floater_backward_workspace",
          "nrg_norm_statistics", "nrg_norm_elements", "nrg_softmax_part", "nrg_softmax_merge", "nrg_embed_norm_forward",
          "nrg_channel_norm_sums", "nrg_channel_norm_sums_add", "nrg_channel_norm_statistics", "nrg_channel_norm_fold", "nrg_channel_norm_backward_sums",
          "nrg_rope_longrope_attn_factor", "nrg_rope_positions_forward", "nrg_rope_positions_backward", "nrg_rope_positions_workspace",
          "nrg_qkv_backward", "nrg_norm_rope_backward_workspace",
          # one array and no strides; Python calls the functions of rows and of specs for these
          "nrg_activation_forward", "nrg_activation_backward", "nrg_rms_norm_f32", "nrg_add_rms_norm_f32", "nrg_layer_norm_f32",
          "nrg_add_layer_norm_f32", "nrg_l2_norm_f32",
          # names that the enumerators have
          "nrg_activation_name", "nrg_activation_from_name", "nrg_quant_format_name", "nrg_quant_size", "nrg_dtype_name", "nrg_dtype_size", "nrg_family_name", "nrg_family_built", "nrg_backward_built",
          "nrg_isa_built", "nrg_cpu_features", "nrg_cpu_feature_name", "nrg_score_bias_diagonals"}


def program():
    """A C program that prints what Python believes, asked of C."""
    lines = []
    for name, struct in _abi.STRUCTS.items():
        lines.append(f'    printf("{name} %zu\\n", sizeof({name}));')
        for field, _ in struct._fields_:
            lines.append(f'    printf("{name}.{field} %zu %zu\\n", offsetof({name}, {field}), sizeof((({name} *)0)->{field}));')
    for name in _abi.CONSTANTS:
        lines.append(f'    printf("{name} %lld\\n", (long long){name});')
    return "#include <nrg/nrg.h>\n#include <stdio.h>\n\nint main(void)\n{\n" + "\n".join(lines) + "\n    return 0;\n}\n"


def believed():
    lines = []
    for name, struct in _abi.STRUCTS.items():
        lines.append(f"{name} {ctypes.sizeof(struct)}")
        for field, kind in struct._fields_:
            lines.append(f"{name}.{field} {getattr(struct, field).offset} {ctypes.sizeof(kind)}")
    lines += [f"{name} {value}" for name, value in _abi.CONSTANTS.items()]
    return lines


# structs whose constructors copy another struct
COPIES = {"nrg_embed_gradient"}


def constructors():
    """{struct: (constructor, [(type, parameter)])} of the first constructor of each struct, which sets the defaults that Python has."""
    found = {}
    for struct, name, given in re.findall(r"^static inline (\w+) (nrg_\w+)\(([^)]*)\)\s*\{", without_comments(), re.M):
        if struct in _abi.STRUCTS and struct not in COPIES:
            found.setdefault(struct, (name, re.findall(r"\s*([^,]*?)(\w+)(?:,|$)", given)))
    return found


def arguments(parameters):
    """A value for each parameter of a constructor, as C writes it, and {field: value} for Python."""
    values = [1 if kind.strip() in _abi.ENUMS else 4096 * i for i, (kind, _) in enumerate(parameters, 1)]
    return ([f"({kind})(uintptr_t){value}" for (kind, _), value in zip(parameters, values)],
            {{"g": "activation"}.get(name, name): value for (_, name), value in zip(parameters, values)})


def constructing():
    """A C program that prints every field that a constructor has made, out of memory that was not 0."""
    lines = ["#include <nrg/nrg.h>", "#include <stdio.h>", "", "static void field(const char *name, const void *data, size_t bytes)", "{",
             '    printf("%s ", name);', "    for (size_t i = 0; i < bytes; i++)", '        printf("%02x", ((const unsigned char *)data)[i]);',
             '    printf("\\n");', "}", "", "int main(void)", "{"]
    for struct, (name, parameters) in constructors().items():
        lines += ["    {", f"        const {struct} made = {name}({', '.join(arguments(parameters)[0])});"]
        lines += [f'        field("{struct}.{of}", &made.{of}, sizeof made.{of});' for of, _ in _abi.STRUCTS[struct]._fields_] + ["    }"]
    return "\n".join(lines + ["    return 0;", "}", ""])


def constructed():
    lines = []
    for struct, (_, parameters) in constructors().items():
        made = _library.struct(struct, **arguments(parameters)[1])
        for field, _ in made._fields_:
            at = getattr(type(made), field)
            lines.append(f"{struct}.{field} {bytes(made)[at.offset:at.offset + at.size].hex()}")
    return lines


def output(text):
    """Of a C program; its variables are filled with a pattern before they are set, if the compiler can do that."""
    compiler = [*shlex.split(os.environ.get("CC", "cc")), "-std=c11", "-I", str(INCLUDE)]
    with tempfile.TemporaryDirectory() as scratch:
        source, binary = os.path.join(scratch, "abi.c"), os.path.join(scratch, "abi")
        pathlib.Path(source).write_text(text, encoding="utf-8")
        library = _library._library._name
        linked = [source, library, "-o", binary]
        if subprocess.run([*compiler, "-ftrivial-auto-var-init=pattern", *linked], check=False, stderr=subprocess.PIPE).returncode:
            subprocess.run([*compiler, *linked], check=True)
        loaded = {**os.environ, "LD_PRELOAD": library}  # since its file in the package has not the name that programs look for
        return subprocess.run([binary], check=True, stdout=subprocess.PIPE, text=True, env=loaded).stdout.splitlines()


def without_comments():
    return re.sub(r"/\*.*?\*/", " ", "\n".join(path.read_text(encoding="utf-8") for path in sorted(INCLUDE.glob("nrg/*.h"))), flags=re.S)


class Abi(Case):
    def test_layout(self):
        said = output(program())
        self.assertGreater(len(said), 700)
        self.assertEqual(said, believed())

    def test_constructors(self):
        """The defaults in the comments of fields, which Python reads, are what the constructors set."""
        said = output(constructing())
        sized = {name for name, struct in _abi.STRUCTS.items() if struct._fields_[0][0] == "size"}
        self.assertEqual(sized - set(constructors()) - COPIES, set())
        wrong = set(said) ^ set(constructed())
        self.assertEqual({line.split(".")[0] for line in wrong}, set(), sorted(wrong))

    def test_nothing_is_left_out(self):
        """Counted by other means than those of headers.py."""
        text = without_comments()
        functions = {re.match(r"NRG_API [^(]*?(\w+)\(", declaration)[1]
                     for declaration in re.findall(r"^(?:NRG_NODISCARD )?(NRG_API [^;]*;)", text, re.M)}
        self.assertEqual(functions, set(_abi.FUNCTIONS))
        self.assertEqual(set(re.findall(r"^typedef struct (\w+) \{", text, re.M)), set(_abi.STRUCTS))
        self.assertEqual({name for name in re.findall(r"^typedef enum (\w+) \{", text, re.M)}, set(_abi.ENUMS))
        self.assertEqual(max(_abi.CONSTANTS[name] for name in _abi.ENUMS["nrg_quant_format"]), 14)

    def test_arguments(self):
        """As many of each function as its declaration has, pointers where it has pointers."""
        for declaration in re.findall(r"^(?:NRG_NODISCARD )?NRG_API ([^;]*);", without_comments(), re.M):
            name, given = re.match(r"[^(]*?(\w+)\((.*)\)$", declaration, re.S).groups()
            parts = [] if given.strip() == "void" else given.split(",")
            pointers = (ctypes.c_void_p, ctypes.c_char_p)
            self.assertEqual(["*" in part for part in parts], [kind in pointers for _, kind in _abi.FUNCTIONS[name][1]], name)

    def test_the_library_has_them(self):
        missing = [name for name in _abi.FUNCTIONS if not hasattr(_library._library, name)]
        self.assertEqual(missing, [])
        self.assertEqual(_library.version(), "%d.%d.%d" % tuple(_abi.CONSTANTS[f"NRG_VERSION_{part}"] for part in ("MAJOR", "MINOR", "PATCH")))
        self.assertEqual(_library.numbers_version(), _abi.CONSTANTS["NRG_NUMBERS_VERSION"])

    def test_all_of_them_are_called(self):
        """A function that is new in C is called by the package, or is named above and in docs/reference/python.md as C's only."""
        package = pathlib.Path(_library.__file__).parent
        text = "\n".join(path.read_text(encoding="utf-8") for path in package.glob("*.py") if path.name != "_abi.py")
        used = set(re.findall(r"\bnrg_\w+", text))
        used |= {name + part for name in re.findall(r'\breduce\("(\w+)"', text) for part in ("_workspace", "_reduce")}
        used |= {token for defaults in _abi.DEFAULTS.values() for default in defaults.values() if callable(default)
                 for token in default.__code__.co_consts if token in _abi.FUNCTIONS}
        called = {name for name in _abi.FUNCTIONS if not name.endswith("_check")}
        self.assertEqual(called - used, C_ONLY)

    def test_fields_that_are_not_there(self):
        with self.assertRaises(TypeError):
            _library.struct("nrg_norm_args", x_strides=4)
