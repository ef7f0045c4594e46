// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "shim/typemap.h"

#include <climits>
#include <limits>
#include <mutex>
#include <new>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

#include "shim/shim.h"
#include "shim/type_contents.h"

namespace accord::shim {
namespace {

using TypemapPointer = std::shared_ptr<const core::Typemap>;

struct NamedTypes {
  std::shared_mutex mutex;
  std::unordered_map<std::uint64_t, TypemapPointer> typemaps;
};
NamedTypes& named_types() {
  static NamedTypes& instance = *new NamedTypes;
  return instance;
}

int delete_typemap(MPI_Datatype, int, void* value, void*) {
  delete static_cast<TypemapPointer*>(value);
  return MPI_SUCCESS;
}

int typemap_keyval = MPI_KEYVAL_INVALID;

// The packed form of one element, by a message to ourselves.
int pack_one(const void* element, MPI_Datatype datatype, std::vector<unsigned char>& packed) {
  static std::mutex& one_message = *new std::mutex;  // two threads' messages must not cross
  const std::lock_guard<std::mutex> locked(one_message);
  const MPI_Comm self = private_comm();
  if (self == MPI_COMM_NULL) return MPI_ERR_COMM;
#ifdef ACCORD_HAS_Sendrecv_c
  if (host::slot::Sendrecv_c != nullptr) {
    return host::slot::Sendrecv_c(element, 1, datatype, 0, kTypemapTag, packed.data(),
                                  static_cast<MPI_Count>(packed.size()), MPI_PACKED, 0, kTypemapTag,
                                  self, MPI_STATUS_IGNORE);
  }
#endif
  if (packed.size() > INT_MAX) return MPI_ERR_TYPE;
  return host::slot::Sendrecv(element, 1, datatype, 0, kTypemapTag, packed.data(),
                              static_cast<int>(packed.size()), MPI_PACKED, 0, kTypemapTag, self,
                              MPI_STATUS_IGNORE);
}

// Sends an element whose byte at each offset is given by `value`, and calls visit(position,
// received byte).
template <class Value, class Visit>
bool probe(MPI_Datatype datatype, MPI_Count low, std::vector<unsigned char>& element,
           std::vector<unsigned char>& packed, Value value, Visit visit) {
  for (std::size_t byte = 0; byte < element.size(); ++byte)
    element[byte] = static_cast<unsigned char>(value(byte));
  if (pack_one(element.data() - low, datatype, packed) != MPI_SUCCESS) return false;
  for (std::size_t position = 0; position < packed.size(); ++position)
    visit(position, packed[position]);
  return true;
}

constexpr std::size_t kNowhere = std::numeric_limits<std::size_t>::max();

// Where each byte of the packed element lies, relative to `low`, or kNowhere for padding that does
// not travel: there the packed form holds anything, so every answer is checked against that to the
// complement.
bool read_offsets(MPI_Datatype datatype, MPI_Count low, std::size_t span_bytes,
                  std::vector<std::size_t>& offsets) {
  std::vector<unsigned char> element(span_bytes);
  std::vector<unsigned char> packed(offsets.size());
  std::vector<bool> padding(offsets.size());
  const auto expect = [&](unsigned constant) {
    return probe(
        datatype, low, element, packed, [&](std::size_t) { return constant; },
        [&](std::size_t position, unsigned char byte) {
          if (byte != constant) padding[position] = true;
        });
  };
  if (!expect(0x00) || !expect(0xff)) return false;
  for (unsigned plane = 0; plane == 0 || (span_bytes - 1) >> (8 * plane) != 0; ++plane) {
    const auto digit = [&](std::size_t byte) { return (byte >> (8 * plane)) & 0xff; };
    const bool sent =
        probe(datatype, low, element, packed, digit,
              [&](std::size_t position, unsigned char byte) {
                offsets[position] |= static_cast<std::size_t>(byte) << (8 * plane);
              }) &&
        probe(
            datatype, low, element, packed, [&](std::size_t byte) { return ~digit(byte); },
            [&](std::size_t position, unsigned char byte) {
              if ((digit(offsets[position]) ^ byte) != 0xff) padding[position] = true;
            });
    if (!sent) return false;
  }
  for (std::size_t position = 0; position < offsets.size(); ++position) {
    if (padding[position]) offsets[position] = kNowhere;
  }
  return true;
}

struct Extent {
  MPI_Count size = 0;
  MPI_Count lower_bound = 0;
  MPI_Count bytes = 0;
};
bool has_extent(MPI_Datatype datatype, Extent& extent) {
  return host::Type_size_x(datatype, &extent.size) == MPI_SUCCESS &&
         host::Type_get_extent_x(datatype, &extent.lower_bound, &extent.bytes) == MPI_SUCCESS;
}
bool is_one_run(const Extent& extent) {
  return extent.size > 0 && extent.size == extent.bytes && extent.lower_bound == 0;
}

bool is_repetition(MPI_Datatype datatype);

// Each block behind the one before.
bool is_row_of_blocks(const TypeContents& contents) {
  const auto& numbers = contents.numbers();
  const std::size_t blocks = contents.types().size();
  if (numbers.size() != 1 + 2 * blocks) return false;
  MPI_Count end = 0;
  for (std::size_t i = 0; i < blocks; ++i) {
    const MPI_Count length = numbers[1 + i];
    if (length == 0) continue;
    Extent extent;
    if (numbers[1 + blocks + i] != end || !is_repetition(contents.types()[i]) ||
        !has_extent(contents.types()[i], extent) || !is_one_run(extent))
      return false;
    end += length * extent.bytes;
  }
  return true;
}

// Whether one element is one run of bytes because it is made of such by repetition, or one behind
// the other. Asked before the bytes are traced, which takes ten times an element's memory: programs
// make types of gibibytes to get round int counts, of many chunks and what is left (BigMPI).
bool is_repetition(MPI_Datatype datatype) {
  const int combiner = combiner_of(datatype);
  if (combiner == MPI_COMBINER_NAMED) {
    Extent extent;
    return has_extent(datatype, extent) && is_one_run(extent);
  }
  if (combiner == MPI_COMBINER_STRUCT) return is_row_of_blocks(TypeContents(datatype));
  if (combiner != MPI_COMBINER_CONTIGUOUS && combiner != MPI_COMBINER_DUP) return false;
  const TypeContents contents(datatype);
  return contents.types().size() == 1 && is_repetition(contents.types()[0]);
}

// Null where there is no memory to trace it in, too.
TypemapPointer build(MPI_Datatype datatype, bool named) noexcept try {
  MPI_Count low = 0;
  MPI_Count span = 0;
  Extent whole;
  if (!has_extent(datatype, whole) || whole.size < 0) return nullptr;
  if (host::Type_get_true_extent_x(datatype, &low, &span) != MPI_SUCCESS) return nullptr;
  const auto [size, lower_bound, extent] = whole;
  if (size == 0) return std::make_shared<const core::Typemap>(std::vector<core::Run>{}, extent);
  const bool one_run = named ? size == extent : size == extent && is_repetition(datatype);
  if (one_run) return core::Typemap::contiguous(static_cast<std::size_t>(size));
  std::vector<std::size_t> offsets(static_cast<std::size_t>(size));
  if (!read_offsets(datatype, low, static_cast<std::size_t>(span), offsets)) return nullptr;
  std::vector<core::Run> runs;
  for (const std::size_t offset : offsets) {
    const bool padding = offset == kNowhere;
    const std::ptrdiff_t address =
        padding ? core::kPadding : static_cast<std::ptrdiff_t>(offset) + low;
    core::Run* last = runs.empty() ? nullptr : &runs.back();
    if (last != nullptr && !padding && last->offset_bytes != core::kPadding &&
        last->offset_bytes + static_cast<std::ptrdiff_t>(last->length_bytes) == address) {
      ++last->length_bytes;
    } else {
      runs.push_back({address, 1, 0});
    }
  }
  return std::make_shared<const core::Typemap>(std::move(runs), extent);
} catch (const std::bad_alloc&) {
  return nullptr;
}

}  // namespace

bool is_named(MPI_Datatype datatype) noexcept {
  return combiner_of(datatype) == MPI_COMBINER_NAMED;
}

TypemapPointer known_typemap(MPI_Datatype datatype) noexcept {
  if (datatype == MPI_DATATYPE_NULL) return nullptr;
  NamedTypes& named = named_types();
  {
    const std::shared_lock<std::shared_mutex> locked(named.mutex);
    if (const auto found = named.typemaps.find(to_bits(datatype)); found != named.typemaps.end()) {
      return found->second;
    }
  }
  if (is_named(datatype)) {
    TypemapPointer made = build(datatype, true);
    if (made) {
      const std::unique_lock<std::shared_mutex> locked(named.mutex);
      named.typemaps.emplace(to_bits(datatype), made);
    }
    return made;
  }
  void* value = nullptr;
  int found = 0;
  if (host::Type_get_attr(datatype, typemap_keyval, &value, &found) != MPI_SUCCESS || found == 0)
    return nullptr;
  return *static_cast<TypemapPointer*>(value);
}

TypemapPointer typemap(MPI_Datatype datatype) noexcept {
  TypemapPointer known = known_typemap(datatype);
  if (known || datatype == MPI_DATATYPE_NULL || is_named(datatype)) return known;
  TypemapPointer made = build(datatype, false);
  if (!made) return nullptr;
  auto kept = std::make_unique<TypemapPointer>(made);
  if (host::Type_set_attr(datatype, typemap_keyval, kept.get()) == MPI_SUCCESS)
    (void)kept.release();
  return made;
}

void make_type_keyval() noexcept {
  if (typemap_keyval == MPI_KEYVAL_INVALID)
    (void)host::Type_create_keyval(MPI_TYPE_NULL_COPY_FN, delete_typemap, &typemap_keyval, nullptr);
}
void free_type_keyval() noexcept {
  if (typemap_keyval != MPI_KEYVAL_INVALID) (void)host::Type_free_keyval(&typemap_keyval);
}

}  // namespace accord::shim
