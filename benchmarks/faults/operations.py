"""Ends a command at its n-th change of the file system, so that no moment between two changes escapes by luck.

A small library is loaded before the C library (``LD_PRELOAD``). It counts, over all processes of a command, the
calls that create, rename, remove, truncate or sync something below one folder (and those that write into a file, where
that is asked for), and kills the first process's group before the n-th of them is carried out. Needs a C compiler;
without one, kills are spread over time only.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from pathlib import Path

SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

struct shared { _Atomic long count; _Atomic long leader; };
static struct shared *state;
static int looked;

static void change(const char *path) {
    const char *home = getenv("FAULTS_HOME"), *file = getenv("FAULTS_COUNTER"), *last = getenv("FAULTS_KILL_AT");
    if (!home || !file || !path) return;
    if (path[0] == '/' && strncmp(path, home, strlen(home))) return;
    if (!looked) {
        looked = 1;
        int (*plain)(const char *, int, ...) = dlsym(RTLD_NEXT, "open");
        int fd = plain(file, O_RDWR);
        if (fd >= 0) {
            void *map = mmap(0, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
            if (map != MAP_FAILED) state = map;
            close(fd);
        }
    }
    if (!state) return;
    long nobody = 0;
    atomic_compare_exchange_strong(&state->leader, &nobody, (long)getpid());
    if (atomic_fetch_add(&state->count, 1) + 1 == (last ? atol(last) : 0)) kill(-(pid_t)state->leader, SIGKILL);
}

static void change_fd(int fd) {
    char link[64], path[PATH_MAX];
    strcpy(link, "/proc/self/fd/");
    char digits[16];
    int n = 0, value = fd;
    do { digits[n++] = '0' + value % 10; value /= 10; } while (value && n < 15);
    char *end = link + strlen(link);
    while (n) *end++ = digits[--n];
    *end = 0;
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size > 0 && path[0] == '/') { path[size] = 0; change(path); }
}

static void writing(int fd) { if (fd > 2 && getenv("FAULTS_WRITES")) change_fd(fd); }

#define REAL(name) static __typeof__(&name) real; if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)
int rename(const char *a, const char *b) { REAL(rename); change(b); return real(a, b); }
int renameat(int x, const char *a, int y, const char *b) { REAL(renameat); change(b); return real(x, a, y, b); }
int unlink(const char *a) { REAL(unlink); change(a); return real(a); }
int unlinkat(int x, const char *a, int f) { REAL(unlinkat); change(a); return real(x, a, f); }
int rmdir(const char *a) { REAL(rmdir); change(a); return real(a); }
int mkdir(const char *a, mode_t m) { REAL(mkdir); change(a); return real(a, m); }
int link(const char *a, const char *b) { REAL(link); change(b); return real(a, b); }
int fsync(int fd) { REAL(fsync); change_fd(fd); return real(fd); }
int fdatasync(int fd) { REAL(fdatasync); change_fd(fd); return real(fd); }
int ftruncate(int fd, off_t n) { REAL(ftruncate); change_fd(fd); return real(fd, n); }
int ftruncate64(int fd, off64_t n) { REAL(ftruncate64); change_fd(fd); return real(fd, n); }
ssize_t write(int fd, const void *b, size_t n) { REAL(write); writing(fd); return real(fd, b, n); }
ssize_t writev(int fd, const struct iovec *v, int n) { REAL(writev); writing(fd); return real(fd, v, n); }
ssize_t pwrite(int fd, const void *b, size_t n, off_t o) { REAL(pwrite); writing(fd); return real(fd, b, n, o); }
ssize_t pwrite64(int fd, const void *b, size_t n, off64_t o) { REAL(pwrite64); writing(fd); return real(fd, b, n, o); }
ssize_t sendfile(int to, int fd, off_t *o, size_t n) { REAL(sendfile); writing(to); return real(to, fd, o, n); }
ssize_t sendfile64(int to, int fd, off64_t *o, size_t n) { REAL(sendfile64); writing(to); return real(to, fd, o, n); }
#define OPENING(name) int name(const char *path, int flags, ...) { \
    REAL(name); va_list rest; va_start(rest, flags); mode_t mode = va_arg(rest, mode_t); va_end(rest); \
    if (flags & (O_CREAT | O_TRUNC)) change(path); return real(path, flags, mode); }
OPENING(open)
OPENING(open64)
#define OPENING_AT(name) int name(int at, const char *path, int flags, ...) { \
    REAL(name); va_list rest; va_start(rest, flags); mode_t mode = va_arg(rest, mode_t); va_end(rest); \
    if (flags & (O_CREAT | O_TRUNC)) change(path); return real(at, path, flags, mode); }
OPENING_AT(openat)
OPENING_AT(openat64)
"""


def build(folder: Path) -> Path | None:
    """The library, or None where it cannot be compiled."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    source, target = folder / "operations.c", folder / "operations.so"
    source.write_text(SOURCE)
    command = [compiler, "-O1", "-shared", "-fPIC", "-o", str(target), str(source), "-ldl"]
    return target if subprocess.run(command, capture_output=True).returncode == 0 else None


class Counter:
    """The shared count of one command; ``environment`` makes the library count, and kill at ``last``.

    ``writes``: whether the calls that write into a file count as well.
    """

    def __init__(self, file: Path, home: Path, last: int = 0, *, writes: bool = False) -> None:
        self.file = file
        file.write_bytes(bytes(16))
        # A command's own temporary folder and its output files are not part of what it stores.
        self.environment = {"FAULTS_HOME": f"{home}/", "FAULTS_COUNTER": str(file), "FAULTS_KILL_AT": str(last)}
        if writes:
            self.environment["FAULTS_WRITES"] = "1"

    def count(self) -> int:
        """Changes so far."""
        return int(struct.unpack("qq", self.file.read_bytes())[0])


def preloaded() -> bool:
    """Whether this process, and so its forks, run with the library."""
    return "operations.so" in os.environ.get("LD_PRELOAD", "")
