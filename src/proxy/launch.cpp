// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "proxy/launch.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <vector>

extern char** environ;

namespace accord::proxy {
namespace {

constexpr std::size_t kStackBytes = std::size_t{64} << 10;

// What the new processes need, and what comes of them: they run in the memory of this one, whose
// thread waits meanwhile. So they may call nothing that takes a lock or allocates.
struct Start {
  const char* program;
  char* const* arguments;
  char* const* environment;
  int listener;
  sigset_t before;  // signals blocked in the calling thread
  std::byte* inner_stack_end;
  int error = 0;
};

int run_program(void* argument) {
  Start& start = *static_cast<Start*>(argument);
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  // No handler of the program's may run in here, and none of what it ignores is to be ignored.
  for (int number = 1; number < NSIG; ++number) (void)::sigaction(number, &standard, nullptr);
  sigset_t none;
  sigemptyset(&none);
  (void)::sigprocmask(SIG_SETMASK, &none, nullptr);
  // Signals of the terminal are not for it. No session of its own: Linux shares out cores between
  // sessions first (autogroup), and may leave a fresh one without a core for seconds where the
  // ranks spin on all.
  (void)::setpgid(0, 0);
  const bool in_place = start.listener == kListener
                            ? ::fcntl(kListener, F_SETFD, 0) == 0
                            : ::dup2(start.listener, kListener) == kListener;
  if (in_place) ::execve(start.program, start.arguments, start.environment);
  start.error = errno;
  ::_exit(1);
}

// Ends at once, so that the program's parent is gone and nobody here has to wait for it.
int run_between(void* argument) {
  Start& start = *static_cast<Start*>(argument);
  const pid_t child =
      ::clone(run_program, start.inner_stack_end, CLONE_VM | CLONE_VFORK | SIGCHLD, argument);
  if (child < 0) start.error = errno;
  ::_exit(0);
}

// What is meant for this process alone.
constexpr std::string_view kOfRank[] = {
    "LD_PRELOAD=", "CUDA_VISIBLE_DEVICES=", "HIP_VISIBLE_DEVICES=", "ROCR_VISIBLE_DEVICES=",
    "ZE_AFFINITY_MASK="};

}  // namespace

std::vector<std::string> environment_of_proxy() {
  std::vector<std::string> kept;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const auto is_of = [&](std::string_view name) { return text.starts_with(name); };
    if (std::ranges::none_of(kOfRank, is_of)) kept.emplace_back(text);
  }
  return kept;
}

// The process between is made without a signal at its end, so that no handler of the program's is
// called, and no wait of its finds it: only one that asks for such clones does.
Status launch(const std::string& program, const std::string& node,
              const std::vector<std::string>& environment, int listener) {
  const auto pointer_to = [](const std::string& text) { return const_cast<char*>(text.c_str()); };
  const std::string name = "accord_proxy";
  char* const arguments[] = {pointer_to(name), pointer_to(node), nullptr};
  std::vector<char*> variables;
  for (const std::string& variable : environment) variables.push_back(pointer_to(variable));
  variables.push_back(nullptr);
  std::vector<std::byte> stacks(2 * kStackBytes);
  Start start{.program = program.c_str(),
              .arguments = arguments,
              .environment = variables.data(),
              .listener = listener,
              .before = {},
              .inner_stack_end = stacks.data() + kStackBytes};
  sigset_t all;
  sigfillset(&all);
  (void)::pthread_sigmask(SIG_BLOCK, &all, &start.before);
  const pid_t between =
      ::clone(run_between, stacks.data() + 2 * kStackBytes, CLONE_VM | CLONE_VFORK, &start);
  const int error = between < 0 ? errno : 0;
  while (between > 0 && ::waitpid(between, nullptr, __WCLONE) < 0 && errno == EINTR) {
  }
  (void)::pthread_sigmask(SIG_SETMASK, &start.before, nullptr);
  if (error == 0 && start.error == 0) return {};
  return {StatusCode::unsupported, fmt::format("proxy: cannot start {}: {}", program,
                                               std::strerror(error != 0 ? error : start.error))};
}

std::string program_beside_library() {
  constexpr const char* kName = "accord_proxy";
  Dl_info found{};
  if (::dladdr(reinterpret_cast<void*>(&program_beside_library), &found) == 0 ||
      found.dli_fname == nullptr)
    return kName;
  // As it was given to the loader it may be relative to a folder that the program leaves.
  std::error_code error;
  const std::string path = std::filesystem::canonical(found.dli_fname, error).string();
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? kName : path.substr(0, slash + 1) + kName;
}

}  // namespace accord::proxy
