"""Stand-ins made for real libraries: a CUDA build of torch in small, compiled here.

``libtorch_cuda.so`` and NVIDIA's ``libcudart.so.99`` are compiled, ``libuser.so`` is linked with them, then both are
removed: what is left must load and behave.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from ranksafe.rehearsal.native.compiler import Compiler
from ranksafe.rehearsal.native.shared_library import read_shared_library
from ranksafe.rehearsal.native.stand_ins import HANDLER, link_stand_ins, plan

from tests.rehearsal.compiled import needed_compiler, shared_library

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="rehearsals run on Linux so far"
)

CUDA_RUNTIME = """
extern "C" int cudaGetDeviceCount(int* count) { *count = 8; return 0; }
extern "C" const char* cudaGetErrorString(int) { return "real"; }
extern "C" int cuptiGetResultString(int, const char** text) { *text = "real"; return 1; }
extern "C" int cuptiGetCallbackName(int, unsigned, const char** text) { *text = "real"; return 1; }
extern "C" void** __cudaRegisterFatBinary(void*) { return nullptr; }
"""
HEADER = """
#include <cstdint>
#include <functional>
#include <typeinfo>
extern "C" int cudaGetDeviceCount(int*);
extern "C" const char* cudaGetErrorString(int);
extern "C" int cuptiGetResultString(int, const char**);
extern "C" int cuptiGetCallbackName(int, unsigned, const char**);
namespace c10 { namespace cuda {
struct Checker { virtual ~Checker(); virtual int check(); };
struct Plain { ~Plain(); int data = 3; };
extern int some_table[100];
extern thread_local int per_thread;
std::function<int()>& checker();
std::int8_t device_count();
bool available();
int only_for_extensions(const char* text, double number);
int provided_by_the_devices();
} }
"""
TORCH_CUDA = """
#include "torch.h"
extern "C" void** __cudaRegisterFatBinary(void*);
void** registered = __cudaRegisterFatBinary(nullptr);
namespace c10 { namespace cuda {
Checker::~Checker() {}
int Checker::check() { return 1; }
Plain::~Plain() {}
int some_table[100] = {1, 2, 3};
thread_local int per_thread = 5;
std::function<int()>& checker() { static std::function<int()> found = [] { return 1; }; return found; }
std::int8_t device_count() { int count; cudaGetDeviceCount(&count); return count; }
bool available() { return true; }
int only_for_extensions(const char*, double) { return 1; }
int provided_by_the_devices() { return 1; }
int everybodys() { return 1; }
} }
"""
USER = """
#include "torch.h"
#include <cstring>
#include <string>
using namespace c10::cuda;
namespace c10 { namespace cuda { int everybodys() { return 42; } } }
static std::string text;
template <class Function> static const char* caught(Function function) {
  try { function(); text = "nothing"; } catch (const std::exception& error) { text = error.what(); }
  return text.c_str();
}
extern "C" {
int registry_is_empty() { return !checker(); }
int count() { return device_count(); }
int is_available() { return available(); }
int runtime_result() { int count; return cudaGetDeviceCount(&count); }
const char* runtime_text() { return cudaGetErrorString(100); }
const char* result_text() {
  const char* text = nullptr;
  return cuptiGetResultString(1, &text) == 0 && text != nullptr ? text : "none";
}
const char* callback_name() {
  const char* text = nullptr;
  return cuptiGetCallbackName(1, 2, &text) == 0 && text != nullptr ? text : "none";
}
int table_sum() { int sum = per_thread; for (int i : some_table) sum += i; return sum; }
const char* type_name() { return typeid(Checker).name(); }
int a_destructor_is_silent() { Plain plain; return plain.data; }
const char* call_count() { return caught([] { device_count(); }); }
const char* call_virtual() { return caught([] { Checker* volatile made = new Checker; made->check(); }); }
int devices() { return provided_by_the_devices(); }
int kept() { return everybodys(); }
}
"""
EXTENSION = """
#include "torch.h"
extern "C" void** __cudaRegisterFatBinary(void*);
static void** registered = __cudaRegisterFatBinary(nullptr);
extern "C" int is_registered() { return reinterpret_cast<unsigned long>(registered) > 4096; }
extern "C" int call() { return c10::cuda::only_for_extensions("", 0); }
"""
DEVICES = "namespace c10 { namespace cuda { int provided_by_the_devices() { return 7; } } }"


@dataclass(frozen=True)
class Scene:
    """A folder with libraries whose dependencies are gone, and stand-ins for those."""

    folder: Path
    stand_ins: tuple[str, ...]

    def run(self, program: str) -> subprocess.CompletedProcess[str]:
        """Run a Python program after ``load(name)`` was defined and the stand-ins were loaded in order."""
        preamble = (
            "import ctypes, os\n"
            "def load(name):\n"
            "    return ctypes.CDLL(os.path.join(os.getcwd(), name), mode=ctypes.RTLD_GLOBAL)\n"
            f"first, *_ = [load('stand_ins/' + name) for name in {self.stand_ins!r}]\n"
            "load('libdevices.so')\n"
            "user = load('libuser.so')\n"
            "def text(function):\n"
            "    function.restype = ctypes.c_char_p\n"
            "    return function().decode()\n"
        )
        command = [sys.executable, "-c", preamble + program]
        return subprocess.run(
            command, cwd=self.folder, capture_output=True, text=True, check=False, timeout=60
        )


@pytest.fixture(scope="module")
def compiler() -> Compiler:
    return needed_compiler()


@pytest.fixture(scope="module")
def scene(compiler: Compiler, tmp_path_factory: pytest.TempPathFactory) -> Scene:
    folder = tmp_path_factory.mktemp("libraries")
    (folder / "torch.h").write_text(HEADER)
    script = folder / "versions.map"
    script.write_text("libcudart.so.99 { global: *; };\n")
    runtime = shared_library(
        compiler, folder / "libcudart.so.99", CUDA_RUNTIME, f"-Wl,--version-script={script}"
    )
    torch_cuda = shared_library(compiler, folder / "libtorch_cuda.so", TORCH_CUDA, str(runtime))
    needs = (str(torch_cuda), str(runtime))
    user = shared_library(compiler, folder / "libuser.so", USER, *needs)
    shared_library(compiler, folder / "libextension.so", EXTENSION, *needs)
    devices = shared_library(compiler, folder / "libdevices.so", DEVICES)
    planned = plan(
        [read_shared_library(user), read_shared_library(devices)], [read_shared_library(torch_cuda)]
    )
    runtime.unlink()
    torch_cuda.unlink()
    (folder / "stand_ins").mkdir()
    names = link_stand_ins(planned, compiler, folder / "stand_ins", lambda: False)
    return Scene(folder, names)


def shown(scene: Scene, program: str) -> list[str]:
    done = scene.run(program)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""  # not a word of the dynamic linker's either
    return done.stdout.splitlines()


def test_there_is_one_library_per_soname_and_the_handler_is_first(scene: Scene) -> None:
    assert scene.stand_ins == (HANDLER, "libtorch_cuda.so", "libcudart.so.99")


def test_the_libraries_load_without_what_they_need(scene: Scene) -> None:
    assert shown(scene, "print('loaded')") == ["loaded"]


def test_without_stand_ins_they_do_not(scene: Scene) -> None:
    command = [sys.executable, "-c", "import ctypes; ctypes.CDLL('./libuser.so')"]
    done = subprocess.run(command, cwd=scene.folder, capture_output=True, text=True, check=False)
    assert "cannot open shared object file" in done.stderr


def test_calls_are_forgiven_while_torch_is_imported(scene: Scene) -> None:
    program = "print(user.registry_is_empty(), user.count(), user.is_available())"
    assert shown(scene, program) == ["1 0 0"]


def test_afterwards_they_are_limits_by_their_readable_name(scene: Scene) -> None:
    program = "first.ranksafe_stand_ins_arm()\nprint(text(user.call_count))"
    assert shown(scene, program) == [
        "ranksafe simulation limit: c10::cuda::device_count() is not simulated"
    ]


def test_a_virtual_function_is_a_limit_too(scene: Scene) -> None:
    program = "first.ranksafe_stand_ins_arm()\nprint(text(user.call_virtual))"
    assert shown(scene, program) == [
        "ranksafe simulation limit: vtable for c10::cuda::Checker is not simulated"
    ]


def test_a_destructor_raises_nothing(scene: Scene) -> None:
    program = "first.ranksafe_stand_ins_arm()\nprint(user.a_destructor_is_silent())"
    assert shown(scene, program) == ["3"]


def test_functions_of_nvidia_report_that_there_is_no_device(scene: Scene) -> None:
    program = "print(user.runtime_result(), text(user.runtime_text))"
    assert shown(scene, program) == [
        "100 no CUDA-capable device is detected (ranksafe: simulated GPUs)"
    ]


def test_a_text_that_comes_through_an_argument_is_there(scene: Scene) -> None:
    program = "print(text(user.result_text), text(user.callback_name), sep='; ')"
    no_device = "no CUDA-capable device is detected (ranksafe: simulated GPUs)"
    assert shown(scene, program) == [f"{no_device}; {no_device}"]


def test_data_is_there_and_zero(scene: Scene) -> None:
    assert shown(scene, "print(user.table_sum(), text(user.type_name))") == [
        "0 N3c104cuda7CheckerE"
    ]


def test_what_the_devices_implement_gets_no_stub(scene: Scene) -> None:
    assert shown(scene, "first.ranksafe_stand_ins_arm(); print(user.devices())") == ["7"]


def test_what_a_kept_library_defines_is_not_taken_over(scene: Scene) -> None:
    assert shown(scene, "first.ranksafe_stand_ins_arm(); print(user.kept())") == ["42"]


def test_an_extension_of_another_package_loads_and_fails_at_the_call(scene: Scene) -> None:
    program = (
        "import sys\n"
        "extension = load('libextension.so')\n"
        "print(extension.is_registered())\n"
        "sys.stdout.flush()\n"
        "first.ranksafe_stand_ins_arm()\n"
        "extension.call()\n"
    )
    done = scene.run(program)
    assert done.stdout == "1\n"
    # ctypes lets no C++ exception through; an extension module of torch turns it into a Python exception.
    assert "ranksafe simulation limit: c10::cuda::only_for_extensions(" in done.stderr
