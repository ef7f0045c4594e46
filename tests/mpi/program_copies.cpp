// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What every program with CUDA and MPI does: a synchronous copy or memset into a buffer, then MPI
// on it, nothing in between. CUDA returns from these calls before they have landed (the fake driver
// lets them land as late as it may), and Accord sees to it that MPI finds their data. What MPI has
// written is read at once, on another stream.
//   program_copies [ROUNDS [LARGEST_BYTES [changing]]]
// changing: the program clears its context's flags before each call, as cudaSetDeviceFlags does.
#include <dlfcn.h>
#include <mpi.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "../unit/cuda_program.h"

namespace {

using accord::device::cuda::address_of;
using accord::device::cuda::DevicePointer;
using accord::device::cuda::Driver;
using accord::device::cuda::Result;
using accord::device::cuda::Stream;
using accord::test::program;
using Word = std::int32_t;
using Words = std::vector<Word>;

int rank = 0;
int ranks = 1;
int calls = 0;
int wrong = 0;
bool changing = false;

[[noreturn]] void give_up(const char* what) {
  std::fprintf(stderr, "rank %d: %s\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}
void check(Result result, const char* what) {
  if (result != Result::success) give_up(what);
}

// The driver's functions, found anew: the program knows nothing of Accord's.
struct Cuda : Driver {
  Stream stream = nullptr;  // non-blocking: it waits for no other

  bool load() {
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == nullptr) return false;
    bool complete = true;
#define CUDA_FUNCTION(member, symbol, parameters)                       \
  member = reinterpret_cast<decltype(member)>(dlsym(library, #symbol)); \
  complete = complete && member != nullptr;
#include "device/cuda/driver.def"
#undef CUDA_FUNCTION
    return complete;
  }
};
Cuda cuda;
int device = 0;

Words read_now(DevicePointer from, std::size_t count) {
  Words words(count);
  check(cuda.copy_async(address_of(words.data()), from, count * sizeof(Word), cuda.stream), "read");
  check(cuda.stream_synchronize(cuda.stream), "read");
  return words;
}

// One buffer that MPI reads, one that it writes, and one more to copy from.
struct Buffers {
  DevicePointer in = 0;
  DevicePointer out = 0;
  DevicePointer source = 0;
  std::size_t count = 0;
  std::size_t size_bytes() const { return count * sizeof(Word); }
};

void* pointer_to(DevicePointer address) { return reinterpret_cast<void*>(address); }

// Puts `value` into every word of `to`, in one of the ways that return early.
enum class Way { from_host, within, fill };
void put(const Buffers& b, DevicePointer to, Word value, Way way) {
  const Words words(b.count, value);
  switch (way) {
    case Way::from_host:
      check(program().copy_to_device(to, words.data(), b.size_bytes()), "copy from the host");
      return;
    case Way::within:
      check(program().copy_to_device(b.source, words.data(), b.size_bytes()), "copy");
      check(program().copy_within(to, b.source, b.size_bytes()), "copy within the device");
      return;
    case Way::fill:
      check(program().fill(to, static_cast<unsigned char>(value), b.size_bytes()), "memset");
      return;
  }
}
// The word that `put` leaves.
Word word_of(Word value, Way way) {
  if (way != Way::fill) return value;
  Word filled = 0;
  std::memset(&filled, static_cast<unsigned char>(value), sizeof filled);
  return filled;
}

void expect(const char* call, const Words& got, Word want) {
  ++calls;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (got[i] == want) continue;
    if (++wrong <= 10)
      std::printf("rank %d: %s of %zu words: word %zu is %x, not %x\n", rank, call, got.size(), i,
                  static_cast<unsigned>(got[i]), static_cast<unsigned>(want));
    return;
  }
}

void before_call() {
  if (changing) check(cuda.primary_context_set_flags(device, 0), "flags");
}

// What a rank puts in the round, and what all put.
Word value_of(int round, int of_rank) { return 1 + round % 50 + 3 * of_rank; }

void collectives(const Buffers& b, int round, Way way) {
  const int count = static_cast<int>(b.count);
  Word sum = 0;
  for (int r = 0; r < ranks; ++r) sum += word_of(value_of(round, r), way);
  put(b, b.in, value_of(round, rank), way);
  before_call();
  MPI_Allreduce(pointer_to(b.in), pointer_to(b.out), count, MPI_INT32_T, MPI_SUM, MPI_COMM_WORLD);
  expect("Allreduce", read_now(b.out, b.count), sum);

  put(b, b.out, -1, Way::fill);  // what MPI writes comes after it
  put(b, b.in, value_of(round, rank), way);
  before_call();
  MPI_Request request;
  MPI_Iallreduce(pointer_to(b.in), pointer_to(b.out), count, MPI_INT32_T, MPI_SUM, MPI_COMM_WORLD,
                 &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect("Iallreduce", read_now(b.out, b.count), sum);

  const int root = round % ranks;
  put(b, b.out, value_of(round, rank), way);
  before_call();
  MPI_Bcast(pointer_to(b.out), count, MPI_INT32_T, root, MPI_COMM_WORLD);
  expect("Bcast", read_now(b.out, b.count), word_of(value_of(round, root), way));

  Words on_host(b.count, word_of(value_of(round, rank), way));
  if (rank % 2 == 0) put(b, b.in, value_of(round, rank), way);
  before_call();
  MPI_Allreduce(rank % 2 == 0 ? pointer_to(b.in) : on_host.data(), pointer_to(b.out), count,
                MPI_INT32_T, MPI_SUM, MPI_COMM_WORLD);
  expect("Allreduce, sent from the host by some", read_now(b.out, b.count), sum);
}

void messages(const Buffers& b, int round, Way way) {
  const int count = static_cast<int>(b.count);
  const int to = (rank + 1) % ranks;
  const int from = (rank - 1 + ranks) % ranks;
  const Word want = word_of(value_of(round, from), way);
  put(b, b.in, value_of(round, rank), way);
  before_call();
  MPI_Sendrecv(pointer_to(b.in), count, MPI_INT32_T, to, 0, pointer_to(b.out), count, MPI_INT32_T,
               from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  expect("Sendrecv", read_now(b.out, b.count), want);

  // Every other word, into memory that has just been filled.
  MPI_Datatype column;
  MPI_Type_vector(count / 2, 1, 2, MPI_INT32_T, &column);
  MPI_Type_commit(&column);
  put(b, b.out, 0x5a, Way::fill);
  before_call();
  MPI_Request both[2];
  MPI_Irecv(pointer_to(b.out), 1, column, from, 1, MPI_COMM_WORLD, &both[0]);
  put(b, b.in, value_of(round, rank), way);
  MPI_Isend(pointer_to(b.in), 1, column, to, 1, MPI_COMM_WORLD, &both[1]);
  MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
  const Words got = read_now(b.out, b.count);
  Words columns[2];
  for (std::size_t i = 0; i + 1 < b.count; ++i) columns[i % 2].push_back(got[i]);
  expect("Isend of a column", columns[0], want);
  expect("Isend of a column, in between", columns[1], 0x5a5a5a5a);
  MPI_Type_free(&column);

  MPI_Send_init(pointer_to(b.in), count, MPI_INT32_T, to, 2, MPI_COMM_WORLD, &both[0]);
  MPI_Recv_init(pointer_to(b.out), count, MPI_INT32_T, from, 2, MPI_COMM_WORLD, &both[1]);
  for (int again = 0; again < 2; ++again) {
    put(b, b.in, value_of(round + again, rank), way);
    before_call();
    MPI_Startall(2, both);
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    expect("Start", read_now(b.out, b.count), word_of(value_of(round + again, from), way));
  }
  for (MPI_Request& request : both) MPI_Request_free(&request);
}

void packing(const Buffers& b, int round, Way way) {
  Words packed(b.count);
  int position = 0;
  const int size_bytes = static_cast<int>(b.size_bytes());
  put(b, b.in, value_of(round, rank), way);
  before_call();
  MPI_Pack(pointer_to(b.in), static_cast<int>(b.count), MPI_INT32_T, packed.data(), size_bytes,
           &position, MPI_COMM_WORLD);
  expect("Pack", packed, word_of(value_of(round, rank), way));
}

void files(const Buffers& b, int round, Way way, MPI_File file) {
  const int count = static_cast<int>(b.count);
  const MPI_Offset offset = rank * (MPI_Offset{1} << 24);
  put(b, b.in, value_of(round, rank), way);
  before_call();
  MPI_File_write_at(file, offset, pointer_to(b.in), count, MPI_INT32_T, MPI_STATUS_IGNORE);
  put(b, b.out, 0, Way::fill);
  MPI_File_read_at(file, offset, pointer_to(b.out), count, MPI_INT32_T, MPI_STATUS_IGNORE);
  expect("File", read_now(b.out, b.count), word_of(value_of(round, rank), way));
}

#if MPI_VERSION >= 4
void partitions(const Buffers& b, int round, Way way) {
  constexpr int kPartitions = 2;
  const int to = (rank + 1) % ranks;
  const int from = (rank - 1 + ranks) % ranks;
  const auto part = static_cast<MPI_Count>(b.count / kPartitions);
  MPI_Request both[2];
  MPI_Psend_init(pointer_to(b.in), kPartitions, part, MPI_INT32_T, to, 3, MPI_COMM_WORLD,
                 MPI_INFO_NULL, &both[0]);
  MPI_Precv_init(pointer_to(b.out), kPartitions, part, MPI_INT32_T, from, 3, MPI_COMM_WORLD,
                 MPI_INFO_NULL, &both[1]);
  MPI_Startall(2, both);
  put(b, b.in, value_of(round, rank), way);
  before_call();
  for (int i = 0; i < kPartitions; ++i) MPI_Pready(i, both[0]);
  MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
  expect("Pready", read_now(b.out, static_cast<std::size_t>(part) * kPartitions),
         word_of(value_of(round, from), way));
  for (MPI_Request& request : both) MPI_Request_free(&request);
}
#endif

// By a thread that has no context current.
void from_a_thread(const Buffers& b, int round, Way way) {
  Word sum = 0;
  for (int r = 0; r < ranks; ++r) sum += word_of(value_of(round, r), way);
  put(b, b.in, value_of(round, rank), way);
  before_call();
  std::thread([&] {
    MPI_Allreduce(pointer_to(b.in), pointer_to(b.out), static_cast<int>(b.count), MPI_INT32_T,
                  MPI_SUM, MPI_COMM_WORLD);
  }).join();
  expect("Allreduce of a thread without a context", read_now(b.out, b.count), sum);
}

using Allocate = std::function<DevicePointer(std::size_t)>;
using Free = std::function<void(DevicePointer)>;

struct Kind {
  const char* name;
  Allocate allocate;
  Free free;
};

// Memory that is mapped by the virtual memory functions; 0 where there are none.
DevicePointer map_memory(std::size_t size_bytes) {
  accord::test::PhysicalProperties properties;
  properties.location.id = device;
  std::size_t granularity = 0;
  accord::device::cuda::MemoryHandle handle = 0;
  DevicePointer address = 0;
  if (program().memory_granularity(&granularity, &properties, 0) != Result::success) return 0;
  size_bytes = (size_bytes + granularity - 1) / granularity * granularity;
  check(program().memory_create(&handle, size_bytes, &properties, 0), "cuMemCreate");
  check(cuda.address_reserve(&address, size_bytes, 0, 0, 0), "reserve");
  check(cuda.memory_map(address, size_bytes, 0, handle, 0), "map");
  const accord::device::cuda::AccessDescription access{
      {accord::device::cuda::kLocationDevice, device}, accord::device::cuda::kAccessReadWrite};
  check(cuda.memory_set_access(address, size_bytes, &access, 1), "access");
  return address;  // until the end: the program's own business
}

std::vector<Kind> kinds() {
  const auto plain = [](std::size_t size_bytes) {
    DevicePointer address = 0;
    check(cuda.memory_allocate(&address, size_bytes), "cuMemAlloc");
    return address;
  };
  const auto from_pool = [](std::size_t size_bytes) {
    DevicePointer address = 0;
    check(program().memory_allocate_async(&address, size_bytes, nullptr), "cuMemAllocAsync");
    check(cuda.stream_synchronize(nullptr), "pool");
    return address;
  };
  const auto managed = [](std::size_t size_bytes) {
    DevicePointer address = 0;
    check(cuda.memory_allocate_managed(&address, size_bytes, 1), "cuMemAllocManaged");
    return address;
  };
  const auto release = [](DevicePointer address) { check(cuda.memory_free(address), "free"); };
  const auto to_pool = [](DevicePointer address) {
    check(program().memory_free_async(address, nullptr), "free");
  };
  return {{"device", plain, release},
          {"pool", from_pool, to_pool},
          {"managed", managed, release},
          {"mapped", map_memory, [](DevicePointer) {}}};
}

void run(const Kind& kind, std::size_t size_bytes, int rounds, MPI_File file) {
  Buffers b{kind.allocate(size_bytes), kind.allocate(size_bytes), kind.allocate(size_bytes),
            size_bytes / sizeof(Word)};
  if (b.in == 0) return;
  for (int round = 0; round < rounds; ++round) {
    for (const Way way : {Way::from_host, Way::within, Way::fill}) {
      collectives(b, round, way);
      messages(b, round, way);
      packing(b, round, way);
      from_a_thread(b, round, way);
      if (round == 0) files(b, round, way, file);
#if MPI_VERSION >= 4
      partitions(b, round, way);
#endif
    }
  }
  for (const DevicePointer one : {b.in, b.out, b.source}) kind.free(one);
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 3;
  const auto most_bytes =
      static_cast<std::size_t>(argc > 2 ? std::atoll(argv[2]) : std::int64_t{1} << 18);
  changing = argc > 3 && std::string(argv[3]) == "changing";
  int threads = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &threads);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (!cuda.load() || cuda.init(0) != Result::success) {
    std::printf("skipped: no CUDA driver\n");
    MPI_Finalize();
    return 77;
  }
  // The context is made after MPI_Init, as by a program that chooses its device by its rank.
  int devices = 0;
  check(cuda.device_get_count(&devices), "devices");
  device = rank % devices;
  accord::device::cuda::Context context = nullptr;
  check(cuda.primary_context_retain(&context, device), "context");
  check(cuda.context_push(context), "context");
  check(cuda.stream_create(&cuda.stream, accord::device::cuda::kStreamNonBlocking), "stream");

  MPI_File file;
  const char* folder = std::getenv("TMPDIR");
  std::string path = std::string(folder != nullptr ? folder : "/tmp") + "/accord_program_copies." +
                     std::to_string(getpid());
  path.resize(256);
  MPI_Bcast(path.data(), 256, MPI_CHAR, 0, MPI_COMM_WORLD);
  MPI_File_open(MPI_COMM_WORLD, path.c_str(),
                MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
  for (const Kind& kind : kinds()) {
    const int before = wrong;
    const int so_far = calls;
    for (std::size_t size_bytes :
         {std::size_t{8}, std::size_t{4} << 10, std::size_t{64} << 10, std::size_t{256} << 10,
          std::size_t{1} << 20, std::size_t{8} << 20}) {
      if (size_bytes <= most_bytes) run(kind, size_bytes, rounds, file);
    }
    if (rank == 0)
      std::printf("%s memory: %d calls, %d wrong on rank 0\n", kind.name, calls - so_far,
                  wrong - before);
  }
  MPI_File_close(&file);
  accord::device::cuda::Context now = nullptr;
  check(cuda.context_get_current(&now), "context");
  if (now != context) give_up("the program's current context has changed");
  int all[2] = {calls, wrong};
  MPI_Allreduce(MPI_IN_PLACE, all, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) std::printf("program copies: %d calls, %d wrong\n", all[0], all[1]);
  MPI_Finalize();
  return all[1] == 0 ? 0 : 1;
}
