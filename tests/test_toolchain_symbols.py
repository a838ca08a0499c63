"""Which std::string a library was built with, and the advice about a missing symbol."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from msops._toolchain import near_names, read_elf, require_symbol, uses_old_strings
from msops.errors import BuildError

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


@pytest.mark.skipif(not shutil.which("g++"), reason="needs g++")
@pytest.mark.parametrize("optimize", ["-O0", "-O3"])
@pytest.mark.parametrize("use", USES)
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
        imports = read_elf(library).imports
        # The demangler is the oracle: it prints the older type without the namespace __cxx11.
        plain = subprocess.run(
            ["c++filt"], input="\n".join(imports), capture_output=True, text=True, check=True
        ).stdout
        mentions_old = any(
            "std::string" in line or "std::basic_string<char," in line
            for line in plain.splitlines()
        )
        assert uses_old_strings(imports) is (not new)
        assert uses_old_strings(imports) is mentions_old


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
def test_the_substitution_is_found(name: str) -> None:
    assert uses_old_strings([name])


@pytest.mark.parametrize(
    "name",
    [
        "ProcessSs",
        "_Z9ProcessSsi",
        "_ZN7ClassSs3runEv",
        "_ZTSs",
        "_ZlSs1A",
        "_Z1f3abcS_s",
        "_Z1f3abcS0_s",
        "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE9_M_appendEPKcm",
        "_Z1fSt6vectorIsSaIsEE",
        "",
        "_Z",
        "_Z99999x",
    ],
)
def test_letters_that_only_look_like_it_are_not(name: str) -> None:
    assert not uses_old_strings([name])


@dataclass
class Exports:
    name: str
    functions: frozenset[str]


def message_of(symbol: str, *exports: str) -> str:
    with pytest.raises(BuildError) as caught:
        require_symbol(Exports("add.cc", frozenset(exports)), symbol, "Custom 'add'")
    return str(caught.value)


def test_a_symbol_that_is_there_passes() -> None:
    require_symbol(Exports("add.cc", frozenset({"Add"})), "Add", "Custom 'add'")


@pytest.mark.parametrize(
    "mangled", ["_Z3AddiPPv", "_ZN2op3AddEi", "_ZN3foo2op3AddEi", "_ZL3Addi", "_Z3AddIfEvi"]
)
def test_a_forgotten_extern_c_is_recognised(mangled: str) -> None:
    assert message_of("Add", mangled, "Adds") == (
        "Custom 'add': add.cc exports no function Add, but does export:\n"
        f"  {mangled}  (the C++ name of Add)\n"
        'Declare Add as extern "C".'
    )


def test_a_longer_cxx_name_is_not_taken_for_it() -> None:
    assert near_names("Add", ["_Z7AddMorei", "_Z13Addx"]) == ()


def test_a_misspelled_symbol_lists_its_likes() -> None:
    assert message_of("CustomAdd", "CustomAdds", "customadd", "Other", "_fini") == (
        "Custom 'add': add.cc exports no function CustomAdd, but does export:\n"
        "  customadd\n"
        "  CustomAdds\n"
        "Name one of these, or check the spelling in the source."
    )


def test_a_library_with_other_symbols_lists_them() -> None:
    assert message_of("Add", "Quux", "_init") == (
        "Custom 'add': add.cc exports no function Add, but does export:\n"
        "  Quux\n"
        'Define Add as extern "C", neither static nor hidden.'
    )


def test_a_library_without_symbols_says_so() -> None:
    assert message_of("Add") == (
        "Custom 'add': add.cc exports no function Add.\n"
        'Define Add as extern "C", neither static nor hidden.'
    )
