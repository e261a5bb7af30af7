// node:os: a machine that tells nothing about itself.
const signals = { SIGHUP: 1, SIGINT: 2, SIGQUIT: 3, SIGILL: 4, SIGTRAP: 5, SIGABRT: 6, SIGBUS: 7, SIGFPE: 8, SIGKILL: 9, SIGUSR1: 10, SIGSEGV: 11, SIGUSR2: 12, SIGPIPE: 13, SIGALRM: 14, SIGTERM: 15, SIGCHLD: 17, SIGCONT: 18, SIGSTOP: 19, SIGTSTP: 20 };
const errno = { E2BIG: 7, EACCES: 13, EADDRINUSE: 98, EAGAIN: 11, EBADF: 9, EBUSY: 16, ECONNREFUSED: 111, ECONNRESET: 104, EEXIST: 17, EINVAL: 22, EIO: 5, EISDIR: 21, EMFILE: 24, ENOENT: 2, ENOMEM: 12, ENOSPC: 28, ENOSYS: 38, ENOTDIR: 20, ENOTEMPTY: 39, EPERM: 1, EPIPE: 32, ETIMEDOUT: 110 };
export default {
  EOL: "\n",
  devNull: "/dev/null",
  constants: { signals, errno, priority: { PRIORITY_LOW: 19, PRIORITY_NORMAL: 0, PRIORITY_HIGH: -14 }, dlopen: {}, UV_UDP_REUSEADDR: 4 },
  arch: () => "x64",
  availableParallelism: () => 1,
  cpus: () => [],
  endianness: () => "LE",
  freemem: () => 0,
  getPriority: () => 0,
  homedir: () => "/tmp",
  hostname: () => "localhost",
  loadavg: () => [0, 0, 0],
  machine: () => "x86_64",
  networkInterfaces: () => ({}),
  platform: () => "linux",
  release: () => "",
  setPriority() {},
  tmpdir: () => "/tmp",
  totalmem: () => 0,
  type: () => "Linux",
  uptime: () => 0,
  userInfo: () => ({ uid: -1, gid: -1, username: "", homedir: "/tmp", shell: null }),
  version: () => "",
};
