// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "shim/partitioned.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "partitioned/receive.h"
#include "partitioned/send.h"
#include "shim/coll_args.h"
#include "shim/describe.h"
#include "shim/host_progress.h"
#include "shim/lineage.h"

namespace accord::shim {
namespace {

using partitioned::Partitioned;
using partitioned::TrackedPartitions;

// Messages of both ends over a communicator of Accord's own.
class Messages final : public partitioned::MessagePort {
 public:
  explicit Messages(MPI_Comm comm) : comm_(comm) {
    int processes = 0;
    (void)host::Comm_size(comm, &processes);
    sent_.resize(static_cast<std::size_t>(processes));
  }

  Status send(int process, std::span<const std::byte> bytes, core::HostRequest& bits) override {
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = host::Isend(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, process,
                                 kTag, comm_, &request);
    bits = to_bits(request);
    if (code == MPI_SUCCESS) ++sent_[static_cast<std::size_t>(process)];
    return Status::from_host(code);
  }
  Status probe(bool& found, int& process, std::size_t& size_bytes, std::uint64_t& bits) override {
    int flag = 0;
    int count = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    ACCORD_TRY(
        Status::from_host(host::Improbe(MPI_ANY_SOURCE, kTag, comm_, &flag, &message, &status)));
    found = flag != 0;
    if (!found) return {};
    ACCORD_TRY(Status::from_host(host::Get_count(&status, MPI_BYTE, &count)));
    process = status.MPI_SOURCE;
    size_bytes = static_cast<std::size_t>(count);
    bits = to_bits(message);
    return {};
  }
  Status receive(std::uint64_t message_bits, std::span<std::byte> bytes,
                 core::HostRequest& bits) override {
    auto message = from_bits<MPI_Message>(message_bits);
    MPI_Request request = MPI_REQUEST_NULL;
    const int code =
        host::Imrecv(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, &message, &request);
    bits = to_bits(request);
    ++received_;
    return Status::from_host(code);
  }

  // Messages of other processes that are still to come once all have stopped sending. Collective.
  int outstanding() {
    int expected = 0;
    (void)host::Reduce_scatter_block(sent_.data(), &expected, 1, MPI_INT, MPI_SUM, comm_);
    return expected - received_;
  }

  int received() const noexcept { return received_; }
  MPI_Comm& comm() { return comm_; }

 private:
  static constexpr int kTag = 0;
  MPI_Comm comm_;
  std::vector<int> sent_;  // by process
  int received_ = 0;
};

struct Service {
  Service(MPI_Comm comm, int process) : messages(comm), table(messages, engine().port(), process) {}
  Messages messages;
  partitioned::PartitionedTable table;
  bool closed = false;
};

// Never destroyed, since requests that the program has not freed refer to it: it may do so in
// MPI_Finalize still, when MPI_COMM_SELF goes.
Service* service = nullptr;

}  // namespace

void open_partitioned() {
  MPI_Comm comm = MPI_COMM_NULL;
  int process = 0;
  if (service != nullptr || host::Comm_dup(MPI_COMM_WORLD, &comm) != MPI_SUCCESS) return;
  (void)host::Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  (void)host::Comm_rank(comm, &process);
  service = new Service(comm, process);
  start_lineages();
}

namespace {

// An MPI may complain of messages that nobody has received, such as what a sender says of a request
// that its receiver has never started.
void receive_the_rest() {
  constexpr int kPollsMax = 100000;
  const std::lock_guard<std::mutex> locked(service->table.mutex());
  service->table.close();
  const int outstanding = service->messages.outstanding();
  const int wanted = service->messages.received() + outstanding;
  for (int polls = 0; service->messages.received() < wanted && polls < kPollsMax; ++polls) {
    if (!service->table.poll().ok()) return;
    engine().port().pause();
  }
}

}  // namespace

void close_partitioned() {
  if (service == nullptr || service->closed) return;
  stop_progress_from_host();
  stop_lineages();
  service->table.report();
  receive_the_rest();
  (void)host::Comm_free(&service->messages.comm());
  service->closed = true;
}

namespace {

// The tracked request that a handle stands for, or null.
std::shared_ptr<TrackedPartitions> find_partitions(MPI_Request request) {
  return std::dynamic_pointer_cast<TrackedPartitions>(requests().look(to_bits(request)));
}

MPI_Comm comm_of(const TrackedPartitions& work) { return from_bits<MPI_Comm>(work.context); }

// A number above zero, the largest one of its type for any above; another value of the key counts
// as none.
template <class Number>
void read_number(MPI_Info info, const char* key, Number& number) {
  char value[MPI_MAX_INFO_VAL + 1] = "";
  int found = 0;
  if (host::Info_get(info, key, MPI_MAX_INFO_VAL, value, &found) != MPI_SUCCESS || found == 0)
    return;
  Number read = 0;
  const std::string_view text = value;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), read);
  if (end.ptr != text.data() + text.size()) return;
  if (end.ec == std::errc::result_out_of_range && text.front() != '-') {
    number = std::numeric_limits<Number>::max();
  } else if (end.ec == std::errc() && read > 0) {
    number = read;
  }
}

// Empty where the key is not there.
std::string read_word(MPI_Info info, const char* key) {
  char value[MPI_MAX_INFO_VAL + 1] = "";
  int found = 0;
  const int code = host::Info_get(info, key, MPI_MAX_INFO_VAL, value, &found);
  return code == MPI_SUCCESS && found != 0 ? value : "";
}

partitioned::PartitionCopy copy_named(std::string_view name, partitioned::PartitionCopy otherwise) {
  if (name == "kernel") return partitioned::PartitionCopy::kernel;
  if (name == "engine") return partitioned::PartitionCopy::engine;
  return name == "auto" ? partitioned::PartitionCopy::automatic : otherwise;
}

}  // namespace

partitioned::PartitionedTable* partitioned_table() {
  return service == nullptr ? nullptr : &service->table;
}

Status read_info(MPI_Info info, partitioned::PartitionedCall& call) {
  call.copy = copy_named(config().partitioned_copy, partitioned::PartitionCopy::automatic);
  if (info == MPI_INFO_NULL) return {};
  read_number(info, "accord_marks", call.marks);
  if (call.marks > ACCORD_PARTITION_MARKS_MAX)
    return {StatusCode::invalid_argument,
            "the info key accord_marks: more marks of a partition than can be counted"};
  call.copy = copy_named(read_word(info, "accord_partitioned_copy"), call.copy);
  call.kernels_wait = read_word(info, "accord_arrivals") != "host";
  return {};
}

#ifdef ACCORD_HAS_Psend_init
namespace {

struct Arguments {
  const char* name;
  const void* buffer;
  int partitions;
  MPI_Count count;
  MPI_Datatype datatype;
  int peer;
  int tag;
  MPI_Comm comm;
  MPI_Info info;
  MPI_Request* request;
};

// How many partitions go together.
void read_transfer(MPI_Info info, partitioned::PartitionedCall& call) {
  if (info == MPI_INFO_NULL) return;
  read_number(info, "accord_transfer_partitions", call.transfer_partitions);
  call.transfer_partitions = std::clamp(call.transfer_partitions, 1, std::max(call.partitions, 1));
}

// The rank in MPI_COMM_WORLD of the one with which `comm` communicates under this number; -1: none.
int process_of(MPI_Comm comm, bool inter, int rank) {
  MPI_Group world = MPI_GROUP_NULL;
  MPI_Group group = MPI_GROUP_NULL;
  int process = MPI_UNDEFINED;
  if (host::Comm_group(MPI_COMM_WORLD, &world) != MPI_SUCCESS) return -1;
  const int code = inter ? host::Comm_remote_group(comm, &group) : host::Comm_group(comm, &group);
  if (code == MPI_SUCCESS) {
    (void)host::Group_translate_ranks(group, 1, &rank, world, &process);
    (void)host::Group_free(&group);
  }
  (void)host::Group_free(&world);
  return process == MPI_UNDEFINED ? -1 : process;
}

// Whether Accord carries the request, with all there is to say of it. Where an argument is wrong
// the host MPI shall say so.
bool describe(const Arguments& given, partitioned::PartitionedCall& call) {
  if (service == nullptr || service->closed || given.partitions < 0 || given.count < 0 ||
      given.tag < 0 || given.request == nullptr)
    return false;
  const CommState* const state = comm_state(given.comm);
  const std::uint64_t lineage = lineage_of(given.comm);
  if (state == nullptr || lineage == 0) return false;
  const bool nobody = given.peer == MPI_PROC_NULL;
  if (!nobody && (given.peer < 0 || given.peer >= state->remote_size)) return false;
  const auto type = typemap(given.datatype);
  const auto elements =
      static_cast<std::size_t>(given.count) * static_cast<std::size_t>(given.partitions);
  if (!type || (given.buffer == MPI_BOTTOM && elements * type->size_bytes() != 0)) return false;
  call.end = call_end(Description::buffer(given.buffer), elements, given.datatype);
  call.envelope.process = nobody ? -1 : process_of(given.comm, state->inter, given.peer);
  if (!nobody && call.envelope.process < 0) return false;
  call.envelope.lineage = lineage;
  call.envelope.tag = nobody ? MPI_ANY_TAG : given.tag;
  call.partitions = given.partitions;
  call.partition_bytes = static_cast<std::size_t>(given.count) * type->size_bytes();
  call.peer_rank = given.peer;
  read_transfer(given.info, call);
  return true;
}

// The error of arguments that are wrong is the host MPI's own: that of a persistent request with
// the same ones, since not all MPIs look at those of partitioned requests (Open MPI 5.0 aborts).
int raise_wrong_arguments(const Arguments& given) {
  MPI_Request made = MPI_REQUEST_NULL;
  const int code = host::Send_init(given.buffer, given.count < 0 ? -1 : 1, given.datatype,
                                   given.peer, given.tag, given.comm, &made);
  if (code != MPI_SUCCESS) return code;
  (void)host::Request_free(&made);
  return raise(given.comm, Status(StatusCode::invalid_argument,
                                  std::string(given.name) +
                                      ": no partitions, no request, or absolute addresses"));
}

// Of communicators that Accord carries nothing for, and of wrong ones.
template <class Native>
int give_to_host(const Arguments& given, Native native) {
  if (service != nullptr && lineage_of(given.comm) != 0) return raise_wrong_arguments(given);
  if (given.count > 0 && device::must_stage(given.buffer))
    return raise(given.comm, Status(StatusCode::unsupported,
                                    std::string(given.name) +
                                        " on device memory, which the host MPI cannot carry"));
  return native();
}

template <class End, class Native>
int init(const Arguments& given, Native native) {
  const core::CallScope scope(given.name, {"buf", given.buffer});
  partitioned::PartitionedCall call;
  if (!describe(given, call)) return give_to_host(given, native);
  if (const Status status = read_info(given.info, call); !status.ok())
    return raise(given.comm, status);
  progress_from_host();
  auto request = std::make_shared<End>(service->table, std::move(call));
  core::HostRequest held = 0;
  Status status = request->open();
  if (status.ok())
    status =
        partitioned::hold_partitioned(engine(), requests(), request, to_bits(given.comm), held);
  if (status.ok()) *given.request = from_bits<MPI_Request>(held);
  return raise(given.comm, status);
}

// A call on a request: the buffer is that of the call which made it.
int raise_in(const char* name, const TrackedPartitions& work, const Status& status) {
  core::CallSite site = work.site;
  site.function = name;
  return raise(comm_of(work), status, site);
}

// Marks the partitions that `each` names to the function it gets, and lets them go at once.
template <class Each>
int mark(const char* name, const std::shared_ptr<TrackedPartitions>& work, Each each) {
  device::order_behind_program();
  Status status;
  each([&](int low, int high) { keep_first(status, work->request().pready(low, high)); });
  engine().progress();
  return raise_in(name, *work, status);
}

}  // namespace

int Psend_init(const void* buf, int partitions, MPI_Count count, MPI_Datatype datatype, int dest,
               int tag, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return init<partitioned::PartitionedSend>(
      {"MPI_Psend_init", buf, partitions, count, datatype, dest, tag, comm, info, request}, [&] {
        return host::Psend_init(buf, partitions, count, datatype, dest, tag, comm, info, request);
      });
}

int Precv_init(void* buf, int partitions, MPI_Count count, MPI_Datatype datatype, int source,
               int tag, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return init<partitioned::PartitionedReceive>(
      {"MPI_Precv_init", buf, partitions, count, datatype, source, tag, comm, info, request}, [&] {
        return host::Precv_init(buf, partitions, count, datatype, source, tag, comm, info, request);
      });
}

int Pready(int partition, MPI_Request request) {
  const auto work = find_partitions(request);
  if (!work) return host::Pready(partition, request);
  return mark("MPI_Pready", work, [&](auto&& ready) { ready(partition, partition); });
}

int Pready_range(int low, int high, MPI_Request request) {
  const auto work = find_partitions(request);
  if (!work) return host::Pready_range(low, high, request);
  return mark("MPI_Pready_range", work, [&](auto&& ready) { ready(low, high); });
}

int Pready_listed(int length, const int partitions[], MPI_Request request) {
  const auto work = find_partitions(request);
  if (!work) return host::Pready_list(length, const_cast<int*>(partitions), request);
  return mark("MPI_Pready_list", work, [&](auto&& ready) {
    for (int i = 0; i < length; ++i) ready(partitions[i], partitions[i]);
  });
}

int Parrived(MPI_Request request, int partition, int* flag) {
  const auto work = find_partitions(request);
  if (!work || flag == nullptr) return host::Parrived(request, partition, flag);
  engine().progress();
  bool arrived = false;
  const Status status = work->request().parrived(partition, arrived);
  if (status.ok()) *flag = arrived ? 1 : 0;
  return raise_in("MPI_Parrived", *work, status);
}
#endif

namespace {

Status not_ours(const char* name) {
  return {StatusCode::invalid_argument,
          std::string(name) + ": no partitioned request that Accord carries"};
}

}  // namespace

int MPIX_Pbuf_prepare_all(int count, MPI_Request array[]) {
  constexpr const char* kName = "MPIX_Pbuf_prepare";
  std::vector<std::shared_ptr<TrackedPartitions>> works;
  for (int i = 0; i < count; ++i) {
    works.push_back(find_partitions(array[i]));
    if (!works.back()) return raise(MPI_COMM_WORLD, not_ours(kName));
    if (!works.back()->active)
      return raise_in(kName, *works.back(),
                      {StatusCode::invalid_argument, "the request has not been started"});
  }
  for (const auto& work : works) work->request().let_open(true);
  // One that has ended, well or not, has nothing left to prepare.
  engine().wait_until([&] {
    return std::ranges::all_of(works, [](const auto& work) {
      const Partitioned& request = work->request();
      return request.prepared() || request.phase() == core::Operation::Phase::done;
    });
  });
  for (const auto& work : works) work->request().let_open(false);
  return MPI_SUCCESS;
}

int MPIX_Pbuf_prepare(MPI_Request request) { return MPIX_Pbuf_prepare_all(1, &request); }

int MPIX_Prequest_create(accord_prequest** preq, MPI_Request request) {
  constexpr const char* kName = "MPIX_Prequest_create";
  const auto work = find_partitions(request);
  if (!work || preq == nullptr) return raise(MPI_COMM_WORLD, not_ours(kName));
  return raise_in(kName, *work, work->request().create_prequest(*preq));
}

int MPIX_Prequest_free(accord_prequest** preq) {
  Partitioned* owner = nullptr;
  if (preq != nullptr && *preq != nullptr && service != nullptr) {
    const std::lock_guard<std::mutex> locked(service->table.mutex());
    owner = service->table.owner_of(*preq);
  }
  if (owner == nullptr) {
    return raise(MPI_COMM_WORLD, {StatusCode::invalid_argument,
                                  "MPIX_Prequest_free: no device request, or freed already"});
  }
  if (owner->started()) {
    return raise(MPI_COMM_WORLD,
                 {StatusCode::invalid_argument, "MPIX_Prequest_free while its request is active"});
  }
  owner->free_prequest();
  *preq = nullptr;
  return MPI_SUCCESS;
}

}  // namespace accord::shim
