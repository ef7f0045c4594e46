// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "collectives.h"

#include <algorithm>
#include <array>

#include "exclusions.h"

namespace accord::conformance {
namespace {

constexpr std::int64_t kSmallBytesMax = 96 << 10;  // of a buffer that is not meant to be large
constexpr int kLargeCaseOneIn = 12;                // cases in which large counts occur at all
constexpr std::int64_t kMixedBytesMax = 6000;
constexpr int kUnusedCount = 1000;

// Units such that a buffer of `blocks` blocks, or one block, ends next to the edge of a chunk.
std::int64_t units_at_edge(Run& run, std::size_t unit_bytes, int blocks) {
  const auto chunk = static_cast<std::int64_t>(run.options().chunk_bytes);
  const auto args = static_cast<std::int64_t>(run.options().pipeline_bytes);
  const std::array<std::int64_t, 8> edges = {chunk, 2 * chunk, 3 * chunk, 5 * chunk,
                                             args,  2 * args,  4096,      65536};
  std::int64_t edge = run.global.pick(edges);
  const int shift = run.global.between(-1, 1);
  const bool whole = run.global.chance(50);
  if (edge >
      std::min<std::int64_t>(kSmallBytesMax, static_cast<std::int64_t>(run.options().bytes_max)))
    edge = 1024;
  const std::int64_t bytes = whole ? edge / blocks : edge;
  return std::max<std::int64_t>(0, bytes / static_cast<std::int64_t>(unit_bytes) + shift);
}

// What one side calls a unit, or several: a type and how many of it a unit is.
struct Shape {
  const TypeModel* type = nullptr;
  std::int64_t per_unit = 1;
};

Shape draw_shape(Run& run, const Payload& payload, std::int64_t units_in_buffer) {
  const Element* first = payload.signature.front();
  const bool same = std::all_of(payload.signature.begin(), payload.signature.end(),
                                [&](const Element* e) { return e == first; });
  if (payload.plain ||
      (same && run.local.chance(45) && (!payload.unit_types || payload.signature.size() == 1)))
    return {run.types.predefined(*first), static_cast<std::int64_t>(payload.signature.size())};
  constexpr std::int64_t kTooManyForColumns = 1000;
  const std::int64_t units =
      payload.apart ? kTooManyForColumns : std::max<std::int64_t>(1, units_in_buffer);
  return {run.types.random_layout(payload.signature, units, run.local), 1};
}

std::int64_t sum(std::span<const std::int64_t> values) {
  std::int64_t total = 0;
  for (std::int64_t value : values) total += value;
  return total;
}

std::size_t buffer_align(const Payload& payload) {
  std::size_t align = 1;
  if (!payload.aligned) return align;
  for (const Element* element : payload.signature) align = std::max(align, element->align_bytes);
  return align;
}

void use_buffer(Run& run, Blocks& blocks, Buffer& buffer, std::int64_t total_units) {
  blocks.buffer = &buffer;
  blocks.pointer = total_units == 0 && run.local.chance(30) ? nullptr : buffer.pointer();
}

void make_equal(Run& run, const char* role, const Payload& payload,
                std::span<const std::int64_t> units, Blocks& blocks) {
  const std::int64_t each = units.empty() ? 0 : units.front();
  const std::int64_t total = sum(units);
  Shape shape = draw_shape(run, payload, total);
  std::int64_t count = each * shape.per_unit;
  if (shape.per_unit == 1 && !payload.unit_types && run.local.chance(20)) {
    if (const TypeModel* whole =
            run.types.composite(*shape.type, each / run.partitions(), run.local);
        whole != nullptr) {
      shape.type = whole;
      count = run.partitions();
    }
  }
  blocks.type = shape.type->handle;
  blocks.count = {count};
  Buffer& buffer = run.buffer(role, *shape.type, count * static_cast<std::int64_t>(units.size()),
                              buffer_align(payload));
  for (std::size_t i = 0; i < units.size(); ++i)
    run.note_stretch({&buffer, shape.type,
                      static_cast<std::int64_t>(i) * count * shape.type->extent_bytes, count});
  use_buffer(run, blocks, buffer, total);
}

// Blocks in any order with gaps between them, in slots of one type: slots never overlap.
void make_v(Run& run, const char* role, const Payload& payload, std::span<const std::int64_t> units,
            Blocks& blocks) {
  std::vector<std::size_t> order(units.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  if (run.local.chance(50)) run.local.shuffle(order);
  const bool gaps = run.local.chance(60);
  std::vector<std::int64_t> start(units.size());
  std::int64_t cursor = 0;
  for (std::size_t i : order) {
    cursor += gaps ? run.local.below(3) : 0;
    start[i] = cursor;
    cursor += units[i];
  }
  const Shape shape = draw_shape(run, payload, cursor);
  std::vector<std::int64_t> counts(units.begin(), units.end());
  for (std::int64_t& count : counts) count *= shape.per_unit;
  for (std::int64_t& at : start) at *= shape.per_unit;
  blocks.type = shape.type->handle;
  blocks.counts = run.keep(counts);
  blocks.displacements = run.keep(start);
  Buffer& buffer =
      run.buffer(role, footprint(*shape.type, cursor * shape.per_unit), buffer_align(payload));
  for (std::size_t i = 0; i < units.size(); ++i) {
    const std::ptrdiff_t at = start[i] * shape.type->extent_bytes;
    run.note("buffer " + std::to_string(run.buffers().size() - 1) + ", " + role + " " +
             std::to_string(i) + ": " + std::to_string(counts[i]) + " of " + shape.type->text +
             " at byte " + std::to_string(at));
    run.note_stretch({&buffer, shape.type, at, counts[i]});
    run.set_data(buffer, *shape.type, counts[i], at);
    run.set_padding(buffer, *shape.type, counts[i], at);
  }
  use_buffer(run, blocks, buffer, sum(units));
}

// Each block has a type of its own; displacements are in bytes.
void make_w(Run& run, const char* role, const Payload& payload, std::span<const std::int64_t> units,
            Blocks& blocks) {
  std::vector<const TypeModel*> models;
  std::vector<MPI_Datatype> types;
  std::vector<std::int64_t> counts;
  std::vector<std::int64_t> at_bytes;
  std::ptrdiff_t cursor = 0;
  const auto align = static_cast<std::ptrdiff_t>(std::max<std::size_t>(16, buffer_align(payload)));
  for (std::int64_t n : units) {
    const Shape shape = draw_shape(run, payload, n);
    const std::int64_t count = n * shape.per_unit;
    const Span span = footprint(*shape.type, count);
    std::ptrdiff_t at = cursor - span.low_bytes + run.local.below(3) * align;
    at = (at + align - 1) / align * align;
    models.push_back(shape.type);
    types.push_back(shape.type->handle);
    counts.push_back(count);
    at_bytes.push_back(at);
    cursor = at + span.high_bytes;
  }
  Buffer& buffer = run.buffer(role, Span{0, cursor}, buffer_align(payload));
  for (std::size_t i = 0; i < units.size(); ++i) {
    run.note("buffer " + std::to_string(run.buffers().size() - 1) + ", " + role + " " +
             std::to_string(i) + ": " + std::to_string(counts[i]) + " of " + models[i]->text +
             " at byte " + std::to_string(at_bytes[i]));
    run.note_stretch({&buffer, models[i], at_bytes[i], counts[i]});
    run.set_data(buffer, *models[i], counts[i], at_bytes[i]);
    run.set_padding(buffer, *models[i], counts[i], at_bytes[i]);
  }
  use_buffer(run, blocks, buffer, sum(units));
  if (units.size() == 1 && blocks.pointer != nullptr &&
      !works(run, "alltoallw displacement on one process")) {
    blocks.pointer = buffer.pointer() + at_bytes[0];
    at_bytes[0] = 0;
  }
  blocks.counts = run.keep(counts);
  blocks.displacements = run.keep(at_bytes);
  blocks.types = run.keep(types);
}

}  // namespace

const char* kind_name(Kind kind) {
  static constexpr const char* kNames[] = {"barrier",
                                           "bcast",
                                           "gather",
                                           "gatherv",
                                           "scatter",
                                           "scatterv",
                                           "allgather",
                                           "allgatherv",
                                           "alltoall",
                                           "alltoallv",
                                           "alltoallw",
                                           "reduce",
                                           "allreduce",
                                           "reduce_scatter",
                                           "reduce_scatter_block",
                                           "scan",
                                           "exscan",
                                           "neighbor_allgather",
                                           "neighbor_allgatherv",
                                           "neighbor_alltoall",
                                           "neighbor_alltoallv",
                                           "neighbor_alltoallw"};
  return kNames[static_cast<int>(kind)];
}

bool is_neighbour(Kind kind) { return kind >= Kind::neighbor_allgather; }
bool is_reduction(Kind kind) { return kind >= Kind::reduce && kind <= Kind::exscan; }

const Element& random_element(Run& run, bool derived) {
  for (;;) {
    const Element& element = run.global.pick(run.elements());
    const bool complex = element.element_class == ElementClass::complex;
    if (complex && derived && !works(run, "complex in derived types")) continue;
    if (complex && element.size_bytes == 32 && !works(run, "long double complex in parts"))
      continue;
    return element;
  }
}

Payload random_payload(Run& run) {
  Payload payload;
  Rng& rng = run.global;
  static constexpr std::array<int, 8> kLengths = {1, 1, 1, 2, 3, 4, 6, 12};
  const int length = rng.pick(kLengths);
  payload.mixed = length > 1 && rng.chance(35);
  // Kernels move what has no gaps.
  const int plain_percent = run.partitions() > 1 ? 50 : 15;
  payload.plain = !payload.mixed && rng.chance(plain_percent);
  for (int i = 0; i < length; ++i) {
    if (i == 0 || payload.mixed)
      payload.signature.push_back(&random_element(run, !payload.plain));
    else
      payload.signature.push_back(payload.signature.front());
    payload.unit_bytes += payload.signature.back()->size_bytes;
  }
  payload.aligned = rng.chance(80);
  return payload;
}

ArrayRef counts_of_partition(Run& run, ArrayRef counts) {
  if (counts.array == nullptr || run.partitions() == 1) return counts;
  std::vector<std::int64_t> divided;
  for (std::size_t i = 0; i < counts.array->size(); ++i)
    divided.push_back(counts.array->as<std::int64_t>()[i] / run.partitions());
  return run.keep(divided);
}

std::int64_t random_units(Run& run, std::size_t unit_bytes, int blocks) {
  blocks *= run.partitions();
  Rng& rng = run.global;
  const int roll = rng.below(100);
  const int few = rng.between(2, 9);
  const int odd = rng.below(60) * 2 + 11;
  const std::int64_t edge = units_at_edge(run, unit_bytes, blocks);
  const auto limit = static_cast<std::int64_t>(run.options().bytes_max);
  const std::int64_t unit = static_cast<std::int64_t>(unit_bytes);
  std::int64_t units = edge;
  if (roll < 8)
    units = 0;
  else if (roll < 22)
    units = 1;
  else if (roll < 56)
    units = few;
  else if (roll < 76)
    units = odd;
  else if (roll >= 70 && mix(run.salt(), 0x6c61726765) % kLargeCaseOneIn == 0)
    return std::max<std::int64_t>(1, limit / unit / blocks - few);
  return std::min(units, std::max<std::int64_t>(1, kSmallBytesMax / unit / blocks));
}

std::int64_t random_units(Run& run, const Payload& payload, int blocks) {
  const std::int64_t units = random_units(run, payload.unit_bytes, blocks);
  const ElementClass first = payload.signature.front()->element_class;
  const bool pair = first == ElementClass::pair || first == ElementClass::pair_uniform;
  if ((!payload.mixed && !pair) || works(run, "large messages of mixed types")) return units;
  // All blocks may travel in one message: the host MPI sends them along trees.
  return std::min(units, kMixedBytesMax / blocks / run.partitions() /
                             static_cast<std::int64_t>(payload.unit_bytes));
}

Blocks make_blocks(Run& run, const char* role, const Payload& payload,
                   std::span<const std::int64_t> units_of_partition, Spread spread) {
  Blocks blocks;
  std::vector<std::int64_t> units(units_of_partition.begin(), units_of_partition.end());
  for (std::int64_t& each : units) each *= run.partitions();
  if (spread == Spread::v)
    make_v(run, role, payload, units, blocks);
  else if (spread == Spread::w)
    make_w(run, role, payload, units, blocks);
  else
    make_equal(run, role, payload, units, blocks);
  return blocks;
}

Unused unused(Run& run) {
  if (run.local.chance(70)) return {nullptr, {0}, MPI_BYTE};
  Buffer& untouched = run.buffer("unused", Span{0, 16}, 1);
  return {untouched.pointer(), {kUnusedCount}, MPI_BYTE};
}

Kind random_kind(Run& run, const Comm& comm, bool neighbours) {
  static constexpr std::array<Kind, 5> kNeighbours = {
      Kind::neighbor_allgather, Kind::neighbor_allgatherv, Kind::neighbor_alltoall,
      Kind::neighbor_alltoallv, Kind::neighbor_alltoallw};
  const int drawn = run.global.below(static_cast<int>(Kind::exscan) + 1);
  const Kind neighbour = run.global.pick(kNeighbours);
  if (neighbours) return neighbour;
  const Kind kind = static_cast<Kind>(drawn);
  // By name: the same on all ranks, also where the communicator is null.
  return std::string_view(comm.name).starts_with("inter") &&
                 (kind == Kind::scan || kind == Kind::exscan)
             ? Kind::allreduce
             : kind;
}

namespace {

bool is_inter(const Comm& comm) { return std::string_view(comm.name).starts_with("inter"); }

std::string call_name(Kind kind, Form form) {
  return std::string(form_name(form)) + " " + kind_name(kind);
}

}  // namespace

void require_call(const Run& run, const Comm& comm, Kind kind, Form form) {
  require(run, kind_name(kind));
  require(run, call_name(kind, form).c_str());
  if (is_inter(comm)) require(run, (call_name(kind, form) + " between groups").c_str());
  if (is_neighbour(kind) && comm.distinct_edges) require(run, "neighbours in a directed graph");
  if (kind >= Kind::neighbor_alltoall && comm.doubled_sides && form != Form::blocking)
    require(run, "one rank on both sides, not blocking");
}

bool in_place_works(const Run& run, const CollectiveCall& call) {
  return works(run, (call_name(call.kind, call.form) + " in place").c_str());
}

bool available(const Run& run, Kind kind, Form form, bool large) {
  const Api& api = run.oracle_api();
  switch (kind) {
#define CASE(lower, upper) \
  case Kind::lower:        \
    return api.upper.available(form, large)
    CASE(barrier, Barrier) && !large;
    CASE(bcast, Bcast);
    CASE(gather, Gather);
    CASE(gatherv, Gatherv);
    CASE(scatter, Scatter);
    CASE(scatterv, Scatterv);
    CASE(allgather, Allgather);
    CASE(allgatherv, Allgatherv);
    CASE(alltoall, Alltoall);
    CASE(alltoallv, Alltoallv);
    CASE(alltoallw, Alltoallw);
    CASE(reduce, Reduce);
    CASE(allreduce, Allreduce);
    CASE(reduce_scatter, Reduce_scatter);
    CASE(reduce_scatter_block, Reduce_scatter_block);
    CASE(scan, Scan);
    CASE(exscan, Exscan);
    CASE(neighbor_allgather, Neighbor_allgather);
    CASE(neighbor_allgatherv, Neighbor_allgatherv);
    CASE(neighbor_alltoall, Neighbor_alltoall);
    CASE(neighbor_alltoallv, Neighbor_alltoallv);
    CASE(neighbor_alltoallw, Neighbor_alltoallw);
#undef CASE
  }
  return false;
}

Prepared prepare(Run& run, const Comm& comm, const CollectiveCall& call) {
  Prepared prepared;
  const std::size_t before = run.buffers().size();
  const std::size_t stretches = run.stretches().size();
  const Kind kind = call.kind;
  if (kind == Kind::barrier) {
    if (comm.member) prepared = bind(run, &Api::Barrier, comm.handle);
    run.describe("barrier");
  } else if (is_neighbour(kind)) {
    prepared = prepare_neighbour(run, comm, call);
  } else if (is_reduction(kind)) {
    prepared = prepare_reduction(run, comm, call);
  } else {
    prepared = prepare_movement(run, comm, call);
  }
  prepared.kind = kind;
  for (std::size_t i = before; i < run.buffers().size(); ++i)
    prepared.buffers.push_back(&run.buffer_at(i));
  prepared.stretches.assign(run.stretches().begin() + static_cast<std::ptrdiff_t>(stretches),
                            run.stretches().end());
  run.describe(std::string("on ") + comm.name + ",");
  return prepared;
}

}  // namespace accord::conformance
