/* SPDX-License-Identifier: Apache-2.0
 * Copyright 2026 The Accord authors
 *
 * Preloaded before Accord: a system that refuses what Accord asks of it, and nobody else. In
 * FAULTS_REFUSE: `send`: to pass descriptors to another process; `socket`: to make a Unix domain
 * socket; `memory`: to map memory. The share of such calls in percent is FAULTS_REFUSE_PERCENT; on
 * one rank only where FAULTS_REFUSE_RANK names it. At its end each process adds a line to
 * FAULTS_FOLDER/refused: how many such calls it has refused, and how many there were.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static atomic_int is_on = 1;
static atomic_int asked = 0;
static atomic_int refused = 0;
static atomic_uint state = 1;
static int percent = 100;
static const char* what = "";

/* For as long as the program allocates what is its own. */
void accord_faults_refuse(int on) { is_on = on; }

static int rank_of_this_process(void) {
  const char* const rank = getenv("PMI_RANK") ? getenv("PMI_RANK") : getenv("PMIX_RANK");
  return rank ? atoi(rank) : -1;
}

__attribute__((constructor)) static void begin(void) {
  const char* const named = getenv("FAULTS_REFUSE");
  const char* const rank = getenv("FAULTS_REFUSE_RANK");
  if (!named || (rank && atoi(rank) != rank_of_this_process())) return;
  if (getenv("FAULTS_REFUSE_PERCENT")) percent = atoi(getenv("FAULTS_REFUSE_PERCENT"));
  if (getenv("FAULTS_SEED")) state = (unsigned)atoi(getenv("FAULTS_SEED")) * 2654435761u + 1;
  what = named;
}

__attribute__((destructor)) static void end(void) {
  char name[4096];
  if (!*what || !asked || !getenv("FAULTS_FOLDER")) return;
  snprintf(name, sizeof name, "%s/refused", getenv("FAULTS_FOLDER"));
  const int file = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0) return;
  char line[64];
  const int length = snprintf(line, sizeof line, "%d of %d\n", refused, asked);
  if (write(file, line, (size_t)length) < 0) _exit(99);
  close(file);
}

static int is_of_accord(void* caller) {
  Dl_info of;
  return dladdr(caller, &of) && of.dli_fname && strstr(of.dli_fname, "libaccord") != NULL;
}

static int refuses(const char* kind, void* caller) {
  if (!is_on || strcmp(what, kind) != 0 || !is_of_accord(caller)) return 0;
  ++asked;
  const unsigned drawn = atomic_fetch_add(&state, 0x9e3779b9u) >> 8;
  if ((int)((drawn ^ drawn >> 7) % 100) >= percent) return 0;
  ++refused;
  return 1;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t sendmsg(int descriptor, const struct msghdr* message, int flags) {
  static __typeof__(&sendmsg) next;
  if (!next) next = NEXT(sendmsg);
  if (message->msg_controllen > 0 && refuses("send", __builtin_return_address(0))) {
    errno = EPERM;
    return -1;
  }
  return next(descriptor, message, flags);
}

int socket(int domain, int type, int protocol) {
  static __typeof__(&socket) next;
  if (!next) next = NEXT(socket);
  if (domain == AF_UNIX && refuses("socket", __builtin_return_address(0))) {
    errno = EACCES;
    return -1;
  }
  return next(domain, type, protocol);
}

int memfd_create(const char* name, unsigned flags) {
  static __typeof__(&memfd_create) next;
  if (!next) next = NEXT(memfd_create);
  if (refuses("memory", __builtin_return_address(0))) {
    errno = ENOMEM;
    return -1;
  }
  return next(name, flags);
}

/* What the host runtime gives as device memory; page-locked memory goes to an address of its own.
 */
void* mmap(void* address, size_t length, int protection, int flags, int descriptor, off_t offset) {
  static __typeof__(&mmap) next;
  if (!next) next = NEXT(mmap);
  if (!address && (protection & PROT_WRITE) && refuses("memory", __builtin_return_address(0))) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return next(address, length, protection, flags, descriptor, offset);
}
