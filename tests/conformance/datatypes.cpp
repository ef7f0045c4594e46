// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "datatypes.h"

#include <algorithm>
#include <stdexcept>

namespace accord::conformance {
namespace {

using Displacements = std::vector<std::ptrdiff_t>;

constexpr int kCompositeCountMax = 64;

std::vector<Piece> placed(const TypeModel& old, const Displacements& at_bytes) {
  std::vector<Piece> pieces;
  pieces.reserve(old.pieces.size() * at_bytes.size());
  for (std::ptrdiff_t at : at_bytes)
    for (const Piece& piece : old.pieces)
      pieces.push_back({piece.offset_bytes + at, piece.element});
  return pieces;
}

// Lengths of blocks that add up to `total`.
std::vector<std::int64_t> split(int total, Rng& rng) {
  std::vector<std::int64_t> lengths;
  while (total > 0) {
    const int length = rng.between(1, total);
    lengths.push_back(length);
    total -= length;
  }
  return lengths;
}

int random_divisor(int count, Rng& rng) {
  std::vector<int> divisors;
  for (int d = 1; d <= count; ++d)
    if (count % d == 0) divisors.push_back(d);
  return rng.pick(divisors);
}

// Where blocks of the given lengths (in elements) start: increasing with random gaps, or in another
// order.
std::vector<std::int64_t> starts(const std::vector<std::int64_t>& lengths, Rng& rng) {
  std::vector<std::size_t> order(lengths.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  if (rng.chance(25)) rng.shuffle(order);
  std::vector<std::int64_t> result(lengths.size());
  std::int64_t cursor = rng.chance(20) ? -rng.below(5) : rng.below(3);
  for (std::size_t i : order) {
    result[i] = cursor;
    cursor += lengths[i] + rng.below(4);
  }
  return result;
}

void check_type_call(int code, const char* what) {
  if (code != MPI_SUCCESS) throw std::runtime_error(std::string(what) + " failed");
}

}  // namespace

Span footprint(const TypeModel& type, std::int64_t count) {
  if (count <= 0) return {};
  const std::ptrdiff_t last = (count - 1) * type.extent_bytes;
  return {std::min<std::ptrdiff_t>({0, type.true_lb_bytes, last + type.true_lb_bytes}),
          std::max<std::ptrdiff_t>({0, type.true_ub_bytes, last + type.true_ub_bytes})};
}

bool TypeFactory::large(Rng& rng) const {
  const bool wanted = rng.chance(30);
  return wanted && api_.Type_contiguous.large != nullptr;
}

TypeModel* TypeFactory::adopt(MPI_Datatype handle, std::string text, std::vector<Piece> pieces) {
  TypeModel& model = models_.emplace_back();
  model.handle = handle;
  model.owned = true;
  model.text = std::move(text);
  model.pieces = std::move(pieces);
  check_type_call(api_.Type_commit(&model.handle), "Type_commit");
  MPI_Aint lb = 0;
  MPI_Aint extent = 0;
  check_type_call(api_.Type_get_extent(model.handle, &lb, &extent), "Type_get_extent");
  model.lb_bytes = lb;
  model.extent_bytes = extent;
  if (model.pieces.empty()) return &model;
  model.true_lb_bytes = model.pieces.front().offset_bytes;
  model.true_ub_bytes = model.true_lb_bytes;
  for (const Piece& piece : model.pieces) {
    const auto size = static_cast<std::ptrdiff_t>(piece.element->size_bytes);
    model.true_lb_bytes = std::min(model.true_lb_bytes, piece.offset_bytes);
    model.true_ub_bytes = std::max(model.true_ub_bytes, piece.offset_bytes + size);
    model.size_bytes += piece.element->size_bytes;
    model.align_bytes = std::max(model.align_bytes, piece.element->align_bytes);
  }
  check_model(model);
  return &model;
}

// The MPI must see the type as it is modelled here. Whether padding behind the index of a pair
// belongs to it is not defined.
void TypeFactory::check_model(const TypeModel& model) const {
  MPI_Aint lb = 0;
  MPI_Aint extent = 0;
  check_type_call(api_.Type_get_true_extent(model.handle, &lb, &extent), "Type_get_true_extent");
  std::ptrdiff_t least_ub = model.true_lb_bytes;
  for (const Piece& piece : model.pieces)
    least_ub = std::max(
        least_ub, piece.offset_bytes + static_cast<std::ptrdiff_t>(solid_bytes(*piece.element)));
  if (lb != model.true_lb_bytes || (lb + extent != model.true_ub_bytes && lb + extent != least_ub))
    throw std::runtime_error(model.text + " has true bounds " + std::to_string(lb) + ", " +
                             std::to_string(lb + extent) + ", modelled as " +
                             std::to_string(model.true_lb_bytes) + ", " +
                             std::to_string(model.true_ub_bytes));
}

const TypeModel* TypeFactory::predefined(const Element& element) {
  TypeModel& model = models_.emplace_back();
  model.handle = element.handle;
  model.text = element.name;
  model.pieces = {{0, &element}};
  model.extent_bytes = static_cast<std::ptrdiff_t>(element.size_bytes);
  model.true_ub_bytes = model.extent_bytes;
  model.size_bytes = element.size_bytes;
  model.align_bytes = element.align_bytes;
  return &model;
}

const TypeModel* TypeFactory::resized(const TypeModel& old, std::ptrdiff_t lb_bytes,
                                      std::ptrdiff_t extent_bytes, bool use_large) {
  MPI_Datatype handle = MPI_DATATYPE_NULL;
  check_type_call(api_.Type_create_resized(use_large, old.handle, Count{lb_bytes},
                                           Count{extent_bytes}, &handle),
                  "Type_create_resized");
  return adopt(handle,
               "resized(" + std::to_string(lb_bytes) + "," + std::to_string(extent_bytes) +
                   ") of " + old.text,
               old.pieces);
}

const TypeModel* TypeFactory::strided(const TypeModel& old, int count, Rng& rng) {
  const int length = random_divisor(count, rng);
  const int number = count / length;
#ifdef OPEN_MPI  // 5.0 tells wrong bounds of types with negative strides
  constexpr int kBackwards = 0;
#else
  constexpr int kBackwards = 20;
#endif
  const int stride = (rng.chance(kBackwards) ? -1 : 1) * (length + rng.below(4));
  const bool bytes = rng.chance(40);
  const bool use_large = large(rng);
  const std::ptrdiff_t stride_bytes = stride * old.extent_bytes;
  MPI_Datatype handle = MPI_DATATYPE_NULL;
  check_type_call(bytes ? api_.Type_create_hvector(use_large, Count{number}, Count{length},
                                                   Count{stride_bytes}, old.handle, &handle)
                        : api_.Type_vector(use_large, Count{number}, Count{length}, Count{stride},
                                           old.handle, &handle),
                  "Type_vector");
  Displacements at;
  for (int i = 0; i < number; ++i)
    for (int j = 0; j < length; ++j) at.push_back(i * stride_bytes + j * old.extent_bytes);
  return adopt(handle,
               std::string(bytes ? "hvector(" : "vector(") + std::to_string(number) + "," +
                   std::to_string(length) + "," + std::to_string(stride) + ") of " + old.text,
               placed(old, at));
}

const TypeModel* TypeFactory::blocks(const TypeModel& old, int count, Rng& rng) {
  const int kind = rng.below(5);
  std::vector<std::int64_t> lengths = split(count, rng);
  if (kind >= 3) {  // the block forms have one length
    const int length = random_divisor(count, rng);
    lengths.assign(static_cast<std::size_t>(count / length), length);
  }
  const std::vector<std::int64_t> first = starts(lengths, rng);
  std::vector<std::int64_t> first_bytes;
  for (std::int64_t start : first) first_bytes.push_back(start * old.extent_bytes);
  const Array length_array(lengths), start_array(first), byte_array(first_bytes);
  const ArrayRef length_ref{&length_array}, start_ref{&start_array}, byte_ref{&byte_array};
  const Count number{static_cast<std::int64_t>(lengths.size())};
  const bool use_large = large(rng);
  const std::vector<MPI_Datatype> types(lengths.size(), old.handle);
  static constexpr const char* kNames[] = {"indexed", "hindexed", "struct", "indexed_block",
                                           "hindexed_block"};
  MPI_Datatype handle = MPI_DATATYPE_NULL;
  int code = MPI_SUCCESS;
  if (kind == 0)
    code = api_.Type_indexed(use_large, number, length_ref, start_ref, old.handle, &handle);
  else if (kind == 1)
    code = api_.Type_create_hindexed(use_large, number, length_ref, byte_ref, old.handle, &handle);
  else if (kind == 2)
    code = api_.Type_create_struct(use_large, number, length_ref, byte_ref, types.data(), &handle);
  else if (kind == 3)
    code = api_.Type_create_indexed_block(use_large, number, Count{lengths[0]}, start_ref,
                                          old.handle, &handle);
  else
    code = api_.Type_create_hindexed_block(use_large, number, Count{lengths[0]}, byte_ref,
                                           old.handle, &handle);
  check_type_call(code, kNames[kind]);
  Displacements at;
  std::string text = std::string(kNames[kind]) + "(";
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    text += (i == 0 ? "" : ",") + std::to_string(lengths[i]) + "@" + std::to_string(first[i]);
    for (std::int64_t j = 0; j < lengths[i]; ++j) at.push_back((first[i] + j) * old.extent_bytes);
  }
  return adopt(handle, text + ") of " + old.text, placed(old, at));
}

const TypeModel* TypeFactory::subarray(const TypeModel& old, int count, Rng& rng) {
  const int rows = random_divisor(count, rng);
  const std::int64_t sub[2] = {rows, count / rows};
  std::int64_t size[2];
  std::int64_t start[2];
  for (int d = 0; d < 2; ++d) {
    start[d] = rng.below(3);
    size[d] = start[d] + sub[d] + rng.below(3);
  }
  const bool c_order = rng.chance(50);
  const bool use_large = large(rng);
  const Array sizes(size), subs(sub), begins(start);
  MPI_Datatype handle = MPI_DATATYPE_NULL;
  check_type_call(
      api_.Type_create_subarray(use_large, 2, ArrayRef{&sizes}, ArrayRef{&subs}, ArrayRef{&begins},
                                c_order ? MPI_ORDER_C : MPI_ORDER_FORTRAN, old.handle, &handle),
      "Type_create_subarray");
  const int outer = c_order ? 0 : 1;  // the slow dimension in memory
  const int inner = 1 - outer;
  Displacements at;
  for (std::int64_t i = 0; i < sub[outer]; ++i)
    for (std::int64_t j = 0; j < sub[inner]; ++j)
      at.push_back(((start[outer] + i) * size[inner] + start[inner] + j) * old.extent_bytes);
  return adopt(handle,
               "subarray(" + std::to_string(sub[0]) + "x" + std::to_string(sub[1]) + " of " +
                   std::to_string(size[0]) + "x" + std::to_string(size[1]) +
                   (c_order ? ",C" : ",F") + ") of " + old.text,
               placed(old, at));
}

// What one of several processes has of an array that is dealt out to them in blocks.
const TypeModel* TypeFactory::darray(const TypeModel& old, int count, Rng& rng) {
  const int length = random_divisor(count, rng);
  const int blocks = count / length;
  const int processes = rng.between(1, 3);
  const int process = rng.below(processes);
  const bool cyclic = blocks > 1 || rng.chance(50);
  const std::int64_t size[] = {std::int64_t{count} * processes};
  const int kind = cyclic ? MPI_DISTRIBUTE_CYCLIC : MPI_DISTRIBUTE_BLOCK;
  const int argument = cyclic && length > 1 ? length : MPI_DISTRIBUTE_DFLT_DARG;
  const bool use_large = large(rng);
  const int order = rng.chance(50) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
  const Array sizes(size);
  MPI_Datatype handle = MPI_DATATYPE_NULL;
  check_type_call(api_.Type_create_darray(use_large, processes, process, 1, ArrayRef{&sizes}, &kind,
                                          &argument, &processes, order, old.handle, &handle),
                  "Type_create_darray");
  Displacements at;
  for (int i = 0; i < blocks; ++i)
    for (int j = 0; j < length; ++j)
      at.push_back(((i * processes + process) * length + j) * old.extent_bytes);
  return adopt(handle,
               std::string("darray(") + (cyclic ? "cyclic " : "block ") + std::to_string(length) +
                   ",process " + std::to_string(process) + " of " + std::to_string(processes) +
                   ") of " + old.text,
               placed(old, at));
}

const TypeModel* TypeFactory::column(const Element& element, int rows, int columns,
                                     bool use_large) {
  const TypeModel* old = predefined(element);
  MPI_Datatype handle = MPI_DATATYPE_NULL;
  check_type_call(
      api_.Type_vector(use_large, Count{rows}, Count{1}, Count{columns}, old->handle, &handle),
      "Type_vector");
  Displacements at;
  for (int i = 0; i < rows; ++i)
    at.push_back(static_cast<std::ptrdiff_t>(i) * columns * old->extent_bytes);
  const TypeModel* strip = adopt(handle,
                                 "column(" + std::to_string(rows) + " rows of " +
                                     std::to_string(columns) + ") of " + old->text,
                                 placed(*old, at));
  return resized(*strip, 0, old->extent_bytes, use_large);
}

const TypeModel* TypeFactory::gapped_pair(const Element& element, int gap, int trailing,
                                          bool use_large) {
  const TypeModel* old = predefined(element);
  MPI_Datatype handle = MPI_DATATYPE_NULL;
  check_type_call(
      api_.Type_vector(use_large, Count{2}, Count{1}, Count{1 + gap}, old->handle, &handle),
      "Type_vector");
  const TypeModel* two =
      adopt(handle, "pair with a gap of " + std::to_string(gap) + " of " + old->text,
            placed(*old, {0, (1 + gap) * old->extent_bytes}));
  return trailing == 0 ? two
                       : resized(*two, 0, (2 + gap + trailing) * old->extent_bytes, use_large);
}

const TypeModel* TypeFactory::homogeneous(const Element& element, int count, std::int64_t repeat,
                                          Rng& rng) {
  const TypeModel* old = predefined(element);
  if (rng.chance(15) && repeat <= 32 && count * repeat <= 512)
    return column(element, count, static_cast<int>(repeat) + rng.below(3), large(rng));
  // Two levels: the inner one holds a divisor of the elements.
  int rest = count;
  if (count > 1 && rng.chance(30)) {
    const int inner = random_divisor(count, rng);
    old = rng.chance(50) ? strided(*old, inner, rng) : blocks(*old, inner, rng);
    rest = count / inner;
  }
  switch (rng.below(6)) {
    case 0:
    case 1:
      return strided(*old, rest, rng);
    case 2:
    case 3:
      return blocks(*old, rest, rng);
    case 4:
      return rng.chance(60) ? subarray(*old, rest, rng) : darray(*old, rest, rng);
    default: {
      const bool use_large = large(rng);
      MPI_Datatype handle = MPI_DATATYPE_NULL;
      check_type_call(api_.Type_contiguous(use_large, Count{rest}, old->handle, &handle),
                      "Type_contiguous");
      Displacements at;
      for (int i = 0; i < rest; ++i) at.push_back(i * old->extent_bytes);
      const TypeModel* result = adopt(
          handle, "contiguous(" + std::to_string(rest) + ") of " + old->text, placed(*old, at));
      if (rng.chance(70)) return result;
      check_type_call(api_.Type_dup(result->handle, &handle), "Type_dup");
      return adopt(handle, "dup of " + result->text, result->pieces);
    }
  }
}

const TypeModel* TypeFactory::heterogeneous(std::span<const Element* const> signature, Rng& rng) {
  std::vector<std::int64_t> lengths(signature.size(), 1);
  std::vector<std::int64_t> first_bytes;
  std::vector<MPI_Datatype> types;
  std::vector<Piece> pieces;
  std::ptrdiff_t cursor = rng.chance(20) ? -32 : 0;
  std::string text = "struct(";
  for (const Element* element : signature) {
    const auto align = static_cast<std::ptrdiff_t>(element->align_bytes);
    cursor += rng.below(3) * align;
    cursor += (align - cursor % align) % align;
    first_bytes.push_back(cursor);
    types.push_back(element->handle);
    pieces.push_back({cursor, element});
    text +=
        std::string(pieces.size() == 1 ? "" : ",") + element->name + "@" + std::to_string(cursor);
    cursor += static_cast<std::ptrdiff_t>(element->size_bytes);
  }
  const Array length_array(lengths), byte_array(first_bytes);
  MPI_Datatype handle = MPI_DATATYPE_NULL;
  check_type_call(api_.Type_create_struct(
                      large(rng), Count{static_cast<std::int64_t>(signature.size())},
                      ArrayRef{&length_array}, ArrayRef{&byte_array}, types.data(), &handle),
                  "Type_create_struct");
  const TypeModel* bare = adopt(handle, text + ")", pieces);
  // A MPI may or may not round a struct's extent up to its alignment: say it.
  const auto align = static_cast<std::ptrdiff_t>(bare->align_bytes);
  const std::ptrdiff_t lb = bare->true_lb_bytes;
  const std::ptrdiff_t span = bare->true_ub_bytes - lb;
  return resized(*bare, lb, (span + align - 1) / align * align, false);
}

const TypeModel* TypeFactory::random_layout(std::span<const Element* const> signature,
                                            std::int64_t repeat, Rng& rng) {
  const bool same = std::all_of(signature.begin(), signature.end(),
                                [&](const Element* e) { return e == signature.front(); });
  const TypeModel* type =
      same ? homogeneous(*signature.front(), static_cast<int>(signature.size()), repeat, rng)
           : heterogeneous(signature, rng);
  if (rng.chance(75) || type->extent_bytes < type->true_ub_bytes - type->true_lb_bytes) return type;
  const auto step = static_cast<std::ptrdiff_t>(type->align_bytes);
  const std::ptrdiff_t extent = (type->extent_bytes + step - 1) / step * step + rng.below(4) * step;
  return resized(*type, type->lb_bytes - rng.below(3) * step, extent, large(rng));
}

const TypeModel* TypeFactory::composite(const TypeModel& unit, std::int64_t count, Rng& rng) {
  if (count < 1 || count > kCompositeCountMax) return nullptr;
  const bool use_large = large(rng);
  MPI_Datatype handle = MPI_DATATYPE_NULL;
  check_type_call(api_.Type_contiguous(use_large, Count{count}, unit.handle, &handle),
                  "Type_contiguous");
  Displacements at;
  for (std::int64_t i = 0; i < count; ++i) at.push_back(i * unit.extent_bytes);
  return adopt(handle, "contiguous(" + std::to_string(count) + ") of " + unit.text,
               placed(unit, at));
}

void TypeFactory::free_all() {
  for (TypeModel& model : models_) {
    MPI_Datatype handle = model.handle;  // the model keeps its name for user-defined operations
    if (model.owned) api_.Type_free(&handle);
    model.owned = false;
  }
}

const TypeModel* TypeFactory::find(MPI_Datatype handle) const {
  for (const TypeModel& model : models_)
    if (model.handle == handle) return &model;
  return nullptr;
}

}  // namespace accord::conformance
