"""Linking of callees into entry points."""

from types import SimpleNamespace

from numba.core.codegen import JITCodeLibrary

from raybox.compiler.linking import CalleeLibrary, EntryLibrary


def test_libraries_of_numba_before_0_63_have_no_reload_init(monkeypatch):
    monkeypatch.setattr(JITCodeLibrary, "finalize", lambda self: None)
    linked = []
    entry, callee = EntryLibrary.__new__(EntryLibrary), CalleeLibrary.__new__(CalleeLibrary)
    entry._final_module = SimpleNamespace(link_in=lambda module, preserve: linked.append(module))
    entry._linking_libraries, callee._linking_libraries = {callee}, set()
    callee._final_module = "callee"
    entry.finalize()
    assert linked == ["callee"]
    assert not entry._linking_libraries
