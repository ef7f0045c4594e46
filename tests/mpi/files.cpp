// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Files of device memory: every call that reads or writes, blocking or not, in one piece and in a
// column; the end of the file; statuses. The command line names the file.
#include <accord/accord.h>
#include <mpi.h>

#include <cstdio>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "device_buffer.h"

namespace {

using accord::test::contents;
using accord::test::DeviceBuffer;
using accord::test::on_device;
using Numbers = std::vector<int>;

constexpr int kCount = 5000;               // elements of a rank in the file
constexpr std::size_t kRoom = 2 * kCount;  // and in memory, where every second one may be one

int rank = 0;
int size = 1;
int failures = 0;

void expect(bool good, const std::string& what) {
  if (good) return;
  std::fprintf(stderr, "rank %d: %s\n", rank, what.c_str());
  ++failures;
}

MPI_Offset own_offset() { return static_cast<MPI_Offset>(rank) * kCount; }

// A transfer of `count` elements of a type to or from this rank's part of the file.
using Transfer = std::function<void(MPI_File, void*, int, MPI_Datatype, MPI_Status*)>;
struct Way {
  const char* name;
  Transfer run;
};

// The forms of a call, each with the arguments that all of them have.
template <class Call>
auto blocking(Call call) {
  return [call](MPI_Status* status, void*, auto... arguments) { call(arguments..., status); };
}
template <class Call>
auto waited(Call call) {
  return [call](MPI_Status* status, void*, auto... arguments) {
    MPI_Request request = MPI_REQUEST_NULL;
    call(arguments..., &request);
    MPI_Wait(&request, status);
  };
}
template <class Begin, class End>
auto split(Begin begin, End end) {
  return [begin, end](MPI_Status* status, void* buffer, MPI_File file, auto... arguments) {
    begin(file, arguments...);
    end(file, buffer, status);
  };
}

// Where they take place.
template <class Call>
Transfer at_pointer(Call call) {
  return [call](MPI_File file, void* buffer, int count, MPI_Datatype type, MPI_Status* status) {
    MPI_File_seek(file, own_offset(), MPI_SEEK_SET);
    call(status, buffer, file, buffer, count, type);
  };
}
template <class Call>
Transfer at_offset(Call call) {
  return [call](MPI_File file, void* buffer, int count, MPI_Datatype type, MPI_Status* status) {
    call(status, buffer, file, own_offset(), buffer, count, type);
  };
}
// By the file pointer of all ranks, one after the other.
template <class Call>
Transfer at_shared_pointer(Call call) {
  return [call](MPI_File file, void* buffer, int count, MPI_Datatype type, MPI_Status* status) {
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    for (int turn = 0; turn < size; ++turn) {
      if (turn == rank) call(status, buffer, file, buffer, count, type);
      MPI_Barrier(MPI_COMM_WORLD);
    }
  };
}
template <class Call>
Transfer in_order(Call call) {
  return [call](MPI_File file, void* buffer, int count, MPI_Datatype type, MPI_Status* status) {
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    call(status, buffer, file, buffer, count, type);
  };
}

#define FORM(Name) [](auto... arguments) { MPI_File_##Name(arguments...); }
#define SPLIT(Name) split(FORM(Name##_begin), FORM(Name##_end))

std::vector<Way> ways_to_read() {
  return {{"read", at_pointer(blocking(FORM(read)))},
          {"read_all", at_pointer(blocking(FORM(read_all)))},
          {"read_at", at_offset(blocking(FORM(read_at)))},
          {"read_at_all", at_offset(blocking(FORM(read_at_all)))},
          {"read_shared", at_shared_pointer(blocking(FORM(read_shared)))},
          {"read_ordered", in_order(blocking(FORM(read_ordered)))},
          {"iread", at_pointer(waited(FORM(iread)))},
          {"iread_all", at_pointer(waited(FORM(iread_all)))},
          {"iread_at", at_offset(waited(FORM(iread_at)))},
          {"iread_at_all", at_offset(waited(FORM(iread_at_all)))},
          {"iread_shared", at_shared_pointer(waited(FORM(iread_shared)))},
          {"read_all_begin", at_pointer(SPLIT(read_all))},
          {"read_at_all_begin", at_offset(SPLIT(read_at_all))},
          {"read_ordered_begin", in_order(SPLIT(read_ordered))}};
}

std::vector<Way> ways_to_write() {
  return {{"write", at_pointer(blocking(FORM(write)))},
          {"write_all", at_pointer(blocking(FORM(write_all)))},
          {"write_at", at_offset(blocking(FORM(write_at)))},
          {"write_at_all", at_offset(blocking(FORM(write_at_all)))},
          {"write_shared", at_shared_pointer(blocking(FORM(write_shared)))},
          {"write_ordered", in_order(blocking(FORM(write_ordered)))},
          {"iwrite", at_pointer(waited(FORM(iwrite)))},
          {"iwrite_all", at_pointer(waited(FORM(iwrite_all)))},
          {"iwrite_at", at_offset(waited(FORM(iwrite_at)))},
          {"iwrite_at_all", at_offset(waited(FORM(iwrite_at_all)))},
          {"iwrite_shared", at_shared_pointer(waited(FORM(iwrite_shared)))},
          {"write_all_begin", at_pointer(SPLIT(write_all))},
          {"write_at_all_begin", at_offset(SPLIT(write_at_all))},
          {"write_ordered_begin", in_order(SPLIT(write_ordered))}};
}

Numbers counted(int first) {
  Numbers numbers(kRoom);
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

void check_status(const MPI_Status& status, int count, MPI_Datatype type, const std::string& how) {
  int found = -1;
  MPI_Get_count(&status, type, &found);
  expect(found == count, how + ": the status tells of " + std::to_string(found));
}

class Files {
 public:
  explicit Files(const char* name) {
    MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                  MPI_INFO_NULL, &file_);
    MPI_File_set_view(file_, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    MPI_Type_vector(kCount, 1, 2, MPI_INT, &column_);
    MPI_Type_commit(&column_);
  }
  ~Files() {
    MPI_Type_free(&column_);
    MPI_File_close(&file_);
  }
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;

  void test_write(const Way& way, bool in_columns) {
    const std::string how = std::string(way.name) + (in_columns ? " of a column" : "");
    const DeviceBuffer buffer = on_device(counted(++value_));
    MPI_Status status;
    way.run(file_, buffer.pointer(), in_columns ? 1 : kCount, in_columns ? column_ : MPI_INT,
            &status);
    check_status(status, kCount, MPI_INT, how);
    meet();
    Numbers found(kCount);
    MPI_File_read_at(file_, own_offset(), found.data(), kCount, MPI_INT, MPI_STATUS_IGNORE);
    Numbers wanted(kCount);
    for (int i = 0; i < kCount; ++i)
      wanted[static_cast<std::size_t>(i)] = value_ + i * (in_columns ? 2 : 1);
    expect(found == wanted, how + ": something else has been written");
    meet();
  }

  void test_read(const Way& way, bool in_columns) {
    const std::string how = std::string(way.name) + (in_columns ? " of a column" : "");
    const Numbers in_file = counted(++value_);
    MPI_File_write_at(file_, own_offset(), in_file.data(), kCount, MPI_INT, MPI_STATUS_IGNORE);
    meet();
    const DeviceBuffer buffer = on_device(Numbers(kRoom, -1));
    MPI_Status status;
    way.run(file_, buffer.pointer(), in_columns ? 1 : kCount, in_columns ? column_ : MPI_INT,
            &status);
    check_status(status, kCount, MPI_INT, how);
    Numbers wanted(kRoom, -1);
    for (std::size_t i = 0; i < kCount; ++i) wanted[in_columns ? 2 * i : i] = in_file[i];
    expect(contents(buffer) == wanted, how + ": something else has been read");
    meet();
  }

  // Only what there is, the rest of the buffer stays: where the host MPI holds to that in host
  // memory. Of what it begins there Open MPI 5.0 never completes some.
  void test_end(const Way& way) {
#ifdef OPEN_MPI
    if (way.name[0] == 'i' || std::string(way.name).ends_with("_begin")) return;
#endif
    const std::string how = std::string(way.name) + " at the end";
    meet();
    MPI_File_set_size(file_, (static_cast<MPI_Offset>(size) * kCount - 10) * 4);
    Numbers wanted(kRoom, -1);
    MPI_Status status;
    int count = 0;
    way.run(file_, wanted.data(), kCount, MPI_INT, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    const DeviceBuffer buffer = on_device(Numbers(kRoom, -1));
    way.run(file_, buffer.pointer(), kCount, MPI_INT, &status);
    if (wanted[kCount] == -1 && (wanted[kCount - 1] == -1) == (rank == size - 1)) {
      check_status(status, count, MPI_INT, how);
      expect(contents(buffer) == wanted, how + ": something else has been read");
    }
    meet();
    MPI_File_set_size(file_, static_cast<MPI_Offset>(size) * kCount * 4);
    meet();
  }

  // As long as a header of a message (messages.h), which nothing in a file is.
  void test_host() {
    constexpr int kHeaderInts = 8;
    Numbers written(kHeaderInts, rank);
    Numbers read(kHeaderInts, -1);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Status status;
    MPI_File_iwrite_at(file_, own_offset(), written.data(), kHeaderInts, MPI_INT, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_File_iread_at(file_, own_offset(), read.data(), kHeaderInts, MPI_INT, &request);
    MPI_Wait(&request, &status);
    expect(read == written, "host memory: something else has been read");
    check_status(status, kHeaderInts, MPI_INT, "host memory");
  }

 private:
  void meet() {
    MPI_File_sync(file_);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_sync(file_);
  }

  MPI_File file_ = MPI_FILE_NULL;
  MPI_Datatype column_ = MPI_DATATYPE_NULL;
  int value_ = 0;
};

// Several collective writes at once, of pieces that one rank alone puts into the file: ROMIO's
// messages of one can be taken for those of another. Each goes to another rank's part of the file.
void test_many_at_once(const std::string& name) {
  constexpr int kMany = 4;
  MPI_Info info = MPI_INFO_NULL;
  MPI_Info_create(&info);
  MPI_Info_set(info, "romio_cb_write", "enable");
  MPI_Info_set(info, "romio_no_indep_rw", "1");
  MPI_Info_set(info, "cb_nodes", "1");
  MPI_File file = MPI_FILE_NULL;
  MPI_File_open(MPI_COMM_WORLD, name.c_str(), MPI_MODE_RDWR | MPI_MODE_CREATE, info, &file);
  std::vector<MPI_Request> requests(kMany, MPI_REQUEST_NULL);
  std::vector<std::unique_ptr<DeviceBuffer>> written;
  std::vector<std::unique_ptr<DeviceBuffer>> read;
  const auto offset = [](int i) {
    return static_cast<MPI_Offset>(sizeof(int)) * kCount * 10 * (i * size + rank);
  };
  const auto numbers = [](int i) { return Numbers(std::size_t{kCount} * 10, 100 * i + rank); };
  const auto bytes = [](const Numbers& all) {
    const auto* const begin = reinterpret_cast<const std::byte*>(all.data());
    return std::vector<std::byte>(begin, begin + all.size() * sizeof(int));
  };
  for (int i = 0; i < kMany; ++i) {
    written.push_back(std::make_unique<DeviceBuffer>(bytes(numbers(i))));
    read.push_back(std::make_unique<DeviceBuffer>(bytes(numbers(-1))));
    MPI_File_iwrite_at_all(file, offset(i), written.back()->pointer(), kCount * 10, MPI_INT,
                           &requests[static_cast<std::size_t>(i)]);
  }
  MPI_Waitall(kMany, requests.data(), MPI_STATUSES_IGNORE);
  for (int i = 0; i < kMany; ++i)
    MPI_File_iread_at_all(file, offset(i), read[static_cast<std::size_t>(i)]->pointer(),
                          kCount * 10, MPI_INT, &requests[static_cast<std::size_t>(i)]);
  MPI_Waitall(kMany, requests.data(), MPI_STATUSES_IGNORE);
  for (int i = 0; i < kMany; ++i)
    expect(contents(*read[static_cast<std::size_t>(i)]) == numbers(i), "many at once");
  MPI_Info_free(&info);
  MPI_File_close(&file);
}

// A collective transfer goes on while its call waits, before it, for what a peer sends after it.
void test_behind_a_message(const std::string& name) {
  constexpr int kTag = 3;
  constexpr int kRounds = 5;
  MPI_File file = MPI_FILE_NULL;
  MPI_File_open(MPI_COMM_WORLD, name.c_str(), MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL,
                &file);
  const DeviceBuffer buffer = on_device(Numbers(kCount, rank));
  for (int round = 0; round < kRounds; ++round) {
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    int token = -1;
    // From then on rank 0 knows of what its peers lend.
    if (rank == 1) MPI_Send(buffer.pointer(), kCount, MPI_INT, 0, kTag + 1, MPI_COMM_WORLD);
    if (rank == 0) {
      MPI_Recv(buffer.pointer(), kCount, MPI_INT, 1, kTag + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Irecv(&token, 1, MPI_INT, 1, kTag, MPI_COMM_WORLD, &requests[0]);
    }
    MPI_File_iwrite_at_all(file, own_offset() * 4, buffer.pointer(), kCount, MPI_INT, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    if (rank == 1) MPI_Send(&round, 1, MPI_INT, 0, kTag, MPI_COMM_WORLD);
    if (rank == 0) expect(token == round, "a message before a transfer");
  }
  MPI_File_close(&file);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  {
    Files files(argc > 1 ? argv[1] : "files.bin");
    for (const bool in_columns : {false, true}) {
      for (const Way& way : ways_to_write()) files.test_write(way, in_columns);
      for (const Way& way : ways_to_read()) files.test_read(way, in_columns);
    }
    for (const Way& way : ways_to_read()) files.test_end(way);
    files.test_host();
    test_many_at_once(argc > 1 ? argv[1] : "files.bin");
    test_behind_a_message(argc > 1 ? argv[1] : "files.bin");
  }
  MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
