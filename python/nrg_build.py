"""Builds the wheel (PEP 517 and 660): compiles the library and replay.c, reads the headers (headers.py), zips the package. It needs a C
compiler, Python's standard library and Python's headers. replay.c uses the stable ABI, so one wheel serves all versions from 3.11 on.

The sources are in the tree around this folder; an sdist has them in the folder `tree`. src/sources.txt lists them. The flags are those
of docs/howto/vendor-sources.md.

Environment variables:

    CC              the compiler, with arguments: cc, "ccache gcc"
    NRG_LIBRARY     a built libnrg.so of the same headers. The build copies it and compiles only replay.c
    NRG_PATHS       the paths to build in addition to scalar, of avx2,avx512,neon,generic. Default: all of the architecture
    NRG_FAMILIES    the families to build, of norm,activation,… (nrg/base.h). Default: all
    NRG_JOBS        the number of compilers that run at a time. Default: the number of CPUs
    SOURCE_DATE_EPOCH  the time of the files in sdist and wheel, in seconds since 1970: the same sources then give the same bytes
"""
import base64
import concurrent.futures
import gzip
import hashlib
import os
import pathlib
import platform
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
import zipfile

import headers

HERE = pathlib.Path(__file__).resolve().parent
TREE = HERE / "tree" if (HERE / "tree").exists() else HERE.parent
FLAGS = ["-std=c11", "-O2", "-fPIC", "-ffp-contract=off", "-fno-math-errno", "-fvisibility=hidden", "-ffunction-sections",
         "-fdata-sections", "-fno-asynchronous-unwind-tables"]
VECTORS = ["-falign-functions=32", "-falign-loops=32"]
COMPILER = shlex.split(os.environ.get("CC", "cc"))
# Where this is false, the package has no replay.c: each call of nrg runs as Python.
REPLAYS = platform.python_implementation() == "CPython" and platform.system() != "Windows" and not sysconfig.get_config_var("Py_GIL_DISABLED")
ARCHITECTURE = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine().lower())


def version():
    text = (TREE / "include/nrg/base.h").read_text(encoding="utf-8")
    return ".".join(re.search(rf"#define NRG_VERSION_{part} (\d+)", text)[1] for part in ("MAJOR", "MINOR", "PATCH"))


# ---- the library ----

def sources():
    """[(file, flags)] of src/sources.txt, which says how it is read, and the definitions for what is left out."""
    parts, paths = [], {"scalar": []}
    for line in (TREE / "src/sources.txt").read_text(encoding="utf-8").splitlines():
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if words[0] != "path":
            parts.append((words[0].split("+"), words[1], words[2:]))
        elif words[2] in (ARCHITECTURE, "any"):
            paths[words[1]] = words[3:] + VECTORS
    if ARCHITECTURE == "x86_64":
        paths["generic"] = ["-Os"]  # without a fused multiply-add in the target, more code is no faster
    families = {part for names, _, _ in parts for part in names} - {"always", "backward"}
    wanted = chosen("NRG_FAMILIES", families)
    if wanted & {"norm", "channel_norm", "recurrent", "softmax"}:
        wanted |= {"activation"}
    wanted_paths = chosen("NRG_PATHS", set(paths) - {"scalar"})
    left_out = [f"-DNRG_NO_{name.upper()}" for name in sorted((families - wanted) | (set(paths) - wanted_paths - {"scalar"}))]
    files = [("cpu.c", [])]
    for names, kind, part in parts:
        if set(names) <= wanted | {"always", "backward"}:
            folders = [("", [])] if kind == "core" else [(path + "/", flags) for path, flags in paths.items()
                                                         if path in wanted_paths | {"scalar"} and (kind, path) != ("vectors", "scalar")]
            files += [(folder + file, flags) for folder, flags in folders for file in part]
    return files, left_out


def chosen(variable, names):
    """The names that an environment variable lists, or all of them where it is not there."""
    wanted = {name for name in os.environ.get(variable, ",".join(names)).split(",") if name}
    if wanted - names:
        raise SystemExit(f"{variable}: {', '.join(sorted(wanted - names))}: none of {', '.join(sorted(names))}")
    return wanted


def compile_library(library):
    if platform.system() == "Windows":
        raise SystemExit("nrg compiles no library for Python on Windows: NRG_LIBRARY takes a DLL that meson or CMake has built")
    files, left_out = sources()
    with tempfile.TemporaryDirectory() as scratch:
        objects = [os.path.join(scratch, f"{i}.o") for i in range(len(files))]

        def compile_one(i):
            source, flags = files[i]
            # named from the tree: a compiler's cache knows the command again in another copy of it
            run([*COMPILER, *FLAGS, *left_out, *flags, "-c", "src/" + source, "-o", objects[i]])

        print(f"compiling {len(files)} files with {' '.join(COMPILER)}", flush=True)
        with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("NRG_JOBS", os.cpu_count() or 1))) as pool:
            list(pool.map(compile_one, range(len(files))))
        section = [] if platform.system() == "Darwin" else ["-Wl,--gc-sections"]
        run([*COMPILER, "-shared", *section, "-o", str(library), *objects, "-lm"])


def compile_replay(module):
    include = sysconfig.get_path("include")
    if not pathlib.Path(include, "Python.h").is_file():
        raise SystemExit(f"nrg needs Python's headers: {include}/Python.h is not there (the package python3-dev on Debian and Ubuntu)")
    symbols = ["-undefined", "dynamic_lookup"] if platform.system() == "Darwin" else []
    run([*COMPILER, "-std=c11", "-O2", "-fPIC", "-Wall", "-shared", *symbols, "-I", include, str(HERE / "replay.c"), "-o", str(module)])


def run(command):
    try:
        result = subprocess.run(command, cwd=TREE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    except FileNotFoundError:
        raise SystemExit(f"nrg needs a C compiler: {command[0]} is not there (CC names another)") from None
    if result.returncode:
        raise SystemExit(" ".join(command) + "\n" + result.stdout)


def public_module():
    """The text of nrg/_public.py: the names without an underscore that modules of functions define, and the rows of the index in their
    docstrings."""
    lines, names, rows = ['"""Made by nrg_build.py from the modules of functions. Do not edit."""'], [], ""
    for path in package_files():
        if path.suffix == ".py" and not path.name.startswith("_") and path.name != "torch.py":
            text = path.read_text(encoding="utf-8")
            defined = re.findall(r"^(?:def|class) (\w+)|^(\w[\w, ]*?)(?:: .*)? = ", text, re.M)
            public = sorted(set(re.findall(r"\b[^\W\d_]\w*", " ".join(map(" ".join, defined)))))
            lines.append(f"from .{path.stem} import {', '.join(public)}")
            names += public
            rows += "".join(f"{row}\n" for row in re.findall(r"^    .*", text.split('"""')[1], re.M))
    return "\n".join([*lines, "", f"__all__ = {names}", f"INDEX = {rows!r}", ""])


def build_package(package):
    """_abi.py, _public.py, _replay and the library, into the folder of the package."""
    package.mkdir(parents=True, exist_ok=True)
    (package / "_abi.py").write_text(headers.Headers(TREE / "include").module(), encoding="utf-8")
    (package / "_public.py").write_text(public_module(), encoding="utf-8")
    if REPLAYS:
        compile_replay(package / "_replay.abi3.so")
    library = package / {"Darwin": "libnrg.dylib", "Windows": "nrg.dll"}.get(platform.system(), "libnrg.so")
    if os.environ.get("NRG_LIBRARY"):
        if not pathlib.Path(os.environ["NRG_LIBRARY"]).is_file():
            raise SystemExit(f"NRG_LIBRARY: {os.environ['NRG_LIBRARY']} is no file")
        shutil.copyfile(os.environ["NRG_LIBRARY"], library)
    else:
        compile_library(library)


def package_files():
    """The files of the package that no build makes."""
    return [path for path in sorted([*(HERE / "nrg").glob("*.py"), HERE / "nrg/py.typed"]) if path.name not in ("_abi.py", "_public.py")]


# ---- what pip calls ----

def metadata():
    return "\n".join(["Metadata-Version: 2.1", "Name: nrg", f"Version: {version()}",
                      "Summary: Fast, reproducible neural-network layers for CPUs, over NumPy arrays", "License: MIT",
                      "Requires-Python: >=3.11", "Requires-Dist: numpy>=1.22", "Provides-Extra: bf16",
                      'Requires-Dist: ml_dtypes; extra == "bf16"', "Description-Content-Type: text/markdown", "",
                      (HERE / "README.md").read_text(encoding="utf-8")])


TAG = ("cp311-abi3-" if REPLAYS else "py3-none-") + re.sub(r"[-.]", "_", sysconfig.get_platform())


def dist_info():
    """The folder of a wheel that says what it is, less its RECORD: {name: bytes}."""
    info = f"nrg-{version()}.dist-info"
    return {f"{info}/METADATA": metadata().encode(), f"{info}/LICENSE": (TREE / "LICENSE").read_bytes(),
            f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: nrg_build\nRoot-Is-Purelib: false\nTag: {TAG}\n".encode()}


def file_time():
    """The time of every file in an archive, in seconds since 1970."""
    return int(os.environ.get("SOURCE_DATE_EPOCH") or time.time())


def wheel(directory, files):
    """A wheel of {name: bytes}; its file name."""
    files = {**files, **dist_info()}
    record = ""
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(data)}\n"
    recorded = f"nrg-{version()}.dist-info/RECORD"
    files[recorded] = f"{record}{recorded},,\n".encode()
    name = f"nrg-{version()}-{TAG}.whl"
    with zipfile.ZipFile(os.path.join(directory, name), "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in files.items():
            entry = zipfile.ZipInfo(path, time.gmtime(file_time())[:6])
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, data, zipfile.ZIP_DEFLATED)
    return name


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    for name, data in dist_info().items():
        path = pathlib.Path(metadata_directory, name)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
    return path.parent.name


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    with tempfile.TemporaryDirectory() as scratch:
        package = pathlib.Path(scratch, "nrg")
        build_package(package)
        for source in package_files():
            shutil.copyfile(source, package / source.name)
        return wheel(wheel_directory, {f"nrg/{path.name}": path.read_bytes() for path in sorted(package.iterdir())})


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """The library, _abi.py and _public.py go into the source folder, which git ignores; of the wheel only a .pth is left."""
    build_package(HERE / "nrg")
    return wheel(wheel_directory, {"nrg.pth": (str(HERE) + "\n").encode()})


def build_sdist(sdist_directory, config_settings=None):
    root = f"nrg-{version()}"
    name = root + ".tar.gz"

    def normalized(member):
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        member.mtime = file_time()
        member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
        return member

    with gzip.GzipFile(os.path.join(sdist_directory, name), "wb", mtime=file_time()) as packed, \
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted([*HERE.glob("*.py"), HERE / "replay.c", *package_files(), HERE / "pyproject.toml", HERE / "README.md"]):
            archive.add(path, f"{root}/{path.relative_to(HERE)}", filter=normalized)
        for path in (TREE / "src", TREE / "include", TREE / "LICENSE"):
            archive.add(path, f"{root}/tree/{path.name}", filter=normalized)
        with tempfile.TemporaryDirectory() as scratch:
            info = pathlib.Path(scratch, "PKG-INFO")
            info.write_text(metadata(), encoding="utf-8")
            archive.add(info, f"{root}/PKG-INFO", filter=normalized)
    return name
