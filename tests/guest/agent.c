// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The guest's init and command server.
 *
 * As /init of the initramfs it loads the modules found there, stacks a tmpfs on the read-only
 * root image (/dev/vda), mounts the kernel's modules (/dev/vdb), and moves into that root.  Then
 * it serves commands on the virtio-serial port "irdma.agent"; agent.py is the other end.  One
 * thread, one poll loop: the port, /dev/kmsg (streamed to the host), SIGCHLD, and the pipes of
 * every running command.  It never waits for one command while others have something to say.
 *
 * Frame: struct frame, then len bytes.  Little endian, as the only machine is x86.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/random.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define PORT_NAME	"irdma.agent"
#define MAX_FRAME	32768
#define MAX_PROCS	256
#define STDIN_WINDOW	(256 * 1024)	/* the host keeps at most this much unacknowledged */

enum frame_type {
	/* from the host */
	F_EXEC		= 'e',	/* u32 flags, u32 argc, argv strings, environment strings */
	F_STDIN		= 'i',	/* bytes */
	F_STDIN_EOF	= 'z',
	F_SIGNAL	= 's',	/* u32 signal, to the command's process group */
	F_WINSIZE	= 'w',	/* u32 rows, u32 columns */
	F_POWEROFF	= 'p',	/* u32 reboot(2) command */
	F_IDENTITY	= 'h',	/* struct identity; answered with F_READY */
	/* from the guest */
	F_READY		= 'r',	/* kernel release; also the first word after boot */
	F_STDOUT	= 'o',
	F_STDERR	= 'x',
	F_STDIN_ACK	= 'a',	/* u32 bytes that the command has taken */
	F_EXIT		= 'q',	/* u32 wait status */
	F_KMSG		= 'k',	/* one record of /dev/kmsg */
};

#define EXEC_PTY	1

/* What a guest must not have in common with another that began with the same saved state. */
struct __attribute__((packed)) identity {
	uint64_t seconds;	/* since 1970 */
	uint8_t random[32];
	char name[];		/* of the host; up to the end of the frame */
};

struct frame {
	uint32_t len;
	uint32_t id;		/* of the command; 0: none */
	uint32_t type;
};

struct proc {
	uint32_t id;		/* 0: free slot */
	pid_t pid;
	int in, out, err;	/* our ends; -1 when closed; all the same descriptor for a pty */
	bool pty;
	bool in_eof;		/* close `in` once `pending` is written */
	char *pending;
	size_t pending_len;
};

static struct proc procs[MAX_PROCS];
static int port = -1;

static void __attribute__((format(printf, 1, 2), noreturn)) die(const char *fmt, ...)
{
	va_list ap;

	fputs("agent: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, ": %s\n", strerror(errno));
	sync();
	/* The host sees QEMU end and finds the reason on the console. */
	reboot(RB_POWER_OFF);
	_exit(1);
}

/* Start-up: from the initramfs to the root image */

static void make_dir(const char *path)
{
	if (mkdir(path, 0755) && errno != EEXIST)
		die("mkdir %s", path);
}

static void do_mount(const char *what, const char *where, const char *type,
		     unsigned long flags, const char *options)
{
	if (mount(what, where, type, flags, options))
		die("mount %s on %s (%s)", what, where, type);
}

static void load_boot_modules(void)
{
	struct dirent **list;
	char path[512];
	int fd, i, n;

	n = scandir("/modules", &list, NULL, alphasort);
	if (n < 0)
		die("/modules");
	for (i = 0; i < n; i++) {
		if (list[i]->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/modules/%s", list[i]->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || (syscall(SYS_finit_module, fd, "", 0) && errno != EEXIST))
			die("loading %s", path);
		close(fd);
		free(list[i]);
	}
	free(list);
}

static void enter_root(void)
{
	struct utsname uts;
	char path[512];

	make_dir("/lower");
	make_dir("/rw");
	do_mount("/dev/vda", "/lower", "erofs", MS_RDONLY, NULL);
	do_mount("rw", "/rw", "tmpfs", 0, "size=60%");
	make_dir("/rw/upper");
	make_dir("/rw/work");
	do_mount("root", "/root", "overlay", 0, "lowerdir=/lower,upperdir=/rw/upper,workdir=/rw/work");

	if (uname(&uts))
		die("uname");
	make_dir("/root/usr/lib/modules");
	snprintf(path, sizeof(path), "/root/usr/lib/modules/%s", uts.release);
	make_dir(path);
	do_mount("/dev/vdb", path, "erofs", MS_RDONLY, NULL);

	do_mount("/dev", "/root/dev", NULL, MS_MOVE, NULL);
	do_mount("/proc", "/root/proc", NULL, MS_MOVE, NULL);
	do_mount("/sys", "/root/sys", NULL, MS_MOVE, NULL);
	if (chdir("/root"))
		die("/root");
	do_mount(".", "/", NULL, MS_MOVE, NULL);
	if (chroot(".") || chdir("/"))
		die("chroot");
}

static void mount_rest(void)
{
	make_dir("/dev/pts");
	make_dir("/dev/shm");
	do_mount("devpts", "/dev/pts", "devpts", 0, "mode=620,ptmxmode=666");
	do_mount("shm", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, NULL);
	do_mount("run", "/run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755");
	do_mount("tmp", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777");
	make_dir("/run/lock");
	/* What a kernel does not have is no reason to stop. */
	mount("debugfs", "/sys/kernel/debug", "debugfs", 0, NULL);
	mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, NULL);
	mount("configfs", "/sys/kernel/config", "configfs", 0, NULL);
	mount("cgroup2", "/sys/fs/cgroup", "cgroup2", 0, NULL);
	if (symlink("/proc/self/fd", "/dev/fd") || symlink("/proc/self/fd/0", "/dev/stdin") ||
	    symlink("/proc/self/fd/1", "/dev/stdout") || symlink("/proc/self/fd/2", "/dev/stderr"))
		die("links in /dev");
}

static void loopback_up(void)
{
	struct ifreq ifr = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (s < 0 || ioctl(s, SIOCSIFFLAGS, &ifr))
		die("lo up");
	close(s);
}

static void set_environment(void)
{
	setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
	setenv("HOME", "/root", 1);
	setenv("TERM", "dumb", 1);
	setenv("LANG", "C.UTF-8", 1);
}

static void seed_random(const uint8_t *bytes, size_t n)
{
	struct rand_pool_info *info = calloc(1, sizeof(*info) + n);
	int fd = open("/dev/urandom", O_RDWR | O_CLOEXEC);

	if (!info || fd < 0)
		die("/dev/urandom");
	info->entropy_count = 8 * n;
	info->buf_size = n;
	memcpy(info->buf, bytes, n);
	if (ioctl(fd, RNDADDENTROPY, info) || ioctl(fd, RNDRESEEDCRNG))
		die("random seed");
	close(fd);
	free(info);
}

/* Adapters that were not there when the state was saved. */
static void find_devices(void)
{
	int fd = open("/sys/bus/pci/rescan", O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, "1", 1) != 1)
		die("rescan of the PCI bus");
	close(fd);
}

static void set_identity(const struct identity *id, size_t len)
{
	struct timespec now = { .tv_sec = id->seconds };

	if (len < sizeof(*id) || sethostname(id->name, len - sizeof(*id)))
		die("hostname");
	if (clock_settime(CLOCK_REALTIME, &now))
		die("time");
	seed_random(id->random, sizeof(id->random));
	find_devices();
}

static int open_port(void)
{
	char path[300], name[64] = "";
	struct dirent *e;
	DIR *d = opendir("/sys/class/virtio-ports");
	FILE *f;
	int fd = -1;

	while (d && fd < 0 && (e = readdir(d))) {
		snprintf(path, sizeof(path), "/sys/class/virtio-ports/%s/name", e->d_name);
		f = fopen(path, "re");
		if (!f)
			continue;
		if (fgets(name, sizeof(name), f) && !strncmp(name, PORT_NAME, strlen(PORT_NAME))) {
			snprintf(path, sizeof(path), "/dev/%s", e->d_name);
			fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
		}
		fclose(f);
	}
	if (d)
		closedir(d);
	if (fd < 0)
		die("virtio-serial port " PORT_NAME);
	return fd;
}

/* Frames */

static void write_all(const void *data, size_t len)
{
	const char *p = data;
	struct pollfd pfd = { .fd = port, .events = POLLOUT };

	while (len) {
		ssize_t n = write(port, p, len);

		if (n < 0 && errno == EAGAIN) {
			poll(&pfd, 1, -1);
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			die("writing to the port");
		p += n;
		len -= n;
	}
}

static void send_frame(enum frame_type type, uint32_t id, const void *data, uint32_t len)
{
	char buf[sizeof(struct frame) + MAX_FRAME];
	struct frame f = { .len = len, .id = id, .type = type };

	memcpy(buf, &f, sizeof(f));
	memcpy(buf + sizeof(f), data, len);
	write_all(buf, sizeof(f) + len);
}

/* Commands */

static struct proc *find_proc(uint32_t id)
{
	for (int i = 0; i < MAX_PROCS; i++)
		if (procs[i].id == id)
			return &procs[i];
	return NULL;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void fail_exec(uint32_t id, const char *text)
{
	uint32_t status = 127 << 8;

	send_frame(F_STDERR, id, text, strlen(text));
	send_frame(F_EXIT, id, &status, sizeof(status));
}

static void __attribute__((noreturn)) run_child(char **argv, char **env, int in, int out, int err,
						bool pty)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	setsid();
	if (pty)
		ioctl(in, TIOCSCTTY, 0);
	dup2(in, 0);
	dup2(out, 1);
	dup2(err, 2);
	for (; *env; env++)
		putenv(*env);
	if (chdir("/root"))
		_exit(127);
	execvp(argv[0], argv);
	fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

/* Fills child[] with the command's ends and p's with ours.  Returns 0 or -1. */
static int open_pipes(struct proc *p, int child[3])
{
	int fd[3][2];

	for (int i = 0; i < 3; i++)
		if (pipe2(fd[i], O_CLOEXEC))
			return -1;
	child[0] = fd[0][0];
	child[1] = fd[1][1];
	child[2] = fd[2][1];
	p->in = fd[0][1];
	p->out = fd[1][0];
	p->err = fd[2][0];
	fcntl(p->err, F_SETFL, O_NONBLOCK);
	return 0;
}

static int open_pty(struct proc *p, int child[3])
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);

	if (master < 0 || grantpt(master) || unlockpt(master))
		return -1;
	child[0] = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (child[0] < 0)
		return -1;
	child[1] = fcntl(child[0], F_DUPFD_CLOEXEC, 0);
	child[2] = fcntl(child[0], F_DUPFD_CLOEXEC, 0);
	p->in = master;
	p->out = fcntl(master, F_DUPFD_CLOEXEC, 0);
	p->err = -1;
	return 0;
}

/*
 * Splits the NUL-terminated strings at data into argv[0..argc-1] and the environment.
 * Returns the number of strings, or -1 when they do not end in NUL or are too many.
 */
static int split_strings(char *data, size_t len, char **out, int max)
{
	int n = 0;

	if (len && data[len - 1])
		return -1;
	for (char *s = data; s < data + len; s += strlen(s) + 1) {
		if (n == max)
			return -1;
		out[n++] = s;
	}
	return n;
}

static void start_command(uint32_t id, char *data, size_t len)
{
	static char *strings[4096], *argv[4097], *env[4097];
	struct proc *p = find_proc(0);
	uint32_t flags, argc;
	int child[3], n;

	if (!p || find_proc(id))
		return fail_exec(id, "agent: too many commands at once\n");
	if (len < 8)
		return fail_exec(id, "agent: bad request\n");
	memcpy(&flags, data, 4);
	memcpy(&argc, data + 4, 4);
	n = split_strings(data + 8, len - 8, strings, 4096);
	if (n < 1 || argc < 1 || argc > (uint32_t)n)
		return fail_exec(id, "agent: bad request\n");
	memcpy(argv, strings, argc * sizeof(*argv));
	argv[argc] = NULL;
	memcpy(env, strings + argc, (n - argc) * sizeof(*env));
	env[n - argc] = NULL;

	*p = (struct proc){ .id = id, .pty = flags & EXEC_PTY };
	if (p->pty ? open_pty(p, child) : open_pipes(p, child)) {
		p->id = 0;
		return fail_exec(id, "agent: no descriptors left\n");
	}
	fcntl(p->in, F_SETFL, O_NONBLOCK);
	fcntl(p->out, F_SETFL, O_NONBLOCK);
	p->pid = fork();
	if (p->pid == 0)
		run_child(argv, env, child[0], child[1], child[2], p->pty);
	for (int i = 0; i < 3; i++)
		close(child[i]);
	if (p->pid < 0) {
		close_fd(&p->in);
		close_fd(&p->out);
		close_fd(&p->err);
		p->id = 0;
		fail_exec(id, "agent: cannot fork\n");
	}
}

/* Returns false when nothing more can be read now. */
static bool forward_output(struct proc *p, int *fd, enum frame_type type)
{
	char buf[MAX_FRAME];
	ssize_t n;

	if (*fd < 0)
		return false;
	n = read(*fd, buf, sizeof(buf));
	if (n > 0) {
		send_frame(type, p->id, buf, n);
		return true;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	close_fd(fd);	/* end of file; EIO on a pty whose last user is gone */
	return false;
}

static void flush_stdin(struct proc *p)
{
	ssize_t n = 0;
	uint32_t done;

	if (p->in >= 0 && p->pending_len) {
		n = write(p->in, p->pending, p->pending_len);
		if (n < 0 && errno != EAGAIN && errno != EINTR) {
			/* The command reads no more: take the rest and drop it. */
			close_fd(&p->in);
		}
	}
	if (p->in < 0)
		n = p->pending_len;
	if (n > 0) {
		done = n;
		p->pending_len -= n;
		memmove(p->pending, p->pending + n, p->pending_len);
		send_frame(F_STDIN_ACK, p->id, &done, sizeof(done));
	}
	if (p->in_eof && !p->pending_len)
		close_fd(&p->in);
}

static void add_stdin(struct proc *p, const char *data, size_t len)
{
	if (!p->pending)
		p->pending = malloc(STDIN_WINDOW);
	if (!p->pending || p->pending_len + len > STDIN_WINDOW)
		die("host sent more input than it may");
	memcpy(p->pending + p->pending_len, data, len);
	p->pending_len += len;
	flush_stdin(p);
}

static void end_command(struct proc *p, uint32_t status)
{
	/* What the pipes hold, and no more: a daemon left behind may go on writing. */
	for (int i = 0; i < 8 && forward_output(p, &p->out, F_STDOUT); i++)
		;
	for (int i = 0; i < 8 && forward_output(p, &p->err, F_STDERR); i++)
		;
	send_frame(F_EXIT, p->id, &status, sizeof(status));
	close_fd(&p->in);
	close_fd(&p->out);
	close_fd(&p->err);
	free(p->pending);
	*p = (struct proc){ 0 };
}

static void reap(int sigfd)
{
	struct signalfd_siginfo info;
	int status;
	pid_t pid;

	if (read(sigfd, &info, sizeof(info)) < 0)
		return;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (int i = 0; i < MAX_PROCS; i++)
			if (procs[i].id && procs[i].pid == pid)
				end_command(&procs[i], status);
}

static void say_ready(void)
{
	struct utsname uts;

	if (uname(&uts))
		die("uname");
	send_frame(F_READY, 0, uts.release, strlen(uts.release));
}

static void handle_frame(const struct frame *f, char *data)
{
	struct proc *p = f->id ? find_proc(f->id) : NULL;
	struct winsize ws = { 0 };
	uint32_t arg[2] = { 0 };

	memcpy(arg, data, f->len < sizeof(arg) ? f->len : sizeof(arg));
	switch (f->type) {
	case F_EXEC:
		if (f->id)
			start_command(f->id, data, f->len);
		break;
	case F_STDIN:
		if (p)
			add_stdin(p, data, f->len);
		break;
	case F_STDIN_EOF:
		if (p) {
			p->in_eof = true;
			flush_stdin(p);
		}
		break;
	case F_SIGNAL:
		if (p)
			kill(-p->pid, arg[0]);
		break;
	case F_WINSIZE:
		ws.ws_row = arg[0];
		ws.ws_col = arg[1];
		if (p && p->pty)
			ioctl(p->in, TIOCSWINSZ, &ws);
		break;
	case F_POWEROFF:
		sync();
		reboot(arg[0]);
		break;
	case F_IDENTITY:
		set_identity((struct identity *)data, f->len);
		say_ready();
		break;
	default:
		errno = EPROTO;
		die("frame of unknown type %u", f->type);
	}
}

static void read_port(void)
{
	static char buf[sizeof(struct frame) + MAX_FRAME];
	static size_t have;
	struct frame f;
	ssize_t n;

	n = read(port, buf + have, sizeof(buf) - have);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0)
		die("the host closed the port");
	have += n;
	while (have >= sizeof(f)) {
		memcpy(&f, buf, sizeof(f));
		if (f.len > MAX_FRAME) {
			errno = EPROTO;
			die("frame of %u bytes", f.len);
		}
		if (have < sizeof(f) + f.len)
			return;
		handle_frame(&f, buf + sizeof(f));
		have -= sizeof(f) + f.len;
		memmove(buf, buf + sizeof(f) + f.len, have);
	}
}

static void forward_kmsg(int fd)
{
	char buf[8192];
	ssize_t n;

	while ((n = read(fd, buf, sizeof(buf))) > 0 || (n < 0 && errno == EPIPE))
		if (n > 0)	/* EPIPE: records were overwritten before we came; go on */
			send_frame(F_KMSG, 0, buf, n);
}

static void serve(int kmsg, int sigfd)
{
	struct pollfd pfd[3 + 3 * MAX_PROCS];
	int i;

	for (;;) {
		pfd[0] = (struct pollfd){ .fd = port, .events = POLLIN };
		pfd[1] = (struct pollfd){ .fd = kmsg, .events = POLLIN };
		pfd[2] = (struct pollfd){ .fd = sigfd, .events = POLLIN };
		for (i = 0; i < MAX_PROCS; i++) {
			struct proc *p = &procs[i];
			bool used = p->id;

			/* poll() skips negative descriptors */
			pfd[3 + 3 * i] = (struct pollfd){ used ? p->out : -1, POLLIN, 0 };
			pfd[4 + 3 * i] = (struct pollfd){ used ? p->err : -1, POLLIN, 0 };
			pfd[5 + 3 * i] = (struct pollfd){ used && p->pending_len ? p->in : -1,
							  POLLOUT, 0 };
		}
		if (poll(pfd, 3 + 3 * MAX_PROCS, -1) < 0)
			continue;
		for (i = 0; i < MAX_PROCS; i++) {
			if (pfd[3 + 3 * i].revents)
				forward_output(&procs[i], &procs[i].out, F_STDOUT);
			if (pfd[4 + 3 * i].revents)
				forward_output(&procs[i], &procs[i].err, F_STDERR);
			if (pfd[5 + 3 * i].revents)
				flush_stdin(&procs[i]);
		}
		if (pfd[1].revents)
			forward_kmsg(kmsg);
		if (pfd[2].revents)
			reap(sigfd);
		if (pfd[0].revents & POLLIN)
			read_port();
		else if (pfd[0].revents & POLLHUP)
			die("the host closed the port");
	}
}

int main(void)
{
	sigset_t mask;
	int kmsg, sigfd;

	do_mount("dev", "/dev", "devtmpfs", 0, NULL);
	do_mount("proc", "/proc", "proc", 0, NULL);
	do_mount("sys", "/sys", "sysfs", 0, NULL);
	load_boot_modules();
	enter_root();
	mount_rest();
	loopback_up();
	set_environment();

	sigemptyset(&mask);
	sigaddset(&mask, SIGCHLD);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	signal(SIGPIPE, SIG_IGN);
	sigfd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	kmsg = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (sigfd < 0 || kmsg < 0)
		die("signalfd or /dev/kmsg");
	port = open_port();
	say_ready();
	serve(kmsg, sigfd);
}
