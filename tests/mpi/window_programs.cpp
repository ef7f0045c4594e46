// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Random one-sided programs against a sequential model: all ranks draw the same program, each
// carries out its own operations, and knows what those of the others come to. Programs are legal:
// in an epoch a part of a window belongs to one origin, or takes accumulates of one operation by
// all. With --memory host the windows are the host MPI's own, which shows that the model is right.
//
//   window_programs [--seed N] [--count N] [--memory mixed|device|host]
#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "window_model.h"

namespace {

using namespace accord::test;

int rank = 0;
int size = 0;
std::uint64_t seed = 1;
bool has_failed = false;

void fail(const std::string& what) {
  if (!has_failed)
    std::fprintf(stderr, "rank %d: %s; rerun: --seed %llu --count 1\n", rank, what.c_str(),
                 static_cast<unsigned long long>(seed));
  has_failed = true;
}

enum class Epoch { fence, pscw, exclusive, shared, all, kEpochs };

// A part of a window in an epoch: of one origin, or of all for accumulates.
struct Part {
  int target = 0;
  int first = 0;
  int slots = 0;
  int owner = -1;
  int type = 0;
  Op op = sum;  // of all
  int use = 0;  // 0: disjoint puts, 1: gets, 2: accumulates
};

class Program {
 public:
  Program(std::uint64_t number, const std::string& memory) : random_(number) {
    std::vector<Kind> kinds;
    for (int i = 0; i < size; ++i) {
      const Kind mixed[] = {Kind::device, Kind::device, Kind::host, Kind::managed, Kind::none};
      const int choice = draw(random_, 5);
      kinds.push_back(memory == "host"     ? Kind::host
                      : memory == "device" ? Kind::device
                                           : mixed[choice]);
      units_.push_back(1 + draw(random_, 2));
      std::vector<std::byte> content = drawn_window(random_);
      if (kinds.back() == Kind::none) content.clear();
      model_.windows.push_back(std::move(content));
    }
    origins_on_host_ = memory == "host";
#ifdef OPEN_MPI  // 5.0.11: MPI_Accumulate of one MPI_UINT64_T with MPI_BXOR leaves 0 in host memory
    takes_bxor_ = memory == "device";
#endif
    const auto own = static_cast<std::size_t>(rank);
    memory_ = std::make_unique<Memory>(kinds[own], model_.windows[own]);
    MPI_Win_create(memory_->pointer(), static_cast<MPI_Aint>(model_.windows[own].size()),
                   units_[own], MPI_INFO_NULL, MPI_COMM_WORLD, &win_);
  }
  ~Program() { MPI_Win_free(&win_); }

  void run() {
    const int epochs = 1 + draw(random_, 4);
    for (int i = 0; i < epochs && !has_failed; ++i) {
      const auto epoch = static_cast<Epoch>(draw(random_, static_cast<int>(Epoch::kEpochs)));
      const std::deque<Operation> all = carry_out(epoch);
      check(epoch, all);
    }
  }

 private:
  bool is_passive(Epoch epoch) const { return epoch != Epoch::fence && epoch != Epoch::pscw; }

  std::vector<Part> drawn_parts() {
    std::vector<Part> parts;
    for (int target = 0; target < size; ++target) {
      const int slots =
          static_cast<int>(model_.windows[static_cast<std::size_t>(target)].size() / kSlotBytes);
      for (int first = 0; first < slots;) {
        Part part{.target = target, .first = first};
        part.slots = std::min(kTypeSlots - first % kTypeSlots, 1 + draw(random_, kTypeSlots));
        part.owner = draw(random_, size + 1) - 1;
        part.type = first / kTypeSlots % kTypes;
        part.op =
            static_cast<Op>(draw(random_, type_of(part.type).is_floating || !takes_bxor_ ? 3 : 4));
        part.use = draw(random_, 3);
        first += part.slots;
        parts.push_back(part);
      }
    }
    return parts;
  }

  // An operation on elements of a part, from that one on.
  Operation drawn_operation(const Part& part, int origin, int first, int room, bool is_free) {
    Operation one;
    const Type& type = type_of(part.type);
    one.origin = origin;
    one.target = part.target;
    one.type = part.type;
    one.call = part.use == 0 ? Call::put : part.use == 1 ? Call::get : Call::accumulate;
    if (part.owner < 0) one.call = Call::accumulate;
    if (part.owner >= 0 && part.use == 2) one.call = static_cast<Call>(2 + draw(random_, 3));
    if (is_free) one.call = static_cast<Call>(draw(random_, type.is_floating ? 5 : 6));
    const bool is_single = one.call == Call::fetch_and_op || one.call == Call::compare_and_swap;
    const int count = is_single ? 1 : 1 + draw(random_, room);
    one.at_target = Layout::drawn(random_, count, room);
    one.at_origin = Layout::drawn(random_, count, 3 * count);
    one.op = part.op;
    // What is under way at a time has one operation, or none.
    const Op ops[] = {sum, max, min, replace, no_op, bxor};
    if (is_free) one.op = ops[draw(random_, type.is_floating || !takes_bxor_ ? 5 : 6)];
    if (part.owner >= 0 && !is_free && draw(random_, 3) == 0) one.op = no_op;
    if (one.op == no_op && one.call == Call::accumulate) one.op = part.op;
    one.target_offset_bytes = static_cast<std::size_t>(part.first) * kSlotBytes +
                              static_cast<std::size_t>(first) * type.bytes;
    const Kind kinds[] = {Kind::host, Kind::device, Kind::managed};
    one.origin_kind = kinds[draw(random_, 3)];
    one.result_kind = kinds[draw(random_, 3)];
    if (origins_on_host_) one.origin_kind = one.result_kind = Kind::host;
    one.by_request = draw(random_, 3) == 0;
    one.matches = draw(random_, 2) == 0;
    const std::size_t bytes = static_cast<std::size_t>(one.at_origin.spanned()) * type.bytes;
    one.data.resize(bytes);
    draw_numbers(random_, type, one.data.data(), bytes);
    return one;
  }

  // Those of one origin on a part: with flushes between them anything goes.
  void add_operations(const Part& part, int origin, bool is_free, std::deque<Operation>& list) {
    const int elements = static_cast<int>(static_cast<std::size_t>(part.slots) * kSlotBytes /
                                          type_of(part.type).bytes);
    int first = 0;
    for (int i = draw(random_, 4); i > 0 && first < elements; --i) {
      const bool is_disjoint = !is_free && part.owner >= 0 && part.use == 0;
      const int begin = is_disjoint ? first : draw(random_, elements);
      Operation one = drawn_operation(part, origin, begin, elements - begin, is_free);
      first = begin + one.at_target.spanned();
      if (!is_disjoint) first = 0;
      list.push_back(std::move(one));
    }
  }

  // The operations that have to do with a byte of this rank's window.
  static std::string touching(const std::deque<Operation>& all, std::size_t byte) {
    std::string text;
    for (const Operation& one : all) {
      const std::size_t bytes = type_of(one.type).bytes;
      for (int i = 0; i < one.at_target.count && one.target == rank; ++i) {
        const std::size_t begin = one.target_offset_bytes + one.at_target.place(i) * bytes;
        if (byte >= begin && byte < begin + bytes)
          text += "\n  element " + std::to_string(i) + " of call " +
                  std::to_string(static_cast<int>(one.call)) + " by rank " +
                  std::to_string(one.origin) + ", type " + std::to_string(one.type) + ", op " +
                  std::to_string(one.op) + (one.by_request ? ", by a request" : "");
      }
    }
    return text;
  }

  std::deque<Operation> carry_out(Epoch epoch) {
    std::deque<Operation> all;
    for (const Part& part : drawn_parts()) {
      const bool is_free = is_passive(epoch) && part.owner >= 0 && draw(random_, 2) == 0;
      for (int origin = 0; origin < size; ++origin) {
        const std::size_t before = all.size();
        if (part.owner < 0 || part.owner == origin) add_operations(part, origin, is_free, all);
        // A flush follows each.
        for (std::size_t i = before; i < all.size(); ++i) flushed_.push_back(is_free);
      }
    }
    for (Operation& one : all) model_.apply(one);
    begin(epoch);
    run_mine(epoch, all);
    end(epoch);
    for (const Operation& one : all)
      if (one.origin == rank) check_result(one);
    flushed_.clear();
    return all;
  }

  void begin(Epoch epoch) {
    if (epoch == Epoch::fence) MPI_Win_fence(0, win_);
    if (epoch == Epoch::all) MPI_Win_lock_all(0, win_);
    if (epoch != Epoch::pscw) return;
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Win_get_group(win_, &group);
    MPI_Win_post(group, 0, win_);
    MPI_Win_start(group, 0, win_);
    MPI_Group_free(&group);
  }

  void end(Epoch epoch) {
    if (epoch == Epoch::fence) MPI_Win_fence(0, win_);
    if (epoch == Epoch::all) MPI_Win_unlock_all(win_);
    if (epoch == Epoch::pscw) {
      MPI_Win_complete(win_);
      MPI_Win_wait(win_);
    }
    if (is_passive(epoch)) MPI_Barrier(MPI_COMM_WORLD);
  }

  void run_mine(Epoch epoch, std::deque<Operation>& all) {
    const bool locks = epoch == Epoch::exclusive || epoch == Epoch::shared;
    const int kind = epoch == Epoch::exclusive ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED;
    for (int target = 0; target < size; ++target) {
      if (locks) MPI_Win_lock(kind, target, 0, win_);
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (all[i].origin != rank || all[i].target != target) continue;
        issue(all[i], is_passive(epoch));
        if (flushed_[i]) MPI_Win_flush(target, win_);
      }
      if (locks) MPI_Win_unlock(target, win_);
    }
  }

  void issue(Operation& one, bool is_passive_epoch) {
    const Type& type = type_of(one.type);
    const Datatype here(type, one.at_origin);
    const Datatype there(type, one.at_target);
    one.origin_memory = std::make_unique<Memory>(one.origin_kind, one.data);
    one.result_memory = std::make_unique<Memory>(one.result_kind, one.result_before);
    one.compare_memory = std::make_unique<Memory>(one.origin_kind, one.compared);
    void* const origin = one.origin_memory->pointer();
    void* const result = one.result_memory->pointer();
    const int unit = units_[static_cast<std::size_t>(one.target)];
    const auto disp = static_cast<MPI_Aint>(one.target_offset_bytes) / unit;
    const MPI_Op op = handle_of(one.op);
    MPI_Request request = MPI_REQUEST_NULL;
    const bool asks = one.by_request && is_passive_epoch;
    switch (one.call) {
      case Call::put:
        if (asks)
          MPI_Rput(origin, here.count(), here.handle(), one.target, disp, there.count(),
                   there.handle(), win_, &request);
        else
          MPI_Put(origin, here.count(), here.handle(), one.target, disp, there.count(),
                  there.handle(), win_);
        break;
      case Call::get:
        if (asks)
          MPI_Rget(result, here.count(), here.handle(), one.target, disp, there.count(),
                   there.handle(), win_, &request);
        else
          MPI_Get(result, here.count(), here.handle(), one.target, disp, there.count(),
                  there.handle(), win_);
        break;
      case Call::accumulate:
        if (asks)
          MPI_Raccumulate(origin, here.count(), here.handle(), one.target, disp, there.count(),
                          there.handle(), op, win_, &request);
        else
          MPI_Accumulate(origin, here.count(), here.handle(), one.target, disp, there.count(),
                         there.handle(), op, win_);
        break;
      case Call::get_accumulate:
        if (asks)
          MPI_Rget_accumulate(origin, here.count(), here.handle(), result, here.count(),
                              here.handle(), one.target, disp, there.count(), there.handle(), op,
                              win_, &request);
        else
          MPI_Get_accumulate(origin, here.count(), here.handle(), result, here.count(),
                             here.handle(), one.target, disp, there.count(), there.handle(), op,
                             win_);
        break;
      case Call::fetch_and_op:
        MPI_Fetch_and_op(origin, result, type.datatype, one.target, disp, op, win_);
        break;
      default:
        MPI_Compare_and_swap(origin, one.compare_memory->pointer(), result, type.datatype,
                             one.target, disp, win_);
    }
    if (request != MPI_REQUEST_NULL) MPI_Wait(&request, MPI_STATUS_IGNORE);
  }

  void check_result(const Operation& one) const {
    if (!one.has_result()) return;
    if (one.result_memory->content() != one.result)
      fail("what call " + std::to_string(static_cast<int>(one.call)) + " has read at rank " +
           std::to_string(one.target));
  }

  void check(Epoch epoch, const std::deque<Operation>& all) {
    if (is_passive(epoch)) {  // a window may be of the separate model
      MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win_);
    }
    const std::vector<std::byte> found = memory_->content();
    const auto& wanted = model_.windows[static_cast<std::size_t>(rank)];
    if (is_passive(epoch)) MPI_Win_unlock(rank, win_);
    const auto at = std::mismatch(found.begin(), found.end(), wanted.begin(), wanted.end()).first;
    if (at != found.end())
      fail("byte " + std::to_string(at - found.begin()) + " of the window after an epoch of kind " +
           std::to_string(static_cast<int>(epoch)) + ": " + std::to_string(static_cast<int>(*at)) +
           ", not " +
           std::to_string(static_cast<int>(wanted[static_cast<std::size_t>(at - found.begin())])) +
           touching(all, static_cast<std::size_t>(at - found.begin())));
    int mine = has_failed ? 1 : 0;
    int any = 0;
    MPI_Allreduce(&mine, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    has_failed = any != 0;
  }

  Random random_;
  Model model_;
  std::vector<int> units_;
  bool origins_on_host_ = false;
  bool takes_bxor_ = true;
  std::unique_ptr<Memory> memory_;
  MPI_Win win_ = MPI_WIN_NULL;
  std::deque<bool> flushed_;
};

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int count = 100;
  std::string memory = "mixed";
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--seed") seed = std::strtoull(argv[i + 1], nullptr, 10);
    if (name == "--count") count = std::atoi(argv[i + 1]);
    if (name == "--memory") memory = argv[i + 1];
  }
  for (int i = 0; i < count && !has_failed; ++i, ++seed) {
    Program program(seed, memory);
    program.run();
    if (has_failed) break;
  }
  if (rank == 0 && !has_failed) std::printf("%d programs, none wrong\n", count);
  MPI_Finalize();
  return has_failed ? 1 : 0;
}
