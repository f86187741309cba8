/*
 * Step gate for a headless Luanti server, loaded with LD_PRELOAD.
 *
 * The server runs at full speed but only for as many steps as the judge grants through a shared page, and it
 * sees a virtual clock that advances by exactly one step at a time. While it is paused it still receives and
 * handles packets, so what a player sends costs no game time.
 *
 * Mode 56 (5.6 to 5.8): the main thread sleeps in usleep() and then adds a fixed step for the server thread.
 * Mode 510 (5.9 on): the server thread measures the time that passed between two packet waits.
 *
 * Environment, read and removed at load so that no mod sees it:
 *   GATE_PAGE   file of one page, laid out as struct page
 *   GATE_MODE   56 or 510
 *   GATE_EPOCH  what time() starts from, in seconds
 *   GATE_SEED   seed of everything that is random in the engine
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define PAGE_SIZE 4096
#define MAIN_LOOP_US 40000     /* what the main thread sleeps in its loop at least */
#define LAYOUT 4              /* gate.py refuses a library built for another layout of the page */
#define CLOCK_BASE 1000        /* seconds; a monotonic clock that starts at 0 looks like "never" to the engine */
#define WAIT_RUNNING_NS 100000 /* packet wait while steps are granted */
#define WAIT_PAUSED_NS 300000  /* packet wait while paused: short enough to answer at once, long enough to idle */

/* Shared with gate.py: keep both in the same order. */
struct page {
	_Atomic uint64_t magic;
	_Atomic uint64_t target;      /* steps granted since start; written by the judge */
	_Atomic uint64_t done;        /* steps finished */
	_Atomic uint64_t idle_waits;  /* packet waits of the server thread that found nothing */
	_Atomic uint64_t virtual_us;
	_Atomic uint64_t freerun;     /* 1: the gate stands open and clocks are real; written by the judge */
	_Atomic uint64_t step_us;
	_Atomic uint64_t attached;
	_Atomic uint64_t receiving;   /* 1: the receive thread works on a datagram */
	_Atomic uint64_t sending;     /* 1: the send thread has work */
	_Atomic uint64_t received;    /* datagrams taken from the server's socket */
	_Atomic uint64_t sent;        /* datagrams put into it */
	_Atomic uint64_t ending;      /* 1: the judge wants no step to begin any more; 2: none does */
};

static struct page *gate;
static int mode;
static time_t epoch;
static uint64_t seed;

static int (*real_usleep)(useconds_t);
static int (*real_sem_timedwait)(sem_t *, const struct timespec *);
static int (*real_pthread_join)(pthread_t, void **);
static int (*real_sem_post)(sem_t *);
static int (*real_clock_gettime)(clockid_t, struct timespec *);
static int (*real_select)(int, fd_set *, fd_set *, fd_set *, struct timeval *);
static int (*real_poll)(struct pollfd *, nfds_t, int);
static ssize_t (*real_recvfrom)(int, void *, size_t, int, struct sockaddr *, socklen_t *);
static ssize_t (*real_sendto)(int, const void *, size_t, int, const struct sockaddr *, socklen_t);
static ssize_t (*real_readlink)(const char *, char *, size_t);
static FILE *(*real_fopen)(const char *, const char *);
static long (*real_syscall)(long, ...);

static void *next(const char *name)
{
	void *found = dlsym(RTLD_NEXT, name);
	if (!found)
		abort();
	return found;
}

/* Constructors of other libraries may run before ours, so every wrapper makes sure of this first. */
static void resolve(void)
{
	if (real_syscall)
		return;
	/* ISO C has no cast from a data pointer to a function pointer; this is how dlsym's manual does it. */
	*(void **)&real_usleep = next("usleep");
	*(void **)&real_sem_timedwait = next("sem_timedwait");
	*(void **)&real_pthread_join = next("pthread_join");
	*(void **)&real_sem_post = next("sem_post");
	*(void **)&real_clock_gettime = next("clock_gettime");
	*(void **)&real_select = next("select");
	*(void **)&real_poll = next("poll");
	*(void **)&real_recvfrom = next("recvfrom");
	*(void **)&real_sendto = next("sendto");
	*(void **)&real_readlink = next("readlink");
	*(void **)&real_fopen = next("fopen");
	*(void **)&real_syscall = next("syscall");
}

__attribute__((constructor)) static void attach(void)
{
	const char *path = getenv("GATE_PAGE"), *text;

	resolve();
	if ((text = getenv("GATE_MODE")))
		mode = atoi(text);
	if ((text = getenv("GATE_EPOCH")))
		epoch = atol(text);
	if ((text = getenv("GATE_SEED")))
		seed = strtoull(text, NULL, 10);
	if (path) {
		int fd = open(path, O_RDWR | O_CLOEXEC);
		void *map = fd < 0 ? MAP_FAILED
			: mmap(NULL, PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (fd >= 0)
			close(fd);
		if (map != MAP_FAILED) {
			gate = map;
			gate->attached = LAYOUT;
		}
	}
	unsetenv("GATE_PAGE");
	unsetenv("GATE_MODE");
	unsetenv("GATE_EPOCH");
	unsetenv("GATE_SEED");
	unsetenv("LD_PRELOAD");
}

static int paused(void)
{
	return gate->done >= gate->target;
}

static int gated(void)
{
	resolve();
	return gate && !gate->freerun;
}

static int on_main_thread(void)
{
	return real_syscall(SYS_gettid) == getpid();
}

enum role { UNKNOWN, SERVER, SENDER, OTHER };

static pthread_t server_thread;
static _Atomic int server_known, server_joined; /* the main thread waits for the server thread to end */

/* Threads name themselves shortly after they start, so the answer is kept only once there is a name. */
static enum role role(void)
{
	static _Thread_local enum role known = UNKNOWN;
	static _Thread_local int tries;

	if (known == UNKNOWN) {
		char name[16] = "";
		pthread_getname_np(pthread_self(), name, sizeof name);
		if (!strcmp(name, "Server")) {
			known = SERVER;
			server_thread = pthread_self();
			server_known = 1;
		} else if (!strcmp(name, "ConnectionSend"))
			known = SENDER;
		else if (++tries > 200)
			known = OTHER;
	}
	return known;
}

/* nanosleep by number: the wrappers of the C library are what this file replaces. Returns -1 on a signal. */
static long nap(long us)
{
	struct timespec t = {0, us * 1000};
	return real_syscall(SYS_nanosleep, &t, NULL);
}

/* ---- steps ---------------------------------------------------------------------------------------------- */

static _Atomic uint64_t served; /* mode 510: steps the server thread has finished */

/* Mode 56: the main thread lets a step begin by adding it, and has to see the server thread take it. */
static int next_step_to_add(useconds_t us)
{
	static int pending; /* a step was added and the server thread may not have taken it yet */

	if (pending) {
		/* The server thread looks for a step once between two waits that found nothing. The first of them may
		 * have begun before the step was added. */
		uint64_t seen = gate->idle_waits;
		while (gate->idle_waits < seen + 2 && gated())
			nap(50);
		pending = 0;
		gate->done++;
	}
	while (paused() && gated())
		if (nap(100) < 0 && errno == EINTR)
			return -1;
	gate->virtual_us += us;
	pending = 1;
	return 0;
}

/* Mode 510: after every step the main thread goes round once, which is when it looks for errors and shutdown. */
static int next_step_to_check(void)
{
	static uint64_t checked;

	gate->done = checked;
	while (served == checked && gated())
		if (nap(20) < 0 && errno == EINTR)
			return -1;
	checked = served;
	return 0;
}

/* The main loop sleeps for a step (mode 56) or 50 ms (mode 510). Shorter sleeps belong to something else. */
EXPORT int usleep(useconds_t us)
{
	if (!gated() || us < MAIN_LOOP_US || !on_main_thread())
		return real_usleep(us);
	return mode == 510 ? next_step_to_check() : next_step_to_add(us);
}

static int wait_briefly(sem_t *sem)
{
	struct timespec until;
	int result;

	real_syscall(SYS_clock_gettime, CLOCK_REALTIME, &until);
	until.tv_nsec += paused() ? WAIT_PAUSED_NS : WAIT_RUNNING_NS;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	result = real_sem_timedwait(sem, &until);
	if (result < 0 && errno == ETIMEDOUT)
		gate->idle_waits++;
	return result;
}

static int wait_for_packet(sem_t *sem)
{
	static int pending; /* a step was granted by the last wait */

	if (mode == 510) {
		if (pending) {
			pending = 0;
			served++;
		}
		if (sem_trywait(sem) == 0)
			return 0;
		/* The queue is empty: let exactly one step of time pass. A server thread that has to end needs that too,
		 * since it only looks for it between steps; it does not take another one. */
		if ((!paused() && gate->done == served) || server_joined) {
			gate->virtual_us += gate->step_us;
			pending = 1;
			errno = ETIMEDOUT;
			return -1;
		}
	}
	/* Mode 56: the main thread cannot leave its loop without adding a step, which nobody shall take. */
	while (gate->ending && !server_joined && gated()) {
		gate->ending = 2;
		nap(100);
	}
	return wait_briefly(sem);
}

EXPORT int pthread_join(pthread_t thread, void **result)
{
	resolve();
	if (server_known && pthread_equal(thread, server_thread))
		server_joined = 1;
	return real_pthread_join(thread, result);
}

static sem_t *_Atomic send_semaphore;

EXPORT int sem_timedwait(sem_t *sem, const struct timespec *until)
{
	int value, result;

	if (!gated())
		return real_sem_timedwait(sem, until);
	switch (role()) {
	case SERVER:
		return wait_for_packet(sem);
	case SENDER:
		send_semaphore = sem;
		if (sem_getvalue(sem, &value) == 0 && value == 0)
			gate->sending = 0;
		result = real_sem_timedwait(sem, until);
		gate->sending = 1;
		return result;
	default:
		return real_sem_timedwait(sem, until);
	}
}

EXPORT int sem_post(sem_t *sem)
{
	resolve();
	/* Before the post, so that no moment exists in which work is queued and the flag is down. */
	if (gate && sem == send_semaphore)
		gate->sending = 1;
	return real_sem_post(sem);
}

/* ---- datagrams: what has reached the server, and what has left it ---------------------------------------- */

static _Thread_local int is_receiver; /* its name is longer than the kernel allows, so know it by what it calls */

EXPORT ssize_t recvfrom(int fd, void *data, size_t size, int flags, struct sockaddr *from, socklen_t *length)
{
	ssize_t result;

	resolve();
	is_receiver = 1;
	result = real_recvfrom(fd, data, size, flags, from, length);
	if (gate && result >= 0)
		gate->received++;
	return result;
}

EXPORT ssize_t sendto(int fd, const void *data, size_t size, int flags, const struct sockaddr *to, socklen_t length)
{
	ssize_t result;

	resolve();
	result = real_sendto(fd, data, size, flags, to, length);
	if (gate && result >= 0)
		gate->sent++;
	return result;
}

EXPORT int select(int count, fd_set *in, fd_set *out, fd_set *err, struct timeval *timeout)
{
	int result;

	resolve();
	if (!gate || !is_receiver)
		return real_select(count, in, out, err, timeout);
	gate->receiving = 0;
	result = real_select(count, in, out, err, timeout);
	gate->receiving = result > 0;
	return result;
}

EXPORT int poll(struct pollfd *fds, nfds_t count, int timeout)
{
	int result;

	resolve();
	if (!gate || !is_receiver)
		return real_poll(fds, count, timeout);
	gate->receiving = 0;
	result = real_poll(fds, count, timeout);
	gate->receiving = result > 0;
	return result;
}

/* ---- clocks --------------------------------------------------------------------------------------------- */

/* The connection threads keep the real clock: they time resends and dead peers. */
static int sees_virtual_clock(clockid_t id)
{
	return role() == SERVER || (id == CLOCK_MONOTONIC_RAW && on_main_thread());
}

EXPORT int clock_gettime(clockid_t id, struct timespec *out)
{
	uint64_t now;

	if (!gated() || !sees_virtual_clock(id))
		return real_clock_gettime(id, out);
	now = gate->virtual_us;
	out->tv_sec = (id == CLOCK_REALTIME ? epoch : CLOCK_BASE) + (time_t)(now / 1000000);
	out->tv_nsec = (long)(now % 1000000) * 1000;
	return 0;
}

EXPORT time_t time(time_t *out)
{
	time_t now;

	if (gate) {
		now = epoch + (time_t)(gate->virtual_us / 1000000);
	} else {
		struct timespec real;
		syscall(SYS_clock_gettime, CLOCK_REALTIME, &real);
		now = real.tv_sec;
	}
	if (out)
		*out = now;
	return now;
}

EXPORT clock_t clock(void)
{
	struct timespec used;

	if (gate)
		return (clock_t)gate->virtual_us;
	syscall(SYS_clock_gettime, CLOCK_PROCESS_CPUTIME_ID, &used);
	return (clock_t)(used.tv_sec * CLOCKS_PER_SEC + used.tv_nsec / 1000);
}

/* ---- the program's own path ----------------------------------------------------------------------------- */

/* The server looks for its data beside its binary and ends where /proc, which a subject does not get, is empty. */
EXPORT ssize_t readlink(const char *path, char *out, size_t size)
{
	ssize_t length;

	resolve();
	length = real_readlink(path, out, size);
	if (length < 0 && gate && !strcmp(path, "/proc/self/exe")) {
		length = (ssize_t)strnlen(program_invocation_name, size);
		memcpy(out, program_invocation_name, (size_t)length);
	}
	return length;
}

/* ---- randomness ----------------------------------------------------------------------------------------- */

static uint64_t draw(void) /* splitmix64 */
{
	static _Atomic uint64_t calls;
	uint64_t x = seed + ++calls * 0x9E3779B97F4A7C15ull;

	x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
	x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
	return x ^ (x >> 31);
}

static void fill(unsigned char *data, size_t size)
{
	for (size_t i = 0; i < size; i++)
		data[i] = (unsigned char)(draw() >> 32);
}

EXPORT FILE *fopen(const char *path, const char *how)
{
	if (gate && path && !strcmp(path, "/dev/urandom")) {
		FILE *file = fmemopen(NULL, PAGE_SIZE, "w+");
		unsigned char data[PAGE_SIZE];
		if (file) {
			fill(data, sizeof data);
			fwrite(data, 1, sizeof data, file);
			rewind(file);
			return file;
		}
	}
	resolve();
	return real_fopen(path, how);
}

EXPORT ssize_t getrandom(void *data, size_t size, unsigned flags)
{
	if (!gate)
		return syscall(SYS_getrandom, data, size, flags);
	fill(data, size);
	return (ssize_t)size;
}

/* LuaJIT seeds its string hash, and so the order of pairs(), through syscall(). */
EXPORT long syscall(long number, ...)
{
	long a, b, c, d, e, f;
	va_list list;

	va_start(list, number);
	a = va_arg(list, long);
	b = va_arg(list, long);
	c = va_arg(list, long);
	d = va_arg(list, long);
	e = va_arg(list, long);
	f = va_arg(list, long);
	va_end(list);
	if (number == SYS_getrandom && gate) {
		fill((unsigned char *)a, (size_t)b);
		return b;
	}
	resolve();
	return real_syscall(number, a, b, c, d, e, f);
}

/* std::random_device::_M_getval(), which libstdc++ may serve from a processor instruction. */
EXPORT unsigned _ZNSt13random_device9_M_getvalEv(void *device)
{
	(void)device;
	return (unsigned)(draw() >> 32);
}
