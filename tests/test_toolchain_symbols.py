"""Which std::string a library was built with, and the advice about a missing symbol."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from quick_cases import in_turn, one_in

from msops import Custom
from msops.errors import BuildError

X = np.zeros(1, np.float32)

# Each line uses strings as kernels do: built, appended, passed on, kept in containers, thrown.
USES = {
    "build": "std::string s(name); return s.size();",
    "append": "std::string s = std::string(name) + name; return s.find('x');",
    "vector": "std::vector<std::string> v; v.emplace_back(name); return v.size();",
    "stream": "std::ostringstream out; out << name; return out.str().size();",
    "throw": "throw std::runtime_error(std::string(name));",
    "virtual": "return static_cast<Extra *>(extra)->HasAttr(name);",
}
SOURCE = """
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>
struct Extra { virtual ~Extra() = default; virtual bool HasAttr(std::string name) = 0; };
extern "C" int Kernel(const char *name, void *extra) { %s }
"""


def library(path: Path, source: str, *flags: str) -> Path:
    """Compiles C as a user would, by hand."""
    command = ["gcc", "-x", "c", "-", "-shared", "-fPIC", "-o", path, *flags]
    subprocess.run(command, input=source.encode(), check=True)
    return path


def is_taken_for_old(path: Path, symbol: str = "Kernel") -> bool:
    """Returns whether a library is opened with the older std::string: else it has no other name."""
    told = Custom(f"{path}:{symbol}", (1,), np.float32).lower_text(X)
    new = Custom(f"{path}:{symbol}", (1,), np.float32, cxx11_abi=True).lower_text(X)
    old = Custom(f"{path}:{symbol}", (1,), np.float32, cxx11_abi=False).lower_text(X)
    assert (told == new) != (told == old)
    return told == old


@pytest.mark.skipif(not shutil.which("g++"), reason="needs g++")
@pytest.mark.parametrize(("use", "optimize"), one_in(2, in_turn(USES, ["-O0", "-O3"])))
def test_the_string_abi_of_a_library_is_told_by_its_imports(
    tmp_path: Path, use: str, optimize: str
) -> None:
    for new in (0, 1):
        library, define = tmp_path / f"abi{new}.so", f"-D_GLIBCXX_USE_CXX11_ABI={new}"
        subprocess.run(
            ["g++", "-x", "c++", "-", "-shared", "-fPIC", optimize, "-o", library, define],
            input=(SOURCE % USES[use]).encode(),
            check=True,
        )
        imports = [
            line.split()[-1].partition("@")[0]
            for line in subprocess.run(
                ["nm", "-D", "--undefined-only", library],
                capture_output=True,
                text=True,
                check=True,
            ).stdout.splitlines()
        ]
        # The demangler is the oracle: it prints the older type without the namespace __cxx11.
        plain = subprocess.run(
            ["c++filt"], input="\n".join(imports), capture_output=True, text=True, check=True
        ).stdout
        mentions_old = any(
            "std::string" in line or "std::basic_string<char," in line
            for line in plain.splitlines()
        )
        assert is_taken_for_old(library) is (not new)
        assert mentions_old is (not new)


def importing(folder: Path, *names: str) -> Path:
    """Returns a library that refers to functions with these names, which nothing has to define."""
    text = "".join(
        f'extern void f{n}(void) __asm__("{name}") __attribute__((weak));\n'
        for n, name in enumerate(names)
    )
    calls = " ".join(f"if (f{n}) f{n}();" for n in range(len(names)))
    return library(folder / "lib.so", f"{text}int Kernel(void) {{ {calls} return 0; }}\n")


@pytest.mark.parametrize(
    "name",
    [
        "_ZNSsC1EPKcRKSaIcE",
        "_ZNKSs4findEPKcmm",
        "_ZNSt13runtime_errorC1ERKSs",
        "_Z1fSs",
        "_Z1flSs",
        "_ZN2op3runEiPKSs",
        "_ZTISs",
        "_ZTSSs",
        "_ZNSt6vectorISsSaISsEE9push_backERKSs",
        "_Z1f3abcS_Ss",
        "_Z1f3abcS0_RKSs",
    ],
)
def test_the_substitution_is_found(tmp_path: Path, name: str) -> None:
    assert is_taken_for_old(importing(tmp_path, name))


LOOKALIKES = [
    "ProcessSs",
    "_Z9ProcessSsi",
    "_ZN7ClassSs3runEv",
    "_ZTSs",
    "_ZlSs1A",
    "_Z1f3abcS_s",
    "_Z1f3abcS0_s",
    "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE9_M_appendEPKcm",
    "_Z1fSt6vectorIsSaIsEE",
    "_Z",
    "_Z99999x",
]


def test_letters_that_only_look_like_it_are_not(tmp_path: Path) -> None:
    assert not is_taken_for_old(importing(tmp_path, *LOOKALIKES))


def message_of(folder: Path, symbol: str, *exports: str) -> str:
    """Returns what is said of a symbol that a library with these functions lacks."""
    source = "".join(f"int {name}(void) {{ return 0; }}\n" for name in exports)
    path = library(folder / "add.so", source, "-nostdlib")
    with pytest.raises(BuildError) as caught:
        Custom(f"{path}:{symbol}", (1,), np.float32)(X)
    return str(caught.value)


def test_a_symbol_that_is_there_passes(tmp_path: Path) -> None:
    path = library(tmp_path / "add.so", "int Add(void) { return 0; }")
    Custom(f"{path}:Add", (1,), np.float32).lower_text(X)


@pytest.mark.parametrize(
    "mangled", ["_Z3AddiPPv", "_ZN2op3AddEi", "_ZN3foo2op3AddEi", "_ZL3Addi", "_Z3AddIfEvi"]
)
def test_a_forgotten_extern_c_is_recognised(tmp_path: Path, mangled: str) -> None:
    assert message_of(tmp_path, "Add", mangled, "Adds") == (
        "Custom 'Add': add.so exports no function Add, but does export:\n"
        f"  {mangled}  (the C++ name of Add)\n"
        'Declare Add as extern "C".'
    )


def test_a_longer_cxx_name_is_not_taken_for_it(tmp_path: Path) -> None:
    text = message_of(tmp_path, "Add", "_Z7AddMorei", "_Z13Addx")
    assert "the C++ name of Add" not in text
    assert text.endswith('Define Add as extern "C", neither static nor hidden.')


def test_a_misspelled_symbol_lists_its_likes(tmp_path: Path) -> None:
    assert message_of(tmp_path, "CustomAdd", "CustomAdds", "customadd", "Other", "_fini") == (
        "Custom 'CustomAdd': add.so exports no function CustomAdd, but does export:\n"
        "  customadd\n"
        "  CustomAdds\n"
        "Name one of these, or check the spelling in the source."
    )


def test_a_library_with_other_symbols_lists_them(tmp_path: Path) -> None:
    assert message_of(tmp_path, "Add", "Quux", "_init") == (
        "Custom 'Add': add.so exports no function Add, but does export:\n"
        "  Quux\n"
        'Define Add as extern "C", neither static nor hidden.'
    )


def test_a_library_without_symbols_says_so(tmp_path: Path) -> None:
    assert message_of(tmp_path, "Add") == (
        "Custom 'Add': add.so exports no function Add.\n"
        'Define Add as extern "C", neither static nor hidden.'
    )
