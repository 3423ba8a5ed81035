/* A library for LD_PRELOAD: one of the calls on the files below a folder fails.

   FAULTY_FOLDER names the folder, by an absolute path. Calls are counted from `faulty_set` on, which sets the
   number of the call at which the fault begins, and the fault: an error number, or one of those below. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    SHORT = -1, /* fewer bytes are written or read than the caller gave */
    FULL = -2,  /* from this call on, the disk has no room */
    LOST = -3   /* written bytes become zeros; the next fsync of the file fails, and those after it succeed */
};

enum { DESCRIPTORS = 1 << 16, CALLS = 1 << 16 };

static char below[DESCRIPTORS]; /* whether a descriptor is open below the folder */
static char names[CALLS + 1];   /* a letter for each call */
static atomic_long calls, fired;
static long first = -1; /* the call at which the fault begins */
static int fault, is_counting;
static atomic_ulong lost_file; /* the inode whose bytes were lost, until its fsync has failed */

void faulty_set(long call, int kind)
{
    first = call;
    fault = kind;
    calls = 0;
    fired = 0;
    lost_file = 0;
    is_counting = 1;
    memset(names, 0, sizeof names);
}

void faulty_stop(void) { is_counting = 0; }

long faulty_fired(void) { return fired; }

const char *faulty_calls(void) { return names; }

#define REAL(name) ((__typeof__(&name))real(#name))

static void *real(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (found == NULL)
        abort();
    return found;
}

static int is_path_below(int folder, const char *path)
{
    static const char *root;
    if (path == NULL)
        return 0;
    if (path[0] != '/')
        return folder >= 0 && folder < DESCRIPTORS && below[folder];
    if (root == NULL && (root = getenv("FAULTY_FOLDER")) == NULL)
        root = "";
    size_t size = strlen(root);
    return size != 0 && strncmp(path, root, size) == 0 && (path[size] == '/' || path[size] == 0);
}

static int is_below(int file) { return file >= 0 && file < DESCRIPTORS && below[file]; }

/* Count a call, and return the fault that it has: 0 for none. grows: whether it needs room on the disk. */
static int fault_of(char name, int grows)
{
    if (!is_counting)
        return 0;
    long number = atomic_fetch_add(&calls, 1);
    if (number < CALLS)
        names[number] = name;
    if (first < 0 || number < first)
        return 0;
    if (fault == FULL) {
        fired += grows;
        return grows ? ENOSPC : 0;
    }
    if (number > first || (fault == SHORT && strchr("wr", name) == NULL) ||
        (fault == LOST && strchr("wf", name) == NULL) || (fault == ENOSPC && !grows && strchr("fcn", name) == NULL))
        return 0;
    fired = 1;
    return fault;
}

static int failed(int error)
{
    errno = error;
    return -1;
}

static int opened(int folder, const char *path, int flags, mode_t mode)
{
    __typeof__(&openat) call = REAL(openat);
    int is_ours = is_path_below(folder, path), error = is_ours ? fault_of('o', (flags & O_CREAT) != 0) : 0;
    if (error > 0)
        return failed(error);
    int file = call(folder, path, flags, mode);
    if (file >= 0 && file < DESCRIPTORS)
        below[file] = is_ours;
    return file;
}

static mode_t mode_of(int flags, va_list rest) { return flags & (O_CREAT | __O_TMPFILE) ? va_arg(rest, mode_t) : 0; }

#define OPEN(name, parameters, folder)                  \
    int name parameters                                 \
    {                                                   \
        va_list rest;                                   \
        va_start(rest, flags);                          \
        mode_t mode = mode_of(flags, rest);             \
        va_end(rest);                                   \
        return opened(folder, path, flags, mode);       \
    }

OPEN(open, (const char *path, int flags, ...), AT_FDCWD)
OPEN(open64, (const char *path, int flags, ...), AT_FDCWD)
OPEN(openat, (int folder, const char *path, int flags, ...), folder)
OPEN(openat64, (int folder, const char *path, int flags, ...), folder)

static unsigned long inode_of(int file)
{
    struct stat facts;
    return fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) ? facts.st_ino : 0;
}

/* Return how many bytes a call may take: half of them where it is to be short. */
static size_t accepted(int kind, size_t size) { return kind == SHORT && size > 1 ? size / 2 : size; }

static ssize_t written(int file, const void *data, size_t size, off_t offset, int has_offset)
{
    int kind = is_below(file) ? fault_of('w', 1) : 0;
    char *zeros = NULL;
    if (kind > 0)
        return failed(kind);
    if (kind == LOST && (zeros = calloc(size, 1)) != NULL) {
        lost_file = inode_of(file);
        data = zeros;
    }
    size = accepted(kind, size);
    ssize_t count = has_offset ? REAL(pwrite)(file, data, size, offset) : REAL(write)(file, data, size);
    free(zeros);
    return count;
}

ssize_t write(int file, const void *data, size_t size) { return written(file, data, size, 0, 0); }
ssize_t pwrite(int file, const void *data, size_t size, off_t offset) { return written(file, data, size, offset, 1); }
ssize_t pwrite64(int file, const void *data, size_t size, off64_t offset) { return written(file, data, size, offset, 1); }

ssize_t writev(int file, const struct iovec *parts, int count)
{
    if (!is_below(file))
        return REAL(writev)(file, parts, count);
    for (int k = 0; k < count; k++)
        if (parts[k].iov_len != 0)
            return written(file, parts[k].iov_base, parts[k].iov_len, 0, 0);
    return 0;
}

static ssize_t taken(int file, void *data, size_t size, off_t offset, int has_offset)
{
    int kind = is_below(file) ? fault_of('r', 0) : 0;
    if (kind > 0)
        return failed(kind);
    size = accepted(kind, size);
    return has_offset ? REAL(pread)(file, data, size, offset) : REAL(read)(file, data, size);
}

ssize_t read(int file, void *data, size_t size) { return taken(file, data, size, 0, 0); }
ssize_t pread(int file, void *data, size_t size, off_t offset) { return taken(file, data, size, offset, 1); }
ssize_t pread64(int file, void *data, size_t size, off64_t offset) { return taken(file, data, size, offset, 1); }

/* Write zeros over all bytes of a file: its pages could not be written, and are dropped. */
static void lose(int file)
{
    char path[64], zeros[4096] = {0};
    struct stat facts;
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    int other = REAL(open)(path, O_WRONLY | O_CLOEXEC);
    if (other < 0 || fstat(other, &facts) != 0)
        return;
    for (off_t at = 0; at < facts.st_size; at += sizeof zeros) {
        size_t left = facts.st_size - at;
        if (REAL(pwrite)(other, zeros, left < sizeof zeros ? left : sizeof zeros, at) < 0)
            break;
    }
    REAL(close)(other);
}

static int synced(int file, __typeof__(&fsync) call)
{
    int kind = is_below(file) ? fault_of('f', 0) : 0;
    unsigned long inode = inode_of(file);
    if (inode != 0 && inode == lost_file && is_counting) {
        lost_file = 0;
        return failed(EIO);
    }
    if (kind == LOST) {
        if (inode != 0)
            lose(file);
        return failed(EIO);
    }
    return kind > 0 ? failed(kind) : call(file);
}

int fsync(int file) { return synced(file, REAL(fsync)); }
int fdatasync(int file) { return synced(file, REAL(fdatasync)); }

int close(int file)
{
    int kind = is_below(file) ? fault_of('c', 0) : 0;
    if (file >= 0 && file < DESCRIPTORS)
        below[file] = 0;
    int result = REAL(close)(file); /* Linux closes the file whatever it returns */
    return kind > 0 ? failed(kind) : result;
}

static int truncated(int file, off_t size)
{
    int kind = is_below(file) ? fault_of('t', 1) : 0;
    return kind > 0 ? failed(kind) : REAL(ftruncate)(file, size);
}

int ftruncate(int file, off_t size) { return truncated(file, size); }
int ftruncate64(int file, off64_t size) { return truncated(file, size); }

int fchmod(int file, mode_t mode)
{
    int kind = is_below(file) ? fault_of('h', 0) : 0;
    return kind > 0 ? failed(kind) : REAL(fchmod)(file, mode);
}

/* Count a call on a name, and return -1 if it fails, else what the expression returns. */
#define NAMED(letter, grows, folder, path, call)                                 \
    int kind = is_path_below(folder, path) ? fault_of(letter, grows) : 0;        \
    return kind > 0 ? failed(kind) : (call)

int rename(const char *old, const char *new) { NAMED('n', 0, AT_FDCWD, new, REAL(rename)(old, new)); }

int renameat(int folder, const char *old, int other, const char *new)
{
    NAMED('n', 0, other, new, REAL(renameat)(folder, old, other, new));
}

int renameat2(int folder, const char *old, int other, const char *new, unsigned int flags)
{
    NAMED('n', 0, other, new, REAL(renameat2)(folder, old, other, new, flags));
}

int unlink(const char *path) { NAMED('u', 0, AT_FDCWD, path, REAL(unlink)(path)); }
int unlinkat(int folder, const char *path, int flags) { NAMED('u', 0, folder, path, REAL(unlinkat)(folder, path, flags)); }
int rmdir(const char *path) { NAMED('u', 0, AT_FDCWD, path, REAL(rmdir)(path)); }
int mkdir(const char *path, mode_t mode) { NAMED('m', 1, AT_FDCWD, path, REAL(mkdir)(path, mode)); }
int mkdirat(int folder, const char *path, mode_t mode) { NAMED('m', 1, folder, path, REAL(mkdirat)(folder, path, mode)); }
