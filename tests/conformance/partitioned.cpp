// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "partitioned.h"

#include <dlfcn.h>
#include <unistd.h>

#include <accord/partitioned.cuh>
#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <set>
#include <string_view>

namespace accord::conformance {
namespace {

using Body = std::function<void(std::ptrdiff_t at_bytes, std::size_t size_bytes)>;

std::int64_t of_partition(const Stretch& stretch, int partitions) {
  return stretch.count / partitions;
}

// Calls body for each element of the type map that a partition has in a stretch.
void for_each_piece(const Stretch& stretch, int partitions, int partition, const Body& body) {
  const std::int64_t each = of_partition(stretch, partitions);
  for (std::int64_t i = partition * each; i < (partition + 1) * each; ++i)
    for (const Piece& piece : stretch.type->pieces)
      body(stretch.at_bytes + i * stretch.type->extent_bytes + piece.offset_bytes,
           piece.element->size_bytes);
}

struct Range {
  std::ptrdiff_t low_bytes = 0;
  std::ptrdiff_t high_bytes = 0;
  std::size_t size_bytes() const { return static_cast<std::size_t>(high_bytes - low_bytes); }
};

// All that a partition's elements in a stretch lie in, from the buffer's origin.
Range range_of(const Stretch& stretch, int partitions, int partition) {
  const std::int64_t each = of_partition(stretch, partitions);
  if (each == 0 || stretch.type->pieces.empty()) return {};
  const std::ptrdiff_t extent = stretch.type->extent_bytes;
  const std::ptrdiff_t first = stretch.at_bytes + partition * each * extent;
  const std::ptrdiff_t last = first + (each - 1) * extent;
  return {std::min(first, last) + stretch.type->true_lb_bytes,
          std::max(first, last) + stretch.type->true_ub_bytes};
}

void keep(std::atomic<int>& bad, int code) {
  if (code != 0) bad.store(code);
}

// Words in device memory that kernels of other ranks write for a collective. Once all ranks have
// freed it later ones have them again: of many, not each has had words of its own.
struct Words {
  std::set<const void*> places;
  std::size_t uses = 0;
};
constexpr std::size_t kUsesMin = 16;
Words& words() {
  static Words all;
  return all;
}

}  // namespace

const PartitionedCalls& partitioned_calls() {
  static const PartitionedCalls calls = [] {
    PartitionedCalls found;
    const auto find = [](const char* name, auto& function) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(RTLD_DEFAULT, name));
    };
    find("MPIX_Pbuf_prepare", found.prepare);
    find("MPIX_Pbuf_prepare_all", found.prepare_all);
    find("MPIX_Prequest_create", found.create);
    find("MPIX_Prequest_free", found.free);
    return found;
  }();
  return calls;
}

PartitionedEnd::PartitionedEnd(Run& run, const PartitionedSettings& settings, std::string name)
    : run_(run), settings_(settings), name_(std::move(name)) {}

void PartitionedEnd::make() {
  const Api& api = run_.api();
  MPI_Info info = MPI_INFO_NULL;
  run_.check(api.Info_create(&info), "Info_create");
  const auto set = [&](const char* key, const std::string& value) {
    run_.check(api.Info_set(info, key, value.c_str()), "Info_set");
  };
  if (*settings_.copy != '\0') set("accord_partitioned_copy", settings_.copy);
  set("accord_marks", std::to_string(settings_.marks));
  set("accord_transfer_partitions", std::to_string(settings_.transfer_partitions));
  run_.check(init(info, &request), (name_ + " init").c_str());
  run_.check(api.Info_free(&info), "Info_free");
}

bool PartitionedEnd::can_have_kernels() const {
  return std::string_view(run_.memory().runtime_name()) == "host" &&
         std::ranges::any_of(buffers,
                             [](const Buffer* one) { return one->kind == ACCORD_MEMORY_DEVICE; });
}

// Of a buffer without bytes there may be none, nor where its memory cannot be page-locked, or where
// all neighbours are beyond the edge of a grid.
void PartitionedEnd::make_kernels() {
  if (has_kernels() || !can_have_kernels()) return;
  const auto on_device = [](const std::vector<Stretch>& stretches) {
    return std::ranges::any_of(stretches, [](const Stretch& stretch) {
      return stretch.count > 0 && stretch.type->size_bytes > 0 &&
             stretch.buffer->kind == ACCORD_MEMORY_DEVICE;
    });
  };
  const bool must = !has_edges && ((gives && on_device(inputs)) || (gets && on_device(outputs)));
  const int code = partitioned_calls().create(&kernels_, request);
  if (must && std::getenv("ACCORD_TEST_PIN") == nullptr)
    run_.check(code, (name_ + " Prequest_create").c_str());
}

void PartitionedEnd::write(int partition, bool real) const {
  for (const Stretch& stretch : inputs) {
    const Range range = range_of(stretch, settings_.partitions, partition);
    const std::ptrdiff_t origin = stretch.buffer->origin_bytes;
    const auto from = stretch.buffer->image.begin() + origin;
    std::vector<std::byte> bytes(from + range.low_bytes, from + range.high_bytes);
    if (bytes.empty()) continue;
    if (!real)
      for_each_piece(stretch, settings_.partitions, partition,
                     [&](std::ptrdiff_t at_bytes, std::size_t size_bytes) {
                       for (std::size_t i = 0; i < size_bytes; ++i)
                         bytes[static_cast<std::size_t>(at_bytes - range.low_bytes) + i] ^=
                             std::byte{0x5a};
                     });
    run_.memory().write(stretch.buffer->base + origin + range.low_bytes, bytes.data(),
                        bytes.size());
  }
}

void PartitionedEnd::ensure_written(int partition) {
  if (written_[static_cast<std::size_t>(partition)]) return;
  written_[static_cast<std::size_t>(partition)] = true;
  write(partition, true);
}

void PartitionedEnd::begin_round(int round) {
  const auto partitions = static_cast<std::size_t>(settings_.partitions);
  for (Buffer* buffer : buffers)
    if (round > 0) run_.fill(*buffer, static_cast<std::uint64_t>(round));
  digests_.assign(partitions, 0);
  arrived_.assign(partitions, false);
  written_.assign(partitions, true);
}

void PartitionedEnd::plan_marks(Rng& rng) {
  unmarked_.clear();
  const int kernel_percent = !has_kernels() ? 0 : rng.chance(50) ? 100 : rng.below(101);
  const bool gathers = settings_.transfer_partitions > 1 && has_kernels() &&
                       settings_.end == PartitionedSettings::End::send;
  for (int partition = 0; gives && partition < settings_.partitions; ++partition) {
    const bool by_kernel = gathers || rng.chance(kernel_percent);
    for (int mark = 0; mark < (by_kernel ? settings_.marks : 1); ++mark)
      unmarked_.push_back({partition, by_kernel});
  }
  if (rng.chance(70)) rng.shuffle(unmarked_);
}

void PartitionedEnd::start(Rng& rng) {
  if (gives && rng.chance(70)) {
    for (int partition = 0; partition < settings_.partitions; ++partition) write(partition, false);
    written_.assign(written_.size(), false);
  }
  run_.check(rng.chance(70) ? run_.api().Start(&request) : run_.api().Startall(1, &request),
             (name_ + " Start").c_str());
  is_started_ = true;
  is_done_ = false;
  plan_marks(rng);
}

void PartitionedEnd::run(Rng& rng, std::function<void()> body) {
  if (!run_.may_use_threads() || rng.chance(50)) return body();
  const int delay_us = rng.chance(50) ? 0 : rng.below(300);
  threads_.emplace_back([delay_us, body = std::move(body)] {
    if (delay_us > 0) ::usleep(static_cast<useconds_t>(delay_us));
    body();
  });
}

void PartitionedEnd::mark_by_kernels(Rng& rng, const std::vector<Mark>& some) {
  const int how = rng.below(4);
  const int low = some.front().partition;
  bool is_row = true;
  for (std::size_t i = 0; i < some.size(); ++i)
    is_row = is_row && some[i].partition == low + static_cast<int>(i);
  if (how == 0 && is_row) {
    const int high = some.back().partition;
    return run(rng,
               [this, low, high] { keep(bad_marks_, MPIX_Pready_range(low, high, kernels_)); });
  }
  for (const Mark& mark : some) {
    const int partition = mark.partition;
    run(rng, [this, how, partition] {
      keep(bad_marks_, how == 1   ? MPIX_Pready_block(partition, kernels_)
                       : how == 2 ? MPIX_Pready_warp(partition, kernels_)
                                  : MPIX_Pready(partition, kernels_));
    });
  }
}

void PartitionedEnd::mark_by_host(Rng& rng, const std::vector<Mark>& some) {
  const Api& api = run_.api();
  std::vector<int> list;
  for (const Mark& mark : some) list.push_back(mark.partition);
  const bool is_row = list.back() - list.front() + 1 == static_cast<int>(list.size()) &&
                      std::ranges::is_sorted(list);
  if (is_row && rng.chance(60))
    return run(rng, [this, &api, low = list.front(), high = list.back()] {
      keep(bad_marks_, api.Pready_range(low, high, request));
    });
  if (rng.chance(50))
    return run(rng, [this, &api, list] {
      keep(bad_marks_, api.Pready_list(static_cast<int>(list.size()), list.data(), request));
    });
  for (const int partition : list)
    run(rng, [this, &api, partition] { keep(bad_marks_, api.Pready(partition, request)); });
}

void PartitionedEnd::mark_some(Rng& rng) {
  const bool by_kernel = unmarked_.back().by_kernel;
  const int most = rng.chance(30) ? settings_.partitions : rng.between(1, 4);
  std::vector<Mark> some;
  std::erase_if(unmarked_, [&](const Mark& mark) {
    const bool taken = mark.by_kernel == by_kernel && static_cast<int>(some.size()) < most &&
                       std::ranges::none_of(some, [&](const Mark& other) {
                         return other.partition == mark.partition;
                       });
    if (taken) some.push_back(mark);
    return taken;
  });
  if (rng.chance(50)) std::ranges::sort(some, {}, [](const Mark& mark) { return mark.partition; });
  for (const Mark& mark : some) ensure_written(mark.partition);
  if (by_kernel)
    mark_by_kernels(rng, some);
  else
    mark_by_host(rng, some);
}

std::int64_t PartitionedEnd::digest(int partition) const {
  std::uint64_t hash = 0;
  for (const Stretch& stretch : outputs) {
    const Buffer& buffer = *stretch.buffer;
    const Range range = range_of(stretch, settings_.partitions, partition);
    std::vector<std::byte> bytes(range.size_bytes());
    if (bytes.empty()) continue;
    run_.memory().read(bytes.data(), buffer.base + buffer.origin_bytes + range.low_bytes,
                       bytes.size());
    const auto undefined = [&](const std::vector<bool>& which, std::size_t at) {
      return !which.empty() && which[at];
    };
    for_each_piece(
        stretch, settings_.partitions, partition,
        [&](std::ptrdiff_t at_bytes, std::size_t size_bytes) {
          const auto in_buffer = static_cast<std::size_t>(buffer.origin_bytes + at_bytes);
          const auto here = static_cast<std::size_t>(at_bytes - range.low_bytes);
          for (std::size_t i = 0; i < size_bytes; ++i) {
            if (undefined(buffer.loose, in_buffer + i) || undefined(buffer.soft, in_buffer + i))
              continue;
            hash = (hash ^ static_cast<std::uint64_t>(bytes[here + i])) * 0x9fb21c651e98df25ULL;
            hash ^= hash >> 35;
          }
        });
  }
  return static_cast<std::int64_t>(hash);
}

bool PartitionedEnd::has_arrived(Rng& rng, int partition) {
  if (has_kernels() && rng.chance(50)) {
    if (rng.chance(50)) return MPIX_Parrived(partition, kernels_) != 0;
    return MPIX_Parrived_any(1, &partition, kernels_) == 0;
  }
  int flag = 0;
  run_.check(run_.api().Parrived(request, partition, &flag), (name_ + " Parrived").c_str());
  return flag != 0;
}

void PartitionedEnd::look(Rng& rng) {
  const int partition = rng.below(settings_.partitions);
  const auto at = static_cast<std::size_t>(partition);
  if (!gets || arrived_[at]) return;
  arrived_[at] = has_arrived(rng, partition);
  if (arrived_[at]) digests_[at] = digest(partition);
}

bool PartitionedEnd::all_arrived() const {
  return std::ranges::all_of(arrived_, [](bool one) { return one; });
}

void PartitionedEnd::expect_error(int code, int error_class, const char* what) const {
  if (const int got = run_.error_class(code); got != error_class)
    run_.fail(name_ + ": " + what + " gives error class " + std::to_string(got) + " instead of " +
              std::to_string(error_class));
}

void PartitionedEnd::mistake(Rng& rng) {
  const Api& api = run_.api();
  const bool ours = settings_.end == PartitionedSettings::End::collective;
  int flag = 0;
  MPI_Request same = request;
  const int which = rng.below(5);
  run_.note(name_ + ": mistake " + std::to_string(which));
  switch (which) {
    case 0:
      return expect_error(api.Pready(settings_.partitions, request), MPI_ERR_ARG,
                          "a Pready out of range");
    case 1:
      if (gives && (ours || gets)) return;
      return gives ? expect_error(api.Parrived(request, 0, &flag), MPI_ERR_ARG,
                                  "a Parrived where nothing comes")
                   : expect_error(api.Pready(0, request), MPI_ERR_ARG,
                                  "a Pready where nothing is given");
    case 2:
      return expect_error(api.Parrived(request, settings_.partitions, &flag), MPI_ERR_ARG,
                          "a Parrived out of range");
    case 3:
      return expect_error(api.Request_free(&same), MPI_ERR_ARG, "freeing an active request");
    default:
      return expect_error(api.Start(&same), MPI_ERR_ARG, "a second start");
  }
}

void PartitionedEnd::end_round() {
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  if (const int bad = bad_marks_.exchange(0); bad != 0)
    run_.fail(name_ + ": a mark gives " + std::to_string(bad));
  is_done_ = true;
  is_started_ = false;
  if (!gets) return;
  int flag = 0;
  run_.check(run_.api().Parrived(request, 0, &flag), "Parrived of what is complete");
  if (flag == 0) run_.fail(name_ + ": a partition has not arrived in a request that is complete");
}

void PartitionedEnd::note_digests() {
  if (!gets) return;
  for (int partition = 0; partition < settings_.partitions; ++partition) {
    const auto at = static_cast<std::size_t>(partition);
    run_.log(name_ + ", contents of partition " + std::to_string(partition),
             arrived_[at] ? digests_[at] : digest(partition));
  }
}

void PartitionedEnd::look_at_words() const {
  const accord_partitioned::View seen = accord_partitioned::view(kernels_);
  if (!seen.on_node) return;
  words().places.insert(seen.fields->node.ready[rank]);
  run_.note("words of " + std::to_string(words().places.size()) + " places in " +
            std::to_string(words().uses + 1) + " collectives");
  if (++words().uses >= kUsesMin && words().places.size() == words().uses)
    run_.fail("of " + std::to_string(words().uses) +
              " collectives by kernels each has had words of its own");
}

void PartitionedEnd::release(Rng& rng) {
  if (has_kernels() && settings_.end == PartitionedSettings::End::collective) look_at_words();
  if (has_kernels() && rng.chance(50))
    run_.check(partitioned_calls().free(&kernels_), (name_ + " Prequest_free").c_str());
  run_.check(run_.api().Request_free(&request), (name_ + " Request_free").c_str());
  kernels_ = MPIX_PREQUEST_NULL;
  if (request != MPI_REQUEST_NULL) run_.fail(name_ + ": a freed request is not null");
}

}  // namespace accord::conformance
