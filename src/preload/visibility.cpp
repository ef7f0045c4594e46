// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Makes libaccord show exactly the functions that the MPI of the process has. Programs ask for a
// function before they use it, by a weak reference or dlsym: mpi4py takes MPI_Allreduce_c where it
// finds one and its own code elsewhere, and takes the process to have an MPI already when it finds
// any MPI function. libaccord defines them all, so without this such a program would be led to call
// what is not there.
//
// The symbol table of a loaded library is plain data that the dynamic linker reads at each lookup.
// The constructor below edits our own, where we were preloaded:
// - an MPI is loaded already (a linked program): functions it lacks get value 0, which a lookup
// passes over;
// - none yet (python + mpi4py): every function becomes an IFUNC symbol, whose resolver the dynamic
// linker
//   calls at each later lookup and which answers by then.
// A program linked with -laccord keeps them all: it was built for them, and a call of one that its
// MPI lacks returns an error that names it. A table that cannot be edited costs only this
// refinement.
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/log.h"
#include "preload/bind.h"
#include "preload/elf_objects.h"
#include "preload/host_mpi.h"
#include "preload/shim_abi.h"
#include "preload/trampolines.h"

namespace accord::preload {

namespace {

bool is_mpi_loaded() {
  return visit_objects([](const ElfObject& object) { return is_host_mpi(object); });
}

// Whether a loaded MPI, or Accord itself on top of one, has the function.
bool is_in_process(const Trampoline& trampoline) {
  const char* mpi_name = trampoline.name[0] == 'P' ? trampoline.name + 1 : trampoline.name;
  const bool provided = is_provided_by_accord(trampoline.name);
  return visit_objects([&](const ElfObject& object) {
    return is_host_mpi(object) && (provided || object.defines(mpi_name));
  });
}

bool is_linked_with(const ElfObject& self) {
  return visit_objects([&](const ElfObject& object) {
    for (std::size_t n = 0; const char* name = object.needed(n); ++n) {
      if (std::strcmp(name, self.soname) == 0) return true;
    }
    return false;
  });
}

// Opens the pages of our symbol table for writing as long as it lives.
class EditableSymbols {
 public:
  explicit EditableSymbols(const ElfObject& self) : self_(self) {
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    std::uintptr_t low = UINTPTR_MAX;
    std::uintptr_t high = 0;
    for (const Trampoline& trampoline : trampolines()) {
      const auto address = reinterpret_cast<std::uintptr_t>(self.find(trampoline.name));
      if (address == 0) continue;
      low = std::min(low, address);
      high = std::max(high, address + sizeof(ElfW(Sym)));
    }
    if (high == 0) return;
    start_ = reinterpret_cast<void*>(low / page * page);
    size_bytes_ = high - low / page * page;
    open_ = mprotect(start_, size_bytes_, PROT_READ | PROT_WRITE) == 0;
  }
  ~EditableSymbols() {
    if (open_) mprotect(start_, size_bytes_, PROT_READ);
  }
  EditableSymbols(const EditableSymbols&) = delete;
  EditableSymbols& operator=(const EditableSymbols&) = delete;

  bool open() const { return open_; }

  void hide(const Trampoline& trampoline) {
    if (auto* symbol = const_cast<ElfW(Sym)*>(self_.find(trampoline.name))) symbol->st_value = 0;
  }

  void make_chosen(const Trampoline& trampoline) {
    if (auto* symbol = const_cast<ElfW(Sym)*>(self_.find(trampoline.name))) {
      symbol->st_info =
          static_cast<unsigned char>(ELF64_ST_INFO(ELF64_ST_BIND(symbol->st_info), STT_GNU_IFUNC));
      symbol->st_value = reinterpret_cast<ElfW(Addr)>(trampoline.chooser) - self_.base;
    }
  }

 private:
  const ElfObject& self_;
  void* start_ = nullptr;
  std::size_t size_bytes_ = 0;
  bool open_ = false;
};

bool linked = false;  // as Accord was loaded; its shims, which are linked with it, come later

[[gnu::constructor]] void fit_symbols_to_mpi() {
  ElfObject self;
  if (!find_object(&accord_trampolines, self)) return;
  linked = is_linked_with(self);
  if (linked) return;
  const bool loaded = is_mpi_loaded();
  EditableSymbols symbols(self);
  if (!symbols.open()) {
    log::debug("cannot hide the functions that the MPI of this process lacks");
    return;
  }
  for (const Trampoline& trampoline : trampolines()) {
    if (!loaded) {
      symbols.make_chosen(trampoline);
    } else if (!is_in_process(trampoline)) {
      symbols.hide(trampoline);
    }
  }
}

}  // namespace

bool is_linked() noexcept { return linked; }

void* accord_symbol_address(const Trampoline* trampoline) {
  return is_in_process(*trampoline) ? trampoline->code : nullptr;
}

}  // namespace accord::preload
