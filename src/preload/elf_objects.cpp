// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "preload/elf_objects.h"

#include <cstring>

namespace accord::preload {

namespace {

// The layout of DT_GNU_HASH.
struct GnuHashHeader {
  std::uint32_t bucket_count;
  std::uint32_t first_symbol;
  std::uint32_t filter_words;
  std::uint32_t filter_shift;
};

std::uint32_t hash_gnu(const char* name) noexcept {
  std::uint32_t hash = 5381;
  for (; *name != '\0'; ++name) hash = hash * 33 + static_cast<unsigned char>(*name);
  return hash;
}

std::uint32_t hash_sysv(const char* name) noexcept {
  std::uint32_t hash = 0;
  for (; *name != '\0'; ++name) {
    hash = (hash << 4) + static_cast<unsigned char>(*name);
    const std::uint32_t high = hash & 0xf0000000U;
    hash = (hash ^ (high >> 24)) & ~high;
  }
  return hash;
}

bool is_definition(const ElfW(Sym) & symbol) noexcept {
  return symbol.st_shndx != SHN_UNDEF && symbol.st_value != 0;
}

const ElfW(Sym) * find_by_gnu_hash(const ElfObject& object, const char* name) noexcept {
  constexpr std::uint32_t kBits = 8 * sizeof(ElfW(Addr));
  const auto& header = *reinterpret_cast<const GnuHashHeader*>(object.gnu_hash);
  const auto* filter = reinterpret_cast<const ElfW(Addr)*>(object.gnu_hash + 4);
  const auto* buckets = reinterpret_cast<const std::uint32_t*>(filter + header.filter_words);
  const std::uint32_t* chains = buckets + header.bucket_count;
  if (header.bucket_count == 0 || header.filter_words == 0) return nullptr;

  const std::uint32_t hash = hash_gnu(name);
  const ElfW(Addr) word = filter[(hash / kBits) % header.filter_words];
  const ElfW(Addr) mask = (ElfW(Addr){1} << (hash % kBits)) |
                          (ElfW(Addr){1} << ((hash >> header.filter_shift) % kBits));
  if ((word & mask) != mask) return nullptr;

  std::uint32_t index = buckets[hash % header.bucket_count];
  if (index < header.first_symbol) return nullptr;
  for (;; ++index) {
    const std::uint32_t chained = chains[index - header.first_symbol];
    const ElfW(Sym)& symbol = object.symbols[index];
    if ((chained | 1U) == (hash | 1U) && is_definition(symbol) &&
        std::strcmp(object.strings + symbol.st_name, name) == 0) {
      return &symbol;
    }
    if ((chained & 1U) != 0) return nullptr;
  }
}

const ElfW(Sym) * find_by_sysv_hash(const ElfObject& object, const char* name) noexcept {
  const ElfW(Word)* table = object.sysv_hash;
  const ElfW(Word) bucket_count = table[0];
  const ElfW(Word)* buckets = table + 2;
  const ElfW(Word)* chains = buckets + bucket_count;
  if (bucket_count == 0) return nullptr;
  for (ElfW(Word) index = buckets[hash_sysv(name) % bucket_count]; index != STN_UNDEF;
       index = chains[index]) {
    const ElfW(Sym)& symbol = object.symbols[index];
    if (is_definition(symbol) && std::strcmp(object.strings + symbol.st_name, name) == 0) {
      return &symbol;
    }
  }
  return nullptr;
}

}  // namespace

const ElfW(Sym) * ElfObject::find(const char* name) const noexcept {
  if (gnu_hash != nullptr) return find_by_gnu_hash(*this, name);
  if (sysv_hash != nullptr) return find_by_sysv_hash(*this, name);
  return nullptr;
}

const char* ElfObject::needed(std::size_t n) const noexcept {
  for (const ElfW(Dyn)* entry = dynamic; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_NEEDED && n-- == 0) return strings + entry->d_un.d_val;
  }
  return nullptr;
}

bool read_object(const dl_phdr_info& info, ElfObject& object) noexcept {
  object.path = info.dlpi_name == nullptr ? "" : info.dlpi_name;
  object.base = info.dlpi_addr;
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    if (info.dlpi_phdr[i].p_type == PT_DYNAMIC) {
      object.dynamic =
          reinterpret_cast<const ElfW(Dyn)*>(info.dlpi_addr + info.dlpi_phdr[i].p_vaddr);
    }
  }
  if (object.dynamic == nullptr) return false;

  // The C library relocates these addresses in place for most objects, but not for the kernel's
  // own.
  const auto address = [&](const ElfW(Dyn) & entry) {
    return entry.d_un.d_ptr < object.base ? object.base + entry.d_un.d_ptr : entry.d_un.d_ptr;
  };
  ElfW(Xword) soname_offset = 0;
  for (const ElfW(Dyn)* entry = object.dynamic; entry->d_tag != DT_NULL; ++entry) {
    switch (entry->d_tag) {
      case DT_SYMTAB:
        object.symbols = reinterpret_cast<const ElfW(Sym)*>(address(*entry));
        break;
      case DT_STRTAB:
        object.strings = reinterpret_cast<const char*>(address(*entry));
        break;
      case DT_GNU_HASH:
        object.gnu_hash = reinterpret_cast<const std::uint32_t*>(address(*entry));
        break;
      case DT_HASH:
        object.sysv_hash = reinterpret_cast<const ElfW(Word)*>(address(*entry));
        break;
      case DT_SONAME:
        soname_offset = entry->d_un.d_val;
        break;
      default:
        break;
    }
  }
  if (object.symbols == nullptr || object.strings == nullptr) return false;
  if (soname_offset != 0) object.soname = object.strings + soname_offset;
  return true;
}

std::vector<ElfObject> loaded_objects() {
  std::vector<ElfObject> objects;
  visit_objects([&](const ElfObject& object) {
    objects.push_back(object);
    return false;
  });
  return objects;
}

bool find_object(const void* address, ElfObject& found) noexcept {
  struct Search {
    ElfW(Addr) address;
    ElfObject* found;
  } search{reinterpret_cast<ElfW(Addr)>(address), &found};
  auto callback = [](dl_phdr_info* info, std::size_t, void* data) -> int {
    const auto& wanted = *static_cast<Search*>(data);
    for (int i = 0; i < info->dlpi_phnum; ++i) {
      const ElfW(Phdr)& segment = info->dlpi_phdr[i];
      const ElfW(Addr) start = info->dlpi_addr + segment.p_vaddr;
      if (segment.p_type == PT_LOAD && wanted.address >= start &&
          wanted.address - start < segment.p_memsz) {
        return read_object(*info, *wanted.found) ? 1 : 0;
      }
    }
    return 0;
  };
  return dl_iterate_phdr(callback, &search) != 0;
}

}  // namespace accord::preload
